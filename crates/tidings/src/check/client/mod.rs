//! A client that sees the wire as it is. The mirror mends, merges and reconnects; a judge must not.

mod asked;
pub(crate) mod http;
pub(crate) mod log;
pub(crate) mod pipe;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Method;
use serde_json::{Map, Value, json};
use tidings_mirror::Era;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(crate) use self::asked::Manners;
use self::http::Http;
use self::log::{Arrival, Log, Via, What};
use self::pipe::Pipe;
use super::door::Door;
use super::topic::{Following, Topic, filter};
use super::verdict::{SPENT, Trace};
use crate::present::text::{cut, one_line};

/// The revision of each era that is spoken.
pub(crate) const LEGACY: &str = "2025-11-25";
pub(crate) const MODERN: &str = "2026-07-28";
const META: &str = "io.modelcontextprotocol/";

/// How much a run may do, and what it did.
#[derive(Debug)]
pub(crate) struct Meter {
    pub(crate) requests: AtomicUsize,
    pub(crate) most_requests: usize,
    pub(crate) deadline: Instant,
    clients: AtomicU64,
}

impl Meter {
    pub(crate) fn new(most_requests: usize, time: Duration) -> Self {
        let deadline = Instant::now() + time;
        let (requests, clients) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { requests, most_requests, deadline, clients }
    }

    pub(crate) fn is_spent(&self) -> bool {
        self.requests.load(Ordering::Relaxed) >= self.most_requests
            || Instant::now() >= self.deadline
    }

    /// Takes one request of the budget.
    fn take(&self) -> Result<(), String> {
        if self.is_spent() {
            return Err(SPENT.to_owned());
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answered {
    Result(Value),
    Error {
        code: i64,
        message: String,
    },
    /// No answer, and why.
    Nothing(String),
}

impl Answered {
    pub(crate) fn result(&self) -> Option<&Value> {
        match self {
            Self::Result(result) => Some(result),
            _ => None,
        }
    }

    pub(crate) fn code(&self) -> Option<i64> {
        match self {
            Self::Error { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl std::fmt::Display for Answered {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Result(result) => {
                write!(formatter, "a result: {}", cut(&one_line(&result.to_string()), 80))
            }
            Self::Error { code, message } => {
                write!(formatter, "the error {code} ({})", cut(&one_line(message), 80))
            }
            Self::Nothing(why) => write!(formatter, "no answer: {why}"),
        }
    }
}

/// The way of one client's messages.
pub(crate) enum Route {
    Http(Arc<Http>),
    Pipe(Box<Pipe>),
}

/// One client, connected.
pub(crate) struct Probe {
    pub(crate) era: Era,
    /// The result of `initialize` or `server/discover`.
    pub(crate) hello: Value,
    pub(crate) log: Arc<Log>,
    /// The time from opening the way to the first answer.
    pub(crate) started_in: Duration,
    name: String,
    route: Route,
    tasks: Mutex<JoinSet<()>>,
    next: AtomicI64,
    streams: AtomicU64,
    meter: Arc<Meter>,
    trace: Trace,
    timeout: Duration,
    capabilities: Value,
    /// The schemas of the tools that were called, as far as they are listed.
    schemas: Mutex<HashMap<String, Option<Map<String, Value>>>>,
}

impl Probe {
    /// Connects in one era and declares these capabilities.
    pub(crate) async fn connect(
        door: &Door,
        era: Era,
        capabilities: Value,
    ) -> Result<Self, String> {
        let number = door.meter.clients.fetch_add(1, Ordering::Relaxed);
        let name = format!("client {}", number + 1);
        let log = Arc::new(Log::traced(door.trace.clone(), name.clone()));
        let mut tasks = JoinSet::new();
        let began = Instant::now();
        let manners = Manners::new(era, capabilities.clone());
        let route = door.open(&log, &mut tasks, manners)?;
        let mut client = Self {
            era,
            hello: Value::Null,
            log,
            name,
            route,
            tasks: Mutex::new(tasks),
            next: AtomicI64::new(1),
            streams: AtomicU64::new(0),
            meter: door.meter.clone(),
            trace: door.trace.clone(),
            timeout: door.timeout,
            capabilities,
            schemas: Mutex::default(),
            started_in: Duration::ZERO,
        };
        client.hello = client.greet().await?;
        client.started_in = began.elapsed();
        Ok(client)
    }

    async fn greet(&self) -> Result<Value, String> {
        let info = json!({ "name": "tidings-check", "version": env!("CARGO_PKG_VERSION") });
        if self.era != Era::Legacy {
            self.set_version(MODERN);
            let reply = self.ask("server/discover", json!({})).await;
            let Answered::Result(hello) = reply else { return Err(self.explained(&reply)) };
            let versions = hello["supportedVersions"].as_array();
            let speaks = versions.is_some_and(|all| all.iter().any(|one| one == MODERN));
            return if speaks { Ok(hello) } else { Err(format!("it does not offer {MODERN}")) };
        }
        let params = json!({
            "protocolVersion": LEGACY, "capabilities": self.capabilities, "clientInfo": info,
        });
        let reply = self.ask("initialize", params).await;
        let Answered::Result(hello) = reply else { return Err(self.explained(&reply)) };
        let version = hello["protocolVersion"].as_str().unwrap_or(LEGACY).to_owned();
        self.set_version(&version);
        self.tell("notifications/initialized", json!({})).await?;
        Ok(hello)
    }

    /// Why there is no connection, with the last lines of the server.
    fn explained(&self, reply: &Answered) -> String {
        let words = match &self.route {
            Route::Pipe(pipe) => pipe.last_words(),
            Route::Http(_) => Vec::new(),
        };
        match words.last() {
            Some(last) => format!("{reply}; its last line on standard error: {}", one_line(last)),
            None => reply.to_string(),
        }
    }

    fn set_version(&self, version: &str) {
        if let Route::Http(http) = &self.route {
            let _ = http.version.set(version.to_owned());
        }
    }

    /// The HTTP side, if there is one.
    pub(crate) fn http(&self) -> Option<&Arc<Http>> {
        match &self.route {
            Route::Http(http) => Some(http),
            Route::Pipe(_) => None,
        }
    }

    /// The pipe, if there is one.
    pub(crate) fn pipe(&mut self) -> Option<&mut Pipe> {
        match &mut self.route {
            Route::Http(_) => None,
            Route::Pipe(pipe) => Some(pipe),
        }
    }

    pub(crate) fn has_session(&self) -> bool {
        self.http().is_some_and(|http| http.session.get().is_some())
    }

    /// A capability of the server, such as `tools.listChanged`.
    pub(crate) fn flag(&self, group: &str, flag: &str) -> bool {
        self.hello["capabilities"][group][flag] == true
    }

    pub(crate) fn offers(&self, group: &str) -> bool {
        self.hello["capabilities"].get(group).is_some_and(|group| !group.is_null())
    }

    /// The schema of a tool, fetched once.
    pub(crate) async fn schema(
        &self,
        tool: &str,
        fetch: impl AsyncFnOnce() -> Option<Map<String, Value>>,
    ) -> Option<Map<String, Value>> {
        let lock = || self.schemas.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(tool) {
            return known.clone();
        }
        let found = fetch().await;
        lock().insert(tool.to_owned(), found.clone());
        found
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn ask(&self, method: &str, params: Value) -> Answered {
        let mark = self.log.mark();
        let id = match self.begin(method, params).await {
            Ok(id) => id,
            Err(why) => return Answered::Nothing(why),
        };
        self.answer(&id, mark).await
    }

    /// Waits for the answer to a request that was begun.
    pub(crate) async fn answer(&self, id: &Value, mark: usize) -> Answered {
        let via = Via::Answer(id.clone());
        let wanted = |heard: &Arrival| match &heard.what {
            What::Message(message) => message.get("id") == Some(id) && !is_request(message),
            What::Ended(_) => heard.via == Via::Pipe || heard.via == via,
            What::Garbage(_) => false,
        };
        let found = self.log.wait(mark, Instant::now() + self.timeout, wanted).await;
        let Some((_, heard)) = found else {
            return Answered::Nothing(format!("nothing within {} s", self.timeout.as_secs()));
        };
        match heard.what {
            What::Message(mut message) => match message.get_mut("result") {
                Some(result) => Answered::Result(result.take()),
                None => Answered::Error {
                    code: message["error"]["code"].as_i64().unwrap_or_default(),
                    message: message["error"]["message"].as_str().unwrap_or_default().to_owned(),
                },
            },
            What::Ended(why) | What::Garbage(why) => Answered::Nothing(why),
        }
    }

    /// Sends a request and returns its id.
    pub(crate) async fn begin(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = json!(self.next.fetch_add(1, Ordering::Relaxed));
        self.begin_as(id.clone(), method, params).await?;
        Ok(id)
    }

    /// Sends a request with this id.
    pub(crate) async fn begin_as(
        &self,
        id: Value,
        method: &str,
        mut params: Value,
    ) -> Result<(), String> {
        self.meter.take()?;
        if self.era != Era::Legacy {
            let meta = &mut params["_meta"];
            meta[format!("{META}protocolVersion")] = json!(MODERN);
            meta[format!("{META}clientInfo")] =
                json!({ "name": "tidings-check", "version": env!("CARGO_PKG_VERSION") });
            meta[format!("{META}clientCapabilities")] = self.capabilities.clone();
        }
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.trace.line(&format!("{} → {}", self.name, shown(&message)));
        match &self.route {
            Route::Pipe(pipe) => pipe.send(&message).await,
            Route::Http(http) => {
                self.post(http, &id, message);
                Ok(())
            }
        }
    }

    /// Sends a notification.
    pub(crate) async fn tell(&self, method: &str, params: Value) -> Result<(), String> {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.trace.line(&format!("{} → {}", self.name, shown(&message)));
        match &self.route {
            Route::Pipe(pipe) => pipe.send(&message).await,
            Route::Http(http) => {
                let headers = self.headers(http, &message);
                http.send(Method::POST, headers, Some(&message)).await.map(drop)
            }
        }
    }

    fn headers(&self, http: &Http, message: &Value) -> reqwest::header::HeaderMap {
        if self.era == Era::Legacy { http.headers() } else { http.modern_headers(message) }
    }

    fn post(&self, http: &Arc<Http>, id: &Value, message: Value) {
        let headers = self.headers(http, &message);
        let (log, http_) = (self.log.clone(), http.clone());
        let via = Via::Answer(id.clone());
        let task = async move {
            match http_.send(Method::POST, headers, Some(&message)).await {
                Ok(response) => {
                    http_.note(&response);
                    let is_stream = http::is_event_stream(&response);
                    http_.read(response, is_stream, &log, &via).await;
                }
                Err(why) => log.push(via, What::Ended(why)),
            }
        };
        let handle = self.tasks.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
        let mut under_way = http.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.retain(|_, task| !task.is_finished());
        under_way.insert(id.to_string(), handle);
    }

    /// Opens the stream of a legacy session: its number, or the status that refused it. In a pipe
    /// there is nothing to open.
    pub(crate) async fn open_stream(&self) -> Result<u64, u16> {
        let Some(http) = self.http() else { return Ok(0) };
        let number = self.streams.fetch_add(1, Ordering::Relaxed) + 1;
        self.trace.line(&format!("{} → GET (stream {number})", self.name));
        let response = http.send(Method::GET, http.headers(), None).await;
        let status = response.as_ref().map_or(0, |response| response.status().as_u16());
        self.trace.line(&format!("{} ← HTTP {status} (stream {number})", self.name));
        let Ok(response) = response else { return Err(0) };
        if status != 200 || !http::is_event_stream(&response) {
            return Err(status);
        }
        let (log, via, http_) = (self.log.clone(), Via::Stream(number), http.clone());
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        let task = tasks.spawn(async move { http_.read(response, true, &log, &via).await });
        let mut under_way = http.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        under_way.insert(stream_key(number), task);
        Ok(number)
    }

    /// Opens a stream of notices and does not read it: the answer, to be held.
    pub(crate) async fn stall(&self, topics: &[Topic]) -> Result<reqwest::Response, String> {
        let http = self.http().ok_or("only a client over HTTP can be slow by itself")?;
        if self.era == Era::Legacy {
            // Its subscriptions stay as long as the session.
            Following::open(self, topics).await.map(drop)?;
            return http.send(Method::GET, http.headers(), None).await;
        }
        let message = json!({
            "jsonrpc": "2.0", "id": "tidings-check-stalled", "method": "subscriptions/listen",
            "params": {
                "notifications": filter(topics),
                "_meta": {
                    "io.modelcontextprotocol/protocolVersion": MODERN,
                    "io.modelcontextprotocol/clientCapabilities": self.capabilities,
                },
            },
        });
        http.send(Method::POST, http.modern_headers(&message), Some(&message)).await
    }

    /// Closes a stream from our side.
    pub(crate) fn close_stream(&self, number: u64) {
        self.abort(&stream_key(number));
    }

    /// Gives up a request: over HTTP by closing its stream, in a pipe with a notification.
    pub(crate) async fn cancel(&self, id: &Value) {
        if self.http().is_some() {
            self.trace.line(&format!("{} closes the stream of request {id}", self.name));
            self.abort(&id.to_string());
        } else {
            // A server that is gone has nothing to cancel.
            drop(self.tell("notifications/cancelled", json!({ "requestId": id })).await);
        }
    }

    fn abort(&self, key: &str) {
        if let Some(http) = self.http() {
            let mut under_way = http.under_way.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(task) = under_way.remove(key) {
                task.abort();
            }
        }
    }

    /// The first line of the trace with this text, and its neighbours.
    pub(crate) fn evidence(&self, text: &str) -> Vec<String> {
        self.trace.around(text)
    }

    /// Ends the session and everything of this client.
    pub(crate) async fn end(mut self) {
        if let Some(http) = self.http().filter(|http| http.session.get().is_some()) {
            // The server may not support it.
            drop(http.send(Method::DELETE, http.headers(), None).await);
        }
        if let Some(pipe) = self.pipe() {
            pipe.close().await;
            if let Some(program) = pipe.program() {
                // What does not end by itself is killed.
                drop(program.ends_within(Duration::from_millis(500)).await);
            }
        }
        let mut tasks =
            std::mem::take(&mut *self.tasks.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }
}

fn stream_key(number: u64) -> String {
    format!("stream {number}")
}

fn is_request(message: &Value) -> bool {
    message.get("method").is_some()
}

/// A message, shortened.
fn shown(message: &Value) -> String {
    let text = match message["method"].as_str() {
        Some(method) => request_text(method, message),
        None => answer_text(message),
    };
    cut(&one_line(&text), 160).into_owned()
}

fn request_text(method: &str, message: &Value) -> String {
    let mut params = message["params"].clone();
    if let Some(params) = params.as_object_mut() {
        params.remove("_meta");
    }
    let params = if params.is_null() { String::new() } else { params.to_string() };
    match message.get("id") {
        Some(id) => format!("{method} #{id} {params}"),
        None => format!("{method} {params}"),
    }
}

fn answer_text(message: &Value) -> String {
    let id = &message["id"];
    match message.get("error") {
        Some(error) => format!("error #{id} {error}"),
        None => format!("result #{id} {}", message["result"]),
    }
}
