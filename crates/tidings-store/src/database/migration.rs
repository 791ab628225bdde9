//! Database migrations: create or update the tables; the database stores its version.

use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, TransactionBehavior};

/// The pause between two attempts to start.
const PAUSE: Duration = Duration::from_millis(5);

/// Why a database cannot be migrated.
#[derive(Debug)]
pub enum MigrationError {
    /// It is from a later release, with this version.
    Newer(i64),
    /// The database reported an error.
    Database(rusqlite::Error),
}

impl From<rusqlite::Error> for MigrationError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

/// Switches a database to write-ahead logging. If several processes do so at once, the database
/// refuses all but one immediately, whatever its busy timeout; so this retries.
///
/// # Errors
///
/// The database refuses, or stays busy for too long.
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

/// Runs the missing steps: each migrates from the version before it, the first creates the tables.
///
/// # Errors
///
/// The database is from a later release, or a step fails; then no step is applied.
pub fn migrate(connection: &mut Connection, steps: &[&str]) -> Result<(), MigrationError> {
    if version_of(connection, steps)? == steps.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    // Checked again: another process may have been faster.
    let version = version_of(&transaction, steps)?;
    for step in steps.get(version..).unwrap_or_default() {
        transaction.execute_batch(step)?;
    }
    let version = i64::try_from(steps.len()).unwrap_or_default();
    transaction.pragma_update(None, "user_version", version)?;
    transaction.commit()?;
    Ok(())
}

/// The number of steps a database has applied.
///
/// # Errors
///
/// The database is from a later release, or cannot be read.
pub fn version_of(connection: &Connection, steps: &[&str]) -> Result<usize, MigrationError> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    // The version is in the header; querying the tables ensures that the file is really read.
    connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
    usize::try_from(version)
        .ok()
        .filter(|version| *version <= steps.len())
        .ok_or(MigrationError::Newer(version))
}
