//! The typed event stream: what happened to the mirror, for any number of receivers; who lags is
//! told so.

// Sampling, roots and logging are deprecated and still in use.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{LoggingLevel, Prompt, Resource, ResourceTemplate, Tool};
use serde_json::Value;
use tidings_core::Diff;
use tokio::sync::broadcast;

use crate::cache::{PromptContent, ResourceContent, TemplateContent, ToolOutcome};
use crate::lists::List;

/// Something that happened.
///
/// Events come in the order in which the state moved, and the state they speak of can be read when
/// they arrive. Replayed from the start they rebuild the lists, the subscriptions and the contents.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// The tools differ from before, or could not be listed again.
    ToolsChanged(ListChange<Tool>),
    /// The resources differ from before, or could not be listed again.
    ResourcesChanged(ListChange<Resource>),
    /// The resource templates differ from before, or could not be listed again.
    TemplatesChanged(ListChange<ResourceTemplate>),
    /// The prompts differ from before, or could not be listed again.
    PromptsChanged(ListChange<Prompt>),
    /// A resource was read: because somebody asked, or because it changed.
    ResourceContentChanged {
        /// Which resource.
        uri: Arc<str>,
        /// What was read.
        content: Arc<ResourceContent>,
        /// Why it was read.
        cause: Cause,
    },
    /// A watched resource that nobody has read here changed.
    ResourceUpdated {
        /// Which resource.
        uri: Arc<str>,
        /// [`Cause::Notice`] if the server said so; [`Cause::Resync`] if notices may have been
        /// missed, so that nobody knows.
        cause: Cause,
    },
    /// A template was read.
    TemplateContentChanged {
        /// Which template.
        template: Arc<str>,
        /// What was read.
        content: Arc<TemplateContent>,
    },
    /// A prompt was filled in.
    PromptContentChanged {
        /// Which prompt.
        name: Arc<str>,
        /// What came of it.
        content: Arc<PromptContent>,
    },
    /// A tool was called: it answered, or the call failed.
    ToolResultChanged {
        /// Which tool.
        name: Arc<str>,
        /// What came of it.
        outcome: Arc<ToolOutcome>,
    },
    /// Something read before is not kept any longer.
    ContentDropped {
        /// What it was.
        what: ContentKey,
        /// Why it went.
        why: DropCause,
    },
    /// The set of watched resources changed.
    SubscriptionsChanged {
        /// All that are watched now.
        uris: BTreeSet<Arc<str>>,
        /// What the server would not let us watch, in this change.
        refused: Vec<Arc<str>>,
    },
    /// The connection came, went, or is being tried again.
    Connection(ConnectionState),
    /// The server logged something.
    Log {
        /// How grave it is.
        level: LoggingLevel,
        /// Which part of the server said it.
        logger: Option<String>,
        /// What it said: any JSON, often a string.
        data: Value,
    },
    /// A line that a server over stdio wrote on its standard error.
    Stderr {
        /// The line, without its end.
        line: Arc<str>,
    },
    /// A request that takes long said how far it is.
    Progress(Progress),
    /// Something is not as it should be, and the mirror goes on.
    Warning(Warning),
    /// This receiver was too slow and missed so many events. Read the state: it is current.
    Lagged {
        /// How many events are gone.
        missed: u64,
    },
}

/// How a list differs from what it was.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListChange<T> {
    /// The whole list as it is now.
    pub items: Items<T>,
    /// What was added, removed, changed or moved. Empty if the list could not be loaded.
    pub diff: Diff<Arc<T>>,
    /// Why the list could not be loaded; then `items` is the last good one.
    pub error: Option<Arc<str>>,
}

/// A list at one moment; cheap to clone.
pub type Items<T> = Arc<[Arc<T>]>;

/// Why something was read or announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// Somebody asked for it.
    Asked,
    /// The server said that it changed.
    Notice,
    /// Notices may have been missed: after a new connection, a lost stream or a new subscription.
    Resync,
}

/// What a cached thing is kept under.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ContentKey {
    /// A resource, by URI.
    Resource(Arc<str>),
    /// A template, by URI template.
    Template(Arc<str>),
    /// A prompt, by name.
    Prompt(Arc<str>),
    /// A tool's latest result, by the tool's name.
    Tool(Arc<str>),
}

/// Why a cached thing is not kept any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropCause {
    /// Somebody cleared it.
    Cleared,
    /// The server does not offer it any longer.
    Gone,
    /// The limits left no room for it.
    Evicted,
    /// The connection ended.
    Disconnected,
    /// It was private to another authorisation.
    OtherAuthorization,
}

/// How far a request is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Progress {
    /// The request, if it was one of ours that still runs.
    pub request: Option<RequestTag>,
    /// How far it is; grows.
    pub progress: f64,
    /// How far it will be at the end, if that is known.
    pub total: Option<f64>,
    /// What it is at.
    pub message: Option<String>,
}

/// Names one request of this mirror, in progress events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestTag(pub(crate) u64);

/// Where the connection is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Being made.
    Connecting,
    /// In use.
    Ready,
    /// It broke.
    Lost {
        /// Why.
        reason: Arc<str>,
    },
    /// It will be made again.
    Retrying {
        /// How many attempts came before this one.
        attempt: u32,
        /// How long until it is tried.
        after: Duration,
        /// Why the attempt before failed.
        reason: Arc<str>,
    },
    /// It ended for good.
    Closed {
        /// Why.
        reason: Arc<str>,
    },
}

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// A watched resource could not be read again; it is tried later.
    ReadFailed {
        /// Which resource.
        uri: Arc<str>,
        /// Why.
        error: Arc<str>,
    },
    /// The server announced a resource that nobody subscribed to.
    NotSubscribed {
        /// Which resource.
        uri: Arc<str>,
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
            Self::ReadFailed { uri, error } => {
                write!(formatter, "`{uri}` could not be read: {error}")
            }
            Self::NotSubscribed { uri } => {
                write!(formatter, "the server announced `{uri}`, which nobody subscribed to")
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

impl std::fmt::Display for ConnectionState {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connecting => formatter.write_str("connecting"),
            Self::Ready => formatter.write_str("ready"),
            Self::Lost { reason } => write!(formatter, "lost: {reason}"),
            Self::Retrying { after, reason, .. } => {
                write!(formatter, "trying again in {} ms: {reason}", after.as_millis())
            }
            Self::Closed { reason } => write!(formatter, "closed: {reason}"),
        }
    }
}

/// Receives events; each receiver gets all that happen after it was made.
#[derive(Debug)]
pub struct Events {
    receiver: broadcast::Receiver<Event>,
}

impl Events {
    /// The next event, or `None` once the mirror is gone.
    ///
    /// Cancel-safe: an event is either returned or still there.
    pub async fn next(&mut self) -> Option<Event> {
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Lagged { missed }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(broadcast::error::TryRecvError::Lagged(missed)) => Some(Event::Lagged { missed }),
            Err(_) => None,
        }
    }
}

/// Where events come from; every part of the mirror that moves state has one.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    sender: broadcast::Sender<Event>,
}

impl Sender {
    /// `capacity` is how many events a receiver may be behind.
    pub(crate) fn new(capacity: usize) -> Self {
        Self { sender: broadcast::Sender::new(capacity.max(1)) }
    }

    pub(crate) fn emit(&self, event: Event) {
        // Nobody listening is no fault.
        let _ = self.sender.send(event);
    }

    pub(crate) fn receiver(&self) -> Events {
        Events { receiver: self.sender.subscribe() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lags_is_told_how_much_is_gone_and_goes_on() {
        let sender = Sender::new(2);
        let mut events = sender.receiver();
        for _ in 0..5 {
            sender.emit(Event::Connection(ConnectionState::Ready));
        }
        assert!(matches!(events.try_next(), Some(Event::Lagged { missed: 3 })));
        assert!(matches!(events.try_next(), Some(Event::Connection(_))));
        assert!(matches!(events.try_next(), Some(Event::Connection(_))));
        assert!(events.try_next().is_none());
    }
}
