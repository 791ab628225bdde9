//! Whose turn it is to run a program: so many at once, callers in rotation, each one's calls in
//! order.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// A fair limit on what runs at once. Cloning is cheap and every clone is the same queue.
#[derive(Clone, Debug)]
pub(crate) struct Queue(Arc<Shared>);

/// The right to run. It passes to whoever is next when it is dropped.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Shared>);

/// No place is left to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("too many calls wait for their turn already ({waiting}); try again later")]
pub(crate) struct Full {
    pub(crate) waiting: usize,
}

#[derive(Debug)]
struct Shared {
    /// How many may wait.
    room: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Permits that nobody has. Invariant: none while somebody waits.
    free: usize,
    /// The callers that wait, the next one first. Invariant: each has a call that waits, and
    /// stands here once.
    callers: VecDeque<Caller>,
    waiting: usize,
    next_ticket: u64,
}

#[derive(Debug)]
struct Caller {
    name: String,
    calls: VecDeque<Call>,
}

#[derive(Debug)]
struct Call {
    ticket: u64,
    turn: oneshot::Sender<Permit>,
}

impl Queue {
    /// So many run at once, and so many may wait.
    pub(crate) fn new(runs: usize, waiting: usize) -> Self {
        let state =
            State { free: runs.max(1), callers: VecDeque::new(), waiting: 0, next_ticket: 0 };
        Self(Arc::new(Shared { room: waiting, state: Mutex::new(state) }))
    }

    /// Waits for this caller's turn.
    ///
    /// Cancel-safe: who stops waiting frees the place, and a turn that came too late passes on.
    ///
    /// # Errors
    ///
    /// Too many wait already.
    pub(crate) async fn enter(&self, caller: &str) -> Result<Permit, Full> {
        let (place, turn) = {
            let mut state = self.0.lock();
            if state.free > 0 {
                state.free -= 1;
                return Ok(Permit(self.0.clone()));
            }
            if state.waiting >= self.0.room {
                return Err(Full { waiting: state.waiting });
            }
            let (sender, turn) = oneshot::channel();
            let ticket = state.push(caller, sender);
            (Place { shared: &self.0, ticket }, turn)
        };
        let permit = turn.await;
        drop(place);
        permit.map_err(|_| Full { waiting: self.0.lock().waiting })
    }

    /// How many wait now.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.0.lock().waiting
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, caller: &str, turn: oneshot::Sender<Permit>) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.waiting += 1;
        let call = Call { ticket, turn };
        if let Some(waiting) = self.callers.iter_mut().find(|waiting| waiting.name == caller) {
            waiting.calls.push_back(call);
        } else {
            let calls = VecDeque::from([call]);
            self.callers.push_back(Caller { name: caller.to_owned(), calls });
        }
        ticket
    }

    /// The next caller's first call; the caller goes to the end of the line if it has more.
    fn pop(&mut self) -> Option<Call> {
        let mut caller = self.callers.pop_front()?;
        let call = caller.calls.pop_front();
        if !caller.calls.is_empty() {
            self.callers.push_back(caller);
        }
        self.waiting -= usize::from(call.is_some());
        call
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
            let mut state = self.0.lock();
            let next = state.pop();
            state.free += usize::from(next.is_none());
            next
        };
        if let Some(call) = next {
            // A permit that comes back, for its caller has just left, passes on as it is dropped.
            drop(call.turn.send(Permit(self.0.clone())));
        }
    }
}

/// A place in the line, given up when it is dropped.
struct Place<'a> {
    shared: &'a Shared,
    ticket: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.shared.lock().remove(self.ticket);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::pin::Pin;
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;

    use super::*;

    type Entering<'a> = Pin<Box<dyn Future<Output = Result<Permit, Full>> + 'a>>;

    fn poll(entering: &mut Entering<'_>) -> Poll<Result<Permit, Full>> {
        entering.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    fn begin<'a>(queue: &'a Queue, caller: &'a str) -> Entering<'a> {
        let mut entering: Entering<'a> = Box::pin(queue.enter(caller));
        assert!(poll(&mut entering).is_pending());
        entering
    }

    #[tokio::test]
    async fn callers_take_turns_and_each_ones_calls_keep_their_order() {
        let queue = Queue::new(1, 10);
        let mut permit = Some(queue.enter("x").await.unwrap());
        let names = ["a", "a", "a", "b", "c", "b"];
        let mut waiting: Vec<_> = names.iter().map(|name| Some(begin(&queue, name))).collect();
        let mut order = Vec::new();
        while order.len() < names.len() {
            drop(permit.take());
            for (index, slot) in waiting.iter_mut().enumerate() {
                if let Some(entering) = slot
                    && let Poll::Ready(entered) = poll(entering)
                {
                    assert!(permit.replace(entered.unwrap()).is_none(), "one at once");
                    order.push(index);
                    *slot = None;
                }
            }
        }
        assert_eq!(order, [0, 3, 4, 1, 5, 2]);
    }

    #[tokio::test]
    async fn one_too_many_is_told_how_many_wait() {
        let queue = Queue::new(1, 2);
        let _permit = queue.enter("a").await.unwrap();
        let (_first, _second) = (begin(&queue, "a"), begin(&queue, "b"));
        assert_eq!(queue.enter("c").await.unwrap_err(), Full { waiting: 2 });
    }

    #[tokio::test]
    async fn who_stops_waiting_frees_the_place() {
        let queue = Queue::new(1, 1);
        let permit = queue.enter("a").await.unwrap();
        drop(begin(&queue, "b"));
        assert_eq!(queue.waiting(), 0);
        let mut entering = begin(&queue, "c");
        drop(permit);
        assert!(poll(&mut entering).is_ready());
    }

    #[tokio::test]
    async fn a_turn_nobody_took_passes_on() {
        let queue = Queue::new(1, 2);
        let permit = queue.enter("a").await.unwrap();
        let (gone, mut patient) = (begin(&queue, "b"), begin(&queue, "c"));
        drop(permit);
        assert!(poll(&mut patient).is_pending(), "it is b's turn");
        drop(gone);
        assert!(poll(&mut patient).is_ready());
    }

    #[derive(Clone, Debug)]
    enum Step {
        Enter(u8),
        Leave(usize),
        GiveUp(usize),
        Look,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u8..4).prop_map(Step::Enter),
            (0_usize..8).prop_map(Step::Leave),
            (0_usize..8).prop_map(Step::GiveUp),
            Just(Step::Look),
        ]
    }

    proptest! {
        #[test]
        fn no_permit_is_lost_or_made(
            runs in 1_usize..4,
            steps in proptest::collection::vec(step(), 0..60),
        ) {
            const NAMES: [&str; 4] = ["a", "b", "c", "d"];
            let queue = Queue::new(runs, 6);
            let (mut running, mut waiting) = (Vec::new(), BTreeMap::new());
            for (index, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Enter(name) => {
                        let mut entering: Entering<'_> =
                            Box::pin(queue.enter(NAMES[usize::from(name)]));
                        match poll(&mut entering) {
                            Poll::Ready(Ok(permit)) => running.push(permit),
                            Poll::Ready(Err(full)) => prop_assert_eq!(full.waiting, 6),
                            Poll::Pending => drop(waiting.insert(index, entering)),
                        }
                    }
                    Step::Leave(at) if at < running.len() => drop(running.remove(at)),
                    Step::GiveUp(at) => {
                        let key = waiting.keys().nth(at).copied();
                        drop(key.and_then(|key| waiting.remove(&key)));
                    }
                    Step::Leave(_) | Step::Look => waiting.retain(|_, entering| {
                        match poll(entering) {
                            Poll::Ready(entered) => {
                                running.push(entered.unwrap());
                                false
                            }
                            Poll::Pending => true,
                        }
                    }),
                }
                prop_assert!(running.len() <= runs);
            }
            drop((running, waiting));
            let state = queue.0.lock();
            prop_assert_eq!((state.free, state.waiting, state.callers.len()), (runs, 0, 0));
        }
    }
}
