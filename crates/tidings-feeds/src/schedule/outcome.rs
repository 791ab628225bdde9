//! The result of a fetch, as far as the schedule needs it.

use std::time::Duration;

use tidings_store::date::Moment;

use super::Skip;

/// A publisher's hints about the next request, in the document and in its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedHints {
    /// The `ttl` of RSS.
    pub(crate) ttl: Option<Duration>,
    /// The update period of the syndication module: see [`FeedHints::update_every`].
    pub(crate) update: Option<Duration>,
    /// Hours and days to be skipped.
    pub(crate) skip: Skip,
    /// From `Cache-Control`.
    pub(crate) max_age: Option<Duration>,
    /// From `Expires`, counted from now.
    pub(crate) expires: Option<Duration>,
    /// `Retry-After`, which a server may send with a document too.
    pub(crate) retry_after: Option<Duration>,
}

/// The result of a fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'a> {
    /// Something new.
    Changed {
        /// The dates of the posts in the feed, in any order.
        posted: &'a [Moment],
        hints: FeedHints,
        /// The permanent new address of the feed, if the server sent one.
        moved: Option<&'a str>,
    },
    /// Nothing new, according to the server or the document.
    Unchanged { hints: FeedHints, moved: Option<&'a str> },
    /// No document.
    Failed(Failure),
}

/// Why a fetch failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A retry may succeed.
    Transient,
    /// It does not exist.
    Missing,
    /// A retry will hardly succeed.
    Rejected,
    /// The server sent `Retry-After`.
    Refused { retry_after: Option<Duration> },
    /// Not fetched, because the host sent `Retry-After`: not a failure of this feed.
    Postponed { by: Duration },
    /// Nothing could be fetched on this machine: not a failure of this feed.
    Here,
    /// It is gone for ever.
    Gone,
    /// A document, but not a feed.
    Unparsable,
}

impl FeedHints {
    /// The update period by `sy:updatePeriod` and `sy:updateFrequency`.
    pub(crate) fn update_every(period: &str, frequency: u32) -> Option<Duration> {
        let hours = match period.trim().to_ascii_lowercase().as_str() {
            "hourly" => 1,
            "daily" => 24,
            "weekly" => 7 * 24,
            "monthly" => 30 * 24,
            "yearly" => 365 * 24,
            _ => return None,
        };
        Some(Duration::from_hours(hours) / frequency.max(1))
    }

    /// The longest of these times.
    pub(super) fn wanted(&self) -> Duration {
        // `Expires` is ignored if there is `Cache-Control`, by RFC 9111 (5.3).
        let fresh = self.max_age.or(self.expires);
        [self.ttl, self.update, fresh].into_iter().flatten().max().unwrap_or_default()
    }
}
