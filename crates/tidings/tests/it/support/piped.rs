//! A server over stdio, asked one line at a time.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use super::demo::within;

/// `tidings serve --stdio …` and a client that said hello to it.
pub(crate) struct Server {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// The methods of all notices so far.
    pub(crate) heard: Vec<String>,
    /// The addresses it told of, in order.
    pub(crate) updated: Vec<String>,
}

impl Server {
    pub(crate) async fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (heard, updated) = (Vec::new(), Vec::new());
        let mut server = Self { child, lines, next_id: 0, heard, updated };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tester", "version": "1" },
        });
        server.ask("initialize", params).await;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        server
    }

    pub(crate) async fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn next(&mut self) -> Value {
        let line = within(self.lines.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        self.heard.extend(message["method"].as_str().map(str::to_owned));
        if message["method"] == "notifications/resources/updated" {
            self.updated.push(message["params"]["uri"].as_str().unwrap().to_owned());
        }
        message
    }

    pub(crate) async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        loop {
            let message = self.next().await;
            if message["id"] == id {
                return message;
            }
        }
    }

    pub(crate) async fn subscribe(&mut self, uri: &str) {
        let answer = self.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert!(answer["error"].is_null(), "{answer}");
    }

    /// What can be read, or the error.
    pub(crate) async fn try_read(&mut self, uri: &str) -> Result<Value, Value> {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        match answer["result"]["contents"][0]["text"].as_str() {
            Some(text) => Ok(serde_json::from_str(text).unwrap()),
            None => Err(answer["error"].clone()),
        }
    }

    pub(crate) async fn read(&mut self, uri: &str) -> Value {
        self.try_read(uri).await.unwrap_or_else(|error| panic!("{uri}: {error}"))
    }

    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await["result"].clone()
    }

    /// Waits until it is told of an address once more.
    pub(crate) async fn told(&mut self, uri: &str) {
        while self.next().await["params"]["uri"] != uri {}
    }

    /// Waits until an address was told of so often.
    pub(crate) async fn wait(&mut self, uri: &str, times: usize) {
        while self.updated.iter().filter(|it| *it == uri).count() < times {
            self.next().await;
        }
    }
}
