//! Warnings: problems that do not stop the mirror.

use std::sync::Arc;

use serde::Serialize;

use crate::lists::List;
use crate::odd::Odd;

/// A problem that does not stop the mirror.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// A list could not be loaded. The last loaded list stays, and loading is retried.
    ListFailed {
        /// The list.
        list: List,
        /// The reason.
        error: Arc<str>,
    },
    /// The server lists an item twice; the first is kept.
    Duplicate {
        /// The list.
        list: List,
        /// The repeated name or URI.
        key: Arc<str>,
    },
    /// A list was not loaded to its end.
    ListCut {
        /// The list.
        list: List,
        /// The reason.
        reason: Arc<str>,
    },
    /// Items of a list violate the protocol. Sent when these items change.
    OddItems {
        /// The list.
        list: List,
        /// All of them; the usable ones are in the list too.
        items: Arc<[Odd]>,
    },
    /// A watched resource could not be read; it is retried later.
    ReadFailed {
        /// The resource.
        uri: Arc<str>,
        /// The reason.
        error: Arc<str>,
    },
    /// The server announced a resource that is neither watched nor a sub-resource of a watched one.
    /// Sent the first time, the tenth, the hundredth and so on.
    NotSubscribed {
        /// The resource.
        uri: Arc<str>,
        /// How often, on this connection.
        count: u64,
    },
    /// The server sent an unexpected notice. Sent the first time, the tenth, the hundredth and so
    /// on.
    Unasked {
        /// The method of the notice.
        method: Arc<str>,
        /// How often, on this connection.
        count: u64,
    },
    /// The server does not watch everything that was requested.
    Unacknowledged {
        /// What it refused, in words.
        what: Arc<str>,
    },
    /// A tool's arguments or result do not match its schema.
    Schema {
        /// The tool.
        tool: Arc<str>,
        /// The mismatch.
        problem: Arc<str>,
    },
    /// A stdio server printed a line that is not a message.
    Garbage {
        /// Its beginning.
        line: Arc<str>,
    },
    /// The server advertises notices but offers no stream for them.
    NoStream {
        /// The reason.
        reason: Arc<str>,
    },
}

impl std::fmt::Display for Warning {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::ListFailed { list, error } => {
                write!(formatter, "the {list} could not be listed: {error}")
            }
            Self::Duplicate { list, key } => {
                write!(formatter, "the server lists `{key}` twice in its {list}")
            }
            Self::ListCut { list, reason } => {
                write!(formatter, "the {list} may be incomplete: {reason}")
            }
            Self::OddItems { list, items } => {
                const SHOWN: usize = 3;
                let shown: Vec<_> = items.iter().take(SHOWN).map(ToString::to_string).collect();
                write!(formatter, "invalid {list}: {}", shown.join("; "))?;
                match items.len().saturating_sub(SHOWN) {
                    0 => Ok(()),
                    more => write!(formatter, "; and {more} more"),
                }
            }
            Self::ReadFailed { uri, error } => {
                write!(formatter, "`{uri}` could not be read: {error}")
            }
            Self::NotSubscribed { uri, count } => {
                let times = times(*count);
                write!(formatter, "the server announced `{uri}`, which is not subscribed to{times}")
            }
            Self::Unasked { method, count } => {
                let times = times(*count);
                write!(formatter, "the server sent `{method}`, which was not requested{times}")
            }
            Self::Unacknowledged { what } => {
                write!(formatter, "the server will not announce {what}")
            }
            Self::Schema { tool, problem } => write!(formatter, "tool `{tool}`: {problem}"),
            Self::Garbage { line } => {
                write!(formatter, "the server printed a line that is not a message: {line}")
            }
            Self::NoStream { reason } => {
                write!(formatter, "the server cannot announce changes: {reason}")
            }
        }
    }
}

fn times(count: u64) -> String {
    if count == 1 { String::new() } else { format!(" ({count} times so far)") }
}
