//! A client that speaks raw JSON, over stdio or HTTP, and writes down everything it hears.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidings_server::{Hub, Identity, stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, WriteHalf};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Nothing here takes as long as this.
const LONG: Duration = Duration::from_secs(20);

/// How a client reaches the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Stdio,
    Http,
}

/// One client.
pub(crate) struct Client {
    route: Route,
    heard: Arc<Heard>,
    /// Whether it reads what it is sent.
    reads: watch::Sender<bool>,
    next_id: i64,
    tasks: JoinSet<()>,
    /// The requests that are being answered over HTTP, by id.
    answers: BTreeMap<i64, tokio::task::AbortHandle>,
}

/// What a client heard, and who waits for more.
#[derive(Default)]
struct Heard {
    messages: Mutex<Vec<Value>>,
    more: Notify,
}

impl Heard {
    fn push(&self, message: Value) {
        self.messages.lock().unwrap().push(message);
        self.more.notify_one();
    }
}

enum Route {
    Stdio {
        input: WriteHalf<DuplexStream>,
        cancel: CancellationToken,
    },
    Http {
        router: Router,
        /// The secret of its token, if it has one.
        secret: Option<String>,
        session: Option<String>,
        version: Option<String>,
    },
}

/// The secret of the token of this name.
pub(crate) fn secret(name: &str) -> String {
    format!("{name}-0123456789abcdef")
}

impl Client {
    pub(crate) fn new(way: Way, hub: &Hub, router: &Router) -> Self {
        Self::of(way, hub, router, Identity::anonymous())
    }

    /// A client that is somebody: over HTTP it has the token of that name.
    pub(crate) fn of(way: Way, hub: &Hub, router: &Router, identity: Identity) -> Self {
        let mut tasks = JoinSet::new();
        let heard = Arc::new(Heard::default());
        let reads = watch::Sender::new(true);
        let route = match way {
            Way::Http => {
                let secret = identity.name.as_deref().map(secret);
                Route::Http { router: router.clone(), secret, session: None, version: None }
            }
            Way::Stdio => {
                // A pipe of this size holds few notices, so that a client that stops reading is
                // felt at once.
                let (ours, theirs) = tokio::io::duplex(512);
                let (output, input) = tokio::io::split(ours);
                let (their_input, their_output) = tokio::io::split(theirs);
                let (hub, cancel) = (hub.clone(), CancellationToken::new());
                let serving = cancel.clone();
                tasks.spawn(async move {
                    let streams = (their_input, their_output);
                    stdio::serve_as(&hub, identity, streams, serving).await.unwrap();
                });
                let (heard, mut reading) = (heard.clone(), reads.subscribe());
                tasks.spawn(async move {
                    let mut lines = BufReader::with_capacity(64, output).lines();
                    loop {
                        reading.wait_for(|reads| *reads).await.unwrap();
                        let Ok(Some(line)) = lines.next_line().await else { break };
                        heard.push(serde_json::from_str(&line).unwrap());
                    }
                });
                Route::Stdio { input, cancel }
            }
        };
        Self { route, heard, reads, next_id: 0, tasks, answers: BTreeMap::default() }
    }

    /// Sends a request and returns its id. The answer is heard like everything else.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value, modern: bool) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        if modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            let capabilities = &mut params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
            if capabilities.is_null() {
                *capabilities = json!({});
            }
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(message).await;
        id
    }

    /// Sends a message as it is.
    pub(crate) async fn send(&mut self, message: Value) {
        match &mut self.route {
            Route::Stdio { input, .. } => {
                let line = format!("{message}\n");
                input.write_all(line.as_bytes()).await.unwrap();
            }
            Route::Http { router, secret, session, version } => {
                let method = message["method"].as_str().unwrap_or_default().to_owned();
                let modern =
                    message["params"]["_meta"].get("io.modelcontextprotocol/protocolVersion");
                let mut request = post(message.to_string());
                let headers = request.headers_mut();
                if let Some(secret) = secret {
                    headers.insert("authorization", format!("Bearer {secret}").parse().unwrap());
                }
                if let Some(modern) = modern {
                    headers
                        .insert("mcp-protocol-version", modern.as_str().unwrap().parse().unwrap());
                    headers.insert("mcp-method", method.parse().unwrap());
                    let named = message["params"].get("name").or(message["params"].get("uri"));
                    if let Some(name) = named.and_then(Value::as_str) {
                        headers.insert("mcp-name", name.parse().unwrap());
                    }
                } else {
                    if let Some(session) = session {
                        headers.insert("mcp-session-id", session.parse().unwrap());
                    }
                    if let Some(version) = version {
                        headers.insert("mcp-protocol-version", version.parse().unwrap());
                    }
                }
                let (heard, reading) = (self.heard.clone(), self.reads.subscribe());
                let answering = router.clone().oneshot(request);
                if method == "initialize" {
                    let answer = answering.await.unwrap();
                    let name = answer.headers().get("mcp-session-id");
                    *session = name.map(|name| name.to_str().unwrap().to_owned());
                    listen(answer.into_body(), heard.clone(), reading).await;
                    let said = heard.messages.lock().unwrap().last().cloned().unwrap();
                    *version = said["result"]["protocolVersion"].as_str().map(str::to_owned);
                } else if method == "notifications/initialized" {
                    assert_eq!(answering.await.unwrap().status(), StatusCode::ACCEPTED);
                    self.open_stream().await;
                } else {
                    let task = self.tasks.spawn(async move {
                        let answer = answering.await.unwrap();
                        listen(answer.into_body(), heard, reading).await;
                    });
                    self.answers.extend(message["id"].as_i64().map(|id| (id, task)));
                }
            }
        }
    }

    /// Opens the stream of a session; over stdio there is nothing to open.
    pub(crate) async fn open_stream(&mut self) {
        let Route::Http { router, secret, session, version } = &self.route else { return };
        let mut request = Request::get("/mcp")
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .header("mcp-session-id", session.as_deref().unwrap())
            .header("mcp-protocol-version", version.as_deref().unwrap());
        if let Some(secret) = secret {
            request = request.header("authorization", format!("Bearer {secret}"));
        }
        let request = request.body(Body::empty()).unwrap();
        let answer = router.clone().oneshot(request).await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        let (heard, reading) = (self.heard.clone(), self.reads.subscribe());
        self.tasks.spawn(listen(answer.into_body(), heard, reading));
    }

    /// Gives up a request: over HTTP by closing its stream, over stdio with a word.
    pub(crate) async fn cancel(&mut self, id: i64) {
        if let Some(answer) = self.answers.remove(&id) {
            answer.abort();
            return;
        }
        let params = json!({ "requestId": id });
        let method = "notifications/cancelled";
        self.send(json!({ "jsonrpc": "2.0", "method": method, "params": params })).await;
    }

    /// Stops reading, or goes on.
    pub(crate) fn read(&self, reads: bool) {
        self.reads.send_replace(reads);
    }

    /// Takes the first message that was heard and holds all this.
    pub(crate) fn take(&self, wanted: &Value) -> Option<Value> {
        let mut heard = self.heard.messages.lock().unwrap();
        let at = heard.iter().position(|message| holds(message, wanted))?;
        Some(heard.remove(at))
    }

    /// As [`Self::take`], once it is heard.
    pub(crate) async fn wait(&self, wanted: &Value) -> Value {
        let hearing = async {
            loop {
                if let Some(message) = self.take(wanted) {
                    return message;
                }
                self.heard.more.notified().await;
            }
        };
        let heard = tokio::time::timeout(LONG, hearing).await;
        heard.unwrap_or_else(|_| panic!("{wanted} was not heard, but {:?}", self.rest()))
    }

    /// Waits until something more is heard.
    pub(crate) async fn more(&self) {
        let more = tokio::time::timeout(LONG, self.heard.more.notified()).await;
        more.expect("nothing more was heard");
    }

    /// What was heard and not taken.
    pub(crate) fn rest(&self) -> Vec<Value> {
        self.heard.messages.lock().unwrap().clone()
    }

    /// Leaves without a word.
    pub(crate) async fn leave(&mut self) {
        self.tasks.shutdown().await;
        if let Route::Stdio { cancel, .. } = &self.route {
            cancel.cancel();
        }
    }
}

/// A POST of this body with the headers every client sends.
pub(crate) fn post(body: impl Into<Body>) -> Request<Body> {
    Request::post("/mcp")
        .header("host", "localhost")
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap()
}

/// An answer as a status, headers and the JSON it holds, if it ends.
pub(crate) async fn whole(answer: Response<Body>) -> (StatusCode, HeaderMap, Value) {
    let (parts, body) = answer.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    (parts.status, parts.headers, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// Writes down the messages of an answer, one JSON or a stream of events, while the client reads.
async fn listen(mut body: Body, heard: Arc<Heard>, mut reading: watch::Receiver<bool>) {
    let mut text = String::new();
    loop {
        reading.wait_for(|reads| *reads).await.unwrap();
        let Some(frame) = body.frame().await else { break };
        let Ok(data) = frame.unwrap().into_data() else { continue };
        text += std::str::from_utf8(&data).unwrap();
        while let Some(end) = text.find("\n\n") {
            let event: String = text.drain(..end + 2).collect();
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                heard.push(serde_json::from_str(data).unwrap());
            }
        }
    }
    if !text.is_empty() {
        heard.push(serde_json::from_str(&text).unwrap());
    }
}

/// Whether a value has everything another one has.
fn holds(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Object(value), Value::Object(wanted)) => wanted
            .iter()
            .all(|(key, wanted)| value.get(key).is_some_and(|value| holds(value, wanted))),
        (Value::Array(value), Value::Array(wanted)) => {
            value.len() == wanted.len()
                && value.iter().zip(wanted).all(|(value, wanted)| holds(value, wanted))
        }
        (value, wanted) => value == wanted,
    }
}
