//! Results as the server sent them, with what nobody knows yet.

use axum::http::StatusCode;
use serde_json::{Value, json};
use tidings_mirror::{NO_ARGUMENTS, Protocol};

use super::{config, connect, within};
use crate::support::rogue::{Call, Rogue, answer};

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
