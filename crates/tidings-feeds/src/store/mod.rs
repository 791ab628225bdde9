//! Feeds and their items, kept in one file: written in one way, read in many.
//!
//! A document is applied in one transaction: what can be read is always that before or that after
//! it, also when the program is killed. Every method may wait for the disk; call them on threads
//! that may.

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
/// How many connections that read are kept. There may be more at once; those are closed again.
const READERS: usize = 4;
/// How many statements a connection keeps ready: all that there are.
const STATEMENTS: usize = 64;

/// Why the store has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The database said no.
    #[error("the store of feeds cannot be used")]
    Database(#[source] rusqlite::Error),
    /// There is no room for it.
    #[error("the disk is full; nothing can be stored until there is room on it")]
    Full(rusqlite::Error),
    /// The directory cannot be made or the lock not be taken.
    #[error("`{path}` cannot be used for the store of feeds")]
    Directory {
        /// What was given.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: std::io::Error,
    },
    /// Another process fetches its feeds.
    #[error("{holder} fetches the feeds in `{path}`; stop it, or use another directory")]
    Held {
        /// What was given.
        path: PathBuf,
        /// Who it is.
        holder: Holder,
    },
    /// A later release wrote it.
    #[error("the store of feeds has version {0}, which this release does not know; update it")]
    Newer(i64),
    /// An earlier release wrote it, and it may only be read.
    #[error("the store of feeds has the old version {0}; open it once to write")]
    Older(usize),
    /// What is stored is not what was written.
    #[error("the store of feeds has a value that cannot be: {0}")]
    Damaged(String),
    /// There is no such feed.
    #[error("there is no feed `{0}`")]
    NoFeed(String),
    /// Starred items are kept for ever, and there are as many as there may be.
    #[error("more than {0} items would be starred; take the star from some first")]
    TooManyStars(u64),
}

impl StoreError {
    /// What went wrong, in words for clients: where the store is concerns none of them.
    pub(crate) fn outside(&self) -> String {
        if matches!(self, Self::NoFeed(_) | Self::TooManyStars(_)) {
            return self.to_string();
        }
        error!(error = causes(self), "the store of feeds cannot be used as it should be");
        match self {
            Self::Directory { .. } | Self::Held { .. } => {
                "the store of feeds cannot be used now".to_owned()
            }
            Self::Database(error) => match error.sqlite_error_code() {
                Some(code) => format!("{self}: {}", Words(code)),
                None => self.to_string(),
            },
            other => other.to_string(),
        }
    }
}

/// What a database says is wrong, in words.
struct Words(rusqlite::ErrorCode);

impl std::fmt::Display for Words {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use rusqlite::ErrorCode as Code;
        formatter.write_str(match self.0 {
            Code::SystemIoFailure => "the disk could not be read or written",
            Code::ReadOnly | Code::PermissionDenied => "it may not be written",
            Code::DatabaseBusy | Code::DatabaseLocked => "another process holds it",
            Code::DatabaseCorrupt | Code::NotADatabase => "its file is damaged",
            Code::CannotOpen => "its file could not be opened",
            _ => "the log says more",
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

/// Where feeds are kept.
pub(crate) struct Store {
    // Order: dropped before the writer, which is the last to close and tidies up.
    readers: Readers,
    writer: Mutex<Connection>,
    /// Where the readers connect to; none for a store in memory, which has one connection.
    file: Option<PathBuf>,
    retention: Retention,
}

impl Store {
    /// A store that is gone with the process.
    pub(crate) fn in_memory(retention: Retention) -> Result<Self, StoreError> {
        let mut writer = Connection::open_in_memory()?;
        prepare(&writer)?;
        schema::migrate(&mut writer)?;
        Ok(Self::new(writer, None, retention))
    }

    /// The store in a directory, which is made if it is not there. Other processes may have it
    /// open too, and write it.
    pub(crate) fn in_directory(path: &Path, retention: Retention) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Directory { path: path.to_owned(), error };
        directory::make(path).map_err(failed)?;
        let file = path.join(FILE);
        // Feeds may be kept with their passwords.
        make_private(&file).map_err(failed)?;
        let mut writer = Connection::open(&file)?;
        // Before anything is asked of it: whoever opens it first may be making it.
        writer.busy_timeout(BUSY)?;
        // A log that is written ahead: readers and the writer do not wait for each other, and a
        // process that is killed leaves nothing half done.
        migration::write_ahead(&writer, BUSY)?;
        writer.pragma_update(None, "synchronous", "NORMAL")?;
        prepare(&writer)?;
        schema::migrate(&mut writer)?;
        query::forget_sizes(&writer)?;
        Ok(Self::new(writer, Some(file), retention))
    }

    /// The store in a directory, to be read only; somebody else may write it meanwhile.
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

    /// A number that moves when somebody else wrote; none for a store in memory, which nobody else
    /// can. What this store writes does not move it.
    pub(crate) fn written_by_others(&self) -> Result<Option<i64>, StoreError> {
        if self.file.is_none() {
            return Ok(None);
        }
        Ok(Some(self.writer().pragma_query_value(None, "data_version", |row| row.get(0))?))
    }

    /// Does something in one transaction, or nothing of it.
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

    /// Moves what was written from the log into the database itself, as far as readers allow.
    pub(crate) fn settle(&self) -> Result<(), StoreError> {
        if self.file.is_some() {
            self.writer().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
        }
        Ok(())
    }

    /// Lets the database grow to so many pages and no further, as a full disk would.
    #[cfg(test)]
    pub(crate) fn fill_up(&self) {
        let writer = self.writer();
        let pages: i64 = writer.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
        writer.pragma_update(None, "max_page_count", pages).unwrap();
    }

    /// Reads what one transaction left, all of it of one moment.
    fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let Some(file) = &self.file else { return work(&self.writer()) };
        self.readers.read(|| reader(file), work)
    }

    fn writer(&self) -> MutexGuard<'_, Connection> {
        // A transaction that is given up half way is rolled back.
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
