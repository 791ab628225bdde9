//! Discovery of the feed at an address: the document itself, or the main feed of the page there.

mod candidates;

use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::address::{AddressError, FeedAddress, FileAddress, WebAddress};
use crate::ask::{LOCAL_LIMIT, causes};
use crate::delivery::Delivery;
use crate::fetch::{
    End, FetchError, Fetched, Fetcher, Hints, Request, Validators, local_stamp, read_beginning,
};
use crate::parse::{self, Document, Found, ParseError};
use crate::schedule::{Failure, Plan};
use crate::store::{Changes, FeedRow};
use crate::{FeedConfig, Feeds, FeedsError, Inner};

/// How long a host is skipped if it refuses without `Retry-After`.
const UNSAID: Duration = Duration::from_mins(1);

/// A feed that was found and fetched, but not stored yet.
#[derive(Debug)]
pub struct Discovery {
    feed: FeedConfig,
    page: Option<String>,
    delivery: Delivery,
}

/// Why no feed at an address can be added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoverError {
    /// A page names a feed that is not on the web.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// This process does not fetch.
    #[error("nothing is fetched here")]
    Offline,
    /// It could not be fetched, with the reason.
    #[error("`{url}` could not be fetched: {reason}")]
    Fetch {
        /// The address.
        url: String,
        /// The reason.
        reason: String,
        /// The kind of obstacle.
        obstacle: Obstacle,
    },
    /// It is a file that could not be read, with the reason.
    #[error("`{path}` could not be read: {reason}")]
    Read {
        /// The address.
        path: String,
        /// The reason.
        reason: String,
    },
    /// A page with more than one feed.
    #[error("`{url}` is a web page that names {} feeds; choose one: {}", .feeds.len(), list(.feeds))]
    Several {
        /// The page.
        url: String,
        /// Its feeds.
        feeds: Vec<Found>,
    },
    /// A list of feeds, which can be imported.
    #[error("`{url}` is a list of feeds in OPML, not a feed")]
    List {
        /// The address.
        url: String,
    },
    /// Neither a feed nor a page with one.
    #[error("there is no feed at `{url}`: {reason}")]
    None {
        /// The address.
        url: String,
        /// The document found there.
        reason: String,
    },
}

/// The obstacle to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// A private address, or a port that is not for the web.
    Private,
    /// A retry may succeed.
    Passing,
    /// A retry will not succeed.
    Lasting,
}

impl Obstacle {
    fn of(error: &FetchError) -> Self {
        if error.is_private() {
            Self::Private
        } else if error.is_transient() {
            Self::Passing
        } else {
            Self::Lasting
        }
    }
}

impl Discovery {
    /// The address of the feed.
    #[must_use]
    pub fn url(&self) -> &str {
        self.feed.address.as_str()
    }

    /// The page that named it, if any.
    #[must_use]
    pub fn page(&self) -> Option<&str> {
        self.page.as_deref()
    }

    /// Its content.
    #[must_use]
    pub fn document(&self) -> &Document {
        &self.delivery.document
    }
}

impl Feeds {
    /// Finds the feed at an address: reads the file, or fetches the document on the web. If that is
    /// a page, its main feed is fetched, or one at a usual path. Every request is checked as usual;
    /// nothing is stored.
    ///
    /// # Errors
    ///
    /// There is no feed, or more than one and no main one.
    pub async fn discover(&self, feed: FeedConfig) -> Result<Discovery, DiscoverError> {
        match feed.address.clone() {
            FeedAddress::Web(address) => self.discover_on_web(feed, &address).await,
            FeedAddress::File(file) => discover_file(feed, &file).await,
        }
    }

    async fn discover_on_web(
        &self,
        feed: FeedConfig,
        address: &WebAddress,
    ) -> Result<Discovery, DiscoverError> {
        let fetcher = self.0.fetcher.as_ref().ok_or(DiscoverError::Offline)?;
        let (feeds, linked) = match self.delivered(fetcher, &feed, address).await? {
            (Ok(delivery), _) => return Ok(self.at_home(feed, None, delivery)),
            (Err(ParseError::Page { feeds }), linked) => (feeds, linked),
            (Err(error), _) => return Err(none(address.as_str(), &error)),
        };
        let feeds = candidates::of_page(feeds, linked.as_deref(), address.as_str());
        if feeds.is_empty() {
            return self.at_usual_places(fetcher, feed, address).await;
        }
        let page = address.to_string();
        let Some(found) = candidates::main(&feeds) else {
            return Err(DiscoverError::Several { url: page, feeds });
        };
        let found = WebAddress::parse(&found.url)?;
        let mut feed = FeedConfig { address: FeedAddress::Web(found.clone()), ..feed };
        // Headers are sent only to the server they were given for.
        if !found.has_same_origin(address) {
            feed.headers.clear();
        }
        match self.delivered(fetcher, &feed, &found).await? {
            (Ok(delivery), _) => Ok(self.at_home(feed, Some(page), delivery)),
            (Err(error), _) => Err(none(found.as_str(), &error)),
        }
    }

    /// Tries the usual paths, for a page that names no feed.
    async fn at_usual_places(
        &self,
        fetcher: &Fetcher,
        feed: FeedConfig,
        page: &WebAddress,
    ) -> Result<Discovery, DiscoverError> {
        for address in candidates::usual(page.as_str()) {
            if let Ok((Ok(delivery), _)) = self.delivered(fetcher, &feed, &address).await {
                let feed = FeedConfig { address: FeedAddress::Web(address), ..feed };
                return Ok(self.at_home(feed, Some(page.to_string()), delivery));
            }
        }
        let reason = "the web page names no feed, and none was found at the usual addresses";
        Err(DiscoverError::None { url: page.to_string(), reason: reason.to_owned() })
    }

    /// The found feed, as the stored one if it moved to that address.
    fn at_home(&self, feed: FeedConfig, page: Option<String>, delivery: Delivery) -> Discovery {
        let moved = delivery.moved.as_ref().filter(|_| feed.headers.is_empty());
        let known = moved.and_then(|moved| self.0.feed_at(moved));
        let feed = match known {
            Some(row) => FeedConfig { address: row.asked.clone(), ..feed },
            None => feed,
        };
        Discovery { feed, page, delivery }
    }

    /// The id of the feed that was added with this URL, or has it now.
    #[must_use]
    pub fn id_at(&self, url: &str) -> Option<String> {
        self.0.feed_at(url).map(|row| row.id.clone())
    }

    /// Adds a found feed with its items; returns its id. It can be read at once, and it stays after
    /// a restart. For a stored feed, settings that are not given now stay.
    ///
    /// # Errors
    ///
    /// It cannot be stored.
    pub async fn add_found(&self, found: Discovery) -> Result<String, FeedsError> {
        let Discovery { feed, delivery, .. } = found;
        self.change(move |inner| {
            let now = inner.clock.time();
            let was_there = inner.feed_at(feed.address.as_str()).is_some();
            let row = inner.store.add(&feed.registration(), now.to_second())?;
            let plan = row.plan.clone().unwrap_or_else(|| Plan::new(now));
            let bounds = inner.bounds(&row);
            let kept = delivery.keep(&inner.store, &row, &plan, &bounds, now);
            let (changes, mut plan) = match kept {
                Ok(kept) => kept,
                // A feed that was reported as failed must not exist after the next start.
                Err(error) if !was_there && inner.store.remove(&row.id).is_ok() => {
                    return Err(error);
                }
                Err(error) => {
                    warn!(
                        feed = row.id,
                        error = causes(&error),
                        "a feed is there without its items"
                    );
                    inner.note_trouble(Some(error.outside()));
                    inner.publish(&row.id, &Changes { metadata: true, ..Changes::default() })?;
                    inner.touched.add(&row.id);
                    return Ok(row.id);
                }
            };
            if let Some(address) = plan.take_address() {
                inner.store.moved(&row.id, &address, now.to_second())?;
            }
            inner.store.keep_plan(&row.id, plan)?;
            inner.publish(&row.id, &Changes { metadata: true, ..changes })?;
            inner.touched.add(&row.id);
            Ok(row.id)
        })
        .await
    }

    /// The document at an address: a feed, or why it is not one; and the header `Link`.
    async fn delivered(
        &self,
        fetcher: &Fetcher,
        feed: &FeedConfig,
        address: &WebAddress,
    ) -> Result<(Result<Delivery, ParseError>, Option<String>), DiscoverError> {
        let failed = |reason: String| {
            let obstacle = Obstacle::Lasting;
            DiscoverError::Fetch { url: address.to_string(), reason, obstacle }
        };
        // A stored feed is requested as usual.
        let is_same = |row: &Arc<FeedRow>| {
            row.asked.web().is_some_and(|asked| asked.has_same_origin(address))
        };
        let known = self.0.feed_at(address.as_str()).filter(is_same);
        let headers = match known {
            Some(row) if feed.headers.is_empty() => row.settings.headers.clone(),
            _ => feed.headers.clone(),
        };
        let request = Request { url: address.to_string(), headers, ..Request::default() };
        let fetched = match fetcher.fetch(request).await {
            Ok(fetched) => fetched,
            Err(error) => {
                self.remember(address, &error).await;
                let (reason, obstacle) = (causes(&error), Obstacle::of(&error));
                return Err(DiscoverError::Fetch { url: address.to_string(), reason, obstacle });
            }
        };
        let Fetched::Document { bytes, content_type, validators, url, moved, hints, link, end } =
            fetched
        else {
            return Err(failed("the server says that nothing changed".to_owned()));
        };
        let known = parse::Hints { content_type, base: Some(url) };
        let parsed = tokio::task::spawn_blocking(move || parse::parse(&bytes, &known)).await;
        let parsed = parsed.map_err(|error| failed(error.to_string()))?;
        Ok((parsed.map(|document| Delivery { document, validators, hints, moved, end }), link))
    }

    /// Notes a server's `Retry-After`, also for later requests by others.
    async fn remember(&self, address: &WebAddress, error: &FetchError) {
        let (Failure::Refused { retry_after }, Some(host)) = (error.kind(), address.host()) else {
            return;
        };
        let host = host.to_owned();
        let length = retry_after.unwrap_or(UNSAID);
        let kept =
            self.change(move |inner| inner.store.keep_pause(&host, length, inner.clock.time()));
        if let Err(error) = kept.await {
            warn!(%error, "the `Retry-After` of a server could not be stored");
        }
    }
}

/// Reads the feed in a file; nothing is stored.
async fn discover_file(feed: FeedConfig, file: &FileAddress) -> Result<Discovery, DiscoverError> {
    let failed = |reason: String| DiscoverError::Read { path: file.as_str().to_owned(), reason };
    // Read before the content: a change in between is found the next time.
    let stamp = local_stamp(file.path()).await;
    let read = read_beginning(file.path(), LOCAL_LIMIT).await;
    let bytes = read.map_err(|error| failed(causes(&error)))?;
    let parsed =
        tokio::task::spawn_blocking(move || parse::parse(&bytes, &parse::Hints::default()));
    let parsed = parsed.await.map_err(|error| failed(error.to_string()))?;
    let document = parsed.map_err(|error| none(file.as_str(), &error))?;
    let validators = Validators { etag: stamp, last_modified: None };
    let (hints, moved, end) = (Hints::default(), None, End::Whole);
    let delivery = Delivery { document, validators, hints, moved, end };
    Ok(Discovery { feed, page: None, delivery })
}

impl Inner {
    /// The feed that was added with this URL, or has it now.
    pub(crate) fn feed_at(&self, url: &str) -> Option<Arc<FeedRow>> {
        let board = self.board();
        let asked = board.rows().find(|row| row.asked.as_str() == url);
        asked.or_else(|| board.rows().find(|row| row.address.as_str() == url)).cloned()
    }
}

fn none(url: &str, error: &ParseError) -> DiscoverError {
    let url = url.to_owned();
    match error {
        ParseError::List => DiscoverError::List { url },
        error => DiscoverError::None { url, reason: error.to_string() },
    }
}

fn list(feeds: &[Found]) -> String {
    let named = |feed: &Found| match &feed.title {
        Some(title) => format!("`{}` ({title})", feed.url),
        None => format!("`{}`", feed.url),
    };
    let names: Vec<_> = feeds.iter().map(named).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::feed_at;
    use crate::{Config, Data, Fetching, Role};

    /// It used to exist after the next start, although the answer said that it was not added.
    #[tokio::test]
    async fn a_feed_for_which_there_is_no_room_is_not_added() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("feed.xml");
        let item = format!(
            "<item><title>a</title><description>{}</description></item>",
            "x ".repeat(50_000)
        );
        std::fs::write(&path, format!("<rss><channel><title>t</title>{item}</channel></rss>"))
            .unwrap();
        let mut config = Config::new(Data::Memory);
        config.role = Role::Server(Fetching::Off);
        let feeds = Feeds::open(config).await.unwrap();
        let feed = feed_at(path.to_str().unwrap());
        let found = feeds.discover(feed.clone()).await.unwrap();
        feeds.0.store.fill_up();
        let error = feeds.add_found(found).await.unwrap_err();
        assert_eq!(error.to_string(), "the disk is full; free some space on it");
        assert!(feeds.0.store.feeds().unwrap().is_empty());
        assert_eq!(feeds.0.trouble(), None);
        // A stored feed stays, and the failed write is reported.
        let id =
            feeds.0.store.add(&feed.registration(), feeds.0.clock.time().to_second()).unwrap().id;
        feeds.0.publish(&id, &Changes::default()).unwrap();
        let found = feeds.discover(feed).await.unwrap();
        assert_eq!(feeds.add_found(found).await.unwrap(), id);
        assert!(feeds.0.trouble().unwrap().contains("the disk is full"));
    }
}
