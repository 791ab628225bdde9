//! A server over HTTP that drops connections which it had promised to keep.

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tidings_mirror::{Happened, List, NO_ARGUMENTS, Protocol, Record};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::{config, connect, within};

type Heard = Arc<Mutex<Vec<String>>>;

/// Reads one request, and gives its message.
async fn request(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    Some(serde_json::from_slice(&body).unwrap_or(Value::Null))
}

/// Answers what comes on one connection. Lists and calls that are not the first request on it are
/// heard, and the connection is closed in place of an answer.
async fn serve(stream: TcpStream, heard: Heard) {
    let mut reader = BufReader::new(stream);
    let mut is_first = true;
    while let Some(message) = request(&mut reader).await {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        heard.lock().unwrap().push(method.clone());
        let result = match method.as_str() {
            "tools/list" | "tools/call" if !is_first => return,
            "tools/list" => json!({ "tools": [] }),
            "initialize" => json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": { "name": "forgetful", "version": "1" },
            }),
            _ => json!({ "content": [] }),
        };
        is_first = false;
        let answer = match message["id"] {
            Value::Null => "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n".to_owned(),
            ref id => {
                let body = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
                let length = body.len();
                format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                     content-length: {length}\r\n\r\n{body}"
                )
            }
        };
        reader.get_mut().write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test]
async fn a_request_on_a_dead_connection_is_sent_again_if_that_does_no_harm() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let heard = Heard::default();
    let written = heard.clone();
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            connections.spawn(serve(stream, written.clone()));
        }
    });
    let mut config = config(Protocol::Legacy);
    config.history = 100;
    let (mirror, _) = connect(&url, config).await;
    within(mirror.refresh(&[List::Tools])).await.unwrap();
    assert!(mirror.list_error(List::Tools).is_none());
    let count = |method: &str| heard.lock().unwrap().iter().filter(|it| *it == method).count();
    assert!(count("tools/list") >= 3, "one of them was sent twice");
    let retried = |record: &Record| matches!(record, Record::Fact(fact) if matches!(fact.what, Happened::HttpRetried { .. }));
    assert!(mirror.records_since(0).iter().any(retried));

    // The connection on which the last list came is kept, and used for what comes next.
    let failed = within(mirror.call_tool("pay", NO_ARGUMENTS)).await;
    assert_eq!((failed.is_err(), count("tools/call")), (true, 1), "a call is not made twice");
}
