//! The typed event stream: what happened to the mirror, for any number of receivers; who lags is
//! told so.

// Sampling, roots and logging are deprecated and still in use.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt as _, Stream, StreamExt};
use rmcp::model::{LoggingLevel, Prompt, Resource, ResourceTemplate, Tool};
use serde::Serialize;
use serde_json::Value;
use tidings_core::Diff;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::ReusableBoxFuture;

use crate::cache::{PromptContent, ResourceContent, TemplateContent, ToolOutcome};
use crate::item::Item;
use crate::lists::List;
use crate::odd::Odd;
use crate::watchers::Watchers;
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
/// let event = Event::ResourceContentChanged { uri, content, cause: Cause::Notice };
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
    },
    /// A watched resource that nobody has read here changed, or a sub-resource of a watched one.
    ResourceUpdated {
        /// Which resource.
        uri: Arc<str>,
        /// [`Cause::Notice`] if the server said so; [`Cause::Resync`] if notices may have been
        /// missed, so that nobody knows.
        cause: Cause,
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
}

impl<T> ListChange<T> {
    /// A list as it is now, and how it differs from what it was.
    #[must_use]
    pub fn new(items: Items<T>, diff: Diff<Arc<Item<T>>>) -> Self {
        Self { items, diff, error: None }
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
    /// It ended for good.
    Closed {
        /// Why.
        reason: Arc<str>,
    },
}

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
///
/// This is a [`Stream`]; its own [`next`](Self::next) needs no extension trait.
pub struct Events {
    received: ReusableBoxFuture<'static, Received>,
}

type Received = (broadcast::Receiver<Event>, Result<Event, RecvError>);

async fn received(mut receiver: broadcast::Receiver<Event>) -> Received {
    let event = receiver.recv().await;
    (receiver, event)
}

impl std::fmt::Debug for Events {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Events(…)")
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let (receiver, event) = std::task::ready!(self.received.poll(context));
        self.received.set(received(receiver));
        Poll::Ready(match event {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(Event::Lagged { missed }),
            Err(RecvError::Closed) => None,
        })
    }
}

impl Events {
    /// The next event, or `None` once the connection ended for good and all before it was returned.
    /// The last event is [`ConnectionState::Closed`].
    ///
    /// Cancel-safe: an event is either returned or still there.
    pub async fn next(&mut self) -> Option<Event> {
        StreamExt::next(self).await
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<Event> {
        // Unconstrained: an event that is there must not be missed because this task ran for long.
        tokio::task::unconstrained(self.next()).now_or_never().flatten()
    }
}

/// Where events come from; every part of the mirror that moves state has one.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// Nothing once the connection ended for good: then receivers end too.
    sender: Arc<RwLock<Option<broadcast::Sender<Event>>>>,
    /// Who follows contents; they hear of each event before its receivers do.
    pub(crate) watchers: Arc<Watchers>,
}

impl Sender {
    /// `capacity` is how many events a receiver may be behind.
    pub(crate) fn new(capacity: usize) -> Self {
        let sender = broadcast::Sender::new(capacity.max(1));
        Self { sender: Arc::new(RwLock::new(Some(sender))), watchers: Arc::default() }
    }

    pub(crate) fn emit(&self, event: Event) {
        self.watchers.hear(&event);
        let is_last = matches!(event, Event::Connection(ConnectionState::Closed { .. }));
        if let Some(sender) = &*self.sender.read().unwrap_or_else(PoisonError::into_inner) {
            // Nobody listening is no fault.
            let _ = sender.send(event);
        }
        if is_last {
            *self.sender.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    pub(crate) fn receiver(&self) -> Events {
        let sender = self.sender.read().unwrap_or_else(PoisonError::into_inner);
        // Of a sender that is gone at once: there is nothing more to hear.
        let ended = || broadcast::channel(1).1;
        let receiver = sender.as_ref().map_or_else(ended, broadcast::Sender::subscribe);
        Events { received: ReusableBoxFuture::new(received(receiver)) }
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

    #[tokio::test]
    async fn the_end_of_the_connection_is_the_last_event() {
        let sender = Sender::new(8);
        let mut events = sender.receiver();
        let closed = || Event::Connection(ConnectionState::Closed { reason: "test".into() });
        sender.emit(Event::Stderr { line: "bye".into() });
        sender.emit(closed());
        sender.emit(Event::Stderr { line: "too late".into() });
        let mut heard = Vec::new();
        while let Some(event) = events.next().await {
            heard.push(event);
        }
        assert!(matches!(&*heard, [Event::Stderr { .. }, Event::Connection(_)]), "{heard:?}");
        assert!(sender.receiver().next().await.is_none(), "nor is there anything to hear later");
    }

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
