//! What an idle listener costs the program.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::support::demo::{Demo, within};

/// Listeners before anything is measured: what the first of them cost, others do not.
const FIRST: usize = 200;
/// Listeners that are measured. All files of this test fit into a limit of 1,024.
const MORE: usize = 700;
/// Memory for each: the goal is 4 KiB, and an eighth of it is for pages that are only partly used.
const MOST: usize = 4608;
const WATCHED: &str = "station://log";

/// A connection to the program.
struct Client {
    stream: BufReader<TcpStream>,
    /// The header that names its session, if any.
    session: String,
}

impl Client {
    async fn open(demo: &Demo) -> Self {
        Self { stream: BufReader::new(demo.send("").await), session: String::new() }
    }

    async fn send(&mut self, method: &str, headers: &str, body: &str) {
        let request = format!(
            "{method} /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}{}content-length: {}\r\n\r\n\
             {body}",
            self.session,
            body.len()
        );
        within(self.stream.get_mut().write_all(request.as_bytes())).await.unwrap();
    }

    /// Reads up to the line that says this, and returns it.
    async fn line(&mut self, says: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(within(self.stream.read_line(&mut line)).await.unwrap(), 0);
            if line.contains(says) {
                return line;
            }
        }
    }

    async fn listen_as_legacy(mut self) -> TcpStream {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "idle", "version": "1" } } });
        self.send("POST", "", &hello.to_string()).await;
        self.session = self.line("mcp-session-id: ").await;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.send("POST", "", &ready.to_string()).await;
        self.line("202 Accepted").await;
        let watch = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
            "params": { "uri": WATCHED } });
        self.send("POST", "", &watch.to_string()).await;
        self.send("GET", "", "").await;
        // The first line of an answer follows the body of the one before.
        self.line(r#""result":{}"#).await;
        self.line("retry:").await;
        self.stream.into_inner()
    }

    async fn listen_as_modern(mut self) -> TcpStream {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {},
            },
            "notifications": { "resourceSubscriptions": [WATCHED] },
        }});
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
        self.send("POST", headers, &message.to_string()).await;
        self.line("acknowledged").await;
        self.stream.into_inner()
    }
}

/// The memory that one more listener takes.
async fn cost(listen: impl AsyncFn(Client) -> TcpStream) -> usize {
    let demo = Demo::start("--every 3600").await;
    let mut streams = Vec::new();
    let mut before = 0;
    for number in 0..FIRST + MORE {
        if number == FIRST {
            before = demo.memory("VmRSS:");
        }
        streams.push(listen(Client::open(&demo).await).await);
    }
    let metrics = demo.get("/metrics").await;
    assert!(metrics.contains(&format!("tidings_listeners {}", FIRST + MORE)), "{metrics}");
    demo.memory("VmRSS:").saturating_sub(before) / MORE
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_listener_of_a_modern_client_takes_little_memory() {
    let cost = cost(Client::listen_as_modern).await;
    assert!(cost <= MOST, "{cost} bytes");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn an_idle_listener_of_a_legacy_client_takes_little_memory() {
    let cost = cost(Client::listen_as_legacy).await;
    assert!(cost <= MOST, "{cost} bytes");
}
