//! How an upstream is, for people and for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde::Serialize;
use tidings_server::Figure;

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
    /// The kind of that reason, if it is one of the connection.
    pub failure: Option<Failure>,
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
    /// Reads of resources, made to find changes.
    pub looks: u64,
    /// Lists that were loaded to find changes.
    pub list_looks: u64,
    /// How long its last answer took.
    #[serde(rename = "latency_ms", serialize_with = "milliseconds")]
    pub latency: Option<Duration>,
    /// How long all its answers took together.
    #[serde(rename = "answering_ms", serialize_with = "all_milliseconds")]
    pub answering: Duration,
    /// How often it was connected to.
    pub connections: u64,
    /// How often it could not be connected to.
    pub failed_connections: u64,
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

impl State {
    const ALL: [Self; 5] = [Self::Waiting, Self::Connecting, Self::Ready, Self::Lost, Self::Down];

    fn word(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Connecting => "connecting",
            Self::Ready => "ready",
            Self::Lost => "lost",
            Self::Down => "down",
        }
    }
}

/// Why an upstream cannot be used, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Failure {
    /// It wants credentials, or others: somebody must sign in.
    Unauthorized,
    /// Its credentials are not enough.
    Forbidden,
    /// Nobody answers at its address.
    Unreachable,
    /// It did not answer in time.
    Timeout,
    /// Its program could not be started, or ended.
    Program,
    /// It is no MCP server, or speaks no revision in common.
    Protocol,
    /// Anything else.
    Other,
}

impl Failure {
    const ALL: [Self; 7] = [
        Self::Unauthorized,
        Self::Forbidden,
        Self::Unreachable,
        Self::Timeout,
        Self::Program,
        Self::Protocol,
        Self::Other,
    ];

    fn word(self) -> &'static str {
        match self {
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::Unreachable => "unreachable",
            Self::Timeout => "timeout",
            Self::Program => "program",
            Self::Protocol => "protocol",
            Self::Other => "other",
        }
    }

    /// The kind of a reason that the mirror gives in words.
    pub(crate) fn of(reason: &str) -> Self {
        let has = |part: &str| reason.contains(part);
        if has("requires authorisation (401)") {
            Self::Unauthorized
        } else if has("denied access (403)") {
            Self::Forbidden
        } else if has("could not reach the server") {
            Self::Unreachable
        } else if has("did not answer within") {
            Self::Timeout
        } else if has("could not start")
            || has("ended before it answered")
            || has("the process ended")
        {
            Self::Program
        } else if has("not an MCP server") || has("no protocol version in common") {
            Self::Protocol
        } else {
            Self::Other
        }
    }
}

impl Status {
    /// The figures for metrics: all texts in them are those of this program.
    pub(crate) fn figures(&self) -> Vec<Figure> {
        const STATE: &str = "upstream_state";
        const FAILURE: &str = "upstream_failure";
        let is = |is: bool| f64::from(u8::from(is));
        let states = State::ALL.into_iter().map(|state| {
            let figure =
                Figure::gauge(STATE, "1 for the state of an upstream", is(self.state == state));
            figure.label("state", state.word())
        });
        let failures = Failure::ALL.into_iter().map(|failure| {
            let help = "1 for the reason why an upstream cannot be used";
            let figure = Figure::gauge(FAILURE, help, is(self.failure == Some(failure)));
            figure.label("reason", failure.word())
        });
        let seconds = |time: Option<Duration>| time.unwrap_or_default().as_secs_f64();
        let gauges = [
            (
                "upstream_next_try_seconds",
                "Time until it is tried again; 0 if it is not down",
                seconds(self.next_try),
            ),
            (
                "upstream_last_answer_seconds",
                "How long the last answer of an upstream took",
                seconds(self.latency),
            ),
            (
                "upstream_watched",
                "Resources of an upstream that somebody watches",
                self.watched as f64,
            ),
            (
                "upstream_problems",
                "What is wrong with the lists of an upstream",
                self.problems.len() as f64,
            ),
            ("upstream_held", "Definitions that wait for an approval", self.held.len() as f64),
        ];
        let counters = [
            ("upstream_requests", "Requests relayed to an upstream", self.requests as f64),
            ("upstream_requests_failed", "Relayed requests without a result", self.failed as f64),
            (
                "upstream_answer_seconds",
                "How long all answers of an upstream took together",
                self.answering.as_secs_f64(),
            ),
            ("upstream_looks", "Reads made to find changes", self.looks as f64),
            ("upstream_list_looks", "Lists loaded to find changes", self.list_looks as f64),
            ("upstream_connections", "Connections made to an upstream", self.connections as f64),
            (
                "upstream_connections_failed",
                "Connections that could not be made",
                self.failed_connections as f64,
            ),
        ];
        let gauges = gauges.map(|(name, help, value)| Figure::gauge(name, help, value));
        let counters = counters.map(|(name, help, value)| Figure::counter(name, help, value));
        states.chain(failures).chain(gauges).chain(counters).collect()
    }
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
    pub(crate) list_looks: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) failed_connections: AtomicU64,
    /// Of all answers, in microseconds.
    pub(crate) answering: AtomicU64,
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
        self.answering.fetch_add(took, Ordering::Relaxed);
        if is_failed {
            Self::add(&self.failed);
        }
    }
}

fn all_milliseconds<S: serde::Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    milliseconds(&Some(*time), to)
}

#[expect(clippy::ref_option, reason = "fields are given like this")]
fn milliseconds<S: serde::Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => to.serialize_some(&(time.as_micros() as f64 / 1000.0)),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use tidings_mirror::ConnectError;

    use super::*;

    #[test]
    fn the_kind_of_each_reason_of_the_mirror_is_known() {
        let died = ConnectError::Died { status: None, stderr: Vec::new(), garbage: None };
        let (stderr, timeout) = (Vec::new(), Duration::from_secs(1));
        let late = ConnectError::Timeout { timeout, stderr, garbage: None };
        let source = std::io::Error::other("no such file");
        let reasons = [
            (ConnectError::Unauthorized, Failure::Unauthorized),
            (ConnectError::Forbidden, Failure::Forbidden),
            (ConnectError::Unreachable("refused".into()), Failure::Unreachable),
            (late, Failure::Timeout),
            (died, Failure::Program),
            (ConnectError::Spawn { program: "npx".into(), source }, Failure::Program),
            (ConnectError::NotMcp("a page".into()), Failure::Protocol),
            (ConnectError::Version { server: "1999".into() }, Failure::Protocol),
            (ConnectError::Transport("odd".into()), Failure::Other),
        ];
        for (error, expected) in reasons {
            assert_eq!(Failure::of(&error.to_string()), expected, "{error}");
        }
    }

    #[test]
    fn every_word_of_a_label_is_that_of_the_json() {
        for state in State::ALL {
            assert_eq!(serde_json::to_value(state).unwrap(), state.word());
        }
        for failure in Failure::ALL {
            assert_eq!(serde_json::to_value(failure).unwrap(), failure.word());
        }
    }
}
