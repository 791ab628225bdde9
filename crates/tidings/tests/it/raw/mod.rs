//! Raw JSON of a source: what the protocol library does not know reaches clients as it is.

mod announced;
mod answers;
mod items;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Map, Value, json};
use tidings_server::http::HttpConfig;
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, GetPromptRequestParams,
    GetPromptResponse, Tool,
};
use tidings_server::{
    Answer, AnswerError, Completion, Completions, Contents, Context, EditError, Hub, Raw,
    ResourceUri, Shelf, Source, http as server, stdio,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::support::client::post;

/// Keys in an unusual order, numbers that no float holds, strings with escapes and spaces.
const HOLOGRAM: &str = r#"{"type":"hologram","z":1,"a":18446744073709551615,"huge":123456789012345678901234567890.10,"text":" \u00e9\/\n  x","m":{"b":null,"a":[]}}"#;
const TOOL: &str = r#"{"zebra":[1.0,2e3],"name":"call","inputSchema":{"type":"object","x-order":["b","a"],"properties":{"b":{},"a":{}}},"annotations":{"magic":18446744073709551616}}"#;
const PROMPT: &str = r#"{"tone":"grave","name":"ask","arguments":[{"name":"who","mood":1}]}"#;
const RESOURCE: &str =
    r#"{"uri":"raw://one","name":"one","size":1e3,"links":{"next":"raw://two"},"title":"One"}"#;
const TEMPLATE: &str = r#"{"depth":3,"uriTemplate":"raw://item/{id}","name":"item"}"#;

/// The ways to a hub: each transport, in each era.
const WAYS: [Way; 4] = [
    Way { is_http: false, is_modern: false },
    Way { is_http: false, is_modern: true },
    Way { is_http: true, is_modern: false },
    Way { is_http: true, is_modern: true },
];

#[derive(Clone, Copy, Debug)]
struct Way {
    is_http: bool,
    is_modern: bool,
}

/// A source that relays what it was given.
#[derive(Clone, Default)]
struct Relay {
    /// What a read returns.
    content: Arc<Mutex<String>>,
}

fn raw<T>(text: &str) -> Result<Raw<T>, AnswerError> {
    Raw::parse(text).map_err(|error| AnswerError::Failed(error.to_string()))
}

impl Relay {
    fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        shelf.add(raw::<Tool>(TOOL).unwrap())?;
        shelf.add(Tool::new("typed", "a typed one", Map::new()))?;
        shelf.add(raw::<tidings_server::model::Prompt>(PROMPT).unwrap())?;
        shelf.add(raw::<tidings_server::model::Resource>(RESOURCE).unwrap())?;
        shelf.add(raw::<tidings_server::model::ResourceTemplate>(TEMPLATE).unwrap())?;
        Ok(self)
    }

    async fn hub(self) -> Hub {
        let hub = Hub::new("relay", "1");
        hub.add("relay", |shelf| self.on(&shelf)).await.unwrap();
        hub
    }
}

impl Source for Relay {
    /// Sends the progress it is told to, then fails as told, or returns the text it is given: as a
    /// raw result or, if the tool is typed, as a text.
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let arguments = request.arguments.unwrap_or_default();
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        if let Some(message) = text("progress") {
            context.progress(1.0, None, Some(message)).await;
        }
        if let Some(error) = text("error") {
            return Err(AnswerError::Raw(raw(error)?));
        }
        let result = text("result").unwrap_or_default();
        if request.name == "typed" {
            return Ok(CallToolResult::success(vec![ContentBlock::text(result)]).into());
        }
        Ok(raw(result)?.into())
    }

    async fn prompt(
        &self,
        _: GetPromptRequestParams,
        _: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        let text = format!(r#"{{"messages":[{{"content":{HOLOGRAM},"role":"user"}}],"x":0.10}}"#);
        Ok(raw(&text)?.into())
    }

    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        if uri.as_ref().ends_with("missing") {
            let error =
                r#"{"data":{"n":18446744073709551616},"code":-32002,"message":"no such thing"}"#;
            return Err(AnswerError::Raw(raw(error)?));
        }
        let text = self.content.lock().unwrap().clone();
        let mut contents = Contents::raw(raw(&text)?);
        contents.fresh_for = Duration::from_secs(2);
        Ok(contents)
    }

    async fn complete(&self, _: Completion, _: &Context) -> Result<Completions, AnswerError> {
        Ok(Completions::raw(raw(r#"{"why":"not","completion":{"values":["a"],"rank":[1.50]}}"#)?))
    }
}

/// What a client is answered, as the server wrote it: all messages of the answer, the answer last.
/// The id of the request is 7.
async fn ask(hub: &Hub, way: Way, method: &str, params: Value) -> Vec<String> {
    let asking = async {
        let request = request(way, method, params);
        if way.is_http {
            over_http(server::router(hub, HttpConfig::default()), way, &request).await
        } else {
            over_stdio(hub, way, &request).await
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.unwrap()
}

/// As [`ask`], only the answer.
async fn answer(hub: &Hub, way: Way, method: &str, params: Value) -> String {
    ask(hub, way, method, params).await.pop().unwrap()
}

/// A call of one of the tools, with these arguments.
async fn call(hub: &Hub, way: Way, tool: &str, arguments: Value) -> Vec<String> {
    let meta = json!({ "progressToken": 7 });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    ask(hub, way, "tools/call", params).await
}

fn request(way: Way, method: &str, mut params: Value) -> Value {
    if way.is_modern {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// The handshake of a legacy client.
fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "tester", "version": "1" },
    });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

async fn over_stdio(hub: &Hub, way: Way, request: &Value) -> Vec<String> {
    if way.is_modern {
        return talk(hub, std::slice::from_ref(request)).await;
    }
    let mut heard = talk(hub, &[initialize(), request.clone()]).await;
    heard.remove(0);
    heard
}

/// Sends requests over one connection and returns all lines up to the last answer.
async fn talk(hub: &Hub, requests: &[Value]) -> Vec<String> {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (output, mut input) = tokio::io::split(ours);
    let (their_input, their_output) = tokio::io::split(theirs);
    let talk = async {
        for request in requests {
            input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        }
        let (mut lines, mut heard) = (BufReader::new(output).lines(), Vec::new());
        let mut unanswered = requests.len();
        while unanswered > 0 {
            let line = lines.next_line().await.unwrap().unwrap();
            let is_answer = serde_json::from_str::<Value>(&line).unwrap().get("id").is_some();
            unanswered -= usize::from(is_answer);
            heard.push(line);
        }
        heard
    };
    let cancel = CancellationToken::new();
    tokio::select! {
        heard = talk => heard,
        served = stdio::serve(hub, their_input, their_output, cancel) => panic!("{served:?}"),
    }
}

async fn over_http(router: Router, way: Way, request: &Value) -> Vec<String> {
    let request = prepared(&router, way, request).await;
    said(router, request).await
}

/// A request with the headers of its era; a legacy client opens a session first.
async fn prepared(router: &Router, way: Way, request: &Value) -> Request<Body> {
    let mut asked = post(request.to_string());
    let headers = asked.headers_mut();
    let mut set = |name: &'static str, value: &str| headers.insert(name, value.parse().unwrap());
    if way.is_modern {
        set("mcp-protocol-version", "2026-07-28");
        set("mcp-method", request["method"].as_str().unwrap());
        let params = &request["params"];
        if let Some(name) = params.get("name").or(params.get("uri")).and_then(Value::as_str) {
            set("mcp-name", name);
        }
    } else {
        let opened = router.clone().oneshot(post(initialize().to_string())).await.unwrap();
        set("mcp-session-id", opened.headers()["mcp-session-id"].to_str().unwrap());
        set("mcp-protocol-version", "2025-11-25");
    }
    asked
}

/// The messages of an answer, one JSON or a stream of events.
async fn said(router: Router, request: Request<Body>) -> Vec<String> {
    let answer = router.oneshot(request).await.unwrap();
    let is_stream = answer.headers()["content-type"] == "text/event-stream";
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    if !is_stream {
        return vec![text];
    }
    let messages = text.lines().filter_map(|line| line.strip_prefix("data: "));
    messages.filter(|data| !data.is_empty()).map(str::to_owned).collect()
}

/// A result as it is on the wire; `own` are the fields that a modern client gets besides.
fn wire(way: Way, own: &str, members: &str) -> String {
    let own = if way.is_modern { own } else { "" };
    format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{{own}{members}}}}}"#)
}

const COMPLETE: &str = r#""resultType":"complete","#;
