//! Signs on their way to the client: in order, progress merged in time, the last one always told.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_server::model::LoggingLevel;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::sign::Sign;

/// How far apart progress is told: a hundred times a second is more than anybody can see.
const APART: Duration = Duration::from_millis(10);
/// How many signs may wait before no more of standard error is read.
const ROOM: usize = 256;

/// How many times the grace everything may take that waits when the program has ended.
const ALL: u32 = 10;

/// What is yet to be told. One side fills it, the other takes from it, both in one task.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    /// Something came, or nothing more will.
    came: Notify,
    /// Something went.
    went: Notify,
    /// Nothing more will come.
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    /// Invariant: at most one is progress, the newest.
    waiting: VecDeque<Sign>,
    told: Option<Instant>,
}

impl Outbox {
    /// Puts a sign at the end. Progress that waits is older news then, and goes.
    pub(super) fn push(&self, sign: Sign) {
        let mut state = self.lock();
        if sign.is_progress() {
            state.waiting.retain(|waiting| !waiting.is_progress());
        }
        state.waiting.push_back(sign);
        drop(state);
        self.came.notify_one();
    }

    /// Nothing more will come; what is there need not wait any longer.
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

    /// The next sign when it is time to tell it; nothing once everything was told.
    pub(super) async fn next(&self) -> Option<Sign> {
        loop {
            let due = match self.take() {
                Next::Sign(sign) => return Some(sign),
                Next::Closed => return None,
                Next::Empty => None,
                Next::At(due) => Some(due),
            };
            match due {
                // A log line may come meanwhile, or newer progress; both are looked at anew.
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

    /// Tells everything, until the box is closed and empty. Once it is closed, a client that takes
    /// nothing for the grace, or is not done after ten times that, is told how many log lines are
    /// left out: it must not keep others waiting for their turn.
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

    /// Forgets what waits; gives a line that says how much that is.
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

    /// It was silence once: the rest went after a second, however quickly the client read.
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
