//! RSS, Atom and JSON feeds as a live source: fetched when they are due, stored, and announced.
//!
//! The path of a document: `fetch` (bytes) → [`parse`] (items) → `store` (which are new?) → `board`
//! (state in memory) → the hub. `view` resolves URIs.

mod address;
mod agenda;
mod ask;
mod board;
mod clock;
mod condition;
mod config;
mod delivery;
mod discover;
mod document;
mod fetch;
mod folder;
mod gate;
mod guest;
mod html;
mod id;
mod import;
mod offer;
pub mod opml;
mod others;
mod page;
pub mod parse;
mod progress;
mod prompts;
mod publish;
mod refresh;
mod rounds;
mod schedule;
mod source;
mod status;
mod store;
#[cfg(test)]
mod tests;
mod tools;
mod touched;
mod view;
mod words;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use tidings_store::date::Moment;
use tokio::sync::{Semaphore, mpsc};

pub use self::address::{AddressError, Asker, FeedAddress, FileAddress, WebAddress};
use self::board::Board;
use self::clock::Clock;
pub use self::condition::Condition;
pub use self::config::{Config, Data, Earlier, FeedConfig, Fetching, Role, Tools};
pub use self::discover::{DiscoverError, Discovery, Obstacle};
pub use self::document::{FetchDocumentError, Fetched, fetch_document};
use self::fetch::Fetcher;
pub use self::import::{ImportError, Imported};
use self::offer::Offer;
pub use self::page::{FetchPageError, Form, Page};
pub use self::progress::Progress;
use self::progress::Tally;
pub use self::refresh::{Headline, News, Refresh, Refreshed};
use self::rounds::Wanted;
pub use self::status::Status;
use self::store::{Changes, FeedRow, Hold, Store};
pub use self::store::{Holder, Retention, StoreError};
pub use self::tools::ExportFormat;
use self::touched::Touched;

/// The maximum number of concurrent reads.
const READS: usize = 4;
/// The maximum number of documents in progress: one is parsed while another is stored.
const DOCUMENTS: usize = 2;

/// Why feeds cannot be served or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedsError {
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing can be fetched on this machine.
    #[error("no feed can be fetched")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Only feeds in a directory can be served without fetching.
    #[error("feeds in memory cannot be read-only")]
    NothingToRead,
    /// This process does not fetch.
    #[error("nothing is fetched here")]
    Offline,
    /// The feeds are read-only.
    #[error("the feeds are read only")]
    ReadOnly,
    /// The work was cancelled.
    #[error("the work on the feeds was cancelled")]
    Interrupted,
}

/// Feeds to serve.
///
/// Cloning is cheap, and all clones are the same feeds, which can be changed while a hub serves
/// them. Reads are answered from the store and never wait for a fetch.
#[derive(Clone)]
pub struct Feeds(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    config: Config,
    /// Without it, nothing is fetched.
    fetcher: Option<Fetcher>,
    clock: Clock,
    board: RwLock<Board>,
    /// The items on the shelf, once there is one. Locked while the shelf is updated, so that two
    /// publishers take turns.
    offer: Mutex<Option<Offer>>,
    /// The feeds that were added, removed, or need a new plan.
    touched: Touched,
    /// The queue of requests to fetch, while the rounds run.
    line: Mutex<Option<mpsc::Sender<Wanted>>>,
    /// Whether there is a file whose changes the system does not report.
    unwatched: AtomicBool,
    /// Why the last answer of a feed could not be stored, if so.
    trouble: Mutex<Option<String>>,
    /// The progress of the first fetches.
    progress: Tally,
    /// One permit for each concurrent read of a resource and each write: the hub compares many at
    /// once, and many feeds answer at once, but there is one disk.
    reading: Semaphore,
    writing: Semaphore,
    /// One permit for each document that is parsed and stored. The others wait as bytes: a thread
    /// for each would hold memory for long.
    taking: Arc<Semaphore>,
    /// The right to fetch for a directory. A follower gets it when the other process ends.
    hold: Mutex<Option<Hold>>,
}

impl Feeds {
    /// Whether feeds are stored in this directory.
    #[must_use]
    pub fn are_in(directory: &Path) -> bool {
        directory.join(store::FILE).exists()
    }

    /// Opens the store and applies the configuration. Nothing is fetched before a hub runs the
    /// source.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or the configuration contains an invalid feed.
    pub async fn open(config: Config) -> Result<Self, FeedsError> {
        let allow_private = config.allow_private;
        Self::open_with(config, fetch::Config { allow_private, ..fetch::Config::default() }).await
    }

    /// As [`Self::open`], with these settings of the HTTP client.
    async fn open_with(config: Config, fetching: fetch::Config) -> Result<Self, FeedsError> {
        let clock = Clock::new();
        let hold = match (&config.data, config.role) {
            (Data::Directory(path), role @ Role::Server(_)) => {
                Some(guest::hold(path, clock, role, guest::FOR_A_GUEST).await?)
            }
            _ => None,
        };
        let open = move || Inner::open(config, fetching, clock, hold);
        let opened = tokio::task::spawn_blocking(open).await;
        Ok(Self(Arc::new(opened.map_err(|_| FeedsError::Interrupted)??)))
    }

    /// Adds a feed without fetching it, or changes the settings of a known one; returns its id. It
    /// stays after a restart.
    ///
    /// # Errors
    ///
    /// It cannot be stored.
    pub async fn add(&self, feed: FeedConfig) -> Result<String, FeedsError> {
        self.change(move |inner| {
            let row = inner.store.add(&feed.registration(), inner.clock.time().to_second())?;
            inner.publish(&row.id, &Changes { metadata: true, ..Changes::default() })?;
            inner.touched.add(&row.id);
            Ok(row.id)
        })
        .await
    }

    /// Removes a feed and its items; returns whether it existed. A configured feed is back after a
    /// restart.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub async fn remove(&self, id: &str) -> Result<bool, FeedsError> {
        let id = id.to_owned();
        self.change(move |inner| {
            let was_there = inner.store.remove(&id)?;
            inner.publish(&id, &Changes { metadata: true, ..Changes::default() })?;
            inner.touched.add(&id);
            Ok(was_there)
        })
        .await
    }

    /// Pauses a feed until it is resumed, also after a restart. Its stored items are still served.
    /// Returns whether it was active before.
    ///
    /// # Errors
    ///
    /// There is no such feed, or the change cannot be stored.
    pub async fn pause(&self, id: &str) -> Result<bool, FeedsError> {
        self.set_paused(id, true).await
    }

    /// Resumes a paused feed, which is fetched soon. Returns whether it was paused.
    ///
    /// # Errors
    ///
    /// There is no such feed, or the change cannot be stored.
    pub async fn resume(&self, id: &str) -> Result<bool, FeedsError> {
        self.set_paused(id, false).await
    }

    async fn set_paused(&self, id: &str, pause: bool) -> Result<bool, FeedsError> {
        let id = id.to_owned();
        self.change(move |inner| {
            let has_moved = inner.store.pause(&id, pause, inner.clock.time())?;
            inner.publish(&id, &Changes::default())?;
            inner.touched.add(&id);
            Ok(has_moved)
        })
        .await
    }

    /// The feeds as a list for other programs, with their categories as folders.
    #[must_use]
    pub fn export(&self) -> String {
        let board = self.0.board();
        let outlines: Vec<_> = board.rows().map(|row| row.outline()).collect();
        opml::write(&outlines)
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, FeedsError> {
        if !self.0.config.role.writes() {
            return Err(FeedsError::ReadOnly);
        }
        let inner = self.0.clone();
        let done = tokio::task::spawn_blocking(move || work(&inner)).await;
        Ok(done.map_err(|_| FeedsError::Interrupted)??)
    }
}

impl std::fmt::Debug for Feeds {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Feeds").field("data", &self.0.config.data).finish_non_exhaustive()
    }
}

impl Inner {
    fn open(
        config: Config,
        fetching: fetch::Config,
        clock: Clock,
        hold: Option<Hold>,
    ) -> Result<Self, FeedsError> {
        let retention = config.retention;
        let mut store = match (&config.data, config.role) {
            (Data::Memory, Role::Reader) => return Err(FeedsError::NothingToRead),
            (Data::Memory, _) => Store::in_memory(retention)?,
            (Data::Directory(path), Role::Reader) => Store::read_only(path)?,
            // A directory that cannot be written can still be followed.
            (Data::Directory(path), Role::Follower(_)) => Store::in_directory(path, retention)
                .or_else(|error| Store::read_only(path).map_err(|_| error))?,
            (Data::Directory(path), _) => Store::in_directory(path, retention)?,
        };
        match config.role {
            Role::Server(_) => {
                let feeds: Vec<_> = config.feeds.iter().map(FeedConfig::registration).collect();
                store.configure(&feeds, config.earlier, clock.time().to_second())?;
                store.tell_retention()?;
            }
            // The server of the directory decides how many items are stored.
            Role::Guest(_) => store.follow_retention()?,
            Role::Follower(_) | Role::Reader => {}
        }
        let fetcher = if config.role.fetches() {
            Some(Fetcher::new(fetching).map_err(|error| FeedsError::Client(Box::new(error)))?)
        } else {
            None
        };
        let rows = store.feeds()?;
        if let Some(fetcher) = &fetcher {
            let now = clock.time();
            leave_alone(fetcher, &rows, now);
            respect_pauses(fetcher, &store, now)?;
        }
        let progress = Tally::new(&rows);
        let board = RwLock::new(Board::new(rows));
        Ok(Self {
            store,
            config,
            fetcher,
            clock,
            board,
            offer: Mutex::default(),
            touched: Touched::default(),
            line: Mutex::default(),
            unwatched: AtomicBool::new(false),
            trouble: Mutex::default(),
            progress,
            reading: Semaphore::new(READS),
            writing: Semaphore::new(1),
            taking: Arc::new(Semaphore::new(DOCUMENTS)),
            hold: Mutex::new(hold),
        })
    }
}

/// Skips the hosts that sent `Retry-After` before the restart, or to another process.
fn leave_alone(fetcher: &Fetcher, rows: &[FeedRow], now: Moment) {
    for row in rows {
        // A plan of a clock that was set back since is ignored.
        let plan = row.plan.as_ref().filter(|plan| plan.last.is_some_and(|last| last <= now));
        let until = plan.and_then(|plan| plan.left_alone_until(now));
        if let Some((until, host)) = until.zip(row.address.web().and_then(WebAddress::host)) {
            fetcher.leave_alone(host, until.since(now));
        }
    }
}

/// Skips the hosts that sent `Retry-After` while no feed of them was stored.
fn respect_pauses(fetcher: &Fetcher, store: &Store, now: Moment) -> Result<(), StoreError> {
    for (host, length) in store.pauses(now)? {
        fetcher.leave_alone(&host, length);
    }
    Ok(())
}
