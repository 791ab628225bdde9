//! Looking at the files of the folder: all of them, or those that are said to have changed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::folder::describe::{INSTRUCTIONS, POLICY, SERVER};
use crate::folder::hidden::{self, Hidden};
use crate::folder::stock::{REGISTER, Stock, Touched};
use crate::folder::tree::{Found, PARTS, Place};

impl Stock {
    /// Looks at everything. `enter` is called with each directory before it is read.
    pub(crate) fn rescan(&mut self, enter: &mut dyn FnMut(&Path)) -> Touched {
        let text = self.root.read(Path::new(hidden::FILE), self.limits.description);
        let text = String::from_utf8_lossy(&text.unwrap_or_default()).into_owned();
        let (hidden, problems) = Hidden::new(&text);
        self.hidden = hidden;
        self.settings.insert(hidden::FILE.into(), problems);
        self.places.clear();
        let mut changed = BTreeSet::new();
        for part in PARTS {
            self.walk(Path::new(part), enter, &mut changed);
        }
        // What is not a plain file of content is small, and read again: whether a description
        // moved is for its content to say, not for a clock.
        let described = self.files.keys().filter(|path| !path.starts_with("resources"));
        changed.extend(described.cloned());
        changed.extend(self.readers.keys().cloned());
        changed.extend([POLICY, SERVER, INSTRUCTIONS, REGISTER].map(PathBuf::from));
        let mut touched = Touched::default();
        self.reread(&changed, &mut touched);
        touched
    }

    /// Looks at paths of which something was heard.
    pub(crate) fn look(
        &mut self,
        paths: &BTreeSet<PathBuf>,
        enter: &mut dyn FnMut(&Path),
    ) -> Touched {
        if paths.iter().any(|path| path == Path::new(hidden::FILE) || path == Path::new("")) {
            return self.rescan(enter);
        }
        let mut changed = BTreeSet::new();
        for path in paths {
            let first = path.components().next().and_then(|it| it.as_os_str().to_str());
            let walked = first.is_some_and(|first| PARTS.contains(&first));
            let directory = self.root.absolute(path).is_dir();
            if walked && !self.hidden.hides_any(path, directory) {
                // A look at one file costs no walk, whatever it is among.
                self.walk(path, enter, &mut changed);
                changed.insert(path.clone());
            }
            // A directory that comes may bring what somebody consults.
            let consulted = self.readers.range(path.clone()..).map(|(read, _)| read);
            changed.extend(consulted.take_while(|read| read.starts_with(path)).cloned());
        }
        let mut touched = Touched::default();
        self.reread(&changed, &mut touched);
        touched
    }

    /// Looks at a path and everything below it; what differs is noted.
    fn walk(&mut self, from: &Path, enter: &mut dyn FnMut(&Path), changed: &mut BTreeSet<PathBuf>) {
        let limit = self.limits.files.saturating_sub(self.files.len()).max(1);
        let limit = if self.files.is_empty() {
            self.limits.files
        } else {
            limit.max(self.below(from).count() + 1)
        };
        let found = match self.root.look(from) {
            // The usual case, without the walk.
            Place::File(stat) => {
                let mut found = Found::default();
                found.files.insert(from.to_owned(), stat);
                found
            }
            _ => self.root.walk(from, &self.hidden, limit, enter),
        };
        let gone: Vec<_> =
            self.below(from).filter(|path| !found.files.contains_key(*path)).cloned().collect();
        for path in gone {
            self.unlink(&path);
            self.files.remove(&path);
            changed.insert(path);
        }
        let now = SystemTime::now();
        for (path, stat) in found.files {
            let known = self.files.get(&path);
            if known == Some(&stat) && !stat.is_fresh(now) {
                continue;
            }
            self.unlink(&path);
            if let Some(target) = &stat.target {
                self.links.entry(target.clone()).or_default().insert(path.clone());
            }
            self.files.insert(path.clone(), stat);
            changed.insert(path);
        }
        let stale: Vec<_> = self
            .places
            .range(from.to_owned()..)
            .take_while(|(path, _)| path.starts_with(from))
            .map(|(path, _)| path.clone())
            .collect();
        for path in stale {
            self.places.remove(&path);
        }
        for problem in found.problems {
            self.places.entry(problem.file.clone()).or_default().push(problem);
        }
    }

    /// The known files at and below a path.
    fn below<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = &'a PathBuf> {
        self.files
            .range(path.to_owned()..)
            .map(|(known, _)| known)
            .take_while(move |known| known.starts_with(path))
    }

    fn unlink(&mut self, path: &Path) {
        let target = self.files.get(path).and_then(|stat| stat.target.clone());
        let Some(target) = target else { return };
        if let Some(links) = self.links.get_mut(&target) {
            links.remove(path);
            if links.is_empty() {
                self.links.remove(&target);
            }
        }
    }
}
