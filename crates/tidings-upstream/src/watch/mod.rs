//! Watched resources: who watches them under which address, what was last read of them, and when to
//! look again.

pub(crate) mod schedule;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tidings_core::{Fingerprint, ResourceUri};
use tidings_server::{AnswerError, Contents};
use tokio::time::Instant;

use self::schedule::{Look, Mode, Schedule};
use crate::failure::is_of_gateway;

/// How long what was just read answers others too: after a change, all its watchers read it.
const SHARED: Duration = Duration::from_millis(500);

/// What a read returned: content, or that there is none.
#[derive(Clone, Debug)]
pub(crate) enum Sighting {
    Content(Arc<Contents>),
    Absent(AnswerError),
}

impl Sighting {
    /// The outcome of a read; `None` if it says nothing about the resource.
    pub(crate) fn of(outcome: &Result<Arc<Contents>, AnswerError>) -> Option<Self> {
        match outcome {
            Ok(contents) => Some(Self::Content(contents.clone())),
            Err(error) if is_absence(error) => Some(Self::Absent(error.clone())),
            Err(_) => None,
        }
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Content(contents) => contents.fingerprint(),
            Self::Absent(_) => Fingerprint::ABSENT,
        }
    }

    fn fresh_for(&self) -> Duration {
        match self {
            Self::Content(contents) => contents.fresh_for,
            Self::Absent(_) => Duration::ZERO,
        }
    }
}

/// Whether an error says that there is no such resource. Only the server can say so: a request that
/// was refused or given up here says nothing about the resource.
fn is_absence(error: &AnswerError) -> bool {
    match error {
        AnswerError::NotFound(_) | AnswerError::Absent(_) => true,
        // "Resource not found" before and after 2026-07-28.
        AnswerError::Raw(raw) => {
            matches!(raw.get("code"), Some("-32002" | "-32602")) && !is_of_gateway(raw)
        }
        _ => false,
    }
}

/// One watched resource.
#[derive(Debug)]
struct WatchedEntry {
    /// The addresses under which it is watched here.
    addresses: BTreeSet<ResourceUri>,
    seen: Option<Sighting>,
    fingerprint: Option<Fingerprint>,
    read_at: Option<Instant>,
    /// The number of the read that `seen` is from: an older one does not replace it.
    ticket: u64,
}

/// What a read of a watched resource means for its watchers.
#[derive(Debug)]
pub(crate) struct Observed {
    pub(crate) look: Look,
    pub(crate) fresh_for: Duration,
    /// The addresses whose watchers must be told.
    pub(crate) moved: Vec<ResourceUri>,
}

/// All watched resources of one upstream.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    pub(crate) schedule: Schedule,
    entries: HashMap<Arc<str>, WatchedEntry>,
    tickets: u64,
    /// Reads up to this one may be older than what a call did.
    settled: u64,
}

impl Watching {
    /// An address of a resource is watched. Returns whether the resource was not before.
    pub(crate) fn watch(
        &mut self,
        uri: &Arc<str>,
        address: &ResourceUri,
        mode: Mode,
        now: Instant,
    ) -> bool {
        let is_first = !self.entries.contains_key(uri);
        let entry = self.entries.entry(uri.clone()).or_insert_with(|| WatchedEntry {
            addresses: BTreeSet::new(),
            seen: None,
            fingerprint: None,
            read_at: None,
            ticket: 0,
        });
        entry.addresses.insert(address.clone());
        if is_first {
            self.schedule.watch(uri, mode, now);
        }
        is_first
    }

    /// An address is not watched any more. Returns whether its resource is not, either.
    pub(crate) fn unwatch(&mut self, uri: &str, address: &ResourceUri) -> bool {
        let Some(entry) = self.entries.get_mut(uri) else { return false };
        entry.addresses.remove(address);
        let is_last = entry.addresses.is_empty();
        if is_last {
            self.entries.remove(uri);
            self.schedule.unwatch(uri);
        }
        is_last
    }

    pub(crate) fn is_watched(&self, uri: &str) -> bool {
        self.entries.contains_key(uri)
    }

    /// The addresses that somebody watches.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = &ResourceUri> {
        self.entries.values().flat_map(|entry| &entry.addresses)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The number of a read that begins now.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// A call ended that may have changed anything.
    pub(crate) fn touched(&mut self, now: Instant) {
        self.settled = self.tickets;
        self.schedule.touched(now);
    }

    /// A read of a resource ended.
    pub(crate) fn observe(
        &mut self,
        uri: &str,
        ticket: u64,
        seen: Option<Sighting>,
        now: Instant,
    ) -> Observed {
        let fresh_for = seen.as_ref().map_or(Duration::ZERO, Sighting::fresh_for);
        let mut observed = Observed { look: Look::Failed, fresh_for, moved: Vec::new() };
        let Some(seen) = seen else { return observed };
        observed.look = Look::Same;
        let Some(entry) = self.entries.get_mut(uri).filter(|entry| entry.ticket < ticket) else {
            return observed;
        };
        let fingerprint = seen.fingerprint();
        let before = entry.fingerprint.replace(fingerprint);
        (entry.seen, entry.ticket, entry.read_at) = (Some(seen), ticket, Some(now));
        if before != Some(fingerprint) {
            observed.look = if before.is_some() { Look::Changed } else { Look::Same };
            observed.moved = entry.addresses.iter().cloned().collect();
        }
        observed
    }

    /// What was last read of a watched resource.
    pub(crate) fn known(&self, uri: &str) -> Option<&Sighting> {
        self.entries.get(uri)?.seen.as_ref()
    }

    /// What a read just returned, if no call came after it, and how old it is.
    pub(crate) fn current(&self, uri: &str, now: Instant) -> Option<(Sighting, Duration)> {
        let entry = self.entries.get(uri)?;
        let age = now.duration_since(entry.read_at?);
        let is_shared = age < SHARED && entry.ticket > self.settled;
        Some((entry.seen.clone().filter(|_| is_shared)?, age))
    }
}
