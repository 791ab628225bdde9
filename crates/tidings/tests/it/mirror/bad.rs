//! Servers that do not behave, over real sockets: a clear error or a clear warning, and nobody hangs.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tidings_mirror::events::{ConnectionState, Warning};
use tidings_mirror::{
    Backoff, Config, ConnectError, Event, HttpTarget, List, Mirror, Protocol, RequestError, Secret,
    Target, TokenSource,
};
use tokio::sync::mpsc;

use super::{config, connect, next, state, text, tools_changed, within};
use crate::support::rogue::{Call, Rogue, answer, event_stream, notice, tool};

fn tools_only() -> Value {
    json!({ "tools": { "listChanged": true } })
}

fn legacy() -> Config {
    config(Protocol::Legacy)
}

async fn refused(url: &str, config: Config) -> ConnectError {
    let target = Target::Http(HttpTarget::new(url));
    match within(Mirror::connect_with(target, config)).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn a_page_of_the_web_is_not_a_server() {
    let rogue =
        Rogue::start(|_| answer(StatusCode::OK, "text/html", "<html>hello</html>".to_owned()))
            .await;
    for protocol in [Protocol::Auto, Protocol::Legacy, Protocol::Modern] {
        let error = refused(&rogue.url, config(protocol)).await;
        assert!(matches!(error, ConnectError::NotMcp(_)), "{error:?}");
        assert!(error.to_string().contains("text/html"), "{error}");
    }
}

#[tokio::test]
async fn a_path_that_does_not_exist_is_not_a_server() {
    let rogue =
        Rogue::start(|_| answer(StatusCode::NOT_FOUND, "text/plain", "no such page".to_owned()))
            .await;
    let error = refused(&rogue.url, config(Protocol::Auto)).await;
    assert!(matches!(error, ConnectError::NotMcp(_)), "{error:?}");
    assert!(error.to_string().contains("404"), "{error}");
}

#[tokio::test]
async fn a_port_where_nobody_listens_is_named_so() {
    let error = refused("http://127.0.0.1:1/mcp", legacy()).await;
    assert!(matches!(error, ConnectError::Unreachable(_)), "{error:?}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[tokio::test]
async fn an_address_that_is_none_is_refused_before_anything_is_sent() {
    for url in ["ftp://127.0.0.1/mcp", "nonsense", "http://"] {
        assert!(matches!(refused(url, legacy()).await, ConnectError::Url(_)), "{url}");
    }
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    let rogue = Rogue::start(|_| {
        answer(
            StatusCode::OK,
            "application/json",
            Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()),
        )
    })
    .await;
    let mut config = legacy();
    config.connect_timeout = Duration::from_millis(100);
    assert!(matches!(refused(&rogue.url, config).await, ConnectError::Timeout { .. }));
}

#[tokio::test]
async fn a_token_that_expired_is_asked_for_again() {
    let rogue = Rogue::start(|call| {
        if call.authorization.as_deref() == Some("Bearer new") {
            return call.decent(&tools_only());
        }
        answer(StatusCode::UNAUTHORIZED, "text/plain", String::new())
    })
    .await;
    let error = refused(&rogue.url, config(Protocol::Auto)).await;
    assert!(matches!(error, ConnectError::Unauthorized), "{error:?}");

    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let mut target = HttpTarget::new(rogue.url.clone());
    target.token = Some(TokenSource::new(move || {
        let old = count.fetch_add(1, Ordering::SeqCst) == 0;
        std::future::ready(Some(Secret::new(if old { "old" } else { "new" })))
    }));
    let mut config = legacy();
    config.history = 100;
    let mirror = within(Mirror::connect_with(Target::Http(target), config)).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 2, "once at first, once for the 401");
    let log = format!("{:?}", mirror.records_since(0));
    assert!(log.contains("HttpRetried"), "{log}");
    assert!(!log.contains("Bearer") && !log.contains("new\""), "no secret in {log}");
}

#[tokio::test]
async fn an_answer_over_the_limit_is_refused_without_being_taken_whole() {
    for kind in ["application/json", "text/event-stream"] {
        let rogue = Rogue::start(move |call| {
            if call.method != "tools/call" {
                return call.decent(&tools_only());
            }
            // Many megabytes, and no more than the limit of it is ever held.
            let head = if kind == "application/json" { "" } else { "data: " };
            let head = Bytes::from(format!("{head}{{\"jsonrpc\":\"2.0\",\"result\":\""));
            let piece = Bytes::from(vec![b'x'; 1 << 20]);
            let tail = Bytes::from(format!("\",\"id\":{}}}\n\n", call.message["id"]));
            let pieces = std::iter::repeat_n(piece, 20);
            let all = std::iter::once(head).chain(pieces).chain(std::iter::once(tail));
            let body = stream::iter(all.map(Ok::<_, std::io::Error>));
            answer(StatusCode::OK, kind, Body::from_stream(body))
        })
        .await;
        let mut config = legacy();
        config.max_message = 4 << 20;
        config.request_timeout = Duration::from_secs(10);
        let (mirror, _) = connect(&rogue.url, config).await;
        let error =
            within(mirror.call_tool("large", serde_json::Map::default())).await.unwrap_err();
        assert!(matches!(error, RequestError::TooLarge(_)), "{kind}: {error}");
        assert!(mirror.refresh(&[List::Tools]).await.is_ok(), "{kind}: it still works");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_before_the_answer_is_an_error() {
    let rogue = Rogue::start(|call| {
        if call.method != "tools/call" {
            return call.decent(&tools_only());
        }
        answer(StatusCode::OK, "text/event-stream", "data: {\"jsonrpc\":\"2.0\",\"id\":".to_owned())
    })
    .await;
    let mut config = legacy();
    config.request_timeout = Duration::from_secs(10);
    let (mirror, _) = connect(&rogue.url, config).await;
    let error = within(mirror.call_tool("broken", serde_json::Map::default())).await.unwrap_err();
    assert!(!matches!(error, RequestError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn an_answer_nobody_asked_for_harms_nobody() {
    let rogue = Rogue::start(|call| {
        if call.method != "tools/call" {
            return call.decent(&tools_only());
        }
        let result = |id: &Value, text: &str| {
            let result = json!({ "content": [{ "type": "text", "text": text }] });
            format!("data: {}\n\n", json!({ "jsonrpc": "2.0", "id": id, "result": result }))
        };
        let id = &call.message["id"];
        let both = result(id, "mine") + &result(id, "again") + &result(&json!(99_999), "nobody's");
        answer(StatusCode::OK, "text/event-stream", both)
    })
    .await;
    let (mirror, _) = connect(&rogue.url, legacy()).await;
    for _ in 0..3 {
        let outcome = within(mirror.call_tool("twice", serde_json::Map::default())).await.unwrap();
        let result = outcome.result.as_ref().unwrap();
        assert_eq!(result.content[0].as_text().unwrap().text, "mine");
    }
}

#[tokio::test]
async fn an_answer_to_another_question_is_an_error_at_once() {
    for kind in ["application/json", "text/event-stream"] {
        let rogue = Rogue::start(move |call| {
            if call.method != "tools/call" {
                return call.decent(&tools_only());
            }
            let other = json!({ "jsonrpc": "2.0", "id": 99_999, "result": { "content": [] } });
            let body = if kind == "application/json" {
                other.to_string()
            } else {
                format!("data: {other}\n\n")
            };
            answer(StatusCode::OK, kind, body)
        })
        .await;
        let (mirror, _) = connect(&rogue.url, legacy()).await;
        let error =
            within(mirror.call_tool("other", serde_json::Map::default())).await.unwrap_err();
        assert!(!matches!(error, RequestError::Timeout(_)), "{kind}: {error}");
    }
}

/// A rogue whose `page`th page of tools has so many new ones, and this cursor.
async fn paging(cursor: impl Fn(usize) -> String + Clone + Send + Sync + 'static) -> Rogue {
    let pages = Arc::new(AtomicUsize::new(0));
    Rogue::start(move |call| {
        if call.method != "tools/list" {
            return call.decent(&tools_only());
        }
        let page = pages.fetch_add(1, Ordering::SeqCst);
        let tools: Vec<_> = (0..100).map(|index| tool(&format!("t{page}-{index}"))).collect();
        call.result(&json!({ "tools": tools, "nextCursor": cursor(page) }))
    })
    .await
}

#[tokio::test]
async fn a_list_without_an_end_is_kept_as_far_as_it_was_read() {
    let cursors: [fn(usize) -> String; 4] = [
        |_| String::new(),
        |_| "again".to_owned(),
        |page| page.to_string(),
        |page| page.to_string(),
    ];
    let limits = [(10_000, 100), (10_000, 100), (10_000, 3), (250, 100)];
    let expected = [
        (200, 2, "the same cursor twice"),
        (200, 2, "the same cursor twice"),
        (300, 3, "more than 3 pages"),
        (250, 3, "more than 250 items"),
    ];
    for ((cursor, limits), (items, pages, reason)) in cursors.into_iter().zip(limits).zip(expected)
    {
        let rogue = paging(cursor).await;
        let mut config = legacy();
        (config.max_items, config.max_pages) = limits;
        let (mirror, mut events) = connect(&rogue.url, config).await;
        assert_eq!((mirror.tools().len(), rogue.asked("tools/list")), (items, pages), "{reason}");
        let told = next(&mut events, |event| match event {
            Event::Warning(Warning::ListCut { list: List::Tools, reason }) => Some(reason),
            _ => None,
        });
        let told = told.await;
        assert!(told.contains(reason), "{told}");
        assert_eq!(
            (mirror.incomplete(List::Tools), mirror.list_error(List::Tools).is_none()),
            (Some(told), true)
        );
    }
}

#[tokio::test]
async fn a_name_listed_twice_is_kept_once_and_told() {
    let rogue = Rogue::start(|call| {
        if call.method == "tools/list" {
            return call.result(&json!({ "tools": [tool("a"), tool("b"), tool("a")] }));
        }
        call.decent(&tools_only())
    })
    .await;
    let (mirror, mut events) = connect(&rogue.url, legacy()).await;
    assert_eq!(mirror.tools().len(), 2);
    let key = next(&mut events, |event| match event {
        Event::Warning(Warning::Duplicate { list: List::Tools, key }) => Some(key),
        _ => None,
    });
    assert_eq!(&*key.await, "a");
}

/// The stream of notices of a rogue: the test's end of it.
type Wire = Arc<Mutex<Option<mpsc::Sender<String>>>>;

/// A rogue with a stream of notices, and what else it answers.
async fn streaming(
    capabilities: Value,
    behave: impl Fn(&Call) -> Option<Response<Body>> + Clone + Send + Sync + 'static,
) -> (Rogue, Wire) {
    let wire = Wire::default();
    let theirs = wire.clone();
    let rogue = Rogue::start(move |call| {
        if let Some(answer) = behave(&call) {
            return answer;
        }
        if call.http == Method::GET {
            let (sender, answer) = event_stream();
            *theirs.lock().unwrap() = Some(sender);
            return answer;
        }
        call.decent(&capabilities)
    })
    .await;
    (rogue, wire)
}

fn tell(wire: &Wire, event: &str) {
    wire.lock().unwrap().as_ref().unwrap().try_send(event.to_owned()).unwrap();
}

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_thousand_notices_are_at_most_three_listings() {
    let (rogue, wire) = streaming(tools_only(), |_| None).await;
    // However slowly a busy machine takes them in, it is one burst.
    let mut config = legacy();
    (config.quiet, config.max_wait) = (Duration::from_millis(500), Duration::from_secs(10));
    let (mirror, _) = connect(&rogue.url, config).await;
    let before = rogue.asked("tools/list");
    for _ in 0..1000 {
        tell(&wire, &notice(TOOLS_CHANGED, &json!({})));
    }
    // The last one is behind all of them on the wire.
    let mut events = mirror.events();
    let log = json!({ "level": "info", "data": "that was all" });
    tell(&wire, &notice("notifications/message", &log));
    next(&mut events, |event| matches!(event, Event::Log { .. }).then_some(())).await;
    within(mirror.refresh(&[List::Tools])).await.unwrap();
    let listings = rogue.asked("tools/list") - before;
    assert!((1..=3).contains(&listings), "{listings} listings");
}

#[tokio::test]
async fn one_change_among_ten_thousand_is_one_change() {
    let version = Arc::new(AtomicUsize::new(0));
    let now = version.clone();
    let capabilities = json!({ "resources": { "listChanged": true } });
    let (rogue, wire) = streaming(capabilities, move |call| {
        (call.method == "resources/list").then(|| {
            let changed = now.load(Ordering::SeqCst);
            let resources: Vec<_> = (0..10_000)
                .map(|index| {
                    let title = if index == 7_000 { changed } else { 0 };
                    json!({ "uri": format!("r://{index}"), "name": "r", "title": title.to_string() })
                })
                .collect();
            call.result(&json!({ "resources": resources }))
        })
    })
    .await;
    let (_mirror, mut events) = connect(&rogue.url, legacy()).await;
    let change = |event| match event {
        Event::ResourcesChanged(change) => Some(change),
        _ => None,
    };
    assert_eq!(next(&mut events, change).await.diff.added.len(), 10_000);
    // Nothing moved: nothing is told.
    tell(&wire, &notice("notifications/resources/list_changed", &json!({})));
    version.store(1, Ordering::SeqCst);
    tell(&wire, &notice("notifications/resources/list_changed", &json!({})));
    let diff = next(&mut events, change).await.diff;
    assert_eq!((diff.added.len(), diff.removed.len(), diff.changed.len()), (0, 0, 1));
    assert_eq!(diff.changed[0].uri, "r://7000");
}

#[tokio::test]
async fn a_notice_for_what_nobody_watches_is_a_warning() {
    let capabilities = json!({ "resources": { "subscribe": true, "listChanged": true } });
    let (rogue, wire) = streaming(capabilities, |_| None).await;
    let (_mirror, mut events) = connect(&rogue.url, legacy()).await;
    for _ in 0..3 {
        tell(&wire, &notice("notifications/resources/updated", &json!({ "uri": "r://stranger" })));
    }
    let warning = |event| match event {
        Event::Warning(warning) => Some(warning),
        _ => None,
    };
    let first = next(&mut events, warning).await;
    assert_eq!(first, Warning::NotSubscribed { uri: "r://stranger".into(), count: 1 });
    assert_eq!(rogue.asked("resources/read"), 0);
}

#[tokio::test]
async fn a_list_that_cannot_be_loaded_again_stays_and_says_so() {
    let broken = Arc::new(AtomicUsize::new(0));
    let now = broken.clone();
    let (rogue, wire) = streaming(tools_only(), move |call| {
        (call.method == "tools/list").then(|| match now.load(Ordering::SeqCst) {
            0 => call.result(&json!({ "tools": [tool("a")] })),
            1 => call.error(-32603, "out of order"),
            _ => call.result(&json!({ "tools": [tool("a"), tool("b")] })),
        })
    })
    .await;
    let (mirror, mut events) = connect(&rogue.url, legacy()).await;
    assert_eq!(tools_changed(&mut events).await.items.len(), 1);
    broken.store(1, Ordering::SeqCst);
    tell(&wire, &notice(TOOLS_CHANGED, &json!({})));
    let change = tools_changed(&mut events).await;
    assert!(change.error.as_ref().unwrap().contains("out of order"));
    assert_eq!((change.items.len(), mirror.tools().len()), (1, 1), "the last good one stays");
    // It is tried again by itself.
    broken.store(2, Ordering::SeqCst);
    assert_eq!(tools_changed(&mut events).await.diff.added.len(), 1);
    assert!(mirror.list_error(List::Tools).is_none());
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_made_anew_with_its_subscriptions() {
    let session = Arc::new(AtomicUsize::new(1));
    let now = session.clone();
    let capabilities = json!({ "resources": { "subscribe": true } });
    let offered = capabilities.clone();
    let (rogue, _wire) = streaming(capabilities, move |call| {
        let current = format!("s{}", now.load(Ordering::SeqCst));
        if call.method == "initialize" {
            let mut answer = call.decent(&offered);
            answer.headers_mut().insert("mcp-session-id", current.parse().unwrap());
            return Some(answer);
        }
        if call.session.is_some() && call.session.as_deref() != Some(&current) {
            return Some(answer(StatusCode::NOT_FOUND, "text/plain", String::new()));
        }
        (call.method == "resources/read").then(|| {
            let contents = json!([{ "uri": "r://1", "text": current }]);
            call.result(&json!({ "contents": contents }))
        })
    })
    .await;
    let mut config = legacy();
    config.reconnect = Some(Backoff { first: Duration::from_millis(10), ..Backoff::default() });
    let (mirror, mut events) = connect(&rogue.url, config).await;
    within(mirror.read_resource("r://1")).await.unwrap();
    within(mirror.subscribe(&["r://1"])).await.unwrap();
    session.store(2, Ordering::SeqCst);
    within(mirror.ping()).await.unwrap_err();
    state(&mut events, |state| matches!(state, ConnectionState::Lost { .. })).await;
    state(&mut events, |state| *state == ConnectionState::Ready).await;
    let content = next(&mut events, |event| match event {
        Event::ResourceContentChanged { content, .. } => Some(text(&content.contents)),
        _ => None,
    });
    assert_eq!(content.await, "s2", "what was watched is read again");
    assert_eq!(rogue.asked("resources/subscribe"), 2);
    assert_eq!(mirror.subscriptions(), ["r://1".into()]);
}

#[tokio::test]
async fn a_stream_that_breaks_is_opened_again_and_everything_is_compared() {
    let version = Arc::new(AtomicUsize::new(0));
    let now = version.clone();
    let (rogue, wire) = streaming(tools_only(), move |call| {
        (call.method == "tools/list").then(|| {
            let name = format!("v{}", now.load(Ordering::SeqCst));
            call.result(&json!({ "tools": [tool(&name)] }))
        })
    })
    .await;
    let (mirror, mut events) = connect(&rogue.url, legacy()).await;
    tools_changed(&mut events).await;
    // The change is never announced: the stream breaks instead.
    version.store(1, Ordering::SeqCst);
    drop(wire.lock().unwrap().take());
    let change = tools_changed(&mut events).await;
    assert_eq!(change.diff.added[0].name, "v1");
    assert_eq!(mirror.connection(), ConnectionState::Ready, "the session is the same");
}

#[tokio::test]
async fn a_server_that_cannot_announce_says_so_once() {
    let rogue = Rogue::start(|call| call.decent(&tools_only())).await;
    let (_mirror, mut events) = connect(&rogue.url, legacy()).await;
    let warning = next(&mut events, |event| match event {
        Event::Warning(Warning::NoStream { reason }) => Some(reason),
        _ => None,
    });
    assert!(warning.await.contains("no stream"));
}

#[tokio::test]
async fn a_read_that_began_before_a_notice_is_followed_by_another() {
    let reads = Arc::new(AtomicUsize::new(0));
    let count = reads.clone();
    let capabilities = json!({ "resources": { "subscribe": true } });
    let wire_slot = Wire::default();
    let inner = wire_slot.clone();
    let (rogue, wire) = streaming(capabilities, move |call| {
        (call.method == "resources/read").then(|| {
            let read = count.fetch_add(1, Ordering::SeqCst);
            // The notice of the change overtakes the answer that does not have it yet.
            if read == 0
                && let Some(wire) = inner.lock().unwrap().as_ref()
            {
                let changed = notice("notifications/resources/updated", &json!({ "uri": "r://1" }));
                wire.try_send(changed).unwrap();
            }
            let contents = json!([{ "uri": "r://1", "text": read.to_string() }]);
            call.result(&json!({ "contents": contents }))
        })
    })
    .await;
    let (mirror, mut events) = connect(&rogue.url, legacy()).await;
    within(mirror.subscribe(&["r://1"])).await.unwrap();
    *wire_slot.lock().unwrap() = wire.lock().unwrap().clone();
    within(mirror.read_resource("r://1")).await.unwrap();
    let last = next(&mut events, |event| match event {
        Event::ResourceContentChanged { content, .. } if text(&content.contents) == "1" => Some(()),
        _ => None,
    });
    last.await;
}

#[tokio::test]
async fn nobody_waits_for_a_list_of_a_connection_that_is_over() {
    let listings = Arc::new(AtomicUsize::new(0));
    let count = listings.clone();
    let rogue = Rogue::start(move |call| {
        if call.method == "tools/list" && count.fetch_add(1, Ordering::SeqCst) > 0 {
            let never = stream::pending::<Result<Bytes, std::io::Error>>();
            return answer(StatusCode::OK, "application/json", Body::from_stream(never));
        }
        call.decent(&tools_only())
    })
    .await;
    let (mirror, _) = connect(&rogue.url, legacy()).await;
    let again = mirror.clone();
    let refresh = async { again.refresh(&[List::Tools]).await };
    let close = async {
        within(async {
            while listings.load(Ordering::SeqCst) < 2 {
                tokio::task::yield_now().await;
            }
        })
        .await;
        mirror.close().await;
    };
    let (refreshed, ()) = within(async { tokio::join!(refresh, close) }).await;
    assert!(matches!(refreshed, Err(RequestError::NotConnected(_))), "{refreshed:?}");
}

#[tokio::test]
async fn a_loss_while_subscriptions_are_restored_loses_none() {
    let session = Arc::new(AtomicUsize::new(1));
    let now = session.clone();
    let offered = json!({ "resources": { "subscribe": true } });
    let capabilities = offered.clone();
    let rogue = Rogue::start(move |call| {
        let number = now.load(Ordering::SeqCst);
        let current = format!("s{number}");
        if call.method == "initialize" {
            let mut answer = call.decent(&capabilities);
            answer.headers_mut().insert("mcp-session-id", current.parse().unwrap());
            return answer;
        }
        // The second session is forgotten while it is asked to watch.
        if call.method == "resources/subscribe" && number == 2 {
            now.store(3, Ordering::SeqCst);
            return answer(StatusCode::NOT_FOUND, "text/plain", String::new());
        }
        if call.session.is_some() && call.session.as_deref() != Some(&current) {
            return answer(StatusCode::NOT_FOUND, "text/plain", String::new());
        }
        if call.http == Method::GET {
            return event_stream_that_stays();
        }
        call.decent(&offered)
    })
    .await;
    let mut config = legacy();
    config.reconnect = Some(Backoff { first: Duration::from_millis(10), ..Backoff::default() });
    let (mirror, mut events) = connect(&rogue.url, config).await;
    within(mirror.subscribe(&["r://1"])).await.unwrap();
    session.store(2, Ordering::SeqCst);
    within(mirror.ping()).await.unwrap_err();
    for _ in 0..2 {
        state(&mut events, |state| matches!(state, ConnectionState::Lost { .. })).await;
        state(&mut events, |state| *state == ConnectionState::Ready).await;
    }
    next(&mut events, |event| matches!(event, Event::ResourceUpdated { .. }).then_some(())).await;
    assert_eq!(mirror.subscriptions(), ["r://1".into()]);
}

/// A stream on which nothing comes.
fn event_stream_that_stays() -> Response<Body> {
    let never = stream::pending::<Result<Bytes, std::io::Error>>();
    answer(StatusCode::OK, "text/event-stream", Body::from_stream(never))
}
