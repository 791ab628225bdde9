//! What the HTTP server shares between its requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use rmcp::model::ErrorData;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::HttpConfig;
use super::health::Checked;
use crate::hub::Hub;
use crate::outbox::Outbox;
use crate::pipeline::{Listener, Pipeline};
use crate::transport::budget::Budget;
use crate::transport::gate::Gate;
use crate::transport::guard::Guard;
use crate::transport::modern;
use crate::transport::modern::Service;
use crate::transport::session::{self, Sessions};
use crate::transport::shares::{Origin, Scarce, Shares, TakenPlace};

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
    open: Mutex<HashMap<u64, Arc<Outbox>>>,
    /// Cancelled when this server, or the hub, stops: no new work is taken.
    pub(crate) closing: CancellationToken,
    /// Cancelled when requests that are under way have had their time.
    pub(crate) cut: CancellationToken,
    /// Requests that are under way.
    pub(crate) under_way: TaskTracker,
    /// The services of legacy requests.
    calls: Mutex<JoinSet<()>>,
}

impl App {
    pub(super) fn new(hub: &Hub, mut config: HttpConfig) -> (Arc<Self>, Option<Router>) {
        let beside = config.beside.take();
        let pipeline = hub.pipeline().clone();
        let guard = Guard::new(
            std::mem::take(&mut config.hosts),
            std::mem::take(&mut config.origins),
            config.token.clone(),
        );
        let shares = Arc::new(Shares::default());
        let app = Arc::new(Self {
            sessions: Sessions::new(pipeline.clone(), &config),
            modern: modern::service(pipeline.clone(), &config),
            guard,
            gate: Gate::new(
                config.connections,
                shares.clone(),
                config.token.clone(),
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
        (app, beside)
    }

    /// Takes a task over, so that it ends with the server.
    pub(crate) fn own(&self, task: impl Future<Output = ()> + Send + 'static) {
        let mut calls = self.calls.lock().expect("no code panics while it holds the calls");
        while calls.try_join_next().is_some() {}
        calls.spawn(task);
    }

    /// A place for a listen request; none if there are as many as there may be.
    pub(crate) fn listen_place(self: &Arc<Self>, origin: Option<Origin>) -> Option<ListenPlace> {
        let limit = self.config.listeners;
        let place = self.shares.take(origin, Scarce::Listeners, limit)?;
        let taken = self.listens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |listens| {
            (listens < limit).then_some(listens + 1)
        });
        taken.ok().map(|_| ListenPlace { app: self.clone(), listener: None, _place: place })
    }

    /// Whether one more listen request may be open.
    pub(super) fn has_listen_place(&self) -> bool {
        self.listens.load(Ordering::Relaxed) < self.config.listeners
    }

    /// Takes no new work, ends streams, and lets requests under way end within their time.
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

    /// Ends the streams of this server, each after what waits for it.
    fn close_streams(&self) {
        self.closing.cancel();
        self.sessions.close_streams();
        let open: Vec<_> = self.open().values().cloned().collect();
        for outbox in open {
            outbox.close();
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Outbox>>> {
        self.open.lock().expect("no code panics while it holds the open streams")
    }

    pub(super) async fn finish(&self) {
        let mut calls = std::mem::take(
            &mut *self.calls.lock().expect("no code panics while it holds the calls"),
        );
        calls.shutdown().await;
    }
}

/// Why a request is not answered while the server stops.
pub(crate) fn stopping() -> ErrorData {
    let details = "the server is stopping; ask again in a moment";
    ErrorData::internal_error("Server is stopping", Some(json!({ "details": details })))
}

/// The place of one listen request, and its listener; both are free again when it is dropped.
pub(crate) struct ListenPlace {
    app: Arc<App>,
    listener: Option<Listener>,
    _place: TakenPlace,
}

impl ListenPlace {
    /// Keeps the listener until the stream is dropped.
    pub(crate) fn take(&mut self, listener: Listener) {
        let outbox = listener.outbox().clone();
        self.app.open().insert(outbox.id(), outbox.clone());
        if self.app.closing.is_cancelled() {
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
