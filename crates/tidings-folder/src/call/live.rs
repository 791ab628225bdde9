//! Calls as a client makes them, through a real hub and a connection in memory.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::json;
use tidings_server::model::{Prompt, PromptArgument};
use tidings_server::{Answer, Completion, Completions, EditError, Hub, Shelf, Source};
use tidings_store::testing::Wire;
use tokio::io::AsyncWriteExt as _;
use tokio::task::JoinSet;

use super::*;
use crate::completion;
use crate::describe::{Confine, Confines};
use crate::offer::Program;
use crate::testing::Bench;

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

/// A legacy client, line by line.
struct Client {
    wire: Wire,
    /// What is sent when an answer is awaited next.
    outgoing: VecDeque<Value>,
}

impl Client {
    async fn of(bench: &Bench, script: ToolScript, capabilities: Value) -> Self {
        Self::with(bench.workshop(), bench, script, capabilities).await
    }

    async fn with(
        workshop: Workshop,
        bench: &Bench,
        script: ToolScript,
        capabilities: Value,
    ) -> Self {
        let hub = Hub::new("test", "1");
        let completion = bench.script("completions/names.sh", "cat > asked; echo ada; echo alan");
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

    /// Everything up to the message that is awaited, which is the last.
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
    let bench = Bench::new();
    let script = bench.tool(
        "echo '::log info one' >&2; echo '::progress 1/2 half' >&2
         printf '%s\\n' '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"error\",\"logger\":\"kit\",\"data\":2}}' >> \"$MCP_LOG_STREAM\"
         echo \"$MCP_TOOL_META_JSON $MCP_PROGRESS_TOKEN\"",
    );
    let mut client = Client::of(&bench, script, json!({})).await;
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
    let bench = Bench::new();
    let held = bench.path().join("held");
    assert!(std::process::Command::new("mkfifo").arg(&held).status().unwrap().success());
    let script = bench.tool(&format!(
        "trap '' TERM; exec 3>'{}'; sleep 60 & echo '::log info begun' >&2; wait",
        held.display()
    ));
    let mut reading = JoinSet::new();
    reading.spawn_blocking(move || std::fs::read(held).unwrap());
    let mut client = Client::of(&bench, script, json!({})).await;
    client.call(1, &json!({}));
    client.until(|message| message["params"]["data"] == "begun").await;
    client.send(json!({ "method": "notifications/cancelled", "params": { "requestId": 1 } }));
    client.flush().await;
    let gone = tokio::time::timeout(Duration::from_secs(5), reading.join_next()).await;
    gone.expect("something is left of it").unwrap().unwrap();
}

#[tokio::test]
async fn one_call_too_many_is_told_so_and_the_others_have_their_turn() {
    let mut bench = Bench::new();
    (bench.config.limits.runs, bench.config.limits.waiting) = (1, 1);
    let gate = bench.path().join("gate");
    assert!(std::process::Command::new("mkfifo").arg(&gate).status().unwrap().success());
    let script = bench.tool(&format!(
        "case $(cat) in *wait*) echo '::log info begun' >&2; cat '{}';; *) echo quick;; esac",
        gate.display()
    ));
    let mut client = Client::of(&bench, script, json!({})).await;
    client.call(1, &json!({ "wait": true }));
    client.until(|message| message["params"]["data"] == "begun").await;
    client.call(2, &json!({}));
    client.call(3, &json!({}));
    // One of the two waits, the other is refused: the hub takes them up at once.
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
    let bench = Bench::new();
    let tool = "echo \"$MCP_ROOTS_COUNT $MCP_ROOTS_PATHS\"";
    let mut client = Client::of(&bench, bench.tool(tool), json!({ "roots": {} })).await;
    client.call(1, &json!({}));
    let asked = client.until(|message| message["method"] == "roots/list").await.pop().unwrap();
    let roots = json!([{ "uri": "file:///no/where" }, { "uri": "https://example.org" }]);
    client.send(json!({ "id": asked["id"], "result": { "roots": roots } }));
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["content"][0]["text"], "1 /no/where");
    // One that has none is not asked.
    let mut client = Client::of(&bench, bench.tool(tool), json!({})).await;
    client.call(1, &json!({}));
    let answer = client.answer(1).await;
    let expected = format!("1 {}", bench.config.root.display());
    assert_eq!(answer["result"]["content"][0]["text"], expected);
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_a_result_and_nothing_runs() {
    let bench = Bench::new();
    let mut script = bench.tool("touch ran");
    script.input = crate::testing::schema_of(&json!({ "required": ["a"] }));
    let mut client = Client::of(&bench, script.clone(), json!({})).await;
    client.call(1, &json!({}));
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(!script.directory.join("ran").exists());
}

#[tokio::test]
async fn a_completion_is_asked_what_was_typed() {
    let bench = Bench::new();
    let mut client = Client::of(&bench, bench.tool("true"), json!({})).await;
    client.send(json!({ "id": 1, "method": "completion/complete", "params": {
        "ref": { "type": "ref/prompt", "name": "greet" },
        "argument": { "name": "name", "value": "a" },
        "context": { "arguments": { "language": "de", "query": "no" } },
    }}));
    let answer = client.answer(1).await;
    assert_eq!(answer["result"]["completion"]["values"], json!(["ada", "alan"]));
    let asked = std::fs::read(bench.path().join("asked")).unwrap();
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
    let bench = Bench::new();
    let mut script = bench.tool("touch ran");
    script.dialect = Dialect::McpBash;
    script.input = crate::testing::schema_of(&json!({ "required": ["a"] }));
    let mut client = Client::of(&bench, script, json!({})).await;
    client.call(1, &json!({}));
    let answer = client.answer(1).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert!(answer["error"].to_string().contains("\\\"a\\\" is a required property"), "{answer}");
}

#[tokio::test]
async fn a_tool_works_where_its_author_lets_it() {
    let bench = Bench::new();
    let tool = "echo \"$MCP_ROOTS_COUNT $MCP_ROOTS_PATHS\"";
    let data = bench.config.root.join("data");
    let confine = Confine { path: data.clone(), name: None };
    let client = async |bench: &Bench| {
        let mut workshop = bench.workshop();
        workshop.confines = Confines::Only(vec![confine.clone()]);
        let mut client = Client::with(workshop, bench, bench.tool(tool), json!({})).await;
        client.call(1, &json!({}));
        client.answer(1).await["result"].clone()
    };
    let result = client(&bench).await;
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("no directory of `config/roots.json` exists"), "{text}");
    std::fs::create_dir(&data).unwrap();
    let result = client(&bench).await;
    assert_eq!(result["content"][0]["text"], format!("1 {}", data.display()));
}
