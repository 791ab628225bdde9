//! How a database begins, and how one of an older release becomes one of this; the version is kept
//! in the database.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// How long it is waited between two attempts to begin.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a database cannot be used.
#[derive(Debug)]
pub enum MigrationError {
    /// A later release made it, of this version.
    Newer(i64),
    /// The database says so.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Makes the log of a database one that is written ahead. Where several begin at once, the database
/// refuses all but one at once, however long it was told to wait; so this waits.
///
/// # Errors
///
/// The database refuses, or others keep it busy for too long.
#[expect(clippy::disallowed_methods, reason = "it waits for processes, on a thread that may")]
pub fn write_ahead(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let begun = Instant::now();
    loop {
        match connection.pragma_update(None, "journal_mode", "WAL") {
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && begun.elapsed() < patience =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// Does all steps that a database has yet to take: each makes one of the version before it one of
/// the next, and the first makes one of nothing.
///
/// # Errors
///
/// A later release made the database, or a step fails; then none is taken.
pub fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), MigrationError> {
    if version_of(connection, steps)? == steps.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Looked at again: somebody else may have been faster.
    let version = version_of(&transaction, steps)?;
    for step in steps.get(version..).unwrap_or_default() {
        transaction.execute_batch(step)?;
    }
    let version = i64::try_from(steps.len()).unwrap_or_default();
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()?;
    Ok(())
}

/// How many of the steps a database has taken.
///
/// # Errors
///
/// A later release made the database, or it cannot be read.
pub fn version_of(connection: &Connection, steps: &[&str]) -> Result<usize, MigrationError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // A version alone is in the first page; the tables are asked for so that it is really read.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
    usize::try_from(version)
        .ok()
        .filter(|version| *version <= steps.len())
        .ok_or(MigrationError::Newer(version))
}
