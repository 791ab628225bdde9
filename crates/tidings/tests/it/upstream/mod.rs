//! Other servers behind a hub: relayed without loss, and made live.

mod actor;
mod apart;
mod asked;
mod behind_http;
mod child;
mod converged;
mod edges;
mod live;
mod names;
mod relayed;
mod told;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::http::{self, HttpConfig};
use tidings_server::{Hub, stdio};
use tidings_upstream::{Config, Name, State, Upstream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::client::{Client, Way};
use actor::Actor;

/// Nothing here takes as long as this.
const LONG: Duration = Duration::from_mins(15);

/// A hub with upstreams, and its clients.
struct Gateway {
    hub: Hub,
    upstreams: Vec<Upstream>,
}

fn config(name: &str, actor: &Actor) -> Config {
    Config::new(Name::parse(name).unwrap(), actor.target())
}

impl Gateway {
    /// A hub with this upstream, which is connected.
    async fn with(config: Config) -> Self {
        let mut gateway = Self { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
        gateway.join(config).await;
        gateway.until(|gateway| gateway.status(0).state == State::Ready).await;
        gateway.settle().await;
        gateway
    }

    async fn of(actor: &Actor) -> Self {
        Self::with(config("up", actor)).await
    }

    async fn join(&mut self, config: Config) {
        self.upstreams.push(Upstream::join(&self.hub, config).await.unwrap());
    }

    fn status(&self, index: usize) -> tidings_upstream::Status {
        self.upstreams[index].status()
    }

    /// Waits for a state, however it comes.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let waiting = async {
            while !is_so(self) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let in_time = tokio::time::timeout(LONG, waiting).await;
        assert!(in_time.is_ok(), "{:#?}", self.status(0));
    }

    /// Lets everything that is under way come to rest. Time is paused, so this takes none.
    async fn settle(&self) {
        tokio::time::sleep(Duration::from_millis(600)).await;
    }

    /// A client that has begun.
    async fn client(&self, way: Way, modern: bool) -> Caller {
        let router = http::router(&self.hub, HttpConfig::default());
        let mut client = Client::new(way, &self.hub, &router);
        if !modern {
            let params = json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "elicitation": { "form": {}, "url": {} }, "sampling": {}, "roots": {} },
                "clientInfo": { "name": "tester", "version": "1" },
            });
            let id = client.request("initialize", params, false).await;
            client.wait(&json!({ "id": id })).await;
            client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
            client.open_stream().await;
        }
        let mut caller = Caller { client, modern };
        self.settle().await;
        caller.forget();
        caller
    }

    async fn legacy(&self) -> Caller {
        self.client(Way::Stdio, false).await
    }

    async fn modern(&self) -> Caller {
        self.client(Way::Stdio, true).await
    }
}

/// A hub as a server in memory, for any number of connections.
fn hub_target(hub: &Hub) -> tidings_mirror::Target {
    let (hub, tasks) = (hub.clone(), Arc::new(Mutex::new(JoinSet::new())));
    let streams = tidings_mirror::StreamsTarget::each(move || {
        let (near, far) = tokio::io::duplex(1 << 16);
        let (input, output) = tokio::io::split(far);
        let hub = hub.clone();
        tasks.lock().unwrap().spawn(async move {
            let _ = stdio::serve(&hub, input, output, CancellationToken::new()).await;
        });
        Some(tokio::io::split(near))
    });
    streams.into()
}

/// A client of one era.
struct Caller {
    client: Client,
    modern: bool,
}

impl Caller {
    /// What was heard so far does not count.
    fn forget(&mut self) {
        while self.client.take(&json!({})).is_some() {}
    }

    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.client.request(method, params, self.modern).await;
        self.client.wait(&json!({ "id": id })).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await
    }

    async fn names(&mut self, list: &str) -> Vec<String> {
        let answer = self.ask(&format!("{list}/list"), json!({})).await;
        let member = if list == "resources/templates" { "resourceTemplates" } else { list };
        let items = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}"));
        let key = |item: &Value| {
            ["name", "uri", "uriTemplate"]
                .iter()
                .rev()
                .find_map(|key| item[key].as_str().map(str::to_owned))
        };
        items.iter().filter_map(key).collect()
    }

    async fn text(&mut self, uri: &str) -> Value {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        match answer["result"]["contents"][0]["text"].clone() {
            Value::Null => answer["error"]["code"].clone(),
            text => text,
        }
    }

    /// Watches resources, and the lists if it is modern. Returns the stream of a modern client.
    async fn watch(&mut self, uris: &[&str]) -> Option<i64> {
        if self.modern {
            let filter = json!({
                "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
                "resourceSubscriptions": uris,
            });
            let params = json!({ "notifications": filter });
            let stream = self.client.request("subscriptions/listen", params, true).await;
            let acknowledged = json!({ "method": "notifications/subscriptions/acknowledged" });
            self.client.wait(&acknowledged).await;
            return stream.as_i64();
        }
        for uri in uris {
            let answer = self.ask("resources/subscribe", json!({ "uri": uri })).await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        None
    }

    /// The notices that were heard, in words.
    fn heard(&mut self) -> Vec<String> {
        let mut heard = Vec::new();
        while let Some(message) = self.client.take(&json!({})) {
            let Some(method) = message["method"].as_str() else { continue };
            match message["params"]["uri"].as_str() {
                Some(uri) => heard.push(uri.to_owned()),
                None => heard.push(method.trim_start_matches("notifications/").to_owned()),
            }
        }
        heard
    }
}
