//! Waiting for a save in several steps to settle.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Waits until nothing was noticed for `quiet`, but no longer than `at_most`.
pub async fn settle(noticed: &Notify, quiet: Duration, at_most: Duration) {
    let latest = Instant::now() + at_most;
    loop {
        let until = (Instant::now() + quiet).min(latest);
        if timeout_at(until, noticed.notified()).await.is_err() || until == latest {
            return;
        }
    }
}
