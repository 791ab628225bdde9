//! The lock of a served directory, with the process that holds it.

use std::path::Path;

use tidings_store::date::Moment;
use tidings_store::lock::{LockError, LockFile};

use crate::WorkspaceError;
use crate::store::give_to_owner;

pub(super) const FILE: &str = "server.lock";

/// Permission to serve a directory, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: LockFile,
}

impl Lock {
    /// Locks a directory; the error names the holder.
    pub(super) fn take(directory: &Path) -> Result<Self, WorkspaceError> {
        let path = directory.join(FILE);
        let failed = |error| WorkspaceError::path(&path, error);
        let file = LockFile::open(&path).map_err(failed)?;
        give_to_owner(&path, directory).map_err(failed)?;
        let ours = format!("process {} since {:.3}", std::process::id(), Moment::now());
        match file.lock(&ours) {
            Ok(file) => Ok(Self { _file: file }),
            Err(LockError::File(error)) => Err(failed(error)),
            Err(LockError::Held(holder)) => {
                let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
                Err(WorkspaceError::Locked { path: directory.to_owned(), holder })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_server_is_told_who_the_first_is() {
        let directory = tempfile::tempdir().unwrap();
        let first = Lock::take(directory.path()).unwrap();
        let Err(WorkspaceError::Locked { holder, .. }) = Lock::take(directory.path()) else {
            panic!("it was not refused")
        };
        assert!(holder.starts_with(&format!("process {} since 2", std::process::id())), "{holder}");
        drop(first);
        Lock::take(directory.path()).unwrap();
    }
}
