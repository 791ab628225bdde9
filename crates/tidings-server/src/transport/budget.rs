//! One budget in bytes for everything in flight: bodies, the messages built from them, and answers
//! not read yet.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use bytes::Bytes;

use crate::metrics::Metrics;
use crate::transport::call::PendingAnswer;
use crate::transport::shares::Origin;

/// Smaller requests may use a reserve of a quarter of the budget, after large ones used up the rest.
const SMALL: usize = 64 << 10;

/// The bytes that may be in flight at once.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: usize,
    used: AtomicUsize,
    /// The use by addresses that may not have all of it.
    held: Mutex<HashMap<Origin, usize>>,
    /// Answers without a reader whose client may reconnect, oldest first. They are dropped before a
    /// request is refused.
    kept: Mutex<VecDeque<UnreadAnswer>>,
    metrics: Arc<Metrics>,
}

/// An answer without a reader, and its client's address.
type UnreadAnswer = (Option<Origin>, Weak<PendingAnswer>);

impl Budget {
    pub(crate) fn new(limit: usize, metrics: Arc<Metrics>) -> Arc<Self> {
        let (used, held, kept) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        Arc::new(Self { limit, used, held, kept, metrics })
    }

    /// An empty share of the budget.
    pub(crate) fn share(self: &Arc<Self>, origin: Option<Origin>) -> Share {
        let origin = origin.filter(|origin| origin.share(self.limit) < self.limit);
        Share { budget: self.clone(), origin, bytes: 0 }
    }

    /// Whether most of it is used, so that the next large request is refused.
    pub(crate) fn is_spent(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.limit / 10 * 9
    }

    /// Counts an answer until its last byte is handed to the transport; `None` if the budget is used
    /// up.
    pub(crate) fn answer(self: &Arc<Self>, origin: Option<Origin>, bytes: Bytes) -> Option<Bytes> {
        let mut share = self.share(origin);
        share.grow(bytes.len()).then(|| share.carry(bytes))
    }

    /// As [`Self::answer`], even beyond the budget: for answers that others wait for.
    pub(crate) fn question(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        let mut share = self.share(None);
        share.add(bytes.len());
        share.carry(bytes)
    }

    /// Notes an answer whose reader left. It is dropped first when the budget is used up.
    pub(crate) fn keep(&self, origin: Option<Origin>, call: &Arc<PendingAnswer>) {
        let mut kept = self.kept();
        // Sessions forget answers after a while, about in this order.
        while kept.front().is_some_and(|(_, oldest)| oldest.strong_count() == 0) {
            kept.pop_front();
        }
        kept.push_back((origin, Arc::downgrade(call)));
    }

    /// Drops the oldest answer without a reader, of one address or of all; false if there is none.
    fn drop_kept(&self, origin: Option<Origin>) -> bool {
        let oldest = {
            let mut kept = self.kept();
            let at = kept.iter().position(|(of, _)| origin.is_none() || *of == origin);
            at.and_then(|at| kept.remove(at))
        };
        let Some((_, oldest)) = oldest else { return false };
        if let Some(call) = oldest.upgrade() {
            call.forget();
        }
        true
    }

    /// Takes bytes of the budget, and returns how many were used before; `None` if too few are left.
    fn take(&self, bytes: usize, limit: usize) -> Option<usize> {
        loop {
            let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(bytes).filter(|used| *used <= limit)
            });
            match taken {
                Ok(before) => return Some(before),
                Err(_) if self.drop_kept(None) => {}
                Err(_) => return None,
            }
        }
    }

    fn changed(&self, used: usize) {
        self.metrics.in_flight.set(i64::try_from(used).unwrap_or(i64::MAX));
    }

    fn held(&self) -> MutexGuard<'_, HashMap<Origin, usize>> {
        self.held.lock().expect("no code panics while it holds the budget")
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<UnreadAnswer>> {
        self.kept.lock().expect("no code panics while it holds the kept answers")
    }
}

/// The bytes of one request or answer; given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    /// The address, if it may not have the whole budget.
    origin: Option<Origin>,
    bytes: usize,
}

impl Share {
    /// Takes more; false if too little is left.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        let budget = &self.budget;
        let is_small = self.bytes + bytes <= SMALL;
        let limit = if is_small { budget.limit / 4 * 5 } else { budget.limit };
        while !self.take_own(bytes, limit) {
            if !budget.drop_kept(self.origin) {
                budget.metrics.over_budget.inc();
                return false;
            }
        }
        let Some(before) = budget.take(bytes, limit) else {
            self.give_back(bytes);
            budget.metrics.over_budget.inc();
            return false;
        };
        self.bytes += bytes;
        self.budget.changed(before + bytes);
        true
    }

    /// Takes bytes of its address's part; false if too few are left.
    fn take_own(&self, bytes: usize, limit: usize) -> bool {
        let Some(origin) = self.origin else { return true };
        let mut held = self.budget.held();
        let own = held.get(&origin).copied().unwrap_or(0) + bytes;
        let has_room = own <= origin.share(limit);
        if has_room {
            held.insert(origin, own);
        }
        has_room
    }

    /// Takes more, even beyond the budget.
    fn add(&mut self, bytes: usize) {
        let before = self.budget.used.fetch_add(bytes, Ordering::Relaxed);
        self.bytes += bytes;
        self.budget.changed(before + bytes);
    }

    /// Bytes that are counted until their last clone is dropped.
    fn carry(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(Carried { bytes, _share: self })
    }

    /// Reduces the use of its address.
    fn give_back(&self, bytes: usize) {
        let Some(origin) = self.origin else { return };
        let mut held = self.budget.held();
        if let Some(own) = held.get_mut(&origin) {
            *own -= bytes;
            if *own == 0 {
                held.remove(&origin);
            }
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let before = self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.changed(before.saturating_sub(self.bytes));
        self.give_back(self.bytes);
    }
}

/// Bytes and their share of the budget.
struct Carried {
    bytes: Bytes,
    _share: Share,
}

impl AsRef<[u8]> for Carried {
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

    const MIB: usize = 1 << 20;

    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = budget(100 * MIB);
        let (mut one, mut other) = (budget.share(None), budget.share(None));
        assert!(one.grow(60 * MIB) && !other.grow(41 * MIB) && other.grow(40 * MIB));
        assert!(budget.is_spent());
        drop(one);
        assert!(!budget.is_spent() && other.grow(60 * MIB));
    }

    #[test]
    fn small_requests_pass_from_a_reserve() {
        let budget = budget(MIB);
        assert!(budget.share(None).grow(SMALL));
        let mut large = budget.share(None);
        assert!(large.grow(MIB));
        let mut small: Vec<_> = (0..5).map(|_| budget.share(None)).collect();
        let passed = small.iter_mut().filter_map(|small| small.grow(SMALL).then_some(())).count();
        assert_eq!(passed, 4);
        assert!(!budget.share(None).grow(SMALL + 1));
    }

    #[test]
    fn an_address_has_half_of_it() {
        let budget = budget(10 * MIB);
        let far = Some(Origin::of([192, 0, 2, 1].into()));
        let near = Some(Origin::of([127, 0, 0, 1].into()));
        let mut one = budget.share(far);
        assert!(one.grow(5 * MIB) && !budget.share(far).grow(MIB));
        assert!(budget.share(near).grow(5 * MIB));
        drop(one);
        assert!(budget.held().is_empty());
        assert!(budget.share(far).grow(5 * MIB));
    }

    #[test]
    fn an_answer_counts_until_the_last_part_of_it_is_gone() {
        let budget = budget(100_000);
        let answer = budget.answer(None, vec![0; 80_000].into()).unwrap();
        let part = answer.slice(10..20);
        drop(answer);
        assert!(budget.answer(None, vec![0; 80_000].into()).is_none());
        assert!(budget.answer(None, vec![0; 40_000].into()).is_some(), "a small one passes");
        drop(part);
        assert!(budget.answer(None, vec![0; 80_000].into()).is_some());
    }
}
