//! The floor below every HTTP library: raw sockets. One prepared chunk goes to every open stream
//! with one write that does not wait.
//!
//! It reads requests only as far as the same client can drive it, and an open stream is nothing but
//! its socket: no task, no buffer, and nobody notices when its client leaves.

use std::error::Error;
use std::io;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::floor::{ACKNOWLEDGED, LEGACY, MODERN};

const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
                    transfer-encoding: chunked\r\n\r\n";
const FIRST: &[u8] = b"retry: 1000\n\n";

/// The open streams, and the chunk each gets.
type Streams = Arc<Mutex<Vec<(Arc<[u8]>, TcpStream)>>>;

/// Serves until the process ends.
pub(crate) async fn serve(listener: TcpListener) -> Result<(), Box<dyn Error>> {
    let (streams, mut connections) = (Streams::default(), JoinSet::new());
    let chunks = [LEGACY, MODERN].map(|frame| Arc::from(chunk(frame)));
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let (socket, _) = accepted?;
                socket.set_nodelay(true)?;
                connections.spawn(connection(socket, streams.clone(), chunks.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Serves requests until one of them opens a stream.
async fn connection(
    mut socket: TcpStream,
    streams: Streams,
    [legacy, modern]: [Arc<[u8]>; 2],
) -> io::Result<()> {
    let mut buffer = Vec::new();
    loop {
        let Some(head) = buffer.windows(4).position(|end| end == b"\r\n\r\n") else {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
            continue;
        };
        let text = String::from_utf8_lossy(&buffer[..head]).to_ascii_lowercase();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length:"));
        let end = head + 4 + length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
        while buffer.len() < end {
            socket.read_buf(&mut buffer).await?;
        }
        let message: Value = serde_json::from_slice(&buffer[head + 4..end]).unwrap_or_default();
        buffer.drain(..end);
        let (first, notice) = match message["method"].as_str() {
            _ if text.starts_with("get ") => (FIRST, legacy),
            Some("subscriptions/listen") => (ACKNOWLEDGED, modern),
            method => {
                if method == Some("tools/call") {
                    bump(&streams, &message["params"]["arguments"]).await;
                }
                socket.write_all(answer(&message).as_bytes()).await?;
                continue;
            }
        };
        socket.write_all(&[HEAD.as_bytes(), &chunk(first)].concat()).await?;
        streams.lock().expect("no code panics while it holds the streams").push((notice, socket));
        return Ok(());
    }
}

async fn bump(streams: &Streams, arguments: &Value) {
    for _ in 0..arguments["n"].as_u64().unwrap_or(1) {
        tell_all(streams);
        tokio::task::yield_now().await;
    }
}

fn tell_all(streams: &Streams) {
    let mut all = streams.lock().expect("no code panics while it holds the streams");
    all.retain(|(chunk, socket)| match socket.try_write(chunk) {
        Ok(written) => written == chunk.len(),
        Err(error) => error.kind() == io::ErrorKind::WouldBlock,
    });
}

fn answer(message: &Value) -> String {
    let body = json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }).to_string();
    let status = if message["id"].is_null() { "202 Accepted" } else { "200 OK" };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nmcp-session-id: one\r\ncontent-length: {length}\r\n\r\n{body}")
}

fn chunk(content: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", content.len()).as_bytes(), content, b"\r\n"].concat()
}
