//! How far the first fetches are: for somebody who waits for many feeds.

use tokio::sync::watch;

use crate::Feeds;
use crate::store::FeedRow;

/// How far the first fetches are, since the feeds were opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Feeds that were never fetched before.
    pub total: usize,
    /// Of those, how many have been asked.
    pub done: usize,
    /// Of those, how many could not be fetched.
    pub failing: usize,
    /// How many items the others had.
    pub items: u64,
}

impl Progress {
    /// Whether there is nothing left to wait for.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.done >= self.total
    }
}

impl Feeds {
    /// How far the first fetches are, from now on.
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

    /// What is known of a feed became something else.
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
