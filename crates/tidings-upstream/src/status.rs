//! How an upstream is, for people.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;

/// How an upstream is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Status {
    /// Its name.
    pub name: String,
    /// Whether it can be used.
    pub state: State,
    /// Why it cannot, or what is wrong with it although it can.
    pub reason: Option<String>,
    /// When it is tried again, from now on.
    #[serde(rename = "next_try_ms", serialize_with = "milliseconds")]
    pub next_try: Option<Duration>,
    /// Its own name and version, if it states them.
    pub server: Option<String>,
    /// The protocol revision that it speaks.
    pub version: Option<String>,
    /// What is offered of it now.
    pub tools: usize,
    /// Likewise.
    pub prompts: usize,
    /// Likewise.
    pub resources: usize,
    /// Likewise.
    pub templates: usize,
    /// Resources that somebody watches.
    pub watched: usize,
    /// Watched resources whose content differs on every read.
    pub volatile: Vec<String>,
    /// Requests that were relayed to it.
    pub requests: u64,
    /// Those that it did not answer, or answered with an error.
    pub failed: u64,
    /// Reads made to find changes.
    pub looks: u64,
    /// How long its last answer took.
    #[serde(rename = "latency_ms", serialize_with = "milliseconds")]
    pub latency: Option<Duration>,
    /// How often it was connected to.
    pub connections: u64,
    /// What is wrong with its lists.
    pub problems: Vec<String>,
    /// Definitions that wait for an approval.
    pub held: Vec<Held>,
    /// Whether its requests are made one at a time, because it asks questions.
    pub one_at_a_time: bool,
}

/// Whether an upstream can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum State {
    /// It waits for its first use.
    Waiting,
    /// It is being connected to.
    Connecting,
    /// It can be used.
    Ready,
    /// It is down; what it offers is still listed.
    Lost,
    /// It is down, and nothing of it is listed.
    Down,
}

/// A definition that waits for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Held {
    /// `tools` or `prompts`.
    pub list: String,
    /// The upstream's own name of it.
    pub name: String,
    /// The approved definition; `None` if it is new.
    pub before: Option<String>,
    /// The definition that waits.
    pub now: String,
}

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) requests: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) looks: AtomicU64,
    pub(crate) connections: AtomicU64,
    /// Of the last answer, in microseconds; 0 if there was none.
    pub(crate) latency: AtomicU64,
}

impl Counts {
    pub(crate) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn answered(&self, took: Duration, is_failed: bool) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.latency.store(took.max(1), Ordering::Relaxed);
        if is_failed {
            Self::add(&self.failed);
        }
    }
}

#[expect(clippy::ref_option, reason = "fields are given like this")]
fn milliseconds<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.serialize_some(&(time.as_micros() as f64 / 1000.0)),
        None => to.serialize_none(),
    }
}
