//! The store of feeds and items in one database: one writer, many readers.
//!
//! A document is applied in one transaction: readers see the state before or after it, even if the
//! program is killed. Every method may wait for the disk; call them on threads that may wait.

mod apply;
mod face;
mod hold;
mod identity;
mod inbox;
mod known;
mod listing;
mod marks;
mod merge;
mod pauses;
mod query;
mod record;
mod redate;
mod register;
mod retention;
mod row;
mod schema;
mod seen;
#[cfg(test)]
mod tests;
mod trend;
mod wishes;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use tidings_store::database::migration::{self, MigrationError};
use tidings_store::database::{self, Readers, directory, make_private};
use tracing::error;

use crate::ask::causes;

pub(crate) use self::apply::Changes;
pub(crate) use self::hold::Hold;
pub use self::hold::Holder;
pub(crate) use self::identity::alias as address_of;
pub(crate) use self::inbox::{Inbox, Range};
pub(crate) use self::listing::{Listed, Listing, Order};
pub(crate) use self::marks::{Mark, Marked};
pub(crate) use self::query::{FoundItems, Label};
pub(crate) use self::register::Registration;
pub use self::retention::Retention;
pub(crate) use self::row::{Enclosure, Entry, FeedRow, Kept, Metadata, Person, Safe, Settings};
pub(crate) use self::seen::Seen;
pub(crate) use self::trend::{Span, TITLES, Trend};
pub(crate) use self::wishes::Wish;

/// The database in a data directory.
pub(crate) const FILE: &str = "feeds.sqlite";
/// How long a connection waits for another that writes; no transaction takes as long.
const BUSY: Duration = Duration::from_secs(10);
/// How many reading connections are kept. Further ones are closed after use.
const READERS: usize = 4;
/// How many prepared statements a connection keeps: all of them.
const STATEMENTS: usize = 64;

/// Why the store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database failed.
    #[error("the store of feeds cannot be used")]
    Database(#[source] rusqlite::Error),
    /// The disk is full.
    #[error("the disk is full; free some space on it")]
    Full(rusqlite::Error),
    /// The directory cannot be created, or the lock not be taken.
    #[error("`{path}` cannot be used for the store of feeds")]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error.
        #[source]
        error: std::io::Error,
    },
    /// Another process fetches its feeds.
    #[error("{holder} fetches the feeds in `{path}`; stop it, or use another directory")]
    Held {
        /// The directory.
        path: PathBuf,
        /// The process.
        holder: Holder,
    },
    /// A later release wrote it.
    #[error(
        "the store of feeds has version {0}, which is newer than this release; update the \
        program"
    )]
    Newer(i64),
    /// An earlier release wrote it, and it is opened read-only.
    #[error("the store of feeds has the old version {0}; open it once to write")]
    Older(usize),
    /// A stored value is invalid.
    #[error("the store of feeds has an invalid value: {0}")]
    Damaged(String),
    /// There is no such feed.
    #[error("there is no feed `{0}`")]
    NoFeed(String),
    /// Starred items are kept for ever, and their number is limited.
    #[error("more than {0} items would be starred; unstar some first")]
    TooManyStars(u64),
}

impl StoreError {
    /// The error for clients, without the location of the store.
    pub(crate) fn outside(&self) -> String {
        if matches!(self, Self::NoFeed(_) | Self::TooManyStars(_)) {
            return self.to_string();
        }
        error!(error = causes(self), "the store of feeds cannot be used normally");
        match self {
            Self::Directory { .. } | Self::Held { .. } => {
                "the store of feeds cannot be used now".to_owned()
            }
            Self::Database(error) => match error.sqlite_error_code() {
                Some(code) => format!("{self}: {}", DatabaseFault(code)),
                None => self.to_string(),
            },
            other => other.to_string(),
        }
    }
}

/// The error of a database in words.
struct DatabaseFault(rusqlite::ErrorCode);

impl std::fmt::Display for DatabaseFault {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use rusqlite::ErrorCode as Code;
        formatter.write_str(match self.0 {
            Code::SystemIoFailure => "the disk could not be read or written",
            Code::ReadOnly | Code::PermissionDenied => "it may not be written",
            Code::DatabaseBusy | Code::DatabaseLocked => "another process holds it",
            Code::DatabaseCorrupt | Code::NotADatabase => "its file is damaged",
            Code::CannotOpen => "its file could not be opened",
            _ => "the log has details",
        })
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full(error),
            _ => Self::Database(error),
        }
    }
}

impl From<MigrationError> for StoreError {
    fn from(error: MigrationError) -> Self {
        match error {
            MigrationError::Newer(version) => Self::Newer(version),
            MigrationError::Database(error) => error.into(),
        }
    }
}

/// The connections to a database.
pub(crate) struct Store {
    // Order: dropped before the writer, which closes last and tidies up.
    readers: Readers,
    writer: Mutex<Connection>,
    /// The database of the readers; `None` for a store in memory, which has one connection.
    file: Option<PathBuf>,
    retention: Retention,
}

impl Store {
    /// A store in memory.
    pub(crate) fn in_memory(retention: Retention) -> Result<Self, StoreError> {
        let mut writer = Connection::open_in_memory()?;
        prepare(&writer)?;
        schema::migrate(&mut writer)?;
        Ok(Self::new(writer, None, retention))
    }

    /// The store in a directory, which is created if missing. Other processes may open and write it
    /// too.
    pub(crate) fn in_directory(path: &Path, retention: Retention) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Directory { path: path.to_owned(), error };
        directory::make(path).map_err(failed)?;
        let file = path.join(FILE);
        // Feeds may be stored with their passwords.
        make_private(&file).map_err(failed)?;
        let mut writer = Connection::open(&file)?;
        // Order: before any query, because the first process may be creating it.
        writer.busy_timeout(BUSY)?;
        // Write-ahead logging: readers and the writer do not wait for each other, and a killed
        // process leaves nothing half done.
        migration::write_ahead(&writer, BUSY)?;
        writer.pragma_update(None, "synchronous", "NORMAL")?;
        prepare(&writer)?;
        schema::migrate(&mut writer)?;
        query::forget_sizes(&writer)?;
        Ok(Self::new(writer, Some(file), retention))
    }

    /// The store in a directory, read-only; another process may write it meanwhile.
    pub(crate) fn read_only(path: &Path) -> Result<Self, StoreError> {
        let file = path.join(FILE);
        let connection = reader(&file)?;
        schema::check(&connection)?;
        Ok(Self::new(connection, Some(file), Retention::default()))
    }

    fn new(writer: Connection, file: Option<PathBuf>, retention: Retention) -> Self {
        let (writer, readers) = (Mutex::new(writer), Readers::new(READERS));
        Self { readers, writer, file, retention }
    }

    /// A number that changes when another process wrote; `None` for a store in memory. Our own
    /// writes do not change it.
    pub(crate) fn written_by_others(&self) -> Result<Option<i64>, StoreError> {
        if self.file.is_none() {
            return Ok(None);
        }
        Ok(Some(self.writer().pragma_query_value(None, "data_version", |row| row.get(0))?))
    }

    /// Runs one transaction, completely or not at all.
    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer();
        let transaction = writer.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let done = work(&transaction)?;
        transaction.commit()?;
        Ok(done)
    }

    /// Moves the write-ahead log into the database, as far as readers allow.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        if self.file.is_some() {
            self.writer().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(())
    }

    /// Limits the database to this many pages, like a full disk.
    #[cfg(test)]
    pub(crate) fn fill_up(&self) {
        let writer = self.writer();
        let pages: i64 = writer.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer.pragma_update(None, "max_page_count", pages).unwrap();
    }

    /// Reads one snapshot.
    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(file) = &self.file else { return work(&self.writer()) };
        self.readers.read(|| reader(file), work)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // An abandoned transaction is rolled back.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn reader(file: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), StoreError> {
    Ok(database::prepare(connection, BUSY, STATEMENTS)?)
}
