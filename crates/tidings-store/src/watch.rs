//! Following files: the system reports which of them changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::Notify;

use crate::settle::settle;

/// A save is several steps: events that follow each other within this time are handled together. A
/// file that is removed and written again is not missing in between.
const SETTLE: Duration = Duration::from_millis(20);
/// Without quiet, events are handled after this long.
const SETTLE_AT_MOST: Duration = Duration::from_millis(200);
/// With more changed paths than this, every file counts as changed.
const PATHS: usize = 4096;

/// Follows files through the events of their directories, so that a file may be missing, be
/// replaced by another, or be a link.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> std::io::Result<()> {
/// use tidings_store::watch::FileWatch;
///
/// let directory = tempfile::tempdir()?;
/// let file = directory.path().join("settings.toml");
/// let mut watch = FileWatch::new();
/// assert!(watch.follow("settings", &file));
/// std::fs::write(&file, "colour = 'red'")?;
/// assert_eq!(watch.changed().await, ["settings"]);
/// # Ok(()) }
/// ```
pub struct FileWatch {
    watcher: Option<RecommendedWatcher>,
    inbox: Arc<Inbox>,
    /// The files by name: the path that was given, and the file it leads to if it is a link.
    files: BTreeMap<String, Vec<WatchedFile>>,
}

/// A path, and how it is watched.
struct WatchedFile {
    file: PathBuf,
    /// The watched directory: the file's own, or its nearest ancestor that exists.
    directory: Option<PathBuf>,
}

/// The events, written by the system's thread and taken by [`FileWatch::changed`].
#[derive(Debug, Default)]
struct Inbox {
    events: Mutex<FileEvents>,
    some: Notify,
}

#[derive(Debug, Default)]
struct FileEvents {
    paths: BTreeSet<PathBuf>,
    /// Events were lost, or there were too many.
    everything: bool,
}

impl FileWatch {
    /// Follows no files yet.
    #[must_use]
    pub fn new() -> Self {
        let inbox = Arc::new(Inbox::default());
        let events = inbox.clone();
        let watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
                Ok(event) if event.need_rescan() => events.everything(),
                Ok(event) if is_change(event.kind) => events.note(event.paths),
                Ok(_) => {}
                // Events were lost.
                Err(_) => events.everything(),
            });
        let watcher = watcher.inspect_err(|error| {
            tracing::warn!(%error, "the system does not report changes of files");
        });
        Self { watcher: watcher.ok(), inbox, files: BTreeMap::new() }
    }

    /// Whether a file of this name is followed.
    #[must_use]
    pub fn follows(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Follows a file under a name, in place of the one that had the name. Call it before reading
    /// the file, so that no change is missed. Returns whether the system reports its changes. If a
    /// missing directory appears or a link changes, call it again.
    pub fn follow(&mut self, name: &str, file: &Path) -> bool {
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
        let target = std::fs::canonicalize(&file).ok().filter(|target| *target != file);
        let files = std::iter::once(file).chain(target);
        let watched: Vec<_> =
            files.map(|file| WatchedFile { directory: self.enter(&file), file }).collect();
        let is_reported = watched.iter().all(|one| one.directory.is_some());
        // Order: the old directories are left after the new ones are watched, so that no change is
        // missed where they are the same.
        let before = self.files.insert(name.to_owned(), watched);
        self.leave(before);
        is_reported
    }

    /// Stops following the file of this name.
    pub fn forget(&mut self, name: &str) {
        let before = self.files.remove(name);
        self.leave(before);
    }

    /// Stops watching the directories that no file needs any more.
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

    /// Waits until files have changed and settled, and returns their names. A directory on the way
    /// to a file counts.
    // Cancel-safe: the events are taken in one step at the end.
    pub async fn changed(&self) -> Vec<String> {
        loop {
            while self.inbox.lock().is_empty() {
                self.inbox.some.notified().await;
            }
            settle(&self.inbox.some, SETTLE, SETTLE_AT_MOST).await;
            let events = std::mem::take(&mut *self.inbox.lock());
            let is_changed = |one: &WatchedFile| {
                events.everything || one.file.ancestors().any(|path| events.paths.contains(path))
            };
            let changed = self.files.iter().filter(|(_, files)| files.iter().any(is_changed));
            let changed: Vec<_> = changed.map(|(name, _)| name.clone()).collect();
            if !changed.is_empty() {
                return changed;
            }
        }
    }

    /// Watches the directory of a file, or its nearest ancestor that exists.
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
                    tracing::debug!(%path, %error, "the system does not report changes of a directory");
                });
                return failed.is_ok().then_some(directory);
            }
        }
        None
    }
}

impl Default for FileWatch {
    fn default() -> Self {
        Self::new()
    }
}

impl Inbox {
    fn lock(&self) -> std::sync::MutexGuard<'_, FileEvents> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, paths: Vec<PathBuf>) {
        let mut events = self.lock();
        events.paths.extend(paths);
        if events.paths.len() > PATHS {
            events.paths.clear();
            events.everything = true;
        }
        drop(events);
        self.some.notify_one();
    }

    fn everything(&self) {
        self.lock().everything = true;
        self.some.notify_one();
    }
}

impl FileEvents {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.everything
    }
}

/// Whether an event means that a file is complete or gone, or that a directory appeared.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        // Both sides of a rename have events of their own.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => false,
        EventKind::Modify(ModifyKind::Name(_))
        | EventKind::Create(CreateKind::Folder)
        | EventKind::Remove(_)
        | EventKind::Any
        | EventKind::Other => true,
        // A new file is empty. Where the system reports that it was closed, that is waited for.
        EventKind::Create(_) | EventKind::Modify(_) => !cfg!(target_os = "linux"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_complete_file_is_reported_even_if_its_directory_was_missing() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a/b/feed.xml");
        let mut watch = FileWatch::new();
        assert!(watch.follow("x", &file));
        assert!(watch.follow("y", &root.path().join("other.xml")));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert_eq!(watch.changed().await, ["x"]);
        assert!(watch.follow("x", &file));
        std::fs::write(&file, "1").unwrap();
        assert_eq!(watch.changed().await, ["x"]);
        std::fs::write(file.with_extension("new"), "2").unwrap();
        std::fs::rename(file.with_extension("new"), &file).unwrap();
        assert_eq!(watch.changed().await, ["x"]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(watch.changed().await, ["x"]);
        std::fs::remove_dir_all(root.path().join("a")).unwrap();
        assert_eq!(watch.changed().await, ["x"]);
        assert!(watch.follow("x", &file));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        assert_eq!(watch.changed().await, ["x"]);
    }

    #[tokio::test]
    async fn a_link_is_reported_and_so_is_its_target() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (file, link) = (elsewhere.path().join("feed.xml"), root.path().join("link.xml"));
        std::fs::write(&file, "1").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let mut watch = FileWatch::new();
        assert!(watch.follow("x", &link));
        std::fs::write(&file, "2").unwrap();
        assert_eq!(watch.changed().await, ["x"]);
        std::fs::remove_file(&link).unwrap();
        assert_eq!(watch.changed().await, ["x"]);
    }

    #[tokio::test]
    async fn other_files_are_not_reported() {
        let root = tempfile::tempdir().unwrap();
        let (file, other) = (root.path().join("feed.xml"), root.path().join("other.xml"));
        std::fs::write(&file, "1").unwrap();
        let mut watch = FileWatch::new();
        watch.follow("x", &file);
        watch.follow("y", &other);
        std::fs::read(&file).unwrap();
        std::fs::write(root.path().join("nobody's"), "1").unwrap();
        std::fs::write(&other, "1").unwrap();
        assert_eq!(watch.changed().await, ["y"]);
        watch.forget("y");
        std::fs::write(&other, "2").unwrap();
        std::fs::write(&file, "2").unwrap();
        assert_eq!(watch.changed().await, ["x"]);
    }
}
