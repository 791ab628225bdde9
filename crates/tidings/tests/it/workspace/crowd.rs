//! Many who write and many who watch: everyone ends up with what the store has.

use std::collections::HashMap;
use std::time::Duration;

use reqwest::{Client, Response};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{Listening, Place};
use crate::support::demo::{http, within};
use crate::support::workspace;

const WRITERS: usize = 16;
const WATCHERS: usize = 200;
/// How long they write. Each makes so many artifacts as fast as it can, and thinks before it makes
/// more; a processor that does nothing else would show nothing more, and other tests wait for it.
const LASTING: Duration = Duration::from_mins(1);
const AT_ONCE: usize = 3;
const THINKING: Duration = Duration::from_secs(5);

/// What is watched, each by several.
const WATCHED: [&str; 8] = [
    "artifacts://recent",
    "artifacts://recent?limit=3",
    "artifacts://summary",
    "artifacts://by-tag/n:0",
    "artifacts://by-tag/n:1",
    "artifacts://by-creator/writer-3",
    "artifacts://set/shared",
    "events://recent",
];

/// What there was to be read when nothing was being written.
#[derive(Default)]
struct Stored {
    moment: u32,
    all: HashMap<&'static str, String>,
}

#[derive(Clone)]
struct Asker {
    client: Client,
    url: String,
}

impl Asker {
    async fn post(&self, method: &str, mut params: Value) -> Response {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut request = self.client.post(format!("{}/mcp", self.url)).body(message.to_string());
        let name = params.get("uri").or(params.get("name")).and_then(Value::as_str);
        for (header, value) in [
            ("accept", "application/json, text/event-stream"),
            ("content-type", "application/json"),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
        ] {
            request = request.header(header, value);
        }
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        within(request.send()).await.unwrap()
    }

    async fn ask(&self, method: &str, params: Value) -> Value {
        let text = String::from_utf8(
            within(self.post(method, params).await.bytes()).await.unwrap().to_vec(),
        )
        .unwrap();
        let data = text.lines().rev().find_map(|line| line.strip_prefix("data: "));
        let answer: Value = serde_json::from_str(data.unwrap_or(&text)).unwrap();
        assert!(answer["result"].is_object(), "{method}: {answer}");
        answer["result"].clone()
    }

    async fn read(&self, uri: &str) -> String {
        let result = self.ask("resources/read", json!({ "uri": uri })).await;
        result["contents"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Makes artifacts and tags each of them, one after the other; gives how many.
    async fn write(self, number: usize) -> usize {
        let (begun, mut round) = (Instant::now(), 0);
        loop {
            if round % AT_ONCE == 0 && round > 0 {
                tokio::time::sleep(THINKING).await;
            }
            if begun.elapsed() > LASTING {
                return round;
            }
            let tag = format!("n:{}", (number + round) % 3);
            let draft = json!({
                "title": format!("{number}.{round}"), "text": format!("{}", round % 5),
                "tags": [tag], "set": "shared", "creator": format!("writer-{number}"),
            });
            let made = json!({ "name": "create_artifact", "arguments": draft });
            let made = self.ask("tools/call", made).await["structuredContent"].clone();
            let tags = json!({ "id": made["id"], "tags": ["seen", "n:0"] });
            let tagged = self.ask("tools/call", json!({ "name": "tag", "arguments": tags })).await;
            assert_ne!(tagged["isError"], true, "{tagged}");
            round += 1;
        }
    }

    /// Reads a resource whenever it is told to, and says for each of the moments when it has what
    /// was stored then. If a notice were missing it would never say so.
    async fn follow(
        self,
        mut stream: Response,
        uri: &'static str,
        mut stored: watch::Receiver<Stored>,
        there: mpsc::Sender<u32>,
    ) {
        let (mut last, mut text, mut reached) = (self.read(uri).await, String::new(), 0);
        loop {
            let moment = {
                let stored = stored.borrow_and_update();
                let is_there = stored.all.get(uri).is_some_and(|text| *text == last);
                if is_there { stored.moment } else { reached }
            };
            if moment > reached {
                reached = moment;
                there.send(moment).await.unwrap();
            }
            tokio::select! {
                changed = stored.changed() => if changed.is_err() { return },
                chunk = stream.chunk() => {
                    let chunk = chunk.unwrap().expect("the stream is open");
                    text += std::str::from_utf8(&chunk).unwrap();
                    let end = text.rfind("\n\n").map_or(0, |end| end + 2);
                    let came: String = text.drain(..end).collect();
                    if came.contains("notifications/resources/updated") {
                        last = self.read(uri).await;
                    }
                }
            }
        }
    }
}

/// A stream that is acknowledged: what happens from now on is told.
async fn listening(asker: &Asker, uri: &str) -> Response {
    let filter = json!({ "notifications": { "resourceSubscriptions": [uri] } });
    let mut stream = asker.post("subscriptions/listen", filter).await;
    let first = within(stream.chunk()).await.unwrap().unwrap();
    let first = String::from_utf8(first.to_vec()).unwrap();
    assert!(first.contains("acknowledged") && first.contains(uri), "{first}");
    stream
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everyone_who_watches_for_a_minute_ends_up_with_what_is_stored() {
    let place = Place::in_memory();
    let server = Listening::start(&place, "", None).await;
    let asker = Asker { client: http(), url: server.url.clone() };
    let (tell, stored) = watch::channel(Stored::default());
    let (there, mut arrivals) = mpsc::channel(WATCHERS);
    let mut watching = JoinSet::new();
    for number in 0..WATCHERS {
        let uri = WATCHED[number % WATCHED.len()];
        let stream = listening(&asker, uri).await;
        watching.spawn(asker.clone().follow(stream, uri, stored.clone(), there.clone()));
    }
    let mut settled = async |moment: u32| {
        let mut all = HashMap::new();
        for uri in WATCHED {
            all.insert(uri, asker.read(uri).await);
        }
        let summary: Value = serde_json::from_str(&all["artifacts://summary"]).unwrap();
        tell.send(Stored { moment, all }).unwrap();
        for _ in 0..WATCHERS {
            assert_eq!(within(arrivals.recv()).await, Some(moment));
        }
        summary
    };
    let mut writing = JoinSet::new();
    for number in 0..WRITERS {
        writing.spawn(asker.clone().write(number));
    }
    let made: usize = writing.join_all().await.into_iter().sum();
    let summary = settled(1).await;
    // Each kind of write alone, so that no other has it looked at.
    let recent: Value = serde_json::from_str(&asker.read(WATCHED[0]).await).unwrap();
    let id = &recent["items"][0]["id"];
    for (moment, tool, arguments) in [
        (2, "tag", json!({ "id": id, "tags": ["late:x"] })),
        (3, "archive_artifact", json!({ "id": id })),
        (4, "untag", json!({ "id": id, "tags": ["late:x"] })),
        (5, "archive_artifact", json!({ "id": id, "archived": false })),
    ] {
        asker.ask("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        settled(moment).await;
    }
    drop(tell);
    watching.join_all().await;

    assert!(made >= WRITERS * AT_ONCE, "{made}");
    assert_eq!(summary["artifacts"], made);
    let workspace = workspace(&place.path("w"));
    let log = workspace.events(0, &[], 10_000).unwrap().events;
    // Five texts, two events for each artifact, and the four at the end.
    assert_eq!(log.len(), 5 + 2 * made + 4);
    assert!((1..).zip(&log).all(|(number, event)| event.number == number));
    assert_eq!(workspace.verify(|_, _| {}).unwrap().problems, []);
}
