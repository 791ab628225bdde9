//! Feeds that are files: the system says which of them to look at again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tidings_store::settle::settle;
use tokio::sync::Notify;

/// A save is several steps: what follows each other within this time is looked at once. A file
/// that is removed and written anew is not missing in between.
const SETTLE: Duration = Duration::from_millis(20);
/// What never rests is looked at after this time all the same.
const SETTLE_AT_MOST: Duration = Duration::from_millis(200);
/// More paths than this are all files.
const PATHS: usize = 4096;

/// Follows the directories that feeds lie in.
pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    ear: Arc<Ear>,
    /// The files by the id of their feed: where it was said to be, and where it is if that is a
    /// link.
    files: BTreeMap<String, Vec<WatchedFile>>,
}

/// Where a file is.
struct WatchedFile {
    file: PathBuf,
    /// The directory that is followed for it: its own, or the nearest one there is.
    directory: Option<PathBuf>,
}

/// What the system's thread writes and the rounds take.
#[derive(Debug, Default)]
struct Ear {
    heard: Mutex<Heard>,
    some: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    paths: BTreeSet<PathBuf>,
    /// Something was missed, or too much happened.
    everything: bool,
}

impl Watch {
    pub(crate) fn new() -> Self {
        let ear = Arc::new(Ear::default());
        let heard = ear.clone();
        let watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
                Ok(event) if event.need_rescan() => heard.everything(),
                Ok(event) if is_change(event.kind) => heard.note(event.paths),
                Ok(_) => {}
                // Something was missed.
                Err(_) => heard.everything(),
            });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "the system does not tell of changes; files are looked at often");
        });
        Self { watcher: watcher.ok(), ear, files: BTreeMap::new() }
    }

    /// Whether the file of a feed is followed.
    pub(crate) fn follows(&self, id: &str) -> bool {
        self.files.contains_key(id)
    }

    /// Follows the file of a feed, from before it is read. Says whether the system tells of it.
    pub(crate) fn follow(&mut self, id: &str, file: &Path) -> bool {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let target = std::fs::canonicalize(&file).ok().filter(|target| *target != file);
        let files = std::iter::once(file).chain(target);
        let watched: Vec<_> =
            files.map(|file| WatchedFile { directory: self.enter(&file), file }).collect();
        let is_heard = watched.iter().all(|one| one.directory.is_some());
        // Order: what was followed is left after what is followed now, so that nothing is missed
        // where it is the same.
        let before = self.files.insert(id.to_owned(), watched);
        self.leave(before);
        is_heard
    }

    /// The feed is no longer a file that matters.
    pub(crate) fn forget(&mut self, id: &str) {
        let before = self.files.remove(id);
        self.leave(before);
    }

    /// Leaves the directories that no file needs any more.
    fn leave(&mut self, watched: Option<Vec<WatchedFile>>) {
        let Some(watcher) = &mut self.watcher else { return };
        for directory in watched.into_iter().flatten().filter_map(|one| one.directory) {
            let mut others = self.files.values().flatten();
            if !others.any(|other| other.directory.as_ref() == Some(&directory)) {
                // It may have gone by itself.
                let _ = watcher.unwatch(&directory);
            }
        }
    }

    /// Waits until files were changed and have settled, and gives their feeds. Cancel-safe: what
    /// was heard is taken in one step at the end.
    pub(crate) async fn heard(&self) -> Vec<String> {
        loop {
            while self.ear.lock().is_silent() {
                self.ear.some.notified().await;
            }
            settle(&self.ear.some, SETTLE, SETTLE_AT_MOST).await;
            let heard = std::mem::take(&mut *self.ear.lock());
            let is_meant = |file: &Path| {
                // The file, or a directory on the way to it.
                heard.everything || file.ancestors().any(|path| heard.paths.contains(path))
            };
            let is_meant = |watched: &[WatchedFile]| watched.iter().any(|one| is_meant(&one.file));
            let meant = self.files.iter().filter(|(_, watched)| is_meant(watched));
            let meant: Vec<_> = meant.map(|(id, _)| id.clone()).collect();
            if !meant.is_empty() {
                return meant;
            }
        }
    }

    /// Follows the directory of a file, or the nearest there is.
    fn enter(&mut self, file: &Path) -> Option<PathBuf> {
        let watcher = self.watcher.as_mut()?;
        let nearest = || file.ancestors().skip(1).find(|it| it.is_dir()).map(Path::to_owned);
        // A directory may come or go while it is looked for.
        for _ in 0..8 {
            let directory = nearest()?;
            let followed = watcher.watch(&directory, RecursiveMode::NonRecursive);
            if nearest().as_ref() == Some(&directory) {
                let failed = followed.inspect_err(|error| {
                    let path = directory.display();
                    tracing::debug!(%path, %error, "the system does not tell of a directory");
                });
                return failed.is_ok().then_some(directory);
            }
        }
        None
    }
}

impl Ear {
    fn lock(&self) -> std::sync::MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, paths: Vec<PathBuf>) {
        let mut heard = self.lock();
        heard.paths.extend(paths);
        if heard.paths.len() > PATHS {
            heard.paths.clear();
            heard.everything = true;
        }
        drop(heard);
        self.some.notify_one();
    }

    fn everything(&self) {
        self.lock().everything = true;
        self.some.notify_one();
    }
}

impl Heard {
    fn is_silent(&self) -> bool {
        self.paths.is_empty() && !self.everything
    }
}

/// Whether an event says that a file is whole, or gone, or that a directory came.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        // Each side of a rename is told by itself too.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => false,
        EventKind::Modify(ModifyKind::Name(_))
        | EventKind::Create(CreateKind::Folder)
        | EventKind::Remove(_)
        | EventKind::Any
        | EventKind::Other => true,
        // A file that was made is empty; where the system tells of its end, that is waited for.
        EventKind::Create(_) | EventKind::Modify(_) => !cfg!(target_os = "linux"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_heard_of_when_it_is_whole_wherever_its_directory_was() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a/b/feed.xml");
        let mut watch = Watch::new();
        assert!(watch.follow("x", &file));
        assert!(watch.follow("y", &root.path().join("other.xml")));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert_eq!(watch.heard().await, ["x"]);
        assert!(watch.follow("x", &file));
        std::fs::write(&file, "1").unwrap();
        assert_eq!(watch.heard().await, ["x"]);
        std::fs::write(file.with_extension("new"), "2").unwrap();
        std::fs::rename(file.with_extension("new"), &file).unwrap();
        assert_eq!(watch.heard().await, ["x"]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(watch.heard().await, ["x"]);
        std::fs::remove_dir_all(root.path().join("a")).unwrap();
        assert_eq!(watch.heard().await, ["x"]);
        assert!(watch.follow("x", &file));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert_eq!(watch.heard().await, ["x"]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_is_heard_of_and_so_is_what_it_leads_to() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (file, link) = (elsewhere.path().join("feed.xml"), root.path().join("link.xml"));
        std::fs::write(&file, "1").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut watch = Watch::new();
        assert!(watch.follow("x", &link));
        std::fs::write(&file, "2").unwrap();
        assert_eq!(watch.heard().await, ["x"]);
        std::fs::remove_file(&link).unwrap();
        assert_eq!(watch.heard().await, ["x"]);
    }

    #[tokio::test]
    async fn what_others_do_is_not_heard() {
        let root = tempfile::tempdir().unwrap();
        let (file, other) = (root.path().join("feed.xml"), root.path().join("other.xml"));
        std::fs::write(&file, "1").unwrap();
        let mut watch = Watch::new();
        watch.follow("x", &file);
        watch.follow("y", &other);
        std::fs::read(&file).unwrap();
        std::fs::write(root.path().join("nobody's"), "1").unwrap();
        std::fs::write(&other, "1").unwrap();
        assert_eq!(watch.heard().await, ["y"]);
        watch.forget("y");
        std::fs::write(&other, "2").unwrap();
        std::fs::write(&file, "2").unwrap();
        assert_eq!(watch.heard().await, ["x"]);
    }
}
