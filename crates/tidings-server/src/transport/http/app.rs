//! The state that the requests of an HTTP server share.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::response::Response;
use http::Request;
use rmcp::model::ErrorData;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::health::Checked;
use super::{HttpConfig, UPLOADS, withdraw};
use crate::hub::Hub;
use crate::outbox::Outbox;
use crate::pipeline::{Listener, Pipeline};
use crate::tokens::Admitted;
use crate::tokens::TokenHash;
use crate::transport::budget::Budget;
use crate::transport::gate::Gate;
use crate::transport::guard::Guard;
use crate::transport::modern;
use crate::transport::modern::Service;
use crate::transport::session::{self, Session, Sessions};
use crate::transport::shares::{Origin, Scarce, Shares, TakenPlace};
use crate::viewers::Viewer;

/// The additional routes of a server.
pub(super) struct OtherRoutes {
    /// Those with the checks of the endpoint.
    pub(super) beside: Option<Router>,
    /// Those with checks of their own.
    pub(super) apart: Option<Router>,
}

/// One server.
pub(crate) struct App {
    pub(crate) pipeline: Arc<Pipeline>,
    pub(crate) config: HttpConfig,
    pub(crate) sessions: Sessions,
    pub(crate) modern: Service,
    pub(crate) guard: Guard,
    pub(crate) gate: Arc<Gate>,
    pub(crate) budget: Arc<Budget>,
    pub(crate) shares: Arc<Shares>,
    pub(super) checked: Checked,
    listens: AtomicUsize,
    /// The streams of listen requests that are open.
    open: Mutex<HashMap<u64, OpenStream>>,
    /// Cancelled when this server, or the hub, stops: no new work is taken.
    pub(crate) closing: CancellationToken,
    /// Cancelled when the time for requests under way is over.
    pub(crate) cut: CancellationToken,
    /// Requests that are under way.
    pub(crate) under_way: TaskTracker,
    /// The services of legacy requests.
    calls: Mutex<JoinSet<()>>,
}

impl App {
    pub(super) fn new(hub: &Hub, mut config: HttpConfig) -> (Arc<Self>, OtherRoutes) {
        let others = OtherRoutes { beside: config.beside.take(), apart: config.apart.take() };
        let pipeline = hub.pipeline().clone();
        let shares = Arc::new(Shares::default());
        let app = Arc::new(Self {
            sessions: Sessions::new(pipeline.clone(), &config),
            modern: modern::service(pipeline.clone(), &config, None),
            guard: Guard::new(&config),
            gate: Gate::new(
                config.connections,
                shares.clone(),
                config.tokens.clone(),
                pipeline.metrics.clone(),
            ),
            budget: Budget::new(config.budget, pipeline.metrics.clone()),
            shares,
            checked: Checked::default(),
            listens: AtomicUsize::new(0),
            open: Mutex::default(),
            closing: pipeline.stopped.child_token(),
            cut: pipeline.stopped.child_token(),
            under_way: TaskTracker::new(),
            calls: Mutex::default(),
            pipeline,
            config,
        });
        let (expiring, closing) = (Arc::downgrade(&app), app.closing.clone());
        hub.own(async move { session::expire(expiring, closing).await });
        let (following, closing) = (Arc::downgrade(&app), app.closing.clone());
        let changes = app.config.tokens.changes();
        hub.own(async move { withdraw::follow(following, changes, closing).await });
        (app, others)
    }

    /// Identifies the client, and notes its identity in the request.
    pub(super) fn identify<B>(
        &self,
        peer: Option<IpAddr>,
        request: &mut Request<B>,
    ) -> Result<(), Box<Response>> {
        let admitted = self.guard.identify(peer, request.headers());
        self.note(admitted, request)
    }

    /// As [`Self::identify`], but where tokens are needed, nobody is served without one.
    pub(super) fn identify_by_token<B>(
        &self,
        peer: Option<IpAddr>,
        request: &mut Request<B>,
    ) -> Result<(), Box<Response>> {
        let admitted = self.guard.identify_by_token(peer, request.headers());
        self.note(admitted, request)
    }

    fn note<B>(
        &self,
        admitted: Result<Admitted, Box<Response>>,
        request: &mut Request<B>,
    ) -> Result<(), Box<Response>> {
        let admitted = admitted.inspect_err(|_| {
            self.pipeline.metrics.refused.inc();
        })?;
        if let Some(name) = &admitted.identity.name {
            self.pipeline.metrics.requests_of(name);
        }
        if admitted.token.is_some() {
            // Additional routes ask for labels, too: those that it has now.
            let viewer = self.pipeline.viewers.request(admitted.identity.clone());
            request.extensions_mut().insert(viewer.who());
            request.extensions_mut().insert(admitted);
        }
        Ok(())
    }

    /// Owns a task, so that it ends with the server.
    pub(crate) fn own(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut calls = self.calls.lock().expect("no code panics while it holds the calls");
        while calls.try_join_next().is_some() {}
        calls.spawn(task);
    }

    /// A place for a listen request; `None` if the maximum is open.
    pub(crate) fn listen_place(
        self: &Arc<Self>,
        origin: Option<Origin>,
        admitted: &Admitted,
    ) -> Option<ListenPlace> {
        let limit = self.config.listeners;
        let own = admitted.identity.limits.listeners;
        let own = self.shares.take_own(admitted.token, Scarce::Listeners, own)?;
        let place = self.shares.take(origin, Scarce::Listeners, limit)?;
        let taken = self.listens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |listens| {
            (listens < limit).then_some(listens + 1)
        });
        let (token, places) = (admitted.token, [own, place]);
        taken.ok().map(|_| ListenPlace {
            app: self.clone(),
            listener: None,
            token,
            _places: places,
        })
    }

    /// A place for a body to other routes, of an address and of a token; `None` if one of them is
    /// sending as many as it may.
    pub(super) fn upload_place(
        &self,
        sender: Option<Origin>,
        admitted: &Admitted,
    ) -> Option<[TakenPlace; 2]> {
        let share = self.config.tokens.share(UPLOADS);
        let own = self.shares.take_own(admitted.token, Scarce::Uploads, Some(share))?;
        Some([own, self.shares.take(sender, Scarce::Uploads, UPLOADS)?])
    }

    /// Whether one more listen request may be open.
    pub(super) fn has_listen_place(&self) -> bool {
        self.listens.load(Ordering::Relaxed) < self.config.listeners
    }

    /// Stops taking work, ends streams, and waits for requests under way within their time.
    pub(super) async fn drain(&self) {
        self.close_streams();
        self.under_way.close();
        let stopped = self.pipeline.stopped.cancelled();
        let ended = async {
            tokio::select! {
                () = self.under_way.wait() => {}
                () = stopped => {}
            }
        };
        if tokio::time::timeout(self.config.drain, ended).await.is_err() {
            tracing::warn!(requests = self.under_way.len(), "requests under way are cut off");
        }
        self.cut.cancel();
        self.sessions.cut_calls(&stopping());
    }

    /// Ends the streams of this server, each after its waiting notices.
    fn close_streams(&self) {
        self.closing.cancel();
        self.sessions.close_streams();
        let open: Vec<_> = self.open().values().cloned().collect();
        for stream in open {
            stream.outbox.close();
        }
    }

    /// The streams and sessions of a token that was withdrawn or has expired end, and the others
    /// have the labels that their token has now.
    pub(super) fn follow_tokens(&self) {
        for session in self.sessions.all() {
            self.follow_token_of(&session);
        }
        let open: Vec<_> = self.open().values().cloned().collect();
        for stream in open {
            if !self.is_served(stream.token, stream.viewer.as_deref()) {
                self.cut_off(&stream.outbox);
            }
        }
    }

    /// Ends a stream whose client may not be notified any more, not even of what waits.
    fn cut_off(&self, outbox: &Outbox) {
        outbox.cut();
        for uri in self.pipeline.subscriptions.forget(outbox) {
            self.pipeline.unwatched(&uri);
        }
    }

    /// As [`Self::follow_tokens`], for one session.
    pub(crate) fn follow_token_of(&self, session: &Session) {
        if !self.is_served(session.token, Some(session.connection.viewer())) {
            tracing::info!(session = session.short_id(), "session ended with its token");
            self.sessions.remove(&session.id);
        }
    }

    /// Whether a client that was let in with this token may stay; then it is who its token says it
    /// is now.
    fn is_served(&self, token: Option<TokenHash>, viewer: Option<&Viewer>) -> bool {
        let tokens = &self.config.tokens;
        let Some(token) = token else { return !tokens.are_needed() || self.config.anonymous };
        let (Some(identity), Some(viewer)) = (tokens.current(&token), viewer) else { return false };
        // A token of another name is another person's.
        let stays = viewer.who().name == identity.name;
        if stays {
            self.pipeline.identify(viewer, identity);
        }
        stays
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, OpenStream>> {
        self.open.lock().expect("no code panics while it holds the open streams")
    }

    pub(super) async fn finish(&self) {
        let mut calls = std::mem::take(
            &mut *self.calls.lock().expect("no code panics while it holds the calls"),
        );
        calls.shutdown().await;
    }
}

/// The error for requests while the server stops.
pub(crate) fn stopping() -> ErrorData {
    let details = "the server is stopping; ask again in a moment";
    ErrorData::internal_error("Server is stopping", Some(json!({ "details": details })))
}

/// The place of one listen request, and its listener; both are free again when it is dropped.
pub(crate) struct ListenPlace {
    app: Arc<App>,
    listener: Option<Listener>,
    token: Option<TokenHash>,
    _places: [TakenPlace; 2],
}

/// The stream of a listen request, and the token it was opened with.
#[derive(Clone)]
struct OpenStream {
    outbox: Arc<Outbox>,
    token: Option<TokenHash>,
    viewer: Option<Arc<Viewer>>,
}

impl ListenPlace {
    /// Keeps the listener until the stream is dropped.
    pub(crate) fn take(&mut self, listener: Listener) {
        let outbox = listener.outbox().clone();
        let viewer = listener.viewer().cloned();
        let stream = OpenStream { outbox: outbox.clone(), token: self.token, viewer };
        // Order: registered first, then checked, so that a token withdrawn in between ends it.
        self.app.open().insert(outbox.id(), stream.clone());
        if !self.app.is_served(stream.token, stream.viewer.as_deref()) {
            self.app.cut_off(&outbox);
        } else if self.app.closing.is_cancelled() {
            outbox.close();
        }
        self.listener = Some(listener);
    }
}

impl Drop for ListenPlace {
    fn drop(&mut self) {
        if let Some(listener) = &self.listener {
            self.app.open().remove(&listener.outbox().id());
        }
        self.app.listens.fetch_sub(1, Ordering::Relaxed);
    }
}
