//! File system events: collect the changed paths as a set, never as a queue.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, EventKind, ModifyKind, RenameMode};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tidings_store::settle::settle;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::tree::Root;

/// Events that follow each other within this time are handled together: a save is several steps.
const SETTLE: Duration = Duration::from_millis(4);
/// Without quiet, events are handled after this long.
const SETTLE_AT_MOST: Duration = Duration::from_millis(40);
/// With more paths than this, the whole folder is rescanned.
const PATHS: usize = 4096;
/// How often the folder is rescanned if the system reports no events, or if the folder is gone.
pub(crate) const POLL: Duration = Duration::from_secs(2);

/// The events since the last call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ChangedPaths {
    /// The changed paths, relative to the folder.
    pub(crate) paths: BTreeSet<PathBuf>,
    /// The paths that were closed after writing, or renamed into place.
    pub(crate) complete: BTreeSet<PathBuf>,
    /// Rescan everything: events were lost, or there were too many.
    pub(crate) everything: bool,
}

impl ChangedPaths {
    fn is_empty(&self) -> bool {
        self.paths.is_empty() && !self.everything
    }

    fn note(&mut self, path: PathBuf, complete: bool) {
        if self.paths.len() >= PATHS {
            self.everything = true;
            self.paths.clear();
            self.complete.clear();
        }
        if self.everything {
            return;
        }
        if complete {
            self.complete.insert(path.clone());
        } else {
            self.complete.remove(&path);
        }
        self.paths.insert(path);
    }
}

/// The events, written by the system's thread and taken by the folder's task.
#[derive(Debug, Default)]
struct WatchInbox {
    changes: Mutex<ChangedPaths>,
    some: Notify,
}

impl WatchInbox {
    fn with(&self, note: impl FnOnce(&mut ChangedPaths)) {
        note(&mut self.changes.lock().unwrap_or_else(PoisonError::into_inner));
        self.some.notify_one();
    }
}

/// Watches the directories of a folder.
pub(crate) struct FolderWatch {
    root: Root,
    inbox: Arc<WatchInbox>,
    watcher: Mutex<State>,
    poll: Option<Duration>,
    /// When the folder is rescanned next without an event. Stored here because a waiting call may
    /// be dropped.
    next: Mutex<Option<Instant>>,
}

struct State {
    watcher: Option<RecommendedWatcher>,
    /// Why directories cannot be watched. An entry is removed when watching succeeds.
    failed: BTreeMap<PathBuf, String>,
}

impl FolderWatch {
    /// Starts watching. With `poll`, everything is rescanned that often instead.
    pub(crate) fn new(root: &Root, poll: Option<Duration>) -> Self {
        let inbox = Arc::new(WatchInbox::default());
        let mut state = State { watcher: None, failed: BTreeMap::new() };
        if poll.is_none() {
            match watcher(root.clone(), inbox.clone()) {
                Ok(watcher) => state.watcher = Some(watcher),
                Err(error) => drop(state.failed.insert(PathBuf::new(), error.to_string())),
            }
        }
        Self { root: root.clone(), inbox, watcher: Mutex::new(state), poll, next: Mutex::default() }
    }

    /// Watches the folder itself and its parent, which reports when the folder is removed or
    /// returns.
    pub(crate) fn enter_root(&self) {
        if let Some(parent) = self.root.path().parent() {
            self.add(parent);
        }
        self.enter(Path::new(""));
    }

    /// Watches a directory. Call it before reading the directory, so that no change is missed.
    pub(crate) fn enter(&self, directory: &Path) {
        self.add(&self.root.absolute(directory));
    }

    fn add(&self, directory: &Path) {
        let mut state = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(watcher) = &mut state.watcher else { return };
        let Err(error) = watcher.watch(directory, RecursiveMode::NonRecursive) else {
            state.failed.remove(directory);
            return;
        };
        // If the directory is gone by now, that is an event of its own. If it cannot be read,
        // reading it reports the problem.
        let denied = matches!(&error.kind, notify::ErrorKind::Io(error)
            if error.kind() == std::io::ErrorKind::PermissionDenied);
        let gone = matches!(error.kind, notify::ErrorKind::PathNotFound);
        if !denied && !gone && directory.symlink_metadata().is_ok() {
            state.failed.insert(directory.to_owned(), error.to_string());
        }
    }

    /// Why the system does not report every change, if so.
    pub(crate) fn failed(&self) -> Option<String> {
        let state = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        state.failed.values().next().cloned()
    }

    /// Waits for events, and until they have settled.
    pub(crate) async fn changes(&self) -> ChangedPaths {
        let poll = match (self.poll, self.failed().is_some() || !self.root.path().exists()) {
            (Some(poll), _) => Some(poll),
            (None, true) => Some(POLL),
            (None, false) => None,
        };
        let next = poll.map(|poll| {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next.get_or_insert_with(|| Instant::now() + poll)
        });
        let first = async {
            while self.is_silent() {
                self.inbox.some.notified().await;
            }
        };
        match next {
            Some(next) => tokio::select! {
                () = first => {}
                () = sleep_until(next) => {
                    *self.next.lock().unwrap_or_else(PoisonError::into_inner) = None;
                    self.inbox.with(|changes| changes.everything = true);
                }
            },
            None => first.await,
        }
        settle(&self.inbox.some, SETTLE, SETTLE_AT_MOST).await;
        std::mem::take(&mut *self.inbox.changes.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether no events are waiting.
    pub(crate) fn is_silent(&self) -> bool {
        self.inbox.changes.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

fn watcher(root: Root, inbox: Arc<WatchInbox>) -> notify::Result<RecommendedWatcher> {
    notify::recommended_watcher(move |event: notify::Result<notify::Event>| match event {
        Ok(event) if event.need_rescan() => inbox.with(|changes| changes.everything = true),
        Ok(event) if is_change(event.kind) => {
            let relative = event.paths.iter().filter_map(|path| root.relative(path));
            let paths: Vec<_> = relative.collect();
            if !paths.is_empty() {
                let complete = is_complete(event.kind);
                inbox.with(|changes| {
                    for path in paths {
                        changes.note(path, complete);
                    }
                });
            }
        }
        Ok(_) => {}
        // Events were lost.
        Err(_) => inbox.with(|changes| changes.everything = true),
    })
}

/// Whether an event can be a change; reading is not.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        // Both sides of a rename have events of their own.
        EventKind::Modify(ModifyKind::Name(RenameMode::Both)) => false,
        _ => true,
    }
}

/// Whether a file is complete after this event: closed after writing, or renamed into place.
fn is_complete(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::Access(AccessKind::Close(AccessMode::Write))
            | EventKind::Modify(ModifyKind::Name(RenameMode::To))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_many_paths_are_the_whole_folder() {
        let mut changes = ChangedPaths::default();
        for number in 0..=PATHS {
            changes.note(PathBuf::from(number.to_string()), true);
        }
        assert_eq!(changes, ChangedPaths { everything: true, ..ChangedPaths::default() });
        changes.note(PathBuf::from("one more"), true);
        assert!(changes.paths.is_empty() && changes.complete.is_empty());
    }

    #[tokio::test]
    async fn what_happens_in_a_directory_that_was_entered_is_heard() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path()).unwrap();
        let watch = FolderWatch::new(&root, None);
        watch.enter(Path::new(""));
        std::fs::write(directory.path().join("a"), "x").unwrap();
        let mut paths = BTreeSet::new();
        while !paths.contains(Path::new("a")) {
            paths.extend(watch.changes().await.paths);
        }
        std::fs::create_dir(directory.path().join("b")).unwrap();
        while !paths.contains(Path::new("b")) {
            paths.extend(watch.changes().await.paths);
        }
        assert_eq!(watch.failed(), None);
    }

    #[tokio::test]
    async fn reading_is_not_heard() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path()).unwrap();
        std::fs::write(directory.path().join("read"), "x").unwrap();
        let watch = FolderWatch::new(&root, None);
        watch.enter(Path::new(""));
        std::fs::read(directory.path().join("read")).unwrap();
        std::fs::write(directory.path().join("written"), "x").unwrap();
        let changes = watch.changes().await;
        assert_eq!(changes.paths, [PathBuf::from("written")].into());
    }

    #[tokio::test(start_paused = true)]
    async fn polling_looks_at_everything_every_time() {
        let directory = tempfile::tempdir().unwrap();
        let root = Root::new(directory.path()).unwrap();
        let watch = FolderWatch::new(&root, Some(Duration::from_mins(1)));
        for _ in 0..3 {
            let begun = Instant::now();
            assert!(watch.changes().await.everything);
            assert!(begun.elapsed() >= Duration::from_mins(1));
        }
    }
}
