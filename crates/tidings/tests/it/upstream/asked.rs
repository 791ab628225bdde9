//! Questions of servers: to the client whose call led to them, or to nobody, in both eras.

use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::model::{CallToolRequestParams, CallToolResponse};
use tidings_server::model::{CallToolResult, ContentBlock, InputRequiredResult, Tool};
use tidings_server::{Answer, AnswerError, Context, Hub, Source};

use super::actor::Actor;
use super::{Caller, Gateway, config, hub_target};

fn form() -> Value {
    let schema = json!({ "type": "object", "properties": { "who": { "type": "string" } } });
    json!({ "params": { "mode": "form", "message": "Who?", "requestedSchema": schema } })
}

/// Waits for a question to a legacy client, and answers it.
async fn answer(client: &mut Caller, method: &str, result: Value) -> Value {
    let question = client.client.wait(&json!({ "method": method })).await;
    client.client.send(json!({ "jsonrpc": "2.0", "id": question["id"], "result": result })).await;
    question
}

async fn begin(client: &mut Caller, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    client.client.request("tools/call", params, client.modern).await
}

#[tokio::test(start_paused = true)]
async fn a_question_reaches_the_client_whose_call_led_to_it() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let (mut client, mut other) = (gateway.legacy().await, gateway.legacy().await);
    let id = begin(&mut client, "up__ask", form()).await;
    let accepted = json!({ "action": "accept", "content": { "who": "me" } });
    let question = answer(&mut client, "elicitation/create", accepted.clone()).await;
    assert_eq!(question["params"]["message"], "Who?");
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"], accepted);
    // The user may take longer than a silent server may.
    tokio::time::sleep(Duration::from_secs(30)).await;
    actor.finish(&actor.last("tools/call").unwrap()["id"], r#"{"content":[]}"#);
    assert!(client.client.wait(&json!({ "id": id })).await.get("result").is_some());
    assert_eq!(other.heard(), [""; 0]);

    let sample = json!({ "method": "sampling/createMessage", "params": {
        "messages": [{ "role": "user", "content": { "type": "image", "data": "AAAA", "mimeType": "image/png" } }],
        "maxTokens": 9 } });
    begin(&mut client, "up__ask", sample).await;
    let said = json!({ "role": "assistant", "model": "own-model", "content": { "type": "text", "text": "a cat" } });
    let question = answer(&mut client, "sampling/createMessage", said).await;
    assert_eq!(question["params"]["messages"][0]["content"]["type"], "image");
    gateway.settle().await;
    assert_eq!(actor.answer_to(2).unwrap()["result"]["model"], "own-model");
}

#[tokio::test(start_paused = true)]
async fn a_look_that_runs_takes_no_question_from_a_call() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    gateway.settle().await;
    let reads = actor.count("resources/read");
    actor.world().hanging.insert("resources/read");
    actor.updated("note://1");
    actor.asked("resources/read", reads + 1).await;
    begin(&mut client, "up__ask", form()).await;
    let accepted = json!({ "action": "accept", "content": { "who": "me" } });
    answer(&mut client, "elicitation/create", accepted.clone()).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"], accepted);
    assert!(!gateway.status(0).one_at_a_time);
}

#[tokio::test(start_paused = true)]
async fn a_question_that_may_belong_to_two_calls_is_declined_and_from_then_on_there_is_one() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let (mut one, mut two) = (gateway.legacy().await, gateway.legacy().await);
    let hanging = begin(&mut one, "up__hang", json!({})).await;
    actor.asked("tools/call", 1).await;
    begin(&mut two, "up__ask", form()).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"]["action"], "decline");
    assert_eq!((one.heard(), two.heard()), (vec![], vec![]));
    assert!(gateway.status(0).one_at_a_time);
    let calls: Vec<Value> =
        actor.world().log.iter().filter(|it| it["method"] == "tools/call").cloned().collect();
    for call in &calls {
        actor.finish(&call["id"], r#"{"content":[]}"#);
    }
    one.client.wait(&json!({ "id": hanging })).await;
    gateway.settle().await;
    // Now the call that asks is alone, and the other waits for it.
    begin(&mut two, "up__ask", form()).await;
    actor.asked("tools/call", 3).await;
    begin(&mut one, "up__act", json!({})).await;
    answer(&mut two, "elicitation/create", json!({ "action": "cancel" })).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(2).unwrap()["result"]["action"], "cancel");
    assert_eq!(actor.count("tools/call"), 3, "one at a time");
    actor.finish(&actor.last("tools/call").unwrap()["id"], r#"{"content":[]}"#);
    actor.asked("tools/call", 4).await;
}

#[tokio::test(start_paused = true)]
async fn a_question_outside_any_call_is_declined() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    for (id, method) in
        [(70, "elicitation/create"), (71, "sampling/createMessage"), (72, "roots/list")]
    {
        let params = match method {
            "elicitation/create" => form()["params"].clone(),
            "sampling/createMessage" => json!({ "messages": [], "maxTokens": 1 }),
            _ => json!({}),
        };
        actor.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }
    gateway.settle().await;
    assert_eq!(actor.answer_to(70).unwrap()["result"]["action"], "decline");
    assert!(
        actor.answer_to(71).unwrap()["error"]["message"].as_str().unwrap().contains("no request")
    );
    assert_eq!(actor.answer_to(72).unwrap()["result"]["roots"], json!([]));
    assert_eq!(client.heard(), [""; 0]);
    assert!(!gateway.status(0).one_at_a_time);
    // What is declared does not depend on who is connected.
    let declared = &actor.last("initialize").unwrap()["params"]["capabilities"];
    assert!(["elicitation", "sampling", "roots"].iter().all(|it| declared.get(it).is_some()));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_cannot_be_asked_is_not() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.modern().await;
    let answer = client.call("up__ask", form()).await;
    assert_eq!(answer["error"]["code"], -32021, "{answer}");
    actor.asked("notifications/cancelled", 1).await;
}

#[tokio::test(start_paused = true)]
async fn roots_are_those_of_the_configuration_or_of_the_caller() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    begin(&mut client, "up__ask", json!({ "method": "roots/list" })).await;
    answer(&mut client, "roots/list", json!({ "roots": [{ "uri": "file:///mine" }] })).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"]["roots"][0]["uri"], "file:///mine");
    let actor = Actor::live();
    let mut config = config("up", &actor);
    config.roots = vec!["file:///shared".to_owned()];
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    begin(&mut client, "up__ask", json!({ "method": "roots/list" })).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"]["roots"][0]["uri"], "file:///shared");
}

#[tokio::test(start_paused = true)]
async fn a_modern_client_of_a_legacy_server_is_asked_by_the_answer_and_comes_back_once() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let (mut client, mut other) = (gateway.modern().await, gateway.modern().await);
    let capabilities = json!({ "elicitation": { "form": {} } });
    let meta = json!({ "io.modelcontextprotocol/clientCapabilities": capabilities });
    let params = json!({ "name": "up__ask", "arguments": form(), "_meta": meta });
    let asked = client.ask("tools/call", params.clone()).await;
    let result = &asked["result"];
    assert_eq!(result["resultType"], "input_required", "{asked}");
    assert_eq!(result["inputRequests"]["question"]["method"], "elicitation/create");
    let handle = result["requestState"].as_str().unwrap();
    let mut again = params.clone();
    again["requestState"] = json!(handle);
    again["inputResponses"] =
        json!({ "question": { "action": "accept", "content": { "who": "me" } } });
    // Another client with the handle gets nowhere, and ends nothing.
    let stolen = other.ask("tools/call", again.clone()).await;
    assert_eq!(stolen["error"]["code"], -32602, "{stolen}");
    let id = client.client.request("tools/call", again.clone(), true).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"]["content"]["who"], "me");
    actor.finish(
        &actor.last("tools/call").unwrap()["id"],
        r#"{"content":[{"type":"text","text":"done"}]}"#,
    );
    let answer = client.client.wait(&json!({ "id": id })).await;
    assert_eq!(answer["result"]["content"][0]["text"], "done");
    let replayed = client.ask("tools/call", again.clone()).await;
    assert_eq!(replayed["error"]["code"], -32602, "{replayed}");
    assert_eq!(actor.count("tools/call"), 1, "nothing is called twice");
    // A call whose client does not come back ends.
    let asked = client.ask("tools/call", params).await;
    tokio::time::sleep(Duration::from_mins(6)).await;
    actor.asked("notifications/cancelled", 1).await;
    again["requestState"] = asked["result"]["requestState"].clone();
    let late = client.ask("tools/call", again).await;
    assert_eq!(late["error"]["code"], -32602, "{late}");
}

/// A modern server whose tool asks before it answers.
struct Asking;

impl Source for Asking {
    async fn call(
        &self,
        request: CallToolRequestParams,
        _: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let Some(state) = request.request_state else {
            let questions =
                json!({ "who": { "method": "elicitation/create", "params": form()["params"] } });
            let asked = json!({ "resultType": "input_required", "inputRequests": questions, "requestState": "säal✓" });
            let asked: InputRequiredResult = serde_json::from_value(asked).unwrap();
            return Ok(asked.into());
        };
        let answers = request.input_responses.unwrap_or_default();
        let text = format!("{state} {}", answers["who"]["content"]["who"]);
        Ok(CallToolResult::success(vec![ContentBlock::text(text)]).into())
    }
}

#[tokio::test(start_paused = true)]
async fn rounds_of_a_modern_server_are_driven_for_a_legacy_client_and_passed_to_a_modern_one() {
    let hub = Hub::new("modern", "1");
    hub.add("asking", |shelf| {
        shelf.add(Tool::new("ask", "asks", serde_json::Map::new()))?;
        Ok(Asking)
    })
    .await
    .unwrap();
    let name = tidings_upstream::Name::parse("up").unwrap();
    let gateway = Gateway::with(tidings_upstream::Config::new(name, hub_target(&hub))).await;
    assert_eq!(gateway.status(0).version.as_deref(), Some("2026-07-28"));
    let mut legacy = gateway.legacy().await;
    let id = begin(&mut legacy, "up__ask", json!({})).await;
    let accepted = json!({ "action": "accept", "content": { "who": "me" } });
    answer(&mut legacy, "elicitation/create", accepted.clone()).await;
    let answer = legacy.client.wait(&json!({ "id": id })).await;
    assert_eq!(answer["result"]["content"][0]["text"], "säal✓ \"me\"");

    let mut modern = gateway.modern().await;
    let meta =
        json!({ "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } } });
    let asked = modern.ask("tools/call", json!({ "name": "up__ask", "_meta": meta })).await;
    assert_eq!(asked["result"]["requestState"], "säal✓", "{asked}");
    assert_eq!(asked["result"]["inputRequests"]["who"]["params"]["message"], "Who?");
    let answer = modern
        .ask(
            "tools/call",
            json!({ "name": "up__ask", "_meta": meta,
        "requestState": "säal✓", "inputResponses": { "who": accepted } }),
        )
        .await;
    assert_eq!(answer["result"]["content"][0]["text"], "säal✓ \"me\"");
    let refused = modern.call("up__ask", json!({})).await;
    assert_eq!(refused["error"]["code"], -32021, "{refused}");
}
