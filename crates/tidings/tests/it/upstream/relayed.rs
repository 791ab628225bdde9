//! Requests and answers that pass through as they are.

use serde_json::{Value, json};
use tidings_server::Hub;
use tidings_server::model::{Resource, Tool};

use super::actor::Actor;
use super::{Gateway, config};

/// Keys in an unusual order, numbers that no float holds, a kind of content that nobody knows.
const STRANGE: &str = r#"{"z":0.10,"content":[{"type":"hologram","b":1,"a":18446744073709551615,"huge":123456789012345678901234567890.10}],"structuredContent":null,"_meta":{"x/y":{"b":1,"a":[]}},"isError":true}"#;

#[tokio::test(start_paused = true)]
async fn what_nobody_knows_survives_in_results_items_and_errors() {
    let actor = Actor::live();
    let tool = r#"{"zebra":[1.0,2e3],"name":"scan","inputSchema":{"type":"object","properties":{"b":{},"a":{}}},"annotations":{"magic":18446744073709551616}}"#;
    actor.add("tools", tool);
    actor.world().contents.insert(
        "note://1".to_owned(),
        r#"{"contents":[{"uri":"note://1","text":"x","z":1.50}],"new":[18446744073709551616]}"#
            .to_owned(),
    );
    let gateway = Gateway::of(&actor).await;
    for modern in [false, true] {
        let mut client = gateway.client(crate::support::client::Way::Stdio, modern).await;
        let answer = client.call("up__act", json!({ "result": STRANGE })).await;
        let mut expected: Value = serde_json::from_str(STRANGE).unwrap();
        if modern {
            expected["resultType"] = json!("complete");
        }
        assert_eq!(answer["result"], expected, "a tool's failure is a result");
        let error = r#"{"message":"no","code":-32050,"data":{"b":1,"a":18446744073709551615}}"#;
        let answer = client.call("up__act", json!({ "error": error })).await;
        assert_eq!(answer["error"], serde_json::from_str::<Value>(error).unwrap());
        let answer = client.ask("resources/read", json!({ "uri": "note://1" })).await;
        assert_eq!(answer["result"]["contents"][0]["z"], json!(1.5), "{answer}");
        let answer = client.ask("resources/read", json!({ "uri": "up+note://9" })).await;
        let code = if modern { -32602 } else { -32002 };
        assert_eq!(answer["error"]["code"], code, "{answer}");
        let answer = client
            .ask(
                "completion/complete",
                json!({
                    "ref": { "type": "ref/prompt", "name": "up__none" },
                    "argument": { "name": "a", "value": "b" },
                }),
            )
            .await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    let listed = listed(&gateway.hub, "scan").await;
    assert_eq!(listed, tool.replace("\"scan\"", "\"up__scan\""), "byte for byte");
}

/// The text of a tool in the list of a hub, as it is sent.
async fn listed(hub: &Hub, name: &str) -> String {
    use tokio::io::AsyncWriteExt as _;
    let mut wire = tidings_store::testing::Wire::to(hub.clone(), 1 << 16);
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} } } });
    wire.input.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let line = wire.lines.next_line().await.unwrap().unwrap();
    let end = line.find(&format!("__{name}\"")).unwrap();
    let start = line[..end].rfind("{\"zebra").unwrap();
    let tail = line[end..].find("}}").unwrap() + end;
    let tail = line[tail..].find("18446744073709551616}}").map_or(tail, |more| tail + more + 20);
    line[start..tail + 2].to_owned()
}

#[tokio::test(start_paused = true)]
async fn prompts_and_completions_are_relayed_under_their_own_names() {
    let actor = Actor::live();
    actor.add("prompts", r#"{"name":"plan","arguments":[{"name":"who"}],"mood":1}"#);
    actor.add("resourceTemplates", r#"{"uriTemplate":"note://{id}","name":"note"}"#);
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("prompts").await, ["up__plan"]);
    let answer = client
        .ask("prompts/get", json!({ "name": "up__plan", "arguments": { "who": "me" } }))
        .await;
    assert_eq!(answer["result"]["messages"][0]["new"], 1, "{answer}");
    let asked = actor.last("prompts/get").unwrap();
    assert_eq!(asked["params"]["name"], "plan");
    assert_eq!(asked["params"]["arguments"]["who"], "me");
    for reference in [
        json!({ "type": "ref/prompt", "name": "up__plan" }),
        json!({ "type": "ref/resource", "uri": "note://{id}" }),
    ] {
        let answer = client
            .ask(
                "completion/complete",
                json!({
                    "ref": reference, "argument": { "name": "who", "value": "a" },
                    "context": { "arguments": { "other": "x" } },
                }),
            )
            .await;
        let expected = json!({ "values": ["ab"], "total": 18, "hasMore": true, "rank": [1.5] });
        assert_eq!(answer["result"]["completion"], expected);
        let asked = actor.last("completion/complete").unwrap();
        assert_eq!(asked["params"]["context"]["arguments"]["other"], "x");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_and_log_messages_reach_the_caller_before_the_result() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let mut other = gateway.legacy().await;
    let meta =
        json!({ "progressToken": "mine", "traceparent": "00-1", "io.modelcontextprotocol/x": 1 });
    let id = client
        .client
        .request("tools/call", json!({ "name": "up__say", "_meta": meta }), false)
        .await;
    client.client.wait(&json!({ "id": id })).await;
    let heard = client.client.rest();
    let progress: Vec<_> =
        heard.iter().filter(|it| it["method"] == "notifications/progress").collect();
    assert_eq!(progress.len(), 3, "{heard:?}");
    assert!(progress.iter().all(|it| it["params"]["progressToken"] == "mine"));
    let log = heard.iter().find(|it| it["method"] == "notifications/message").unwrap();
    assert_eq!(log["params"]["data"], json!({ "step": 3 }));
    assert_eq!(other.heard(), [""; 0]);
    let asked = actor.last("tools/call").unwrap();
    assert_eq!(asked["params"]["_meta"]["traceparent"], "00-1");
    assert_ne!(asked["params"]["_meta"]["progressToken"], "mine");
    assert!(asked["params"]["_meta"].get("io.modelcontextprotocol/x").is_none());
}

#[tokio::test(start_paused = true)]
async fn equal_ids_and_tokens_of_two_clients_are_told_apart() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let (mut one, mut two) = (gateway.legacy().await, gateway.legacy().await);
    let params = |text: &str| {
        json!({
            "name": "up__say", "_meta": { "progressToken": 7 },
            "arguments": { "result": json!({ "content": [{ "type": "text", "text": text }] }).to_string() },
        })
    };
    let first = one.client.request("tools/call", params("one"), false).await;
    let second = two.client.request("tools/call", params("two"), false).await;
    assert_eq!(first, second, "both clients count alike");
    for (client, text) in [(&mut one, "one"), (&mut two, "two")] {
        let answer = client.client.wait(&json!({ "id": first })).await;
        assert_eq!(answer["result"]["content"][0]["text"], text);
        let progress = client.heard().into_iter().filter(|it| it == "progress").count();
        assert_eq!(progress, 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_is_cancelled_at_its_server_by_its_own_id() {
    let (actor, bystander) = (Actor::live(), Actor::live());
    let mut gateway = Gateway::of(&actor).await;
    gateway.join(config("other", &bystander)).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    let id = client.client.request("tools/call", json!({ "name": "up__hang" }), false).await;
    actor.asked("tools/call", 1).await;
    client.client.cancel(id.as_i64().unwrap()).await;
    actor.asked("notifications/cancelled", 1).await;
    let asked = actor.last("tools/call").unwrap();
    assert_eq!(actor.last("notifications/cancelled").unwrap()["params"]["requestId"], asked["id"]);
    assert_eq!(bystander.count("notifications/cancelled"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_dies_during_a_call_is_named_and_nothing_is_sent_again() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let answer = client.call("up__die", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`up`") && message.contains("may have done"), "{message}");
    gateway.settle().await;
    assert_eq!(actor.count("tools/call"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_although_its_tool_is_removed_meanwhile() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let id = client.client.request("tools/call", json!({ "name": "up__hang" }), false).await;
    actor.asked("tools/call", 1).await;
    actor.world().lists.get_mut("tools").unwrap().retain(|tool| !tool.contains("hang"));
    actor.list_changed("tools");
    gateway.settle().await;
    assert_eq!(client.heard(), ["tools/list_changed"]);
    actor.finish(&actor.last("tools/call").unwrap()["id"], r#"{"content":[]}"#);
    let answer = client.client.wait(&json!({ "id": id })).await;
    assert_eq!(answer["result"]["content"], json!([]));
    let answer = client.call("up__hang", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_too_long_in_all_is_given_up() {
    let actor = Actor::live();
    let mut config = config("up", &actor);
    config.timeouts.call = std::time::Duration::from_secs(10);
    config.timeouts.most = std::time::Duration::from_secs(5);
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    let answer = client.call("up__hang", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("within 5 s"), "{message}");
    actor.asked("notifications/cancelled", 1).await;
}

#[tokio::test(start_paused = true)]
async fn links_in_results_can_be_read_whether_they_are_listed_or_not() {
    let (actor, other) = (Actor::live(), Actor::live());
    actor.resource("note://both", "mine");
    other.resource("note://both", "theirs");
    actor.set("note://unlisted", "found");
    let mut gateway = Gateway { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
    let neighbours = tidings_upstream::Neighbours::default();
    for (rank, (name, server)) in [("first", &other), ("up", &actor)].into_iter().enumerate() {
        let mut config = config(name, server);
        (config.rank, config.neighbours) = (rank, neighbours.clone());
        gateway.join(config).await;
    }
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.text("note://unlisted").await, -32002);
    let links = json!({ "content": [
        { "type": "resource_link", "uri": "note://both", "name": "b" },
        { "type": "resource_link", "uri": "note://unlisted", "name": "u" },
    ] });
    let answer = client.call("up__act", json!({ "result": links.to_string() })).await;
    let uris: Vec<_> =
        (0..2).map(|at| answer["result"]["content"][at]["uri"].as_str().unwrap()).collect();
    assert_eq!(uris, ["up+note://both", "note://unlisted"]);
    assert_eq!(client.text("up+note://both").await, "mine");
    assert_eq!(client.text("note://both").await, "theirs");
    assert_eq!(client.text("note://unlisted").await, "found");
    assert_eq!(client.text("up+note://unlisted").await, "found");
    // Another that gives the same link does not take it over.
    other.set("note://unlisted", "another");
    let answer = client.call("first__act", json!({ "result": links.to_string() })).await;
    assert_eq!(answer["result"]["content"][1]["uri"], "first+note://unlisted");
    assert_eq!(client.text("note://unlisted").await, "found");
    assert_eq!(client.text("first+note://unlisted").await, "another");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_comes_back_is_refused() {
    let hub = Hub::new("gateway", "1");
    let target = super::hub_target(&hub);
    hub.source("own").unwrap().add(Tool::new("t", "a tool", serde_json::Map::new())).unwrap();
    hub.source("more").unwrap().add(Resource::new("x://1", "one")).unwrap();
    let mut config =
        tidings_upstream::Config::new(tidings_upstream::Name::parse("me").unwrap(), target);
    config.timeouts.connect = std::time::Duration::from_secs(5);
    let mut gateway = Gateway { hub, upstreams: Vec::new() };
    gateway.join(config).await;
    for _ in 0..20 {
        gateway.settle().await;
    }
    let mut client = gateway.modern().await;
    let tools = client.names("tools").await;
    assert_eq!(tools, ["me__t", "t"], "lists do not grow without end");
    assert_eq!(client.names("resources").await, ["me+x://1", "x://1"]);
    let answer = client.ask("resources/read", json!({ "uri": "me+me+x://1" })).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("came back through `me`"), "{message}");
}
