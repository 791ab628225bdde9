//! A thousand feeds, a tenth of them dead: nobody who reads waits for any of them.

use std::fmt::Write as _;

use axum::body::Body;
use axum::response::Response;
use serde_json::Value;

use super::press::Press;
use super::{news, serve};
use crate::support::piped::Server;

const FEEDS: usize = 1_000;

/// A list with all of them; every tenth is where nobody answers.
fn list(press: &Press, dead: &str) -> String {
    let mut text = "<opml version='2.0'><body>".to_owned();
    for number in 0..FEEDS {
        let url = match number % 10 {
            0 => format!("{dead}/{number}"),
            _ => press.url(&format!("/{number}")),
        };
        let _ = write!(text, "<outline text='{number}' xmlUrl='{url}'/>");
    }
    text + "</body></opml>"
}

/// An address of this machine where nobody listens any more.
async fn dead() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

async fn server(press: &Press) -> (Server, tempfile::TempDir) {
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("list.opml"), list(press, &dead().await)).unwrap();
    let arguments = "--opml list.opml --in-memory --allow-private";
    (serve(arguments, here.path()).await, here)
}

fn ids(all: &Value) -> Vec<&str> {
    all.as_array().unwrap().iter().map(|feed| feed["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_first_words_and_every_read_are_answered_before_any_feed_is() {
    let press = Press::start(|_| None).await;
    let (mut server, _here) = server(&press).await;
    let all = server.read("feeds://all").await;
    assert_eq!(ids(&all).len(), FEEDS);
    for id in ids(&all) {
        let error = server.try_read(&format!("feeds://feed/{id}/items")).await.unwrap_err();
        assert_eq!(error["code"], -32603, "{error}");
        assert_eq!(error["message"], "Resource temporarily unavailable");
    }
    // All are on one machine, which is asked for one thing at a time and does not answer.
    assert!(press.total() <= 1, "{}", press.total());
    press.until(1).await;
}

#[tokio::test]
async fn a_thousand_reads_ask_nobody() {
    // One feed is answered, and no other.
    let press = Press::start(|hit| {
        (hit.number == 0).then(|| Response::new(Body::from(news(&["two", "one"]))))
    })
    .await;
    let (mut server, _here) = server(&press).await;
    server.subscribe("feeds://all").await;
    let known = loop {
        let all = server.read("feeds://all").await;
        let known = all.as_array().unwrap().iter().find(|feed| feed["itemCount"] == 2);
        if let Some(feed) = known {
            break feed.clone();
        }
        server.told("feeds://all").await;
    };
    // The one that is asked next is not answered: from now on nobody else is asked.
    press.until(2).await;
    let url = known["publicUrl"].as_str().unwrap();
    let path = &url[url.rfind('/').unwrap()..];
    let id = known["id"].as_str().unwrap();
    for number in 0..FEEDS {
        let part = ["", "/meta", "/items", "/items?search=one"][number % 4];
        server.read(&format!("feeds://feed/{id}{part}")).await;
    }
    assert_eq!((press.count(path), press.total()), (1, 2));
}
