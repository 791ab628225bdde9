//! What sources that keep a database share: how it begins, who reads it.

pub mod directory;
pub mod migration;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

/// Connections that read, kept for the next who does.
pub struct Readers {
    /// How many are kept. There may be more at once; those are closed again.
    most: usize,
    kept: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Keeps at most this many.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Reads what one transaction left, all of it of one moment. A connection on which that failed
    /// is not used again.
    ///
    /// # Errors
    ///
    /// Opening or reading failed.
    pub fn read<T, E: From<rusqlite::Error>>(
        &self,
        open: impl FnOnce() -> Result<Connection, E>,
        work: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut connection = kept.map_or_else(open, Ok)?;
        let transaction = connection.transaction()?;
        let done = work(&transaction)?;
        transaction.commit()?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < self.most {
            kept.push(connection);
        }
        Ok(done)
    }
}

/// Makes a connection one that waits for others that write, keeps so many statements ready, and
/// holds rows to what they refer to.
///
/// # Errors
///
/// The database refuses.
pub fn prepare(connection: &Connection, busy: Duration, statements: usize) -> rusqlite::Result<()> {
    connection.busy_timeout(busy)?;
    connection.set_prepared_statement_cache_capacity(statements);
    connection.pragma_update(None, "foreign_keys", true)
}

/// Makes the file if it is not there, for its owner only. The files beside it get the same rights.
///
/// # Errors
///
/// The file cannot be made.
pub fn make_private(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}
