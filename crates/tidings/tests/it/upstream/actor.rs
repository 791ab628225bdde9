//! A server in memory that plays what a test says, well or badly, and writes down what it was asked. It
//! speaks one era, and can be lost and come back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tidings_mirror::{StreamsTarget, Target};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The server, whoever is connected to it.
#[derive(Clone)]
pub(crate) struct Actor {
    world: Arc<Mutex<World>>,
    /// Advances with each request.
    asked: watch::Sender<u64>,
}

/// All that it is.
#[derive(Default)]
pub(crate) struct World {
    /// Whether it can be connected to.
    pub(crate) is_up: bool,
    /// Whether it speaks 2026-07-28.
    is_modern: bool,
    /// Whether it accepts connections and then says nothing.
    pub(crate) is_mute: bool,
    pub(crate) capabilities: Value,
    pub(crate) instructions: Option<String>,
    /// The items of each list, by its member in the result, as JSON texts.
    pub(crate) lists: BTreeMap<&'static str, Vec<String>>,
    /// Items on one page; 0 for all.
    pub(crate) page: usize,
    /// Results of reads as JSON texts, by URI.
    pub(crate) contents: BTreeMap<String, String>,
    pub(crate) subscribed: BTreeSet<String>,
    /// All requests and notifications, in order.
    pub(crate) log: Vec<Value>,
    /// The same, as they were sent.
    pub(crate) lines: Vec<String>,
    /// Answers to a method in place of the usual one: an error object, as JSON text.
    pub(crate) errors: BTreeMap<String, String>,
    /// Methods that are never answered.
    pub(crate) hanging: BTreeSet<&'static str>,
    /// The number of the next question.
    questions: u64,
    links: Vec<mpsc::Sender<String>>,
    /// The streams of notices of modern clients.
    streams: Vec<Stream>,
    tasks: JoinSet<()>,
    /// What was answered to questions, by their number.
    answers: BTreeMap<u64, Value>,
}

/// A stream of notices, which a modern client asked for.
struct Stream {
    id: Value,
    filter: Value,
    output: mpsc::Sender<String>,
}

impl Stream {
    /// Whether it has notices of this method and resource.
    fn follows(&self, method: &str, uri: Option<&str>) -> bool {
        let list = match method {
            "notifications/tools/list_changed" => "toolsListChanged",
            "notifications/prompts/list_changed" => "promptsListChanged",
            "notifications/resources/list_changed" => "resourcesListChanged",
            _ => {
                let uris = self.filter["resourceSubscriptions"].as_array();
                return uris.is_some_and(|uris| uris.iter().any(|it| it.as_str() == uri));
            }
        };
        self.filter[list] == true
    }
}

impl Actor {
    /// One with a list of tools, one resource and these capabilities.
    pub(crate) fn new(capabilities: Value) -> Self {
        let world = World { is_up: true, capabilities, ..World::default() };
        let actor = Self { world: Arc::new(Mutex::new(world)), asked: watch::Sender::new(0) };
        for tool in ["act", "hang", "die", "ask", "say"] {
            actor
                .add("tools", &format!(r#"{{"name":"{tool}","inputSchema":{{"type":"object"}}}}"#));
        }
        actor.resource("note://1", "one");
        actor
    }

    /// One that announces everything.
    pub(crate) fn live() -> Self {
        Self::new(json!({
            "tools": { "listChanged": true },
            "prompts": { "listChanged": true },
            "resources": { "listChanged": true, "subscribe": true },
            "completions": {}, "logging": {},
        }))
    }

    /// One that announces nothing.
    pub(crate) fn silent() -> Self {
        Self::new(json!({ "tools": {}, "prompts": {}, "resources": {} }))
    }

    /// The same, but of the modern era.
    pub(crate) fn modern(self) -> Self {
        self.world().is_modern = true;
        self
    }

    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap()
    }

    /// Adds an item to a list, without a word.
    pub(crate) fn add(&self, list: &'static str, item: &str) {
        self.world().lists.entry(list).or_default().push(item.to_owned());
    }

    /// Lists a resource with this text.
    pub(crate) fn resource(&self, uri: &str, text: &str) {
        self.add("resources", &format!(r#"{{"uri":"{uri}","name":"{uri}"}}"#));
        self.set(uri, text);
    }

    /// Sets the text of a resource, without a word.
    pub(crate) fn set(&self, uri: &str, text: &str) {
        let content = json!({ "contents": [{ "uri": uri, "text": text }] }).to_string();
        self.world().contents.insert(uri.to_owned(), content);
    }

    /// Says something to all who are connected; a notice of a modern server to all who asked for it.
    pub(crate) fn notify(&self, method: &str, params: &Value) {
        let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        let world = self.world();
        if !world.is_modern {
            for link in &world.links {
                let _ = link.try_send(message.to_string());
            }
        }
        let uri = params["uri"].as_str();
        for stream in world.streams.iter().filter(|stream| stream.follows(method, uri)) {
            message["params"]["_meta"] =
                json!({ "io.modelcontextprotocol/subscriptionId": stream.id });
            let _ = stream.output.try_send(message.to_string());
        }
    }

    /// Sends a message to all who are connected.
    pub(crate) fn say(&self, message: &Value) {
        for link in &self.world().links {
            let _ = link.try_send(message.to_string());
        }
    }

    /// How many are connected.
    pub(crate) fn open(&self) -> usize {
        let mut world = self.world();
        while world.tasks.try_join_next().is_some() {}
        world.tasks.len()
    }

    pub(crate) fn list_changed(&self, list: &str) {
        self.notify(&format!("notifications/{list}/list_changed"), &json!({}));
    }

    pub(crate) fn updated(&self, uri: &str) {
        self.notify("notifications/resources/updated", &json!({ "uri": uri }));
    }

    /// All connections break.
    pub(crate) fn lose(&self) {
        let mut world = self.world();
        world.links.clear();
        world.streams.clear();
        world.subscribed.clear();
        world.tasks.abort_all();
    }

    pub(crate) fn up(&self, is_up: bool) {
        self.world().is_up = is_up;
        if !is_up {
            self.lose();
        }
    }

    /// How often a method was asked.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.world().log.iter().filter(|asked| asked["method"] == method).count()
    }

    /// The last message of a method.
    pub(crate) fn last(&self, method: &str) -> Option<Value> {
        self.world().log.iter().rfind(|asked| asked["method"] == method).cloned()
    }

    /// Waits until a method was asked so often.
    pub(crate) async fn asked(&self, method: &str, times: usize) {
        let mut asked = self.asked.subscribe();
        let waiting = async {
            while self.count(method) < times {
                asked.changed().await.unwrap();
            }
        };
        let in_time = tokio::time::timeout(Duration::from_mins(15), waiting).await;
        assert!(in_time.is_ok(), "`{method}` was asked {} times", self.count(method));
    }

    pub(crate) fn target(&self) -> Target {
        let actor = self.clone();
        StreamsTarget::each(move || actor.connect()).into()
    }

    fn connect(
        &self,
    ) -> Option<(tokio::io::ReadHalf<DuplexStream>, tokio::io::WriteHalf<DuplexStream>)> {
        let mut world = self.world();
        if !world.is_up {
            return None;
        }
        let (near, far) = tokio::io::duplex(1 << 20);
        let (output, messages) = mpsc::channel(1 << 14);
        world.links.push(output.clone());
        let actor = self.clone();
        world.tasks.spawn(async move { actor.serve(far, output, messages).await });
        Some(tokio::io::split(near))
    }

    async fn serve(
        self,
        stream: DuplexStream,
        output: mpsc::Sender<String>,
        mut messages: mpsc::Receiver<String>,
    ) {
        let (input, mut writer) = tokio::io::split(stream);
        let mut lines = BufReader::new(input).lines();
        loop {
            tokio::select! {
                line = lines.next_line() => {
                    let Ok(Some(line)) = line else { return };
                    let message: Value = serde_json::from_str(&line).unwrap();
                    self.world().lines.push(line);
                    if self.take(&message, &output).is_none() {
                        return;
                    }
                }
                Some(message) = messages.recv() => {
                    if writer.write_all(format!("{message}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        }
    }

    /// Takes a message; `None` ends the connection.
    fn take(&self, message: &Value, output: &mpsc::Sender<String>) -> Option<()> {
        let mut world = self.world();
        world.log.push(message.clone());
        self.asked.send_modify(|asked| *asked += 1);
        let id = &message["id"];
        let Some(method) = message["method"].as_str() else {
            world.answers.insert(id.as_u64().unwrap(), message.clone());
            return Some(());
        };
        if method == "notifications/cancelled" {
            world.streams.retain(|stream| stream.id != message["params"]["requestId"]);
        }
        if id.is_null() || world.is_mute || world.hanging.contains(method) {
            return Some(());
        }
        let answer = match world.errors.get(method).cloned() {
            Some(error) => Play::Say(format!(r#""error":{error}"#)),
            None => world.answer(method, &message["params"], id, output),
        };
        match answer {
            Play::Say(answer) => {
                let answer = world.complete(answer);
                let _ = output.try_send(format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#));
            }
            Play::Later => {}
            Play::End => return None,
        }
        Some(())
    }

    /// What was answered to a question, if it was.
    pub(crate) fn answer_to(&self, question: u64) -> Option<Value> {
        self.world().answers.get(&question).cloned()
    }

    /// Answers a call that was left open.
    pub(crate) fn finish(&self, id: &Value, result: &str) {
        let answer = self.world().complete(format!(r#""result":{result}"#));
        let message = format!(r#"{{"jsonrpc":"2.0","id":{id},{answer}}}"#);
        for link in &self.world().links {
            let _ = link.try_send(message.clone());
        }
    }
}

/// What is done with a request.
enum Play {
    /// It is answered with this member.
    Say(String),
    /// It is left open.
    Later,
    /// The connection ends.
    End,
}

impl World {
    /// What is done with a request.
    fn answer(
        &mut self,
        method: &str,
        params: &Value,
        id: &Value,
        output: &mpsc::Sender<String>,
    ) -> Play {
        let result = match method {
            "server/discover" if self.is_modern => {
                let mut result = json!({
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": self.capabilities,
                });
                if let Some(instructions) = &self.instructions {
                    result["instructions"] = json!(instructions);
                }
                result.to_string()
            }
            "subscriptions/listen" if self.is_modern => return self.listen(params, id, output),
            "initialize" if !self.is_modern => {
                let mut result = json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": self.capabilities,
                    "serverInfo": { "name": "actor", "version": "1" },
                });
                if let Some(instructions) = &self.instructions {
                    result["instructions"] = json!(instructions);
                }
                result.to_string()
            }
            "tools/list" => self.list("tools", params),
            "prompts/list" => self.list("prompts", params),
            "resources/list" => self.list("resources", params),
            "resources/templates/list" => self.list("resourceTemplates", params),
            "resources/read" => match self.contents.get(params["uri"].as_str().unwrap()) {
                Some(content) => content.clone(),
                None => {
                    return Play::Say(
                        r#""error":{"code":-32002,"message":"no such resource"}"#.to_owned(),
                    );
                }
            },
            "resources/subscribe" => {
                self.subscribed.insert(params["uri"].as_str().unwrap().to_owned());
                "{}".to_owned()
            }
            "resources/unsubscribe" => {
                self.subscribed.remove(params["uri"].as_str().unwrap());
                "{}".to_owned()
            }
            "prompts/get" => {
                r#"{"messages":[{"role":"user","content":{"type":"text","text":"plan"},"new":1}]}"#
                    .to_owned()
            }
            "completion/complete" => {
                r#"{"completion":{"values":["ab"],"total":18,"hasMore":true,"rank":[1.50]}}"#
                    .to_owned()
            }
            "logging/setLevel" | "ping" => "{}".to_owned(),
            "tools/call" => return self.call(params, id, output),
            _ => {
                return Play::Say(
                    r#""error":{"code":-32601,"message":"Method not found"}"#.to_owned(),
                );
            }
        };
        Play::Say(format!(r#""result":{result}"#))
    }

    /// Begins a stream of the notices that it promises.
    fn listen(&mut self, params: &Value, id: &Value, output: &mpsc::Sender<String>) -> Play {
        let mut filter = params["notifications"].clone();
        if self.capabilities["resources"]["subscribe"] != true {
            filter.as_object_mut().unwrap().remove("resourceSubscriptions");
        }
        let acknowledged = json!({
            "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {
                "_meta": { "io.modelcontextprotocol/subscriptionId": id }, "notifications": filter,
            },
        });
        let _ = output.try_send(acknowledged.to_string());
        self.streams.push(Stream { id: id.clone(), filter, output: output.clone() });
        Play::Later
    }

    /// An answer as the era has it.
    fn complete(&self, answer: String) -> String {
        if !self.is_modern || answer.contains("resultType") {
            return answer;
        }
        let common = r#"{"resultType":"complete","ttlMs":0,"cacheScope":"private","#;
        let answer = answer.replacen(r#""result":{"#, &format!(r#""result":{common}"#), 1);
        answer.replacen(r#""private",}"#, r#""private"}"#, 1)
    }

    fn list(&self, member: &'static str, params: &Value) -> String {
        let items = self.lists.get(member).map_or(&[][..], Vec::as_slice);
        let from: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
        let to = if self.page == 0 { items.len() } else { (from + self.page).min(items.len()) };
        let shown = items[from.min(to)..to].join(",");
        let next =
            if to < items.len() { format!(r#","nextCursor":"{to}""#) } else { String::new() };
        format!(r#"{{"{member}":[{shown}]{next}}}"#)
    }

    fn call(&mut self, params: &Value, id: &Value, output: &mpsc::Sender<String>) -> Play {
        let arguments = &params["arguments"];
        let text = |key: &str| arguments[key].as_str().map(str::to_owned);
        match params["name"].as_str().unwrap() {
            "hang" => return Play::Later,
            "die" => {
                self.links.clear();
                return Play::End;
            }
            "ask" => {
                self.questions += 1;
                let method = text("method").unwrap_or_else(|| "elicitation/create".to_owned());
                let question = json!({
                    "jsonrpc": "2.0", "id": self.questions, "method": method,
                    "params": arguments["params"],
                });
                let _ = output.try_send(question.to_string());
                return Play::Later;
            }
            "say" => {
                let token = &params["_meta"]["progressToken"];
                for step in 1..=3 {
                    let said = json!({ "jsonrpc": "2.0", "method": "notifications/progress",
                        "params": { "progressToken": token, "progress": step, "total": 3 } });
                    let _ = output.try_send(said.to_string());
                }
                let said = json!({ "jsonrpc": "2.0", "method": "notifications/message",
                    "params": { "level": text("level").as_deref().unwrap_or("info"),
                        "logger": "actor", "data": { "step": 3 } } });
                let _ = output.try_send(said.to_string());
            }
            _ => {}
        }
        if let (Some(uri), Some(value)) = (text("set"), text("to")) {
            let content = json!({ "contents": [{ "uri": uri, "text": value }] }).to_string();
            self.contents.insert(uri, content);
        }
        if let Some(error) = text("error") {
            return Play::Say(format!(r#""error":{error}"#));
        }
        let result = text("result").unwrap_or_else(|| {
            json!({ "content": [{ "type": "text", "text": id.to_string() }] }).to_string()
        });
        Play::Say(format!(r#""result":{result}"#))
    }
}
