//! Facts of the log: events of connections, sessions and processes, beside the messages.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::written;

/// The most characters of a session id that are shown.
const SESSION: usize = 8;

/// An event below the messages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fact {
    /// Its number: [`Message`](crate::Message)s and facts of one mirror are numbered together, from
    /// 1.
    pub number: u64,
    /// When it happened.
    #[serde(rename = "at_ms", serialize_with = "written::time")]
    pub at: SystemTime,
    /// The event.
    #[serde(flatten)]
    pub what: Happened,
}

/// The kinds of events. They contain no headers, and only the beginning of a session id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Happened {
    /// The head of the answer to an HTTP request arrived.
    HttpAnswered {
        /// The method of the request.
        method: Arc<str>,
        /// The status of the answer.
        status: u16,
        /// The time from the request to the head.
        #[serde(rename = "took_ms", serialize_with = "written::duration")]
        took: Duration,
    },
    /// An HTTP request was not answered.
    HttpFailed {
        /// The method of the request.
        method: Arc<str>,
        /// The reason.
        reason: Arc<str>,
        /// The time until it failed.
        #[serde(rename = "took_ms", serialize_with = "written::duration")]
        took: Duration,
    },
    /// An HTTP request is sent a second time.
    HttpRetried {
        /// The method of the request.
        method: Arc<str>,
        /// The reason.
        reason: Arc<str>,
    },
    /// An event stream began: the answer to a POST, or the stream of notices of a session.
    StreamOpened {
        /// The number of the stream on its connection.
        stream: u64,
        /// The method of the request that it answers.
        method: Arc<str>,
    },
    /// An event stream ended.
    StreamClosed {
        /// The number of the stream on its connection.
        stream: u64,
        /// Who ended it.
        by: ClosedBy,
    },
    /// The server began a session.
    SessionBegun {
        /// The beginning of its id.
        session: Arc<str>,
    },
    /// A session ended.
    SessionEnded {
        /// The beginning of its id.
        session: Arc<str>,
        /// Who ended it.
        by: ClosedBy,
    },
    /// A stdio server was started.
    ProcessStarted {
        /// The id of its process.
        pid: u32,
    },
    /// A stdio server ended.
    ProcessExited {
        /// The id of its process.
        pid: u32,
        /// Its exit status in words; `None` if it was killed and nobody waited for its end.
        status: Option<Arc<str>>,
    },
}

/// Who ended something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ClosedBy {
    /// This client.
    Client,
    /// The server, in an orderly way.
    Server,
    /// Unknown: it was interrupted.
    Nobody,
}

/// The beginning of a session id, never more than half: the whole id gives access to the session.
pub(crate) fn shortened(session: &str) -> Arc<str> {
    let shown = (session.chars().count() / 2).min(SESSION);
    session.chars().take(shown).chain(std::iter::once('…')).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_session_id_at_most_half_is_shown() {
        assert_eq!(&*shortened("s1"), "s…");
        assert_eq!(&*shortened("0123456789abcdef0123456789abcdef"), "01234567…");
    }

    #[test]
    fn a_fact_is_one_object() {
        let what = Happened::StreamClosed { stream: 3, by: ClosedBy::Server };
        let fact = Fact { number: 7, at: SystemTime::UNIX_EPOCH, what };
        let shown = serde_json::to_value(&fact).unwrap();
        let expected = serde_json::json!({
            "number": 7, "at_ms": 0, "fact": "stream_closed", "stream": 3, "by": "server",
        });
        assert_eq!(shown, expected);
    }
}
