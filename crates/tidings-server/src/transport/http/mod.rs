//! Streamable HTTP on one endpoint, `/mcp`, for both eras at once; `/livez`, `/readyz` and
//! `/metrics` beside it.

mod access;
mod app;
mod config;
mod health;
mod withdraw;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{any, get};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use rmcp::model::{ClientRequest, JsonRpcMessage};
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::hub::Hub;
use crate::identity::Identity;
use crate::metrics;
use crate::tokens::Admitted;
use crate::transport::body::Collected;
use crate::transport::budget::Share;
use crate::transport::intake::{Fault, FaultKind};
use crate::transport::line::Line;
use crate::transport::shares::Origin;
use crate::transport::tail::Tail;
use crate::transport::{accept, beside, body, gate, guard, intake, legacy, modern, reply};

pub(crate) use self::access::{Record, RequestFacts};
use self::app::OtherRoutes;
pub(crate) use self::app::{App, ListenPlace, stopping};
pub use self::config::{Check, HttpConfig};
pub use crate::tokens::{Token, TokenEntry, TokenError, TokenHash, TokenHashError, Tokens};

/// The maximum number of bodies under way to additional routes; one address may send half, and so
/// may one of several tokens.
const UPLOADS: usize = 64;
/// The methods of `/mcp`.
const METHODS: &str = "GET, POST, DELETE";

/// Serves a hub until the token is cancelled or the hub is shut down. Then no new work is taken,
/// streams end properly, and requests under way may take [`HttpConfig::drain`] to end. A hub that
/// is shut down first leaves them no time: cancel the token, wait for this to return, and shut the
/// hub down last.
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
    let (app, others) = App::new(hub, config);
    let address = listener.local_addr()?;
    info!(%address, "serving http");
    let stop = async {
        tokio::select! {
            () = cancel.cancelled() => {}
            () = app.pipeline.stopped.cancelled() => {}
        }
        app.drain().await;
    };
    let (router, idle) = (router_of(app.clone(), others), app.config.keep_alive);
    accept::serve(listener, &app.gate, router, idle, stop).await;
    app.finish().await;
    info!(%address, "stopped serving http");
    Ok(())
}

/// The routes of a hub, to be part of a larger server: `/mcp`, `/livez`, `/readyz`, `/healthz` and
/// `/metrics`. The server that has them should set `TCP_NODELAY`, limit its connections, and end
/// when the hub is shut down. The origin of its requests is unknown, so loopback names are served to
/// everyone.
pub fn router(hub: &Hub, config: HttpConfig) -> Router {
    let (app, others) = App::new(hub, config);
    router_of(app, others)
}

/// The URL for a client.
#[must_use]
pub fn endpoint(address: SocketAddr) -> String {
    format!("http://{address}/mcp")
}

fn router_of(app: Arc<App>, others: OtherRoutes) -> Router {
    let mut all = Router::new()
        .route("/mcp", any(mcp))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .route("/healthz", get(healthz))
        .route("/metrics", get(metrics_page))
        .with_state(app.clone());
    if let Some(beside) = others.beside {
        all = all.merge(beside.route_layer(from_fn_with_state(app, guarded)));
    }
    if let Some(apart) = others.apart {
        all = all.merge(apart.route_layer(from_fn(apart_admitted)));
    }
    all
}

/// A request that its own routes answered well is not a stranger's.
async fn apart_admitted(request: Request<Body>, next: Next) -> Response {
    let extensions = request.extensions().clone();
    let response = next.run(request).await;
    if response.status().is_success() {
        gate::admit(&extensions);
    }
    response
}

/// Admits requests to the additional routes.
async fn guarded(State(app): State<Arc<App>>, mut request: Request<Body>, next: Next) -> Response {
    let peer = Line::peer(request.extensions());
    let origin = match app.guard.check_source(peer, &request) {
        Ok(origin) => origin,
        Err(refusal) => {
            app.pipeline.metrics.refused.inc();
            return *refusal;
        }
    };
    let sends = matches!(*request.method(), Method::PATCH | Method::POST | Method::PUT);
    let mut response = if request.method() == Method::OPTIONS {
        guard::preflight("GET, HEAD, POST, PUT, DELETE")
    } else if let Err(refusal) = app.identify(peer, &mut request) {
        *refusal
    } else if app.closing.is_cancelled() {
        going(None)
    } else if !app.gate.admit(request.extensions()) {
        too_many_connections(&app)
    } else {
        let admitted = Admitted::of(request.extensions());
        let places = sends.then(|| app.upload_place(peer.map(Origin::of), &admitted));
        match places {
            Some(None) => {
                let details = "this address or token is sending as many bodies as it may; try \
                               again in a moment";
                body::retry_later(reply::refuse(StatusCode::SERVICE_UNAVAILABLE, details))
            }
            _places => {
                // A download is under way until it was sent.
                let under_way = app.under_way.token();
                next.run(request).await.map(|body| Body::new(Tail::new(body, under_way)))
            }
        }
    };
    if let Some(origin) = origin {
        guard::admit(&origin, response.headers_mut());
    }
    response
}

async fn healthz(State(app): State<Arc<App>>) -> Response {
    if app.pipeline.stopped.is_cancelled() {
        return reply::empty(StatusCode::SERVICE_UNAVAILABLE);
    }
    Response::new(Body::from("ok\n"))
}

async fn metrics_page(State(app): State<Arc<App>>, mut request: Request<Body>) -> Response {
    let peer = Line::peer(request.extensions());
    // The metrics name tokens, and count what is not for everyone.
    let allowed = app
        .guard
        .check_source(peer, &request)
        .and_then(|_| app.identify_by_token(peer, &mut request));
    if let Err(refusal) = allowed {
        return *refusal;
    }
    let mut response = Response::new(Body::from(app.pipeline.metrics_text()));
    let kind =
        HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

async fn mcp(State(app): State<Arc<App>>, request: Request<Body>) -> Response {
    let began = Instant::now();
    let (http_method, client) = (request.method().clone(), Line::peer(request.extensions()));
    let line = Line::of(request.extensions(), request.version());
    let mut who = None;
    let mut response = match app.guard.check_source(client, &request) {
        Ok(origin) => {
            let mut response = answer(&app, request, &mut who).await;
            if let Some(origin) = origin {
                guard::admit(&origin, response.headers_mut());
            }
            response
        }
        Err(refusal) => {
            app.pipeline.metrics.refused.inc();
            *refusal
        }
    };
    let seen = response.extensions_mut().remove::<RequestFacts>().unwrap_or_default();
    let status = response.status();
    let counted = metrics::RequestLabels::new(seen.method.as_deref(), seen.outcome(status));
    app.pipeline.metrics.requests.get_or_create(&counted).inc();
    if !app.config.access_log {
        return response;
    }
    let record = Record { http_method, client, who, status, seen, began, bytes: 0 };
    access::follow(response, record, line.as_deref())
}

async fn answer(
    app: &Arc<App>,
    mut request: Request<Body>,
    who: &mut Option<Arc<str>>,
) -> Response {
    if request.method() == Method::OPTIONS {
        return guard::preflight(METHODS);
    }
    let peer = Line::peer(request.extensions());
    if let Err(refusal) = app.identify(peer, &mut request) {
        return *refusal;
    }
    *who = request.extensions().get().and_then(|it: &Identity| it.name.clone());
    if !app.gate.admit(request.extensions()) {
        return too_many_connections(app);
    }
    match *request.method() {
        Method::POST => post(app, request).await,
        Method::GET if is_legacy_stream(request.headers()) => {
            if app.closing.is_cancelled() {
                return going(None);
            }
            if accepts(request.headers(), &["text/event-stream"]) {
                legacy::get(app, &request)
            } else {
                let details = "a stream is text/event-stream; say so in Accept";
                reply::refuse(StatusCode::NOT_ACCEPTABLE, details)
            }
        }
        Method::DELETE if is_legacy_stream(request.headers()) => legacy::delete(app, &request),
        _ => {
            let details = "the endpoint is asked with GET, POST or DELETE";
            let mut response = reply::refuse(StatusCode::METHOD_NOT_ALLOWED, details);
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
    // The memory of the request is counted until it is answered.
    let mut share = app.budget.share(Line::peer(&parts.extensions).map(Origin::of));
    let limit = app.config.body_limit;
    let collected = match body::collect(&parts.headers, body, limit, &mut share).await {
        Ok(collected) => collected,
        Err(refusal) => {
            app.pipeline.metrics.refused.inc();
            return refusal;
        }
    };
    // On the heap, because it is large and may move to another thread.
    let length = collected.length();
    let responding = respond(app.clone(), parts, collected, share);
    beside::run(length, Box::pin(responding)).await
}

/// Reads a message and answers it.
async fn respond(app: Arc<App>, parts: Parts, body: Collected, mut share: Share) -> Response {
    let bytes = body.join();
    let mut received = match intake::read(&bytes, Some(&mut share)) {
        Ok(received) => received,
        Err(fault) => return unreadable(&app, fault),
    };
    received.keep(&bytes);
    let is_modern = modern::is_modern(&parts, &received.message);
    let seen = RequestFacts::of(&received.message, if is_modern { "modern" } else { "legacy" });
    let mut response = if let JsonRpcMessage::Request(request) = &received.message
        && app.closing.is_cancelled()
        && !matches!(request.request, ClientRequest::PingRequest(_))
    {
        going(Some(request.id.clone()))
    } else if is_modern {
        modern::post(&app, parts, received, bytes, share).await
    } else {
        drop(bytes);
        legacy::post(&app, &parts, received.whole(), share).await
    };
    let said = response.extensions_mut().remove::<RequestFacts>().unwrap_or_default();
    let (session, is_error) = (said.session, said.is_error || seen.is_error);
    response.extensions_mut().insert(RequestFacts { session, is_error, ..seen });
    response
}

fn unreadable(app: &App, fault: Fault) -> Response {
    match fault.kind {
        FaultKind::Malformed => reply::error(StatusCode::BAD_REQUEST, fault.id, fault.error),
        FaultKind::TooLarge => {
            app.pipeline.metrics.refused.inc();
            reply::error(StatusCode::PAYLOAD_TOO_LARGE, fault.id, fault.error)
        }
        FaultKind::NoRoom => {
            app.pipeline.metrics.refused.inc();
            body::busy()
        }
    }
}

/// The token of the request has its share of connections, and all of them are busy.
fn too_many_connections(app: &App) -> Response {
    app.pipeline.metrics.refused.inc();
    let details = "this token has as many connections as it may; close one, or try again later";
    let mut response = body::retry_later(reply::refuse(StatusCode::SERVICE_UNAVAILABLE, details));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The server takes no new work, because it stops.
fn going(id: Option<rmcp::model::RequestId>) -> Response {
    let mut response =
        body::retry_later(reply::error(StatusCode::SERVICE_UNAVAILABLE, id, stopping()));
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
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

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::routing::post;
    use hyper::service::Service as _;
    use hyper_util::service::TowerToHyperService;
    use serde_json::json;
    use tokio::net::TcpStream;
    use tokio::sync::Semaphore;
    use tokio::task::JoinSet;

    use super::*;
    use crate::labels::Labels;

    const ADA: &str = "Bearer 0123456789abcdef";

    /// A server with one token, which also serves clients without one.
    fn ada_and_anyone() -> HttpConfig {
        let hash = TokenHash::of(&Token::new("0123456789abcdef").unwrap());
        let ada = Identity::new("ada", Labels::parse("scope:write").unwrap());
        let mut config = HttpConfig::default();
        config.tokens.replace(vec![TokenEntry::new(hash, ada)]);
        config.anonymous = true;
        config
    }

    /// The answer to a request with this header.
    async fn get_as(router: &Router, path: &str, authorization: Option<&str>) -> Response {
        let mut request = Request::builder().uri(path).header(header::HOST, "localhost");
        if let Some(authorization) = authorization {
            request = request.header(header::AUTHORIZATION, authorization);
        }
        let request = request.body(Body::empty()).unwrap();
        TowerToHyperService::new(router.clone()).call(request).await.unwrap()
    }

    #[tokio::test]
    async fn metrics_are_for_clients_with_a_token_even_where_anyone_is_served() {
        let hub = Hub::new("metrics", "1");
        let mut config = ada_and_anyone();
        config.beside = Some(Router::new().route("/more", get(async || "here")));
        let tokens = config.tokens.clone();
        let router = router(&hub, config);
        let status = async |path, token| get_as(&router, path, token).await.status().as_u16();
        assert_eq!(status("/more", None).await, 200);
        assert_eq!(status("/metrics", None).await, 401);
        assert_eq!(status("/metrics", Some("Bearer wrong")).await, 401);
        assert_eq!(status("/metrics", Some(ADA)).await, 200);
        tokens.open();
        assert_eq!(status("/metrics", None).await, 200);
    }

    #[tokio::test]
    async fn routes_apart_decide_themselves_who_may_use_them() {
        let hub = Hub::new("apart", "1");
        let mut config = ada_and_anyone();
        config.anonymous = false;
        config.beside = Some(Router::new().route("/beside", get(async || "here")));
        config.apart = Some(Router::new().route("/apart", get(async || "here")));
        let router = router(&hub, config);
        let status = async |path, token| get_as(&router, path, token).await.status().as_u16();
        assert_eq!(status("/beside", Some("Bearer of-the-page")).await, 401);
        assert_eq!(status("/apart", Some("Bearer of-the-page")).await, 200);
        assert_eq!(status("/mcp", Some("Bearer of-the-page")).await, 401);
    }

    #[tokio::test]
    async fn other_routes_see_the_labels_that_a_client_has_now() {
        let hub = Hub::new("labels", "1");
        let mut config = ada_and_anyone();
        let say = async |request: Request<Body>| {
            request
                .extensions()
                .get()
                .map(|it: &Identity| it.labels.to_string())
                .unwrap_or_default()
        };
        config.beside = Some(Router::new().route("/labels", get(say)));
        let router = router(&hub, config);
        let labels = async |token| {
            let answer = get_as(&router, "/labels", token).await;
            axum::body::to_bytes(answer.into_body(), 1 << 10).await.unwrap()
        };
        assert_eq!(labels(Some(ADA)).await, "scope:write");
        hub.withdraw("ada", "scope:write").unwrap();
        hub.grant("ada", "role:guest").unwrap();
        assert_eq!(labels(Some(ADA)).await, "role:guest");
        assert_eq!(labels(None).await, "");
    }

    #[tokio::test]
    async fn a_token_over_its_own_limit_ends_no_session_of_others() {
        let secrets = ["0123456789abcdef", "fedcba9876543210"];
        let [ada, bob] = secrets.map(|secret| {
            let mut identity = Identity::new(secret, Labels::NONE);
            identity.limits.sessions = Some(1);
            TokenEntry::new(TokenHash::of(&Token::new(secret).unwrap()), identity)
        });
        let config = HttpConfig { sessions: 2, ..HttpConfig::default() };
        config.tokens.replace(vec![ada, bob]);
        let hub = Hub::new("sessions", "1");
        let router = TowerToHyperService::new(router(&hub, config));
        let post = |secret: &str, session: Option<&HeaderValue>, message: serde_json::Value| {
            let mut request = Request::post("/mcp")
                .header(header::HOST, "localhost")
                .header(header::AUTHORIZATION, format!("Bearer {secret}"))
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::ACCEPT, "application/json, text/event-stream");
            if let Some(session) = session {
                request = request.header("mcp-session-id", session);
            }
            router.call(request.body(Body::from(message.to_string())).unwrap())
        };
        let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } } });
        let first = post(secrets[0], None, open.clone()).await.unwrap();
        let session = first.headers()["mcp-session-id"].clone();
        // Read to its end, so that the session is idle.
        axum::body::to_bytes(first.into_body(), 1 << 16).await.unwrap();
        assert_eq!(post(secrets[1], None, open.clone()).await.unwrap().status(), 200);
        assert_eq!(post(secrets[1], None, open).await.unwrap().status(), 503);
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        assert_eq!(post(secrets[0], Some(&session), list).await.unwrap().status(), 200);
    }

    /// A connection from this address.
    async fn line(peer: [u8; 4]) -> Arc<Line> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        Line::new(&Arc::new(accepted.unwrap().0), IpAddr::from(peer))
    }

    /// A route for bodies, each of which begins and then waits until it may end.
    fn slow_blob() -> (Router, Arc<Semaphore>, Arc<Semaphore>) {
        let (begun, ending) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (begins, ends) = (begun.clone(), ending.clone());
        let slow = async move || {
            begins.add_permits(1);
            ends.acquire().await.unwrap().forget();
        };
        (Router::new().route("/blob", post(slow).get(async || "bytes")), begun, ending)
    }

    #[tokio::test]
    async fn an_address_sends_half_of_the_bodies_to_other_routes() {
        let (blob, begun, ending) = slow_blob();
        let mut config = HttpConfig::default();
        config.hosts.push("server.example".to_owned());
        config.beside = Some(blob);
        let hub = Hub::new("uploads", "1");
        let router = TowerToHyperService::new(router(&hub, config));
        let send = |method: Method, line: &Arc<Line>| {
            let request = Request::builder().method(method).uri("/blob");
            let mut request =
                request.header(header::HOST, "server.example").body(Body::empty()).unwrap();
            line.note(request.extensions_mut());
            router.call(request)
        };
        let (one, other) = (line([192, 0, 2, 1]).await, line([192, 0, 2, 2]).await);
        let mut sending = JoinSet::new();
        for _ in 0..UPLOADS / 2 {
            sending.spawn(send(Method::POST, &one));
        }
        begun.acquire_many(32).await.unwrap().forget();
        let refused = send(Method::POST, &one).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key(header::RETRY_AFTER));
        // Requests without a body are served, and so is another address.
        assert_eq!(send(Method::GET, &one).await.unwrap().status(), StatusCode::OK);
        sending.spawn(send(Method::POST, &other));
        begun.acquire().await.unwrap().forget();
        ending.add_permits(UPLOADS);
        while let Some(answer) = sending.join_next().await {
            assert_eq!(answer.unwrap().unwrap().status(), StatusCode::OK);
        }
        assert_eq!(send(Method::POST, &one).await.unwrap().status(), StatusCode::OK);
    }

    // All clients of a proxy have its address, which is mostly a loopback one.
    #[tokio::test]
    async fn one_of_several_tokens_sends_half_of_the_bodies_to_other_routes() {
        let secrets = ["0123456789abcdef", "fedcba9876543210"];
        let entries = secrets.map(|secret| {
            let hash = TokenHash::of(&Token::new(secret).unwrap());
            TokenEntry::new(hash, Identity::new(secret, Labels::NONE))
        });
        let (blob, begun, ending) = slow_blob();
        let mut config = HttpConfig::default();
        config.tokens.replace(entries.to_vec());
        let tokens = config.tokens.clone();
        config.beside = Some(blob);
        let hub = Hub::new("uploads", "1");
        let router = TowerToHyperService::new(router(&hub, config));
        let near = line([127, 0, 0, 1]).await;
        let send = |method: Method, secret: &str| {
            let request = Request::builder().method(method).uri("/blob");
            let request = request.header(header::AUTHORIZATION, format!("Bearer {secret}"));
            let mut request =
                request.header(header::HOST, "localhost").body(Body::empty()).unwrap();
            near.note(request.extensions_mut());
            router.call(request)
        };
        let mut sending = JoinSet::new();
        for _ in 0..UPLOADS / 2 {
            sending.spawn(send(Method::POST, secrets[0]));
        }
        begun.acquire_many(32).await.unwrap().forget();
        let refused = send(Method::POST, secrets[0]).await.unwrap();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert!(refused.headers().contains_key(header::RETRY_AFTER));
        assert_eq!(send(Method::GET, secrets[0]).await.unwrap().status(), StatusCode::OK);
        sending.spawn(send(Method::POST, secrets[1]));
        begun.acquire().await.unwrap().forget();
        // Alone, it may send as many as all.
        tokens.replace(entries[..1].to_vec());
        sending.spawn(send(Method::POST, secrets[0]));
        begun.acquire().await.unwrap().forget();
        ending.add_permits(UPLOADS);
        while let Some(answer) = sending.join_next().await {
            assert_eq!(answer.unwrap().unwrap().status(), StatusCode::OK);
        }
    }
}
