//! One row of the timeline: a message with its answer, a fact, or a change that followed.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use tidings_mirror::{Happened, Message};

/// The lane of a row: what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Lane {
    Calls,
    Reads,
    Notices,
    Asked,
    Changes,
    Log,
    Other,
    Stderr,
    Transport,
}

impl Lane {
    pub(crate) const ALL: [Self; 9] = [
        Self::Calls,
        Self::Reads,
        Self::Notices,
        Self::Changes,
        Self::Asked,
        Self::Log,
        Self::Other,
        Self::Stderr,
        Self::Transport,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Reads => "reads",
            Self::Notices => "notices",
            Self::Asked => "asked",
            Self::Changes => "changes",
            Self::Log => "log",
            Self::Other => "other",
            Self::Stderr => "stderr",
            Self::Transport => "transport",
        }
    }
}

/// Where a row comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Sent,
    Received,
    /// It happened in the console.
    Here,
}

impl Way {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Sent => "out",
            Self::Received => "in",
            Self::Here => "here",
        }
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// It asks for no answer.
    Plain,
    Waits,
    Answered,
    Failed(String),
}

impl Status {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Plain => "",
            Self::Waits => "waits",
            Self::Answered => "ok",
            Self::Failed(why) => why,
        }
    }
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// Its number; rows are numbered from 1.
    pub(crate) number: u64,
    /// The revision of its last change.
    pub(crate) revision: u64,
    pub(crate) at: SystemTime,
    pub(crate) lane: Lane,
    pub(crate) way: Way,
    pub(crate) what: String,
    pub(crate) subject: String,
    pub(crate) status: Status,
    pub(crate) took: Option<Duration>,
    pub(crate) bytes: usize,
    /// The row that led to this one.
    pub(crate) cause: Option<u64>,
    pub(crate) message: Option<Arc<Message>>,
    pub(crate) answer: Option<Arc<Message>>,
}

impl Row {
    pub(crate) fn new(at: SystemTime, lane: Lane, way: Way, what: impl Into<String>) -> Self {
        Self {
            number: 0,
            revision: 0,
            at,
            lane,
            way,
            what: what.into(),
            subject: String::new(),
            status: Status::Plain,
            took: None,
            bytes: 0,
            cause: None,
            message: None,
            answer: None,
        }
    }

    /// The row of a message, without what its head says.
    pub(crate) fn of(message: &Arc<Message>, lane: Lane, way: Way, what: &str) -> Self {
        let what = what.strip_prefix("notifications/").unwrap_or(what);
        let mut row = Self::new(message.at, lane, way, what);
        row.bytes = message.length;
        row.message = Some(message.clone());
        row
    }

    /// The bytes it keeps in memory.
    pub(crate) fn weight(&self) -> usize {
        let text =
            |message: &Option<Arc<Message>>| message.as_ref().map_or(0, |it| it.text().len());
        self.what.len() + self.subject.len() + text(&self.message) + text(&self.answer) + 200
    }

    pub(crate) fn json(&self) -> Value {
        let mut row = json!({
            "n": self.number, "at": millis(self.at), "lane": self.lane.name(),
            "way": self.way.name(), "what": self.what,
        });
        let mut set = |name: &str, value: Value| row[name] = value;
        if !self.subject.is_empty() {
            set("of", self.subject.as_str().into());
        }
        if self.status != Status::Plain {
            set("status", self.status.name().into());
        }
        if let Some(took) = self.took {
            set("took", (took.as_secs_f64() * 1e3).into());
        }
        if self.bytes > 0 {
            set("bytes", self.bytes.into());
        }
        if let Some(by) = self.message.as_ref().and_then(|message| message.by.as_ref()) {
            set("by", (&**by).into());
        }
        if let Some(cause) = self.cause {
            set("cause", cause.into());
        }
        row
    }
}

/// A time in milliseconds, with fractions.
pub(crate) fn millis(at: SystemTime) -> f64 {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1e3
}

/// A fact below the messages, in words: what happened, to what, and whether it failed.
pub(crate) fn fact(what: &Happened) -> (&'static str, String, Status) {
    let plain = Status::Plain;
    match what {
        Happened::HttpAnswered { method, status, .. } => {
            let is_fine = (200..400).contains(status);
            let shown = if is_fine { Status::Answered } else { Status::Failed(status.to_string()) };
            ("http", format!("{method} {status}"), shown)
        }
        Happened::HttpFailed { method, reason, .. } => {
            ("http", format!("{method} {reason}"), Status::Failed("failed".to_owned()))
        }
        Happened::HttpRetried { method, reason } => {
            ("retried", format!("{method} {reason}"), plain)
        }
        Happened::StreamOpened { stream, method } => {
            ("stream opened", format!("{stream} ({method})"), plain)
        }
        Happened::StreamClosed { stream, by } => {
            ("stream closed", format!("{stream} by {}", closed_by(*by)), plain)
        }
        Happened::SessionBegun { session } => ("session began", session.to_string(), plain),
        Happened::SessionEnded { session, by } => {
            ("session ended", format!("{session} by {}", closed_by(*by)), plain)
        }
        Happened::ProcessStarted { pid } => ("process started", format!("pid {pid}"), plain),
        Happened::ProcessExited { pid, status } => {
            let status = status.as_deref().unwrap_or("killed");
            let failed = Status::Failed("ended".to_owned());
            ("process ended", format!("pid {pid}, {status}"), failed)
        }
        _ => ("transport", String::new(), plain),
    }
}

fn closed_by(by: tidings_mirror::ClosedBy) -> &'static str {
    match by {
        tidings_mirror::ClosedBy::Client => "the console",
        tidings_mirror::ClosedBy::Server => "the server",
        _ => "an interruption",
    }
}
