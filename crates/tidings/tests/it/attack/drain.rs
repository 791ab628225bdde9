//! A server that stops while requests are under way.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::{request, site};
use crate::support::demo::{Demo, program, within};

#[tokio::test]
async fn requests_under_way_end_and_no_new_work_is_taken() {
    let site = site(|_| {}).await;
    let session = site.session().await;
    let stream = site
        .client
        .get(format!("http://{}/mcp", site.address))
        .header("accept", "text/event-stream")
        .header("mcp-session-id", &session)
        .send();
    let stream = within(stream).await.unwrap();
    let call = request("tools/call", json!({ "name": "wait" }));
    let legacy = site.post(Some(&session), call.to_string()).send();
    let modern = site.modern("tools/call", json!({ "name": "wait" })).send();
    let stopping = async {
        site.laboratory.begun.acquire_many(2).await.unwrap().forget();
        assert_eq!(site.page("/readyz").await.0, 200);
        site.cancel.cancel();
        // Streams end properly at once.
        within(stream.text()).await.unwrap();
        let (status, page) = site.page("/readyz").await;
        assert_eq!(status, 503);
        assert!(page.contains("fail  serving") && page.contains("ok    hub"), "{page}");
        assert_eq!(site.page("/livez").await.0, 200);
        let (status, body) = site.ask(Some(&session), &request("tools/list", json!({}))).await;
        assert_eq!((status, &body["id"]), (503, &json!(7)));
        assert_eq!(body["error"]["message"], "Server is stopping");
        site.laboratory.released.add_permits(2);
    };
    let (legacy, modern, ()) = within(async { tokio::join!(legacy, modern, stopping) }).await;
    for answer in [legacy, modern] {
        let (status, body) = super::answer(answer.unwrap()).await;
        assert_eq!((status, &body["result"]["content"][0]["text"]), (200, &json!("done")));
    }
    site.ended().await;
}

#[tokio::test]
async fn a_download_under_way_is_sent_to_its_end() {
    let (parts, rest) = tokio::sync::mpsc::channel::<&'static str>(1);
    let rest = Arc::new(Mutex::new(Some(rest)));
    let download = move || {
        let mut rest = rest.lock().unwrap().take().unwrap();
        let parts = futures_util::stream::poll_fn(move |context| rest.poll_recv(context));
        async { Body::from_stream(parts.map(Ok::<_, Infallible>)) }
    };
    let site =
        site(|config| config.beside = Some(Router::new().route("/file", get(download)))).await;
    let asked = site.client.get(format!("http://{}/file", site.address)).send();
    let answer = within(asked).await.unwrap();
    parts.send("a part, ").await.unwrap();
    site.cancel.cancel();
    let readiness = async {
        while site.page("/readyz").await.0 == 200 {
            tokio::task::yield_now().await;
        }
    };
    within(readiness).await;
    // The server waits for the download, and answers whoever asks how it is meanwhile.
    for _ in 0..20 {
        let fresh = crate::support::demo::http().get(format!("http://{}/livez", site.address));
        assert_eq!(within(fresh.send()).await.unwrap().status(), 200);
    }
    parts.send("and the rest").await.unwrap();
    drop(parts);
    assert_eq!(within(answer.text()).await.unwrap(), "a part, and the rest");
    site.ended().await;
}

#[tokio::test]
async fn requests_that_take_too_long_are_answered_with_an_error() {
    let site = site(|config| config.drain = Duration::from_millis(100)).await;
    let session = site.session().await;
    let call = request("tools/call", json!({ "name": "wait" }));
    let legacy = site.post(Some(&session), call.to_string()).send();
    let modern = site.modern("tools/call", json!({ "name": "wait" })).send();
    let stopping = async {
        site.laboratory.begun.acquire_many(2).await.unwrap().forget();
        site.cancel.cancel();
    };
    let (legacy, modern, ()) = within(async { tokio::join!(legacy, modern, stopping) }).await;
    for answer in [legacy, modern] {
        let (status, body) = super::answer(answer.unwrap()).await;
        assert_eq!((status, &body["id"]), (503, &json!(7)), "{body}");
        assert_eq!(body["error"]["message"], "Server is stopping");
    }
    site.ended().await;
}

#[tokio::test]
async fn hanging_up_reads_the_token_again_and_ends_nothing() {
    let folder = crate::support::demo::folder("attack-token");
    let file = folder.join("token");
    std::fs::write(&file, "first-token-of-them-all\n").unwrap();
    let demo = Demo::start(&format!("--token-file {}", file.display())).await;
    let status = async |token: &str| {
        let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }).to_string();
        let request = crate::support::demo::http()
            .post(demo.url())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .bearer_auth(token)
            .body(ping);
        within(request.send()).await.unwrap().status().as_u16()
    };
    assert_eq!(status("first-token-of-them-all").await, 200);
    assert_eq!(status("second-token-of-them-all").await, 401);
    std::fs::write(&file, "second-token-of-them-all\n").unwrap();
    demo.signal("-HUP");
    let changed = async {
        while status("second-token-of-them-all").await != 200 {
            tokio::task::yield_now().await;
        }
    };
    within(changed).await;
    assert_eq!(status("first-token-of-them-all").await, 401);
    // A token that cannot be read changes nothing.
    std::fs::write(&file, "short").unwrap();
    demo.signal("-HUP");
    assert_eq!(status("second-token-of-them-all").await, 200);
}

#[tokio::test]
async fn requests_are_logged_as_json_without_secrets() {
    let mut command = program("serve --demo --http 127.0.0.1:0 --access-log --log-format json");
    command.env("TIDINGS_TOKEN", "a-token-that-is-long-enough");
    let mut child = command.spawn().unwrap();
    let mut lines = {
        use tokio::io::{AsyncBufReadExt as _, BufReader};
        BufReader::new(child.stdout.take().unwrap()).lines()
    };
    let first = within(lines.next_line()).await.unwrap().unwrap();
    let url = first.strip_prefix("listening on ").unwrap();
    let hello = super::initialize().to_string();
    let request = crate::support::demo::http()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .bearer_auth("a-token-that-is-long-enough")
        .body(hello);
    let answer = within(request.send()).await.unwrap();
    let session = answer.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let length = within(answer.bytes()).await.unwrap().len();
    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut log = String::new();
    within(child.stderr.take().unwrap().read_to_string(&mut log)).await.unwrap();
    let line = log.lines().find(|line| line.contains("\"initialize\"")).expect("a line for it");
    let line: Value = serde_json::from_str(line).unwrap();
    assert_eq!(line["http"], "POST");
    assert_eq!((&line["status"], &line["era"]), (&json!(200), &json!("legacy")));
    assert_eq!((&line["outcome"], &line["client"]), (&json!("answered"), &json!("127.0.0.1")));
    assert_eq!((&line["request"], &line["bytes"]), (&json!("1"), &json!(length)));
    assert_eq!(line["session"], session[..8]);
    assert!(!log.contains(&session) && !log.contains("long-enough"), "{log}");
}

#[tokio::test]
async fn a_stream_is_logged_when_it_ends() {
    let mut command = program("serve --demo --every 3600 --http 127.0.0.1:0 --access-log");
    let mut child = command.args(["--log-format", "json"]).spawn().unwrap();
    let mut lines = {
        use tokio::io::{AsyncBufReadExt as _, BufReader};
        BufReader::new(child.stdout.take().unwrap()).lines()
    };
    let first = within(lines.next_line()).await.unwrap().unwrap();
    let url = first.strip_prefix("listening on ").unwrap();
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let request = crate::support::demo::http()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "subscriptions/listen")
        .body(super::modern("subscriptions/listen", params).to_string());
    let mut answer = within(request.send()).await.unwrap();
    let mut length = within(answer.chunk()).await.unwrap().unwrap().len();
    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    while let Some(chunk) = within(answer.chunk()).await.unwrap() {
        length += chunk.len();
    }
    let mut log = String::new();
    within(child.stderr.take().unwrap().read_to_string(&mut log)).await.unwrap();
    let mut lines = log.lines().filter(|line| line.contains("subscriptions/listen"));
    let line: Value = serde_json::from_str(lines.next().expect("a line for it")).unwrap();
    assert_eq!((&line["status"], &line["bytes"]), (&json!(200), &json!(length)), "{line}");
    assert_eq!(lines.next(), None);
}
