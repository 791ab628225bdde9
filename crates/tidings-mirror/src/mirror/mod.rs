//! [`Mirror`]: the cheap-to-clone handle, and its state.

mod asking;
mod opening;
mod watching;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use rmcp::model::{
    Implementation, Prompt, ProtocolVersion, Resource, ResourceTemplate, ServerCapabilities, Tool,
};
use tidings_core::ListKinds;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::asking::{Completion, Reference};
pub use self::watching::{SubscribeError, Watch};
use crate::cache::Reader;
use crate::connect::ConnectError;
use crate::engine::Engine;
use crate::era::Era;
use crate::events::{ConnectionState, Events, Items};
use crate::history::{Message, Record};
use crate::lists::List;
use crate::odd::Odd;
use crate::options::RequestOptions;
use crate::request::RequestError;

/// Keeps one server's lists, contents and results current.
///
/// Cloning is cheap, and all clones are one mirror. Dropping the last one cuts the connection;
/// [`close`](Self::close) ends it cleanly.
#[derive(Clone)]
pub struct Mirror {
    inner: Arc<Inner>,
    /// The request options of this handle.
    options: Arc<RequestOptions>,
}

struct Inner {
    engine: Arc<Engine>,
    tags: AtomicU64,
    cancel: CancellationToken,
    /// The driver. Dropping it with the last handle cuts the connection.
    tasks: Mutex<JoinSet<()>>,
}

/// The identity of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Server {
    /// Its name, title and version, if stated.
    pub identity: Option<Implementation>,
    /// The negotiated protocol revision.
    pub version: ProtocolVersion,
    /// The era of that revision.
    pub era: Era,
    /// Its capabilities.
    pub capabilities: ServerCapabilities,
    /// Its instructions.
    pub instructions: Option<String>,
}
/// The state, without a request.
impl Mirror {
    /// The server; `None` without a connection.
    #[must_use]
    pub fn server(&self) -> Option<Arc<Server>> {
        self.inner.engine.link().ok().map(|link| link.server().clone())
    }

    /// Whether there is a connection and its lists are loaded: see [`ready`](Self::ready).
    #[must_use]
    pub fn is_loaded(&self) -> bool {
        self.inner.engine.machine().is_loaded_now()
    }

    /// Whether there is a connection and this list was loaded from it without an error, or the server
    /// does not offer it. Otherwise the list is the last good one.
    #[must_use]
    pub fn has_list(&self, list: List) -> bool {
        self.inner.engine.machine().has_list_now(list)
    }

    /// The lists whose changes the server announces; none without a connection.
    #[must_use]
    pub fn announced(&self) -> ListKinds {
        self.inner.engine.machine().announced()
    }

    /// The state of the connection.
    #[must_use]
    pub fn connection(&self) -> ConnectionState {
        self.inner.engine.machine().connection().clone()
    }

    /// Why the last attempt to connect failed; `None` if it succeeded, or if there was none.
    #[must_use]
    pub fn failure(&self) -> Option<Arc<ConnectError>> {
        self.inner.engine.failure()
    }

    /// The tools, in the order of the server.
    #[must_use]
    pub fn tools(&self) -> Items<Tool> {
        self.inner.engine.machine().lists().tools.items().clone()
    }

    /// The resources, in the order of the server.
    #[must_use]
    pub fn resources(&self) -> Items<Resource> {
        self.inner.engine.machine().lists().resources.items().clone()
    }

    /// The resource templates, in the order of the server.
    #[must_use]
    pub fn templates(&self) -> Items<ResourceTemplate> {
        self.inner.engine.machine().lists().templates.items().clone()
    }

    /// The prompts, in the order of the server.
    #[must_use]
    pub fn prompts(&self) -> Items<Prompt> {
        self.inner.engine.machine().lists().prompts.items().clone()
    }

    /// Why a list may be out of date: it could not be loaded.
    #[must_use]
    pub fn list_error(&self, list: List) -> Option<RequestError> {
        self.inner.engine.machine().list_error(list)
    }

    /// Why a list may be incomplete: it was not loaded to its end.
    #[must_use]
    pub fn incomplete(&self, list: List) -> Option<Arc<str>> {
        self.inner.engine.machine().cut(list)
    }

    /// The items of a list that violate the protocol, in the server's order. The usable ones are in
    /// the list too.
    #[must_use]
    pub fn odd(&self, list: List) -> Arc<[Odd]> {
        self.inner.engine.machine().odd(list)
    }

    /// The events from now on.
    #[must_use]
    pub fn events(&self) -> Events {
        self.inner.engine.events.receiver()
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Reader {
        &self.inner.engine.reader
    }

    /// The last messages in both directions, oldest first; see
    /// [`Config::history`](crate::Config::history).
    #[must_use]
    pub fn history(&self) -> Vec<Arc<Message>> {
        self.inner.engine.history.messages()
    }

    /// The messages after the record with this number; 0 for all. Numbers may have gaps: facts are
    /// numbered too.
    #[must_use]
    pub fn messages_since(&self, number: u64) -> Vec<Arc<Message>> {
        self.inner.engine.history.since(number)
    }

    /// The messages and facts after the record with this number, in order; 0 for all. If numbers
    /// are missing, those records were dropped. The log keeps as many messages, and as many facts,
    /// as [`Config::history`](crate::Config::history) says.
    ///
    /// ```no_run
    /// # use tidings_mirror::{Mirror, Record};
    /// # async fn example(mirror: Mirror) {
    /// let mut seen = 0;
    /// loop {
    ///     mirror.messages_changed(seen).await;
    ///     for record in mirror.records_since(seen) {
    ///         seen = record.number();
    ///         match record {
    ///             Record::Message(message) => println!("{:?} {}", message.direction, message.text()),
    ///             Record::Fact(fact) => println!("{:?}", fact.what),
    ///             _ => {}
    ///         }
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn records_since(&self, number: u64) -> Vec<Record> {
        self.inner.engine.history.records(number)
    }

    /// Waits for a record after the one with this number, and returns the number of the last one.
    /// Without [`Config::history`](crate::Config::history) there is none.
    ///
    /// Cancel-safe: nothing is taken.
    pub async fn messages_changed(&self, number: u64) -> u64 {
        self.inner.engine.history.changed(number).await
    }

    /// The last lines of a stdio server's standard error, also while it starts and after it ended.
    #[must_use]
    pub fn stderr(&self) -> Vec<Arc<str>> {
        self.inner.engine.memory.stderr()
    }

    /// Whether the server supports subscriptions to resources.
    #[must_use]
    pub fn supports_subscriptions(&self) -> bool {
        self.server().is_some_and(|server| {
            let resources = server.capabilities.resources.as_ref();
            resources.is_some_and(|resources| resources.subscribe == Some(true))
        })
    }

    /// The watched resources, sorted.
    #[must_use]
    pub fn subscriptions(&self) -> Vec<Arc<str>> {
        self.inner.engine.machine().subscriptions().cloned().collect()
    }

    /// Whether a resource is watched.
    #[must_use]
    pub fn is_subscribed(&self, uri: &str) -> bool {
        self.inner.engine.machine().is_subscribed(uri)
    }
}
