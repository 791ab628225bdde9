//! Progress of the first fetches of many feeds.

use tokio::sync::watch;

use crate::Feeds;
use crate::store::FeedRow;

/// Progress of the first fetches since the feeds were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Feeds that were never fetched before.
    pub total: usize,
    /// How many of those are done.
    pub done: usize,
    /// How many of those failed.
    pub failing: usize,
    /// How many items the others had.
    pub items: u64,
}

impl Progress {
    /// Whether all are done.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done >= self.total
    }
}

impl Feeds {
    /// The progress from now on.
    #[must_use]
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.0.progress.0.subscribe()
    }
}

/// Counts the first fetches.
pub(crate) struct Tally(watch::Sender<Progress>);

impl Tally {
    pub(crate) fn new(rows: &[FeedRow]) -> Self {
        let total = rows.iter().filter(|row| row.is_new()).count();
        Self(watch::Sender::new(Progress { total, ..Progress::default() }))
    }

    /// A feed changed.
    pub(crate) fn step(&self, before: Option<&FeedRow>, now: Option<&FeedRow>) {
        let was_new = before.is_some_and(FeedRow::is_new);
        self.0.send_if_modified(|progress| {
            match (was_new, now) {
                (false, Some(row)) if row.is_new() => progress.total += 1,
                (true, None) => progress.total = progress.total.saturating_sub(1),
                (true, Some(row)) if row.is_failing() => {
                    progress.done += 1;
                    progress.failing += 1;
                }
                (true, Some(row)) if !row.is_new() => {
                    progress.done += 1;
                    progress.items += row.item_count;
                }
                _ => return false,
            }
            true
        });
    }
}
