//! Servers that mean well and are not perfect: what can be used is used, and the rest is told.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use serde_json::{Value, json};
use tidings_mirror::events::{Cause, ConnectionState, Warning};
use tidings_mirror::{
    Config, Era, Event, Events, List, ListKinds, Mirror, Protocol, RequestError, Target,
};

use super::{config, connect, content_changed, next, within};
use crate::support::lines::{Lines, Say, acknowledge, decent, tag};
use crate::support::rogue::{Call, Rogue, answer, tool};

async fn open(target: Target, config: Config) -> (Mirror, Events) {
    within(Mirror::connect_with_events(target, config)).await.unwrap()
}

async fn warning(events: &mut Events) -> Warning {
    next(events, |event| match event {
        Event::Warning(warning) => Some(warning),
        _ => None,
    })
    .await
}

fn subscribing() -> Value {
    json!({ "resources": { "subscribe": true } })
}

/// A server with one resource, `dir://a`, whose content counts how often it was read. Keeps the last
/// stream of notices that was asked for.
fn directory() -> (Lines, Target, Arc<Mutex<Value>>) {
    let stream = Arc::new(Mutex::new(Value::Null));
    let (opened, reads) = (stream.clone(), Mutex::new(0));
    let (server, target) = Lines::start(move |message, say| {
        if message["method"] == "subscriptions/listen" {
            *opened.lock().unwrap() = message["id"].clone();
        }
        if message["method"] == "resources/read" {
            let mut reads = reads.lock().unwrap();
            *reads += 1;
            let contents = json!([{ "uri": "dir://a", "text": reads.to_string() }]);
            say.result(message, &json!({ "contents": contents }));
        } else {
            decent(message, say, &subscribing());
        }
    });
    (server, target, stream)
}

fn update(say: &Say, uri: &str, stream: &Value) {
    let mut params = json!({ "uri": uri });
    if !stream.is_null() {
        params["_meta"] = tag(stream);
    }
    say.notice("notifications/resources/updated", &params);
}

/// Waits for a content that was read because of a notice.
async fn noticed(events: &mut Events) {
    next(events, |event| match event {
        Event::ResourceContentChanged { cause: Cause::Notice, .. } => Some(()),
        _ => None,
    })
    .await;
}

#[tokio::test]
async fn a_sub_resource_that_is_updated_makes_its_watched_parent_change() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (server, target, stream) = directory();
        let (mirror, mut events) = open(target, config(protocol.clone())).await;
        within(mirror.read_resource("dir://a")).await.unwrap();
        within(mirror.subscribe(&["dir://a"])).await.unwrap();
        let stream = stream.lock().unwrap().clone();
        // More of them than ended the stream of notices once.
        for number in 0..8 {
            update(&server.say, &format!("dir://a/file{number}"), &stream);
        }
        let part = next(&mut events, |event| match event {
            Event::ResourceUpdated { uri, .. } => Some(uri),
            _ => None,
        });
        assert_eq!(&*part.await, "dir://a/file0");
        noticed(&mut events).await;
        assert_eq!(mirror.connection(), ConnectionState::Ready, "{protocol:?}");
    }
}

#[tokio::test]
async fn notices_nobody_asked_for_are_counted_and_the_stream_goes_on() {
    let (server, target, stream) = directory();
    let (mirror, mut events) = open(target, config(Protocol::Modern)).await;
    within(mirror.read_resource("dir://a")).await.unwrap();
    within(mirror.subscribe(&["dir://a"])).await.unwrap();
    let stream = stream.lock().unwrap().clone();
    for _ in 0..10 {
        update(&server.say, "dir://b", &stream);
        server.say.notice("notifications/weather", &json!({ "_meta": tag(&stream) }));
        server.say.notice("notifications/tools/list_changed", &json!({ "_meta": tag(&stream) }));
    }
    let mut told = Vec::new();
    while told.len() < 6 {
        told.push(warning(&mut events).await);
    }
    for count in [1, 10] {
        assert!(
            told.contains(&Warning::NotSubscribed { uri: "dir://b".into(), count }),
            "{told:?}"
        );
        for method in ["notifications/weather", "notifications/tools/list_changed"] {
            let wanted = Warning::Unasked { method: method.into(), count };
            assert!(told.contains(&wanted), "{told:?}");
        }
    }
    // The stream is the same one, and still followed.
    update(&server.say, "dir://a", &stream);
    noticed(&mut events).await;
    assert_eq!(server.asked("subscriptions/listen"), 1);
}

#[tokio::test]
async fn a_legacy_server_is_not_blamed_for_notices_that_it_cannot_be_asked_to_leave_out() {
    let (server, target) = Lines::start(|message, say| {
        decent(message, say, &json!({ "tools": { "listChanged": true }, "prompts": {} }));
    });
    let mut config = config(Protocol::Legacy);
    config.list_changed = ListKinds::EMPTY;
    let (_mirror, mut events) = open(target, config).await;
    server.say.notice("notifications/tools/list_changed", &json!({}));
    // This one was never promised.
    server.say.notice("notifications/prompts/list_changed", &json!({}));
    let method = "notifications/prompts/list_changed".into();
    assert_eq!(warning(&mut events).await, Warning::Unasked { method, count: 1 });
}

#[tokio::test]
async fn a_server_that_acknowledges_more_than_was_asked_is_followed() {
    let (server, target) = Lines::start(|message, say| {
        if message["method"] == "subscriptions/listen" {
            let uris = json!(["dir://a", "dir://b"]);
            let more = json!({ "toolsListChanged": true, "resourceSubscriptions": uris });
            acknowledge(message, say, &more);
        } else {
            decent(message, say, &subscribing());
        }
    });
    let (mirror, mut events) = open(target, config(Protocol::Modern)).await;
    within(mirror.subscribe(&["dir://a"])).await.unwrap();
    assert_eq!(mirror.subscriptions(), ["dir://a".into()]);
    let listens = server.asked("subscriptions/listen");
    update(&server.say, "dir://a", &json!(1));
    next(&mut events, |event| matches!(event, Event::ResourceUpdated { .. }).then_some(())).await;
    assert_eq!(server.asked("subscriptions/listen"), listens);
}

fn one_tool_per_oddity() -> Value {
    let schema = json!({ "type": "object" });
    let icons = json!([{ "src": "x", "sizes": "48x48" }]);
    json!([
        { "name": "pay" }, { "name": "b", "inputSchema": schema, "icons": icons },
        { "inputSchema": schema }, { "name": "good", "inputSchema": schema },
    ])
}

#[tokio::test]
async fn one_odd_tool_does_not_cost_the_others() {
    let (_server, target) = Lines::start(|message, say| {
        if message["method"] == "tools/list" {
            say.result(message, &json!({ "tools": one_tool_per_oddity() }));
        } else {
            decent(message, say, &json!({ "tools": {} }));
        }
    });
    let mut config = config(Protocol::Legacy);
    config.history = 100;
    let (mirror, mut events) = open(target, config).await;
    let names: Vec<_> = mirror.tools().iter().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["pay", "b", "good"]);
    let odd = mirror.odd(List::Tools);
    let shown: Vec<_> =
        odd.iter().map(|odd| (odd.index, odd.name.as_deref(), odd.usable)).collect();
    assert_eq!(shown, [(0, Some("pay"), true), (1, Some("b"), true), (2, None, false)]);
    let told = warning(&mut events).await;
    assert_eq!(told, Warning::OddItems { list: List::Tools, items: odd });
    assert!(told.to_string().contains("`pay` (number 0): `inputSchema` is missing"), "{told}");
    // Listing the same again is no news, and the log has what was sent.
    within(mirror.refresh(&[List::Tools])).await.unwrap();
    assert!(
        std::iter::from_fn(|| events.try_next()).all(|event| !matches!(event, Event::Warning(_)))
    );
    let sent = |json: &Value| json["result"]["tools"] == one_tool_per_oddity();
    assert_eq!(
        mirror.history().iter().filter(|message| sent(&message.json().unwrap_or_default())).count(),
        2
    );
}

#[tokio::test]
async fn an_unknown_block_does_not_cost_the_result_it_is_in() {
    let hologram = json!({ "type": "hologram", "x": 1 });
    let block = hologram.clone();
    let (_server, target) = Lines::start(move |message, say| {
        let text = json!({ "type": "text", "text": "hi" });
        let odd = json!({ "uri": "dir://a", "hologram": 1 });
        match message["method"].as_str().unwrap_or_default() {
            "tools/call" => say.result(message, &json!({ "content": [block, text] })),
            "resources/read" => {
                let good = json!({ "uri": "dir://a", "text": "hi" });
                say.result(message, &json!({ "contents": [good, odd] }));
            }
            "prompts/get" => {
                let said = [
                    json!({ "role": "user", "content": block }),
                    json!({ "role": "user", "content": text }),
                ];
                say.result(message, &json!({ "messages": said }));
            }
            _ => decent(message, say, &json!({ "tools": {}, "resources": {}, "prompts": {} })),
        }
    });
    let (mirror, _) = open(target, config(Protocol::Legacy)).await;
    let outcome = within(mirror.call_tool("pay", serde_json::Map::new())).await.unwrap();
    assert!(outcome.is_success());
    assert_eq!(outcome.result.as_ref().unwrap().content.len(), 1);
    assert_eq!((outcome.odd[0].index, &outcome.odd[0].item), (0, &hologram));
    let kept = mirror.cache().tool_result("pay").unwrap();
    assert!(kept.is_success(), "it is kept as what it is");
    let read = within(mirror.read_resource("dir://a")).await.unwrap();
    assert_eq!((super::text(&read.contents).as_str(), read.odd[0].index), ("hi", 1));
    let prompt = within(mirror.get_prompt("p", tidings_mirror::NO_ARGUMENTS)).await.unwrap();
    assert_eq!((prompt.result.messages.len(), prompt.odd.len()), (1, 1));
}

#[tokio::test]
async fn an_answer_to_a_call_that_is_no_result_is_kept_as_it_came() {
    for sent in [json!({ "sum": 3 }), json!({}), json!([1]), json!("paid")] {
        let given = sent.clone();
        let (_server, target) =
            Lines::start(move |message, say| match message["method"].as_str() {
                Some("tools/call") => say.result(message, &given),
                _ => decent(message, say, &json!({ "tools": {} })),
            });
        let (mirror, _) = open(target, config(Protocol::Legacy)).await;
        let outcome = within(mirror.call_tool("pay", serde_json::Map::new())).await.unwrap();
        assert_eq!(outcome.odd[0].item, sent);
        assert!(mirror.cache().tool_result("pay").unwrap().is_success());
    }
}

#[tokio::test]
async fn odd_items_over_http_are_the_same_as_over_stdio() {
    for kind in ["application/json", "text/event-stream"] {
        let rogue = Rogue::start(move |call| {
            if call.method != "tools/list" {
                return call.decent(&json!({ "tools": {} }));
            }
            let result = json!({ "tools": one_tool_per_oddity() });
            let message = json!({ "jsonrpc": "2.0", "id": call.message["id"], "result": result });
            let body = if kind == "application/json" {
                message.to_string()
            } else {
                format!("data: {message}\n\n")
            };
            answer(StatusCode::OK, kind, body)
        })
        .await;
        let (mirror, _) = connect(&rogue.url, config(Protocol::Legacy)).await;
        assert_eq!((mirror.tools().len(), mirror.odd(List::Tools).len()), (3, 3), "{kind}");
    }
}

#[tokio::test]
async fn an_answer_over_the_limit_costs_its_request_alone() {
    let version = Arc::new(Mutex::new("small".to_owned()));
    let now = version.clone();
    let (server, target) = Lines::start(move |message, say| match message["method"].as_str() {
        Some("resources/read") => {
            let contents = json!([{ "uri": "dir://a", "text": *now.lock().unwrap() }]);
            say.result(message, &json!({ "contents": contents }));
        }
        _ => decent(message, say, &subscribing()),
    });
    let mut config = config(Protocol::Legacy);
    config.max_message = 10_000;
    let (mirror, mut events) = open(target, config).await;
    within(mirror.read_resource("dir://a")).await.unwrap();
    within(mirror.subscribe(&["dir://a"])).await.unwrap();
    // What is watched outgrows the limit: a warning, and no end of the connection.
    *version.lock().unwrap() = "x".repeat(100_000);
    update(&server.say, "dir://a", &Value::Null);
    let told = warning(&mut events).await;
    assert!(
        matches!(&told, Warning::ReadFailed { error, .. } if error.contains("larger than 10000")),
        "{told}"
    );
    let error = within(mirror.read_resource("dir://a")).await.unwrap_err();
    assert!(matches!(error, RequestError::TooLarge(10_000)), "{error}");
    // A notice of that size answers nobody: it is left out.
    server.say.notice("notifications/message", &json!({ "data": "x".repeat(100_000) }));
    while !matches!(warning(&mut events).await, Warning::Garbage { .. }) {}
    *version.lock().unwrap() = "small again".to_owned();
    update(&server.say, "dir://a", &Value::Null);
    assert_eq!(content_changed(&mut events, "dir://a").await, "small again");
    assert_eq!(mirror.connection(), ConnectionState::Ready);
}

/// What a legacy server answers that cannot be asked whether it is modern.
fn old(message: &Value, say: &Say) {
    if message["method"] != "server/discover" {
        decent(message, say, &json!({ "tools": {} }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_ignores_the_question_is_legacy_soon() {
    let (_server, target) = Lines::start(old);
    let began = tokio::time::Instant::now();
    let (mirror, _) = open(target, config(Protocol::Auto)).await;
    assert_eq!(mirror.server().unwrap().era, Era::Legacy);
    assert!(began.elapsed() <= Duration::from_secs(3), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_the_question_too_late_stays_legacy() {
    let asked = Mutex::new(Value::Null);
    let (_server, target) = Lines::start(move |message, say| {
        let mut asked = asked.lock().unwrap();
        if message["method"] == "server/discover" {
            *asked = message.clone();
            return;
        }
        // The answer to the question comes first, as from a server that was slow to start.
        decent(&asked.take(), say, &json!({ "tools": {} }));
        decent(message, say, &json!({ "tools": {} }));
    });
    let (mirror, _) = open(target, config(Protocol::Auto)).await;
    assert_eq!(mirror.server().unwrap().era, Era::Legacy);
    assert_eq!(mirror.list_error(List::Tools).map(|error| error.to_string()), None);
}

#[tokio::test]
async fn a_modern_server_that_is_vague_about_time_is_modern() {
    for ttl in [json!(null), json!(5000.0)] {
        let (_server, target) = Lines::start(move |message, say| {
            if message["method"] != "server/discover" {
                return decent(message, say, &json!({}));
            }
            let mut found = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {} });
            if !ttl.is_null() {
                found["ttlMs"] = ttl.clone();
            }
            say.result(message, &found);
        });
        let (mirror, _) = open(target, config(Protocol::Auto)).await;
        assert_eq!(mirror.server().unwrap().era, Era::Modern);
    }
}

#[tokio::test]
async fn a_server_over_http_that_ignores_the_question_is_legacy_soon() {
    let rogue = Rogue::start(|call| {
        if call.method == "server/discover" {
            let never = stream::pending::<Result<Bytes, std::io::Error>>();
            return answer(StatusCode::OK, "application/json", Body::from_stream(never));
        }
        call.decent(&json!({ "tools": {} }))
    })
    .await;
    let mut config = config(Protocol::Auto);
    // The question has a quarter of it.
    config.connect_timeout = Duration::from_secs(3);
    let (mirror, _) = connect(&rogue.url, config).await;
    assert_eq!(mirror.server().unwrap().era, Era::Legacy);
}

#[tokio::test]
async fn an_answer_to_the_handshake_that_is_none_is_told_in_words() {
    let (_server, target) = Lines::start(|message, say| {
        say.result(message, &json!({ "protocolVersion": 5, "hello": "world" }));
    });
    let Err(error) = within(Mirror::connect_with(target, config(Protocol::Legacy))).await else {
        panic!("it connected")
    };
    let words = error.to_string();
    assert!(words.contains(r#""hello":"world""#) && !words.contains("CustomResult"), "{words}");
}

#[tokio::test]
async fn an_empty_cursor_is_a_cursor_unless_it_leads_nowhere() {
    let listed = |second: fn(&Call) -> http::Response<Body>| async move {
        let rogue = Rogue::start(move |call| {
            if call.method != "tools/list" {
                return call.decent(&json!({ "tools": {} }));
            }
            if call.message["params"]["cursor"] == "" {
                return second(&call);
            }
            call.result(&json!({ "tools": [tool("a"), tool("b")], "nextCursor": "" }))
        })
        .await;
        let (mirror, _) = connect(&rogue.url, config(Protocol::Legacy)).await;
        assert_eq!(rogue.asked("tools/list"), 2);
        (mirror.tools().len(), mirror.incomplete(List::Tools))
    };
    let more = listed(|call| call.result(&json!({ "tools": [tool("c")] }))).await;
    assert_eq!(more, (3, None));
    // Some servers mean the end, and begin anew or refuse.
    let again =
        |call: &Call| call.result(&json!({ "tools": [tool("a"), tool("b")], "nextCursor": "" }));
    assert_eq!(listed(again).await, (2, None));
    assert_eq!(listed(|call| call.error(-32602, "no such cursor")).await, (2, None));
}
