//! Sessions and streams belong to the token that opened them, and end with it.

use std::time::{Duration, SystemTime};

use axum::Router;
use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::json;
use tidings_server::http::{self as served, HttpConfig, Token, TokenEntry, TokenHash, Tokens};
use tidings_server::{Hub, Identity, Labels};
use tower::ServiceExt as _;

use crate::support::client::secret;

struct Site {
    router: Router,
    tokens: Tokens,
    hub: Hub,
}

fn entry(name: &str, change: impl FnOnce(&mut Identity)) -> TokenEntry {
    let hash = TokenHash::of(&Token::new(&secret(name)).unwrap());
    let mut identity = Identity::new(name, Labels::NONE);
    change(&mut identity);
    TokenEntry::new(hash, identity)
}

fn site(entries: Vec<TokenEntry>, anonymous: bool) -> Site {
    let hub = Hub::new("owned", "1");
    hub.source("all").unwrap().tool("any", "Is for everyone", || "done").unwrap();
    let mut config = HttpConfig::default();
    config.anonymous = anonymous;
    config.tokens.replace(entries);
    let tokens = config.tokens.clone();
    Site { router: served::router(&hub, config), tokens, hub }
}

impl Site {
    async fn ask(
        &self,
        method: Method,
        (who, session): (Option<&str>, Option<&str>),
        body: serde_json::Value,
    ) -> Response<Body> {
        let mut request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json");
        if let Some(name) = who {
            request = request.header("authorization", format!("Bearer {}", secret(name)));
        }
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(Body::from(body.to_string())).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }

    async fn begin(&self, who: Option<&str>) -> Result<String, StatusCode> {
        let info = json!({ "name": "test", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = self.ask(Method::POST, (who, None), hello).await;
        let session = answer.headers().get("mcp-session-id").ok_or(answer.status())?;
        Ok(session.to_str().unwrap().to_owned())
    }

    async fn status(&self, method: Method, who: Option<&str>, session: &str) -> u16 {
        let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
        self.ask(method, (who, Some(session)), list).await.status().as_u16()
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_is_unknown_to_every_token_but_its_own() {
    let site = site(vec![entry("ada", |_| {}), entry("bob", |_| {})], true);
    let session = site.begin(Some("ada")).await.unwrap();
    for method in [Method::POST, Method::GET, Method::DELETE] {
        for other in [Some("bob"), None] {
            assert_eq!(
                site.status(method.clone(), other, &session).await,
                404,
                "{method} {other:?}"
            );
        }
        // A token that is not known at all is refused before.
        assert_eq!(site.status(method.clone(), Some("eve"), &session).await, 401);
    }
    assert_eq!(site.status(Method::POST, Some("ada"), &session).await, 200);
    let nobodys = site.begin(None).await.unwrap();
    assert_eq!(site.status(Method::POST, Some("ada"), &nobodys).await, 404);
    assert_eq!(site.status(Method::POST, None, &nobodys).await, 200);
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_token_takes_its_sessions_along() {
    let site = site(vec![entry("ada", |_| {}), entry("bob", |_| {})], false);
    let (ada, bob) =
        (site.begin(Some("ada")).await.unwrap(), site.begin(Some("bob")).await.unwrap());
    let stream = site.ask(Method::GET, (Some("ada"), Some(&ada)), json!({})).await;
    assert_eq!(site.hub.inspect().listeners.len(), 2);
    site.tokens.replace(vec![entry("bob", |_| {})]);
    // The stream ends by itself, and the session is gone.
    stream.into_body().collect().await.unwrap();
    assert_eq!(site.hub.inspect().listeners.len(), 1);
    assert_eq!(site.status(Method::POST, Some("ada"), &ada).await, 401);
    assert_eq!(site.status(Method::POST, Some("bob"), &bob).await, 200);
    // The same secret under the same name is a new beginning: the old session does not return.
    site.tokens.replace(vec![entry("ada", |_| {}), entry("bob", |_| {})]);
    assert_eq!(site.status(Method::POST, Some("ada"), &ada).await, 404);
}

#[tokio::test]
async fn a_token_that_expires_takes_its_sessions_along() {
    let soon = SystemTime::now() + Duration::from_millis(300);
    let site =
        site(vec![entry("ada", |ada| ada.expires = Some(soon)), entry("bob", |_| {})], false);
    let session = site.begin(Some("ada")).await.unwrap();
    let stream = site.ask(Method::GET, (Some("ada"), Some(&session)), json!({})).await;
    stream.into_body().collect().await.unwrap();
    assert!(SystemTime::now() >= soon);
    assert_eq!(site.begin(Some("ada")).await, Err(StatusCode::UNAUTHORIZED));
    assert!(site.begin(Some("bob")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_token_has_its_own_limits() {
    let site =
        site(vec![entry("ada", |ada| ada.limits.sessions = Some(1)), entry("bob", |_| {})], false);
    let session = site.begin(Some("ada")).await.unwrap();
    assert_eq!(site.begin(Some("ada")).await, Err(StatusCode::SERVICE_UNAVAILABLE));
    assert!(site.begin(Some("bob")).await.is_ok());
    assert_eq!(site.status(Method::DELETE, Some("ada"), &session).await, 204);
    assert!(site.begin(Some("ada")).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_the_name_of_their_token() {
    let site = site(vec![entry("ada", |_| {})], false);
    site.begin(Some("ada")).await.unwrap();
    let metrics = site.hub.metrics();
    assert!(metrics.contains("tidings_token_requests_total{name=\"ada\"} 1"), "{metrics}");
    assert!(!metrics.contains(&secret("ada")), "a secret is never shown");
}
