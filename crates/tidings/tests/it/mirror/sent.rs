//! Results and items as the server sent them, with what nobody knows yet.

use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use serde_json::{Value, json};
use tidings_mirror::{Item, List, NO_ARGUMENTS, Protocol};

use super::{config, connect, tools_changed, within};
use crate::support::rogue::{Call, Rogue, answer, tool};

/// What the server answers to a method that asks for something.
fn given(method: &str) -> Option<Value> {
    let text = json!({ "type": "text", "text": "hi", "shape": "round" });
    match method {
        "tools/call" => Some(json!({ "content": [text, { "type": "hologram" }], "new": 1 })),
        "resources/read" => {
            Some(json!({ "contents": [{ "uri": "a:b", "text": "hi", "shape": "round" }] }))
        }
        "prompts/get" => {
            Some(json!({ "messages": [{ "role": "user", "content": text, "mood": "good" }] }))
        }
        _ => None,
    }
}

async fn check(
    answered: impl Fn(&Call, &Value) -> axum::response::Response + Copy + Send + Sync + 'static,
) {
    let offered = json!({ "tools": {}, "resources": {}, "prompts": {} });
    let rogue = Rogue::start(move |call| match given(&call.method) {
        Some(result) => answered(&call, &result),
        None => call.decent(&offered),
    })
    .await;
    let (mirror, _) = connect(&rogue.url, config(Protocol::Legacy)).await;
    let called = within(mirror.call_tool("pay", NO_ARGUMENTS)).await.unwrap();
    assert_eq!(Some(called.raw()), given("tools/call"));
    assert_eq!(called.text(), "hi", "what is known is there as before");
    let kept = mirror.cache().tool_result("pay").unwrap();
    assert_eq!(Some(kept.raw()), given("tools/call"));
    let read = within(mirror.read_resource("a:b")).await.unwrap();
    assert_eq!(Some(read.raw()), given("resources/read"));
    let prompt = within(mirror.get_prompt("p", NO_ARGUMENTS)).await.unwrap();
    assert_eq!(Some(prompt.raw()), given("prompts/get"));
}

#[tokio::test]
async fn an_answer_in_one_body_is_there_as_it_was_sent() {
    check(Call::result).await;
}

#[tokio::test]
async fn an_answer_on_a_stream_is_there_as_it_was_sent() {
    check(|call, result| {
        let message = json!({ "jsonrpc": "2.0", "id": call.message["id"], "result": result });
        answer(StatusCode::OK, "text/event-stream", format!("data: {message}\n\n"))
    })
    .await;
}

/// What the server lists: fields that nobody knows, and an item that cannot be used between others.
fn listed(method: &str, mood: &str) -> Option<Value> {
    let mut known = tool("pay");
    known["mood"] = mood.into();
    Some(match method {
        "tools/list" => json!({ "tools": [tool("plain"), 5, known] }),
        "resources/list" => {
            json!({ "resources": [{ "uri": "a:b", "name": "b", "mood": mood }] })
        }
        "resources/templates/list" => {
            let template = json!({ "uriTemplate": "a:{b}", "name": "b", "mood": mood });
            json!({ "resourceTemplates": [template] })
        }
        "prompts/list" => json!({ "prompts": [{ "name": "p", "mood": mood }] }),
        _ => return None,
    })
}

#[tokio::test]
async fn items_of_lists_are_there_as_they_were_sent() {
    let offered = json!({ "tools": {}, "resources": {}, "prompts": {} });
    let mood = Arc::new(Mutex::new("good"));
    let now = mood.clone();
    let rogue = Rogue::start(move |call| {
        let mood = *now.lock().unwrap();
        listed(&call.method, mood).map_or_else(|| call.decent(&offered), |list| call.result(&list))
    })
    .await;
    let (mirror, mut events) = connect(&rogue.url, config(Protocol::Legacy)).await;
    let sent = |method: &str, key: &str| listed(method, "good").unwrap()[key].clone();
    let tools: Vec<_> = mirror.tools().iter().map(|tool| tool.raw()).collect();
    let all = sent("tools/list", "tools");
    assert_eq!(tools, [all[0].clone(), all[2].clone()], "what cannot be used is not listed");
    assert_eq!(mirror.resources()[0].raw(), sent("resources/list", "resources")[0]);
    let template = mirror.templates()[0].raw();
    assert_eq!(template, sent("resources/templates/list", "resourceTemplates")[0]);
    assert_eq!(mirror.prompts()[0].raw(), sent("prompts/list", "prompts")[0]);

    let plain: *const Item<_> = &raw const *mirror.tools()[0];
    *mood.lock().unwrap() = "bad";
    while events.try_next().is_some() {}
    within(mirror.refresh(&[List::Tools])).await.unwrap();
    let change = tools_changed(&mut events).await;
    let changed: Vec<_> =
        change.diff.changed.iter().map(|tool| tool.raw()["mood"].clone()).collect();
    assert_eq!(changed, ["bad"], "a field that nobody knows changed");
    assert!(std::ptr::eq(plain, &raw const *mirror.tools()[0]), "what is equal stays");
}
