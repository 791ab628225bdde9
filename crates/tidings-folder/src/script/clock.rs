//! The clock of a run: when a program's time is up, and why; pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::offer::Patience;

/// Longer limits than the system's clock can count are unlimited.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// Why a program's time was up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// It exceeded its limit.
    Fixed,
    /// It gave no sign of life within its limit.
    Idle,
    /// It gave signs of life, but exceeded the limit of all programs.
    MaxExceeded,
}

impl Reason {
    /// The word in results.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Idle => "idle",
            Self::MaxExceeded => "max_exceeded",
        }
    }
}

/// The time of one run.
#[derive(Debug)]
pub(super) struct RunClock {
    patience: Patience,
    started: Instant,
    /// When the limit was last restarted.
    armed: Instant,
}

impl RunClock {
    pub(super) fn start(patience: Patience) -> Self {
        let now = Instant::now();
        Self { patience, started: now, armed: now }
    }

    /// Notes a sign of life.
    pub(super) fn sign(&mut self) {
        if self.patience.extended {
            self.armed = Instant::now();
        }
    }

    /// Like [`Self::sign`], for a sign that was given `age` ago.
    pub(super) fn sign_before(&mut self, age: Duration) {
        let given = Instant::now().checked_sub(age).unwrap_or(self.armed);
        if self.patience.extended {
            self.armed = given.max(self.armed);
        }
    }

    /// When time is up without another sign.
    pub(super) fn deadline(&self) -> (Instant, Reason) {
        let limit = after(self.armed, self.patience.limit);
        let most = after(self.started, self.patience.at_most);
        if most < limit {
            (most, Reason::MaxExceeded)
        } else if self.patience.extended {
            (limit, Reason::Idle)
        } else {
            (limit, Reason::Fixed)
        }
    }
}

fn after(moment: Instant, time: Duration) -> Instant {
    moment + time.min(FOR_EVER)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// With signs at these seconds, time is up at second `up`, for this reason.
    async fn check(patience: Patience, signs: &[u32], up: u32, reason: Reason) {
        let start = Instant::now();
        let mut clock = RunClock::start(patience);
        for sign in signs {
            tokio::time::sleep_until(start + SECOND * *sign).await;
            clock.sign();
        }
        assert_eq!(clock.deadline(), (start + SECOND * up, reason), "{patience:?} {signs:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn signs_extend_only_what_says_so_and_only_so_far() {
        let fixed = Patience::fixed(SECOND * 5);
        check(fixed, &[], 5, Reason::Fixed).await;
        check(fixed, &[1, 4], 5, Reason::Fixed).await;
        let patient = Patience { limit: SECOND * 5, extended: true, at_most: SECOND * 12 };
        check(patient, &[], 5, Reason::Idle).await;
        check(patient, &[1, 4], 9, Reason::Idle).await;
        check(patient, &[4, 8], 12, Reason::MaxExceeded).await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_without_end_is_no_trouble() {
        let (deadline, _) = RunClock::start(Patience::fixed(Duration::MAX)).deadline();
        assert!(deadline > Instant::now() + SECOND);
    }
}
