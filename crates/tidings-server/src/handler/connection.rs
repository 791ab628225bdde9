//! The state of one client between requests: its legacy listener and its open listen requests.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use rmcp::model::{
    ErrorData, Implementation, InitializeRequestParams, LoggingLevel, ProtocolVersion, RequestId,
    SubscriptionFilter,
};
use serde_json::json;
use tidings_core::{ListKind, ListKinds, ResourceUri};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::about::{About, Transport};
use crate::context::Client;
use crate::handler::refusal;
use crate::identity::Identity;
use crate::notice::Wire;
use crate::outbox::{Next, Outbox};
use crate::pipeline::{Events, Listener, Pipeline, SubscribeError};
use crate::viewers::Viewer;
use crate::weight;

/// The memory that the client's name and capabilities may take.
const PEER_LIMIT: usize = 24 << 10;
/// Time for a client to read the end of its listen requests when the server stops.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// A stdio connection, or a legacy session over HTTP.
pub(crate) struct Connection {
    pipeline: Arc<Pipeline>,
    /// Who the client is.
    viewer: Arc<Viewer>,
    /// Set once, by `initialize`.
    legacy: OnceLock<Legacy>,
    opened: Notify,
    /// A listen request ended.
    ended: Notify,
    state: Mutex<State>,
    /// Writes the frames of listen requests; only over stdio, where clients cannot reconnect.
    writer: Option<Box<dyn FrameWriter>>,
}

/// The output of a connection: a trait object, because a connection does not know its transport.
pub(crate) trait FrameWriter: Send + Sync {
    /// Writes one or more events; true if it succeeded.
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
    /// Open listen requests; a new one has no listener yet.
    listens: HashMap<RequestId, Option<Arc<Listener>>>,
}

impl Connection {
    pub(crate) fn new(
        pipeline: Arc<Pipeline>,
        identity: Identity,
        writer: Option<Box<dyn FrameWriter>>,
    ) -> Arc<Self> {
        let state = Mutex::default();
        Arc::new(Self {
            viewer: pipeline.viewers.session(identity),
            pipeline,
            legacy: OnceLock::new(),
            opened: Notify::new(),
            ended: Notify::new(),
            state,
            writer,
        })
    }

    /// Begins a legacy session.
    pub(crate) fn open(&self, peer: &InitializeRequestParams) -> Result<(), ErrorData> {
        let weight =
            serde_json::to_vec(peer).map_or(usize::MAX, |bytes| weight::of(&bytes, PEER_LIMIT));
        if weight > PEER_LIMIT {
            let details = "a client may say less of itself and its capabilities: they are kept as \
                           long as the session";
            let data = Some(json!({ "details": details }));
            return Err(ErrorData::invalid_params("Too much said", data));
        }
        let events = if self.writer.is_some() { Events::Plain } else { Events::Numbered };
        let viewer = Some(self.viewer.clone());
        let (version, client) = (&peer.protocol_version, &peer.client_info);
        let listener = self.pipeline.legacy_listener(version, client, events, viewer);
        let legacy = Legacy { listener, peer: Arc::new(peer.clone()) };
        self.legacy.set(legacy).map_err(|_| {
            let data = Some(json!({ "details": "a session is initialized once" }));
            ErrorData::invalid_request("Already initialized", data)
        })?;
        self.opened.notify_one();
        Ok(())
    }

    /// Who the client is.
    pub(crate) fn viewer(&self) -> &Arc<Viewer> {
        &self.viewer
    }

    /// The client is ready: from now on it is notified of lists.
    pub(crate) fn greet(&self) {
        let Some(legacy) = self.legacy.get() else { return };
        if std::mem::replace(&mut self.lock().greeted, true) {
            return;
        }
        let version = legacy.peer.protocol_version.as_str();
        legacy.listener.greet(self.pipeline.config.versions.lists_for(version));
    }

    /// The identity of the client, once known.
    pub(crate) fn peer(&self) -> Option<&Arc<InitializeRequestParams>> {
        self.legacy.get().map(|legacy| &legacy.peer)
    }

    /// The negotiated revision.
    pub(crate) fn version(&self) -> Option<&ProtocolVersion> {
        self.peer().map(|peer| &peer.protocol_version)
    }

    /// The outbox of the legacy session.
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

    pub(crate) fn set_level(&self, level: LoggingLevel) {
        self.lock().level = Some(level);
    }

    /// Begins a listen request before it is acknowledged, so that no change is missed; the filter
    /// is reduced to what is granted.
    pub(crate) async fn begin_listen(
        &self,
        id: &RequestId,
        filter: &mut SubscriptionFilter,
        client: Option<&Implementation>,
    ) -> Result<(), ErrorData> {
        let limit = self.pipeline.config.limits.listens_per_connection;
        {
            let mut state = self.lock();
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
            state.listens.insert(id.clone(), None);
        }
        let about = About::new(client, Transport::Stdio, ListKinds::EMPTY);
        let viewer = Some(self.viewer.clone());
        let listener =
            accept_filter(&self.pipeline, id, filter, about, viewer).await.inspect_err(|_| {
                self.end_listen(id);
            })?;
        // A request that was cancelled meanwhile has no entry; its listener ends here.
        if let Some(place) = self.lock().listens.get_mut(id) {
            *place = Some(Arc::new(listener));
        }
        Ok(())
    }

    /// Whether a listen request was begun and not cancelled.
    pub(crate) fn listens(&self, id: &RequestId) -> bool {
        self.lock().listens.contains_key(id)
    }

    /// Ends a listen request.
    pub(crate) fn end_listen(&self, id: &RequestId) {
        if self.lock().listens.remove(id).is_some() {
            self.ended.notify_one();
        }
    }

    /// The client is gone, or the server stops: ends all listeners.
    pub(crate) fn close(&self) {
        let listens: Vec<_> = self.lock().listens.values().flatten().cloned().collect();
        for listener in listens {
            listener.outbox().close();
        }
        if let Some(outbox) = self.outbox() {
            outbox.close();
        }
    }

    /// Waits until every listen request has ended its stream, or its client does not read.
    pub(crate) async fn listens_ended(&self) {
        let all = async {
            while !self.lock().listens.is_empty() {
                self.ended.notified().await;
            }
        };
        drop(tokio::time::timeout(LAST_WORDS, all).await);
    }

    /// Writes the notices of a listen request until the hub ends it.
    pub(crate) async fn deliver(&self, id: &RequestId) {
        let listener = self.lock().listens.get(id).cloned().flatten();
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

impl Client for Connection {
    fn level(&self) -> Option<LoggingLevel> {
        self.lock().level
    }
}

/// A listener for the granted part of a filter, and the filter reduced to it: unknown URIs and
/// kinds without notices in this revision are dropped.
pub(crate) async fn accept_filter(
    pipeline: &Arc<Pipeline>,
    id: &RequestId,
    filter: &mut SubscriptionFilter,
    about: About,
    viewer: Option<Arc<Viewer>>,
) -> Result<Listener, ErrorData> {
    let limit = pipeline.config.limits.subscriptions_per_listener;
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
    let listener = Arc::new(Listener::new(pipeline, Wire::modern(id), about, viewer));
    let lists = honoured_lists(pipeline, filter);
    listener.follow_lists(lists);
    if let Some(uris) = filter.resource_subscriptions.take() {
        filter.resource_subscriptions = Some(watch_all(&listener, uris).await?);
    }
    // Nobody else holds it: the watching tasks have ended.
    Arc::try_unwrap(listener).map_err(|_| ErrorData::internal_error("Internal error", None))
}

fn honoured_lists(pipeline: &Pipeline, filter: &mut SubscriptionFilter) -> ListKinds {
    let told = pipeline.config.versions.lists_for(ProtocolVersion::LATEST.as_str());
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

/// Watches the offered URIs concurrently, and returns them in the requested order.
async fn watch_all(listener: &Arc<Listener>, uris: Vec<String>) -> Result<Vec<String>, ErrorData> {
    use SubscribeError::{Disabled, Unknown, Unreadable};
    let mut tasks = JoinSet::new();
    for uri in &uris {
        if let Ok(uri) = ResourceUri::parse(uri) {
            let listener = listener.clone();
            tasks.spawn(async move { (listener.subscribe(&uri).await, uri) });
        }
    }
    while let Some(done) = tasks.join_next().await {
        match done {
            // URIs that cannot be watched are not acknowledged.
            Ok((Ok(()) | Err(Unknown | Disabled | Unreadable(_)), _)) => {}
            Ok((Err(error), uri)) => return Err(refusal::subscribe(&uri, error)),
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
