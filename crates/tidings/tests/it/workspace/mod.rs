//! `tidings workspace` and `tidings serve --workspace`: the real binary on real directories.

mod blob;
mod cli;
mod crowd;
mod kill;
mod live;
mod trouble;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::support::demo::{Ended, client, ended, program, within};

/// A directory of one test, and the program in it.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// In memory, where there is such a place: a kill is no power cut, and fifty need not wait for
    /// a disk.
    fn in_memory() -> Self {
        tempfile::tempdir_in("/dev/shm").map_or_else(|_| Self::new(), Self)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// `tidings` with these words.
    fn command(&self, words: &str) -> Command {
        let mut command = client(&words.split_whitespace().collect::<Vec<_>>());
        command.current_dir(self.0.path());
        command
    }

    /// `tidings workspace w` with these words, to its end.
    async fn run(&self, words: &str) -> Ended {
        ended(self.command(&format!("workspace w {words}"))).await
    }

    /// The lines of JSON of a command that succeeds.
    async fn lines(&self, words: &str) -> Vec<Value> {
        let ended = self.run(&format!("{words} --json")).await;
        assert_eq!(ended.code, Some(0), "{words}: {ended:?}");
        ended.lines()
    }

    /// Makes an artifact of a text; gives its id.
    async fn import(&self, name: &str, options: &str) -> String {
        self.write(name, name);
        let lines = self.lines(&format!("import {name} {options}")).await;
        lines[0]["id"].as_str().unwrap().to_owned()
    }

    /// How many files there are below a part of the workspace.
    fn files(&self, part: &str) -> usize {
        fn count(path: &Path) -> usize {
            let entries = std::fs::read_dir(path).into_iter().flatten();
            entries
                .map(|entry| entry.unwrap().path())
                .map(|path| if path.is_dir() { count(&path) } else { 1 })
                .sum()
        }
        count(&self.path("w").join(part))
    }
}

/// `tidings serve --stdio --workspace w`, asked one line at a time.
struct Server {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    next_id: u64,
    /// The addresses it told of, in order.
    told: Vec<String>,
}

impl Server {
    async fn start(place: &Place, options: &str) -> Self {
        Self::of(place.command(&format!("serve --stdio --silent --workspace w {options}"))).await
    }

    async fn of(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut server = Self { child, lines, next_id: 0, told: Vec::new() };
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "tester", "version": "1" },
        });
        server.ask("initialize", params).await;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        server
    }

    async fn send(&mut self, message: &Value) {
        let input = self.child.stdin.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = within(self.lines.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["method"] == "notifications/resources/updated" {
            self.told.push(message["params"]["uri"].as_str().unwrap().to_owned());
        }
        message
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
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

    async fn subscribe(&mut self, uri: &str) {
        let answer = self.ask("resources/subscribe", json!({ "uri": uri })).await;
        assert!(answer["error"].is_null(), "{answer}");
    }

    async fn read(&mut self, uri: &str) -> Value {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        let text = answer["result"]["contents"][0]["text"].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments });
        self.ask("tools/call", params).await["result"].clone()
    }

    /// Makes an artifact of a text; gives the answer.
    async fn create(&mut self, title: &str, text: &str, tags: &[&str]) -> Value {
        self.call("create_artifact", json!({ "title": title, "text": text, "tags": tags })).await
    }

    /// Waits until an address was told of so often.
    async fn wait(&mut self, uri: &str, times: usize) {
        while self.told.iter().filter(|it| *it == uri).count() < times {
            self.next().await;
        }
    }
}

/// `tidings serve --workspace w` behind a socket.
struct Listening {
    child: Child,
    /// `http://…`, without a path.
    url: String,
}

impl Listening {
    async fn start(place: &Place, options: &str, token: Option<&str>) -> Self {
        let mut command = program("serve --json --http 127.0.0.1:0 --workspace w");
        command.args(options.split_whitespace()).current_dir(place.0.path());
        if let Some(token) = token {
            command.env("TIDINGS_TOKEN", token);
        }
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = within(lines.next_line()).await.unwrap().unwrap();
        let first: Value = serde_json::from_str(&first).unwrap();
        let url = first["endpoint"].as_str().unwrap().strip_suffix("/mcp").unwrap().to_owned();
        assert_eq!(first["blobs"], format!("{url}/blob"));
        Self { child, url }
    }

    fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }
}
