//! One budget in bytes for everything in flight: bodies that are read, messages that are built from
//! them, and answers that their clients have not taken.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::metrics::Metrics;

/// An answer up to this size is always sent: it is smaller than what the request cost.
const SMALL: usize = 64 << 10;

/// How many bytes may be in flight at once.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    metrics: Arc<Metrics>,
}

impl Budget {
    pub(crate) fn new(limit: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicUsize::new(0), metrics })
    }

    /// A part of the budget that is empty to begin with.
    pub(crate) fn share(self: &Arc<Self>) -> Share {
        Share { budget: self.clone(), bytes: 0 }
    }

    /// Whether most of it is used, so that the next large request is refused.
    pub(crate) fn is_spent(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.limit / 10 * 9
    }

    /// Counts an answer until its last byte is taken for the wire; nothing if there is no room for
    /// it.
    pub(crate) fn answer(self: &Arc<Self>, bytes: Bytes) -> Option<Bytes> {
        let mut share = self.share();
        if bytes.len() <= SMALL {
            share.add(bytes.len());
        } else if !share.grow(bytes.len()) {
            return None;
        }
        Some(Bytes::from_owner(Answer { bytes, _share: share }))
    }

    fn changed(&self, used: usize) {
        self.metrics.in_flight.set(i64::try_from(used).unwrap_or(i64::MAX));
    }
}

/// The bytes of one request or answer; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Takes more; false if there is not as much.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let limit = self.budget.limit;
        let taken = self.budget.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= limit)
        });
        let Ok(before) = taken else {
            self.budget.metrics.over_budget.inc();
            return false;
        };
        self.bytes += bytes;
        self.budget.changed(before + bytes);
        true
    }

    /// Takes more, whatever there is.
    fn add(&mut self, bytes: usize) {
        let before = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        self.budget.changed(before + bytes);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let before = self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.changed(before.saturating_sub(self.bytes));
    }
}

/// Bytes that are counted until the last of those who hold them lets go.
struct Answer {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Answer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(limit: usize) -> Arc<Budget> {
        Budget::new(limit, Arc::new(Metrics::new()))
    }

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = budget(100);
        let (mut one, mut other) = (budget.share(), budget.share());
        assert!(one.grow(60) && !other.grow(41) && other.grow(40));
        assert!(budget.is_spent());
        drop(one);
        assert!(!budget.is_spent() && other.grow(60));
    }

    #[test]
    fn an_answer_counts_until_the_last_part_of_it_is_gone() {
        let budget = budget(100_000);
        let answer = budget.answer(vec![0; 80_000].into()).unwrap();
        let part = answer.slice(10..20);
        drop(answer);
        assert!(budget.answer(vec![0; 80_000].into()).is_none());
        // A small one is sent all the same.
        assert!(budget.answer(vec![0; 50_000].into()).is_some());
        drop(part);
        assert!(budget.answer(vec![0; 80_000].into()).is_some());
    }
}
