//! Signs on their way to the client: in order, with progress merged, and the last one always sent.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_server::model::LoggingLevel;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::sign::Sign;

/// The least time between two progress notices: more than 100 a second is of no use.
const APART: Duration = Duration::from_millis(10);
/// How many signs may wait before reading of standard error pauses.
const ROOM: usize = 256;

/// The time limit for all waiting signs after the exit, as a multiple of the grace.
const ALL: u32 = 10;

/// Signs that are not sent yet. One side adds and the other takes, both in one task.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// A sign was added, or the outbox was closed.
    came: Notify,
    /// A sign was taken.
    went: Notify,
    /// Cancelled when no more signs will be added.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// Invariant: at most one is progress, the newest.
    waiting: VecDeque<Sign>,
    told: Option<Instant>,
}

impl Outbox {
    /// Adds a sign at the end. New progress replaces waiting progress.
    pub(super) fn push(&self, sign: Sign) {
        let mut state = self.lock();
        if sign.is_progress() {
            state.waiting.retain(|waiting| !waiting.is_progress());
        }
        state.waiting.push_back(sign);
        drop(state);
        self.came.notify_one();
    }

    /// Closes the outbox; the remaining signs are due at once.
    pub(super) fn close(&self) {
        self.closed.cancel();
        self.came.notify_one();
    }

    pub(super) fn is_full(&self) -> bool {
        self.lock().waiting.len() >= ROOM
    }

    /// Waits until there is room.
    pub(super) async fn room(&self) {
        while self.is_full() {
            self.went.notified().await;
        }
    }

    /// The next sign when it is due; `None` after the last one of a closed outbox.
    pub(super) async fn next(&self) -> Option<Sign> {
        loop {
            let due = match self.take() {
                Next::Sign(sign) => return Some(sign),
                Next::Closed => return None,
                Next::Empty => None,
                Next::At(due) => Some(due),
            };
            match due {
                // Meanwhile a log line or newer progress may arrive; then it is checked again.
                Some(due) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(due) => {}
                        () = self.came.notified() => {}
                    }
                }
                None => self.came.notified().await,
            }
        }
    }

    /// Sends everything, until the outbox is closed and empty. Once it is closed, a client that
    /// reads nothing for the grace, or needs ten times as long, gets the number of omitted log
    /// lines instead: it must not block other callers.
    pub(super) async fn tell<F: Future<Output = ()>>(
        &self,
        grace: Duration,
        mut tell: impl FnMut(Sign) -> F,
    ) {
        let too_late = async {
            self.closed.cancelled().await;
            tokio::time::sleep(grace * ALL).await;
        };
        let mut too_late = std::pin::pin!(too_late);
        while let Some(sign) = self.next().await {
            let overdue = async {
                self.closed.cancelled().await;
                tokio::time::sleep(grace).await;
            };
            let told = tokio::select! {
                () = tell(sign) => true,
                () = overdue => false,
                () = &mut too_late => false,
            };
            if !told {
                break;
            }
        }
        if let Some(left_out) = self.leave_out() {
            drop(tokio::time::timeout(grace, tell(left_out)).await);
        }
    }

    /// Drops the waiting signs; returns a log line with their number.
    fn leave_out(&self) -> Option<Sign> {
        let waiting = std::mem::take(&mut self.lock().waiting);
        let lines = waiting.iter().filter(|sign| !sign.is_progress()).count();
        let what = match lines {
            0 => return None,
            1 => "1 log line was".to_owned(),
            _ => format!("{lines} log lines were"),
        };
        let data = format!("{what} left out: the client reads too slowly");
        Some(Sign::Log { level: LoggingLevel::Warning, logger: None, data: data.into() })
    }

    fn take(&self) -> Next {
        let mut state = self.lock();
        let Some(first) = state.waiting.front() else {
            return if self.closed.is_cancelled() { Next::Closed } else { Next::Empty };
        };
        if first.is_progress() {
            let now = Instant::now();
            let due = state.told.map_or(now, |told| told + APART);
            if due > now && !self.closed.is_cancelled() {
                return Next::At(due);
            }
            state.told = Some(now);
        }
        let sign = state.waiting.pop_front();
        self.went.notify_one();
        sign.map_or(Next::Empty, Next::Sign)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Next {
    Sign(Sign),
    At(Instant),
    Empty,
    Closed,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(done: f64) -> Sign {
        Sign::Progress { done, total: None, message: None }
    }

    fn log(text: &str) -> Sign {
        Sign::Log { level: LoggingLevel::Info, logger: None, data: text.into() }
    }

    async fn rest(outbox: &Outbox) -> Vec<Sign> {
        let mut told = Vec::new();
        while let Some(sign) = outbox.next().await {
            told.push(sign);
        }
        told
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_progress_is_always_told() {
        let outbox = Outbox::default();
        for done in 0..1000 {
            outbox.push(progress(f64::from(done)));
        }
        outbox.close();
        assert_eq!(rest(&outbox).await, [progress(999.0)]);
    }

    #[tokio::test(start_paused = true)]
    async fn log_lines_keep_their_order_and_are_not_merged() {
        let outbox = Outbox::default();
        for sign in [log("a"), progress(1.0), log("b"), progress(2.0), log("c")] {
            outbox.push(sign);
        }
        outbox.close();
        assert_eq!(rest(&outbox).await, [log("a"), log("b"), progress(2.0), log("c")]);
    }

    #[tokio::test(start_paused = true)]
    async fn progress_is_told_a_hundred_times_a_second_at_most() {
        let outbox = Outbox::default();
        let fill = async {
            for done in 0..1000 {
                outbox.push(progress(f64::from(done)));
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            outbox.close();
        };
        let ((), told) = tokio::join!(fill, rest(&outbox));
        assert!((50..=102).contains(&told.len()), "{}", told.len());
        assert_eq!(told.last(), Some(&progress(999.0)));
    }

    #[tokio::test(start_paused = true)]
    async fn there_is_room_again_once_something_was_told() {
        let outbox = Outbox::default();
        for _ in 0..ROOM {
            outbox.push(log("x"));
        }
        assert!(outbox.is_full());
        let ((), sign) = tokio::join!(outbox.room(), outbox.next());
        assert_eq!(sign, Some(log("x")));
    }

    /// Regression: the rest was dropped after a second, however quickly the client read.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_gets_everything_and_one_that_does_not_is_told() {
        let told = async |pace: Duration| {
            let outbox = Outbox::default();
            (0..300).for_each(|_| outbox.push(log("x")));
            outbox.close();
            let mut told = Vec::new();
            let tell = |sign| {
                told.push(sign);
                tokio::time::sleep(pace)
            };
            outbox.tell(Duration::from_secs(1), tell).await;
            told
        };
        assert_eq!(told(Duration::from_millis(30)).await, vec![log("x"); 300]);
        let few = told(Duration::from_mins(1)).await;
        assert_eq!(few.len(), 2);
        assert!(matches!(&few[1], Sign::Log { data, .. }
            if data == "299 log lines were left out: the client reads too slowly"));
    }
}
