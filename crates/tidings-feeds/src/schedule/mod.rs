//! When a feed is asked next: from what came of the last time to a plan for the next. Pure: moments
//! and random numbers are passed in.

mod explain;
mod interval;
mod outcome;
mod skip;
mod time;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::condition::Condition;

pub(crate) use outcome::{Failure, FeedHints, Outcome};
pub(crate) use skip::Skip;
pub(crate) use time::Time;

use time::{milliseconds, share};

/// How often a feed is asked of which nothing is known yet.
const FIRST_INTERVAL: Duration = Duration::from_hours(1);
/// No interval is shorter, whoever asks for it.
const SHORTEST: Duration = Duration::from_secs(1);
/// After so many failures in a row a feed is only probed.
const FAILURES_TO_OPEN: u32 = 8;
/// How often.
const PROBE: Duration = Duration::from_hours(24);
/// How often in a row a new address has to do well before it replaces the old one.
const GOOD_TO_ADOPT: u8 = 3;
/// When a feed is asked again whose transfer broke off.
const AGAIN: Duration = Duration::from_mins(15);
/// When a feed is tried again that could not be asked for a reason of this machine.
const HERE: Duration = Duration::from_mins(1);

/// Between which limits a feed is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// The least time between two requests; default 15 minutes.
    pub(crate) floor: Duration,
    /// The most, unless the server wants more; default one day.
    pub(crate) ceiling: Duration,
    /// An interval set by the operator. It takes the place of the floor, of what the feed's posts
    /// suggest and of what the publisher hints at; hours to be skipped and `Retry-After` remain.
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
    /// How often in a row it did well.
    pub(crate) good: u8,
}

/// When a feed is asked next, and why. It is kept across restarts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Plan {
    /// Meaningless while the feed is paused or gone: see [`Plan::due`].
    pub(crate) next: Time,
    /// When it was last asked.
    pub(crate) last: Option<Time>,
    /// How often it is worth asking, apart from hints and failures.
    #[serde(with = "milliseconds")]
    pub(crate) interval: Duration,
    /// In a row.
    pub(crate) failures: u32,
    /// How the feed does as far as the schedule knows: it never says `New` or `Unserved`.
    #[serde(rename = "health")]
    pub(crate) condition: Condition,
    pub(crate) moved: Option<Moved>,
    /// What the server asked for with `Retry-After`.
    #[serde(default)]
    not_before: Time,
    /// As of the last document: a failure does not say which hours to skip.
    #[serde(default)]
    skip: Skip,
    /// How long the last document wants to be kept; an answer that nothing changed does not say.
    #[serde(default, with = "milliseconds")]
    asked: Duration,
}

impl Plan {
    /// A feed that was never asked is asked at once.
    pub(crate) fn new(now: Time) -> Self {
        Self {
            next: now,
            last: None,
            interval: FIRST_INTERVAL,
            failures: 0,
            condition: Condition::Good,
            moved: None,
            not_before: Time::default(),
            skip: Skip::default(),
            asked: Duration::ZERO,
        }
    }

    /// When to ask, if ever.
    pub(crate) fn due(&self) -> Option<Time> {
        self.condition.is_asked().then_some(self.next)
    }

    /// Whether the operator does not want it to be asked.
    pub(crate) fn is_paused(&self) -> bool {
        self.condition == Condition::Paused
    }

    /// Until when the server wants to be left alone, if it does.
    pub(crate) fn left_alone_until(&self, now: Time) -> Option<Time> {
        Some(self.not_before).filter(|until| *until > now)
    }

    /// The plan after an outcome. The random number spreads what would fall together; it only
    /// ever makes a wait longer.
    pub(crate) fn after(&self, outcome: &Outcome, bounds: &Bounds, now: Time, random: u64) -> Self {
        let mut plan = Self { last: Some(now), ..self.clone() };
        match outcome {
            Outcome::Changed { posted, hints, moved } => {
                plan.interval = interval::of_posts(posted, now).unwrap_or(self.interval);
                plan.succeed(hints, *moved, bounds, now, random);
            }
            Outcome::Unchanged { hints, moved } => {
                // Who asks before it is due learns nothing about how often it is worth it.
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

    /// The plan of a feed at a start. One that is overdue is asked at once: the queue sees to it
    /// that few are asked at a time, and each host now and then.
    pub(crate) fn caught_up(&self, now: Time, random: u64) -> Self {
        let mut plan = self.clone();
        // What was planned by a clock that has since been set back may be years away.
        if self.last.is_some_and(|last| last > now) {
            plan.last = None;
            plan.not_before = Time::default();
            plan.schedule(now, Duration::ZERO, Duration::ZERO, random);
        } else if self.next < now {
            // An hour to be skipped may have begun since.
            plan.next = plan.skip.next_allowed(now, random).max(plan.not_before);
        }
        plan
    }

    /// The plan of a feed that may have been planned with a longer interval than the one that is set
    /// now: no later than that one says.
    pub(crate) fn hastened(&self, bounds: &Bounds, now: Time, random: u64) -> Self {
        let (Some(last), Some(_)) = (self.last, bounds.fixed) else { return self.clone() };
        let mut plan = self.clone();
        let due = last.after(bounds.least()).after(share(bounds.least() / 10, random));
        plan.schedule(now, due.since(now), Duration::ZERO, random);
        plan.next = plan.next.min(self.next);
        plan
    }

    /// The same after an answer that broke off: no later than soon.
    pub(crate) fn again_soon(&self, now: Time, random: u64) -> Self {
        let mut plan = self.clone();
        plan.schedule(now, AGAIN, share(AGAIN / 10, random), random);
        plan.next = plan.next.min(self.next);
        plan
    }

    /// What the last document asked for, with what came since: for an answer without a document.
    pub(crate) fn remembered(&self, mut hints: FeedHints) -> FeedHints {
        hints.skip = self.skip;
        hints.ttl = Some(self.asked).filter(|asked| !asked.is_zero());
        hints
    }

    /// The new address, once it has done well often enough; the trial is over then.
    pub(crate) fn take_address(&mut self) -> Option<String> {
        self.moved.take_if(|moved| moved.good >= GOOD_TO_ADOPT).map(|moved| moved.to)
    }

    /// Not asked until it is resumed.
    pub(crate) fn paused(&self) -> Self {
        Self { condition: Condition::Paused, ..self.clone() }
    }

    /// Asked again, soon. A feed that was gone gets another chance too.
    pub(crate) fn resumed(&self, now: Time) -> Self {
        let next = self.skip.next_allowed(now.max(self.not_before), 0);
        Self { condition: Condition::Good, failures: 0, next, ..self.clone() }
    }

    fn succeed(
        &mut self,
        hints: &FeedHints,
        moved: Option<&str>,
        bounds: &Bounds,
        now: Time,
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

    fn fail(&mut self, failure: &Failure, bounds: &Bounds, now: Time, random: u64) {
        self.moved = None;
        if let Failure::Refused { retry_after: Some(length) } = failure {
            self.not_before = now.after(*length);
        }
        // Who asks before it is due, as by hand while a server is down, learns nothing about how
        // long it will be.
        if now < self.next && *failure != Failure::Gone {
            self.stay(now, random);
            return;
        }
        self.failures = self.failures.saturating_add(1);
        // The first wait is the floor. An address that is wrong is given up faster than a server
        // that is down.
        let doublings = match failure {
            Failure::Missing | Failure::Rejected => (self.failures - 1).saturating_mul(2),
            _ => self.failures - 1,
        };
        let factor = 2u32.saturating_pow(doublings);
        let mut wait = bounds.least().saturating_mul(factor).min(bounds.most());
        let mut condition = Condition::Failing;
        if let Failure::Refused { retry_after: Some(length) } = failure {
            // It said when to come back; there is nothing to guess.
            wait = bounds.least().max(*length);
        }
        // What costs nobody anything is not given up.
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

    /// Asked later, though nothing is known of it that was not known before.
    fn postpone(&mut self, by: Duration, now: Time, random: u64) {
        if now < self.next {
            self.stay(now.after(by), random);
        } else {
            self.schedule(now, by, share(by / 10, random), random);
        }
    }

    /// Stays as it was planned, but not before then.
    fn stay(&mut self, earliest: Time, random: u64) {
        let next = self.next.max(earliest).max(self.not_before);
        self.next = self.skip.next_allowed(next, random);
    }

    /// Invariant: every `next` but the first is made here or in `stay`, so none is before
    /// `not_before` or in an hour to be skipped.
    fn schedule(&mut self, now: Time, wait: Duration, spread: Duration, random: u64) {
        let next = now.after(wait).after(spread).max(self.not_before);
        self.next = self.skip.next_allowed(next, random);
    }

    /// A request may still be under way when the operator pauses its feed.
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

    /// The longest wait, of those that we choose.
    fn most(&self) -> Duration {
        self.ceiling.max(self.least())
    }
}
