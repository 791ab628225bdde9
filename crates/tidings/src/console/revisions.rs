//! Revisions: which thing changed when, and a wake-up for its viewers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// The revision of each thing. A viewer asks for the things above its cursor, so what waits for a
/// slow viewer is a set of keys and never a queue of messages.
#[derive(Debug)]
pub(crate) struct Revisions {
    things: Mutex<HashMap<String, u64>>,
    /// The last revision. Advances with the map locked.
    last: watch::Sender<u64>,
}

impl Default for Revisions {
    fn default() -> Self {
        Self { things: Mutex::default(), last: watch::Sender::new(1) }
    }
}

impl Revisions {
    fn things(&self) -> MutexGuard<'_, HashMap<String, u64>> {
        self.things.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives these things the next revision, and returns it.
    ///
    /// Order: change the value first, or hold its lock meanwhile. A viewer takes the last revision
    /// and then the values, so it may see a value twice and never misses one.
    pub(crate) fn touch(&self, keys: &[&str]) -> u64 {
        let mut things = self.things();
        let revision = *self.last.borrow() + 1;
        for key in keys {
            match things.get_mut(*key) {
                Some(known) => *known = revision,
                None => drop(things.insert((*key).to_owned(), revision)),
            }
        }
        self.last.send_replace(revision);
        revision
    }

    /// The revision of a thing; 0 if it never changed.
    pub(crate) fn of(&self, key: &str) -> u64 {
        self.things().get(key).copied().unwrap_or(0)
    }

    /// The last revision.
    pub(crate) fn last(&self) -> u64 {
        *self.last.borrow()
    }

    /// Waits for a revision after this one.
    ///
    /// Cancel-safe: nothing is taken.
    pub(crate) async fn changed(&self, after: u64) {
        let mut last = self.last.subscribe();
        // Invariant: the sender is ours, so it exists.
        drop(last.wait_for(|last| *last > after).await);
    }

    /// Forgets the things below a key.
    pub(crate) fn forget(&self, prefix: &str) {
        self.things().retain(|key, _| !key.starts_with(prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_change_has_a_new_revision_and_wakes_its_viewers() {
        let revisions = Revisions::default();
        let first = revisions.touch(&["a", "b"]);
        assert_eq!((revisions.of("a"), revisions.of("b"), revisions.of("c")), (first, first, 0));
        let wait = revisions.changed(first);
        let (second, ()) = tokio::join!(async { revisions.touch(&["b"]) }, wait);
        assert!(second > first && revisions.of("a") == first && revisions.of("b") == second);
        revisions.forget("b");
        assert_eq!((revisions.of("b"), revisions.last()), (0, second));
    }
}
