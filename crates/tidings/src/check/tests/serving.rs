//! The fixture behind pipes in memory, and behind HTTP.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::fixture::Fixture;
use crate::check::door::Pipes;

/// Pipes to a fixture. Each is a session.
pub(super) fn pipes(fixture: Arc<Fixture>) -> Pipes {
    let next = AtomicUsize::new(0);
    Arc::new(move || {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(near);
        let (requests, mut answers) = tokio::io::split(far);
        let key = format!("pipe-{}", next.fetch_add(1, Ordering::Relaxed));
        fixture.join(&key);
        let (outlet, mut waiting) = fixture.outlet();
        fixture.open(&key, outlet.clone());
        if fixture.breaks("proc.stdout-clean") {
            let _ = outlet.try_send(Value::String("starting".to_owned()));
        }
        fixture.spawn(async move {
            while let Some(message) = waiting.recv().await {
                if answers.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
            let _ = answers.shutdown().await;
        });
        let served = fixture.clone();
        fixture.spawn(async move {
            let mut lines = BufReader::new(requests).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                if let Some(answer) = served.handle(&key, &message, &outlet).await {
                    let _ = outlet.send(answer).await;
                }
            }
            if served.breaks("proc.eof-exit") {
                std::future::pending::<()>().await;
            }
            served.leave(&key);
        });
        (Box::new(input), Box::new(output))
    })
}

/// Serves a fixture on a port of its own: the endpoint.
pub(super) async fn http(fixture: &Arc<Fixture>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let next = Arc::new(AtomicUsize::new(0));
    let served = fixture.clone();
    let router = Router::new().fallback(move |request: Request<Body>| {
        let (fixture, next) = (served.clone(), next.clone());
        async move { respond(&fixture, &next, request).await }
    });
    fixture.spawn(async move { axum::serve(listener, router).await.unwrap() });
    format!("http://{address}/mcp")
}

async fn respond(
    fixture: &Arc<Fixture>,
    next: &AtomicUsize,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let header =
        |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    if parts.uri.path() == "/restart" {
        fixture.restart();
        return plain(StatusCode::OK);
    }
    if header("origin").is_some() && !fixture.breaks("http.origin") {
        return plain(StatusCode::FORBIDDEN);
    }
    let is_modern = header("mcp-protocol-version").is_some_and(|version| version == "2026-07-28");
    let bytes = body.collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    if is_modern {
        return modern(fixture, &parts.method, header("authorization"), &message).await;
    }
    if message["method"] == "initialize" {
        let key = format!("session-{}", next.fetch_add(1, Ordering::Relaxed));
        fixture.join(&key);
        let (outlet, _) = fixture.outlet();
        let answer = fixture.handle(&key, &message, &outlet).await.unwrap();
        let mut response = json(&answer);
        response.headers_mut().insert("mcp-session-id", key.parse().unwrap());
        return response;
    }
    let Some(key) = header("mcp-session-id").filter(|key| fixture.knows(key)) else {
        let is_wrong = fixture.breaks("recon.resume");
        return plain(if is_wrong { StatusCode::BAD_REQUEST } else { StatusCode::NOT_FOUND });
    };
    match parts.method {
        Method::GET => {
            let (outlet, waiting) = fixture.outlet();
            fixture.open(&key, outlet);
            events(waiting)
        }
        Method::DELETE => {
            fixture.leave(&key);
            plain(StatusCode::NO_CONTENT)
        }
        _ => {
            let (outlet, _) = fixture.outlet();
            let answer = fixture.handle(&key, &message, &outlet).await;
            answer.map_or_else(|| plain(StatusCode::ACCEPTED), |answer| json(&answer))
        }
    }
}

async fn modern(
    fixture: &Arc<Fixture>,
    method: &Method,
    token: Option<String>,
    message: &Value,
) -> Response<Body> {
    if *method != Method::POST {
        return plain(StatusCode::METHOD_NOT_ALLOWED);
    }
    let is_other = token.is_some_and(|token| token == "Bearer b");
    let key = if is_other { "modern-b" } else { "modern" };
    if !fixture.knows(key) {
        fixture.join(key);
    }
    let (outlet, waiting) = fixture.outlet();
    let answer = fixture.handle(key, message, &outlet).await;
    drop(outlet);
    let mut response = answer.map_or_else(|| events(waiting), |answer| json(&answer));
    if fixture.breaks("listen.no-session") {
        response.headers_mut().insert("mcp-session-id", "wrong".parse().unwrap());
    }
    response
}

fn plain(status: StatusCode) -> Response<Body> {
    Response::builder().status(status).body(Body::empty()).unwrap()
}

fn json(message: &Value) -> Response<Body> {
    let builder = Response::builder().header("content-type", "application/json");
    builder.body(message.to_string().into()).unwrap()
}

/// A stream of events, until nobody can send any more.
fn events(waiting: mpsc::Receiver<Value>) -> Response<Body> {
    let chunks = stream::unfold(waiting, |mut waiting| async {
        let message = waiting.recv().await?;
        Some((Ok::<_, Infallible>(Bytes::from(format!("data: {message}\n\n"))), waiting))
    });
    let builder = Response::builder().header("content-type", "text/event-stream");
    builder.body(Body::from_stream(chunks)).unwrap()
}
