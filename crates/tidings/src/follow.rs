//! Followed files: wait until the content of a configuration file differs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidings_core::Fingerprint;
use tidings_store::watch::FileWatch;

/// How often the file is read without an event: not every file system reports changes.
const LOOK: Duration = Duration::from_secs(30);
/// The same if the system reports no events at all.
const LOOK_UNWATCHED: Duration = Duration::from_secs(2);

/// A file whose content is followed.
///
/// The file may be missing, a link, or replaced by another. Only its content counts: touching it or
/// saving the same bytes is not a change.
pub(crate) struct FollowedFile {
    path: PathBuf,
    watch: FileWatch,
    /// Whether the system reports changes.
    is_reported: bool,
    /// The content that the caller knows; `None` if the file could not be read.
    known: Option<Fingerprint>,
}

impl FollowedFile {
    /// Follows a file from now on. Call it before reading the file, so that no change is missed.
    pub(crate) fn new(path: &Path) -> Self {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut watch = FileWatch::new();
        let is_reported = watch.follow(NAME, &path);
        let mut file = Self { path, watch, is_reported, known: None };
        file.known = file.content();
        file
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the content differs from the last time, or the file comes or goes.
    ///
    /// Cancel-safe: a change is forgotten only when this returns.
    pub(crate) async fn changed(&mut self) {
        loop {
            let content = self.content();
            if content != self.known {
                self.known = content;
                return;
            }
            let look = if self.is_reported { LOOK } else { LOOK_UNWATCHED };
            if tokio::time::timeout(look, self.watch.changed()).await.is_ok() {
                // A link may lead elsewhere now, and a missing directory may be there.
                self.is_reported = self.watch.follow(NAME, &self.path);
            }
        }
    }

    fn content(&self) -> Option<Fingerprint> {
        std::fs::read(&self.path).ok().map(|bytes| Fingerprint::of_bytes(&bytes))
    }
}

/// The one file of a watch.
const NAME: &str = "file";

#[cfg(test)]
mod tests {
    use super::*;

    /// Longer than anything here takes on a busy machine.
    const PATIENCE: Duration = Duration::from_secs(20);

    async fn changed(file: &mut FollowedFile) {
        tokio::time::timeout(PATIENCE, file.changed()).await.expect("a change is found");
    }

    #[tokio::test]
    async fn every_way_to_save_is_a_change_once() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.toml");
        let mut file = FollowedFile::new(&path);
        std::fs::write(&path, "1").unwrap();
        changed(&mut file).await;
        let other = directory.path().join("a.toml.new");
        std::fs::write(&other, "2").unwrap();
        std::fs::rename(&other, &path).unwrap();
        changed(&mut file).await;
        std::fs::write(&path, "3").unwrap();
        changed(&mut file).await;
        std::fs::remove_file(&path).unwrap();
        changed(&mut file).await;
        assert_eq!(file.content(), None);
    }

    #[tokio::test]
    async fn equal_bytes_are_not_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.toml");
        std::fs::write(&path, "1").unwrap();
        let mut file = FollowedFile::new(&path);
        std::fs::write(&path, "1").unwrap();
        let waited = tokio::time::timeout(Duration::from_millis(300), file.changed()).await;
        assert!(waited.is_err(), "the same bytes were a change");
    }

    /// Kubernetes mounts files as links through a directory that it replaces.
    #[tokio::test]
    async fn a_link_that_leads_elsewhere_is_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let (here, there) = (directory.path().join("here"), directory.path().join("there"));
        std::fs::create_dir(&here).unwrap();
        std::fs::create_dir(&there).unwrap();
        std::fs::write(there.join("1"), "1").unwrap();
        let path = here.join("a.toml");
        std::os::unix::fs::symlink(there.join("1"), &path).unwrap();
        let mut file = FollowedFile::new(&path);
        std::fs::write(there.join("1"), "2").unwrap();
        changed(&mut file).await;
        std::fs::write(there.join("3"), "3").unwrap();
        std::os::unix::fs::symlink(there.join("3"), here.join("next")).unwrap();
        std::fs::rename(here.join("next"), &path).unwrap();
        changed(&mut file).await;
    }
}
