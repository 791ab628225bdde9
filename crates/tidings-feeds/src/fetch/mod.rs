//! One guarded client for feeds, pages, pictures and lists of feeds: polite, with a limit on
//! decompressed size, and never led into private networks.

mod address;
mod client;
mod failure;
mod hints;
mod local;
mod queue;
mod reach;
mod request;
mod resolve;
mod target;
#[cfg(test)]
pub(crate) mod tests;
mod unpack;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{CONTENT_TYPE, HeaderMap, LINK, LOCATION};
use tokio::time::Instant;

pub(crate) use client::ClientError;
pub(crate) use failure::FetchError;
use failure::NO_NETWORK;
pub(crate) use hints::Hints;
pub(crate) use local::{local_stamp, read_beginning};
#[cfg(test)]
pub(crate) use queue::{Elapsed, Order, Rules, Standing, Ticket};
pub(crate) use request::{Accept, Request, Validators};
pub(crate) use resolve::Directory;
#[cfg(test)]
pub(crate) use resolve::ResolvedAddress;

use super::agenda::is_near;
use super::parse;
use queue::{Place, Queue};
use reach::Network;
use target::Target;

/// The settings of the fetcher.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    /// The user agent; default the name and version of this program, and its website.
    pub(crate) user_agent: String,
    /// Whether private addresses and all ports are allowed; default no.
    pub(crate) allow_private: bool,
    /// The largest document, decompressed; default 16 MiB.
    pub(crate) body_limit: u64,
    /// The maximum number of redirects for one document; default 5.
    pub(crate) redirects: usize,
    /// The timeout of connecting; default 10 s.
    pub(crate) connect_timeout: Duration,
    /// The timeout of one document with all its redirects, without the time in the queue; default
    /// 30 s.
    pub(crate) timeout: Duration,
    /// Concurrent requests in total; default 16.
    pub(crate) at_once: usize,
    /// Concurrent requests to one host; default 1.
    pub(crate) host_at_once: usize,
    /// The minimum time between two requests to one host; default 1 s.
    pub(crate) apart: Duration,
}

impl Default for Config {
    fn default() -> Self {
        let version = env!("CARGO_PKG_VERSION");
        Self {
            user_agent: format!("Tidings/{version} (+https://github.com/tidings-mcp/tidings)"),
            allow_private: false,
            body_limit: 16 * 1024 * 1024,
            redirects: 5,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(30),
            at_once: 16,
            host_at_once: 1,
            apart: Duration::from_secs(1),
        }
    }
}

/// The result of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fetched {
    /// The document did not change.
    NotModified {
        /// As in a document.
        moved: Option<String>,
        /// Hints about the next request.
        hints: Hints,
    },
    /// A document.
    Document {
        /// Its content, decompressed.
        bytes: Vec<u8>,
        /// The server's `Content-Type`, unchanged.
        content_type: Option<String>,
        /// For the next request.
        validators: Validators,
        /// Its final URL.
        url: String,
        /// The same, if every redirect was permanent (301, 308).
        moved: Option<String>,
        /// Hints about the next request.
        hints: Hints,
        /// The header `Link`, unchanged.
        link: Option<String>,
        /// How it ended.
        end: End,
    },
}

/// How a document ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum End {
    #[default]
    Whole,
    /// The transfer was interrupted: the next one may be complete.
    Broken,
    /// It is longer than the limit, and will be the next time.
    Long,
}

/// Fetches documents. Cheap to clone; all clones share their queue.
///
/// Dropping a fetch ends its request and frees its place.
#[derive(Clone)]
pub(crate) struct Fetcher {
    config: Arc<Config>,
    client: reqwest::Client,
    queue: Queue,
    reach: Arc<Network>,
}

impl Fetcher {
    /// A fetcher that uses the operating system's resolver and certificates.
    pub(crate) fn new(config: Config) -> Result<Self, ClientError> {
        Self::with_directory(config, Directory::System)
    }

    /// A fetcher that uses this resolver.
    pub(crate) fn with_directory(
        config: Config,
        directory: Directory,
    ) -> Result<Self, ClientError> {
        let client = client::build(&config, directory)?;
        let queue = Queue::new(queue::Rules {
            // Zero would wait for ever.
            at_once: config.at_once.max(1),
            host_at_once: config.host_at_once.max(1),
            apart: config.apart,
        });
        Ok(Self { config: Arc::new(config), client, queue, reach: Arc::default() })
    }

    /// Skips a host for this long.
    pub(crate) fn leave_alone(&self, host: &str, length: Duration) {
        self.queue.pause(host, length);
    }

    /// Fetches one document, after waiting for its turn.
    ///
    /// Redirects are followed here and not by the client: each hop is checked, waits in its own
    /// host's queue, and gets the request's own headers only while the origin is still the first
    /// one.
    pub(crate) async fn fetch(&self, request: Request) -> Result<Fetched, FetchError> {
        let common = request.headers_for_all();
        let mut headers = common.clone();
        headers.extend(request.headers_for_origin()?);
        let mut target = Target::parse(&request.url, self.config.allow_private)?;
        let mut budget = self.config.timeout;
        let mut is_permanent = true;
        for hop in 0..=self.config.redirects {
            let place = self.queue.turn(target.host()).await?;
            let began = Instant::now();
            let exchange = self.exchange(&target, headers.clone(), &request, &place);
            let answer = tokio::time::timeout(budget, exchange)
                .await
                .map_err(|_| FetchError::Timeout(self.config.timeout))?
                .map_err(|error| match error {
                    // Only the address itself, or its permanent successor, can report that it is
                    // gone.
                    FetchError::Gone if !is_permanent => FetchError::Missing,
                    FetchError::Unresolved(host) => self.reach.unresolved(host),
                    FetchError::Here(NO_NETWORK) => self.reach.unreachable(target.host()),
                    error => error,
                })?;
            // Order: the place is released before the next is waited for. Otherwise two fetches
            // that redirect to each other's hosts would wait for ever.
            drop(place);
            budget = budget.saturating_sub(began.elapsed());
            let moved = || (hop > 0 && is_permanent).then(|| target.url().to_string());
            match answer {
                HopAnswer::NotModified { hints } => {
                    return Ok(Fetched::NotModified { moved: moved(), hints });
                }
                HopAnswer::Document { bytes, content_type, validators, hints, link, end } => {
                    let (url, moved) = (target.url().to_string(), moved());
                    return Ok(Fetched::Document {
                        bytes,
                        content_type,
                        validators,
                        url,
                        moved,
                        hints,
                        link,
                        end,
                    });
                }
                HopAnswer::Redirect { location, for_good } => {
                    is_permanent &= for_good;
                    let next = target.follow(&location, self.config.allow_private)?;
                    if !next.has_same_origin(&target) {
                        headers.clone_from(&common);
                    }
                    target = next;
                }
            }
        }
        Err(FetchError::Redirects(self.config.redirects))
    }

    /// One request and its answer.
    async fn exchange(
        &self,
        target: &Target,
        headers: HeaderMap,
        asked: &Request,
        place: &Place,
    ) -> Result<HopAnswer, FetchError> {
        let request = self.client.get(target.url().clone()).headers(headers);
        let patience = self.config.connect_timeout;
        let response =
            request.send().await.map_err(|error| FetchError::of_request(&error, patience))?;
        if !is_near(target.host()) {
            self.reach.answered();
        }
        let status = response.status();
        let hints = Hints::read(response.headers(), SystemTime::now());
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                place.pause(hints.retry_after);
            }
            _ => place.welcome(),
        }
        match status {
            StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION => {
                self.document(response, hints, asked.accept).await
            }
            StatusCode::NOT_MODIFIED if !asked.validators.is_empty() => {
                Ok(HopAnswer::NotModified { hints })
            }
            StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT => {
                let location = response.headers().get(LOCATION).ok_or(FetchError::Location)?;
                // Not all servers escape correctly.
                let location = String::from_utf8_lossy(location.as_bytes()).into_owned();
                Ok(HopAnswer::Redirect { location, for_good: matches!(status.as_u16(), 301 | 308) })
            }
            StatusCode::GONE => Err(FetchError::Gone),
            StatusCode::NOT_FOUND => Err(FetchError::Missing),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let retry_after = hints.retry_after;
                Err(FetchError::Refused { status: status.as_u16(), retry_after })
            }
            other => Err(FetchError::Status(other.as_u16())),
        }
    }

    async fn document(
        &self,
        response: reqwest::Response,
        hints: Hints,
        accept: Accept,
    ) -> Result<HopAnswer, FetchError> {
        let mut validators = Validators::read(response.headers());
        let content_type = response.headers().get(CONTENT_TYPE);
        let content_type =
            content_type.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        let link = response.headers().get_all(LINK).iter();
        let link: Vec<_> = link.filter_map(|value| value.to_str().ok()).collect();
        let link = Some(link.join(", ")).filter(|link| !link.is_empty());
        let mut end = End::Whole;
        let unpack::Body { mut bytes, broken } =
            unpack::collect(response, self.config.body_limit).await?;
        if let Some(error) = broken {
            let is_long = matches!(error, FetchError::TooLarge(_));
            let known = parse::Hints { content_type: content_type.clone(), base: None };
            let is_cut;
            (bytes, is_cut) = if accept == Accept::Feed {
                worth(bytes, known, error).await?
            } else {
                return Err(error);
            };
            if is_long {
                end = End::Long;
            } else if is_cut {
                // The next request is for the whole document.
                validators = Validators::default();
                end = End::Broken;
            }
        }
        Ok(HopAnswer::Document { bytes, content_type, validators, hints, link, end })
    }
}

/// The received part of a feed before an interruption, if it contains items, and whether its end is
/// missing: its items are as good as those of a document that was cut off.
async fn worth(
    bytes: Vec<u8>,
    known: parse::Hints,
    error: FetchError,
) -> Result<(Vec<u8>, bool), FetchError> {
    let parsed = tokio::task::spawn_blocking(move || {
        let document = parse::parse(&bytes, &known).ok().filter(|it| !it.items.is_empty());
        document.map(|document| (bytes, document.truncated))
    });
    match parsed.await {
        // After any other failure only the whole document is useful.
        Ok(Some((bytes, is_cut))) if error.is_cut() || !is_cut => Ok((bytes, is_cut)),
        _ => Err(error),
    }
}

/// The answer of one server on the way.
enum HopAnswer {
    NotModified {
        hints: Hints,
    },
    Document {
        bytes: Vec<u8>,
        content_type: Option<String>,
        validators: Validators,
        hints: Hints,
        link: Option<String>,
        end: End,
    },
    Redirect {
        location: String,
        for_good: bool,
    },
}

/// Good enough to spread requests; it need not be unpredictable.
fn random() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0u8)
}
