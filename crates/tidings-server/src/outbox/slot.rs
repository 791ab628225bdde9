//! One thing that one listener follows: what it was told of, what there is now, what waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidings_core::Fingerprint;
use tokio::time::Instant;

use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::notice::Notice;

/// Counts the changes a source spoke of, of one thing. A check of the thing is current if it was
/// taken at the newest count.
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
}

/// What was found when a thing was checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Check {
    /// The count of changes before the content was checked.
    pub(crate) at: u64,
    /// What names the content.
    pub(crate) fingerprint: Fingerprint,
}

impl Check {
    /// What a client with these labels finds, if the thing is for this audience.
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
    pulse: Pulse,
    /// Whether there is no baseline to come. Before, a notice stays here: what it tells of may be
    /// the baseline.
    pub(super) settled: bool,
    /// What the listener was last told of; `None` before anything was.
    pub(super) told: Option<Fingerprint>,
    /// The newest check; written by `mark`.
    pub(super) now: Option<Check>,
    /// Whether the listener has other labels since the newest check, which may not be what it sees.
    pub(super) moved: bool,
    /// Since when the notice is held back.
    pub(super) held: Option<Instant>,
    /// Whether the thing stands in the queue.
    pub(super) queued: bool,
    /// The notice to send, and when the first change it stands for was made.
    pub(super) waits: Option<(Arc<Notice>, Instant)>,
    /// The notice that was sent last, and its number: it may have been lost on its way.
    pub(super) last: Option<(Arc<Notice>, u64)>,
}

/// Why a notice is held back.
pub(super) enum Held {
    /// Its baseline is on its way.
    ForBaseline,
    /// Its thing is dirty again; it goes out at this time whatever comes.
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

    /// The listener sees the list with others from now on, whose changes this counts.
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

    /// Sets what the listener knows, if it knows nothing yet. The check `is_current` unless the
    /// listener has other labels by now.
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
