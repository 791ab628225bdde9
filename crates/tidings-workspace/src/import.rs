//! Imports of files, and a preview of garbage collection, for the command line.

use std::fs::File;
use std::io::{Cursor, Read as _};
use std::path::Path;
use std::time::Duration;

use tidings_store::mime;

use crate::{Collected, Draft, Workspace, WorkspaceError};

impl Workspace {
    /// Stores a file and creates an artifact from it, in one step; returns its id. Without a MIME
    /// type, it is guessed from the extension and the first bytes. The draft's hash is ignored.
    ///
    /// # Errors
    ///
    /// The file cannot be read or is too large, or the draft is invalid.
    pub fn import_file(
        &self,
        path: &Path,
        mut draft: Draft,
        actor: &str,
    ) -> Result<String, WorkspaceError> {
        let failed = |error| WorkspaceError::path(path, error);
        let mut file = File::open(path).map_err(failed)?;
        let mut head = Vec::new();
        (&mut file).take(mime::HEAD).read_to_end(&mut head).map_err(failed)?;
        if draft.mime_type.is_none() {
            draft.mime_type = Some(mime::of(path, &head));
        }
        self.import(&mut Cursor::new(head).chain(file), draft, actor)
    }

    /// The blobs that [`Workspace::gc`] would remove now.
    ///
    /// # Errors
    ///
    /// The directory cannot be read.
    pub fn would_gc(&self, grace: Duration) -> Result<Collected, WorkspaceError> {
        self.0.store.collectable(grace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    #[test]
    fn a_file_is_of_the_kind_its_ending_and_its_bytes_say() {
        let here = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(Config::new(here.path().join("w"))).unwrap();
        let path = here.path().join("a.md");
        std::fs::write(&path, "# hi".repeat(2000)).unwrap();
        let draft = Draft::new("A", "", "tester");
        let id = workspace.import_file(&path, draft.clone(), "tester").unwrap();
        let artifact = workspace.artifact(&id).unwrap().unwrap();
        assert_eq!(
            (artifact.entry.mime_type.as_str(), artifact.entry.size),
            ("text/markdown", 8000)
        );
        assert!(workspace.import_file(&here.path().join("none"), draft, "tester").is_err());
    }

    #[test]
    fn what_would_be_removed_is_what_is_removed() {
        let here = tempfile::tempdir().unwrap();
        let workspace = Workspace::open(Config::new(here.path())).unwrap();
        workspace.put_blob(b"nobody's", None, "tester").unwrap();
        let used = workspace.put_blob(b"somebody's", None, "tester").unwrap();
        workspace.create(Draft::new("A", used.hash, "tester"), "tester").unwrap();
        assert_eq!(workspace.would_gc(Duration::from_hours(1)).unwrap().blobs, 0);
        let would = workspace.would_gc(Duration::ZERO).unwrap();
        assert_eq!((would.blobs, would.bytes), (1, 8));
        assert_eq!(workspace.gc(Duration::ZERO, "tester").unwrap(), would);
        assert_eq!(workspace.would_gc(Duration::ZERO).unwrap().blobs, 0);
    }
}
