//! What one client holds between its requests: its legacy listener and its open listen requests.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rmcp::model::{
    ErrorData, InitializeRequestParams, LoggingLevel, ProtocolVersion, RequestId,
    SubscriptionFilter,
};
use serde_json::json;
use tidings_core::{ListKind, ListKinds, ResourceUri};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::handler::refusal;
use crate::notice::Wire;
use crate::outbox::{Next, Outbox};
use crate::path::{Core, Listener, SubscribeError};

/// How long a client may take to read the end of its listen requests when the server stops.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A stdio connection, or a legacy session over HTTP.
pub(crate) struct Connection {
    core: Arc<Core>,
    /// Set once, by `initialize`.
    legacy: OnceLock<Legacy>,
    opened: Notify,
    /// A listen request ended.
    ended: Notify,
    state: Mutex<State>,
    /// Takes the frames of listen requests to the wire; only over stdio.
    writer: Option<Box<dyn FrameWriter>>,
}

/// Where a connection writes frames: a trait object, for a connection does not know its transport.
pub(crate) trait FrameWriter: Send + Sync {
    /// Writes one event or several; true if it could.
    fn write(&self, frames: bytes::Bytes) -> futures_util::future::BoxFuture<'_, bool>;
}

struct Legacy {
    listener: Listener,
    peer: Arc<InitializeRequestParams>,
}

#[derive(Default)]
struct State {
    level: Option<LoggingLevel>,
    greeted: bool,
    listens: HashMap<RequestId, Arc<Listener>>,
}

impl Connection {
    pub(crate) fn new(core: Arc<Core>, writer: Option<Box<dyn FrameWriter>>) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self {
            core,
            legacy: OnceLock::new(),
            opened: Notify::new(),
            ended: Notify::new(),
            state,
            writer,
        })
    }

    /// Begins a legacy session; a second `initialize` changes nothing.
    pub(crate) fn open(&self, peer: &InitializeRequestParams) {
        self.legacy.get_or_init(|| Legacy {
            listener: self.core.legacy_listener(&peer.protocol_version),
            peer: Arc::new(peer.clone()),
        });
        self.opened.notify_one();
    }

    /// The client is ready: from here on it is told of lists.
    pub(crate) fn greet(&self) {
        let Some(legacy) = self.legacy.get() else { return };
        if std::mem::replace(&mut self.lock().greeted, true) {
            return;
        }
        let version = legacy.peer.protocol_version.as_str();
        legacy.listener.greet(self.core.config.versions.lists_for(version));
    }

    /// Who the client is, once it said so.
    pub(crate) fn peer(&self) -> Option<&Arc<InitializeRequestParams>> {
        self.legacy.get().map(|legacy| &legacy.peer)
    }

    /// The revision agreed on.
    pub(crate) fn version(&self) -> Option<&ProtocolVersion> {
        self.peer().map(|peer| &peer.protocol_version)
    }

    /// What waits for the legacy session.
    pub(crate) fn outbox(&self) -> Option<&Arc<Outbox>> {
        self.legacy.get().map(|legacy| legacy.listener.outbox())
    }

    /// As [`Self::outbox`], once there is one.
    pub(crate) async fn opened(&self) -> &Arc<Outbox> {
        loop {
            if let Some(outbox) = self.outbox() {
                return outbox;
            }
            self.opened.notified().await;
        }
    }

    pub(crate) async fn subscribe(&self, uri: &ResourceUri) -> Result<(), SubscribeError> {
        match self.legacy.get() {
            Some(legacy) => legacy.listener.subscribe(uri).await,
            None => Err(SubscribeError::Unknown),
        }
    }

    pub(crate) fn unsubscribe(&self, uri: &ResourceUri) {
        if let Some(legacy) = self.legacy.get() {
            legacy.listener.unsubscribe(uri);
        }
    }

    pub(crate) fn level(&self) -> Option<LoggingLevel> {
        self.lock().level
    }

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        self.lock().level = Some(level);
    }

    /// Begins a listen request before anything of it is acknowledged, so that no change falls
    /// between the two; the filter becomes what is honoured.
    pub(crate) async fn begin_listen(
        &self,
        id: &RequestId,
        filter: &mut SubscriptionFilter,
    ) -> Result<(), ErrorData> {
        let limit = self.core.config.limits.listens_per_connection;
        {
            let state = self.lock();
            if state.listens.contains_key(id) {
                return Err(ErrorData::invalid_request(
                    "Duplicate request id",
                    Some(json!({ "details": "a listen request with this id is open" })),
                ));
            }
            if state.listens.len() >= limit {
                return Err(ErrorData::invalid_params(
                    "Too many listen requests",
                    Some(json!({ "details": format!("a connection may have {limit} open") })),
                ));
            }
        }
        let listener = accept_filter(&self.core, id, filter).await?;
        self.lock().listens.insert(id.clone(), Arc::new(listener));
        Ok(())
    }

    /// Ends a listen request.
    pub(crate) fn end_listen(&self, id: &RequestId) {
        if self.lock().listens.remove(id).is_some() {
            self.ended.notify_one();
        }
    }

    /// The client is gone: nobody listens any more.
    pub(crate) fn close(&self) {
        let listens: Vec<_> = self.lock().listens.values().cloned().collect();
        for listener in listens {
            listener.outbox().close();
        }
    }

    /// Waits until every listen request has had its last words, or has not read them in time.
    pub(crate) async fn listens_ended(&self) {
        let all = async {
            while !self.lock().listens.is_empty() {
                self.ended.notified().await;
            }
        };
        drop(tokio::time::timeout(LAST_WORDS, all).await);
    }

    /// Writes what a listen request has to hear until the hub ends it.
    pub(crate) async fn deliver(&self, id: &RequestId) {
        let listener = self.lock().listens.get(id).cloned();
        let (Some(listener), Some(writer)) = (listener, &self.writer) else { return };
        let reader = listener.outbox().attach();
        while let Next::Frames(frames) = listener.outbox().next(reader).await {
            if !writer.write(frames).await {
                break;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds a connection")
    }
}

/// A listener for what is honoured of a filter, and the filter cut down to it: unknown URIs are
/// dropped, kinds that this revision is not told of are omitted.
pub(crate) async fn accept_filter(
    core: &Arc<Core>,
    id: &RequestId,
    filter: &mut SubscriptionFilter,
) -> Result<Listener, ErrorData> {
    let limit = core.config.limits.subscriptions_per_listener;
    let asked = filter.resource_subscriptions.as_ref().map_or(0, Vec::len);
    if asked > limit {
        return Err(ErrorData::invalid_params(
            "Too many subscriptions",
            Some(json!({
                "parameter": "resourceSubscriptions",
                "value": asked,
                "details": format!("a listen request may watch {limit} resources; open several"),
            })),
        ));
    }
    let listener = Arc::new(Listener::new(core, Wire::modern(id)));
    let lists = honoured_lists(core, filter);
    listener.follow_lists(lists);
    if let Some(uris) = filter.resource_subscriptions.take() {
        filter.resource_subscriptions = Some(watch_all(&listener, uris).await?);
    }
    // Nobody else holds it: the tasks that watched have ended.
    Arc::try_unwrap(listener).map_err(|_| ErrorData::internal_error("Internal error", None))
}

fn honoured_lists(core: &Core, filter: &mut SubscriptionFilter) -> ListKinds {
    let told = core.config.versions.lists_for(ProtocolVersion::LATEST.as_str());
    let mut lists = ListKinds::EMPTY;
    for (kind, wanted) in [
        (ListKind::Tools, &mut filter.tools_list_changed),
        (ListKind::Prompts, &mut filter.prompts_list_changed),
        (ListKind::Resources, &mut filter.resources_list_changed),
    ] {
        if *wanted == Some(true) && told.contains(kind) {
            lists.insert(kind);
        } else {
            *wanted = None;
        }
    }
    lists
}

/// Watches what is offered, all at once, and returns it in the order it was asked for.
async fn watch_all(listener: &Arc<Listener>, uris: Vec<String>) -> Result<Vec<String>, ErrorData> {
    let mut tasks = JoinSet::new();
    for uri in &uris {
        if let Ok(uri) = ResourceUri::parse(uri) {
            let listener = listener.clone();
            tasks.spawn(async move { (listener.subscribe(&uri).await, uri) });
        }
    }
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok((Ok(()) | Err(SubscribeError::Unknown | SubscribeError::Disabled), _)) => {}
            Ok((Err(error), uri)) => return Err(refusal::subscribe(&uri, &error)),
            Err(failed) => return Err(ErrorData::internal_error(failed.to_string(), None)),
        }
    }
    let mut seen = std::collections::HashSet::new();
    Ok(uris
        .into_iter()
        .filter(|uri| ResourceUri::parse(uri).is_ok_and(|uri| listener.outbox().follows(&uri)))
        .filter(|uri| seen.insert(uri.clone()))
        .collect())
}
