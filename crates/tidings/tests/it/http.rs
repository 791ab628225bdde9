//! Streamable HTTP besides delivery: sessions, streams, guards and limits.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tidings_server::Hub;
use tidings_server::http::{self as server, HttpConfig, Token};
use tower::ServiceExt as _;

use crate::support::client::{post, whole};
use crate::support::garden::Garden;

struct Site {
    hub: Hub,
    router: Router,
    garden: Garden,
}

async fn site(change: impl FnOnce(&mut HttpConfig)) -> Site {
    let hub = Hub::new("garden", "1");
    let garden = Garden::default();
    hub.add("garden", |shelf| garden.clone().on(&shelf)).await.unwrap();
    let mut config = HttpConfig::default();
    change(&mut config);
    let router = server::router(&hub, config);
    Site { hub, router, garden }
}

impl Site {
    async fn ask(&self, request: Request<Body>) -> Response<Body> {
        self.router.clone().oneshot(request).await.unwrap()
    }

    /// Opens a session and returns its id.
    async fn session(&self) -> String {
        let (status, headers, _) = whole(self.ask(post(initialize("2025-11-25"))).await).await;
        assert_eq!(status, StatusCode::OK);
        let id = headers["mcp-session-id"].to_str().unwrap().to_owned();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.ask(of(&id, &ready)).await.status(), StatusCode::ACCEPTED);
        id
    }

    async fn call(&self, session: &str, id: i64, words: &str) -> Response<Body> {
        self.ask(of(session, &act(id, words))).await
    }

    async fn stream(&self, session: &str, last: Option<&str>) -> Events {
        let mut request = get(session);
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.parse().unwrap());
        }
        let answer = self.ask(request).await;
        assert_eq!(answer.status(), StatusCode::OK);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        assert_eq!(answer.headers()["x-accel-buffering"], "no");
        Events { body: answer.into_body(), text: String::new() }
    }
}

/// A stream, event by event.
struct Events {
    body: Body,
    text: String,
}

impl Events {
    /// The next event as it stands, or nothing at the end of the stream.
    async fn raw(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.text.find("\n\n") {
                return Some(self.text.drain(..end + 2).collect());
            }
            let frame: Bytes = self.body.frame().await?.unwrap().into_data().unwrap();
            self.text += std::str::from_utf8(&frame).unwrap();
        }
    }

    /// The next message.
    async fn message(&mut self) -> Option<Value> {
        loop {
            let event = self.raw().await?;
            let data = event.lines().find_map(|line| line.strip_prefix("data: "));
            if let Some(data) = data.filter(|data| !data.is_empty()) {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }

    /// The methods of the messages that come before nothing comes for a while.
    async fn methods(&mut self) -> Vec<String> {
        let mut methods = Vec::new();
        while let Ok(Some(message)) =
            tokio::time::timeout(Duration::from_secs(5), self.message()).await
        {
            methods.push(message["method"].as_str().unwrap_or("answer").to_owned());
        }
        methods
    }
}

fn initialize(version: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": version,
        "capabilities": { "roots": {} },
        "clientInfo": { "name": "it", "version": "1" },
    }})
    .to_string()
}

fn of(session: &str, message: &Value) -> Request<Body> {
    let mut request = post(message.to_string());
    request.headers_mut().insert("mcp-session-id", session.parse().unwrap());
    request
}

fn get(session: &str) -> Request<Body> {
    Request::get("/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header("mcp-session-id", session)
        .body(Body::empty())
        .unwrap()
}

fn delete(session: &str) -> Request<Body> {
    let request = Request::delete("/mcp").header("host", "localhost");
    request.header("mcp-session-id", session).body(Body::empty()).unwrap()
}

fn act(id: i64, words: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": { "name": "act", "arguments": { "words": words } } })
}

fn subscribe(id: i64, uri: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "resources/subscribe", "params": { "uri": uri } })
}

fn modern(id: &Value, method: &str, mut params: Value) -> Request<Body> {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let mut request = post(message.to_string());
    let headers = request.headers_mut();
    headers.insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    headers.insert("mcp-method", method.parse().unwrap());
    request
}

fn listen(id: &Value, uris: &[&str]) -> Request<Body> {
    modern(
        id,
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": uris } }),
    )
}

const TOOLS: &str = "notifications/tools/list_changed";
const PROMPTS: &str = "notifications/prompts/list_changed";
const RESOURCES: &str = "notifications/resources/list_changed";
const UPDATED: &str = "notifications/resources/updated";

#[tokio::test(start_paused = true)]
async fn what_happened_before_the_stream_opened_is_told_when_it_opens() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    site.ask(of(&id, &subscribe(2, "garden://gate"))).await;
    site.garden.act(&["water", "garden://gate", "3"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut stream = site.stream(&id, None).await;
    assert_eq!(stream.methods().await, [TOOLS, PROMPTS, RESOURCES, UPDATED]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_stream_keeps_its_session_and_what_is_dirty() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    site.ask(of(&id, &subscribe(2, "garden://gate"))).await;
    let mut stream = site.stream(&id, None).await;
    assert_eq!(stream.methods().await, [TOOLS, PROMPTS, RESOURCES]);
    drop(stream);
    site.garden.act(&["water", "garden://gate", "5"]).await;
    site.garden.act(&["add", "2"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut again = site.stream(&id, Some("s3")).await;
    let mut methods = again.methods().await;
    methods.sort();
    assert_eq!(methods, [UPDATED, TOOLS], "what is dirty, not a replay");
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_on_its_way_is_told_again_to_who_says_so() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    site.ask(of(&id, &subscribe(2, "garden://gate"))).await;
    let mut stream = site.stream(&id, None).await;
    assert_eq!(stream.methods().await, [TOOLS, PROMPTS, RESOURCES]);
    site.garden.act(&["water", "garden://gate"]).await;
    // The bytes are taken for the wire, and the connection breaks before the client has them.
    assert_eq!(stream.methods().await, [UPDATED]);
    drop(stream);
    let mut again = site.stream(&id, Some("s3")).await;
    assert_eq!(again.raw().await.unwrap(), "id: s4\nretry: 1000\ndata: \n\n");
    let event = again.raw().await.unwrap();
    assert!(event.starts_with("id: s5\n") && event.contains(UPDATED), "{event}");
    drop(again);
    let mut all_seen = site.stream(&id, Some("s5")).await;
    assert_eq!(all_seen.methods().await, [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn when_the_newest_stream_leaves_the_one_before_gets_the_notices() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let mut old = site.stream(&id, None).await;
    assert_eq!(old.methods().await.len(), 3);
    let new = site.stream(&id, None).await;
    site.garden.act(&["add", "1"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    drop(new);
    assert_eq!(old.methods().await, [TOOLS]);
    let _newer = site.stream(&id, None).await;
    site.ask(delete(&id)).await;
    let ended = tokio::time::timeout(Duration::from_millis(1), old.raw()).await;
    assert_eq!(ended.unwrap(), None, "every stream of a session ends with it, at once");
}

#[tokio::test(start_paused = true)]
async fn the_newest_stream_of_a_session_gets_the_notices() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let mut old = site.stream(&id, None).await;
    assert_eq!(old.methods().await.len(), 3);
    let mut new = site.stream(&id, None).await;
    site.garden.act(&["add", "1"]).await;
    assert_eq!(new.methods().await, [TOOLS]);
    assert_eq!(old.methods().await, [""; 0], "and the old one none, but it stays open");
    assert!(tokio::time::timeout(Duration::from_secs(20), old.raw()).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_has_comments() {
    let site = site(|config| config.keep_alive = Duration::from_secs(15)).await;
    let id = site.session().await;
    let mut stream = site.stream(&id, None).await;
    assert_eq!(stream.raw().await.unwrap(), "id: s0\nretry: 1000\ndata: \n\n");
    for _ in 0..3 {
        stream.raw().await.unwrap();
    }
    let begun = tokio::time::Instant::now();
    for round in 1..=3 {
        assert_eq!(stream.raw().await.unwrap(), ":\n\n");
        assert_eq!(begun.elapsed().as_secs(), 15 * round);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_does_not_delay_answers_of_its_session() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    site.ask(of(&id, &subscribe(2, "garden://gate"))).await;
    let _stalled = site.stream(&id, None).await;
    for round in 3..50 {
        let (status, _, answer) = whole(site.call(&id, round, "water garden://gate").await).await;
        assert_eq!((status, &answer["id"]), (StatusCode::OK, &json!(round)));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn invented_and_ended_sessions_are_not_found_and_create_nothing() {
    let site = site(|_| {}).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    for request in [of("invented", &list), get("invented"), delete("invented")] {
        assert_eq!(site.ask(request).await.status(), StatusCode::NOT_FOUND);
    }
    assert!(site.hub.metrics().contains("tidings_sessions 0"));
    let id = site.session().await;
    site.ask(of(&id, &subscribe(2, "garden://gate"))).await;
    assert!(site.hub.metrics().contains("tidings_subscriptions 1"));
    let mut stream = site.stream(&id, None).await;
    assert_eq!(site.ask(delete(&id)).await.status(), StatusCode::NO_CONTENT);
    assert_eq!(stream.methods().await.len(), 3, "what waited is still told");
    assert_eq!(stream.raw().await, None, "and then the stream ends");
    assert_eq!(site.ask(of(&id, &list)).await.status(), StatusCode::NOT_FOUND);
    let metrics = site.hub.metrics();
    assert!(metrics.contains("tidings_subscriptions 0") && metrics.contains("tidings_sessions 0"));
}

#[tokio::test(start_paused = true)]
async fn a_session_expires_when_nothing_is_heard_of_it_and_no_stream_is_open() {
    let site = site(|config| config.idle = Duration::from_mins(1)).await;
    let (quiet, open) = (site.session().await, site.session().await);
    site.ask(of(&quiet, &subscribe(2, "garden://gate"))).await;
    let mut stream = site.stream(&open, None).await;
    tokio::time::sleep(Duration::from_secs(200)).await;
    let list = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" });
    assert_eq!(site.ask(of(&quiet, &list)).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(site.ask(of(&open, &list)).await.status(), StatusCode::OK);
    assert!(site.hub.metrics().contains("tidings_subscriptions 0"));
    assert_eq!(stream.methods().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_left_a_question_unanswered_expires_too() {
    let site = site(|config| config.idle = Duration::from_mins(1)).await;
    let id = site.session().await;
    drop(site.call(&id, 7, "roots").await);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(site.hub.metrics().contains("tidings_sessions 0"));
}

#[tokio::test(start_paused = true)]
async fn a_client_says_only_so_much_of_itself() {
    let site = site(|_| {}).await;
    let long = initialize("2025-11-25").replace("\"it\"", &format!("\"{}\"", "x".repeat(30_000)));
    let (_, headers, body) = whole(site.ask(post(long)).await).await;
    assert_eq!(body["error"]["code"], -32602);
    assert!(!headers.contains_key("mcp-session-id"));
    let (status, _, _) = whole(site.ask(listen(&json!("x".repeat(300)), &[])).await).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_never_comes_whole_is_given_up() {
    let site = site(|_| {}).await;
    let never = Body::new(http_body_util::StreamBody::new(futures_util::stream::pending::<
        Result<http_body::Frame<Bytes>, std::io::Error>,
    >()));
    assert_eq!(site.ask(post(never)).await.status(), StatusCode::REQUEST_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_an_allowed_origin_can_use_the_server() {
    let site = site(|config| {
        config.origins = vec!["https://app.example".to_owned()];
        config.tokens = Token::new("0123456789abcdef").unwrap().into();
    })
    .await;
    let ask = |origin: &str| {
        let request = Request::options("/mcp").header("host", "localhost").header("origin", origin);
        request.body(Body::empty()).unwrap()
    };
    let allowed = site.ask(ask("https://app.example")).await;
    assert_eq!(allowed.status(), StatusCode::NO_CONTENT);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://app.example");
    let refused = site.ask(ask("https://other.example")).await;
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    assert!(!refused.headers().contains_key("access-control-allow-origin"));
    let mut hello = post(initialize("2025-11-25"));
    hello.headers_mut().insert("origin", "https://app.example".parse().unwrap());
    hello.headers_mut().insert("authorization", "Bearer 0123456789abcdef".parse().unwrap());
    let answer = site.ask(hello).await;
    assert_eq!(answer.headers()["access-control-allow-origin"], "https://app.example");
    let shown = answer.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(shown.contains("Mcp-Session-Id"));
}

#[tokio::test(start_paused = true)]
async fn one_server_of_a_hub_that_ends_leaves_the_others_alone() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let mut stream = site.stream(&id, None).await;
    assert_eq!(stream.methods().await.len(), 3);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let cancel = tokio_util::sync::CancellationToken::new();
    cancel.cancel();
    server::serve(&site.hub, listener, HttpConfig::default(), cancel).await.unwrap();
    site.garden.act(&["add", "1"]).await;
    assert_eq!(stream.methods().await, [TOOLS]);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_limited_and_the_limit_is_said() {
    let site = site(|config| config.sessions = 2).await;
    let (first, second) = (site.session().await, site.session().await);
    // A session with an open stream is not ended for another.
    let _open = (site.stream(&first, None).await, site.stream(&second, None).await);
    let (status, headers, body) = whole(site.ask(post(initialize("2025-11-25"))).await).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(headers.contains_key("retry-after") && !headers.contains_key("mcp-session-id"));
    assert_eq!((&body["id"], &body["error"]["message"]), (&json!(1), &json!("Too many sessions")));
    site.ask(delete(&first)).await;
    site.session().await;
}

#[tokio::test(start_paused = true)]
async fn a_server_asks_a_legacy_client_on_the_stream_of_its_request() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let mut streams = Vec::new();
    for request in [7, 8] {
        let answer = site.call(&id, request, "roots").await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        let mut events = Events { body: answer.into_body(), text: String::new() };
        let question = events.message().await.unwrap();
        assert_eq!(question["method"], "roots/list");
        streams.push((request, question["id"].clone(), events));
    }
    assert_ne!(streams[0].1, streams[1].1, "each question has an id of its own");
    for (request, question, mut events) in streams.into_iter().rev() {
        let root = json!([{ "uri": format!("file:///{request}") }]);
        let reply = json!({ "jsonrpc": "2.0", "id": question, "result": { "roots": root } });
        assert_eq!(site.ask(of(&id, &reply)).await.status(), StatusCode::ACCEPTED);
        let answer = events.message().await.unwrap();
        assert_eq!(answer["id"], request);
        assert_eq!(answer["result"]["content"][0]["text"], format!("file:///{request}"));
        assert_eq!(events.raw().await, None, "the answer ends the stream");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_lost_its_connection_goes_on_and_can_be_come_back_to() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let answer = site.call(&id, 7, "roots").await;
    let mut events = Events { body: answer.into_body(), text: String::new() };
    let priming = events.raw().await.unwrap();
    let seen = priming.lines().next().unwrap().strip_prefix("id: ").unwrap().to_owned();
    drop(events);
    let mut again = site.stream(&id, Some(&seen)).await;
    let question = again.message().await.unwrap();
    let reply = json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "roots": [] } });
    site.ask(of(&id, &reply)).await;
    assert_eq!(again.message().await.unwrap()["id"], 7);
    assert_eq!(again.raw().await, None);
    let mut gone = site.stream(&id, Some("c999-1")).await;
    assert_eq!(gone.raw().await, None, "an answer that is not kept is an empty stream");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_of_a_session_ends_without_an_answer() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 9 } });
    let before = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let (answer, cancelled) = tokio::join!(site.call(&id, 9, "slowly"), async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        site.ask(of(&id, &cancel)).await
    });
    assert_eq!(cancelled.status(), StatusCode::ACCEPTED);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let alive = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(alive <= before, "{alive} tasks, {before} before: its service has ended");
    let mut events = Events { body: answer.into_body(), text: String::new() };
    assert_eq!(events.message().await, None);
}

#[tokio::test(start_paused = true)]
async fn the_acknowledgement_comes_first_even_if_a_change_lands_meanwhile() {
    let site = site(|_| {}).await;
    let answer = site.ask(listen(&json!("listen:0"), &["garden://gate"])).await;
    site.garden.act(&["water", "garden://gate"]).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let mut events = Events { body: answer.into_body(), text: String::new() };
    let first = events.message().await.unwrap();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let second = events.message().await.unwrap();
    assert_eq!(second["method"], UPDATED);
    for message in [first, second] {
        let tag = &message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(tag, "listen:0", "the id verbatim");
    }
}

#[tokio::test(start_paused = true)]
async fn a_listen_that_is_closed_holds_nothing() {
    let site = site(|_| {}).await;
    let answer = site.ask(listen(&json!(1), &["garden://gate"])).await;
    assert!(site.hub.metrics().contains("tidings_subscriptions 1"));
    drop(answer);
    let metrics = site.hub.metrics();
    assert!(metrics.contains("tidings_subscriptions 0") && metrics.contains("tidings_listeners 0"));
}

#[tokio::test(start_paused = true)]
async fn streams_end_properly_when_the_hub_shuts_down() {
    let site = site(|_| {}).await;
    let id = site.session().await;
    let mut legacy = site.stream(&id, None).await;
    assert_eq!(legacy.methods().await.len(), 3);
    let answer = site.ask(listen(&json!(5), &["garden://gate"])).await;
    let mut modern = Events { body: answer.into_body(), text: String::new() };
    modern.message().await.unwrap();
    site.hub.shutdown().await;
    assert_eq!(legacy.raw().await, None);
    let last = modern.message().await.unwrap();
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(5), &json!("complete")));
    assert_eq!(last["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    assert_eq!(modern.raw().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_listen_with_too_many_uris_is_refused_as_a_whole() {
    let site = site(|_| {}).await;
    let uris: Vec<_> = (0..1001).map(|index| format!("garden://bed/{index}")).collect();
    let uris: Vec<_> = uris.iter().map(String::as_str).collect();
    let (_, _, body) = whole(site.ask(listen(&json!(1), &uris)).await).await;
    assert_eq!(body["error"]["code"], -32602);
    assert_eq!(body["error"]["data"]["parameter"], "resourceSubscriptions");
    let answer = site.ask(listen(&json!(1), &uris[..1000])).await;
    assert!(site.hub.metrics().contains("tidings_subscriptions 1000"));
    drop(answer);
}

#[tokio::test(start_paused = true)]
async fn modern_requests_are_checked_before_they_are_served() {
    let site = site(|_| {}).await;
    let mut wrong = modern(&json!(1), "tools/list", json!({}));
    wrong.headers_mut().insert("mcp-method", "prompts/list".parse().unwrap());
    let (status, _, body) = whole(site.ask(wrong).await).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(-32020)));

    let mut wrong = listen(&json!(2), &["garden://gate"]);
    wrong.headers_mut().remove("mcp-method");
    let (status, _, body) = whole(site.ask(wrong).await).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::BAD_REQUEST, &json!(-32020)));
    assert!(site.hub.metrics().contains("tidings_subscriptions 0"), "and nothing stays");

    let (status, _, body) = whole(site.ask(modern(&json!(3), "ping", json!({}))).await).await;
    assert_eq!((status, &body["error"]["code"]), (StatusCode::NOT_FOUND, &json!(-32601)));

    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": "listen:0" } });
    let mut notice = post(cancelled.to_string());
    notice.headers_mut().insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    assert_eq!(site.ask(notice).await.status(), StatusCode::ACCEPTED);

    let mut stream = get("any");
    stream.headers_mut().insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    assert_eq!(site.ask(stream).await.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn bad_requests_get_the_right_error() {
    let site = site(|config| config.body_limit = 1000).await;
    let check = async |body: Body, status: StatusCode, code: i64| {
        let (got, _, answer) = whole(site.ask(post(body)).await).await;
        assert_eq!((got, answer["error"]["code"].as_i64()), (status, Some(code)), "{answer}");
    };
    let bad = StatusCode::BAD_REQUEST;
    check("{".into(), bad, -32700).await;
    check("".into(), bad, -32700).await;
    check("[]".into(), bad, -32600).await;
    check("17".into(), bad, -32600).await;
    check(r#"{"id":1}"#.into(), bad, -32600).await;
    check(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.into(), bad, -32600).await;
    check(Body::from(vec![b'"', 0xff, b'"']), bad, -32700).await;
    check("[".repeat(500).into(), bad, -32700).await;
    check("x".repeat(1001).into(), StatusCode::PAYLOAD_TOO_LARGE, -32600).await;
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    check(list.into(), bad, -32600).await;
    let mut unknown = post(list);
    unknown.headers_mut().insert("mcp-protocol-version", "1999-01-01".parse().unwrap());
    assert_eq!(site.ask(unknown).await.status(), bad);
    let mut mismatch = post(initialize("2025-11-25"));
    mismatch.headers_mut().insert("mcp-protocol-version", "2025-06-18".parse().unwrap());
    assert_eq!(site.ask(mismatch).await.status(), bad);
    let mut text = post(list);
    text.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    assert_eq!(site.ask(text).await.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let mut picky = post(list);
    picky.headers_mut().insert("accept", "application/json".parse().unwrap());
    assert_eq!(site.ask(picky).await.status(), StatusCode::NOT_ACCEPTABLE);
    let put = Request::put("/mcp").header("host", "localhost").body(Body::empty()).unwrap();
    assert_eq!(site.ask(put).await.status(), StatusCode::METHOD_NOT_ALLOWED);
}

#[tokio::test(start_paused = true)]
async fn strangers_are_refused_before_anything_is_looked_at() {
    let site = site(|config| config.tokens = Token::new("0123456789abcdef").unwrap().into()).await;
    let mut rebound = post(initialize("2025-11-25"));
    rebound.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(site.ask(rebound).await.status(), StatusCode::FORBIDDEN);
    let mut page = post(initialize("2025-11-25"));
    page.headers_mut().insert("origin", "http://evil.example".parse().unwrap());
    assert_eq!(site.ask(page).await.status(), StatusCode::FORBIDDEN);
    let unknown = site.ask(post(initialize("2025-11-25"))).await;
    assert_eq!(unknown.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(unknown.headers()["www-authenticate"], "Bearer");
    let mut known = post(initialize("2025-11-25"));
    known.headers_mut().insert("authorization", "Bearer 0123456789abcdef".parse().unwrap());
    assert_eq!(site.ask(known).await.status(), StatusCode::OK);
    let path = |path: &str| Request::get(path).header("host", "localhost").body(Body::empty());
    assert_eq!(site.ask(path("/metrics").unwrap()).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(site.ask(path("/healthz").unwrap()).await.status(), StatusCode::OK);
}
