//! Connections and sessions that are taken and not used.

use std::time::Duration;

use serde_json::json;
use tidings_server::Hub;
use tidings_server::http::{self, HttpConfig};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tower::ServiceExt as _;

use super::{initialize, request, site};
use crate::support::client::post;
use crate::support::demo::within;

#[tokio::test]
async fn idle_connections_do_not_lock_out_a_new_client() {
    let site = site(|config| config.connections = 20).await;
    let session = site.session().await;
    let stream = format!(
        "GET /mcp HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\
         mcp-session-id: {session}\r\n\r\n"
    );
    let mut listening = site.connect(stream.as_bytes()).await;
    let mut head = [0; 12];
    within(listening.read_exact(&mut head)).await.unwrap();
    let mut hoard = Vec::new();
    for _ in 0..100 {
        hoard.push(site.connect(b"").await);
    }
    // Whoever comes now is served, each on a connection of its own.
    for _ in 0..5 {
        let client = crate::support::demo::http();
        let page = client.get(format!("http://{}/livez", site.address)).send();
        assert_eq!(within(page).await.unwrap().status(), 200);
    }
    assert!(site.figure("tidings_connections_turned_away_total") >= 80);
    assert!(site.figure("tidings_connections") <= 20);
    // The one with a stream was not closed for the others.
    assert_eq!(site.figure("tidings_sessions"), 1);
    let mut more = [0; 1];
    within(listening.read_exact(&mut more)).await.unwrap();
    drop(hoard);
    site.ended().await;
}

#[tokio::test]
async fn one_connection_cannot_take_all_sessions() {
    let site = site(|config| config.sessions = 20).await;
    let session = site.session().await;
    let list = request("tools/list", json!({}));
    assert_eq!(site.ask(Some(&session), &list).await.0, 200);
    for _ in 0..200 {
        let (status, _) = site.ask(None, &initialize()).await;
        assert_eq!(status, 200);
    }
    assert!(site.figure("tidings_sessions") <= 20);
    // Whoever used its session has it still: those that never did anything went first.
    assert_eq!(site.ask(Some(&session), &list).await.0, 200);
    site.ended().await;
}

#[tokio::test]
async fn what_an_initialize_says_is_kept_within_bounds() {
    let site = site(|_| {}).await;
    let mut hello = initialize();
    hello["params"]["capabilities"]["experimental"] =
        json!({ "x": { "rows": vec![json!({ "": 0 }); 1_000] } });
    let length = hello.to_string().len();
    assert!(length < 16 << 10, "{length}");
    let (status, body) = site.ask(None, &hello).await;
    assert_eq!((status, &body["error"]["code"]), (200, &json!(-32602)));
    assert_eq!(site.figure("tidings_sessions"), 0);
    site.ended().await;
}

#[tokio::test]
async fn a_call_whose_client_is_gone_is_dropped() {
    let site = site(|_| {}).await;
    let session = site.session().await;
    let call = request("tools/call", json!({ "name": "wait" }));
    for era in ["legacy", "modern"] {
        let asking = if era == "legacy" {
            site.post(Some(&session), call.to_string()).send()
        } else {
            site.modern("tools/call", json!({ "name": "wait" })).send()
        };
        tokio::select! {
            answer = asking => panic!("{era}: {answer:?}"),
            begun = site.laboratory.begun.acquire() => begun.unwrap().forget(),
        }
        within(site.laboratory.dropped.acquire()).await.unwrap().forget();
    }
    site.ended().await;
}

#[tokio::test]
async fn a_client_that_leaves_after_a_byte_too_many_is_gone_too() {
    let site = site(|_| {}).await;
    let session = site.session().await;
    let call = request("tools/call", json!({ "name": "wait" })).to_string();
    let head = super::head(call.len())
        .replace("\r\n\r\n", &format!("\r\nmcp-session-id: {session}\r\n\r\n"));
    for more in ["P", &"POST ".repeat(6_000)] {
        let mut socket = site.connect(format!("{head}{call}").as_bytes()).await;
        within(site.laboratory.begun.acquire()).await.unwrap().forget();
        within(socket.write_all(more.as_bytes())).await.unwrap();
        drop(socket);
        within(site.laboratory.dropped.acquire()).await.unwrap().forget();
    }
    // One that only sends ahead of the answer is served.
    let mut socket = site.connect(format!("{head}{call}{head}{call}").as_bytes()).await;
    within(site.laboratory.begun.acquire()).await.unwrap().forget();
    site.laboratory.released.add_permits(2);
    let mut answers = String::new();
    while answers.matches("done").count() < 2 {
        let mut part = [0; 4096];
        let length = within(socket.read(&mut part)).await.unwrap();
        assert_ne!(length, 0, "{answers}");
        answers.push_str(&String::from_utf8_lossy(&part[..length]));
    }
    site.ended().await;
}

#[tokio::test(start_paused = true)]
async fn a_session_that_never_did_anything_ends_after_a_minute() {
    let hub = Hub::new("laboratory", "1");
    let router = http::router(&hub, HttpConfig::default());
    let mut sessions = Vec::new();
    for _ in 0..2 {
        let hello = router.clone().oneshot(post(initialize().to_string())).await.unwrap();
        sessions.push(hello.headers()["mcp-session-id"].clone());
    }
    let list = || {
        let mut list = post(request("tools/list", json!({})).to_string());
        list.headers_mut().insert("mcp-session-id", sessions[0].clone());
        router.clone().oneshot(list)
    };
    assert_eq!(list().await.unwrap().status(), 200);
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert!(hub.metrics().contains("tidings_sessions 1"));
    assert_eq!(list().await.unwrap().status(), 200, "the one that was used is there");
}
