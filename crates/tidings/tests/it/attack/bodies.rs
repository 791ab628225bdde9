//! Bodies that cost more than they weigh, that never end, and answers that nobody reads.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;

use super::{LARGE, head, request, site};
use crate::support::demo::{Demo, within};

/// Seven bytes that become more than six hundred.
const BOMB: &str = r#"{"":0},"#;

/// The most memory that the process had, in bytes.
fn peak(demo: &Demo) -> usize {
    demo.memory("VmHWM:")
}

fn bomb(length: usize) -> String {
    format!("[{}0]", BOMB.repeat(length / BOMB.len()))
}

/// A call of 4 MB that is only just accepted.
fn heaviest() -> String {
    let row = format!(r#"{{"id":1,"text":"{}"}},"#, "a row of some length ".repeat(6));
    let rows = format!("[{}0]", row.repeat(4_000_000 / row.len()));
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"x","arguments":{{"a":{rows}}}}}}}"#
    )
}

async fn ask(demo: &Demo, body: String, headers: &[(&str, &str)]) -> u16 {
    let mut request = crate::support::demo::http()
        .post(demo.url())
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    within(request.send()).await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_body_bomb_takes_ten_times_its_length_at_most() {
    let demo = Demo::start("--every 3600").await;
    let ping = request("ping", json!({})).to_string();
    assert_eq!(ask(&demo, ping.clone(), &[]).await, 200);
    let length = 4_000_000;
    let of = |inner: &str| inner.replace("BOMB", &bomb(length));
    let call = r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","arguments":{"a":BOMB}}}"#;
    let list = r#"{"jsonrpc":"2.0","id":7,"method":"tools/list","params":{"a":BOMB}}"#;
    let hello = r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"capabilities":{"experimental":{"a":BOMB}}}}"#;
    let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")];
    for (body, headers) in [
        (of(call), &[][..]),
        (of(call), &modern[..]),
        (of(list), &[]),
        (of(hello), &[]),
        (of(r#"{"jsonrpc":"2.0","id":7,"result":{"a":BOMB}}"#), &[]),
        (of("BOMB"), &[]),
    ] {
        let before = peak(&demo);
        let status = ask(&demo, body, headers).await;
        let grown = peak(&demo).saturating_sub(before);
        assert_eq!(status, 413);
        assert!(grown <= 10 * length, "{grown} bytes for {length}");
    }
    // The server goes on.
    assert_eq!(ask(&demo, ping, &[]).await, 200);
}

#[tokio::test]
async fn the_heaviest_call_that_is_accepted_takes_64_mib_at_most() {
    let demo = Demo::start("--every 3600").await;
    let before = peak(&demo);
    let status = ask(&demo, heaviest(), &[]).await;
    let grown = peak(&demo).saturating_sub(before);
    assert_eq!(status, 400, "it is read, and has no session");
    assert!(grown <= 64 << 20, "{grown} bytes");
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn memory_is_given_back_after_heavy_requests() {
    let demo = Demo::start("--every 3600").await;
    assert_eq!(ask(&demo, request("ping", json!({})).to_string(), &[]).await, 200);
    let before = demo.memory("VmRSS:");
    let body = heaviest();
    for _ in 0..5 {
        let asked = (0..4).map(|_| ask(&demo, body.clone(), &[]));
        assert_eq!(futures_util::future::join_all(asked).await, [400; 4]);
    }
    let mut look = tokio::time::interval(Duration::from_millis(100));
    let returned = async {
        while demo.memory("VmRSS:") > before + (16 << 20) {
            look.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(50), returned).await.expect("memory is kept");
}

#[tokio::test]
async fn heavy_arguments_reach_the_tool_in_both_eras() {
    let site = site(|_| {}).await;
    let session = site.session().await;
    let rows: Vec<Value> = (0..20_000).map(|id| json!({ "id": id, "name": "a row" })).collect();
    let call = json!({ "name": "count", "arguments": { "rows": rows } });
    let (status, body) = site.ask(Some(&session), &request("tools/call", call.clone())).await;
    assert_eq!((status, &body["result"]["content"][0]["text"]), (413, &Value::Null));
    let rows: Vec<Value> =
        (0..8_000).map(|id| json!({ "id": id, "text": "x".repeat(150) })).collect();
    let call = json!({ "name": "count", "arguments": { "rows": rows } });
    let (status, body) = site.ask(Some(&session), &request("tools/call", call.clone())).await;
    assert_eq!((status, &body["result"]["content"][0]["text"]), (200, &json!("8000")));
    let answer = within(site.modern("tools/call", call).send()).await.unwrap();
    let (status, body) = super::answer(answer).await;
    assert_eq!((status, &body["result"]["content"][0]["text"]), (200, &json!("8000")));
    site.ended().await;
}

#[tokio::test]
async fn bodies_that_never_end_hold_no_more_than_the_budget() {
    let site = site(|config| config.budget = 16 << 20).await;
    let half = vec![b' '; LARGE / 2];
    let mut hoard = Vec::new();
    for _ in 0..20 {
        let mut bytes = head(LARGE).into_bytes();
        bytes.extend_from_slice(&half);
        hoard.push(site.connect(&bytes).await);
    }
    let spent = async {
        while site.figure("tidings_budget_refusals_total") == 0 {
            tokio::task::yield_now().await;
        }
    };
    within(spent).await;
    assert!(site.figure("tidings_in_flight_bytes") <= 16 << 20);
    let (status, page) = site.page("/readyz").await;
    assert_eq!(status, 503);
    assert!(page.contains("fail  memory"), "{page}");
    // A large request is refused, and told when to come again; a small one is served all the same.
    let large = request("ping", json!({ "x": "x".repeat(2 << 20) })).to_string();
    let refused = within(site.post(None, large).send()).await.unwrap();
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key("retry-after"));
    site.session().await;
    drop(hoard);
    site.settles("tidings_in_flight_bytes", 0).await;
    assert_eq!(site.page("/readyz").await.0, 200);
    site.session().await;
    site.ended().await;
}

/// Once each had a buffer of its own length. Those of the bodies that were refused fitted nobody, and
/// stood beside the others until the allocator gave them back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[tokio::test]
async fn bodies_that_are_given_up_make_room_for_others() {
    let demo = Demo::start("--every 3600 --memory 64MiB").await;
    assert_eq!(ask(&demo, request("ping", json!({})).to_string(), &[]).await, 200);
    let before = demo.memory("VmRSS:");
    let piece = [b' '; 16 << 10];
    let mut sending = JoinSet::new();
    for _ in 0..250 {
        let mut socket = demo.send(&head(LARGE)).await;
        sending.spawn(async move {
            // All but the end, or until it is refused.
            for _ in 1..LARGE / piece.len() {
                socket.write_all(&piece).await.ok()?;
                tokio::task::yield_now().await;
            }
            Some(socket)
        });
    }
    let _sent = within(sending.join_all()).await;
    // Sixteen fit into 64 MiB.
    let refused = async {
        let mut look = tokio::time::interval(Duration::from_millis(50));
        loop {
            look.tick().await;
            let metrics = demo.get("/metrics").await;
            let total = metrics
                .lines()
                .find_map(|line| line.strip_prefix("tidings_budget_refusals_total "))
                .and_then(|total| total.parse::<usize>().ok());
            if total.unwrap() >= 250 - 16 {
                break;
            }
        }
    };
    within(refused).await;
    let grown = peak(&demo).saturating_sub(before);
    assert!(grown <= 3 * (64 << 20), "{grown} bytes");
}

#[tokio::test]
async fn a_body_that_is_announced_too_long_is_refused_before_it_is_sent() {
    let site = site(|_| {}).await;
    let mut socket = site.connect(head(LARGE + 1).as_bytes()).await;
    let mut answer = [0; 12];
    within(socket.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    site.ended().await;
}

#[tokio::test]
async fn answers_that_nobody_reads_count_in_the_budget() {
    let site = site(|config| config.budget = 24 << 20).await;
    let session = site.session().await;
    let read = request("resources/read", json!({ "uri": "lab://large" })).to_string();
    let head =
        head(read.len()).replace("\r\n\r\n", &format!("\r\nmcp-session-id: {session}\r\n\r\n"));
    let mut hoard = Vec::new();
    for _ in 0..12 {
        hoard.push(site.connect(format!("{head}{read}").as_bytes()).await);
    }
    let refused = async {
        while site.figure("tidings_budget_refusals_total") == 0 {
            tokio::task::yield_now().await;
        }
    };
    within(refused).await;
    assert!(site.figure("tidings_in_flight_bytes") <= 25 << 20);
    // A small answer still comes, a large one says why it does not.
    let (status, body) =
        site.ask(Some(&session), &request("resources/read", json!({ "uri": "lab://small" }))).await;
    assert_eq!((status, &body["result"]["contents"][0]["text"]), (200, &json!("x")));
    drop(hoard);
    site.settles("tidings_in_flight_bytes", 0).await;
    site.ended().await;
}

#[tokio::test]
async fn answers_kept_for_clients_that_left_go_before_others_are_refused() {
    let site = site(|config| config.budget = 2 * LARGE).await;
    let session = site.session().await;
    let later = request("tools/call", json!({ "name": "later" }));
    let mut kept = Vec::new();
    for _ in 0..2 {
        let answer = within(site.post(Some(&session), later.to_string()).send()).await.unwrap();
        let events = within(answer.text()).await.unwrap();
        let event = events.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
        kept.push(event.to_owned());
        let before = site.figure("tidings_in_flight_bytes");
        site.laboratory.released.add_permits(1);
        // There is room for one of these answers only, so the second takes the place of the first.
        let done = async {
            while site.figure("tidings_in_flight_bytes") < before.max(LARGE.try_into().unwrap()) {
                tokio::task::yield_now().await;
            }
        };
        within(done).await;
    }
    // Whoever asks now is served.
    let read = request("resources/read", json!({ "uri": "lab://large" }));
    let (status, body) = site.ask(Some(&session), &read).await;
    assert_eq!((status, &body["error"]), (200, &Value::Null));
    assert_eq!(site.figure("tidings_budget_refusals_total"), 0);
    // The client that comes back for what was dropped learns that there is nothing.
    for event in kept {
        let stream = site
            .client
            .get(format!("http://{}/mcp", site.address))
            .header("accept", "text/event-stream")
            .header("mcp-session-id", &session)
            .header("last-event-id", event);
        let answer = within(stream.send()).await.unwrap();
        assert_eq!(within(answer.text()).await.unwrap(), "");
    }
    site.ended().await;
}
