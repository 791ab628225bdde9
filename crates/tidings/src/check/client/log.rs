//! Everything one client heard, in the order of arrival and with times.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::shown;
use crate::check::verdict::Trace;
use crate::present::text::{cut, one_line};

/// Messages that are kept of one client. A server that sends more has failed already.
const KEPT: usize = 20_000;

/// Marks lines of the trace.
pub(crate) const NOT_A_MESSAGE: &str = "not a message";

/// The way a message came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Via {
    /// Standard output, or a pipe.
    Pipe,
    /// A GET stream, by number.
    Stream(u64),
    /// The answer to the request with this id.
    Answer(Value),
}

/// What came.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum What {
    Message(Value),
    /// A line or body that is not a message.
    Garbage(String),
    /// This way is over, and why.
    Ended(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) at: Instant,
    pub(crate) via: Via,
    pub(crate) what: What,
}

impl Arrival {
    /// The message, if it is one.
    pub(crate) fn message(&self) -> Option<&Value> {
        match &self.what {
            What::Message(message) => Some(message),
            _ => None,
        }
    }

    /// The method of a message without an id.
    pub(crate) fn notice(&self) -> Option<&str> {
        let message = self.message().filter(|message| message.get("id").is_none())?;
        message["method"].as_str()
    }
}

/// The log of one client.
#[derive(Debug, Default)]
pub(crate) struct Log {
    heard: Mutex<Vec<Arrival>>,
    more: Notify,
    /// Where it is also written, and the name of the client.
    trace: Option<(Trace, String)>,
}

impl Log {
    /// A log that is also written to the trace of all clients.
    pub(crate) fn traced(trace: Trace, name: String) -> Self {
        Self { trace: Some((trace, name)), ..Self::default() }
    }

    pub(crate) fn push(&self, via: Via, what: What) {
        if let Some((trace, name)) = &self.trace {
            let said = match &what {
                What::Message(message) => shown(message),
                What::Garbage(text) => format!("{NOT_A_MESSAGE}: {}", cut(&one_line(text), 120)),
                What::Ended(why) => format!("end: {why}"),
            };
            trace.line(&match &via {
                Via::Stream(number) => format!("{name} ← {said} (stream {number})"),
                _ => format!("{name} ← {said}"),
            });
        }
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.len() < KEPT {
            heard.push(Arrival { at: Instant::now(), via, what });
        }
        drop(heard);
        self.more.notify_waiters();
    }

    /// Notes in the trace that a request of the server was answered.
    pub(crate) fn replied(&self, reply: &Value) {
        if let Some((trace, name)) = &self.trace {
            trace.line(&format!("{name} → {}", shown(reply)));
        }
    }

    /// The place of what comes next.
    pub(crate) fn mark(&self) -> usize {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Everything from a place on.
    pub(crate) fn since(&self, mark: usize) -> Vec<Arrival> {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.get(mark..).unwrap_or_default().to_vec()
    }

    /// The first thing from a place on that is wanted, and the place after it; waits until the
    /// deadline.
    pub(crate) async fn wait(
        &self,
        mark: usize,
        deadline: Instant,
        wanted: impl Fn(&Arrival) -> bool,
    ) -> Option<(usize, Arrival)> {
        let mut from = mark;
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            // Order: registered before the log is searched, so that nothing is missed.
            more.as_mut().enable();
            {
                let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
                let new = heard.get(from..).unwrap_or_default();
                if let Some(found) = new.iter().position(&wanted) {
                    return Some((from + found + 1, new[found].clone()));
                }
                from = heard.len();
            }
            if tokio::time::timeout_at(deadline, more).await.is_err() {
                // What came at the very end still counts.
                let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
                let new = heard.get(from..).unwrap_or_default();
                let found = new.iter().position(&wanted)?;
                return Some((from + found + 1, new[found].clone()));
            }
        }
    }
}
