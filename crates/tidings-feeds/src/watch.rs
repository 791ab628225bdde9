//! Feeds in files: the system reports which of them to read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tidings_store::settle::settle;
use tokio::sync::Notify;

/// A save has several steps, so changes within this time are handled together. A file that is
/// removed and written anew is not missing in between.
const SETTLE: Duration = Duration::from_millis(20);
/// Continuous changes are handled after this time.
const SETTLE_AT_MOST: Duration = Duration::from_millis(200);
/// More changed paths than this count as all files.
const PATHS: usize = 4096;

/// Watches the directories of files.
pub(crate) struct Watch {
    watcher: Option<RecommendedWatcher>,
    ear: Arc<Ear>,
    /// The files by the id of their feed: the named path, and the target if that is a link.
    files: BTreeMap<String, Vec<WatchedFile>>,
}

/// Where a file is.
struct WatchedFile {
    file: PathBuf,
    /// The watched directory: its own, or the nearest existing one.
    directory: Option<PathBuf>,
}

/// Written by the system's thread, and taken by the rounds.
#[derive(Debug, Default)]
struct Ear {
    heard: Mutex<Heard>,
    some: Notify,
}

#[derive(Debug, Default)]
struct Heard {
    paths: BTreeSet<PathBuf>,
    /// Events were lost, or there were too many.
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
                // Events were lost.
                Err(_) => heard.everything(),
            });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "the system does not report changes; files are read often");
        });
        Self { watcher: watcher.ok(), ear, files: BTreeMap::new() }
    }

    /// Whether the file of a feed is watched.
    pub(crate) fn follows(&self, id: &str) -> bool {
        self.files.contains_key(id)
    }

    /// Watches the file of a feed, beginning before it is read. Returns whether the system reports
    /// its changes.
    pub(crate) fn follow(&mut self, id: &str, file: &Path) -> bool {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let target = std::fs::canonicalize(&file).ok().filter(|target| *target != file);
        let files = std::iter::once(file).chain(target);
        let watched: Vec<_> =
            files.map(|file| WatchedFile { directory: self.enter(&file), file }).collect();
        let is_heard = watched.iter().all(|one| one.directory.is_some());
        // Order: the old directory is released after the new one is watched, so that nothing is
        // missed if they are the same.
        let before = self.files.insert(id.to_owned(), watched);
        self.leave(before);
        is_heard
    }

    /// The feed is not a file any more.
    pub(crate) fn forget(&mut self, id: &str) {
        let before = self.files.remove(id);
        self.leave(before);
    }

    /// Releases the directories that no file needs any more.
    fn leave(&mut self, watched: Option<Vec<WatchedFile>>) {
        let Some(watcher) = &mut self.watcher else { return };
        for directory in watched.into_iter().flatten().filter_map(|one| one.directory) {
            let mut others = self.files.values().flatten();
            if !others.any(|other| other.directory.as_ref() == Some(&directory)) {
                // It may be gone already.
                let _ = watcher.unwatch(&directory);
            }
        }
    }

    /// Waits until files changed and settled, and returns their feeds. Cancel-safe: the changes are
    /// taken in one step at the end.
    pub(crate) async fn heard(&self) -> Vec<String> {
        loop {
            while self.ear.lock().is_silent() {
                self.ear.some.notified().await;
            }
            settle(&self.ear.some, SETTLE, SETTLE_AT_MOST).await;
            let heard = std::mem::take(&mut *self.ear.lock());
            let is_meant = |file: &Path| {
                // The file, or a directory on its path.
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

    /// Watches the directory of a file, or the nearest existing one.
    fn enter(&mut self, file: &Path) -> Option<PathBuf> {
        let watcher = self.watcher.as_mut()?;
        let nearest = || file.ancestors().skip(1).find(|it| it.is_dir()).map(Path::to_owned);
        // A directory may appear or disappear meanwhile.
        for _ in 0..8 {
            let directory = nearest()?;
            let followed = watcher.watch(&directory, RecursiveMode::NonRecursive);
            if nearest().as_ref() == Some(&directory) {
                let failed = followed.inspect_err(|error| {
                    let path = directory.display();
                    tracing::debug!(%path, %error, "the system does not report changes of a \
                        directory");
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

/// Whether an event means that a file is complete or gone, or that a directory appeared.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        // Each side of a rename is reported by itself too.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => false,
        EventKind::Modify(ModifyKind::Name(_))
        | EventKind::Create(CreateKind::Folder)
        | EventKind::Remove(_)
        | EventKind::Any
        | EventKind::Other => true,
        // A created file is empty; where the system reports the end of writing, that is awaited.
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
