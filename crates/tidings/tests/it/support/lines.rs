//! A server at the other end of two byte streams: it answers each message as a test says, and says
//! what a test wants said.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidings_mirror::{StreamsTarget, Target};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// What goes to the client, a message a line.
#[derive(Clone)]
pub(crate) struct Say(mpsc::Sender<String>);

impl Say {
    /// Sends a message.
    pub(crate) fn message(&self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = json!("2.0");
        self.line(message.to_string());
    }

    /// Sends a line as it is. A client that is gone misses it.
    pub(crate) fn line(&self, line: String) {
        drop(self.0.try_send(line));
    }

    /// Answers a request.
    pub(crate) fn result(&self, request: &Value, result: &Value) {
        self.message(&json!({ "id": request["id"], "result": result }));
    }

    /// Sends a notification.
    pub(crate) fn notice(&self, method: &str, params: &Value) {
        self.message(&json!({ "method": method, "params": params }));
    }
}

pub(crate) struct Lines {
    pub(crate) say: Say,
    asked: Arc<Mutex<Vec<Value>>>,
    _tasks: JoinSet<()>,
}

impl Lines {
    /// A server that does this with every message, and the way to it.
    pub(crate) fn start(behave: impl Fn(&Value, &Say) + Send + 'static) -> (Self, Target) {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(ours);
        let (heard, mut said) = tokio::io::split(theirs);
        let (sender, mut lines) = mpsc::channel::<String>(1 << 16);
        let (say, asked) = (Say(sender), Arc::new(Mutex::new(Vec::new())));
        let (speaker, written) = (say.clone(), asked.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut heard = BufReader::new(heard).lines();
            while let Ok(Some(line)) = heard.next_line().await {
                let message: Value = serde_json::from_str(&line).unwrap();
                behave(&message, &speaker);
                written.lock().unwrap().push(message);
            }
        });
        tasks.spawn(async move {
            while let Some(line) = lines.recv().await {
                if said.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let target = Target::Streams(StreamsTarget::new(input, output));
        (Self { say, asked, _tasks: tasks }, target)
    }

    /// What was sent with this method.
    pub(crate) fn messages(&self, method: &str) -> Vec<Value> {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|message| message["method"] == method).cloned().collect()
    }

    /// How often a method was asked for.
    pub(crate) fn asked(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }
}

/// What a decent server of either era with these capabilities answers to what is not in question.
pub(crate) fn decent(message: &Value, say: &Say, capabilities: &Value) {
    let complete = |mut result: Value| {
        result["resultType"] = json!("complete");
        result["ttlMs"] = json!(0);
        result["cacheScope"] = json!("private");
        result
    };
    let result = match message["method"].as_str().unwrap_or_default() {
        "server/discover" => complete(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": capabilities,
        })),
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "serverInfo": { "name": "lines", "version": "1" },
        }),
        "subscriptions/listen" => {
            acknowledge(message, say, &message["params"]["notifications"]);
            return;
        }
        "tools/list" => complete(json!({ "tools": [] })),
        "resources/list" => complete(json!({ "resources": [] })),
        "resources/templates/list" => complete(json!({ "resourceTemplates": [] })),
        "prompts/list" => complete(json!({ "prompts": [] })),
        "resources/subscribe" | "resources/unsubscribe" | "ping" => json!({}),
        _ => return,
    };
    say.result(message, &result);
}

/// Says what a stream of notices will announce.
pub(crate) fn acknowledge(listen: &Value, say: &Say, accepted: &Value) {
    let params = json!({ "_meta": tag(&listen["id"]), "notifications": accepted });
    say.notice("notifications/subscriptions/acknowledged", &params);
}

/// What marks a notice as one of a stream.
pub(crate) fn tag(stream: &Value) -> Value {
    json!({ "io.modelcontextprotocol/subscriptionId": stream })
}
