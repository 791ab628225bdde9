//! Feeds as clients see them: through a real hub and connections in memory, in both eras.
//!
//! Time is paused, so that "nothing more is said" is known for sure and at once: the clock moves
//! only when nobody has anything left to do.

mod acts;
mod asking;
mod files;
mod notices;
mod others;
mod prompts;
mod reads;
mod rounds;
mod tools;
mod unavailable;
mod upstream;

use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::{Config as HubConfig, Event, Greeting, Hub};
use tidings_store::date::Moment;
use tidings_store::testing::Wire;
use tokio::io::AsyncWriteExt as _;

use crate::parse::{Category, Document, Feed, Item, Person, Text, TextKind};
use crate::store::{Store, StoreError};
use crate::{
    Asker, Changes, Config, Data, FeedAddress, FeedConfig, Feeds, Fetching, Role, WebAddress,
};

const URL: &str = "https://example.com/feed.xml";
const ID: &str = "b799e597";
const OTHER_URL: &str = "https://example.com/feed22.xml";
const OTHER_ID: &str = "05c914db";
/// Longer than anything is held back.
const QUIET: Duration = Duration::from_mins(1);

/// Which kind of client.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Era {
    Legacy,
    Modern,
}

/// A hub with two feeds and one client.
struct World {
    feeds: Feeds,
    era: Era,
    wire: Wire,
    next: u64,
}

impl World {
    async fn new(era: Era) -> Self {
        let mut config = Config::new(Data::Memory);
        config.feeds = vec![feed_at(URL), feed_at(OTHER_URL)];
        config.role = Role::Server(Fetching::Off);
        Self::with(config, era).await
    }

    async fn with(config: Config, era: Era) -> Self {
        Self::over(Feeds::open(config).await.unwrap(), era).await
    }

    async fn over(feeds: Feeds, era: Era) -> Self {
        let mut hub_config = HubConfig::new("test", "1");
        hub_config.greeting = Greeting::Silent;
        let hub = Hub::with_config(hub_config);
        hub.add("feeds", |shelf| feeds.clone().on(shelf)).await.unwrap();
        let mut world = Self { feeds, era, wire: Wire::to(hub, 1 << 20), next: 0 };
        if era == Era::Legacy {
            let client = json!({ "name": "test", "version": "1" });
            let hello = json!({
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client,
            });
            world.ask("initialize", hello).await;
            world.send(json!({ "method": "notifications/initialized" })).await;
        }
        world
    }

    async fn send(&mut self, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.wire.input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn request(&mut self, method: &str, mut params: Value) -> u64 {
        if self.era == Era::Modern {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        self.next += 1;
        let id = self.next;
        self.send(json!({ "id": id, "method": method, "params": params })).await;
        id
    }

    /// The answer to a request; whatever is heard before it is not counted.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        loop {
            let message = self.hear().await.expect("an answer");
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// The next message, if there will be one.
    async fn hear(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(QUIET, self.wire.lines.next_line()).await.ok()?;
        Some(serde_json::from_str(&line.unwrap()?).unwrap())
    }

    /// Listens to these resources and to the list of them.
    async fn listen(&mut self, uris: &[String]) {
        // Legacy clients follow the lists from the beginning.
        self.notices().await;
        match self.era {
            Era::Legacy => {
                for uri in uris {
                    let answer = self.ask("resources/subscribe", json!({ "uri": uri })).await;
                    assert!(answer.get("result").is_some(), "{answer}");
                }
            }
            Era::Modern => {
                let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": uris });
                self.request("subscriptions/listen", json!({ "notifications": wanted })).await;
                self.hear().await.expect("an acknowledgement");
            }
        }
        assert_eq!(self.notices().await, Vec::<String>::new());
    }

    /// All that is told until there is nothing left to tell, in order of the names: URIs, and
    /// `list`.
    async fn notices(&mut self) -> Vec<String> {
        let mut notices = Vec::new();
        while let Some(message) = self.hear().await {
            match message["method"].as_str().unwrap() {
                "notifications/resources/updated" => {
                    notices.push(message["params"]["uri"].as_str().unwrap().to_owned());
                }
                "notifications/resources/list_changed" => notices.push("list".to_owned()),
                other => panic!("{other}"),
            }
        }
        notices.sort();
        notices
    }

    async fn read(&mut self, uri: &str) -> Value {
        let answer = self.ask("resources/read", json!({ "uri": uri })).await;
        let Some(text) = answer["result"]["contents"][0]["text"].as_str() else { return answer };
        serde_json::from_str(text).unwrap()
    }

    async fn apply(&self, id: &str, document: &Document, now: i64) -> Changes {
        let document = document.clone();
        let work = move |store: &Store, id: &str| store.apply(id, &document, day(now));
        record(&self.feeds, id, work).await
    }

    async fn fail(&self, id: &str, error: &'static str, now: i64) {
        let work = move |store: &Store, id: &str| store.failed(id, error, day(now));
        record(&self.feeds, id, work).await;
    }
}

/// Writes something about a feed, makes it readable and tells of it.
async fn record(
    feeds: &Feeds,
    id: &str,
    work: impl FnOnce(&Store, &str) -> Result<Changes, StoreError> + Send + 'static,
) -> Changes {
    let named = id.to_owned();
    let work = move |store: &Store| {
        let changes = work(store, &named)?;
        Ok((changes.clone(), changes))
    };
    feeds.0.record(id, work).await.unwrap()
}

/// The feed at this address, which the operator named.
pub(crate) fn feed_at(address: impl AsRef<str>) -> FeedConfig {
    FeedConfig::new(FeedAddress::parse(address.as_ref(), Asker::Operator).unwrap())
}

/// A day of January 2024.
fn day(day: i64) -> Moment {
    Moment::from_unix(1_704_067_200 + (day - 1) * 86_400).unwrap()
}

fn text(value: &str) -> Text {
    Text { value: value.to_owned(), ..Text::default() }
}

fn html(value: &str) -> Text {
    Text { kind: TextKind::Html, ..text(value) }
}

/// A feed of this title with an item for each name and day.
fn document(title: &str, names: &[(&str, i64)]) -> Document {
    let item = |(name, published): &(&str, i64)| Item {
        id: Some(format!("https://example.com/{name}")),
        link: Some(format!("https://example.com/{name}")),
        title: Some(text(name)),
        summary: Some(text(&format!("About {name}."))),
        published: Some(day(*published)),
        authors: vec![Person {
            name: Some("Jane Smith".to_owned()),
            email: Some("jane@example.com".to_owned()),
            uri: None,
        }],
        categories: vec![Category { term: format!("Category {name}"), ..Category::default() }],
        ..Item::default()
    };
    let feed =
        Feed { title: Some(text(title)), language: Some("en".to_owned()), ..Feed::default() };
    Document { feed, items: names.iter().map(item).collect(), ..Document::default() }
}
