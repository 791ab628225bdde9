//! The pace of loads of a list or resource: at once for the first change, then when the changes rest.
//!
//! There is at most one load running and one waiting, however many changes come, and no load begins
//! within the quiet time of the one before, however fast it was.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::Backoff;

/// How successive changes are merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Merging {
    pub(crate) quiet: Duration,
    pub(crate) max_wait: Duration,
}

impl Merging {
    /// No merging, for user requests.
    pub(crate) const NONE: Self = Self { quiet: Duration::ZERO, max_wait: Duration::ZERO };
}

/// How a failed load is retried. Nothing random: one mirror asks one server.
const RETRY: Backoff =
    Backoff { first: Duration::from_secs(1), most: Duration::from_secs(30), attempts: None };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Idle,
    /// A load is running. `dirty` after a change that it may have missed.
    Running { dirty: Option<Changes> },
    /// The next load begins at this time.
    Waiting { due: Instant, changes: Option<Changes> },
}

/// Changes that were not loaded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Changes {
    first: Instant,
    last: Instant,
}

impl Changes {
    fn add(changes: Option<Self>, now: Instant) -> Self {
        Self { first: changes.map_or(now, |changes| changes.first), last: now }
    }

    fn due(self, merging: Merging) -> Instant {
        (self.last + merging.quiet).min(self.first + merging.max_wait)
    }
}

/// The pace of one list or resource.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    state: State,
    failures: u32,
    /// When the last load began.
    began: Option<Instant>,
}

impl Pace {
    /// A change was announced. Returns whether a load must begin now.
    #[must_use]
    pub(crate) fn mark(&mut self, now: Instant, merging: Merging) -> bool {
        match &mut self.state {
            State::Idle => {
                let due = self.began.map_or(now, |began| began + merging.quiet);
                if due <= now {
                    self.run(now);
                    return true;
                }
                self.state = State::Waiting { due, changes: Some(Changes::add(None, now)) };
            }
            State::Running { dirty } => *dirty = Some(Changes::add(*dirty, now)),
            State::Waiting { due, changes } => {
                let all = Changes::add(*changes, now);
                // A failed load waits longer than a change does.
                *due =
                    if changes.is_some() { all.due(merging) } else { all.due(merging).min(*due) };
                *changes = Some(all);
            }
        }
        false
    }

    /// Whether a change was announced since the current load began.
    pub(crate) fn is_overtaken(&self) -> bool {
        matches!(self.state, State::Running { dirty: Some(_) })
    }

    /// Whether a load is running.
    pub(crate) fn is_running(&self) -> bool {
        matches!(self.state, State::Running { .. })
    }

    /// Whether nothing is running or waiting.
    pub(crate) fn is_resting(&self) -> bool {
        self.state == State::Idle
    }

    /// The load succeeded.
    pub(crate) fn finish(&mut self, merging: Merging) {
        self.failures = 0;
        self.state = match self.state {
            State::Running { dirty: Some(changes) } => {
                State::Waiting { due: changes.due(merging), changes: Some(changes) }
            }
            _ => State::Idle,
        };
    }

    /// Another load begins at this time, unless a change leads to one before.
    pub(crate) fn look_again(&mut self, due: Instant) {
        if self.state == State::Idle {
            self.state = State::Waiting { due, changes: None };
        }
    }

    /// The load failed; it is retried later.
    pub(crate) fn fail(&mut self, now: Instant) {
        let wait = RETRY.wait(self.failures, 0.0).unwrap_or(RETRY.most);
        self.failures = self.failures.saturating_add(1);
        self.state = State::Waiting { due: now + wait, changes: None };
    }

    /// Drops the current load and all pending changes.
    pub(crate) fn reset(&mut self) {
        *self = Self::default();
    }

    /// When the next load begins.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.state {
            State::Waiting { due, .. } => Some(due),
            _ => None,
        }
    }

    /// Returns whether a load is due; if so, it is running now.
    #[must_use]
    pub(crate) fn begin(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if is_due {
            self.run(now);
        }
        is_due
    }

    fn run(&mut self, now: Instant) {
        self.began = Some(now);
        self.state = State::Running { dirty: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MERGING: Merging =
        Merging { quiet: Duration::from_millis(25), max_wait: Duration::from_millis(250) };

    #[tokio::test(start_paused = true)]
    async fn a_burst_is_one_load_at_once_and_one_when_it_rests() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let at = |ms| start + Duration::from_millis(ms);
        assert!(pace.mark(at(0), MERGING));
        for ms in 1..20 {
            assert!(!pace.mark(at(ms), MERGING));
        }
        pace.finish(MERGING);
        assert_eq!(pace.due(), Some(at(19 + 25)));
        assert!(!pace.mark(at(40), MERGING), "it still goes on");
        assert!(!pace.begin(at(44)) && pace.begin(at(65)));
        pace.finish(MERGING);
        assert_eq!(pace.due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn what_never_rests_is_loaded_all_the_same() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let at = |ms| start + Duration::from_millis(ms);
        assert!(pace.mark(at(0), MERGING));
        assert!(!pace.mark(at(1), MERGING));
        pace.finish(MERGING);
        for ms in (10..251).step_by(10) {
            assert!(!pace.mark(at(ms), MERGING) && !pace.begin(at(ms)));
        }
        assert!(pace.begin(at(251)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_answers_at_once_is_not_asked_for_every_notice() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let mut loads = 0;
        let mut last = 0;
        for ms in 0..1000 {
            let now = start + Duration::from_millis(ms);
            if pace.mark(now, MERGING) || pace.begin(now) {
                loads += 1;
                last = ms;
                pace.finish(MERGING);
            }
        }
        assert_eq!(loads, 1 + 3, "one at once, then one for each maximum wait");
        assert!(last < 999 && pace.begin(start + Duration::from_millis(999 + 25)), "and the last");
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_soon_after_a_load_waits_for_the_rest_of_the_quiet_time() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        let at = |ms| start + Duration::from_millis(ms);
        assert!(pace.mark(at(0), MERGING));
        pace.finish(MERGING);
        assert!(!pace.mark(at(20), MERGING));
        assert_eq!(pace.due(), Some(at(25)));
        assert!(!pace.mark(at(24), MERGING), "it goes on");
        assert_eq!(pace.due(), Some(at(24 + 25)));
        assert!(pace.begin(at(49)));
        pace.finish(MERGING);
        assert!(pace.mark(at(49 + 25), MERGING), "it rested");
    }

    #[tokio::test(start_paused = true)]
    async fn what_somebody_asks_for_is_not_merged() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        assert!(pace.mark(start, MERGING));
        pace.finish(MERGING);
        assert!(pace.mark(start, Merging::NONE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_is_tried_again_later_and_sooner_if_a_change_is_heard_of() {
        let (start, mut pace) = (Instant::now(), Pace::default());
        assert!(pace.mark(start, MERGING));
        pace.fail(start);
        assert_eq!(pace.due(), Some(start + Duration::from_secs(1)));
        assert!(!pace.mark(start, MERGING));
        assert_eq!(pace.due(), Some(start + MERGING.quiet));
    }
}
