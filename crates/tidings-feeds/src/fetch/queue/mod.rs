//! One queue for each host, and places for all of them together: waiting requests are woken when
//! they may begin.

mod order;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use order::{Elapsed, Order, Rules, Standing, Ticket};

use super::failure::FetchError;
use super::random;

/// Requests do not wait for a host with a longer `Retry-After` than this.
const PATIENCE: Duration = Duration::from_secs(10);
/// A longer `Retry-After` than this does not count for other documents of the host.
const LONGEST_PAUSE: Duration = Duration::from_hours(24);

/// The queue. Cheap to clone.
#[derive(Clone)]
pub(super) struct Queue {
    state: Arc<Mutex<State>>,
    beginning: Instant,
}

struct State {
    order: Order,
    /// Invariant: one for each ticket of the order.
    bells: HashMap<Ticket, Arc<Notify>>,
}

/// A place in the queue, then at the host. It is released when it is dropped.
pub(super) struct Place {
    queue: Queue,
    ticket: Ticket,
}

impl Queue {
    pub(super) fn new(rules: Rules) -> Self {
        let state = State { order: Order::new(rules), bells: HashMap::new() };
        Self { state: Arc::new(Mutex::new(state)), beginning: Instant::now() }
    }

    /// Waits for a turn at a host. Cancel-safe: dropping this releases the place.
    pub(super) async fn turn(&self, host: &str) -> Result<Place, FetchError> {
        let (place, bell) = self.enter(host);
        loop {
            let now = self.now();
            let standing = self.lock().order.standing(place.ticket, now);
            let until = match standing {
                Standing::Started => return Ok(place),
                Standing::Paused(until) if until > now + PATIENCE => {
                    let remaining = until.saturating_sub(now);
                    return Err(FetchError::Paused { host: host.to_owned(), remaining });
                }
                Standing::Paused(until) | Standing::At(until) => until,
                Standing::Behind => {
                    bell.notified().await;
                    continue;
                }
            };
            tokio::select! {
                () = bell.notified() => {}
                () = tokio::time::sleep_until(self.beginning + until) => self.settle(place.ticket),
            }
        }
    }

    /// A host sent `Retry-After`, and this much is left. Requests that wait for it already learn so
    /// at their turn.
    pub(super) fn pause(&self, host: &str, length: Duration) {
        let until = self.now() + length.min(LONGEST_PAUSE);
        self.lock().order.pause_host(host, until);
    }

    fn enter(&self, host: &str) -> (Place, Arc<Notify>) {
        let bell = Arc::new(Notify::new());
        let ticket = {
            let mut state = self.lock();
            let ticket = state.order.enter(host, self.now());
            state.bells.insert(ticket, bell.clone());
            ticket
        };
        self.settle(ticket);
        (Place { queue: self.clone(), ticket }, bell)
    }

    /// Begins requests that may begin, and wakes them.
    fn settle(&self, ticket: Ticket) {
        self.lock().settle(self.now(), ticket);
    }

    fn now(&self) -> Elapsed {
        self.beginning.elapsed()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn settle(&mut self, now: Elapsed, ticket: Ticket) {
        let started = self.order.admit(now, random());
        for ticket in started.iter().chain([&ticket]) {
            // The first at a host keeps its time. A new first one must learn it.
            for ticket in self.order.waiting_with(*ticket).take(1).chain([*ticket]) {
                self.ring(ticket);
            }
        }
    }

    fn ring(&self, ticket: Ticket) {
        if let Some(bell) = self.bells.get(&ticket) {
            bell.notify_one();
        }
    }
}

impl Place {
    /// The host sent `Retry-After`, for this long if stated; all requests that wait for it learn
    /// so.
    pub(super) fn pause(&self, length: Option<Duration>) {
        let now = self.queue.now();
        let mut state = self.queue.lock();
        match length {
            Some(length) => state.order.pause(self.ticket, now + length.min(LONGEST_PAUSE)),
            None => state.order.refuse(self.ticket, now),
        }
        for ticket in state.order.waiting_with(self.ticket) {
            state.ring(ticket);
        }
    }

    /// The host answered in any way.
    pub(super) fn welcome(&self) {
        self.queue.lock().order.welcome(self.ticket);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.queue.lock();
        let now = self.queue.now();
        // The waiting requests of the host must be found before the ticket is removed.
        let next: Vec<_> =
            state.order.waiting_with(self.ticket).filter(|next| *next != self.ticket).collect();
        state.order.leave(self.ticket, now);
        state.bells.remove(&self.ticket);
        let next = next.first().copied().unwrap_or(self.ticket);
        state.settle(now, next);
    }
}

#[cfg(test)]
mod tests {
    use tokio::task::JoinSet;

    use super::*;

    fn queue(at_once: usize) -> Queue {
        Queue::new(Rules { at_once, host_at_once: 1, apart: Duration::from_secs(1) })
    }

    fn whole_seconds(since: Instant) -> u64 {
        since.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn requests_to_one_host_are_apart_and_in_order() {
        let queue = queue(16);
        let beginning = Instant::now();
        let mut tasks = JoinSet::new();
        for number in 0..5u64 {
            let queue = queue.clone();
            tasks.spawn(async move {
                let _place = queue.turn("a").await.unwrap();
                (number, beginning.elapsed())
            });
            tokio::task::yield_now().await;
        }
        let mut last = None;
        for expected in 0..5 {
            let (number, moment) = tasks.join_next().await.unwrap().unwrap();
            assert_eq!(number, expected);
            if let Some(last) = last.replace(moment) {
                assert!(moment >= last + Duration::from_secs(1), "{last:?} {moment:?}");
                assert!(moment <= last + Duration::from_millis(1300), "{last:?} {moment:?}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_host_delays_nobody_else() {
        let queue = queue(16);
        let slow = queue.turn("slow").await.unwrap();
        let mut behind = std::pin::pin!(queue.turn("slow"));
        let waiting = tokio::time::timeout(Duration::from_mins(1), behind.as_mut());
        assert!(waiting.await.is_err());
        let beginning = Instant::now();
        queue.turn("other").await.unwrap();
        assert_eq!(whole_seconds(beginning), 0);
        drop(slow);
        behind.await.unwrap();
        assert_eq!(whole_seconds(beginning), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn who_stops_waiting_frees_its_place_in_every_state() {
        let queue = queue(1);
        let first = queue.turn("a").await.unwrap();
        let mut second = Box::pin(queue.turn("b"));
        let mut third = Box::pin(queue.turn("c"));
        for waiting in [&mut second, &mut third] {
            assert!(tokio::time::timeout(Duration::from_secs(1), waiting).await.is_err());
        }
        // The second may begin here, and leaves without noticing.
        drop(first);
        drop(second);
        third.await.unwrap();
        let state = queue.lock();
        assert!(state.bells.is_empty(), "nothing is left of those who came by");
    }

    #[tokio::test(start_paused = true)]
    async fn the_next_in_line_takes_over_the_time_of_one_who_left() {
        let queue = queue(16);
        drop(queue.turn("a").await.unwrap());
        let beginning = Instant::now();
        let mut tasks = JoinSet::new();
        let front = tasks.spawn({
            let queue = queue.clone();
            async move { queue.turn("a").await.map(drop) }
        });
        tokio::task::yield_now().await;
        tasks.spawn(async move { queue.turn("a").await.map(drop) });
        tokio::task::yield_now().await;
        front.abort();
        assert!(tasks.join_next().await.unwrap().is_err());
        tasks.join_next().await.unwrap().unwrap().unwrap();
        assert_eq!(whole_seconds(beginning), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_short_pause_is_waited_for_and_a_long_one_is_not() {
        let queue = queue(16);
        let beginning = Instant::now();
        let place = queue.turn("a").await.unwrap();
        place.pause(Some(Duration::from_secs(8)));
        drop(place);
        let place = queue.turn("a").await.unwrap();
        assert_eq!(whole_seconds(beginning), 8);
        let behind = queue.turn("a");
        let pause = async {
            tokio::task::yield_now().await;
            place.pause(Some(Duration::from_hours(1)));
        };
        let (behind, ()) = tokio::join!(behind, pause);
        let Err(FetchError::Paused { host, remaining }) = behind else { panic!("was let in") };
        assert_eq!((host.as_str(), remaining.as_secs()), ("a", 3600));
        assert!(queue.turn("b").await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_from_before_is_kept() {
        let queue = queue(16);
        queue.pause("a", Duration::from_hours(1));
        assert!(queue.turn("b").await.is_ok());
        assert!(matches!(queue.turn("a").await, Err(FetchError::Paused { .. })));
    }

    #[tokio::test(start_paused = true)]
    async fn several_at_one_host_begin_apart_though_none_has_ended() {
        let rules = Rules { at_once: 16, host_at_once: 3, apart: Duration::from_secs(1) };
        let queue = Queue::new(rules);
        let beginning = Instant::now();
        let turns = async { tokio::join!(queue.turn("a"), queue.turn("a"), queue.turn("a")) };
        let turns = tokio::time::timeout(Duration::from_mins(1), turns).await;
        let (one, two, three) = turns.expect("nobody waits for who has not ended");
        assert!(one.is_ok() && two.is_ok() && three.is_ok());
        assert_eq!(whole_seconds(beginning), 2);
    }

    /// No request is forgotten, whichever others leave and whenever.
    #[tokio::test(start_paused = true)]
    async fn everybody_who_stays_has_its_turn() {
        let queue = queue(3);
        let mut tasks = JoinSet::new();
        for number in 0..300u64 {
            let queue = queue.clone();
            let host = (number % 7).to_string();
            // Some leave early, in the queue or at the host.
            let patience = if number % 3 == 0 { number * 97 % 20_000 } else { u64::MAX };
            let visit = async move {
                let place = queue.turn(&host).await.unwrap();
                tokio::time::sleep(Duration::from_millis(number * 31 % 2500)).await;
                drop(place);
            };
            tasks.spawn(async move {
                let visit = tokio::time::timeout(Duration::from_millis(patience), visit);
                visit.await.is_ok() || number % 3 == 0
            });
        }
        let all = tokio::time::timeout(Duration::from_hours(1), tasks.join_all());
        assert!(all.await.expect("nobody waits for ever").into_iter().all(|came| came));
        assert!(queue.lock().bells.is_empty());
    }
}
