//! The stdio transport besides delivery: bad lines, early ends, last lines.

use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::{Hub, stdio};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};
use tokio_util::sync::CancellationToken;

use crate::support::garden::Garden;

struct Pipe {
    hub: Hub,
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    cancel: CancellationToken,
    serving: tokio::task::JoinSet<Result<(), stdio::ServeError>>,
}

async fn pipe() -> Pipe {
    let hub = Hub::new("garden", "1");
    hub.add("garden", |shelf| Garden::default().on(&shelf)).await.unwrap();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (output, input) = tokio::io::split(ours);
    let cancel = CancellationToken::new();
    let mut serving = tokio::task::JoinSet::new();
    let (serve_hub, serve_cancel) = (hub.clone(), cancel.clone());
    serving.spawn(async move {
        let (input, output) = tokio::io::split(theirs);
        stdio::serve(&serve_hub, input, output, serve_cancel).await
    });
    Pipe { hub, input, output: BufReader::new(output).lines(), cancel, serving }
}

impl Pipe {
    async fn write(&mut self, line: impl AsRef<[u8]>) {
        self.input.write_all(line.as_ref()).await.unwrap();
        self.input.write_all(b"\n").await.unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(Duration::from_secs(10), self.output.next_line());
        line.await.ok()?.unwrap().map(|line| serde_json::from_str(&line).unwrap())
    }

    async fn error_of(&mut self, line: impl AsRef<[u8]>) -> (Value, i64) {
        self.write(line).await;
        let answer = self.next().await.unwrap();
        (answer["id"].clone(), answer["error"]["code"].as_i64().unwrap())
    }
}

fn modern(id: &Value, method: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

fn listen(id: &Value, uri: &str) -> String {
    modern(
        id,
        "subscriptions/listen",
        json!({ "notifications": { "resourceSubscriptions": [uri] } }),
    )
}

#[tokio::test(start_paused = true)]
async fn bad_lines_get_the_right_error_and_the_next_one_is_served() {
    let mut pipe = pipe().await;
    assert_eq!(pipe.error_of("{").await, (Value::Null, -32700));
    assert_eq!(pipe.error_of([b'"', 0xff, b'"']).await, (Value::Null, -32700));
    assert_eq!(pipe.error_of("[".repeat(10_000)).await, (Value::Null, -32700));
    assert_eq!(pipe.error_of("[]").await, (Value::Null, -32600));
    assert_eq!(pipe.error_of(r#"{"id":3}"#).await, (json!(3), -32600));
    pipe.write("").await;
    pipe.write("   ").await;
    // Messages that mean nothing before the client has begun.
    pipe.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    pipe.write(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#).await;
    // A request that says half of what a modern one must has not begun anything: what follows it
    // once ended the connection.
    let half = json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/list", "params": {
        "_meta": { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } } });
    assert_eq!(pipe.error_of(half.to_string()).await, (json!(6), -32602));
    pipe.write(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}"#)
        .await;
    // A request that is no modern one by its own words has to wait for a handshake.
    let early = r#"{"jsonrpc":"2.0","id":4,"method":"tools/list","params":{"_meta":{}}}"#;
    pipe.write(early).await;
    let refused = pipe.next().await.unwrap();
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(4), &json!(-32600)));
    assert_eq!(refused["error"]["data"]["details"], "begin with an `initialize` request");
    pipe.write(r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#).await;
    assert_eq!(pipe.next().await.unwrap(), json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
}

#[tokio::test(start_paused = true)]
async fn a_line_that_is_too_long_is_refused_and_skipped() {
    let mut pipe = pipe().await;
    let words = "x".repeat(17 * 1024 * 1024);
    let long = json!({ "jsonrpc": "2.0", "method": "ping", "params": { "words": words }, "id": 4 });
    let long = long.to_string();
    let Pipe { input, output, .. } = &mut pipe;
    let ((), answer) = tokio::join!(
        async {
            input.write_all(long.as_bytes()).await.unwrap();
            input
                .write_all(b"\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n")
                .await
                .unwrap();
        },
        output.next_line()
    );
    let first: Value = serde_json::from_str(&answer.unwrap().unwrap()).unwrap();
    // The two are answered in any order.
    let mut answers = [first, pipe.next().await.unwrap()];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    let [refused, answered] = answers;
    assert_eq!(
        (&refused["id"], &refused["error"]["message"]),
        (&json!(4), &json!("Message too long"))
    );
    assert_eq!((&answered["id"], &answered["result"]), (&json!(5), &json!({})));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_ends_the_server() {
    let mut pipe = pipe().await;
    pipe.write(listen(&json!(1), "garden://gate")).await;
    pipe.next().await.unwrap();
    assert!(pipe.hub.metrics().contains("tidings_subscriptions 1"));
    let begun = tokio::time::Instant::now();
    pipe.input.shutdown().await.unwrap();
    pipe.serving.join_next().await.unwrap().unwrap().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1), "at once, though a listen is open");
    let metrics = pipe.hub.metrics();
    assert!(metrics.contains("tidings_subscriptions 0"), "{metrics}");
}

#[tokio::test(start_paused = true)]
async fn open_listens_get_their_final_result_when_the_server_stops() {
    let mut pipe = pipe().await;
    for id in [json!("one"), json!(2)] {
        pipe.write(listen(&id, "garden://gate")).await;
        let acknowledged = pipe.next().await.unwrap();
        let tag = &acknowledged["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*tag, id);
    }
    pipe.cancel.cancel();
    let mut ended = Vec::new();
    while let Some(message) = pipe.next().await {
        let tag = &message["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*tag, message["id"]);
        ended.push(message["id"].to_string());
    }
    ended.sort();
    assert_eq!(ended, ["\"one\"", "2"]);
    pipe.serving.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_listen_id_that_is_open_cannot_be_taken_twice() {
    let mut pipe = pipe().await;
    pipe.write(listen(&json!(1), "garden://gate")).await;
    pipe.next().await.unwrap();
    assert_eq!(pipe.error_of(listen(&json!(1), "garden://bed/a")).await, (json!(1), -32600));
    let call = modern(
        &json!(2),
        "tools/call",
        json!({ "name": "act",
        "arguments": { "words": "water garden://gate" } }),
    );
    pipe.write(call).await;
    let mut heard = [pipe.next().await.unwrap(), pipe.next().await.unwrap()];
    heard.sort_by_key(|message| message["id"].is_null());
    assert_eq!(heard[0]["id"], 2);
    assert_eq!(heard[1]["params"]["uri"], "garden://gate", "the first is still open");
}

// The cancellation once reached the library before the request it cancels, and ended the connection.
#[tokio::test(start_paused = true)]
async fn a_first_request_that_is_cancelled_at_once_ends_nothing() {
    let mut pipe = pipe().await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": "a" } });
    pipe.write(format!("{}\n{cancel}", listen(&json!("a"), "garden://gate"))).await;
    pipe.write(modern(&json!("b"), "tools/list", json!({}))).await;
    loop {
        let message = pipe.next().await.unwrap();
        if message["id"] == "b" {
            assert!(message["result"]["tools"].is_array());
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_second_handshake_is_refused() {
    let mut pipe = pipe().await;
    let hello = |version: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": version, "capabilities": {},
            "clientInfo": { "name": "it", "version": "1" } } })
        .to_string()
    };
    pipe.write(hello("2025-03-26")).await;
    assert!(pipe.next().await.unwrap()["error"].is_null());
    assert_eq!(pipe.error_of(hello("2025-11-25")).await, (json!(1), -32600));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_read_is_not_read_from_and_can_be_left() {
    let mut pipe = pipe().await;
    pipe.write(modern(&json!(0), "tools/list", json!({}))).await;
    let list = modern(&json!(1), "tools/list", json!({})) + "\n";
    // Some megabytes of requests: the pipe holds 64 KiB each way, and no more is taken.
    let flood = async { while pipe.input.write_all(list.as_bytes()).await.is_ok() {} };
    let stuck = tokio::time::timeout(Duration::from_mins(1), flood).await;
    assert!(stuck.is_err(), "the server stops reading");
    pipe.cancel.cancel();
    let ended = tokio::time::timeout(Duration::from_secs(20), pipe.serving.join_next()).await;
    ended.expect("the server ends though nobody reads").unwrap().unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn listens_on_one_connection_are_limited() {
    let mut pipe = pipe().await;
    for id in 0..64 {
        pipe.write(listen(&json!(id), "garden://gate")).await;
        assert!(pipe.next().await.unwrap()["error"].is_null());
    }
    assert_eq!(pipe.error_of(listen(&json!(64), "garden://gate")).await, (json!(64), -32602));
}
