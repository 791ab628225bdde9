//! Read-only opening of a workspace: of another user, or on a read-only disk.

use std::io::ErrorKind;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::WorkspaceError;
use crate::store::prepare;

/// How reading connections open the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Shared with writers.
    Shared,
    /// As an immutable file: without the files beside it, which could not be created.
    Still,
}

impl Access {
    /// How to open a database that cannot be written. If another process has it open, or did not
    /// close it, the log beside it must be read too.
    pub(super) fn of(file: &Path) -> Self {
        let mut log = file.as_os_str().to_owned();
        log.push("-wal");
        if Path::new(&log).exists() { Self::Shared } else { Self::Still }
    }
}

/// Whether an error may only mean that the directory is read-only.
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

/// Opens a reading connection.
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

/// The URI of a file that nobody changes.
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
