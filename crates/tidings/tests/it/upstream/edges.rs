//! Edges of what is relayed: late, large, long and odd answers.

use std::time::Duration;

use serde_json::{Value, json};

use super::actor::Actor;
use super::{Gateway, config};

#[tokio::test(start_paused = true)]
async fn progress_puts_the_end_of_a_silent_call_off_but_not_the_end_of_a_long_one() {
    let actor = Actor::live();
    let mut config = config("up", &actor);
    config.timeouts.call = Duration::from_secs(5);
    config.timeouts.most = Duration::from_secs(16);
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    let began = tokio::time::Instant::now();
    let params = json!({ "name": "up__hang", "_meta": { "progressToken": 1 } });
    let id = client.client.request("tools/call", params, false).await;
    actor.asked("tools/call", 1).await;
    let token = actor.last("tools/call").unwrap()["params"]["_meta"]["progressToken"].clone();
    for step in 1..=4 {
        tokio::time::sleep(Duration::from_secs(3)).await;
        let progress = json!({ "progressToken": token, "progress": step });
        actor.notify("notifications/progress", &progress);
    }
    let answer = client.client.wait(&json!({ "id": id })).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("did not finish within 16 s"), "{message}");
    assert_eq!(began.elapsed().as_secs(), 16);
    assert_eq!(client.heard().len(), 4);
    // After the end nobody hears of it.
    actor.notify("notifications/progress", &json!({ "progressToken": token, "progress": 9 }));
    gateway.settle().await;
    assert_eq!(client.heard(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_breaks_its_own_schema_is_relayed() {
    let actor = Actor::live();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let tool = json!({ "name": "act2", "inputSchema": {}, "outputSchema": schema });
    actor.add("tools", &tool.to_string());
    let gateway = Gateway::of(&actor).await;
    let wrong = json!({ "content": [], "structuredContent": { "n": "seven" } });
    for modern in [false, true] {
        let mut client = gateway.client(crate::support::client::Way::Stdio, modern).await;
        let answer = client.call("up__act2", json!({ "result": wrong.to_string() })).await;
        assert_eq!(answer["result"]["structuredContent"]["n"], "seven", "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn cached_content_is_promised_no_longer_and_to_no_more_than_by_the_server() {
    let actor = Actor::live().modern();
    let read = |scope: &str| {
        json!({ "resultType": "complete", "ttlMs": 5000, "cacheScope": scope,
            "contents": [{ "uri": "note://1", "text": scope }] })
        .to_string()
    };
    actor.world().contents.insert("note://1".to_owned(), read("public"));
    let gateway = Gateway::of(&actor).await;
    let (mut old, mut new) = (gateway.legacy().await, gateway.modern().await);
    let promised = |answer: &Value| {
        (answer["result"]["ttlMs"].as_u64(), answer["result"]["cacheScope"].clone())
    };
    let uri = json!({ "uri": "note://1" });
    let answer = new.ask("resources/read", uri.clone()).await;
    assert_eq!(promised(&answer), (Some(5000), json!("public")), "{answer}");
    // Watched content answers several readers: the later ones get less time.
    new.watch(&["note://1"]).await;
    gateway.settle().await;
    new.ask("resources/read", uri.clone()).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = new.ask("resources/read", uri.clone()).await;
    assert!(promised(&answer).0.unwrap() <= 5000, "{answer}");
    actor.world().contents.insert("note://1".to_owned(), read("private"));
    actor.updated("note://1");
    gateway.settle().await;
    let answer = new.ask("resources/read", uri.clone()).await;
    assert_eq!(promised(&answer).1, "private", "{answer}");
    let answer = old.ask("resources/read", uri).await;
    assert_eq!(answer["result"]["contents"][0]["text"], "private", "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_question_with_a_url_and_the_error_that_wants_one_pass() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let question = json!({ "mode": "url", "message": "Sign in", "url": "https://example.org/in", "elicitationId": "e1" });
    let params = json!({ "name": "up__ask", "arguments": { "params": question } });
    client.client.request("tools/call", params, false).await;
    let asked = client.client.wait(&json!({ "method": "elicitation/create" })).await;
    for (key, value) in question.as_object().unwrap() {
        assert_eq!(asked["params"][key], *value, "{asked}");
    }
    let accepted = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "action": "accept" } });
    client.client.send(accepted).await;
    gateway.settle().await;
    assert_eq!(actor.answer_to(1).unwrap()["result"]["action"], "accept");
    actor.finish(&actor.last("tools/call").unwrap()["id"], r#"{"content":[]}"#);
    let data = json!({ "elicitations": [question] });
    let error = json!({ "code": -32042, "message": "sign in first", "data": data });
    let answer = client.call("up__act", json!({ "error": error.to_string() })).await;
    assert_eq!(answer["error"], error);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_that_never_stops_asking_is_given_up() {
    let actor = Actor::live().modern();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let roots = json!({ "who": { "method": "roots/list", "params": {} } });
    let asked =
        json!({ "resultType": "input_required", "inputRequests": roots, "requestState": "s" });
    let params = json!({ "name": "up__act", "arguments": { "result": asked.to_string() } });
    let id = client.client.request("tools/call", params, false).await;
    for _ in 0..10 {
        let question = client.client.wait(&json!({ "method": "roots/list" })).await;
        let answer = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
        client.client.send(answer).await;
    }
    let answer = client.client.wait(&json!({ "id": id })).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("kept asking"), "{message}");
    assert_eq!(actor.count("tools/call"), 10);
}

#[tokio::test]
async fn fifty_megabytes_pass_and_what_is_too_large_says_how_large_it_may_be() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.client(crate::support::client::Way::Http, false).await;
    let blob = "QUJD".repeat((50 << 20) / 4);
    let content = json!({ "contents": [{ "uri": "note://1", "blob": blob }] }).to_string();
    actor.world().contents.insert("note://1".to_owned(), content);
    let answer = client.ask("resources/read", json!({ "uri": "note://1" })).await;
    let read = answer["result"]["contents"][0]["blob"].as_str().map(str::len);
    assert_eq!(read, Some(50 << 20), "{}", &answer.to_string()[..200]);
    let content = json!({ "contents": [{ "uri": "note://1", "text": "x".repeat(65 << 20) }] });
    actor.world().contents.insert("note://1".to_owned(), content.to_string());
    let answer = client.ask("resources/read", json!({ "uri": "note://1" })).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`up`") && message.contains("67108864 bytes"), "{message}");
    assert!(client.call("up__act", json!({})).await.get("result").is_some(), "and goes on");
}
