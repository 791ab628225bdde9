//! What came of asking for a feed, as far as the schedule wants to know.

use std::time::Duration;

use tidings_store::date::Moment;

use super::Skip;

/// What a publisher says about when to ask, in the document and in its headers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FeedHints {
    /// How long the feed may be kept, of RSS.
    pub(crate) ttl: Option<Duration>,
    /// How often it changes, of the syndication module: see [`FeedHints::update_every`].
    pub(crate) update: Option<Duration>,
    /// When not to ask.
    pub(crate) skip: Skip,
    /// Of `Cache-Control`.
    pub(crate) max_age: Option<Duration>,
    /// Of `Expires`, from now on.
    pub(crate) expires: Option<Duration>,
    /// A server may say so with a document too.
    pub(crate) retry_after: Option<Duration>,
}

/// What came of asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'a> {
    /// Something new.
    Changed {
        /// When the posts in the feed were made, in any order.
        posted: &'a [Moment],
        hints: FeedHints,
        /// Where the feed now is for good, if the server said so.
        moved: Option<&'a str>,
    },
    /// Nothing new, whether the server said so or the document did.
    Unchanged { hints: FeedHints, moved: Option<&'a str> },
    /// Nothing at all.
    Failed(Failure),
}

/// How asking failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may well work later.
    Transient,
    /// There is nothing there.
    Missing,
    /// The server, or we, will hardly think differently later.
    Rejected,
    /// The server wants to be left alone.
    Refused { retry_after: Option<Duration> },
    /// Not asked at all, since the host wants to be left alone: no failure of this feed.
    Postponed { by: Duration },
    /// Nothing could be asked from this machine: no failure of this feed.
    Here,
    /// It is gone for good.
    Gone,
    /// There is something, but no feed.
    Unparsable,
}

impl FeedHints {
    /// How often a feed changes, as `sy:updatePeriod` and `sy:updateFrequency` say.
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

    /// The longest time that any of them asks for.
    pub(super) fn wanted(&self) -> Duration {
        // `Expires` is not heard where `Cache-Control` speaks, as RFC 9111 (5.3) has it.
        let fresh = self.max_age.or(self.expires);
        [self.ttl, self.update, fresh].into_iter().flatten().max().unwrap_or_default()
    }
}
