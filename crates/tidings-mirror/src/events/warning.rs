//! Warnings: what is not as it should be while the mirror goes on.

use std::sync::Arc;

use serde::Serialize;

use crate::lists::List;
use crate::odd::Odd;

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Warning {
    /// A list could not be loaded; the last good one stays, and it is tried again.
    ListFailed {
        /// Which list.
        list: List,
        /// Why.
        error: Arc<str>,
    },
    /// The server lists something twice; the first is kept.
    Duplicate {
        /// In which list.
        list: List,
        /// The name or URI that came again.
        key: Arc<str>,
    },
    /// A list was not read to its end. What was read is there.
    ListCut {
        /// Which list.
        list: List,
        /// Why.
        reason: Arc<str>,
    },
    /// Some items of a list are not as the protocol says. Told when they are others than before.
    OddItems {
        /// In which list.
        list: List,
        /// All of them; those that can be used are in the list too.
        items: Arc<[Odd]>,
    },
    /// A watched resource could not be read again; it is tried later.
    ReadFailed {
        /// Which resource.
        uri: Arc<str>,
        /// Why.
        error: Arc<str>,
    },
    /// The server announced a resource that nobody subscribed to, and no sub-resource of one. Told
    /// the first time, the tenth, the hundredth and so on.
    NotSubscribed {
        /// Which resource.
        uri: Arc<str>,
        /// How often on this connection.
        count: u64,
    },
    /// The server sent a notice that nobody asked for. Told the first time, the tenth, the hundredth
    /// and so on.
    Unasked {
        /// The method of the notice.
        method: Arc<str>,
        /// How often on this connection.
        count: u64,
    },
    /// The server watches less than it was asked to.
    Unacknowledged {
        /// What it left out, in words.
        what: Arc<str>,
    },
    /// A tool's arguments or its result do not fit the schema it declares.
    Schema {
        /// Which tool.
        tool: Arc<str>,
        /// What does not fit.
        problem: Arc<str>,
    },
    /// A server over stdio printed something that is not a message.
    Garbage {
        /// The beginning of it.
        line: Arc<str>,
    },
    /// The server offers no way to tell us of changes, though it says that it would.
    NoStream {
        /// Why.
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
                write!(formatter, "the server lists `{key}` twice among its {list}")
            }
            Self::ListCut { list, reason } => {
                write!(formatter, "the {list} may be incomplete: {reason}")
            }
            Self::OddItems { list, items } => {
                const SHOWN: usize = 3;
                let shown: Vec<_> = items.iter().take(SHOWN).map(ToString::to_string).collect();
                write!(formatter, "odd {list}: {}", shown.join("; "))?;
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
                write!(formatter, "the server announced `{uri}`, which nobody subscribed to{times}")
            }
            Self::Unasked { method, count } => {
                let times = times(*count);
                write!(formatter, "the server sent `{method}`, which nobody asked for{times}")
            }
            Self::Unacknowledged { what } => {
                write!(formatter, "the server will not announce {what}")
            }
            Self::Schema { tool, problem } => write!(formatter, "tool `{tool}`: {problem}"),
            Self::Garbage { line } => {
                write!(formatter, "the server printed something that is not a message: {line}")
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
