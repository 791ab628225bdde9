//! The typed event stream, for any number of receivers.

// Sampling, roots and logging are deprecated and still in use.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

mod stream;
mod warning;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{LoggingLevel, Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde_json::Value;
use tidings_core::Diff;

pub use self::stream::Events;
pub(crate) use self::stream::Sender;
pub use self::warning::Warning;
use crate::cache::{PromptContent, ResourceContent, TemplateContent, ToolOutcome};
use crate::item::Item;
use crate::written;

/// A change of the mirror's state, or a message of the server.
///
/// Events are in the order of the changes, and the state they describe can be read when they
/// arrive. Replayed from the start, they rebuild the lists, subscriptions and contents.
///
/// As JSON, an event is an object whose `event` is its name:
/// `{"event":"resource_updated","uri":…}`. Times are milliseconds.
///
/// ```
/// use tidings_mirror::Event;
/// use tidings_mirror::cache::ResourceContent;
/// use tidings_mirror::events::Cause;
///
/// let content = ResourceContent::of_text("a:b", "hello");
/// assert_eq!(content.text(), "hello");
/// let (uri, content) = ("a:b".into(), content.into());
/// let (cause, notice) = (Cause::Notice, None);
/// let event = Event::ResourceContentChanged { uri, content, cause, notice };
/// let json = serde_json::to_value(&event).unwrap();
/// assert_eq!(json["event"], "resource_content_changed");
/// assert_eq!(json["content"]["contents"][0]["text"], "hello");
/// ```
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The tools changed, or could not be listed again.
    ToolsChanged(ListChange<Tool>),
    /// The resources changed, or could not be listed again.
    ResourcesChanged(ListChange<Resource>),
    /// The resource templates changed, or could not be listed again.
    TemplatesChanged(ListChange<ResourceTemplate>),
    /// The prompts changed, or could not be listed again.
    PromptsChanged(ListChange<Prompt>),
    /// A resource was read, on request or because it changed.
    ResourceContentChanged {
        /// The resource.
        uri: Arc<str>,
        /// Its content.
        content: Arc<ResourceContent>,
        /// Why it was read.
        cause: Cause,
        /// The number of the notice's [`Message`](crate::Message) in the log, if a notice was the
        /// reason and the log is on. If several notices led to one read, it is the newest.
        #[serde(skip_serializing_if = "Option::is_none")]
        notice: Option<u64>,
    },
    /// A watched resource without cached content changed, or a sub-resource of a watched one.
    ResourceUpdated {
        /// The resource.
        uri: Arc<str>,
        /// [`Cause::Notice`] if the server announced it; [`Cause::Resync`] if notices may have been
        /// missed.
        cause: Cause,
        /// The number of the notice's [`Message`](crate::Message) in the log, if a notice was the
        /// reason and the log is on. If several notices led to one read, it is the newest.
        #[serde(skip_serializing_if = "Option::is_none")]
        notice: Option<u64>,
    },
    /// A watched resource is gone, and its cached content is dropped. If it returns, its content
    /// comes with [`Cause::Returned`].
    ResourceGone {
        /// The resource.
        uri: Arc<str>,
        /// The server's message.
        reason: Arc<str>,
        /// Why it was read.
        cause: Cause,
        /// The number of the notice's [`Message`](crate::Message) in the log, if a notice was the
        /// reason and the log is on. If several notices led to one read, it is the newest.
        #[serde(skip_serializing_if = "Option::is_none")]
        notice: Option<u64>,
    },
    /// A template was read.
    TemplateContentChanged {
        /// The template.
        template: Arc<str>,
        /// Its content.
        content: Arc<TemplateContent>,
    },
    /// A prompt was filled in.
    PromptContentChanged {
        /// The prompt.
        name: Arc<str>,
        /// Its messages.
        content: Arc<PromptContent>,
    },
    /// A tool was called: it answered, or the call failed.
    ToolResultChanged {
        /// The tool.
        name: Arc<str>,
        /// The outcome.
        outcome: Arc<ToolOutcome>,
    },
    /// A cached entry was dropped.
    ContentDropped {
        /// Its key.
        what: ContentKey,
        /// The reason.
        why: DropCause,
    },
    /// The set of watched resources changed.
    SubscriptionsChanged {
        /// All watched resources.
        uris: BTreeSet<Arc<str>>,
        /// The resources that the server refused to watch, in this change.
        refused: Vec<Arc<str>>,
    },
    /// The state of the connection changed.
    Connection(ConnectionState),
    /// The server sent a log message.
    Log {
        /// Its level.
        level: LoggingLevel,
        /// The part of the server that logged it.
        logger: Option<String>,
        /// The message: any JSON, often a string.
        data: Value,
    },
    /// A stdio server wrote a line to standard error.
    Stderr {
        /// The line, without its end.
        line: Arc<str>,
    },
    /// A request reported its progress.
    Progress(Progress),
    /// Something is wrong, and the mirror continues.
    Warning(Warning),
    /// This receiver was too slow and missed events. The state itself is current.
    Lagged {
        /// The number of missed events.
        missed: u64,
    },
}

/// A changed list.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ListChange<T> {
    /// The whole current list.
    pub items: Items<T>,
    /// The added, removed, changed and moved items. Empty if the list could not be loaded.
    #[serde(serialize_with = "written::diff")]
    pub diff: Diff<Arc<Item<T>>>,
    /// Why the list could not be loaded; then `items` is the last loaded list.
    pub error: Option<Arc<str>>,
    /// The number of the notice's [`Message`](crate::Message) in the log, if a notice led to this
    /// load and the log is on. If several did, it is the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<u64>,
}

impl<T> ListChange<T> {
    /// The current list, and its difference from before.
    #[must_use]
    pub fn new(items: Items<T>, diff: Diff<Arc<Item<T>>>) -> Self {
        Self { items, diff, error: None, notice: None }
    }
}

/// A list at one moment; cheap to clone.
pub type Items<T> = Arc<[Arc<Item<T>>]>;

/// Why something was read or announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Cause {
    /// It was requested.
    Asked,
    /// The server announced a change.
    Notice,
    /// Notices may have been missed: after a reconnect, a lost stream or a new subscription.
    Resync,
    /// It was gone, and can be read again.
    Returned,
}

/// The key of a cache entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(tag = "kind", content = "key", rename_all = "snake_case")]
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

/// Why a cache entry was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum DropCause {
    /// It was cleared.
    Cleared,
    /// The server no longer offers it.
    Gone,
    /// The limits left no room for it.
    Evicted,
    /// The connection ended.
    Disconnected,
    /// It was private to another authorisation.
    OtherAuthorization,
}

/// The progress of a request.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Progress {
    /// The request, if it is one of ours and still open.
    pub request: Option<RequestTag>,
    /// The progress so far; it grows.
    pub progress: f64,
    /// The progress at the end, if known.
    pub total: Option<f64>,
    /// The current step.
    pub message: Option<String>,
}

impl Progress {
    /// Progress without a known total.
    #[must_use]
    pub fn new(progress: f64) -> Self {
        Self { progress, ..Self::default() }
    }
}

/// Identifies a request of this mirror in progress events: see [`Mirror::tag`](crate::Mirror::tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RequestTag(pub u64);

/// The state of the connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
#[non_exhaustive]
pub enum ConnectionState {
    /// Connecting.
    Connecting,
    /// Connected.
    Ready,
    /// The connection was lost.
    Lost {
        /// The reason.
        reason: Arc<str>,
    },
    /// Waiting for a retry.
    Retrying {
        /// The number of attempts before this one.
        attempt: u32,
        /// The time until the attempt.
        #[serde(rename = "after_ms", serialize_with = "written::duration")]
        after: Duration,
        /// Why the last attempt failed.
        reason: Arc<str>,
    },
    /// Ended by [`Mirror::disconnect`](crate::Mirror::disconnect), or by a failed
    /// [`Mirror::reconnect_now`](crate::Mirror::reconnect_now) without
    /// [`Config::reconnect`](crate::Config::reconnect). Lists, contents and watches are kept, and
    /// nothing is tried until the user asks for it.
    Disconnected {
        /// The reason.
        reason: Arc<str>,
    },
    /// Ended for good.
    Closed {
        /// The reason.
        reason: Arc<str>,
    },
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
            Self::Disconnected { reason } => write!(formatter, "disconnected: {reason}"),
            Self::Closed { reason } => write!(formatter, "closed: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lists::List;
    use crate::odd::Odd;

    #[track_caller]
    fn written(event: &Event) -> String {
        serde_json::to_string(event).unwrap()
    }

    #[test]
    fn every_kind_of_event_can_be_built_and_written_as_json() {
        let tool = Tool::new("add", "adds", serde_json::Map::new());
        let tool = Arc::new(Item::from(tool));
        let diff = Diff { added: vec![tool.clone()], ..Diff::default() };
        let tools = Event::ToolsChanged(ListChange::new([tool].into(), diff));
        let shown = serde_json::to_value(&tools).unwrap();
        assert_eq!(shown["event"], "tools_changed");
        assert_eq!(shown["items"][0]["name"], "add");
        assert_eq!(shown["diff"]["added"][0]["name"], "add");
        let after = Duration::from_millis(250);
        let retrying = ConnectionState::Retrying { attempt: 1, after, reason: "no".into() };
        assert_eq!(
            written(&Event::Connection(retrying)),
            r#"{"event":"connection","state":"retrying","attempt":1,"after_ms":250,"reason":"no"}"#
        );
        assert_eq!(
            written(&Event::Connection(ConnectionState::Ready)),
            r#"{"event":"connection","state":"ready"}"#
        );
        let duplicate = Warning::Duplicate { list: List::Tools, key: "add".into() };
        assert_eq!(
            written(&Event::Warning(duplicate)),
            r#"{"event":"warning","warning":"duplicate","list":"tools","key":"add"}"#
        );
        let items = Arc::new([Odd::new(1, "odd", serde_json::json!({ "name": "add" }))]);
        let odd = Warning::OddItems { list: List::Tools, items };
        assert!(written(&Event::Warning(odd)).contains(r#""name":"add","reason":"odd""#));
        let what = ContentKey::Resource("a:b".into());
        assert_eq!(
            written(&Event::ContentDropped { what, why: DropCause::Gone }),
            r#"{"event":"content_dropped","what":{"kind":"resource","key":"a:b"},"why":"gone"}"#
        );
        let progress = Progress { total: Some(2.0), ..Progress::new(1.0) };
        assert_eq!(
            written(&Event::Progress(progress)),
            r#"{"event":"progress","request":null,"progress":1.0,"total":2.0,"message":null}"#
        );
        let outcome = Arc::new(ToolOutcome::new([("a", 1)], Err("no answer".into())));
        let shown = serde_json::to_value(Event::ToolResultChanged { name: "add".into(), outcome });
        let shown = shown.unwrap();
        assert_eq!(shown["outcome"]["arguments"]["a"], 1);
        assert_eq!(shown["outcome"]["error"], "no answer");
        assert!(shown["outcome"]["called_at_ms"].is_u64(), "{shown}");
    }
}
