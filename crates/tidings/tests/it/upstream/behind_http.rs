//! Servers over HTTP: credentials that are refused, and arguments that are wanted in headers.

use std::sync::{Arc, Mutex};

use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tidings_mirror::{HttpTarget, Secret, TokenSource};
use tidings_upstream::{Config, Failure, Name, State};

use super::Gateway;
use crate::support::rogue::{Call, Rogue, answer};

/// What a decent modern server with these tools answers.
fn decent(call: &Call, tools: &Value) -> Response<Body> {
    let mut result = match call.method.as_str() {
        "server/discover" => json!({
            "supportedVersions": ["2026-07-28"], "capabilities": { "tools": {} },
        }),
        "tools/list" => json!({ "tools": tools }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "done" }] }),
        _ => return call.error(-32601, "Method not found"),
    };
    result["resultType"] = json!("complete");
    result["ttlMs"] = json!(0);
    result["cacheScope"] = json!("private");
    call.result(&result)
}

fn name() -> Name {
    Name::parse("up").unwrap()
}

#[tokio::test]
async fn arguments_that_a_tool_wants_in_headers_are_sent_there() {
    let region = json!({ "type": "string", "x-mcp-header": "Region" });
    let schema =
        json!({ "type": "object", "properties": { "region": region, "n": { "type": "integer" } } });
    let tools = json!([{ "name": "run", "inputSchema": schema }]);
    for isolate in [false, true] {
        let tools = tools.clone();
        let rogue = Rogue::start(move |call| decent(&call, &tools)).await;
        let mut config = Config::new(name(), rogue.url.as_str());
        config.isolate = isolate;
        let gateway = Gateway::with(config).await;
        for modern in [false, true] {
            let mut client = gateway.client(crate::support::client::Way::Stdio, modern).await;
            let answer = client.call("up__run", json!({ "region": "eu-1", "n": 2 })).await;
            assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
            let call = rogue.calls("tools/call").pop().unwrap();
            let sent = |name: &str| call.headers.get(name).map(|value| value.to_str().unwrap());
            assert_eq!(sent("mcp-param-region"), Some("eu-1"), "isolate: {isolate}");
            assert_eq!((sent("mcp-name"), sent("mcp-method")), (Some("run"), Some("tools/call")));
        }
    }
}

/// A server that takes one token at a time, and a source that has one.
struct Guarded {
    rogue: Rogue,
    /// The token that the server takes; empty if it forbids everything.
    taken: Arc<Mutex<String>>,
    /// The token that the source has, and how often it was asked for.
    had: Arc<Mutex<(String, usize)>>,
}

impl Guarded {
    async fn start() -> (Self, Config) {
        let taken = Arc::new(Mutex::new("token-number-one".to_owned()));
        let had = Arc::new(Mutex::new(("token-number-one".to_owned(), 0)));
        let wanted = taken.clone();
        let rogue = Rogue::start(move |call| {
            let taken = wanted.lock().unwrap();
            if taken.is_empty() {
                return answer(StatusCode::FORBIDDEN, "text/plain", "no");
            }
            if call.authorization.as_deref() != Some(&format!("Bearer {taken}")) {
                return answer(StatusCode::UNAUTHORIZED, "text/plain", "who are you?");
            }
            decent(&call, &json!([{ "name": "run", "inputSchema": { "type": "object" } }]))
        })
        .await;
        let mut target = HttpTarget::new(rogue.url.as_str());
        let asked = had.clone();
        target.token = Some(TokenSource::new(move || {
            let mut had = asked.lock().unwrap();
            had.1 += 1;
            std::future::ready(Some(Secret::new(had.0.as_str())))
        }));
        let config = Config::new(name(), target);
        (Self { rogue, taken, had }, config)
    }

    fn take(&self, token: &str) {
        token.clone_into(&mut self.taken.lock().unwrap());
    }

    fn have(&self, token: &str) {
        token.clone_into(&mut self.had.lock().unwrap().0);
    }

    fn uses(&self) -> usize {
        self.had.lock().unwrap().1
    }
}

#[tokio::test]
async fn a_token_that_expires_is_renewed_once_for_all_and_then_somebody_must_sign_in() {
    let (server, config) = Guarded::start().await;
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    assert!(client.call("up__run", json!({})).await.get("result").is_some());
    // A new token: nobody notices.
    let before = server.uses();
    server.take("token-number-two");
    server.have("token-number-two");
    let mut ids = Vec::new();
    for _ in 0..8 {
        ids.push(client.client.request("tools/call", json!({ "name": "up__run" }), false).await);
    }
    for id in ids {
        let answer = client.client.wait(&json!({ "id": id })).await;
        assert!(answer.get("result").is_some(), "{answer}");
    }
    assert_eq!(server.uses(), before + 1, "it is renewed once for all");
    assert_eq!(gateway.status(0).failure, None);
    // No new token: the call says so, and so does the health.
    server.take("token-number-three");
    let calls = server.rogue.asked("tools/call");
    let refused = client.call("up__run", json!({})).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`up`") && message.contains("(401)"), "{message}");
    assert_eq!(server.rogue.asked("tools/call"), calls + 2, "it is tried twice, and no more");
    let status = gateway.status(0);
    assert_eq!((status.state, status.failure), (State::Ready, Some(Failure::Unauthorized)));
    assert!(status.reason.unwrap().contains("(401)"));
    let metrics = gateway.hub.metrics();
    let line = "tidings_upstream_failure{source=\"up\",reason=\"unauthorized\"} 1.0\n";
    assert!(metrics.contains(line), "{metrics}");
    server.have("token-number-three");
    assert!(client.call("up__run", json!({})).await.get("result").is_some());
    assert_eq!(gateway.status(0).failure, None);
    for text in [refused.to_string(), metrics] {
        assert!(!text.contains("token-number"), "{text}");
    }
}

#[tokio::test]
async fn a_refusal_for_lack_of_rights_is_told_and_not_tried_again() {
    let (server, config) = Guarded::start().await;
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    server.take("");
    let calls = server.rogue.asked("tools/call");
    let refused = client.call("up__run", json!({})).await;
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.contains("`up`") && message.contains("(403)"), "{message}");
    assert_eq!(server.rogue.asked("tools/call"), calls + 1);
    assert_eq!(gateway.status(0).state, State::Ready);
}

#[tokio::test]
async fn a_server_that_lets_nobody_in_at_first_is_named_with_the_reason() {
    let (server, config) = Guarded::start().await;
    server.take("token-number-two");
    let mut gateway =
        Gateway { hub: tidings_server::Hub::new("gateway", "1"), upstreams: Vec::new() };
    gateway.join(config).await;
    gateway.until(|gateway| gateway.status(0).state == State::Down).await;
    let status = gateway.status(0);
    assert_eq!(status.failure, Some(Failure::Unauthorized), "{status:?}");
    assert!(status.failed_connections >= 1);
    server.have("token-number-two");
    gateway.until(|gateway| gateway.status(0).state == State::Ready).await;
    let metrics = gateway.hub.metrics();
    for line in [
        "tidings_upstream_state{source=\"up\",state=\"ready\"} 1.0\n",
        "tidings_upstream_state{source=\"up\",state=\"down\"} 0.0\n",
        "tidings_upstream_connections_total{source=\"up\"} 1.0\n",
        "tidings_upstream_next_try_seconds{source=\"up\"} 0.0\n",
    ] {
        assert!(metrics.contains(line), "{line} is not in {metrics}");
    }
    assert!(!metrics.contains("tidings_upstream_connections_failed_total{source=\"up\"} 0"));
}
