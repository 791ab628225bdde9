//! A document that was fetched, and how it is kept: what it says, and when to ask again.

use std::time::Duration;

use crate::feeds::clock::moment;
use crate::feeds::fetch::{self, Validators, local_path};
use crate::feeds::parse::Document;
use crate::feeds::rounds::random;
use crate::feeds::schedule::{Bounds, FeedHints, Outcome, Plan, Skip, Time};
use crate::feeds::store::{Changes, FeedRow, Store, StoreError};

/// A document and what came with it.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) document: Document,
    pub(crate) validators: Validators,
    pub(crate) hints: fetch::Hints,
    /// Where it is for good, if the server said so.
    pub(crate) moved: Option<String>,
}

impl Delivery {
    /// Keeps what the document says, and gives what was news in it and the next plan. Waits for
    /// the disk.
    pub(crate) fn keep(
        self,
        store: &Store,
        row: &FeedRow,
        plan: &Plan,
        bounds: &Bounds,
        now: Time,
    ) -> Result<(Changes, Plan), StoreError> {
        let Self { document, validators, hints, moved } = self;
        // A document that was cut off is asked for again, whole; a file changes when it is.
        let cut = document.truncated && local_path(&row.asked_url).is_none();
        let validators = if cut { Validators::default() } else { validators };
        let validators = serde_json::to_string(&validators).unwrap_or_default();
        // Order: the validators after the document, or a program that is killed in between would
        // never ask for it again.
        let changes = store.apply(&row.id, &document, moment(now))?;
        store.keep_validators(&row.id, &validators)?;
        let (hints, moved) = (feed_hints(Some(&document), &hints), moved.as_deref());
        let posted = posted(&document);
        let outcome = if changes.has_items() {
            Outcome::Changed { posted: &posted, hints, moved }
        } else {
            Outcome::Unchanged { hints, moved }
        };
        Ok((changes, plan.after(&outcome, bounds, now, random())))
    }
}

/// When the items of a document were posted.
fn posted(document: &Document) -> Vec<Time> {
    let dates = document.items.iter().filter_map(|item| item.published.or(item.updated));
    let seconds = dates.filter_map(|posted| u64::try_from(posted.unix()).ok());
    seconds.map(|seconds| Time(seconds.saturating_mul(1000))).collect()
}

/// What the headers and the document say about the next time.
pub(crate) fn feed_hints(document: Option<&Document>, hints: &fetch::Hints) -> FeedHints {
    let mut found = FeedHints {
        max_age: hints.max_age,
        expires: hints.expires,
        retry_after: hints.retry_after,
        ..FeedHints::default()
    };
    if let Some(Document { feed, .. }) = document {
        found.ttl = feed.ttl.map(|minutes| Duration::from_secs(u64::from(minutes) * 60));
        found.update = feed
            .update_period
            .as_deref()
            .and_then(|period| FeedHints::update_every(period, feed.update_frequency.unwrap_or(1)));
        let days = feed.skip_days.iter().map(String::as_str);
        found.skip = Skip::new(feed.skip_hours.iter().copied(), days);
    }
    found
}
