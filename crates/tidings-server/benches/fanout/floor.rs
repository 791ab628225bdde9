//! The floor: a bare axum server. Bytes prepared once go to every open stream.
//!
//! It answers just enough of the protocol for the same client to drive it, checks nothing, merges
//! nothing and keeps no session; no useful server built on axum can do much less.

use std::convert::Infallible;
use std::error::Error;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use axum::Router;
use axum::body::{self, Body};
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use axum::serve::ListenerExt as _;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, StatusCode, header};
use http_body::Frame;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Frames that may wait for one stream: more than a burst of this benchmark has.
const WAITING: usize = 128;
pub(crate) const LEGACY: &[u8] =
    b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\
\"params\":{\"uri\":\"bench://counter\"}}\n\n";
pub(crate) const MODERN: &[u8] =
    b"data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\",\
\"params\":{\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":1},\
\"uri\":\"bench://counter\"}}\n\n";
pub(crate) const ACKNOWLEDGED: &[u8] = b"data: {\"jsonrpc\":\"2.0\",\
\"method\":\"notifications/subscriptions/acknowledged\",\"params\":{}}\n\n";

/// The open streams, and the bytes each hears.
type Streams = Arc<Mutex<Vec<(Bytes, mpsc::Sender<Bytes>)>>>;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let router = Router::new().route("/mcp", any(mcp)).with_state(Streams::default());
    let listener = listener.tap_io(|socket| drop(socket.set_nodelay(true)));
    axum::serve(listener, router).await?;
    Ok(())
}

async fn mcp(State(streams): State<Streams>, request: Request<Body>) -> Response {
    if request.method() == Method::GET {
        return stream(&streams, LEGACY, b"retry: 1000\n\n");
    }
    let body = body::to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    match message["method"].as_str() {
        Some("subscriptions/listen") => return stream(&streams, MODERN, ACKNOWLEDGED),
        Some("tools/call") => bump(&streams, &message["params"]["arguments"]).await,
        _ => {}
    }
    let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} });
    let mut response = Response::new(Body::from(answer.to_string()));
    response.headers_mut().insert("mcp-session-id", HeaderValue::from_static("one"));
    if message["id"].is_null() {
        *response.status_mut() = StatusCode::ACCEPTED;
    }
    response
}

async fn bump(streams: &Streams, arguments: &Value) {
    for _ in 0..arguments["n"].as_u64().unwrap_or(1) {
        tell_all(streams);
        tokio::task::yield_now().await;
    }
}

fn tell_all(streams: &Streams) {
    let mut all = streams.lock().expect("no code panics while it holds the streams");
    all.retain(|(frame, sender)| {
        !matches!(sender.try_send(frame.clone()), Err(mpsc::error::TrySendError::Closed(_)))
    });
}

fn stream(streams: &Streams, frame: &'static [u8], first: &'static [u8]) -> Response {
    let (sender, frames) = mpsc::channel(WAITING);
    let mut all = streams.lock().expect("no code panics while it holds the streams");
    all.push((Bytes::from_static(frame), sender));
    let body = Body::new(Feed { first: Some(Bytes::from_static(first)), frames });
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

struct Feed {
    first: Option<Bytes>,
    frames: mpsc::Receiver<Bytes>,
}

impl http_body::Body for Feed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None => self.frames.poll_recv(context).map(|frame| frame.map(Frame::data).map(Ok)),
        }
    }
}
