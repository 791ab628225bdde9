//! Clients that want too much: bodies that grow, hoards of connections and sessions, answers that
//! nobody reads, and a server that stops in the middle of it.

mod bodies;
mod drain;
mod exposed;
mod hoards;
mod pace;
mod storm;

use std::net::SocketAddr;
use std::sync::Arc;

use serde_json::{Value, json};
use tidings_server::http::{self, HttpConfig};
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject, Resource,
    Tool,
};
use tidings_server::{
    Answer, AnswerError, Contents, Context, EditError, Hub, ResourceUri, Shelf, Source,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::demo::within;

/// The answer of the resource that is large.
const LARGE: usize = 4 << 20;

/// A source with a tool that waits, one that counts values, one that lets its client go and has a
/// large answer, and a resource that is large.
#[derive(Clone)]
struct Laboratory {
    /// How many calls of `wait` and `later` may end.
    released: Arc<Semaphore>,
    /// How many of them have begun, as permits.
    begun: Arc<Semaphore>,
    /// How many of them were dropped or cancelled before they ended.
    dropped: Arc<Semaphore>,
}

impl Laboratory {
    fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        for name in ["wait", "count", "later"] {
            shelf.add(Tool::new(name, "", JsonObject::new()))?;
        }
        for uri in ["lab://large", "lab://small"] {
            shelf.add(Resource::new(uri, uri))?;
        }
        Ok(self)
    }
}

impl Source for Laboratory {
    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        let length = if uri.as_str() == "lab://large" { LARGE } else { 1 };
        Ok(Contents::text(uri, "x".repeat(length)))
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let text = if request.name == "count" {
            let values = request.arguments.unwrap_or_default();
            values.get("rows").and_then(Value::as_array).map_or(0, Vec::len).to_string()
        } else {
            let gone = Gone(Some(self.dropped.clone()));
            if request.name == "later" {
                context.release_stream();
            }
            self.begun.add_permits(1);
            let permit =
                self.released.acquire().await.map_err(|_| AnswerError::Failed(String::new()))?;
            permit.forget();
            gone.forget();
            if request.name == "later" { "x".repeat(LARGE) } else { "done".to_owned() }
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

/// Counts a call that is dropped.
struct Gone(Option<Arc<Semaphore>>);

impl Gone {
    fn forget(mut self) {
        self.0 = None;
    }
}

impl Drop for Gone {
    fn drop(&mut self) {
        if let Some(dropped) = &self.0 {
            dropped.add_permits(1);
        }
    }
}

/// A laboratory behind a socket.
struct Site {
    address: SocketAddr,
    hub: Hub,
    laboratory: Laboratory,
    cancel: CancellationToken,
    serving: JoinSet<()>,
    client: reqwest::Client,
}

async fn site(change: impl FnOnce(&mut HttpConfig)) -> Site {
    let hub = Hub::new("laboratory", "1");
    let none = || Arc::new(Semaphore::new(0));
    let laboratory = Laboratory { released: none(), begun: none(), dropped: none() };
    hub.add("laboratory", |shelf| laboratory.clone().on(&shelf)).await.unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (mut config, cancel) = (HttpConfig::default(), CancellationToken::new());
    change(&mut config);
    let mut serving = JoinSet::new();
    let (serves, until) = (hub.clone(), cancel.clone());
    serving.spawn(async move { http::serve(&serves, listener, config, until).await.unwrap() });
    Site { address, hub, laboratory, cancel, serving, client: crate::support::demo::http() }
}

impl Site {
    /// A POST to the endpoint.
    fn post(
        &self,
        session: Option<&str>,
        body: impl Into<reqwest::Body>,
    ) -> reqwest::RequestBuilder {
        let request = self
            .client
            .post(format!("http://{}/mcp", self.address))
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(body);
        match session {
            Some(session) => request.header("mcp-session-id", session),
            None => request,
        }
    }

    /// The status and the message that answer a POST.
    async fn ask(&self, session: Option<&str>, message: &Value) -> (u16, Value) {
        answer(within(self.post(session, message.to_string()).send()).await.unwrap()).await
    }

    /// A modern request.
    fn modern(&self, method: &str, params: Value) -> reqwest::RequestBuilder {
        let name = ["name", "uri"].iter().find_map(|key| params[key].as_str()).map(str::to_owned);
        let request = self
            .post(None, modern(method, params).to_string())
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        match name {
            Some(name) => request.header("mcp-name", name),
            None => request,
        }
    }

    /// Opens a legacy session.
    async fn session(&self) -> String {
        let answer = within(self.post(None, initialize().to_string()).send()).await.unwrap();
        assert_eq!(answer.status(), 200);
        answer.headers()["mcp-session-id"].to_str().unwrap().to_owned()
    }

    /// One figure of the metrics.
    fn figure(&self, name: &str) -> i64 {
        let metrics = self.hub.metrics();
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
    }

    /// Waits until a figure is this.
    async fn settles(&self, name: &str, value: i64) {
        let settled = async {
            while self.figure(name) != value {
                tokio::task::yield_now().await;
            }
        };
        within(settled).await;
    }

    async fn page(&self, path: &str) -> (u16, String) {
        let answer = self.client.get(format!("http://{}{path}", self.address)).send();
        let answer = within(answer).await.unwrap();
        (answer.status().as_u16(), within(answer.text()).await.unwrap())
    }

    /// A connection on which these bytes were sent.
    async fn connect(&self, bytes: &[u8]) -> TcpStream {
        let mut socket = within(TcpStream::connect(self.address)).await.unwrap();
        within(socket.write_all(bytes)).await.unwrap();
        socket
    }

    async fn ended(mut self) {
        self.cancel.cancel();
        within(self.serving.join_next()).await.unwrap().unwrap();
    }
}

async fn answer(response: reqwest::Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let bytes = within(response.bytes()).await.unwrap();
    let text = String::from_utf8_lossy(&bytes);
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
    (status, serde_json::from_str(last).unwrap_or(Value::Null))
}

fn initialize() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "attacker", "version": "1" },
    }})
}

fn request(method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "id": 7, "method": method });
    message["params"] = params;
    message
}

fn modern(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "attacker", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    request(method, params)
}

/// The head of a POST with a body of this length.
fn head(length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n\r\n"
    )
}
