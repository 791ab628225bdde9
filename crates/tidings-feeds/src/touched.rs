//! Feeds whose plan may have changed: a set, written by anybody and taken by the rounds.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

/// The feeds whose plan may have changed.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    ids: Mutex<BTreeSet<String>>,
    some: Notify,
}

impl Touched {
    pub(crate) fn add(&self, id: &str) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        self.some.notify_one();
    }

    /// Waits until there are some, and takes them. Cancel-safe: they are taken in the last step.
    pub(crate) async fn taken(&self) -> BTreeSet<String> {
        loop {
            let taken =
                std::mem::take(&mut *self.ids.lock().unwrap_or_else(PoisonError::into_inner));
            if !taken.is_empty() {
                return taken;
            }
            self.some.notified().await;
        }
    }
}
