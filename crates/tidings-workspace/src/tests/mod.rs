//! Tests of a workspace as clients see it, through a real hub and connections in memory.
//!
//! Time is paused, so a test knows at once that no more notices follow: the clock advances only
//! when no task has anything left to do.

mod calls;
mod notices;
mod reads;

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tidings_server::{Config as HubConfig, Greeting, Hub};
use tidings_store::testing::Wire;
use tokio::io::AsyncWriteExt as _;

use crate::{Config, Workspace};

/// Longer than any notice is delayed.
const QUIET: Duration = Duration::from_mins(1);

/// A hub with a workspace.
struct ServedWorkspace {
    workspace: Workspace,
    hub: Hub,
    directory: TempDir,
}

impl ServedWorkspace {
    async fn new() -> Self {
        Self::with(|_| {}).await
    }

    async fn with(set: impl FnOnce(&mut Config)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::new(directory.path());
        set(&mut config);
        let workspace = Workspace::open(config).unwrap();
        let mut hub_config = HubConfig::new("test", "1");
        hub_config.greeting = Greeting::Silent;
        let hub = Hub::with_config(hub_config);
        hub.add("workspace", |shelf| Ok(workspace.clone().on(shelf))).await.unwrap();
        Self { workspace, hub, directory }
    }

    async fn client(&self, name: &str) -> WorkspaceClient {
        let (wire, modern) = (Wire::to(self.hub.clone(), 1 << 20), None);
        let mut client = WorkspaceClient { wire, next: 0, hub: self.hub.clone(), modern };
        let info = json!({ "name": name, "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        client.ask("initialize", hello).await;
        client.send(json!({ "method": "notifications/initialized" })).await;
        client
    }
}

/// A legacy client. Its subscriptions are repeated by a modern connection, and both must get the
/// same notices.
struct WorkspaceClient {
    wire: Wire,
    next: u64,
    hub: Hub,
    modern: Option<Modern>,
}

/// A modern connection with a listen request.
struct Modern {
    wire: Wire,
    uris: Vec<String>,
}

impl Modern {
    async fn to(hub: Hub, uris: Vec<String>) -> Self {
        let mut modern = Self { wire: Wire::to(hub, 1 << 20), uris };
        let honoured = modern.listen().await;
        assert_eq!(honoured.as_array().cloned().unwrap_or_default(), modern.uris);
        modern
    }

    /// Subscribes to the lists and these resources; returns the acknowledged ones.
    async fn listen(&mut self) -> Value {
        let wanted = json!({
            "toolsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": self.uris,
        });
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let request = json!({
            "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
            "params": { "notifications": wanted, "_meta": meta },
        });
        self.wire.input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
        let acknowledged = hear(&mut self.wire).await.expect("an acknowledgement");
        acknowledged["params"]["notifications"]["resourceSubscriptions"].clone()
    }
}

/// The next message, if one follows.
async fn hear(wire: &mut Wire) -> Option<Value> {
    let line = tokio::time::timeout(QUIET, wire.lines.next_line()).await.ok()?;
    Some(serde_json::from_str(&line.unwrap()?).unwrap())
}

/// All notices until none is left, sorted: URIs, and `tools` and `resources` for lists.
async fn told(wire: &mut Wire) -> Vec<String> {
    let mut notices = Vec::new();
    while let Some(message) = hear(wire).await {
        notices.push(match message["method"].as_str().unwrap() {
            "notifications/resources/updated" => {
                message["params"]["uri"].as_str().unwrap().to_owned()
            }
            "notifications/resources/list_changed" => "resources".to_owned(),
            "notifications/tools/list_changed" => "tools".to_owned(),
            other => panic!("{other}"),
        });
    }
    notices.sort();
    notices
}

impl WorkspaceClient {
    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.wire.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// The response to a request; earlier notices are skipped.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let id = self.next;
        self.send(json!({ "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.hear().await.expect("an answer");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    async fn hear(&mut self) -> Option<Value> {
        hear(&mut self.wire).await
    }

    async fn subscribe(&mut self, uris: &[&str]) {
        for uri in uris {
            let answer = self.ask("resources/subscribe", json!({ "uri": uri })).await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        let mut all = self.modern.take().map(|modern| modern.uris).unwrap_or_default();
        all.extend(uris.iter().map(|uri| (*uri).to_owned()));
        // Skip notices of earlier changes.
        told(&mut self.wire).await;
        let mut modern = Modern::to(self.hub.clone(), all).await;
        told(&mut modern.wire).await;
        self.modern = Some(modern);
    }

    async fn unsubscribe(&mut self, uri: &str) {
        let answer = self.ask("resources/unsubscribe", json!({ "uri": uri })).await;
        assert!(answer.get("result").is_some(), "{answer}");
        let mut all = self.modern.take().map(|modern| modern.uris).unwrap_or_default();
        all.retain(|it| it != uri);
        self.modern = Some(Modern::to(self.hub.clone(), all).await);
    }

    /// All notices; those of both eras must be equal.
    async fn notices(&mut self) -> Vec<String> {
        let notices = told(&mut self.wire).await;
        if let Some(modern) = &mut self.modern {
            assert_eq!(told(&mut modern.wire).await, notices, "the eras hear the same");
        }
        notices
    }

    /// The result of a tool call that succeeds.
    async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await;
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        answer["result"]["structuredContent"].clone()
    }

    /// The error of a tool call that fails.
    async fn fail(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await;
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        answer["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    }

    async fn create(&mut self, title: &str, more: Value) -> String {
        let mut arguments = json!({ "title": title, "text": title });
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        self.call("create_artifact", arguments).await["id"].as_str().unwrap().to_owned()
    }

    async fn read(&mut self, uri: &str) -> Value {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        let Some(text) = answer["result"]["contents"][0]["text"].as_str() else { return answer };
        serde_json::from_str(text).unwrap_or_else(|_| panic!("{text}"))
    }

    async fn names(&mut self, kind: &str) -> Vec<String> {
        let answer = self.ask(&format!("{kind}/list"), json!({})).await;
        let field = if kind == "resources" { "uri" } else { "name" };
        let items = answer["result"][kind].as_array().unwrap();
        items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
    }
}
