//! RSS, Atom and JSON feeds as a live source: read when they are due, kept, and told of.
//!
//! The way of a document: `fetch` (bytes) → [`parse`] (what they say) → `store` (what of it is
//! news?) → `board` (what can be read at once) → the hub. `view` says what a URI asks for.

mod ask;
mod board;
mod clock;
mod config;
pub mod date;
#[expect(dead_code, unused_imports, reason = "for pages, pictures and lists of feeds")]
mod fetch;
mod html;
mod id;
#[cfg(test)]
mod live;
mod offer;
pub mod opml;
pub mod parse;
mod prompts;
mod rounds;
#[cfg_attr(not(test), expect(dead_code, reason = "for tools that pause and explain feeds"))]
mod schedule;
mod source;
mod store;
mod tools;
mod view;
mod words;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tokio::sync::Notify;

use self::board::Board;
use self::clock::{Clock, moment};
pub use self::config::{Config, Data, FeedConfig, Tools};
use self::fetch::Fetcher;
use self::offer::Offer;
use self::store::{Changes, FeedRow, Store};
pub use self::store::{Retention, StoreError};

/// Why feeds cannot be served or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FeedsError {
    /// What is kept cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something that is no address of a feed.
    #[error("`{0}` is not the URL of a feed; it begins with `https://` or `http://`")]
    Url(String),
    /// Nothing can be fetched on this machine.
    #[error("no feed can be fetched")]
    Client(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// Only what is in a directory can be served without being fetched.
    #[error("feeds that are kept in memory cannot be read only")]
    NothingToRead,
    /// The feeds are served as they are.
    #[error("the feeds are read only")]
    ReadOnly,
    /// The work was given up.
    #[error("the work on the feeds was given up")]
    Interrupted,
}

/// Feeds that are served.
///
/// Cloning is cheap and every clone is the same feeds, so that they can be changed while a hub
/// serves them. Reads are answered from what is kept and never wait for a feed.
#[derive(Clone)]
pub struct Feeds(Arc<Inner>);

pub(crate) struct Inner {
    store: Store,
    config: Config,
    /// Nothing is fetched without one.
    fetcher: Option<Fetcher>,
    clock: Clock,
    board: RwLock<Board>,
    /// What is on the shelf, once there is one. Held while the shelf is brought up to date, so
    /// that two that publish do so in turns.
    offer: Mutex<Option<Offer>>,
    /// Woken when a feed came or went.
    listed: Notify,
}

impl Feeds {
    /// Opens what is kept and makes it the feeds of the configuration. Nothing is fetched before a
    /// hub runs the source.
    ///
    /// # Errors
    ///
    /// The store cannot be used, or the configuration names what is no feed.
    pub async fn open(config: Config) -> Result<Self, FeedsError> {
        config.feeds.iter().try_for_each(check)?;
        let clock = Clock::new();
        let open = move || Inner::open(config, clock).map(|inner| Self(Arc::new(inner)));
        tokio::task::spawn_blocking(open).await.map_err(|_| FeedsError::Interrupted)?
    }

    /// Adds a feed, or changes what is set for one that is there; gives its id. It stays after a
    /// restart.
    ///
    /// # Errors
    ///
    /// It is no feed, or cannot be kept.
    pub async fn add(&self, feed: FeedConfig) -> Result<String, FeedsError> {
        check_web(&feed)?;
        self.change(move |inner| {
            let row = inner.store.add(&feed.registration(), moment(inner.clock.time()))?;
            let id = row.id.clone();
            inner.publish(&id, &Changes { metadata: true, ..Changes::default() })?;
            inner.listed.notify_one();
            Ok(id)
        })
        .await
    }

    /// Removes a feed and all that is kept of it; says whether it was there. One that is in the
    /// configuration is there again after a restart.
    ///
    /// # Errors
    ///
    /// It cannot be removed.
    pub async fn remove(&self, id: &str) -> Result<bool, FeedsError> {
        let id = id.to_owned();
        self.change(move |inner| {
            let was_there = inner.store.remove(&id)?;
            inner.publish(&id, &Changes { metadata: true, ..Changes::default() })?;
            inner.listed.notify_one();
            Ok(was_there)
        })
        .await
    }

    /// The feeds as a list for other programs, with their categories as folders.
    #[must_use]
    pub fn export(&self) -> String {
        let board = self.0.board();
        let outlines = board.rows().map(|row| opml::Outline {
            url: row.url.clone(),
            title: Some(row.shown_title().to_owned()),
            page: row.metadata.link.clone(),
            category: row.category.clone(),
        });
        opml::write(&outlines.collect::<Vec<_>>())
    }

    async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, FeedsError> {
        if self.0.config.read_only {
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
    fn open(config: Config, clock: Clock) -> Result<Self, FeedsError> {
        let store = match (&config.data, config.read_only) {
            (Data::Memory, true) => return Err(FeedsError::NothingToRead),
            (Data::Memory, false) => Store::in_memory(config.retention)?,
            (Data::Directory(path), true) => Store::read_only(path)?,
            (Data::Directory(path), false) => Store::in_directory(path, config.retention)?,
        };
        if !config.read_only {
            let feeds: Vec<_> = config.feeds.iter().map(FeedConfig::registration).collect();
            store.configure(&feeds, moment(clock.time()))?;
        }
        let fetcher = if config.read_only || config.offline {
            None
        } else {
            let allow_private = config.allow_private;
            let fetching = fetch::Config { allow_private, ..fetch::Config::default() };
            Some(Fetcher::new(fetching).map_err(|error| FeedsError::Client(Box::new(error)))?)
        };
        let board = RwLock::new(Board::new(store.feeds()?));
        let (offer, listed) = (Mutex::default(), Notify::new());
        Ok(Self { store, config, fetcher, clock, board, offer, listed })
    }

    fn board(&self) -> RwLockReadGuard<'_, Board> {
        self.board.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn offer(&self) -> MutexGuard<'_, Option<Offer>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes something about a feed, makes it readable and tells of it.
    async fn record(
        self: &Arc<Self>,
        id: &str,
        work: impl FnOnce(&Store, &str) -> Result<Changes, StoreError> + Send + 'static,
    ) -> Result<Changes, FeedsError> {
        let (inner, id) = (self.clone(), id.to_owned());
        let record = move || {
            let changes = work(&inner.store, &id)?;
            inner.publish(&id, &changes)?;
            Ok(changes)
        };
        tokio::task::spawn_blocking(record).await.map_err(|_| FeedsError::Interrupted)?
    }

    /// Makes what was written readable at once, and tells of it. Waits for the disk.
    fn publish(&self, id: &str, changes: &Changes) -> Result<(), StoreError> {
        // Order: one at a time from here on, or the row of an older change could be the last one
        // that is put.
        let mut offer = self.offer();
        let row = self.store.feed(id)?;
        let (before, has_moved) = {
            let mut board = self.board.write().unwrap_or_else(PoisonError::into_inner);
            let before = board.get(id).cloned();
            (before, board.put(id, row))
        };
        let now = self.board().get(id).cloned();
        let Some(offer) = &mut *offer else { return Ok(()) };
        let revisions = |row: &Option<Arc<FeedRow>>| row.as_ref().map(|row| row.revisions);
        if changes.is_empty() && !has_moved && revisions(&before) == revisions(&now) {
            return Ok(());
        }
        let edited = match (&before, &now) {
            (Some(_), Some(row)) => {
                let newest = self.board().rows().filter_map(|row| row.last_updated()).max();
                offer.refresh_one(row, newest)
            }
            (None, None) => Ok(()),
            _ => offer.refresh(self.board().rows()),
        };
        if let Err(error) = edited {
            // Another source has one of these addresses.
            tracing::warn!(feed = id, %error, "a feed is not offered as it should be");
        }
        let shelf = offer.shelf();
        if has_moved {
            shelf.notify_updated(view::ALL);
        }
        shelf.notify_updated(&view::feed_uri(id));
        shelf.notify_updated(&view::meta_uri(id));
        shelf.notify_matching(&format!("{}*", view::items_uri(id)));
        Ok(())
    }
}

/// Checks the address of a feed that the operator named: on the web, or a file.
fn check(feed: &FeedConfig) -> Result<(), FeedsError> {
    let is_file = !feed.url.trim().is_empty() && fetch::local_path(feed.url.trim()).is_some();
    if is_file { Ok(()) } else { check_web(feed) }
}

/// Checks the address of a feed that anybody may have named.
fn check_web(feed: &FeedConfig) -> Result<(), FeedsError> {
    let url = feed.url.trim();
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    let is_web = matches!(scheme.as_deref(), Some("http" | "https"));
    if is_web { Ok(()) } else { Err(FeedsError::Url(url.to_owned())) }
}
