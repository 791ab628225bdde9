//! Fair queue for programs: limits how many run at once, with callers in rotation and each caller's
//! calls in order.
//!
//! Two rules keep one caller from blocking the others:
//!
//! - One caller runs at most one program less than the limit, so a caller with any number of slow
//!   programs leaves a slot for the others. With a limit of one this does not apply.
//! - When the queue is full, a call of a caller with at least two fewer waiting calls than the
//!   longest waiting list replaces the newest call of that list, which is refused, as it would have
//!   been had the other come first. So with `n` callers, one with fewer than `room / n` waiting
//!   calls always gets in (the others share more than `n - 1` times that, so one of them has two
//!   more), and never more than `room` calls wait in all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A fair limit on running programs. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct RunQueue(Arc<QueueShared>);

/// Permission to run. When it is dropped, the next call gets it.
#[derive(Debug)]
pub(crate) struct Permit {
    shared: Arc<QueueShared>,
    /// The caller whose share it counts towards.
    caller: Arc<str>,
}

/// The queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls wait for their turn already ({waiting}); try again later")]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

#[derive(Debug)]
struct QueueShared {
    /// How many calls may wait.
    room: usize,
    /// How many programs one caller may run at once.
    share: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Unused permits. Invariant: zero while a caller waits that runs less than its share.
    free: usize,
    /// How many programs each caller runs. Invariant: no count is zero, so there are no more
    /// entries than permits.
    running: BTreeMap<Arc<str>, usize>,
    /// The waiting callers, next one first. Invariant: each has a waiting call and is listed once.
    callers: VecDeque<Caller>,
    waiting: usize,
    next_ticket: u64,
}

#[derive(Debug)]
struct Caller {
    name: Arc<str>,
    calls: VecDeque<WaitingCall>,
}

#[derive(Debug)]
struct WaitingCall {
    ticket: u64,
    turn: oneshot::Sender<Permit>,
}

impl RunQueue {
    /// A queue that runs `runs` programs at once, with room for `waiting` calls.
    pub(crate) fn new(runs: usize, waiting: usize) -> Self {
        let runs = runs.max(1);
        let state = State {
            free: runs,
            running: BTreeMap::new(),
            callers: VecDeque::new(),
            waiting: 0,
            next_ticket: 0,
        };
        let share = (runs - 1).max(1);
        Self(Arc::new(QueueShared { room: waiting, share, state: Mutex::new(state) }))
    }

    /// Waits for this caller's turn.
    ///
    /// Cancel-safe: a dropped call leaves the queue, and a permit that arrives too late passes on.
    ///
    /// # Errors
    ///
    /// The queue is full, or callers with fewer waiting calls replaced this one.
    pub(crate) async fn enter(&self, caller: &str) -> Result<Permit, Full> {
        let full = Full { waiting: self.0.room };
        let (place, turn) = {
            let mut state = self.0.lock();
            if state.free > 0 && state.runs(caller) < self.0.share {
                let caller = Arc::from(caller);
                state.start(&caller);
                return Ok(Permit { shared: self.0.clone(), caller });
            }
            if state.waiting >= self.0.room && !state.displace(caller) {
                return Err(full);
            }
            let (sender, turn) = oneshot::channel();
            let ticket = state.push(caller, sender);
            (QueuePlace { shared: &self.0, ticket }, turn)
        };
        let permit = turn.await;
        drop(place);
        permit.map_err(|_| full)
    }

    /// How many calls are waiting.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.0.lock().waiting
    }
}

impl QueueShared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// How many programs this caller runs.
    fn runs(&self, caller: &str) -> usize {
        self.running.get(caller).copied().unwrap_or(0)
    }

    fn start(&mut self, caller: &Arc<str>) {
        self.free -= 1;
        *self.running.entry(caller.clone()).or_default() += 1;
    }

    fn end(&mut self, caller: &Arc<str>) {
        self.free += 1;
        if let Some(runs) = self.running.get_mut(caller) {
            *runs -= 1;
            if *runs == 0 {
                self.running.remove(caller);
            }
        }
    }

    /// Makes room for this caller if another has at least two more waiting calls. Afterwards the
    /// other still has no fewer, so two callers never displace each other in turn.
    fn displace(&mut self, caller: &str) -> bool {
        let own = self.callers.iter().find(|waiting| &*waiting.name == caller);
        let own = own.map_or(0, |waiting| waiting.calls.len());
        let most = self.callers.iter_mut().max_by_key(|waiting| waiting.calls.len());
        let Some(most) = most.filter(|most| most.calls.len() >= own + 2) else {
            return false;
        };
        // Dropping the sender notifies the call. Its caller has another call left, so it stays in
        // the rotation.
        most.calls.pop_back();
        self.waiting -= 1;
        true
    }

    fn push(&mut self, caller: &str, turn: oneshot::Sender<Permit>) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting += 1;
        let call = WaitingCall { ticket, turn };
        if let Some(waiting) = self.callers.iter_mut().find(|waiting| &*waiting.name == caller) {
            waiting.calls.push_back(call);
        } else {
            let calls = VecDeque::from([call]);
            self.callers.push_back(Caller { name: Arc::from(caller), calls });
        }
        ticket
    }

    /// The first call of the next caller that runs less than its share. The caller moves to the end
    /// if it has more calls; callers that are passed over keep their position.
    fn pop(&mut self, share: usize) -> Option<(Arc<str>, WaitingCall)> {
        let next = self.callers.iter().position(|caller| self.runs(&caller.name) < share)?;
        let mut caller = self.callers.remove(next)?;
        let call = caller.calls.pop_front()?;
        let name = caller.name.clone();
        if !caller.calls.is_empty() {
            self.callers.push_back(caller);
        }
        self.waiting -= 1;
        Some((name, call))
    }

    fn remove(&mut self, ticket: u64) {
        for caller in &mut self.callers {
            if let Some(at) = caller.calls.iter().position(|call| call.ticket == ticket) {
                caller.calls.remove(at);
                self.waiting -= 1;
            }
        }
        self.callers.retain(|caller| !caller.calls.is_empty());
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut state = self.shared.lock();
            state.end(&self.caller);
            // At most one: either this was the only free permit, or the others are free because
            // only this caller waits, and it now has room for one more.
            let next = state.pop(self.shared.share);
            if let Some((caller, _)) = &next {
                state.start(caller);
            }
            next
        };
        if let Some((caller, call)) = next {
            // If the caller has just left, the permit comes back and passes on when it is dropped.
            drop(call.turn.send(Permit { shared: self.shared.clone(), caller }));
        }
    }
}

/// A position in the queue, given up on drop.
struct QueuePlace<'a> {
    shared: &'a QueueShared,
    ticket: u64,
}

impl Drop for QueuePlace<'_> {
    fn drop(&mut self) {
        self.shared.lock().remove(self.ticket);
    }
}

#[cfg(test)]
mod tests;
