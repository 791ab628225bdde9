//! The log: messages as they passed the wire, and what happened below them.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{Method, StatusCode};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tidings_mirror::{
    ClosedBy, CommandTarget, Direction, Happened, Message, Mirror, NO_ARGUMENTS, Protocol, Record,
};

use super::live::Plot;
use super::{config, connect, within};
use crate::support::rogue::{Rogue, answer};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");

fn facts(mirror: &Mirror) -> Vec<Happened> {
    let records = mirror.records_since(0).into_iter();
    let facts = records.filter_map(|record| match record {
        Record::Fact(fact) => Some(fact.what.clone()),
        _ => None,
    });
    facts.collect()
}

/// The answers that have this in their text.
fn answers(mirror: &Mirror, part: &str) -> Vec<Arc<Message>> {
    let received = |message: &Arc<Message>| message.direction == Direction::Received;
    let all = mirror.messages_since(0).into_iter().filter(received);
    all.filter(|message| message.text().contains(part)).collect()
}

#[tokio::test]
async fn messages_are_logged_as_they_passed_the_wire() {
    let rogue = Rogue::start(|call| match call.method.as_str() {
        "tools/list" => {
            let text = format!(
                r#"{{ "id":{}, "result" : {{"tools":[ {{"name":"odd"}} ], "new":1e2}},"jsonrpc":"2.0"}}"#,
                call.message["id"]
            );
            answer(StatusCode::OK, "application/json", text)
        }
        "tools/call" => {
            let result = json!({ "content": [{ "type": "text", "text": "x".repeat(5000) }] });
            let message = json!({ "jsonrpc": "2.0", "id": call.message["id"], "result": result });
            answer(StatusCode::OK, "text/event-stream", format!("data: {message}\n\n"))
        }
        "ping" => {
            let id = &call.message["id"];
            let text = format!("data: {{\"id\":{id},   \"result\":{{}},\"jsonrpc\":\"2.0\"}}\n\n");
            answer(StatusCode::OK, "text/event-stream", text)
        }
        _ => call.decent(&json!({ "tools": {} })),
    })
    .await;
    let mut config = config(Protocol::Legacy);
    (config.history, config.max_message) = (100, 2000);
    let (mirror, _) = connect(&rogue.url, config).await;
    let listed = answers(&mirror, r#""result" : {"tools":[ {"name":"odd"} ], "new":1e2}"#);
    assert_eq!(listed.len(), 1, "spaces, order, numbers and odd items are as they were sent");
    assert!(listed[0].took.is_some() && !listed[0].is_cut());
    assert_eq!(listed[0].json().unwrap()["result"]["tools"][0]["name"], "odd");
    within(mirror.ping()).await.unwrap();
    assert_eq!(answers(&mirror, r#"   "result":{},"#).len(), 1, "on a stream too");
    let failed = within(mirror.call_tool("odd", NO_ARGUMENTS)).await.unwrap_err();
    let too_large = mirror.history().pop().unwrap();
    assert!(too_large.is_cut() && too_large.length > 5000, "{failed}: {too_large:?}");
    assert_eq!((too_large.text(), too_large.json()), ("", None), "nothing of it was held");
    let asked = mirror.messages_since(0);
    let called = asked.iter().find(|message| message.text().contains("tools/call")).unwrap();
    assert_eq!((called.direction, called.length), (Direction::Sent, called.text().len()));
}

#[tokio::test]
async fn exchanges_streams_and_sessions_are_facts_without_secrets() {
    let plot = Plot::open().await;
    let mut config = config(Protocol::Legacy);
    config.history = 1000;
    let (mirror, _) = connect(&plot.url, config).await;
    mirror.close().await;
    let facts = facts(&mirror);
    let has = |wanted: &dyn Fn(&Happened) -> bool| facts.iter().any(wanted);
    let answered = |what: &Happened, wanted: &str| matches!(what, Happened::HttpAnswered { method, status: 200..=299, .. } if &**method == wanted);
    for method in ["POST", "GET", "DELETE"] {
        assert!(has(&|what| answered(what, method)), "{method}: {facts:?}");
    }
    assert!(has(&|what| matches!(what, Happened::SessionBegun { session } if session.len() < 16)));
    let by_us =
        |what: &Happened| matches!(what, Happened::SessionEnded { by: ClosedBy::Client, .. });
    assert!(has(&by_us), "{facts:?}");
    let streams: Vec<u64> = facts
        .iter()
        .filter_map(|what| match what {
            Happened::StreamOpened { stream, .. } => Some(*stream),
            _ => None,
        })
        .collect();
    for stream in streams {
        let closed = |what: &Happened| matches!(what, Happened::StreamClosed { stream: other, .. } if *other == stream);
        assert_eq!(facts.iter().filter(|what| closed(what)).count(), 1, "{stream}: {facts:?}");
    }
    let records = mirror.records_since(0);
    let numbers: Vec<_> = records.iter().map(Record::number).collect();
    assert!(numbers.iter().copied().eq(1..=records.len() as u64), "one timeline: {numbers:?}");
}

#[tokio::test]
async fn who_ends_a_stream_is_known() {
    for by in [ClosedBy::Server, ClosedBy::Nobody] {
        let rogue = Rogue::start(move |call| {
            if call.http != Method::GET {
                return call.decent(&json!({ "tools": { "listChanged": true } }));
            }
            let hello = stream::iter([Ok(": hello\n\n")]);
            let end = stream::once(async move {
                // The beginning is on its way before the end comes.
                tokio::task::yield_now().await;
                match by {
                    ClosedBy::Nobody => Err(std::io::Error::other("the cable is cut")),
                    _ => Ok(": bye\n\n"),
                }
            });
            let body = Body::from_stream(hello.chain(end));
            answer(StatusCode::OK, "text/event-stream", body)
        })
        .await;
        let mut config = config(Protocol::Legacy);
        config.history = 100;
        let (mirror, _) = connect(&rogue.url, config).await;
        let ended = within(async {
            let mut seen = 0;
            loop {
                let ended = facts(&mirror).into_iter().find_map(|what| match what {
                    Happened::StreamClosed { by, .. } => Some(by),
                    _ => None,
                });
                if let Some(ended) = ended {
                    return ended;
                }
                seen = mirror.messages_changed(seen).await;
            }
        });
        assert_eq!(ended.await, by);
    }
}

#[tokio::test]
async fn a_process_is_logged_from_its_start_to_its_end() {
    let mut config = config(Protocol::Auto);
    config.history = 100;
    let target = CommandTarget::run(PROGRAM, ["serve", "--demo", "--stdio"]);
    let mirror = within(Mirror::connect_with(target, config)).await.unwrap();
    within(mirror.close()).await;
    let facts = facts(&mirror);
    let [Happened::ProcessStarted { pid }, Happened::ProcessExited { pid: ended, status }] =
        &facts[..]
    else {
        panic!("{facts:?}")
    };
    assert_eq!((pid, status.as_deref()), (ended, Some("exit status: 0")));
}
