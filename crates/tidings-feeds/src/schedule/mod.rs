//! The schedule of a feed: from the result of the last fetch to a plan for the next. Pure: moments
//! and random numbers are passed in.

mod explain;
mod interval;
mod length;
mod outcome;
mod skip;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tidings_store::date::Moment;

use crate::condition::Condition;

pub(crate) use outcome::{Failure, FeedHints, Outcome};
pub(crate) use skip::Skip;

use length::{milliseconds, share};

/// The interval of an unknown feed.
const FIRST_INTERVAL: Duration = Duration::from_hours(1);
/// The shortest interval, even if requested.
const SHORTEST: Duration = Duration::from_secs(1);
/// After this many failures in a row, a feed is only probed.
const FAILURES_TO_OPEN: u32 = 8;
/// The interval of probes.
const PROBE: Duration = Duration::from_hours(24);
/// How often in a row a new address must succeed before it replaces the old one.
const GOOD_TO_ADOPT: u8 = 3;
/// The wait after an interrupted transfer.
const AGAIN: Duration = Duration::from_mins(15);
/// The wait after a fault of this machine.
const HERE: Duration = Duration::from_mins(1);

/// The limits of intervals.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The minimum time between two requests; default 15 minutes.
    pub(crate) floor: Duration,
    /// The maximum, unless the server wants more; default one day.
    pub(crate) ceiling: Duration,
    /// An interval set by the operator. It replaces the minimum, the feed's usual interval and the
    /// publisher's hints; hours to be skipped and `Retry-After` remain.
    pub(crate) fixed: Option<Duration>,
}

impl Default for Bounds {
    fn default() -> Self {
        let (floor, ceiling) = (Duration::from_mins(15), Duration::from_hours(24));
        Self { floor, ceiling, fixed: None }
    }
}

/// A new address on trial.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moved {
    pub(crate) to: String,
    /// How often it succeeded in a row.
    pub(crate) good: u8,
}

/// The next fetch of a feed, and its reasons. It is stored across restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Meaningless while the feed is paused or gone: see [`Plan::due`].
    pub(crate) next: Moment,
    /// When it was last fetched.
    pub(crate) last: Option<Moment>,
    /// The useful interval, without hints and failures.
    #[serde(with = "milliseconds")]
    pub(crate) interval: Duration,
    /// In a row.
    pub(crate) failures: u32,
    /// The condition of the feed as far as the schedule knows: never `New` or `Unserved`.
    #[serde(rename = "health")]
    pub(crate) condition: Condition,
    pub(crate) moved: Option<Moved>,
    /// The server's `Retry-After`.
    #[serde(default)]
    not_before: Moment,
    /// From the last document: a failure does not change the hours to be skipped.
    #[serde(default)]
    skip: Skip,
    /// How long the last document is fresh; an answer without a document has no such hint.
    #[serde(default, with = "milliseconds")]
    asked: Duration,
}

impl Plan {
    /// A feed that was never fetched is fetched at once.
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            next: now,
            last: None,
            interval: FIRST_INTERVAL,
            failures: 0,
            condition: Condition::Good,
            moved: None,
            not_before: Moment::EPOCH,
            skip: Skip::default(),
            asked: Duration::ZERO,
        }
    }

    /// When to fetch, if ever.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.condition.is_asked().then_some(self.next)
    }

    /// Whether the feed is paused.
    pub(crate) fn is_paused(&self) -> bool {
        self.condition == Condition::Paused
    }

    /// The end of the server's `Retry-After`, if it sent one.
    pub(crate) fn left_alone_until(&self, now: Moment) -> Option<Moment> {
        Some(self.not_before).filter(|until| *until > now)
    }

    /// The plan after a result. The random number spreads simultaneous fetches; it only makes a
    /// wait longer.
    pub(crate) fn after(
        &self,
        outcome: &Outcome,
        bounds: &Bounds,
        now: Moment,
        random: u64,
    ) -> Self {
        let mut plan = Self { last: Some(now), ..self.clone() };
        match outcome {
            Outcome::Changed { posted, hints, moved } => {
                plan.interval = interval::of_posts(posted, now).unwrap_or(self.interval);
                plan.succeed(hints, *moved, bounds, now, random);
            }
            Outcome::Unchanged { hints, moved } => {
                // A fetch before the due time says nothing about the useful interval.
                if now >= self.next {
                    plan.interval = interval::lengthened(self.interval);
                }
                plan.succeed(hints, *moved, bounds, now, random);
            }
            Outcome::Failed(Failure::Postponed { by }) => {
                plan.last = self.last;
                plan.postpone(*by, now, random);
            }
            Outcome::Failed(Failure::Here) => {
                plan.last = self.last;
                plan.postpone(HERE, now, random);
            }
            Outcome::Failed(failure) => plan.fail(failure, bounds, now, random),
        }
        plan
    }

    /// The plan of a feed at a start. An overdue feed is fetched at once; the queue limits the
    /// number of fetches, and those of each host.
    pub(crate) fn caught_up(&self, now: Moment, random: u64) -> Self {
        let mut plan = self.clone();
        // A plan of a clock that was set back since may be years away.
        if self.last.is_some_and(|last| last > now) {
            plan.last = None;
            plan.not_before = Moment::EPOCH;
            plan.schedule(now, Duration::ZERO, Duration::ZERO, random);
        } else if self.next < now {
            // An hour to be skipped may have begun since.
            plan.next = plan.skip.next_allowed(now, random).max(plan.not_before);
        }
        plan
    }

    /// The plan of a feed whose configured interval may have become shorter: no later than that.
    pub(crate) fn hastened(&self, bounds: &Bounds, now: Moment, random: u64) -> Self {
        let (Some(last), Some(_)) = (self.last, bounds.fixed) else { return self.clone() };
        let mut plan = self.clone();
        let due = last.after(bounds.least()).after(share(bounds.least() / 10, random));
        plan.schedule(now, due.since(now), Duration::ZERO, random);
        plan.next = plan.next.min(self.next);
        plan
    }

    /// The same after an interrupted answer: no later than soon.
    pub(crate) fn again_soon(&self, now: Moment, random: u64) -> Self {
        let mut plan = self.clone();
        plan.schedule(now, AGAIN, share(AGAIN / 10, random), random);
        plan.next = plan.next.min(self.next);
        plan
    }

    /// The last document's hints with the new ones, for an answer without a document.
    pub(crate) fn remembered(&self, mut hints: FeedHints) -> FeedHints {
        hints.skip = self.skip;
        hints.ttl = Some(self.asked).filter(|asked| !asked.is_zero());
        hints
    }

    /// The new address, once it succeeded often enough; the trial is over then.
    pub(crate) fn take_address(&mut self) -> Option<String> {
        self.moved.take_if(|moved| moved.good >= GOOD_TO_ADOPT).map(|moved| moved.to)
    }

    /// Not fetched until it is resumed.
    pub(crate) fn paused(&self) -> Self {
        Self { condition: Condition::Paused, ..self.clone() }
    }

    /// Fetched again, soon. A feed that was gone gets another chance too.
    pub(crate) fn resumed(&self, now: Moment) -> Self {
        let next = self.skip.next_allowed(now.max(self.not_before), 0);
        Self { condition: Condition::Good, failures: 0, next, ..self.clone() }
    }

    fn succeed(
        &mut self,
        hints: &FeedHints,
        moved: Option<&str>,
        bounds: &Bounds,
        now: Moment,
        random: u64,
    ) {
        self.failures = 0;
        self.become_unless_paused(Condition::Good);
        self.skip = hints.skip;
        self.asked = hints.ttl.into_iter().chain(hints.update).max().unwrap_or_default();
        self.moved = moved.map(|to| {
            let before = self.moved.as_ref().filter(|moved| moved.to == to);
            let good = before.map_or(0, |moved| moved.good).saturating_add(1);
            Moved { to: to.to_owned(), good }
        });
        self.interval = self.interval.min(bounds.most()).max(bounds.least());
        self.not_before = now.after(hints.retry_after.unwrap_or_default());
        let wait = match bounds.fixed {
            Some(_) => bounds.least(),
            None => self.interval.max(hints.wanted().min(bounds.most())),
        };
        self.schedule(now, wait, share(wait / 10, random), random);
    }

    fn fail(&mut self, failure: &Failure, bounds: &Bounds, now: Moment, random: u64) {
        self.moved = None;
        if let Failure::Refused { retry_after: Some(length) } = failure {
            self.not_before = now.after(*length);
        }
        // A fetch before the due time, for example by hand while a server is down, says nothing
        // about the length of the outage.
        if now < self.next && *failure != Failure::Gone {
            self.stay(now, random);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        // The first wait is the minimum. A wrong address is abandoned faster than a server that is
        // down.
        let doublings = match failure {
            Failure::Missing | Failure::Rejected => (self.failures - 1).saturating_mul(2),
            _ => self.failures - 1,
        };
        let factor = 2u32.saturating_pow(doublings);
        let mut wait = bounds.least().saturating_mul(factor).min(bounds.most());
        let mut condition = Condition::Failing;
        if let Failure::Refused { retry_after: Some(length) } = failure {
            // The server stated the time, so nothing is guessed.
            wait = bounds.least().max(*length);
        }
        // Files are not abandoned, because reading them costs nobody anything.
        if self.failures >= FAILURES_TO_OPEN && bounds.ceiling >= PROBE {
            condition = Condition::Resting;
            wait = wait.max(PROBE).max(bounds.most());
        }
        if *failure == Failure::Gone {
            condition = Condition::Gone;
            wait = bounds.most();
        }
        self.become_unless_paused(condition);
        self.schedule(now, wait, share(wait / 4, random), random);
    }

    /// Postponed, without any new knowledge.
    fn postpone(&mut self, by: Duration, now: Moment, random: u64) {
        if now < self.next {
            self.stay(now.after(by), random);
        } else {
            self.schedule(now, by, share(by / 10, random), random);
        }
    }

    /// Stays as planned, but not before then.
    fn stay(&mut self, earliest: Moment, random: u64) {
        let next = self.next.max(earliest).max(self.not_before);
        self.next = self.skip.next_allowed(next, random);
    }

    /// Invariant: every `next` except the first is set here or in `stay`, so none is before
    /// `not_before` or in an hour to be skipped.
    fn schedule(&mut self, now: Moment, wait: Duration, spread: Duration, random: u64) {
        let next = now.after(wait).after(spread).max(self.not_before);
        self.next = self.skip.next_allowed(next, random);
    }

    /// A request may still be in progress when the operator pauses its feed.
    fn become_unless_paused(&mut self, condition: Condition) {
        if self.condition != Condition::Paused {
            self.condition = condition;
        }
    }
}

impl Bounds {
    /// The shortest wait.
    fn least(&self) -> Duration {
        self.fixed.unwrap_or(self.floor).max(SHORTEST)
    }

    /// The longest wait that we choose.
    fn most(&self) -> Duration {
        self.ceiling.max(self.least())
    }
}
