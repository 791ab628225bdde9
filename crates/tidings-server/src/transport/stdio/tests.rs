//! Whole connections in memory: how they start, and what is sent before they end.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult,
};
use rmcp::transport::Transport as _;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::Context;

/// Sizes of pipes: one that holds a byte, some that hold part of an answer, one that holds all.
const PIPES: [usize; 5] = [1, 32, 100, 512, 1 << 16];

/// Lines that are refused, with the code of their error.
const REFUSED: [(&str, i64); 8] = [
    ("{", -32700),
    ("hello", -32700),
    ("[]", -32600),
    ("7", -32600),
    (r#"{"id":3}"#, -32600),
    (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32600),
    ("\"\u{1}\"", -32700),
    (r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, -32600),
];

/// Sends a text to a server and returns its first lines; without a number all of them, after the
/// end of the input.
async fn lines_of(hub: &Hub, text: &str, pipe: usize, count: Option<usize>) -> Vec<Value> {
    let (mut input, their_input) = tokio::io::duplex(pipe);
    let (their_output, output) = tokio::io::duplex(pipe);
    let write = async {
        input.write_all(text.as_bytes()).await.unwrap();
        if count.is_none() {
            input.shutdown().await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    let read = async {
        let (mut lines, mut heard) = (BufReader::new(output).lines(), Vec::new());
        while count != Some(heard.len()) {
            let Some(line) = lines.next_line().await.unwrap() else { break };
            heard.push(serde_json::from_str(&line).unwrap());
        }
        heard
    };
    let serving = async {
        serve(hub, their_input, their_output, CancellationToken::new()).await.unwrap();
        std::future::pending::<()>().await;
    };
    let all = async {
        tokio::select! {
            heard = read => heard,
            () = write => unreachable!("it waits"),
            () = serving => unreachable!("it waits"),
        }
    };
    let heard = tokio::time::timeout(Duration::from_mins(1), all).await;
    heard.unwrap_or_else(|_| panic!("too few answers to {text:?} over a pipe of {pipe} bytes"))
}

// The answer to a refused line once held the output while nobody polled it, and the answer to the
// handshake waited for the output.
#[tokio::test(start_paused = true)]
async fn a_refused_line_before_the_handshake_keeps_nobody_waiting() {
    let hub = Hub::new("test", "1");
    let initialize = json!({ "jsonrpc": "2.0", "id": "init", "method": "initialize" });
    for start in 0..1000 {
        let (refused, code) = REFUSED[start % REFUSED.len()];
        let pipe = PIPES[start / REFUSED.len() % PIPES.len()];
        // Some begin with many such lines: more than may wait for a client that does not read.
        let times = if start % 250 == 99 { 200 } else { 1 + start % 3 };
        let text = format!("{}{initialize}\n", format!("{refused}\n").repeat(times));
        let heard = lines_of(&hub, &text, pipe, Some(times + 1)).await;
        let (last, errors) = heard.split_last().unwrap();
        assert!(errors.iter().all(|error| error["error"]["code"] == code), "{refused}: {errors:?}");
        assert_eq!((&last["id"], last["error"].is_null()), (&json!("init"), true), "{last}");
    }
}

/// Sends lines before the end of the input; returns how many lines mention list changes, and the
/// ids of all answers.
async fn piped(hub: &Hub, text: &str, pipe: usize) -> (usize, Vec<Value>) {
    let heard = lines_of(hub, text, pipe, None).await;
    let notices = heard.iter().filter(|message| message["method"].is_string());
    let changed = notices.filter(|notice| notice.to_string().contains("list_changed")).count();
    let mut ids: Vec<_> = heard.into_iter().filter(|message| message["method"].is_null()).collect();
    ids.sort_by_key(|message| message["id"].to_string());
    (changed, ids.into_iter().map(|message| message["id"].clone()).collect())
}

const BARE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"l1","method":"tools/list"}
{"jsonrpc":"2.0","id":"l2","method":"tools/list"}
"#;

#[tokio::test(start_paused = true)]
async fn what_is_due_is_sent_after_the_end_of_the_input() {
    let hub = Hub::new("test", "1");
    let old = BARE.replace("{}", r#"{"protocolVersion":"2025-03-26"}"#);
    for turn in 0..100 {
        let pipe = PIPES[turn % PIPES.len()];
        let all = vec![json!("init"), json!("l1"), json!("l2")];
        assert_eq!(piped(&hub, BARE, pipe).await, (3, all.clone()));
        assert_eq!(piped(&hub, &old, pipe).await, (0, all));
        if turn % 10 > 0 {
            continue;
        }
        // The greeting is the last that was asked for.
        let ready = BARE.lines().take(2).collect::<Vec<_>>().join("\n");
        assert_eq!(piped(&hub, &ready, pipe).await, (3, vec![json!("init")]));
        // A line that is refused, first or last; the last without a newline.
        let all = vec![json!("init"), json!("l1"), json!("l2"), Value::Null];
        for text in [format!("{{\n{BARE}"), format!("{BARE}{{"), format!("{BARE}[]\n")] {
            assert_eq!(piped(&hub, &text, pipe).await, (3, all.clone()), "{text}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_but_refused_lines_is_answered_too() {
    let hub = Hub::new("test", "1");
    for pipe in PIPES {
        assert_eq!(piped(&hub, "", pipe).await, (0, vec![]));
        assert_eq!(piped(&hub, "{\n[]\nx", pipe).await, (0, vec![Value::Null; 3]));
    }
}

/// Two tools: one takes three seconds, one works until it is cancelled.
#[derive(Clone, Default)]
struct Tools {
    begun: Arc<Notify>,
    cancelled: Arc<Notify>,
}

impl Tools {
    fn offer(&self, hub: &Hub) {
        let shelf = hub.source("tools").unwrap();
        let tools = self.clone();
        let slow = move |context: Context| {
            tools.begun.notify_one();
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                context.progress(1.0, None, None).await;
                tokio::time::sleep(Duration::from_secs(2)).await;
                "done"
            }
        };
        shelf.tool("slow", "takes three seconds", slow).unwrap();
        let tools = self.clone();
        let endless = move |context: Context| {
            tools.begun.notify_one();
            let cancelled = tools.cancelled.clone();
            async move {
                context.cancelled().await;
                cancelled.notify_one();
                "done"
            }
        };
        shelf.tool("endless", "is cancelled", endless).unwrap();
    }
}

fn call(id: u32, tool: &str) -> String {
    let params = json!({ "name": tool, "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_call_under_way_at_the_end_of_the_input_is_answered_or_cancelled() {
    let hub = Hub::new("test", "1");
    let tools = Tools::default();
    let cancelled = tools.cancelled.clone();
    tools.offer(&hub);
    let begun = tokio::time::Instant::now();
    let heard = lines_of(&hub, &format!("{BARE}{}", call(7, "slow")), 64, None).await;
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
    let progress = heard.iter().position(|message| message["method"] == "notifications/progress");
    let answer = heard.iter().position(|message| message["id"] == 7);
    assert!(progress.is_some() && progress < answer, "{heard:?}");
    let begun = tokio::time::Instant::now();
    lines_of(&hub, &format!("{BARE}{}", call(7, "endless")), 64, None).await;
    cancelled.notified().await;
    assert!(begun.elapsed() < Duration::from_secs(12), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_no_more_ends_the_server_and_its_calls() {
    let hub = Hub::new("test", "1");
    let tools = Tools::default();
    let (called, cancelled) = (tools.begun.clone(), tools.cancelled.clone());
    tools.offer(&hub);
    let (mut input, their_input) = tokio::io::duplex(1 << 16);
    let (their_output, output) = tokio::io::duplex(1 << 16);
    let client = async {
        input.write_all(format!("{BARE}{}\n", call(7, "endless")).as_bytes()).await.unwrap();
        called.notified().await;
        drop(output);
        input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"ping\"}\n").await.unwrap();
        std::future::pending::<()>().await;
    };
    let begun = tokio::time::Instant::now();
    tokio::select! {
        result = serve(&hub, their_input, their_output, CancellationToken::new()) => result.unwrap(),
        () = client => unreachable!("it keeps its input open"),
    }
    assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    cancelled.notified().await;
}

// A large line is parsed beside the runtime.
#[tokio::test]
async fn no_message_overtakes_a_large_one() {
    let hub = Hub::new("test", "1");
    let ping = |id: u32, padding: usize| {
        let params = json!({ "padding": "x".repeat(padding) });
        json!({ "jsonrpc": "2.0", "id": id, "method": "ping", "params": params }).to_string()
    };
    let (large, small) = (ping(1, 1 << 20), ping(2, 0));
    let text = format!("{large}\n{small}\n{{{large}\n{small}\n");
    let connection = Connection::new(hub.pipeline().clone(), Identity::anonymous(), None);
    let ending = CancellationToken::new();
    let (writer, input) = (LineWriter::default(), std::io::Cursor::new(text));
    let mut link = Link::new(input, writer.clone(), connection, ending, CancellationToken::new());
    for id in [1, 2, 2] {
        let message = link.receive().await;
        let Some(JsonRpcMessage::Request(request)) = message else { panic!("{message:?}") };
        assert_eq!(request.id, RequestId::Number(id));
        let pong = ServerResult::EmptyResult(rmcp::model::EmptyResult {});
        drop(link.send(ServerJsonRpcMessage::response(pong, request.id)));
    }
    assert!(link.receive().await.is_none());
    let mut output = Vec::new();
    writer.finish();
    writer.run(&mut output).await.unwrap();
    let answers = String::from_utf8(output).unwrap();
    let codes: Vec<_> = answers.lines().map(|line| line.contains("error")).collect();
    assert_eq!(codes, [false, false, true, false]);
}

// The library drops `receive` whenever it has something to send; a listen request that was
// being prepared then was lost.
#[tokio::test(start_paused = true)]
async fn a_listen_request_survives_a_dropped_receive() {
    let hub = Hub::new("test", "1");
    let allowed = Arc::new(Notify::new());
    let reading = allowed.clone();
    let slow = move || {
        let reading = reading.clone();
        async move {
            reading.notified().await;
            "at last"
        }
    };
    hub.source("slow").unwrap().resource("slow://one", "one", slow).unwrap();
    let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "notifications": { "resourceSubscriptions": ["slow://one"] },
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let (mut client, input) = tokio::io::duplex(1 << 16);
    client.write_all(format!("{listen}\n").as_bytes()).await.unwrap();
    let connection = Connection::new(hub.pipeline().clone(), Identity::anonymous(), None);
    let ending = CancellationToken::new();
    let mut transport =
        Link::new(input, LineWriter::default(), connection, ending, CancellationToken::new());
    let second = Duration::from_secs(1);
    assert!(tokio::time::timeout(second, transport.receive()).await.is_err());
    // Other requests are read meanwhile.
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
    client.write_all(format!("{ping}\n").as_bytes()).await.unwrap();
    let id_of = |message: Option<ClientJsonRpcMessage>| match message {
        Some(JsonRpcMessage::Request(request)) => request.id,
        other => panic!("{other:?}"),
    };
    assert_eq!(id_of(transport.receive().await), RequestId::Number(2));
    allowed.notify_one();
    assert_eq!(id_of(transport.receive().await), RequestId::Number(1));
}
