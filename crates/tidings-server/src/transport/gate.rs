//! The open connections, and which are closed when there are too many.
//!
//! A connection is *silent* while it has no request under way and no open stream. It is a
//! *stranger's* until a request on it was admitted: its host, origin and token are valid. When the
//! server is full, the longest silent connections are closed, those of strangers first, so idle
//! connections never keep a new client out. A busy connection is never closed for another. If a
//! token is needed, clients without it have half of the connections. If there are several tokens,
//! so has each of them.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use http::Extensions;
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tracing::warn;

use crate::metrics::Metrics;
use crate::tokens::{Admitted, TokenHash, Tokens};
use crate::transport::seldom::Seldom;
use crate::transport::shares::{Origin, Scarce, Shares, TakenPlace};

/// A connection without a complete request is closed after this.
const FIRST_REQUEST: Duration = Duration::from_secs(10);
/// When the server is full, this part of all connections is closed at once if they are silent,
/// because each search for them costs time.
const BATCH: usize = 64;
/// The number of requests under way on a closed connection, or more: none begins any more.
const CLOSED: usize = usize::MAX / 2;

/// All connections of one server.
#[derive(Debug)]
pub(crate) struct Gate {
    limit: usize,
    shares: Arc<Shares>,
    tokens: Tokens,
    metrics: Arc<Metrics>,
    /// How many connections are strangers'.
    strangers: Arc<AtomicUsize>,
    began: Instant,
    full: Seldom,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    open: HashMap<u64, Arc<Guest>>,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Guest {
    /// Requests and streams under way; [`CLOSED`] once it is closed.
    busy: AtomicUsize,
    /// Whether it ever had a request.
    begun: AtomicBool,
    /// Whether no request was admitted yet; then it counts as a stranger's.
    stranger: AtomicBool,
    strangers: Arc<AtomicUsize>,
    /// When it opened or was last busy, in milliseconds since the gate began.
    silent_since: AtomicU64,
    origin: Option<Origin>,
    place: Mutex<Option<TakenPlace>>,
    /// The token of its latest request, and the place that it takes from that token's share.
    own: Mutex<Option<(TokenHash, TakenPlace)>>,
    task: Mutex<Task>,
}

/// The task that serves a connection.
#[derive(Debug)]
enum Task {
    /// It has not been noted yet.
    Unknown,
    /// This ends it.
    Known(AbortHandle),
    /// A stream has left it. To keep its handle would keep its memory.
    Over,
}

impl Gate {
    pub(crate) fn new(
        limit: usize,
        shares: Arc<Shares>,
        tokens: Tokens,
        metrics: Arc<Metrics>,
    ) -> Arc<Self> {
        let (began, full, state) = (Instant::now(), Seldom::default(), Mutex::default());
        let strangers = Arc::default();
        Arc::new(Self { limit, shares, tokens, metrics, strangers, began, full, state })
    }

    /// Lets a connection in; `None` if the server is full.
    pub(crate) fn enter(self: &Arc<Self>, address: Option<IpAddr>) -> Option<Admission> {
        let origin = address.map(Origin::of);
        let mut state = self.lock();
        let take = || self.shares.take(origin, Scarce::Connections, self.limit);
        let place = take().or_else(|| {
            self.make_room(&mut state, 1, |guest| guest.origin == origin);
            take()
        });
        let Some(place) = place else {
            self.turn_away(1);
            return None;
        };
        if state.open.len() >= self.limit {
            self.make_room(&mut state, (self.limit / BATCH).max(1), |_| true);
        } else if self.strangers.load(Ordering::Relaxed) >= (self.limit / 2).max(1)
            && self.tokens.are_needed()
        {
            // A busy stranger may be refused in a moment, so the newcomer is let in.
            self.make_room(&mut state, (self.limit / BATCH).max(1), Guest::is_stranger);
        }
        if state.open.len() >= self.limit {
            self.turn_away(1);
            return None;
        }
        state.next += 1;
        let id = state.next;
        let guest = Arc::new(Guest {
            busy: AtomicUsize::new(0),
            begun: AtomicBool::new(false),
            stranger: AtomicBool::new(true),
            strangers: self.strangers.clone(),
            silent_since: AtomicU64::new(self.now()),
            origin,
            place: Mutex::new(Some(place)),
            own: Mutex::default(),
            task: Mutex::new(Task::Unknown),
        });
        self.strangers.fetch_add(1, Ordering::Relaxed);
        state.open.insert(id, guest.clone());
        self.count(&state);
        drop(state);
        Some(Admission { gate: self.clone(), id, guest })
    }

    /// Notes that a request was admitted: its connection is not a stranger's any more, and counts for
    /// its token. False if that token has its share of connections, and all are busy.
    pub(crate) fn admit(&self, extensions: &Extensions) -> bool {
        admit(extensions);
        let guest = extensions.get::<Weak<Guest>>().and_then(Weak::upgrade);
        let (Some(guest), Some(admitted)) = (guest, extensions.get::<Admitted>()) else {
            return true;
        };
        let Some(token) = admitted.token else { return true };
        if guest.counts_for(token) {
            return true;
        }
        let own = admitted.identity.limits.connections;
        let share = own.unwrap_or_else(|| self.tokens.share(self.limit));
        let take = || self.shares.take_own(Some(token), Scarce::Connections, Some(share));
        let place = take().or_else(|| {
            self.make_room(&mut self.lock(), 1, |other| other.counts_for(token));
            take()
        });
        let Some(place) = place else {
            self.turn_away(1);
            return false;
        };
        *guest.own() = Some((token, place));
        true
    }

    /// Closes connections without a request in time.
    pub(crate) fn sweep(&self) {
        let mut state = self.lock();
        let limit = u64::try_from(FIRST_REQUEST.as_millis()).unwrap_or(u64::MAX);
        let oldest = self.now().saturating_sub(limit);
        state.open.retain(|_, guest| {
            let is_late = !guest.begun.load(Ordering::Relaxed)
                && guest.silent_since.load(Ordering::Relaxed) < oldest;
            !(is_late && guest.close())
        });
        self.count(&state);
    }

    /// Closes silent connections, because the system has no file descriptors left.
    pub(crate) fn relieve(&self) {
        let mut state = self.lock();
        self.make_room(&mut state, (self.limit / BATCH).max(1), |_| true);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.lock().open.len() >= self.limit
    }

    fn make_room(&self, state: &mut State, count: usize, may_go: impl Fn(&Guest) -> bool) {
        let silent = state.open.iter().filter(|(_, guest)| guest.is_silent() && may_go(guest));
        let mut silent: Vec<_> = silent.map(|(id, guest)| (guest.rank(), *id)).collect();
        let count = count.min(silent.len());
        if count == 0 {
            return;
        }
        silent.select_nth_unstable(count - 1);
        let mut closed = 0;
        for (_, id) in &silent[..count] {
            // One that became busy meanwhile stays.
            if state.open.get(id).is_some_and(|guest| guest.close()) {
                state.open.remove(id);
                closed += 1;
            }
        }
        self.turn_away(closed);
        self.count(state);
    }

    fn turn_away(&self, count: usize) {
        self.metrics.turned_away.inc_by(count as u64);
        if let Some(left_out) = self.full.now() {
            let limit = self.limit;
            warn!(
                limit,
                left_out, "too many connections: silent ones are closed, or new ones refused"
            );
        }
    }

    fn count(&self, state: &State) {
        self.metrics.connections.set(i64::try_from(state.open.len()).unwrap_or(i64::MAX));
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the gate")
    }
}

impl Guest {
    fn is_silent(&self) -> bool {
        self.busy.load(Ordering::Relaxed) == 0
    }

    fn is_stranger(&self) -> bool {
        self.stranger.load(Ordering::Relaxed)
    }

    /// The order of closing: the lowest first.
    fn rank(&self) -> (bool, u64) {
        (!self.is_stranger(), self.silent_since.load(Ordering::Relaxed))
    }

    /// It does not count as a stranger's any more.
    fn known(&self) {
        if self.stranger.swap(false, Ordering::Relaxed) {
            self.strangers.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether its latest request had this token.
    fn counts_for(&self, token: TokenHash) -> bool {
        self.own().as_ref().is_some_and(|(latest, _)| *latest == token)
    }

    fn own(&self) -> MutexGuard<'_, Option<(TokenHash, TakenPlace)>> {
        self.own.lock().expect("no code panics while it holds a place")
    }

    /// Closes it; false if it is busy. No request can begin in between.
    fn close(&self) -> bool {
        if self.busy.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            return false;
        }
        self.known();
        if let Task::Known(task) = &*self.task() {
            task.abort();
        }
        // Its places are free at once; the task ends in its own time.
        drop(self.place.lock().expect("no code panics while it holds a place").take());
        drop(self.own().take());
        true
    }

    fn task(&self) -> MutexGuard<'_, Task> {
        self.task.lock().expect("no code panics while it holds a task")
    }
}

/// The place of a connection, until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    gate: Arc<Gate>,
    id: u64,
    guest: Arc<Guest>,
}

impl Admission {
    /// The task to end when the connection is closed.
    pub(crate) fn guest(&self) -> &Arc<Guest> {
        &self.guest
    }

    /// Begins a request, which is under way until the returned guard is dropped. Its extensions name
    /// its connection, for [`admit`]. `None` if the connection is closed already.
    pub(crate) fn begin(self: &Arc<Self>, extensions: &mut Extensions) -> Option<Busy> {
        let more = |busy| (busy < CLOSED).then_some(busy + 1);
        self.guest.busy.fetch_update(Ordering::AcqRel, Ordering::Relaxed, more).ok()?;
        extensions.insert(Arc::downgrade(&self.guest));
        self.guest.begun.store(true, Ordering::Relaxed);
        Some(Busy { entry: self.clone() })
    }
}

impl Guest {
    /// Sets the task that serves the connection.
    pub(crate) fn served_by(&self, task: AbortHandle) {
        let mut known = self.task();
        if matches!(*known, Task::Unknown) {
            *known = Task::Known(task);
        }
    }

    /// A stream leaves the task, which ends now. The connection is busy as long as the stream is.
    pub(crate) fn leave_task(&self) {
        *self.task() = Task::Over;
    }
}

/// Notes that a request was admitted: its connection is not a stranger's any more.
pub(crate) fn admit(extensions: &Extensions) {
    if let Some(guest) = extensions.get::<Weak<Guest>>().and_then(Weak::upgrade) {
        guest.known();
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.guest.known();
        let mut state = self.gate.lock();
        state.open.remove(&self.id);
        self.gate.count(&state);
    }
}

/// A request or stream under way on a connection.
#[derive(Debug)]
pub(crate) struct Busy {
    entry: Arc<Admission>,
}

impl Drop for Busy {
    fn drop(&mut self) {
        let (gate, guest) = (&self.entry.gate, &self.entry.guest);
        guest.silent_since.store(gate.now(), Ordering::Relaxed);
        guest.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Identity;
    use crate::labels::Labels;
    use crate::tokens::{Token, TokenEntry};

    fn gate_with(limit: usize, tokens: Tokens) -> Arc<Gate> {
        Gate::new(limit, Arc::default(), tokens, Arc::new(Metrics::new()))
    }

    fn gate(limit: usize) -> Arc<Gate> {
        gate_with(limit, Tokens::default())
    }

    const LOOPBACK: Option<IpAddr> = Some(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn is_open(gate: &Gate, entry: &Admission) -> bool {
        gate.lock().open.contains_key(&entry.id)
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_silent_connection_goes_when_the_server_is_full() {
        let gate = gate(3);
        let enter = || Arc::new(gate.enter(LOOPBACK).unwrap());
        let (one, two, three) = (enter(), enter(), enter());
        let busy = one.begin(&mut Extensions::new());
        drop(two.begin(&mut Extensions::new()));
        tokio::time::advance(Duration::from_secs(1)).await;
        drop(three.begin(&mut Extensions::new()));
        let four = enter();
        assert!(is_open(&gate, &one) && !is_open(&gate, &two) && is_open(&gate, &three));
        let (_three, _four) =
            (three.begin(&mut Extensions::new()), four.begin(&mut Extensions::new()));
        // All connections are busy, so the server is full.
        assert!(gate.enter(LOOPBACK).is_none());
        drop(busy);
        assert!(gate.enter(LOOPBACK).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_is_closed_after_ten_seconds() {
        let gate = gate(3);
        let (late, served) = (gate.enter(None).unwrap(), Arc::new(gate.enter(None).unwrap()));
        drop(served.begin(&mut Extensions::new()));
        tokio::time::advance(FIRST_REQUEST).await;
        gate.sweep();
        assert!(is_open(&gate, &late));
        tokio::time::advance(Duration::from_millis(1)).await;
        gate.sweep();
        assert!(!is_open(&gate, &late) && is_open(&gate, &served));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_beyond_its_share_loses_its_own_connections_only() {
        let gate = gate(4);
        let far = Some(IpAddr::from([192, 0, 2, 1]));
        let near = gate.enter(LOOPBACK).unwrap();
        let (one, two) = (Arc::new(gate.enter(far).unwrap()), Arc::new(gate.enter(far).unwrap()));
        let (_one, busy) = (one.begin(&mut Extensions::new()), two.begin(&mut Extensions::new()));
        assert!(gate.enter(far).is_none());
        drop(busy);
        let three = gate.enter(far).unwrap();
        assert!(is_open(&gate, &near) && is_open(&gate, &one) && is_open(&gate, &three));
        assert!(!is_open(&gate, &two));
    }

    #[tokio::test(start_paused = true)]
    async fn no_request_begins_on_a_closed_connection() {
        let gate = gate(1);
        let one = Arc::new(gate.enter(LOOPBACK).unwrap());
        let busy = one.begin(&mut Extensions::new());
        assert!(!one.guest().close(), "it is busy");
        drop(busy);
        let _two = gate.enter(LOOPBACK).unwrap();
        assert!(one.begin(&mut Extensions::new()).is_none());
        drop(one);
        assert_eq!(gate.lock().open.len(), 1);
    }

    /// A connection on which a request was admitted.
    fn known(gate: &Arc<Gate>) -> Arc<Admission> {
        let (entry, mut extensions) = (Arc::new(gate.enter(LOOPBACK).unwrap()), Extensions::new());
        drop(entry.begin(&mut extensions));
        admit(&extensions);
        entry
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_go_before_those_who_were_admitted() {
        let gate = gate(3);
        let one = known(&gate);
        tokio::time::advance(Duration::from_secs(1)).await;
        let (two, three) = (gate.enter(LOOPBACK).unwrap(), gate.enter(LOOPBACK).unwrap());
        let four = gate.enter(LOOPBACK).unwrap();
        assert!(is_open(&gate, &one) && is_open(&gate, &four));
        assert!(is_open(&gate, &two) != is_open(&gate, &three));
    }

    #[tokio::test(start_paused = true)]
    async fn those_without_the_token_have_half_of_the_connections() {
        let token = Token::new("0123456789abcdef").unwrap();
        let gate = gate_with(8, token.into());
        let known: Vec<_> = (0..3).map(|_| known(&gate)).collect();
        let strangers: Vec<_> = (0..100).map(|_| gate.enter(LOOPBACK).unwrap()).collect();
        assert_eq!(strangers.iter().filter(|entry| is_open(&gate, entry)).count(), 4);
        assert_eq!(gate.strangers.load(Ordering::Relaxed), 4);
        assert!(known.iter().all(|entry| is_open(&gate, entry)));
        drop((known, strangers));
        assert_eq!(gate.strangers.load(Ordering::Relaxed), 0);
    }

    fn entry(name: &str, connections: Option<usize>) -> TokenEntry {
        let hash = TokenHash::of(&Token::new(&name.repeat(16)).unwrap());
        let mut identity = Identity::new(name, Labels::NONE);
        identity.limits.connections = connections;
        TokenEntry::new(hash, identity)
    }

    /// A new connection with a request of this token under way, and whether it was admitted.
    fn busy(gate: &Arc<Gate>, entry: &TokenEntry) -> ((Arc<Admission>, Busy), bool) {
        let connection = Arc::new(gate.enter(LOOPBACK).unwrap());
        let mut extensions = Extensions::new();
        let busy = connection.begin(&mut extensions).unwrap();
        let TokenEntry { hash, identity } = entry.clone();
        extensions.insert(Admitted { identity, token: Some(hash) });
        let is_admitted = gate.admit(&extensions);
        ((connection, busy), is_admitted)
    }

    #[tokio::test(start_paused = true)]
    async fn one_of_several_tokens_has_half_of_the_connections() {
        let (ada, bob, eve) = (entry("ada", None), entry("bob", None), entry("eve", Some(1)));
        let tokens = [&ada, &bob, &eve].into_iter().cloned().collect();
        let gate = gate_with(8, tokens);
        let held: Vec<_> = (0..4).map(|_| busy(&gate, &ada)).collect();
        assert!(held.iter().all(|(_, is_admitted)| *is_admitted));
        let (beyond, is_admitted) = busy(&gate, &ada);
        assert!(!is_admitted, "all of its connections are busy");
        drop(beyond);
        let (theirs, is_admitted) = busy(&gate, &bob);
        assert!(is_admitted, "the rest is for others");
        // A silent connection of its own makes room; those of others stay.
        let mut held = held.into_iter().map(|(held, _)| held);
        let (first, silent) = held.next().unwrap();
        drop(silent);
        let (bobs, silent) = theirs;
        drop(silent);
        let (_more, is_admitted) = busy(&gate, &ada);
        assert!(is_admitted && !is_open(&gate, &first) && is_open(&gate, &bobs));
        // A limit of its own counts instead.
        let (one, other) = (busy(&gate, &eve), busy(&gate, &eve));
        assert!(one.1 && !other.1);
    }

    #[tokio::test(start_paused = true)]
    async fn the_only_token_may_have_every_connection() {
        let ada = entry("ada", None);
        let gate = gate_with(4, [ada.clone()].into_iter().collect());
        let held: Vec<_> = (0..4).map(|_| busy(&gate, &ada)).collect();
        assert!(held.iter().all(|(_, is_admitted)| *is_admitted));
        drop(held);
        assert!(busy(&gate, &ada).1, "what ended is free again");
    }
}
