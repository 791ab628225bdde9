//! A server that does what a test says, well or badly, and writes down what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What was asked.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) http: Method,
    /// The method of the message; empty if there is none.
    pub(crate) method: String,
    pub(crate) message: Value,
    pub(crate) session: Option<String>,
    pub(crate) authorization: Option<String>,
    pub(crate) headers: HeaderMap,
}

impl Call {
    /// A result, as JSON.
    pub(crate) fn result(&self, result: &Value) -> Response<Body> {
        let message = json!({ "jsonrpc": "2.0", "id": self.message["id"], "result": result });
        answer(StatusCode::OK, "application/json", message.to_string())
    }

    pub(crate) fn error(&self, code: i32, message: &str) -> Response<Body> {
        let error = json!({ "code": code, "message": message });
        let message = json!({ "jsonrpc": "2.0", "id": self.message["id"], "error": error });
        answer(StatusCode::OK, "application/json", message.to_string())
    }

    /// What a decent legacy server with these capabilities answers to what is not in question.
    pub(crate) fn decent(&self, capabilities: &Value) -> Response<Body> {
        match (&self.http, self.method.as_str()) {
            (&Method::DELETE, _) => answer(StatusCode::NO_CONTENT, "text/plain", String::new()),
            (&Method::GET, _) => {
                answer(StatusCode::METHOD_NOT_ALLOWED, "text/plain", String::new())
            }
            (_, "server/discover") => {
                answer(StatusCode::BAD_REQUEST, "text/plain", "what?".to_owned())
            }
            (_, "initialize") => {
                let mut answer = self.result(&json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities,
                    "serverInfo": { "name": "rogue", "version": "1" },
                }));
                answer.headers_mut().insert("mcp-session-id", "s1".parse().unwrap());
                answer
            }
            (_, method) if method.starts_with("notifications/") => {
                answer(StatusCode::ACCEPTED, "text/plain", String::new())
            }
            (_, "tools/list") => self.result(&json!({ "tools": [] })),
            (_, "resources/list") => self.result(&json!({ "resources": [] })),
            (_, "resources/templates/list") => self.result(&json!({ "resourceTemplates": [] })),
            (_, "prompts/list") => self.result(&json!({ "prompts": [] })),
            (_, "resources/subscribe" | "resources/unsubscribe" | "ping") => {
                self.result(&json!({}))
            }
            _ => self.error(-32601, "Method not found"),
        }
    }
}

pub(crate) fn answer(status: StatusCode, kind: &str, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).header("content-type", kind).body(body.into()).unwrap()
}

/// A stream of events that a test feeds.
pub(crate) fn event_stream() -> (mpsc::Sender<String>, Response<Body>) {
    let (sender, receiver) = mpsc::channel::<String>(4096);
    let chunks = stream::unfold(receiver, |mut receiver| async {
        let event = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(Bytes::from(event)), receiver))
    });
    (sender, answer(StatusCode::OK, "text/event-stream", Body::from_stream(chunks)))
}

/// A notification, as an event.
pub(crate) fn notice(method: &str, params: &Value) -> String {
    let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    format!("data: {message}\n\n")
}

/// A tool as a server lists it.
pub(crate) fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object" } })
}

pub(crate) struct Rogue {
    pub(crate) url: String,
    calls: Arc<Mutex<Vec<Call>>>,
    _tasks: JoinSet<()>,
}

impl Rogue {
    pub(crate) async fn start(
        behave: impl Fn(Call) -> Response<Body> + Clone + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let calls = Arc::new(Mutex::new(Vec::new()));
        let written = calls.clone();
        let router = Router::new().fallback(move |request: Request<Body>| {
            let (behave, written) = (behave.clone(), written.clone());
            async move {
                let call = read(request).await;
                written.lock().unwrap().push(call.clone());
                behave(call)
            }
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, calls, _tasks: tasks }
    }

    /// The calls of a method.
    pub(crate) fn calls(&self, method: &str) -> Vec<Call> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call.method == method).cloned().collect()
    }

    /// How often a method was asked for.
    pub(crate) fn asked(&self, method: &str) -> usize {
        self.calls(method).len()
    }
}

async fn read(request: Request<Body>) -> Call {
    let (parts, body) = request.into_parts();
    let header =
        |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let (session, authorization) = (header("mcp-session-id"), header("authorization"));
    let bytes = body.collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
    let method = message["method"].as_str().unwrap_or_default().to_owned();
    let headers = parts.headers;
    Call { http: parts.method, method, message, session, authorization, headers }
}
