//! One thing that one listener follows: the announced state, the newest one, and the notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidings_core::Fingerprint;
use tokio::time::Instant;

use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::notice::Notice;

/// Counts the announced changes of one thing. A check is current if it was made at the newest count.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Notes a change.
    pub(crate) fn beat(&self) {
        self.0.fetch_add(1, Ordering::Release);
    }

    /// The count; read it before the content.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Whether this is the same count, not only an equal one. Counts of others cannot be compared:
    /// when the last listener of a view leaves, the next one begins a new count.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// The result of a check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// The count of changes before the content was checked.
    pub(crate) at: u64,
    /// The fingerprint of the content.
    pub(crate) fingerprint: Fingerprint,
}

impl Check {
    /// The check as a client with these labels sees it: outside the audience, the thing is absent.
    pub(super) fn seen_by(self, labels: &Labels, audience: &Labels) -> Self {
        if audience.admits(labels) {
            return self;
        }
        Self { fingerprint: Fingerprint::ABSENT, ..self }
    }
}

/// A followed thing.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) pulse: Pulse,
    /// Whether the baseline is set. Before that, no notice is sent: its change may be part of the
    /// baseline.
    pub(super) settled: bool,
    /// The fingerprint last announced to the listener; `None` at the beginning.
    pub(super) told: Option<Fingerprint>,
    /// The newest check; written by `mark`.
    pub(super) now: Option<Check>,
    /// Whether the listener's labels changed since the newest check.
    pub(super) moved: bool,
    /// Since when the notice is held back.
    pub(super) held: Option<Instant>,
    /// Whether the thing is in the queue.
    pub(super) queued: bool,
    /// The notice to send, and the time of its first change.
    pub(super) waits: Option<(Arc<Notice>, Instant)>,
    /// The notice that was sent last, and its number: it may have been lost on its way.
    pub(super) last: Option<(Arc<Notice>, u64)>,
}

/// Why a notice is held back.
pub(super) enum Held {
    /// Its baseline is not set yet.
    ForBaseline,
    /// Its thing is dirty again. It is sent at this time at the latest.
    Until(Instant),
}

impl Slot {
    pub(super) fn new(pulse: &Pulse, settled: bool) -> Self {
        let pulse = pulse.clone();
        Self {
            pulse,
            settled,
            told: None,
            now: None,
            moved: false,
            held: None,
            queued: false,
            waits: None,
            last: None,
        }
    }

    /// Whether the thing changed since it was checked.
    pub(super) fn is_dirty(&self) -> bool {
        self.moved || self.now.is_some_and(|check| check.at != self.pulse.count())
    }

    /// Moves the listener to another view of the list, whose changes this pulse counts.
    pub(super) fn regroup(&mut self, pulse: &Pulse) {
        self.pulse = pulse.clone();
        self.now = None;
        self.moved = true;
    }

    /// Whether the notice is held back.
    pub(super) fn holds(&mut self, now: Instant, patience: Duration) -> Option<Held> {
        if !self.settled {
            return Some(Held::ForBaseline);
        }
        if !self.is_dirty() {
            self.held = None;
            return None;
        }
        let until = *self.held.get_or_insert(now) + patience;
        (now < until).then_some(Held::Until(until))
    }

    /// Sets the baseline, if there is none yet. The check `is_current` if its count is that of this
    /// slot's pulse: the labels of the listener may have changed meanwhile.
    pub(super) fn baseline(&mut self, check: Check, is_current: bool, waiting: &mut usize) {
        self.settled = true;
        if self.told.is_some() {
            return;
        }
        self.told = Some(check.fingerprint);
        // A newer check may have come first: then it stays, and so does its notice if it differs.
        if is_current && !self.moved && self.now.is_none_or(|now| now.at <= check.at) {
            self.now = Some(check);
        }
        let known = self.now.is_some_and(|now| now.fingerprint == check.fingerprint);
        if known && self.waits.take().is_some() {
            *waiting -= 1;
        }
    }

    /// Notes the newest check; true if the thing must be put into the queue.
    pub(super) fn mark(
        &mut self,
        now: Check,
        notice: &Arc<Notice>,
        since: Instant,
        waiting: &mut usize,
        metrics: &Metrics,
    ) -> bool {
        if self.now.is_some_and(|newest| newest.at > now.at) {
            return false;
        }
        self.now = Some(now);
        self.moved = false;
        if self.told == Some(now.fingerprint) {
            metrics.suppressed.inc();
            if self.waits.take().is_some() {
                *waiting -= 1;
            }
            return false;
        }
        match &mut self.waits {
            Some((waiting_notice, _)) => {
                metrics.merged.inc();
                *waiting_notice = notice.clone();
            }
            none => {
                *waiting += 1;
                *none = Some((notice.clone(), since));
            }
        }
        !std::mem::replace(&mut self.queued, true)
    }
}
