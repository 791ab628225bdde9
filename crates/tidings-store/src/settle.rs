//! A save is several steps: what follows each other is looked at once.

use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Waits until nothing more was noticed for a time; what never rests is waited for no longer than
/// the other time.
pub async fn settle(noticed: &Notify, quiet: Duration, at_most: Duration) {
    let latest = Instant::now() + at_most;
    loop {
        let until = (Instant::now() + quiet).min(latest);
        if timeout_at(until, noticed.notified()).await.is_err() || until == latest {
            return;
        }
    }
}
