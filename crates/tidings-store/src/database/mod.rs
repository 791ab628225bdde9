//! Databases of sources: opening, migrating and reading them.

pub mod directory;
pub mod migration;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::Connection;

/// A pool of reading connections.
pub struct Readers {
    /// How many are kept open. Further ones are closed after use.
    most: usize,
    kept: Mutex<Vec<Connection>>,
}

impl Readers {
    /// A pool that keeps at most this many connections open.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, kept: Mutex::default() }
    }

    /// Reads a consistent state. A connection on which reading failed is not used again.
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

/// Prepares a connection: sets the busy timeout and the number of cached statements, and enforces
/// foreign keys.
///
/// # Errors
///
/// The database reports an error.
pub fn prepare(connection: &Connection, busy: Duration, statements: usize) -> rusqlite::Result<()> {
    connection.busy_timeout(busy)?;
    connection.set_prepared_statement_cache_capacity(statements);
    connection.pragma_update(None, "foreign_keys", true)
}

/// Creates a missing file, readable only by its owner. The files beside it get the same mode.
///
/// # Errors
///
/// The file cannot be created.
pub fn make_private(file: &Path) -> std::io::Result<()> {
    let mut options = std::fs::File::options();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}
