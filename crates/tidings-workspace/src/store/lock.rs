//! The lock of a served directory, with the process that holds it.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::path::Path;

use tidings_store::date::Moment;

use crate::WorkspaceError;
use crate::store::give_to_owner;

pub(super) const FILE: &str = "server.lock";
/// More bytes than the description of a holder.
const WORDS: u64 = 1024;

/// Permission to serve a directory, until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Locks a directory; the error names the holder.
    pub(super) fn take(directory: &Path) -> Result<Self, WorkspaceError> {
        let path = directory.join(FILE);
        let failed = |error| WorkspaceError::path(&path, error);
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(&path).map_err(failed)?;
        give_to_owner(&path, directory).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(failed(error)),
            Err(TryLockError::WouldBlock) => {
                let mut holder = String::new();
                drop(file.take(WORDS).read_to_string(&mut holder));
                let holder = holder.trim();
                let holder = if holder.is_empty() { "another process" } else { holder }.to_owned();
                return Err(WorkspaceError::Locked { path: directory.to_owned(), holder });
            }
        }
        file.set_len(0).map_err(failed)?;
        file.rewind().map_err(failed)?;
        writeln!(file, "process {} since {:.3}", std::process::id(), Moment::now())
            .map_err(failed)?;
        Ok(Self { _file: file })
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
