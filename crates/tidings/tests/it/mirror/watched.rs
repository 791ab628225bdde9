//! Watched resources of servers that are not perfect: many at once, hanging, gone, spelled otherwise,
//! and without a way to be announced.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{Method, Response, StatusCode};
use serde_json::{Value, json};
use tidings_mirror::events::Cause;
use tidings_mirror::{Event, NO_ARGUMENTS, Protocol, RequestError, RequestOptions, SubscribeError};
use tokio::sync::mpsc;

use super::{config, connect, content_changed, next, within};
use crate::support::rogue::{Call, Rogue, answer, event_stream, notice};

const URI: &str = "r://one";

fn resources() -> Value {
    json!({ "resources": { "subscribe": true, "listChanged": true } })
}

/// An answer that never comes.
fn silence() -> Response<Body> {
    let never = stream::pending::<Result<Bytes, std::io::Error>>();
    answer(StatusCode::OK, "application/json", Body::from_stream(never))
}

fn read(call: &Call, text: Option<&str>) -> Response<Body> {
    match text {
        Some(text) => {
            let uri = &call.message["params"]["uri"];
            call.result(&json!({ "contents": [{ "uri": uri, "text": text }] }))
        }
        None => call.error(-32002, "no such resource"),
    }
}

/// A legacy server with a stream, whose one text a test sets and announces.
struct Page {
    rogue: Rogue,
    text: Arc<Mutex<Option<&'static str>>>,
    stream: mpsc::Receiver<mpsc::Sender<String>>,
}

impl Page {
    async fn start() -> Self {
        let text = Arc::new(Mutex::new(Some("one")));
        let (streams, stream) = mpsc::channel(1);
        let shown = text.clone();
        let rogue = Rogue::start(move |call| match (&call.http, call.method.as_str()) {
            (&Method::GET, _) => {
                let (sender, answer) = event_stream();
                streams.try_send(sender).unwrap();
                answer
            }
            (_, "resources/read") => read(&call, *shown.lock().unwrap()),
            _ => call.decent(&resources()),
        })
        .await;
        Self { rogue, text, stream }
    }

    fn set(&self, text: Option<&'static str>) {
        *self.text.lock().unwrap() = text;
    }
}

async fn updated(stream: &mpsc::Sender<String>, uri: &str) {
    let event = notice("notifications/resources/updated", &json!({ "uri": uri }));
    stream.send(event).await.unwrap();
}

#[tokio::test]
async fn a_watched_resource_that_disappears_is_an_event_and_so_is_its_return() {
    let mut page = Page::start().await;
    let (mirror, mut events) = connect(&page.rogue.url, config(Protocol::Legacy)).await;
    within(mirror.read_resource(URI)).await.unwrap();
    within(mirror.subscribe([URI])).await.unwrap();
    let stream = within(page.stream.recv()).await.unwrap();
    page.set(None);
    updated(&stream, URI).await;
    let reason = next(&mut events, |event| match event {
        Event::ResourceGone { uri, reason, .. } if &*uri == URI => Some(reason),
        _ => None,
    })
    .await;
    assert_eq!(&*reason, "no such resource (-32002)");
    assert!(mirror.cache().resource(URI).is_none());
    page.set(Some("two"));
    updated(&stream, URI).await;
    let content = next(&mut events, |event| match event {
        Event::ResourceContentChanged { content, cause: Cause::Returned, .. } => Some(content),
        _ => None,
    })
    .await;
    assert_eq!(content.text(), "two");
}

#[tokio::test]
async fn a_server_may_spell_a_watched_uri_in_another_way() {
    let mut page = Page::start().await;
    let (mirror, mut events) = connect(&page.rogue.url, config(Protocol::Legacy)).await;
    let uri = "https://example.com";
    within(mirror.read_resource(uri)).await.unwrap();
    within(mirror.subscribe([uri])).await.unwrap();
    let stream = within(page.stream.recv()).await.unwrap();
    assert_eq!(content_changed(&mut events, uri).await, "one");
    page.set(Some("two"));
    updated(&stream, "https://example.com/").await;
    assert_eq!(content_changed(&mut events, uri).await, "two");
}

#[tokio::test]
async fn a_notice_means_every_spelling_that_is_watched() {
    let mut page = Page::start().await;
    let (mirror, mut events) = connect(&page.rogue.url, config(Protocol::Legacy)).await;
    let uris = ["https://example.com", "https://example.com/"];
    within(mirror.subscribe(uris)).await.unwrap();
    let stream = within(page.stream.recv()).await.unwrap();
    for uri in uris {
        within(mirror.read_resource(uri)).await.unwrap();
        assert_eq!(content_changed(&mut events, uri).await, "one");
    }
    page.set(Some("two"));
    updated(&stream, uris[1]).await;
    let mut told = BTreeSet::new();
    while told.len() < uris.len() {
        let two = next(&mut events, |event| match event {
            Event::ResourceContentChanged { uri, content, .. } if content.text() == "two" => {
                Some(uri)
            }
            _ => None,
        });
        told.insert(two.await);
    }
    // One that is left is still found by its other spelling.
    within(mirror.unsubscribe([uris[1]])).await.unwrap();
    page.set(Some("three"));
    updated(&stream, uris[1]).await;
    assert_eq!(content_changed(&mut events, uris[0]).await, "three");
}

#[tokio::test]
async fn what_is_watched_is_not_subscribed_to_again() {
    let page = Page::start().await;
    let (mirror, mut events) = connect(&page.rogue.url, config(Protocol::Legacy)).await;
    within(mirror.subscribe([URI, URI])).await.unwrap();
    within(mirror.subscribe([URI])).await.unwrap();
    let told = std::iter::from_fn(|| events.try_next());
    let news = told.filter(|event| matches!(event, Event::ResourceUpdated { .. }));
    assert_eq!(news.count(), 0, "nothing can have changed unseen");
    assert_eq!(page.rogue.asked("resources/subscribe"), 1);
}

/// A server that never answers a subscription to `r://0`.
async fn one_hangs() -> Rogue {
    Rogue::start(|call| match (&call.http, call.method.as_str()) {
        (&Method::GET, _) => {
            let (sender, answer) = event_stream();
            // It stays open with the server.
            std::mem::forget(sender);
            answer
        }
        (_, "resources/subscribe") if call.message["params"]["uri"] == "r://0" => silence(),
        _ => call.decent(&resources()),
    })
    .await
}

#[tokio::test]
async fn a_subscription_that_hangs_holds_up_no_other() {
    let rogue = one_hangs().await;
    let (mirror, mut events) = connect(&rogue.url, config(Protocol::Legacy)).await;
    let subscribing = mirror.subscribe((0..100).map(|number| format!("r://{number}")));
    let watched = next(&mut events, |event| match event {
        Event::SubscriptionsChanged { uris, .. } => Some(uris),
        _ => None,
    });
    tokio::select! {
        subscribed = subscribing => panic!("one hangs: {subscribed:?}"),
        watched = watched => assert_eq!(watched.len(), 99, "one event for all of them"),
    }
}

#[tokio::test]
async fn a_subscription_that_is_not_answered_is_refused_alone() {
    let rogue = one_hangs().await;
    let mut config = config(Protocol::Legacy);
    config.request_timeout = Duration::from_millis(500);
    let (mirror, _) = connect(&rogue.url, config).await;
    let error = within(mirror.subscribe(["r://0", "r://1"])).await.unwrap_err();
    let SubscribeError::Refused { refused } = error else { panic!("{error}") };
    assert!(matches!(&*refused, [(uri, _)] if &**uri == "r://0"), "{refused:?}");
    assert_eq!(mirror.subscriptions(), ["r://1".into()]);
}

#[tokio::test]
async fn subscribing_where_nothing_can_be_announced_fails() {
    let rogue = Rogue::start(|call| call.decent(&resources())).await;
    let (mirror, _) = connect(&rogue.url, config(Protocol::Legacy)).await;
    let error = within(mirror.subscribe([URI])).await.unwrap_err();
    assert!(error.to_string().contains("does not offer a stream"), "{error}");
    assert!(mirror.subscriptions().is_empty());
}

#[tokio::test]
async fn a_request_carries_its_meta_and_has_its_own_timeout() {
    let rogue = Rogue::start(|call| {
        let meta = call.message["params"]["_meta"]["example.com/trace"].to_string();
        match call.method.as_str() {
            "resources/read" => read(&call, Some(&meta)),
            "prompts/get" => {
                let said = json!({ "role": "user", "content": { "type": "text", "text": meta } });
                call.result(&json!({ "messages": [said] }))
            }
            "tools/call" if call.message["params"]["name"] == "slow" => silence(),
            "tools/call" => call.result(&json!({ "content": [{ "type": "text", "text": meta }] })),
            _ => call.decent(&json!({ "tools": {}, "resources": {}, "prompts": {} })),
        }
    })
    .await;
    let (mirror, _) = connect(&rogue.url, config(Protocol::Legacy)).await;
    let options = RequestOptions::new().meta("example.com/trace", 7);
    let traced = mirror.with(options.timeout(Duration::from_millis(200)));
    assert_eq!(within(traced.read_resource(URI)).await.unwrap().text(), "7");
    assert_eq!(within(traced.get_prompt("p", [("a", "b")])).await.unwrap().text(), "7");
    assert_eq!(within(traced.call_tool("t", [("a", 1)])).await.unwrap().text(), "7");
    assert_eq!(within(mirror.call_tool("t", NO_ARGUMENTS)).await.unwrap().text(), "null");
    let error = within(traced.call_tool("slow", NO_ARGUMENTS)).await.unwrap_err();
    assert!(matches!(error, RequestError::Timeout(_)), "{error}");
}

#[tokio::test]
async fn a_template_that_is_not_listed_is_read_only_if_that_is_wanted() {
    let rogue = Rogue::start(|call| match call.method.as_str() {
        "resources/templates/list" => {
            let template = json!({ "uriTemplate": "r://{name}", "name": "thing" });
            call.result(&json!({ "resourceTemplates": [template] }))
        }
        "resources/read" => read(&call, Some("hello")),
        _ => call.decent(&resources()),
    })
    .await;
    let (mirror, _) = connect(&rogue.url, config(Protocol::Legacy)).await;
    let read = within(mirror.read_from_template("r://{name}", [("name", "one")])).await.unwrap();
    assert_eq!((read.name.as_deref(), &*read.uri), (Some("thing"), URI));
    assert_eq!(mirror.cache().template("r://{name}").unwrap().name.as_deref(), Some("thing"));
    let other = "q://{name}";
    let error = within(mirror.read_from_template(other, [("name", "one")])).await.unwrap_err();
    assert!(matches!(error, RequestError::Unlisted(_)), "{error}");
    assert_eq!(rogue.asked("resources/read"), 1);
    let anyway = mirror.with(RequestOptions::new().unlisted_templates());
    let read = within(anyway.read_from_template(other, [("name", "one")])).await.unwrap();
    assert_eq!((read.name.clone(), read.text()), (None, "hello".to_owned()));
}

#[tokio::test]
async fn the_events_end_with_the_connection() {
    let rogue = Rogue::start(|call| call.decent(&resources())).await;
    let (mirror, mut events) = connect(&rogue.url, config(Protocol::Legacy)).await;
    within(mirror.close()).await;
    within(async { while events.next().await.is_some() {} }).await;
    assert!(within(mirror.events().next()).await.is_none());
}
