//! The typed event stream: what happened to the mirror, for any number of receivers.

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

/// Something that happened.
///
/// Events come in the order in which the state moved, and the state they speak of can be read when
/// they arrive. Replayed from the start they rebuild the lists, the subscriptions and the contents.
///
/// As JSON an event is an object whose `event` is its name: `{"event":"resource_updated","uri":…}`.
/// Times are milliseconds.
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
        /// The number of the notice's [`Message`](crate::Message) in the log, if a notice was the
        /// reason and the log is kept. If several notices led to one read, it is the newest.
        #[serde(skip_serializing_if = "Option::is_none")]
        notice: Option<u64>,
    },
    /// A watched resource that nobody has read here changed, or a sub-resource of a watched one.
    ResourceUpdated {
        /// Which resource.
        uri: Arc<str>,
        /// [`Cause::Notice`] if the server said so; [`Cause::Resync`] if notices may have been
        /// missed, so that nobody knows.
        cause: Cause,
        /// The number of the notice's [`Message`](crate::Message) in the log, if a notice was the
        /// reason and the log is kept. If several notices led to one read, it is the newest.
        #[serde(skip_serializing_if = "Option::is_none")]
        notice: Option<u64>,
    },
    /// A watched resource is not there any longer. What was kept of it is dropped. If it comes back,
    /// its content is told with [`Cause::Returned`].
    ResourceGone {
        /// Which resource.
        uri: Arc<str>,
        /// What the server said of it.
        reason: Arc<str>,
        /// Why it was read.
        cause: Cause,
        /// The number of the notice's [`Message`](crate::Message) in the log, if a notice was the
        /// reason and the log is kept. If several notices led to one read, it is the newest.
        #[serde(skip_serializing_if = "Option::is_none")]
        notice: Option<u64>,
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
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct ListChange<T> {
    /// The whole list as it is now.
    pub items: Items<T>,
    /// What was added, removed, changed or moved. Empty if the list could not be loaded.
    #[serde(serialize_with = "written::diff")]
    pub diff: Diff<Arc<Item<T>>>,
    /// Why the list could not be loaded; then `items` is the last good one.
    pub error: Option<Arc<str>>,
    /// The number of the [`Message`](crate::Message) in the log whose notice led to this load, if a
    /// notice did and the log is kept. If several did, it is the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notice: Option<u64>,
}

impl<T> ListChange<T> {
    /// A list as it is now, and how it differs from what it was.
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
    /// Somebody asked for it.
    Asked,
    /// The server said that it changed.
    Notice,
    /// Notices may have been missed: after a new connection, a lost stream or a new subscription.
    Resync,
    /// It was gone, and can be read again.
    Returned,
}

/// What a cached thing is kept under.
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

/// Why a cached thing is not kept any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
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

impl Progress {
    /// So far, of nobody knows how much.
    #[must_use]
    pub fn new(progress: f64) -> Self {
        Self { progress, ..Self::default() }
    }
}

/// Names one request of this mirror, in progress events: see [`Mirror::tag`](crate::Mirror::tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct RequestTag(pub u64);

/// Where the connection is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "state", rename_all = "snake_case")]
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
        #[serde(rename = "after_ms", serialize_with = "written::duration")]
        after: Duration,
        /// Why the attempt before failed.
        reason: Arc<str>,
    },
    /// It was ended by [`Mirror::disconnect`](crate::Mirror::disconnect), or
    /// [`Mirror::reconnect_now`](crate::Mirror::reconnect_now) failed and
    /// [`Config::reconnect`](crate::Config::reconnect) does not say how to go on. Lists, contents and
    /// watches are kept, and nothing is tried until somebody asks for it.
    Disconnected {
        /// Why.
        reason: Arc<str>,
    },
    /// It ended for good.
    Closed {
        /// Why.
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
