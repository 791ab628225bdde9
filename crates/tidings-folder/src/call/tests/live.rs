//! Tests of calls by a client, through a real hub and a connection in memory.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use tidings_server::model::{Prompt, PromptArgument};
use tidings_server::{Answer, Completion, Completions, EditError, Hub, Shelf, Source};
use tidings_store::testing::Wire;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use crate::call::*;
use crate::completion;
use crate::describe::{Confine, Confines};
use crate::offer::Program;
use crate::testing::Fixture;

/// A source with one tool and one completion.
struct Shop {
    workshop: Workshop,
    script: ToolScript,
    completion: Program,
}

impl Shop {
    fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        shelf.add(self.script.tool.clone())?;
        let argument = PromptArgument::new("name");
        shelf.add(Prompt::new("greet", Some("greets"), Some(vec![argument])))?;
        Ok(self)
    }
}

impl Source for Shop {
    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        Ok(call(&self.workshop, &self.script, request, context).await?.into())
    }

    async fn complete(
        &self,
        completion: Completion,
        _: &Context,
    ) -> Result<Completions, AnswerError> {
        let found = completion::complete(&self.workshop, &self.completion, "names", &completion);
        Ok(found.await?.into())
    }
}

/// A legacy client.
struct LegacyClient {
    wire: Wire,
    /// What is sent when an answer is awaited next.
    outgoing: VecDeque<Value>,
}

impl LegacyClient {
    async fn of(fixture: &Fixture, script: ToolScript, capabilities: Value) -> Self {
        Self::with(fixture.workshop(), fixture, script, capabilities).await
    }

    async fn with(
        workshop: Workshop,
        fixture: &Fixture,
        script: ToolScript,
        capabilities: Value,
    ) -> Self {
        let hub = Hub::new("test", "1");
        let completion = fixture.script("completions/names.sh", "cat > asked; echo ada; echo alan");
        let shop = Shop { workshop, script, completion };
        hub.add("shop", |shelf| shop.on(&shelf)).await.unwrap();
        let mut client = Self { wire: Wire::to(hub, 1 << 16), outgoing: VecDeque::new() };
        client.send(json!({ "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        }}));
        client.flush().await;
        client.until(|message| message["id"] == 0).await;
        client.send(json!({ "method": "notifications/initialized" }));
        client
    }

    fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.outgoing.push_back(message);
    }

    async fn flush(&mut self) {
        while let Some(message) = self.outgoing.pop_front() {
            self.wire.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
        }
    }

    fn call(&mut self, id: u32, arguments: &Value) {
        self.send(json!({ "id": id, "method": "tools/call", "params": {
            "name": "try",
            "arguments": arguments,
            "_meta": { "progressToken": "token", "example.org/x": 1 },
        }}));
    }

    /// All messages up to the awaited one, which is the last.
    async fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Vec<Value> {
        self.flush().await;
        let mut heard = Vec::new();
        loop {
            let line = tokio::time::timeout(Duration::from_secs(10), self.wire.lines.next_line());
            let line = line.await.expect("an answer").unwrap().expect("a connection");
            let message: Value = serde_json::from_str(&line).unwrap();
            heard.push(message);
            if is_it(heard.last().unwrap()) {
                return heard;
            }
        }
    }

    async fn answer(&mut self, id: u32) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
            .await
            .pop()
            .unwrap()
    }
}

#[tokio::test]
async fn signs_reach_the_client_in_order_and_before_the_result() {
    let fixture = Fixture::new();
    let script = fixture.tool(
        "echo '::log info one' >&2; echo '::progress 1/2 half' >&2
         printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"logger\":\"kit\",\"data\":2}}' >> \"$MCP_LOG_STREAM\"
         echo \"$MCP_TOOL_META_JSON $MCP_PROGRESS_TOKEN\"",
    );
    let mut client = LegacyClient::of(&fixture, script, json!({})).await;
    client.call(1, &json!({}));
    let mut heard = client.until(|message| message["id"] == 1).await;
    heard.retain(|message| message.get("result").is_some() || message["params"] != Value::Null);
    let params: Vec<_> = heard.iter().map(|message| message["params"].clone()).collect();
    assert_eq!(params[0], json!({ "level": "info", "data": "one" }));
    let progress =
        json!({ "progressToken": "token", "progress": 1.0, "total": 2.0, "message": "half" });
    assert_eq!(params[1], progress);
    assert_eq!(params[2], json!({ "level": "error", "logger": "kit", "data": 2 }));
    let text = heard[3]["result"]["content"][0]["text"].as_str().unwrap();
    let (meta, token) = text.rsplit_once(' ').unwrap();
    let meta: Value = serde_json::from_str(meta).unwrap();
    assert_eq!((&meta["example.org/x"], token), (&json!(1), "token"));
}

#[tokio::test]
async fn a_client_that_gives_up_ends_the_tool_and_its_children() {
    let fixture = Fixture::new();
    let held = fixture.path().join("held");
    assert!(std::process::Command::new("mkfifo").arg(&held).status().unwrap().success());
    let script = fixture.tool(&format!(
        "trap '' TERM; exec 3>'{}'; sleep 60 & echo '::log info begun' >&2; wait",
        held.display()
    ));
    let mut reading = JoinSet::new();
    reading.spawn_blocking(move || std::fs::read(held).unwrap());
    let mut client = LegacyClient::of(&fixture, script, json!({})).await;
    client.call(1, &json!({}));
    client.until(|message| message["params"]["data"] == "begun").await;
    client.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    client.flush().await;
    let gone = tokio::time::timeout(Duration::from_secs(5), reading.join_next()).await;
    gone.expect("something is left of it").unwrap().unwrap();
}

#[tokio::test]
async fn one_call_too_many_is_told_so_and_the_others_have_their_turn() {
    let mut fixture = Fixture::new();
    (fixture.config.limits.runs, fixture.config.limits.waiting) = (1, 1);
    let gate = fixture.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = fixture.tool(&format!(
        "case $(cat) in *wait*) echo '::log info begun' >&2; cat '{}';; *) echo quick;; esac",
        gate.display()
    ));
    let mut client = LegacyClient::of(&fixture, script, json!({})).await;
    client.call(1, &json!({ "wait": true }));
    client.until(|message| message["params"]["data"] == "begun").await;
    client.call(2, &json!({}));
    client.call(3, &json!({}));
    // One of the two waits, the other is refused: the hub handles them at once.
    let refused = client.until(|message| message["id"] == 2 || message["id"] == 3).await.pop();
    let refused = refused.unwrap();
    assert_eq!(refused["result"]["isError"], true);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, "too many calls wait for their turn already (1); try again later");
    let other = if refused["id"] == 2 { 3 } else { 2 };
    let mut opening = JoinSet::new();
    opening.spawn_blocking(move || std::fs::write(gate, "open").unwrap());
    let heard = client.until(|message| message["id"] == other).await;
    let first = heard.iter().find(|message| message["id"] == 1).unwrap();
    assert_eq!(first["result"]["content"][0]["text"], "open");
    assert_eq!(heard.last().unwrap()["result"]["content"][0]["text"], "quick");
}

#[tokio::test]
async fn a_client_is_asked_for_its_roots_if_it_has_some() {
    let fixture = Fixture::new();
    let tool = "echo \"$MCP_ROOTS_COUNT $MCP_ROOTS_PATHS\"";
    let mut client = LegacyClient::of(&fixture, fixture.tool(tool), json!({ "roots": {} })).await;
    client.call(1, &json!({}));
    let asked = client.until(|message| message["method"] == "roots/list").await.pop().unwrap();
    let roots = json!([{ "uri": "file:///no/where" }, { "uri": "https://example.org" }]);
    client.send(json!({ "id": asked["id"], "result": { "roots": roots } }));
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["content"][0]["text"], "1 /no/where");
    // A client without roots is not asked.
    let mut client = LegacyClient::of(&fixture, fixture.tool(tool), json!({})).await;
    client.call(1, &json!({}));
    let answer = client.answer(1).await;
    let expected = format!("1 {}", fixture.config.root.display());
    assert_eq!(answer["result"]["content"][0]["text"], expected);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_a_result_and_nothing_runs() {
    let fixture = Fixture::new();
    let mut script = fixture.tool("touch ran");
    script.input = crate::testing::schema_of(&json!({ "required": ["a"] }));
    let mut client = LegacyClient::of(&fixture, script.clone(), json!({})).await;
    client.call(1, &json!({}));
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(!script.directory.join("ran").exists());
}

#[tokio::test]
async fn a_completion_is_asked_what_was_typed() {
    let fixture = Fixture::new();
    let mut client = LegacyClient::of(&fixture, fixture.tool("true"), json!({})).await;
    client.send(json!({ "id": 1, "method": "completion/complete", "params": {
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "name", "value": "a" },
        "context": { "arguments": { "language": "de", "query": "no" } },
    }}));
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["completion"]["values"], json!(["ada", "alan"]));
    let asked = std::fs::read(fixture.path().join("asked")).unwrap();
    let asked: Value = serde_json::from_slice(&asked).unwrap();
    let expected = json!({
        "query": "a", "prefix": "a", "language": "de",
        "argument": { "name": "name", "value": "a" },
        "ref": { "type": "ref/prompt", "name": "greet" },
        "context": { "arguments": { "language": "de", "query": "no" } },
    });
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_tool_of_mcp_bash_that_lacks_an_argument_is_an_error_of_the_protocol() {
    let fixture = Fixture::new();
    let mut script = fixture.tool("touch ran");
    script.dialect = Dialect::McpBash;
    script.input = crate::testing::schema_of(&json!({ "required": ["a"] }));
    let mut client = LegacyClient::of(&fixture, script, json!({})).await;
    client.call(1, &json!({}));
    let answer = client.answer(1).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"].to_string().contains("\\\"a\\\" is a required property"), "{answer}");
}

#[tokio::test]
async fn a_tool_works_where_its_author_lets_it() {
    let fixture = Fixture::new();
    let tool = "echo \"$MCP_ROOTS_COUNT $MCP_ROOTS_PATHS\"";
    let data = fixture.config.root.join("data");
    let confine = Confine { path: data.clone(), name: None };
    let client = async |fixture: &Fixture| {
        let mut workshop = fixture.workshop();
        workshop.confines = Confines::Only(vec![confine.clone()]);
        let mut client = LegacyClient::with(workshop, fixture, fixture.tool(tool), json!({})).await;
        client.call(1, &json!({}));
        client.answer(1).await["result"].clone()
    };
    let result = client(&fixture).await;
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no directory of `config/roots.json` exists"), "{text}");
    std::fs::create_dir(&data).unwrap();
    let result = client(&fixture).await;
    assert_eq!(result["content"][0]["text"], format!("1 {}", data.display()));
}
