//! A fetched document: how its content and the next plan are stored.

use std::time::Duration;

use tidings_store::date::Moment;

use crate::fetch::{self, End, Validators};
use crate::parse::Document;
use crate::rounds::random;
use crate::schedule::{Bounds, FeedHints, Outcome, Plan, Skip};
use crate::store::{Changes, FeedRow, Store, StoreError};

/// A fetched document with its headers.
#[derive(Debug)]
pub(crate) struct Delivery {
    pub(crate) document: Document,
    pub(crate) validators: Validators,
    pub(crate) hints: fetch::Hints,
    /// Its permanent new address, if the server sent one.
    pub(crate) moved: Option<String>,
    /// How its document ended.
    pub(crate) end: End,
}

impl Delivery {
    /// Stores the document's content, and returns its news and the next plan. Waits for the disk.
    pub(crate) fn keep(
        self,
        store: &Store,
        row: &FeedRow,
        plan: &Plan,
        bounds: &Bounds,
        now: Moment,
    ) -> Result<(Changes, Plan), StoreError> {
        let Self { document, validators, hints, moved, end } = self;
        // A document that was cut off is fetched again as a whole; a file is read when it changes.
        // A document that is too long stays too long.
        let cut = document.truncated && row.address.web().is_some() && end != End::Long;
        let validators = if cut { Validators::default() } else { validators };
        // Order: the validators after the document. Otherwise a program killed in between would
        // never fetch it again.
        let changes = store.apply(&row.id, &document, now.to_second())?;
        store.keep_validators(&row.id, &validators)?;
        let (hints, moved) = (feed_hints(Some(&document), &hints), moved.as_deref());
        let posted = posted(&document);
        let outcome = if changes.has_items() {
            Outcome::Changed { posted: &posted, hints, moved }
        } else {
            Outcome::Unchanged { hints, moved }
        };
        let plan = plan.after(&outcome, bounds, now, random());
        let plan = if end == End::Broken { plan.again_soon(now, random()) } else { plan };
        Ok((changes, plan))
    }
}

/// When the items of a document were published.
fn posted(document: &Document) -> Vec<Moment> {
    let dates = document.items.iter().filter_map(|item| item.published.or(item.updated));
    dates.filter(|posted| *posted >= Moment::EPOCH).collect()
}

/// What the headers and the document say about the next fetch.
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
