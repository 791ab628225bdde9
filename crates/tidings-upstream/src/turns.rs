//! How many requests one upstream gets at once, shared between clients.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Requests of all clients at once.
const ALL: usize = 256;
/// Requests of one client at once: one that asks for more waits for itself, not for others.
const EACH: usize = 32;
/// Clients remembered before those without requests are forgotten.
const CLIENTS: usize = 1024;

/// The turns of one upstream.
#[derive(Debug)]
pub(crate) struct Turns {
    all: Arc<Semaphore>,
    each: Mutex<HashMap<String, Weak<Semaphore>>>,
    /// Whether requests are made one at a time, because the server asks questions that do not say
    /// which request they belong to.
    is_single: AtomicBool,
    single: Arc<Semaphore>,
}

/// The turn of one request. It ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _permits: [Option<OwnedSemaphorePermit>; 3],
    /// Keeps the client's own semaphore.
    _client: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(ALL)),
            each: Mutex::default(),
            is_single: AtomicBool::new(false),
            single: Arc::new(Semaphore::new(1)),
        }
    }
}

impl Turns {
    /// Waits for the turn of a client.
    pub(crate) async fn take(&self, client: &str) -> Turn {
        let own = self.own(client);
        // Order: the client's own first, so that one with many requests does not fill the line.
        let first = own.clone().acquire_owned().await.ok();
        let single =
            if self.is_single() { self.single.clone().acquire_owned().await.ok() } else { None };
        let second = self.all.clone().acquire_owned().await.ok();
        Turn { _permits: [first, single, second], _client: own }
    }

    /// From now on requests are made one at a time.
    pub(crate) fn make_single(&self) -> bool {
        !self.is_single.swap(true, Ordering::SeqCst)
    }

    pub(crate) fn is_single(&self) -> bool {
        self.is_single.load(Ordering::SeqCst)
    }

    fn own(&self, client: &str) -> Arc<Semaphore> {
        let mut each = self.each.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = each.get(client).and_then(Weak::upgrade) {
            return own;
        }
        if each.len() >= CLIENTS {
            each.retain(|_, own| own.strong_count() > 0);
        }
        let own = Arc::new(Semaphore::new(EACH));
        each.insert(client.to_owned(), Arc::downgrade(&own));
        own
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{Duration, timeout};

    use super::*;

    async fn is_free(turns: &Turns, client: &str) -> bool {
        timeout(Duration::from_millis(10), turns.take(client)).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_with_many_requests_waits_for_itself() {
        let turns = Turns::default();
        let mut busy = Vec::new();
        for _ in 0..EACH {
            busy.push(turns.take("busy").await);
        }
        assert!(!is_free(&turns, "busy").await);
        assert!(is_free(&turns, "other").await);
        busy.pop();
        assert!(is_free(&turns, "busy").await);
    }

    #[tokio::test(start_paused = true)]
    async fn one_at_a_time_means_one_of_all_clients() {
        let turns = Turns::default();
        assert!(turns.make_single() && !turns.make_single());
        let turn = turns.take("one").await;
        assert!(!is_free(&turns, "other").await);
        drop(turn);
        assert!(is_free(&turns, "other").await);
    }
}
