//! A small server of both eras that is made for one check: it keeps every rule, or breaks that one. It
//! shares no code with the hub or the mirror, so that the judge and the judged do not share a mistake.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub(super) const COUNTER: &str = "test://counter";
pub(super) const OTHER: &str = "test://other";
const TAG: &str = "io.modelcontextprotocol/subscriptionId";
/// Messages that may wait for a client.
const WAITING: usize = 100_000;

pub(super) type Outlet = mpsc::Sender<Value>;

/// The server.
pub(super) struct Fixture {
    /// The id of the check that it is made for.
    subject: &'static str,
    /// Whether it fails that check.
    is_broken: bool,
    /// Whether notices are large.
    padded: bool,
    state: Mutex<State>,
    tasks: Mutex<JoinSet<()>>,
    /// Held while a request is handled.
    gate: tokio::sync::Mutex<()>,
}

#[derive(Default)]
pub(super) struct State {
    /// What the last change set; it may take effect later.
    wanted: String,
    pub(super) value: String,
    pub(super) shape: String,
    pub(super) lists: u64,
    pub(super) reads: u64,
    /// Whether it asks for the roots of a client that opens a stream, and what clients answered.
    pub(super) asks: bool,
    pub(super) answers: Vec<Value>,
    /// The tools that were called.
    pub(super) called: BTreeSet<String>,
    changes: u64,
    told: Option<Instant>,
    streams: u64,
    pub(super) sessions: BTreeMap<String, Session>,
    listens: Vec<Listen>,
}

/// A legacy session, or a connection.
pub(super) struct Session {
    pub(super) number: usize,
    pub(super) subscribed: BTreeSet<String>,
    /// The oldest first.
    streams: Vec<(u64, Outlet)>,
    pending: Vec<Value>,
    touched: Instant,
    pub(super) offers_sampling: bool,
    is_told_for_nothing: bool,
}

struct Listen {
    id: Value,
    session: String,
    filter: Value,
    outlet: Outlet,
}

impl Fixture {
    pub(super) fn new(subject: &'static str, is_broken: bool, padded: bool) -> Arc<Self> {
        Arc::new(Self {
            subject,
            is_broken,
            padded,
            state: Mutex::default(),
            tasks: Mutex::default(),
            gate: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn breaks(&self, id: &str) -> bool {
        self.is_broken && self.subject == id
    }

    pub(super) fn is_broken(&self) -> bool {
        self.is_broken
    }

    /// Whether it is made for this check, broken or not.
    pub(super) fn is_for(&self, id: &str) -> bool {
        self.subject == id
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.lock().unwrap().spawn(task);
    }

    /// A channel to a client. A server that waits for its clients has a small one.
    pub(super) fn outlet(&self) -> (Outlet, mpsc::Receiver<Value>) {
        mpsc::channel(if self.breaks("recon.slow-reader") { 4 } else { WAITING })
    }

    /// Begins a session.
    pub(super) fn join(&self, key: &str) {
        let mut state = self.lock();
        let session = Session {
            number: state.sessions.len(),
            subscribed: BTreeSet::new(),
            streams: Vec::new(),
            pending: Vec::new(),
            touched: Instant::now(),
            offers_sampling: false,
            is_told_for_nothing: false,
        };
        state.sessions.insert(key.to_owned(), session);
    }

    pub(super) fn leave(&self, key: &str) {
        let mut state = self.lock();
        state.sessions.remove(key);
        state.listens.retain(|listen| listen.session != key);
    }

    pub(super) fn knows(&self, key: &str) -> bool {
        self.lock().sessions.contains_key(key)
    }

    /// Opens a stream of a session, and sends what waits for it.
    pub(super) fn open(&self, key: &str, outlet: Outlet) {
        let mut state = self.lock();
        state.streams += 1;
        let number = state.streams;
        if state.asks {
            let asked = json!({ "jsonrpc": "2.0", "id": "asked", "method": "roots/list" });
            let _ = outlet.try_send(asked);
        }
        if let Some(session) = state.sessions.get_mut(key) {
            for notice in session.pending.drain(..) {
                let _ = outlet.try_send(notice);
            }
            session.streams.push((number, outlet));
        }
    }

    /// Ends every stream and forgets every session, as a restart does.
    pub(super) fn restart(&self) {
        let mut state = self.lock();
        for listen in std::mem::take(&mut state.listens) {
            if !self.breaks("listen.ends-gracefully") {
                let result = json!({ "resultType": "complete", "_meta": { TAG: listen.id } });
                let _ = listen.outlet.try_send(answer(&listen.id, &result));
            }
        }
        state.sessions.clear();
    }

    /// Answers a message of a session; `outlet` is where a listen request sends its notices.
    pub(super) async fn handle(
        self: &Arc<Self>,
        key: &str,
        message: &Value,
        outlet: &Outlet,
    ) -> Option<Value> {
        let _gate = self.gate.lock().await;
        let Some(method) = message["method"].as_str() else {
            self.lock().answers.push(message.clone());
            return None;
        };
        let params = &message["params"];
        let is_modern = params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28";
        self.touch(key, params);
        let id = message.get("id");
        match method {
            "notifications/cancelled" => {
                let mut state = self.lock();
                state
                    .listens
                    .retain(|listen| listen.session != key || listen.id != params["requestId"]);
                return None;
            }
            "subscriptions/listen" => {
                self.listen(key, id?.clone(), &params["notifications"], outlet);
                return None;
            }
            "tools/call" => {
                let result = self.call(key, params).await;
                return Some(answer(id?, &result));
            }
            _ => {}
        }
        let id = id?;
        let answered = match self.ask(key, method, params, is_modern) {
            Ok(mut result) => {
                if is_modern {
                    self.hint(method, &mut result);
                }
                answer(id, &result)
            }
            Err((code, text)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": text } })
            }
        };
        if method == "tools/list" && self.breaks("notice.storm") {
            let (this, key) = (self.clone(), key.to_owned());
            self.spawn(async move {
                this.tell(&["tools"], Some(&key)).await;
            });
        }
        Some(answered)
    }

    fn touch(self: &Arc<Self>, key: &str, params: &Value) {
        let mut state = self.lock();
        let Some(session) = state.sessions.get_mut(key) else { return };
        let capabilities = [
            &params["capabilities"],
            &params["_meta"]["io.modelcontextprotocol/clientCapabilities"],
        ];
        session.offers_sampling |= capabilities.iter().any(|all| all.get("sampling").is_some());
        session.touched = Instant::now();
        if self.breaks("notice.spurious") {
            let (this, key) = (self.clone(), key.to_owned());
            self.spawn(async move { this.tell_for_nothing(&key).await });
        }
    }

    /// One notice for nothing, once a client was silent for a while.
    async fn tell_for_nothing(self: Arc<Self>, key: &str) {
        let silence = Duration::from_millis(450);
        tokio::time::sleep(silence).await;
        {
            let mut state = self.lock();
            let Some(session) = state.sessions.get_mut(key) else { return };
            if session.is_told_for_nothing || session.touched.elapsed() < silence {
                return;
            }
            session.is_told_for_nothing = true;
        }
        self.tell(&["tools"], Some(key)).await;
    }

    fn listen(self: &Arc<Self>, key: &str, id: Value, asked: &Value, outlet: &Outlet) {
        let mut honoured = json!({});
        for (kind, group) in [
            ("toolsListChanged", "tools"),
            ("promptsListChanged", "prompts"),
            ("resourcesListChanged", "resources"),
        ] {
            if asked[kind] == true && self.capabilities()[group]["listChanged"] == true {
                honoured[kind] = json!(true);
            }
        }
        let uris: Vec<_> = asked["resourceSubscriptions"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|uri| uri.as_str().is_some_and(|uri| self.accepts(uri)))
            .cloned()
            .collect();
        if !uris.is_empty() {
            honoured["resourceSubscriptions"] = json!(uris);
        }
        let tag = self.tag(&id);
        if self.breaks("listen.ack-first") {
            let params = json!({ "_meta": { TAG: tag } });
            let _ = outlet.try_send(notice("notifications/tools/list_changed", &params));
        }
        let params = json!({ "_meta": { TAG: tag }, "notifications": honoured });
        let method = "notifications/subscriptions/acknowledged";
        let _ = outlet.try_send(notice(method, &params));
        let listen =
            Listen { id, session: key.to_owned(), filter: honoured, outlet: outlet.clone() };
        self.lock().listens.push(listen);
    }

    fn tag(&self, id: &Value) -> Value {
        if self.breaks("listen.tagged") { json!(id.to_string()) } else { id.clone() }
    }

    async fn call(self: &Arc<Self>, key: &str, params: &Value) -> Value {
        let value = params["arguments"]["value"].to_string();
        let done =
            json!({ "content": [{ "type": "text", "text": "done" }], "resultType": "complete" });
        let name = params["name"].as_str().unwrap_or_default();
        let number = {
            let mut state = self.lock();
            state.called.insert(name.to_owned());
            state.changes
        };
        if name == "destroy" {
            return done;
        }
        // Unlike `set`, it always changes something.
        let value = if name == "bump" { format!("bump {number}") } else { value };
        if name == "shape" {
            self.lock().shape = value;
            if !self.breaks("notice.templates") {
                self.tell(&["resources"], None).await;
            }
            return done;
        }
        let is_new = {
            let mut state = self.lock();
            std::mem::replace(&mut state.wanted, value.clone()) != value
        };
        if self.breaks("notice.after-visible") {
            let this = self.clone();
            self.spawn(async move {
                tokio::time::sleep(Duration::from_millis(40)).await;
                this.lock().value = value;
            });
        } else {
            self.lock().value = value;
        }
        if is_new || self.breaks("notice.noop-silent") {
            self.changed(key).await;
        }
        done
    }

    /// Announces that everything changed, in the way this server does it.
    async fn changed(self: &Arc<Self>, key: &str) {
        let change = {
            let mut state = self.lock();
            state.changes += 1;
            let is_soon =
                state.told.is_some_and(|told| told.elapsed() < Duration::from_millis(200));
            if self.breaks("notice.last-told") && is_soon {
                return;
            }
            state.told = Some(Instant::now());
            state.changes
        };
        let only = self.breaks("notice.other-session").then_some(key);
        let topics = ["tools", "resources", COUNTER];
        if self.breaks("notice.not-starved") {
            let this = self.clone();
            self.spawn(async move {
                tokio::time::sleep(Duration::from_millis(60)).await;
                if this.lock().changes == change {
                    this.tell(&topics, None).await;
                }
            });
            return;
        }
        self.tell(&topics, only).await;
        if self.breaks("notice.once") {
            self.tell(&topics, only).await;
        }
    }

    /// Sends notices of these topics to whoever asked for them; `only` to one session.
    async fn tell(&self, topics: &[&str], only: Option<&str>) {
        for topic in topics {
            let is_muted = match *topic {
                "tools" => self.breaks("caps.kinds-honest"),
                "resources" => self.breaks("caps.silent-change"),
                _ => ["notice.delivered", "caps.subscribe-undeclared", "cache.truth"]
                    .iter()
                    .any(|id| self.breaks(id)),
            };
            if !is_muted {
                for (outlet, message) in self.addressed(topic, only) {
                    if self.breaks("recon.slow-reader") {
                        let _ = outlet.send(message).await;
                    } else {
                        let _ = outlet.try_send(message);
                    }
                }
            }
        }
    }

    fn addressed(&self, topic: &str, only: Option<&str>) -> Vec<(Outlet, Value)> {
        let is_list = !topic.contains("://");
        let method = if is_list {
            format!("notifications/{topic}/list_changed")
        } else {
            "notifications/resources/updated".to_owned()
        };
        let mut params = if is_list { json!({}) } else { json!({ "uri": topic }) };
        if self.padded {
            params["_meta"] = json!({ "test/pad": "x".repeat(4096) });
        }
        let mut state = self.lock();
        let mut found = Vec::new();
        for (key, session) in &mut state.sessions {
            let is_asked = is_list || session.subscribed.contains(topic);
            let is_idle = session.touched.elapsed() > Duration::from_mins(5);
            let is_forgotten = is_idle && self.breaks("sub.idle");
            if !is_asked || is_forgotten || only.is_some_and(|only| only != key) {
                continue;
            }
            session.streams.retain(|(_, outlet)| !outlet.is_closed());
            let message = notice(&method, &params);
            let stream = if self.breaks("sub.second-stream") {
                session.streams.first()
            } else {
                session.streams.last()
            };
            match stream {
                Some((_, outlet)) => found.push((outlet.clone(), message)),
                None if !self.breaks("sub.get-race") => session.pending.push(message),
                None => {}
            }
        }
        state.listens.retain(|listen| !listen.outlet.is_closed());
        let newest = state.listens.len().saturating_sub(1);
        for (index, listen) in state.listens.iter().enumerate() {
            let is_asked = if is_list {
                let kind = format!("{topic}ListChanged");
                listen.filter[kind] == true || self.breaks("notice.only-asked")
            } else {
                let uris = listen.filter["resourceSubscriptions"].as_array();
                uris.is_some_and(|uris| uris.iter().any(|uri| uri == topic))
            };
            let is_chosen = !self.breaks("listen.parallel") || index == newest;
            if !is_asked || !is_chosen || only.is_some_and(|only| only != listen.session) {
                continue;
            }
            let mut params = params.clone();
            params["_meta"][TAG] = self.tag(&listen.id);
            if self.breaks("listen.no-logs") {
                let said =
                    json!({ "level": "info", "data": "changed", "_meta": { TAG: listen.id } });
                found.push((listen.outlet.clone(), notice("notifications/message", &said)));
            }
            found.push((listen.outlet.clone(), notice(&method, &params)));
        }
        found
    }
}

fn answer(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

fn notice(method: &str, params: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": method, "params": params })
}
