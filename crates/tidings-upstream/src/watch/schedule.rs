//! When watched resources are looked at: a pure state machine without network or clock.
//!
//! A resource that its server announces is looked at after each notice, and seldom without one: some
//! servers promise notices and send none. Any other is polled: at once for its first watcher, then
//! more often after changes and less often without. A resource has at
//! most one look running and one to come, polls are one at a time and within a budget, and the one
//! that waits longest is next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::config::PollRule;

/// The shortest and the longest wait between two polls.
pub(crate) const SHORTEST: Duration = Duration::from_secs(2);
pub(crate) const LONGEST: Duration = Duration::from_mins(5);
/// The shortest wait that a rule can ask for.
pub(crate) const SHORTEST_RULE: Duration = Duration::from_millis(100);
/// The time between the begins of two polls of one upstream.
const BUDGET: Duration = Duration::from_millis(500);
/// Looks after notices that run at once.
const SIDE_BY_SIDE: usize = 8;
/// No look begins sooner after the one before, however many notices come.
const QUIET: Duration = Duration::from_millis(50);
/// How long notices of content that differs on every read must have ended before it is looked at.
const SETTLED: Duration = Duration::from_secs(2);
/// When to look once more after a notice without a change: some servers announce a change before it
/// can be read.
pub(crate) const SECOND_LOOK: Duration = Duration::from_secs(1);
/// So many looks in a row that found a change lead to one more: content that differs even then,
/// though nobody had a reason to change it, differs on every read.
const RESTLESS: u32 = 4;
/// How long nobody must have announced or called anything before that look. Content that steady
/// calls change is not content that differs on every read.
const UNDISTURBED: Duration = Duration::from_millis(150);

/// How changes of a resource are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The server announces them. The rule says whether it may be polled too.
    Pushed(PollRule),
    /// By looking.
    Polled(PollRule),
}

impl Mode {
    pub(crate) fn rule(self) -> PollRule {
        match self {
            Self::Pushed(rule) | Self::Polled(rule) => rule,
        }
    }

    pub(crate) fn is_pushed(self) -> bool {
        matches!(self, Self::Pushed(_))
    }

    /// The same with another rule.
    pub(crate) fn with(self, rule: PollRule) -> Self {
        match self {
            Self::Pushed(_) => Self::Pushed(rule),
            Self::Polled(_) => Self::Polled(rule),
        }
    }
}

/// What a look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    /// Something else than before, or the first content.
    Changed,
    /// The same.
    Same,
    /// Nothing: it could not be read.
    Failed,
}

/// One watched resource.
#[derive(Debug)]
struct Watch {
    mode: Mode,
    /// The next look, if one is planned.
    due: Option<Instant>,
    /// Whether a notice came that no look began after.
    is_noticed: bool,
    /// When the last look began.
    began: Option<Instant>,
    interval: Duration,
    failures: u32,
    /// Looks in a row that found a change.
    changes: u32,
    temper: Temper,
}

/// Why a look runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Running {
    Poll,
    AfterNotice,
}

/// How content behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Temper {
    Calm,
    /// It changed so often that the next look follows soon, to see whether it rests.
    Restless,
    /// It differs on every read.
    Volatile,
}

/// The looks of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    watches: BTreeMap<Arc<str>, Watch>,
    /// The looks that run, also of resources that are not watched any more.
    running: BTreeMap<Arc<str>, Running>,
    /// When the last poll began.
    polled: Option<Instant>,
    /// While there is no connection nothing is due.
    is_paused: bool,
}

impl Schedule {
    /// A resource is watched from now on, or its mode is another: it is looked at now.
    pub(crate) fn watch(&mut self, uri: &Arc<str>, mode: Mode, now: Instant) {
        let watch = self.watches.entry(uri.clone()).or_insert_with(|| Watch {
            mode,
            due: None,
            is_noticed: false,
            began: None,
            interval: SHORTEST,
            failures: 0,
            changes: 0,
            temper: Temper::Calm,
        });
        watch.mode = mode;
        watch.due = Some(now);
    }

    pub(crate) fn unwatch(&mut self, uri: &str) {
        self.watches.remove(uri);
    }

    pub(crate) fn mode(&self, uri: &str) -> Option<Mode> {
        self.watches.get(uri).map(|watch| watch.mode)
    }

    pub(crate) fn uris(&self) -> impl Iterator<Item = &Arc<str>> {
        self.watches.keys()
    }

    pub(crate) fn volatile(&self) -> impl Iterator<Item = &Arc<str>> {
        self.watches.iter().filter(|(_, watch)| watch.is_volatile()).map(|(uri, _)| uri)
    }

    /// The server announced a change of this resource.
    pub(crate) fn noticed(&mut self, uri: &str, now: Instant) {
        if let Some(watch) = self.watches.get_mut(uri) {
            watch.is_noticed = true;
            watch.disturb();
            watch.notice(now);
        }
    }

    /// Notices may have been missed: everything is looked at.
    pub(crate) fn resync(&mut self, now: Instant) {
        for watch in self.watches.values_mut() {
            watch.is_noticed = true;
            watch.failures = 0;
            watch.notice(now);
        }
    }

    /// Something was done that may have changed anything: what may be polled is looked at.
    pub(crate) fn touched(&mut self, now: Instant) {
        for (uri, watch) in &mut self.watches {
            if watch.mode.rule() != PollRule::Never && !watch.is_volatile() {
                watch.disturb();
                watch.is_noticed |= self.running.contains_key(uri);
                watch.soon(now);
            }
        }
    }

    /// Without a connection nothing is due.
    pub(crate) fn pause(&mut self, is_paused: bool) {
        self.is_paused = is_paused;
    }

    /// When a look may begin next.
    pub(crate) fn due(&self) -> Option<Instant> {
        if self.is_paused {
            return None;
        }
        self.waiting().filter_map(|(_, watch)| self.begin_of(watch)).min()
    }

    /// The resources that are not being looked at.
    fn waiting(&self) -> impl Iterator<Item = (&Arc<str>, &Watch)> {
        self.watches.iter().filter(|(uri, _)| !self.running.contains_key(*uri))
    }

    /// When a resource that waits may be looked at.
    fn begin_of(&self, watch: &Watch) -> Option<Instant> {
        let due = watch.due?;
        if watch.is_noticed {
            return (self.running.len() < SIDE_BY_SIDE).then_some(due);
        }
        // A poll waits for other polls, and for its share of the budget.
        let budget = self.polled.map_or(due, |polled| polled + BUDGET);
        let is_polling = self.running.values().any(|running| *running == Running::Poll);
        (!is_polling).then(|| due.max(budget))
    }

    /// The resource to look at now: the one that waits longest.
    pub(crate) fn begin(&mut self, now: Instant) -> Option<Arc<str>> {
        if self.is_paused {
            return None;
        }
        let ready =
            self.waiting().filter(|(_, watch)| self.begin_of(watch).is_some_and(|at| at <= now));
        let (uri, _) = ready.min_by_key(|(_, watch)| (!watch.is_noticed, watch.due))?;
        let uri = uri.clone();
        let watch = self.watches.get_mut(&uri)?;
        if !watch.is_noticed {
            self.polled = Some(now);
        }
        let is_noticed = std::mem::take(&mut watch.is_noticed);
        (watch.began, watch.due) = (Some(now), None);
        let why = if is_noticed { Running::AfterNotice } else { Running::Poll };
        self.running.insert(uri.clone(), why);
        Some(uri)
    }

    /// A look ended. `fresh_for` is how long the server promised that the content stays; `chance` is
    /// random, from 0 to 1.
    pub(crate) fn looked(
        &mut self,
        uri: &str,
        look: Look,
        fresh_for: Duration,
        chance: f64,
        now: Instant,
    ) {
        let Some(ran) = self.running.remove(uri) else { return };
        let Some(watch) = self.watches.get_mut(uri) else { return };
        if watch.began.is_none() {
            // It began for watchers who left; those of now wait for one of their own.
            return;
        }
        watch.learn(look, ran);
        if watch.is_noticed {
            // It may have missed what was announced meanwhile.
            watch.notice(now);
            return;
        }
        // A look that was wanted meanwhile is still wanted.
        let next = watch.next((look, ran), fresh_for, chance, now);
        watch.due = [watch.due, next].into_iter().flatten().min();
    }
}

impl Watch {
    fn is_volatile(&self) -> bool {
        self.temper == Temper::Volatile
    }

    /// Somebody had a reason to change it: that it does is no sign of anything else.
    fn disturb(&mut self) {
        if self.temper == Temper::Restless {
            (self.changes, self.temper) = (0, Temper::Calm);
        }
    }

    /// A look is wanted because of a notice.
    fn notice(&mut self, now: Instant) {
        if self.is_volatile() {
            // Each notice puts the look off, but not without end.
            let latest = self.began.map_or(now, |began| began + LONGEST);
            self.due = Some((now + SETTLED).min(latest).max(now));
            return;
        }
        let soonest = self.began.map_or(now, |began| (began + QUIET).max(now));
        self.due = Some(self.due.map_or(soonest, |due| due.min(soonest)).max(now));
    }

    /// A look is wanted, within the budget.
    fn soon(&mut self, now: Instant) {
        let soonest = self.began.map_or(now, |began| (began + QUIET).max(now));
        self.due = Some(self.due.map_or(soonest, |due| due.min(soonest)));
    }

    /// What the look says about the resource.
    fn learn(&mut self, look: Look, ran: Running) {
        match look {
            // A change that was announced does not mean that every read finds one.
            Look::Changed if ran == Running::AfterNotice => self.failures = 0,
            Look::Changed => {
                self.failures = 0;
                self.changes += 1;
                self.temper = match self.temper {
                    Temper::Calm if self.changes >= RESTLESS => Temper::Restless,
                    Temper::Calm => Temper::Calm,
                    Temper::Restless | Temper::Volatile => Temper::Volatile,
                };
                let shorter = (self.interval / 2).max(SHORTEST);
                self.interval = if self.is_volatile() { LONGEST } else { shorter };
            }
            Look::Same => {
                if self.is_volatile() {
                    self.interval = SHORTEST;
                }
                (self.failures, self.changes, self.temper) = (0, 0, Temper::Calm);
                self.interval = self.interval.mul_f64(1.5).min(LONGEST);
            }
            Look::Failed => self.failures += 1,
        }
    }

    /// When to look again if nothing is announced.
    fn next(
        &self,
        (look, ran): (Look, Running),
        fresh_for: Duration,
        chance: f64,
        now: Instant,
    ) -> Option<Instant> {
        if look == Look::Failed {
            let most = LONGEST.as_secs_f64();
            let wait = (SHORTEST.as_secs_f64()
                * 2_f64.powi(self.failures.min(16).cast_signed() - 1))
            .min(most);
            return Some(now + jittered(Duration::from_secs_f64(wait), chance));
        }
        if self.temper == Temper::Restless {
            return Some(now + UNDISTURBED);
        }
        let interval = match self.mode {
            Mode::Pushed(_) if ran == Running::AfterNotice && look == Look::Same => {
                return Some(now + SECOND_LOOK);
            }
            Mode::Pushed(PollRule::Never) | Mode::Polled(PollRule::Never) => return None,
            Mode::Pushed(_) => jittered(LONGEST, chance),
            Mode::Polled(PollRule::Every(interval)) => interval.max(SHORTEST_RULE),
            Mode::Polled(PollRule::Adaptive) => jittered(self.interval, chance),
        };
        let interval = if self.is_volatile() { interval.max(LONGEST) } else { interval };
        Some(now + interval.max(fresh_for))
    }
}

/// A tenth more or less, so that many gateways do not ask at the same moment.
fn jittered(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(0.9 + 0.2 * chance.clamp(0.0, 1.0))
}
