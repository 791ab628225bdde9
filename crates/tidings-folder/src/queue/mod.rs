//! Whose turn it is to run a program: so many at once, callers in rotation, each one's calls in
//! order.
//!
//! Nobody can take it all from somebody else, by two rules:
//!
//! - One caller runs at most one less than may run at once, so a caller with any number of slow
//!   programs leaves a place to the others. Where only one may run there is nothing to leave.
//! - When the room to wait is full, a call of a caller that has at least two fewer waiting than
//!   the caller with the most takes the place of that one's newest call, which is refused: as it
//!   would have been, had the other come first. So with `n` callers a caller that has fewer than
//!   `room / n` waiting always gets in (the others share more than `n - 1` times that, so one of
//!   them has two more), and never more than `room` wait in all.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A fair limit on what runs at once. Cloning is cheap and every clone is the same queue.
#[derive(Clone, Debug)]
pub(crate) struct RunQueue(Arc<QueueShared>);

/// The right to run. It passes to whoever is next when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    shared: Arc<QueueShared>,
    /// Whose share of the running it counts for.
    caller: Arc<str>,
}

/// No place is left to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls wait for their turn already ({waiting}); try again later")]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

#[derive(Debug)]
struct QueueShared {
    /// How many may wait.
    room: usize,
    /// How many of one caller may run at once.
    share: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Permits that nobody has. Invariant: none while a caller waits that runs less than its
    /// share.
    free: usize,
    /// How many each caller runs. Invariant: none is zero, so there are no more entries than
    /// permits.
    running: BTreeMap<Arc<str>, usize>,
    /// The callers that wait, the next one first. Invariant: each has a call that waits, and
    /// stands here once.
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
    /// So many run at once, and so many may wait.
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
    /// Cancel-safe: who stops waiting frees the place, and a turn that came too late passes on.
    ///
    /// # Errors
    ///
    /// Too many wait already, or came to wait meanwhile from callers with fewer calls.
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

    /// How many wait now.
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
    /// How many this caller runs.
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

    /// Makes room for this caller, if another has at least two more waiting: after that it still
    /// has no fewer, so two callers never displace each other in turn.
    fn displace(&mut self, caller: &str) -> bool {
        let own = self.callers.iter().find(|waiting| &*waiting.name == caller);
        let own = own.map_or(0, |waiting| waiting.calls.len());
        let most = self.callers.iter_mut().max_by_key(|waiting| waiting.calls.len());
        let Some(most) = most.filter(|most| most.calls.len() >= own + 2) else {
            return false;
        };
        // Dropping its turn is what tells it; it has another call left, so it keeps its place in
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

    /// The first call of the next caller that runs less than its share; the caller goes to the
    /// end of the line if it has more. Who is passed over keeps its place in the line.
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
            // One at most: either this was the only free permit, or the others are free because
            // only this caller waits, and it has now room for one more.
            let next = state.pop(self.shared.share);
            if let Some((caller, _)) = &next {
                state.start(caller);
            }
            next
        };
        if let Some((caller, call)) = next {
            // A permit that comes back, for its caller has just left, passes on as it is dropped.
            drop(call.turn.send(Permit { shared: self.shared.clone(), caller }));
        }
    }
}

/// A place in the line, given up when it is dropped.
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
