//! Scanning: read all files of the folder, or the changed ones, and update the stock.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tidings_store::date::Moment;

use crate::Problem;
use crate::describe::{INSTRUCTIONS, POLICY, ROOTS, SERVER};
use crate::guard;
use crate::hidden::{self, Hidden};
use crate::stock::{Affected, REGISTER, Stock};
use crate::tree::{PARTS, PathKind, ReadError, Stat, WalkResult};

/// With more links than this, a link is checked only if an event names it.
const LINKS: usize = 1000;

impl Stock {
    /// Scans everything. `enter` is called with each directory before it is read.
    pub(crate) fn rescan(&mut self, enter: &mut dyn FnMut(&Path)) -> Affected {
        self.read_hidden();
        self.places.clear();
        self.link_paths.clear();
        self.linked.clear();
        let mut moved = BTreeSet::new();
        for part in PARTS {
            self.refresh_below(Path::new(part), enter, &mut moved);
        }
        self.refresh_consulted(&mut moved);
        // Descriptions and settings are small, so all are read again: their content decides whether
        // they changed, not a clock.
        let mut stale = moved.clone();
        let described = self.files.keys().filter(|path| !path.starts_with("resources"));
        stale.extend(described.cloned());
        stale.extend(self.readers.keys().cloned());
        let settings = [POLICY, guard::FILE, ROOTS, SERVER, INSTRUCTIONS, REGISTER];
        stale.extend(settings.map(PathBuf::from));
        let mut affected = Affected::default();
        self.reread(&stale, &mut affected);
        affected.files.extend(moved);
        affected
    }

    /// Scans the paths that events named.
    pub(crate) fn rescan_paths(
        &mut self,
        paths: &BTreeSet<PathBuf>,
        enter: &mut dyn FnMut(&Path),
    ) -> Affected {
        let mut changed = BTreeSet::new();
        for path in &self.with_links(paths) {
            let first = path.components().next().and_then(|it| it.as_os_str().to_str());
            let walked = first.is_some_and(|first| PARTS.contains(&first));
            let directory = self.root.absolute(path).is_dir();
            if walked && !self.hidden.hides_any(path, directory) {
                // One file is inspected without a walk.
                self.refresh_below(path, enter, &mut changed);
                changed.insert(path.clone());
            }
            if Path::new(ROOTS).starts_with(path) {
                changed.insert(ROOTS.into());
            }
            // A new directory may contain files that descriptions consult.
            let consulted = self.readers.range(path.clone()..).map(|(read, _)| read);
            changed.extend(consulted.take_while(|read| read.starts_with(path)).cloned());
        }
        for name in self.other_names(&changed) {
            self.refresh_below(&name, enter, &mut changed);
            changed.insert(name);
        }
        let mut affected = Affected::default();
        self.reread(&changed, &mut affected);
        affected.files.extend(changed);
        affected
    }

    /// Reads `.tidingsignore`. If it cannot be read, the last version stays in use.
    fn read_hidden(&mut self) {
        let file = Path::new(hidden::FILE);
        let text = match self.root.read(file, self.limits.description) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(ReadError::Missing) => String::new(),
            Err(error) => {
                let advice = "correct it; its last valid version is used";
                let problem = Problem::error(file, error.to_string(), advice);
                self.settings.insert(file.to_owned(), vec![problem]);
                return;
            }
        };
        let (hidden, problems) = Hidden::new(&text);
        self.hidden = hidden;
        self.settings.insert(file.to_owned(), problems);
    }

    /// Adds the links that may have a new target because these paths changed.
    fn with_links(&self, paths: &BTreeSet<PathBuf>) -> BTreeSet<PathBuf> {
        let mut all = paths.clone();
        for path in paths {
            all.extend(self.links.get(path).into_iter().flatten().cloned());
            // The system reports a directory under only one of its names.
            for (link, real) in &self.linked {
                all.extend(path.strip_prefix(real).ok().map(|rest| link.join(rest)));
                all.extend(path.strip_prefix(link).ok().map(|rest| real.join(rest)));
            }
        }
        // A new path may be the missing target of a link, or a link that another one leads to.
        let news =
            |path: &PathBuf| self.link_paths.contains(path) || !self.files.contains_key(path);
        if self.link_paths.len() <= LINKS && paths.iter().any(news) {
            // A linked directory is walked again only if the link has a new target.
            let moved = |link: &&PathBuf| {
                let real = self.linked.get(*link);
                real.is_none() || self.root.resolve(link).ok().as_ref() != real
            };
            all.extend(self.link_paths.iter().filter(moved).cloned());
        }
        all
    }

    /// The other names of files with several hard links.
    fn other_names(&self, changed: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let shared = changed.iter().filter_map(|path| self.files.get(path));
        let shared: Vec<_> = shared.filter(|stat| stat.is_same_file(stat)).collect();
        if shared.is_empty() {
            return Vec::new();
        }
        let others = self.files.iter().filter(|(path, stat)| {
            !changed.contains(*path) && shared.iter().any(|it| it.is_same_file(stat))
        });
        others.map(|(path, _)| path.clone()).collect()
    }

    /// Inspects the consulted files outside the parts.
    fn refresh_consulted(&mut self, moved: &mut BTreeSet<PathBuf>) {
        let beside: Vec<_> =
            self.readers.keys().filter(|path| !self.files.contains_key(*path)).cloned().collect();
        let mut consulted = BTreeMap::new();
        for path in beside {
            if let PathKind::File(stat) = self.root.inspect(&path) {
                consulted.insert(path, stat);
            }
        }
        let before = std::mem::take(&mut self.consulted);
        let all = before.keys().chain(consulted.keys());
        moved.extend(all.filter(|path| before.get(*path) != consulted.get(*path)).cloned());
        self.consulted = consulted;
    }

    /// Scans a path and everything below it, and collects the differences.
    fn refresh_below(
        &mut self,
        from: &Path,
        enter: &mut dyn FnMut(&Path),
        changed: &mut BTreeSet<PathBuf>,
    ) {
        let mut found = self.walk(from, enter);
        self.linked.retain(|link, _| !link.starts_with(from));
        self.linked.append(&mut found.linked);
        self.link_paths.remove(from);
        self.link_paths.extend(found.links);
        self.replace_files(from, found.files, changed);
        self.replace_place_problems(from, found.problems);
    }

    /// Lists the files at and below a path, without exceeding the limit of the folder.
    fn walk(&self, from: &Path, enter: &mut dyn FnMut(&Path)) -> WalkResult {
        match self.root.inspect(from) {
            // The usual case needs no walk.
            PathKind::File(stat) if stat.target.is_none() => {
                let mut found = WalkResult::default();
                found.files.insert(from.to_owned(), stat);
                found
            }
            _ => {
                let limit = if self.files.is_empty() {
                    self.limits.files
                } else {
                    let room = self.limits.files.saturating_sub(self.files.len()).max(1);
                    room.max(self.below(from).count() + 1)
                };
                self.root.walk(from, &self.hidden, limit, enter)
            }
        }
    }

    /// Replaces the known files at and below a path, and collects those that changed.
    fn replace_files(
        &mut self,
        from: &Path,
        found: BTreeMap<PathBuf, Stat>,
        changed: &mut BTreeSet<PathBuf>,
    ) {
        let gone: Vec<_> =
            self.below(from).filter(|path| !found.contains_key(*path)).cloned().collect();
        for path in gone {
            self.unlink(&path);
            self.files.remove(&path);
            changed.insert(path);
        }
        let now = Moment::now();
        for (path, mut stat) in found {
            if stat.target.is_none() {
                stat.target = self.behind_link(&path);
            }
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
    }

    /// Replaces the problems of paths at and below a path.
    fn replace_place_problems(&mut self, from: &Path, problems: Vec<Problem>) {
        let stale: Vec<_> = self
            .places
            .range(from.to_owned()..)
            .take_while(|(path, _)| path.starts_with(from))
            .map(|(path, _)| path.clone())
            .collect();
        for path in stale {
            self.places.remove(&path);
        }
        for problem in problems {
            self.places.entry(problem.file.clone()).or_default().push(problem);
        }
    }

    /// The real path of a file below a link to a directory.
    fn behind_link(&self, path: &Path) -> Option<PathBuf> {
        if self.linked.is_empty() {
            return None;
        }
        path.ancestors().find_map(|above| {
            let real = self.linked.get(above)?;
            Some(real.join(path.strip_prefix(above).ok()?))
        })
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
