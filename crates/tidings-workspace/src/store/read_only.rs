//! A workspace that can be read but not written: one of another user, or on a disk that is read-only.

use std::io::ErrorKind;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::WorkspaceError;
use crate::store::prepare;

/// How those that only read open the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Beside others that may write.
    Shared,
    /// As a file that nobody changes: without the files beside it, which could not be made.
    Still,
}

impl Access {
    /// How a database is opened where nothing can be written. If somebody has it open, or did not
    /// close it, there is a log beside it that must be read too.
    pub(super) fn of(file: &Path) -> Self {
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        if Path::new(&log).exists() { Self::Shared } else { Self::Still }
    }
}

/// Whether an error may mean no more than that nothing can be written.
pub(super) fn is_unwritable(error: &WorkspaceError) -> bool {
    match error {
        WorkspaceError::Path { error, .. } => {
            matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
        }
        WorkspaceError::Database(error) => matches!(
            error.sqlite_error_code(),
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied)
        ),
        _ => false,
    }
}

/// A connection that reads.
pub(super) fn reader(file: &Path, access: Access) -> Result<Connection, WorkspaceError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match access {
        Access::Shared => Connection::open_with_flags(file, flags)?,
        Access::Still => {
            Connection::open_with_flags(still(file)?, flags | OpenFlags::SQLITE_OPEN_URI)?
        }
    };
    prepare(&connection)?;
    Ok(connection)
}

/// A file as a URI that says that nobody changes it.
fn still(file: &Path) -> Result<String, WorkspaceError> {
    let whole = std::path::absolute(file).map_err(|error| WorkspaceError::path(file, error))?;
    let name = whole
        .to_str()
        .ok_or_else(|| WorkspaceError::path(file, ErrorKind::InvalidFilename.into()))?;
    let name = name.replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    Ok(format!("file:{name}?immutable=1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::store::{DATABASE, Store};

    #[test]
    fn a_file_of_any_name_is_opened_as_one_that_nobody_changes() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path().join("a %41 ?b#c");
        drop(Store::open(Config::new(&directory)).unwrap());
        let file = directory.join(DATABASE);
        assert_eq!(Access::of(&file), Access::Still);
        let connection = reader(&file, Access::Still).unwrap();
        let count = "SELECT count(*) FROM events";
        let events: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
        assert_eq!(events, 0);
        assert_eq!(Access::of(&file), Access::Still);
        let _server = Store::open(Config::new(&directory)).unwrap();
        assert_eq!(Access::of(&file), Access::Shared);
    }
}
