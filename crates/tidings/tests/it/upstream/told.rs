//! What a server is told of the client of a request, and what the client hears of it.

use ::http::StatusCode;
use serde_json::{Value, json};
use tidings_server::http::{self, HttpConfig};
use tokio::io::AsyncWriteExt as _;
use tower::ServiceExt as _;

use super::actor::Actor;
use super::{Caller, Gateway};
use crate::support::client::{Way, post};

const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Calls a tool that logs one line of this level. Returns the levels of the lines that were heard.
async fn logged(client: &mut Caller, level: &str, meta: Value) -> Vec<String> {
    let arguments = json!({ "level": level });
    let params = json!({ "name": "up__say", "arguments": arguments, "_meta": meta });
    let answer = client.ask("tools/call", params).await;
    assert!(answer.get("result").is_some(), "{answer}");
    let mut levels = Vec::new();
    while let Some(line) = client.client.take(&json!({ "method": "notifications/message" })) {
        levels.push(line["params"]["level"].as_str().unwrap().to_owned());
    }
    client.forget();
    levels
}

#[tokio::test(start_paused = true)]
async fn a_server_logs_as_much_as_one_client_wants_and_each_hears_its_own_share() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let (mut some, mut all) = (gateway.legacy().await, gateway.legacy().await);
    let mut new = gateway.modern().await;
    new.watch(&[]).await;
    new.forget();
    some.ask("logging/setLevel", json!({ "level": "warning" })).await;
    assert_eq!(logged(&mut some, "info", json!({})).await, [""; 0]);
    assert_eq!(logged(&mut some, "error", json!({})).await, ["error"]);
    assert_eq!(actor.count("logging/setLevel"), 0, "others may want more than one of them");
    all.ask("logging/setLevel", json!({ "level": "debug" })).await;
    assert_eq!(logged(&mut all, "debug", json!({})).await, ["debug"]);
    assert_eq!(logged(&mut all, "debug", json!({})).await, ["debug"]);
    assert_eq!(actor.count("logging/setLevel"), 1);
    assert_eq!(actor.last("logging/setLevel").unwrap()["params"]["level"], "debug");
    assert_eq!(logged(&mut some, "debug", json!({})).await, [""; 0], "it is not what it wants");
    assert_eq!(logged(&mut new, "error", json!({})).await, [""; 0], "it did not ask");
    assert_eq!(logged(&mut new, "error", json!({ LOG_LEVEL: "info" })).await, ["error"]);
    assert_eq!(logged(&mut new, "debug", json!({ LOG_LEVEL: "info" })).await, [""; 0]);
    assert_eq!((some.heard(), all.heard(), new.heard()), (vec![], vec![], vec![]));
    // A new connection begins anew.
    actor.lose();
    gateway.until(|gateway| gateway.status(0).connections == 2).await;
    assert_eq!(logged(&mut all, "debug", json!({})).await, ["debug"]);
    assert_eq!(actor.count("logging/setLevel"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_is_told_with_each_request_what_its_client_can_and_wants() {
    let actor = Actor::live().modern();
    let gateway = Gateway::of(&actor).await;
    let (mut old, mut new) = (gateway.legacy().await, gateway.modern().await);
    let told = |key: &str| actor.last("tools/call").unwrap()["params"]["_meta"][key].clone();
    assert_eq!(logged(&mut old, "info", json!({})).await, ["info"]);
    assert_eq!(told(LOG_LEVEL), "info", "it never said what it wants");
    assert!(told(CAPABILITIES).get("sampling").is_some(), "{}", told(CAPABILITIES));
    old.ask("logging/setLevel", json!({ "level": "debug" })).await;
    assert_eq!(logged(&mut old, "debug", json!({})).await, ["debug"]);
    assert_eq!(told(LOG_LEVEL), "debug");
    assert_eq!(logged(&mut new, "error", json!({})).await, [""; 0]);
    assert_eq!((told(LOG_LEVEL), told(CAPABILITIES)), (json!(null), json!({})));
    let can = json!({ "sampling": {}, "extensions": { "x/y": {} } });
    let meta = json!({ LOG_LEVEL: "warning", CAPABILITIES: can });
    assert_eq!(logged(&mut new, "error", meta).await, ["error"]);
    assert_eq!(told(LOG_LEVEL), "warning");
    assert_eq!(
        told(CAPABILITIES),
        json!({ "sampling": {} }),
        "what cannot be passed on is not declared"
    );
    assert_eq!(actor.count("logging/setLevel"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_nobody_asked_for_is_an_error_and_no_client_reaches_one() {
    let (old, new) = (Actor::live(), Actor::live().modern());
    let task = json!({ "taskId": "t1", "status": "working", "ttlMs": 1, "createdAt": "2026-01-01T00:00:00Z",
        "lastUpdatedAt": "2026-01-01T00:00:00Z" });
    let mut modern_task = task.clone();
    modern_task["resultType"] = json!("task");
    for (actor, result) in [(&old, json!({ "task": task })), (&new, modern_task)] {
        let gateway = Gateway::of(actor).await;
        for modern in [false, true] {
            let mut client = gateway.client(Way::Stdio, modern).await;
            let answer = client.call("up__act", json!({ "result": result.to_string() })).await;
            let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
            assert!(message.contains("`up` began a task"), "{message}");
            assert!(!answer.to_string().contains("t1"), "{answer}");
            for method in
                ["tasks/get", "tasks/cancel", "tasks/update", "tasks/result", "tasks/list"]
            {
                let params = json!({ "taskId": "t1", "inputResponses": {} });
                let refused = client.ask(method, params).await;
                assert!(refused["error"]["code"].is_i64(), "{refused}");
                assert_eq!(actor.count(method), 0, "{method}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_name_is_refused_with_names_like_it() {
    let actor = Actor::live();
    actor.add("tools", r#"{"name":"read_file","inputSchema":{}}"#);
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let renamed = r#"{"name":"read_text_file","inputSchema":{}}"#.to_owned();
    *actor.world().lists.get_mut("tools").unwrap().last_mut().unwrap() = renamed;
    actor.list_changed("tools");
    gateway.settle().await;
    let refused = client.call("up__read_file", json!({})).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    assert_eq!(refused["error"]["data"]["near"], json!(["up__read_text_file"]), "{refused}");
    let message = refused["error"]["message"].as_str().unwrap();
    assert_eq!(message, "Unknown tool: up__read_file; like it: `up__read_text_file`");
    assert_eq!(actor.count("tools/call"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_vanishes_cancels_its_call_if_it_is_modern_and_can_come_back_if_not() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let begin = async |modern| {
        let mut client = gateway.client(Way::Http, modern).await;
        let calls = actor.count("tools/call");
        let id = client.client.request("tools/call", json!({ "name": "up__hang" }), modern).await;
        actor.asked("tools/call", calls + 1).await;
        gateway.settle().await;
        client.client.cancel(id.as_i64().unwrap()).await;
        gateway.settle().await;
        client
    };
    let _legacy = begin(false).await;
    assert_eq!(actor.count("notifications/cancelled"), 0, "it may come back for the answer");
    let _modern = begin(true).await;
    actor.asked("notifications/cancelled", 1).await;
    let call = actor.last("tools/call").unwrap();
    let cancelled = actor.last("notifications/cancelled").unwrap();
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
}

/// The line that a server gets is compared as text: a value would hide what is lost.
#[tokio::test(start_paused = true)]
async fn arguments_arrive_as_the_client_sent_them() {
    const ARGUMENTS: &str = r#"{"z":1.50,"huge":123456789012345678901234567890,"a":[18446744073709551616,-0.0],"e":"\u00e9"}"#;
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28", CAPABILITIES: {} });
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{{"arguments":{ARGUMENTS},"_meta":{meta},"name":"up__act"}}}}"#
    );
    let mut wire = tidings_store::testing::Wire::to(gateway.hub.clone(), 1 << 16);
    wire.input.write_all(format!("{call}\n").as_bytes()).await.unwrap();
    assert!(wire.lines.next_line().await.unwrap().unwrap().contains("result"));
    let mut request = post(call);
    for (name, value) in [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "up__act"),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let router = http::router(&gateway.hub, HttpConfig::default());
    assert_eq!(router.clone().oneshot(request).await.unwrap().status(), StatusCode::OK);
    // A legacy session, and a body of several lines.
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "t", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello });
    let begun = router.clone().oneshot(post(hello.to_string())).await.unwrap();
    let session = begun.headers()["mcp-session-id"].clone();
    let call = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\n\"params\":{{\"name\":\"up__act\",\n\"arguments\":\n{ARGUMENTS}\n}}}}"
    );
    let mut request = post(call);
    request.headers_mut().insert("mcp-session-id", session);
    request.headers_mut().insert("mcp-protocol-version", "2025-11-25".parse().unwrap());
    let answer = router.oneshot(request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    actor.asked("tools/call", 3).await;
    let lines = actor.world().lines.clone();
    let sent = format!(r#""arguments":{ARGUMENTS}"#);
    let calls: Vec<_> = lines.iter().filter(|line| line.contains("tools/call")).collect();
    assert_eq!(calls.len(), 3);
    assert!(calls.iter().all(|line| line.contains(&sent)), "{calls:#?}");
}
