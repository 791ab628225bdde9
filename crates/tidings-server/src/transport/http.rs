//! Streamable HTTP on one endpoint, `/mcp`, for both eras at once; `/healthz` and `/metrics` beside.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{any, get};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::hub::Hub;
use crate::outbox::Outbox;
use crate::path::{Core, Listener};
use crate::transport::accept::REQUEST_SILENCE;
use crate::transport::guard::{self, Guard};
use crate::transport::modern::Service;
use crate::transport::session::Sessions;
use crate::transport::{accept, intake, legacy, modern, reply, session};

pub use crate::transport::guard::{Token, TokenError};

/// What `/mcp` is asked with.
const METHODS: &str = "GET, POST, DELETE";

/// How a server speaks HTTP.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpConfig {
    /// `Host` names served besides loopback ones: `name` or `name:port`.
    pub hosts: Vec<String>,
    /// Origins whose pages may use the server, besides those of loopback and of `hosts`.
    pub origins: Vec<String>,
    /// The token every client must know, if there is one.
    pub token: Option<Token>,
    /// The largest request body: 4 MiB.
    pub body_limit: usize,
    /// How many legacy sessions there may be: 10,000.
    pub sessions: usize,
    /// How many modern listen requests may be open: 20,000.
    pub listeners: usize,
    /// A session without an open stream ends when nothing was heard of it for this long: 30 min.
    pub idle: Duration,
    /// A stream on which nothing happens has a comment this often: every 15 s.
    pub keep_alive: Duration,
    /// After how long a client should come back to a stream it lost: 1 s.
    pub retry: Duration,
    /// More routes for those who may use the server: host, origin and token are checked as for
    /// `/mcp`, limits are the routes' own. None may be one of the server's.
    pub beside: Option<Router>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            token: None,
            body_limit: 4 * 1024 * 1024,
            sessions: 10_000,
            listeners: 20_000,
            idle: Duration::from_mins(30),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            beside: None,
        }
    }
}

/// Serves a hub until the token is cancelled or the hub is shut down; then streams end properly.
///
/// # Errors
///
/// The listener failed.
pub async fn serve(
    hub: &Hub,
    listener: TcpListener,
    config: HttpConfig,
    cancel: CancellationToken,
) -> std::io::Result<()> {
    let (app, beside) = App::new(hub, config);
    let address = listener.local_addr()?;
    info!(%address, "serving http");
    let stop = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = app.core.stopped.cancelled() => {}
        }
        app.close_streams();
    };
    accept::serve(listener, router_of(app.clone(), beside), stop).await;
    app.finish().await;
    info!(%address, "stopped serving http");
    Ok(())
}

/// The routes of a hub, to be part of a larger server: `/mcp`, `/healthz` and `/metrics`. The
/// server that has them should set `TCP_NODELAY`, and end when the hub is shut down.
pub fn router(hub: &Hub, config: HttpConfig) -> Router {
    let (app, beside) = App::new(hub, config);
    router_of(app, beside)
}

/// The address a person can give to a client.
#[must_use]
pub fn endpoint(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

/// What the HTTP server shares between its requests.
pub(crate) struct App {
    pub(crate) core: Arc<Core>,
    pub(crate) config: HttpConfig,
    pub(crate) sessions: Sessions,
    pub(crate) modern: Service,
    guard: Guard,
    listens: AtomicUsize,
    /// The streams of listen requests that are open.
    open: Mutex<HashMap<u64, Arc<Outbox>>>,
    /// Cancelled when this server, or the hub, stops.
    pub(crate) closing: CancellationToken,
    /// The requests of legacy sessions that are under way.
    calls: Mutex<JoinSet<()>>,
}

impl App {
    fn new(hub: &Hub, mut config: HttpConfig) -> (Arc<Self>, Option<Router>) {
        let beside = config.beside.take();
        let core = hub.core().clone();
        let guard = Guard::new(
            std::mem::take(&mut config.hosts),
            std::mem::take(&mut config.origins),
            config.token.take(),
        );
        let app = Arc::new(Self {
            sessions: Sessions::new(core.clone(), config.sessions, config.idle),
            modern: modern::service(core.clone(), &config),
            guard,
            listens: AtomicUsize::new(0),
            open: Mutex::default(),
            closing: core.stopped.child_token(),
            calls: Mutex::default(),
            core,
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
    pub(crate) fn listen_place(self: &Arc<Self>) -> Option<ListenPlace> {
        let limit = self.config.listeners;
        let taken = self.listens.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |listens| {
            (listens < limit).then_some(listens + 1)
        });
        taken.ok().map(|_| ListenPlace { app: self.clone(), listener: None })
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

    async fn finish(&self) {
        let mut calls = std::mem::take(
            &mut *self.calls.lock().expect("no code panics while it holds the calls"),
        );
        calls.shutdown().await;
    }
}

/// The place of one listen request, and its listener; both are free again when it is dropped.
pub(crate) struct ListenPlace {
    app: Arc<App>,
    listener: Option<Listener>,
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

fn router_of(app: Arc<App>, beside: Option<Router>) -> Router {
    let own = Router::new()
        .route("/mcp", any(mcp))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics))
        .with_state(app.clone());
    match beside {
        Some(beside) => own.merge(beside.route_layer(from_fn_with_state(app, guarded))),
        None => own,
    }
}

/// Lets those through to other routes who may use the server.
async fn guarded(State(app): State<Arc<App>>, request: Request<Body>, next: Next) -> Response {
    let origin = match app.guard.check_source(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => {
            app.core.metrics.refused.inc();
            return *refusal;
        }
    };
    let mut response = if request.method() == Method::OPTIONS {
        guard::preflight("GET, HEAD, POST, PUT, DELETE")
    } else if let Err(refusal) = app.guard.check_token(request.headers()) {
        app.core.metrics.refused.inc();
        *refusal
    } else {
        next.run(request).await
    };
    if let Some(origin) = origin {
        guard::admit(&origin, response.headers_mut());
    }
    response
}

async fn healthz(State(app): State<Arc<App>>) -> Response {
    if app.core.stopped.is_cancelled() {
        return reply::empty(StatusCode::SERVICE_UNAVAILABLE);
    }
    Response::new(Body::from("ok\n"))
}

async fn metrics(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let allowed = app
        .guard
        .check_source(request.uri(), request.headers())
        .and_then(|_| app.guard.check_token(request.headers()));
    if let Err(refusal) = allowed {
        return *refusal;
    }
    let mut response = Response::new(Body::from(app.core.metrics_text()));
    let kind =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn mcp(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let origin = match app.guard.check_source(request.uri(), request.headers()) {
        Ok(origin) => origin,
        Err(refusal) => {
            app.core.metrics.refused.inc();
            return *refusal;
        }
    };
    let mut response = answer(&app, request).await;
    if let Some(origin) = origin {
        guard::admit(&origin, response.headers_mut());
    }
    response
}

async fn answer(app: &Arc<App>, request: Request<Body>) -> Response {
    if request.method() == Method::OPTIONS {
        return guard::preflight(METHODS);
    }
    if let Err(refusal) = app.guard.check_token(request.headers()) {
        app.core.metrics.refused.inc();
        return *refusal;
    }
    match *request.method() {
        Method::POST => post(app, request).await,
        Method::GET if is_legacy_stream(request.headers()) => {
            if accepts(request.headers(), &["text/event-stream"]) {
                legacy::get(app, &request)
            } else {
                let details = "a stream is text/event-stream; say so in Accept";
                reply::refuse(StatusCode::NOT_ACCEPTABLE, details)
            }
        }
        Method::DELETE if is_legacy_stream(request.headers()) => {
            legacy::delete(app, request.headers())
        }
        _ => {
            let mut response = reply::empty(StatusCode::METHOD_NOT_ALLOWED);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(METHODS));
            response
        }
    }
}

async fn post(app: &Arc<App>, request: Request<Body>) -> Response {
    let headers = request.headers();
    if !accepts(headers, &["application/json", "text/event-stream"]) {
        let details = "a POST must accept both application/json and text/event-stream";
        return reply::refuse(StatusCode::NOT_ACCEPTABLE, details);
    }
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with("application/json")) {
        let details = "a POST carries application/json";
        return reply::refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, details);
    }
    let (parts, body) = request.into_parts();
    let collecting = Limited::new(body, app.config.body_limit).collect();
    let Ok(collected) = tokio::time::timeout(REQUEST_SILENCE, collecting).await else {
        return reply::refuse(StatusCode::REQUEST_TIMEOUT, "the request took too long to come");
    };
    let body = match collected {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => {
            app.core.metrics.refused.inc();
            let details = format!("a request body has at most {} bytes", app.config.body_limit);
            return reply::refuse(StatusCode::PAYLOAD_TOO_LARGE, &details);
        }
        Err(_) => return reply::refuse(StatusCode::BAD_REQUEST, "the request was cut off"),
    };
    let message = match intake::parse(&body) {
        Ok(message) => message,
        Err((id, error)) => return reply::error(StatusCode::BAD_REQUEST, id, error),
    };
    if modern::is_modern(&parts, &message) {
        modern::post(app, parts, message, body).await
    } else {
        legacy::post(app, &parts.headers, message).await
    }
}

fn is_legacy_stream(headers: &HeaderMap) -> bool {
    let version = headers.get(legacy::VERSION).and_then(|version| version.to_str().ok());
    !version.is_some_and(crate::era::is_modern)
}

fn accepts(headers: &HeaderMap, kinds: &[&str]) -> bool {
    let accept = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accept: String = accept.collect::<Vec<_>>().join(",").to_ascii_lowercase();
    kinds.iter().all(|kind| accept.contains(kind)) || accept.contains("*/*")
}
