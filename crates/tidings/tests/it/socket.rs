//! Streams over real sockets, byte by byte: the HTTP library begins an answer and a writer of ours
//! goes on, and both must be one well-formed answer.

use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::http::{self as server, HttpConfig};
use tidings_server::{Config, Hub, Merging};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::support::garden::Garden;

/// Nothing here takes as long as this.
const LONG: Duration = Duration::from_secs(20);
/// The smallest socket buffer there is, about.
const NARROW: u32 = 4096;
const GATE: &str = "garden://gate";

struct Site {
    address: std::net::SocketAddr,
    hub: Hub,
    garden: Garden,
    cancel: CancellationToken,
    serving: JoinSet<()>,
}

async fn site(change: impl FnOnce(&mut HttpConfig)) -> Site {
    let mut config = Config::new("garden", "1");
    config.merging = Merging::off();
    let hub = Hub::with_config(config);
    let garden = Garden::default();
    hub.add("garden", |shelf| garden.clone().on(&shelf)).await.unwrap();
    // A connection takes its buffers from the socket that accepts it.
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_send_buffer_size(NARROW).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(16).unwrap();
    let address = listener.local_addr().unwrap();
    let (mut config, cancel) = (HttpConfig::default(), CancellationToken::new());
    change(&mut config);
    let mut serving = JoinSet::new();
    let (serves, until) = (hub.clone(), cancel.clone());
    serving.spawn(async move { server::serve(&serves, listener, config, until).await.unwrap() });
    Site { address, hub, garden, cancel, serving }
}

impl Site {
    async fn connect(&self) -> Wire {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(NARROW).unwrap();
        let stream = socket.connect(self.address).await.unwrap();
        Wire { stream, bytes: Vec::new(), behind: String::new() }
    }

    /// Waters the gate while a client reads, until it has seen `enough` notices of it.
    async fn water_until(&self, wire: &mut Wire, seen: &mut Seen, enough: usize) {
        let watering = async {
            loop {
                self.garden.act(&["water", GATE]).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = watering => {}
            () = seen.until(wire, |seen| seen.of(GATE) >= enough) => {}
        }
    }

    /// How many notices wait for all clients together.
    fn waiting(&self) -> usize {
        self.figure("tidings_queue_depth ")
    }

    /// A figure of the metrics.
    fn figure(&self, name: &str) -> usize {
        let metrics = self.hub.metrics();
        let figure = metrics.lines().find_map(|line| line.strip_prefix(name));
        figure.unwrap().parse().unwrap()
    }

    async fn ended(mut self) {
        self.cancel.cancel();
        tokio::time::timeout(LONG, self.serving.join_next()).await.unwrap().unwrap().unwrap();
    }
}

/// One connection of a client that knows HTTP/1 by heart.
struct Wire {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// Sent right behind the next request.
    behind: String,
}

impl Wire {
    async fn more(&mut self) -> bool {
        let read = self.stream.read_buf(&mut self.bytes);
        tokio::time::timeout(LONG, read).await.expect("bytes in time").unwrap() > 0
    }

    /// The bytes up to and with an end of line.
    async fn line(&mut self) -> String {
        loop {
            if let Some(end) = self.bytes.windows(2).position(|end| end == b"\r\n") {
                let line = self.bytes.drain(..end + 2).collect();
                return String::from_utf8(line).unwrap();
            }
            assert!(self.more().await, "the connection ended in a line: {:?}", self.bytes);
        }
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.bytes.len() < length {
            assert!(self.more().await, "the connection ended too soon");
        }
        self.bytes.drain(..length).collect()
    }

    /// Everything up to the end of the connection.
    async fn rest(&mut self) -> String {
        while self.more().await {}
        String::from_utf8(std::mem::take(&mut self.bytes)).unwrap()
    }

    /// Sends a request and returns the head of its answer.
    async fn ask(&mut self, line: &str, headers: &str, body: &str) -> String {
        let behind = std::mem::take(&mut self.behind);
        let request = format!(
            "{line}\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\n{headers}content-length: {}\r\n\r\n\
             {body}{behind}",
            body.len()
        );
        self.stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            head += &self.line().await;
        }
        head.to_ascii_lowercase()
    }

    /// Sends a message of a session and returns the answer.
    async fn post(&mut self, session: &str, message: &Value) -> (String, Value) {
        let headers = if session.is_empty() {
            String::new()
        } else {
            format!("mcp-session-id: {session}\r\n")
        };
        let head = self.ask("POST /mcp HTTP/1.1", &headers, &message.to_string()).await;
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body = self.exactly(length.unwrap().parse().unwrap()).await;
        (head, serde_json::from_slice(&body).unwrap_or_default())
    }

    /// Opens a session that watches these URIs, and returns its id.
    async fn session(&mut self, uris: &[String]) -> String {
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "it", "version": "1" } } });
        let (head, _) = self.post("", &hello).await;
        let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        self.post(id, &ready).await;
        for uri in uris {
            let subscribe = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
                "params": { "uri": uri } });
            let (_, answer) = self.post(id, &subscribe).await;
            assert!(answer.get("result").is_some(), "{answer}");
        }
        id.to_owned()
    }

    /// Opens the stream of a session on this very connection.
    async fn stream(&mut self, session: &str) {
        let headers = format!("mcp-session-id: {session}\r\n");
        let head = self.ask("GET /mcp HTTP/1.1", &headers, "").await;
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert!(head.contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    }

    /// Opens a listen request that watches the gate.
    async fn listen(&mut self) {
        let message = json!({ "jsonrpc": "2.0", "id": "it", "method": "subscriptions/listen",
            "params": { "notifications": { "resourceSubscriptions": [GATE] }, "_meta": {
                "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {} } } });
        let headers = "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n";
        let head = self.ask("POST /mcp HTTP/1.1", headers, &message.to_string()).await;
        assert!(head.contains("\r\ntransfer-encoding: chunked\r\n"), "{head}");
        assert!(head.contains("\r\nconnection: close\r\n"), "{head}");
    }

    /// The next chunk, or nothing at the end of the answer.
    async fn chunk(&mut self) -> Option<Vec<u8>> {
        let line = self.line().await;
        let length = usize::from_str_radix(line.trim_end(), 16)
            .unwrap_or_else(|_| panic!("{line:?} is no length of a chunk"));
        let mut chunk = self.exactly(length + 2).await;
        assert!(chunk.ends_with(b"\r\n"), "a chunk is as long as it says");
        chunk.truncate(length);
        (length > 0).then_some(chunk)
    }
}

/// What came on a stream.
#[derive(Default)]
struct Seen {
    messages: Vec<Value>,
    /// The number of the last event; the first of a stream says which was the last before it.
    number: Option<u64>,
    comments: usize,
    ended: bool,
}

impl Seen {
    /// Reads whole events until there is enough or the stream ends.
    async fn until(&mut self, wire: &mut Wire, enough: impl Fn(&Self) -> bool) {
        while !self.ended && !enough(self) {
            match wire.chunk().await {
                Some(chunk) => self.read(std::str::from_utf8(&chunk).unwrap()),
                None => self.ended = true,
            }
        }
    }

    fn read(&mut self, chunk: &str) {
        assert!(chunk.ends_with("\n\n"), "a chunk has whole events: {chunk:?}");
        for event in chunk.split_terminator("\n\n") {
            if event == ":" {
                self.comments += 1;
            }
            for line in event.lines() {
                if let Some(number) = line.strip_prefix("id: s") {
                    let number: u64 = number.parse().unwrap();
                    let last = self.number.replace(number);
                    assert!(last.is_none_or(|last| number == last + 1), "{number} after {last:?}");
                }
                if let Some(data) = line.strip_prefix("data: ").filter(|data| !data.is_empty()) {
                    self.messages.push(serde_json::from_str(data).unwrap());
                }
            }
        }
    }

    fn of(&self, uri: &str) -> usize {
        self.messages.iter().filter(|message| message["params"]["uri"] == uri).count()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_notices_of_a_session_are_chunks_of_one_answer() {
    let site = site(|_| {}).await;
    let mut wire = site.connect().await;
    let session = wire.session(&[GATE.to_owned()]).await;
    wire.stream(&session).await;
    let mut seen = Seen::default();
    site.water_until(&mut wire, &mut seen, 300).await;
    site.cancel.cancel();
    seen.until(&mut wire, |_| false).await;
    assert_eq!(wire.rest().await, "", "nothing follows the end of the last answer");
    site.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn many_notices_of_a_listen_request_are_chunks_of_one_answer() {
    let site = site(|_| {}).await;
    let mut wire = site.connect().await;
    wire.listen().await;
    let mut seen = Seen::default();
    site.water_until(&mut wire, &mut seen, 300).await;
    site.cancel.cancel();
    seen.until(&mut wire, |_| false).await;
    let last = seen.messages.last().unwrap();
    assert_eq!((&last["id"], last.get("result").is_some()), (&json!("it"), true), "{last}");
    assert_eq!(wire.rest().await, "");
    site.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn comments_stand_between_notices_and_never_in_them() {
    let site = site(|config| config.keep_alive = Duration::from_millis(1)).await;
    let mut wire = site.connect().await;
    wire.listen().await;
    let mut seen = Seen::default();
    for round in 1..=20 {
        site.water_until(&mut wire, &mut seen, round * 5).await;
        let comments = seen.comments;
        seen.until(&mut wire, |seen| seen.comments > comments).await;
    }
    site.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_reader_that_stops_and_goes_on_reads_a_whole_answer() {
    let site = site(|config| config.keep_alive = Duration::from_millis(5)).await;
    // Long names, so that few notices fill a socket and few fit into what it has left.
    let beds: Vec<_> =
        (0..24).map(|bed| format!("garden://bed/{bed}-{}", "x".repeat(1000 + bed))).collect();
    let (mut stalled, mut other) = (site.connect().await, site.connect().await);
    let session = stalled.session(&beds).await;
    stalled.stream(&session).await;
    other.listen().await;
    let (mut seen, mut heard) = (Seen::default(), Seen::default());
    for _ in 0..3 {
        // Until the server says that much waits: one thing may wait for the other one.
        loop {
            for bed in &beds {
                site.garden.act(&["water", bed]).await;
            }
            // Meanwhile others are told.
            let before = heard.of(GATE);
            site.water_until(&mut other, &mut heard, before + 1).await;
            if site.waiting() > 1 {
                break;
            }
        }
        seen.messages.clear();
        seen.until(&mut stalled, |seen| beds.iter().all(|bed| seen.of(bed) > 0)).await;
    }
    site.cancel.cancel();
    seen.until(&mut stalled, |_| false).await;
    assert_eq!(stalled.rest().await, "");
    site.ended().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_connection_is_closed_after_its_stream() {
    let site = site(|_| {}).await;
    let mut other = site.connect().await;
    for _ in 0..3 {
        let mut wire = site.connect().await;
        let session = wire.session(&[GATE.to_owned()]).await;
        wire.behind = "POST /mcp HTTP/1.1\r\n\r\n".to_owned();
        wire.stream(&session).await;
        let mut seen = Seen::default();
        site.water_until(&mut wire, &mut seen, 3).await;
        let headers = format!("mcp-session-id: {session}\r\n");
        other.ask("DELETE /mcp HTTP/1.1", &headers, "").await;
        seen.until(&mut wire, |_| false).await;
        // The client said what it wants next before it knew. Nothing answers that.
        assert_eq!(wire.rest().await, "");
    }
    let (head, answer) =
        other.post("", &json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" })).await;
    assert!(head.starts_with("http/1.1 200") && answer["id"] == 7, "{head}{answer}");
    site.ended().await;
}

/// What a client does with its stream, after it has read some of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Habit {
    Reads,
    ReadsSlowly,
    SendsMore,
    Leaves,
    Resets,
    ClosesItsSide,
}

const HABITS: [Habit; 6] = [
    Habit::Reads,
    Habit::ReadsSlowly,
    Habit::SendsMore,
    Habit::Leaves,
    Habit::Resets,
    Habit::ClosesItsSide,
];

impl Habit {
    fn stays(self) -> bool {
        matches!(self, Self::Reads | Self::ReadsSlowly | Self::SendsMore)
    }
}

/// Opens a stream and lives with it by habit, until it ends.
async fn live(mut wire: Wire, habit: Habit, modern: bool) {
    let session = if modern { None } else { Some(wire.session(&[GATE.to_owned()]).await) };
    if habit == Habit::SendsMore {
        wire.behind = "GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(300);
    }
    match session {
        Some(session) => wire.stream(&session).await,
        None => wire.listen().await,
    }
    let mut seen = Seen::default();
    seen.until(&mut wire, |seen| seen.of(GATE) >= 20 && seen.comments > 0).await;
    assert!(!seen.ended);
    match habit {
        Habit::Reads => {}
        Habit::ReadsSlowly => {
            for _ in 0..100 {
                let before = seen.messages.len();
                seen.until(&mut wire, |seen| seen.messages.len() > before).await;
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        Habit::SendsMore => wire.stream.write_all(&[b'x'; 16 << 10]).await.unwrap(),
        Habit::Leaves => return,
        Habit::Resets => return wire.stream.set_zero_linger().unwrap(),
        Habit::ClosesItsSide => {
            wire.stream.shutdown().await.unwrap();
            while wire.more().await {}
            return;
        }
    }
    seen.until(&mut wire, |_| false).await;
    assert_eq!(wire.rest().await, "", "nothing follows the end");
    let last = seen.messages.last().unwrap();
    assert_eq!(last.get("result").is_some(), modern, "{last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn streams_are_whole_whatever_others_do() {
    let site = site(|config| config.keep_alive = Duration::from_millis(1)).await;
    for round in 0..3 {
        let (mut staying, mut leaving) = (JoinSet::new(), JoinSet::new());
        for habit in HABITS {
            for number in 0..6 {
                let living = live(site.connect().await, habit, number % 2 == 0);
                if habit.stays() {
                    staying.spawn(living)
                } else {
                    leaving.spawn(living)
                };
            }
        }
        let left = async {
            while let Some(left) = leaving.join_next().await {
                left.unwrap();
            }
            // Whoever left is gone for the server, too.
            while site.figure("tidings_connections ") > staying.len() {
                tokio::task::yield_now().await;
            }
        };
        let watering = async {
            loop {
                site.garden.act(&["water", GATE]).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            () = watering => {}
            left = tokio::time::timeout(LONG, left) => left.unwrap(),
        }
        assert_eq!(site.figure("tidings_connections "), staying.len(), "round {round}");
        if round == 2 {
            // All streams end at once.
            site.cancel.cancel();
            while let Some(ended) = tokio::time::timeout(LONG, staying.join_next()).await.unwrap() {
                ended.unwrap();
            }
            break;
        }
        staying.shutdown().await;
    }
    let hub = site.hub.clone();
    site.ended().await;
    assert!(hub.metrics().contains("tidings_connections 0\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn an_answer_that_has_no_chunks_is_a_stream_all_the_same() {
    let site = site(|_| {}).await;
    let (mut wire, mut other) = (site.connect().await, site.connect().await);
    let session = other.session(&[GATE.to_owned()]).await;
    let headers = format!("mcp-session-id: {session}\r\n");
    let head = wire.ask("GET /mcp HTTP/1.0", &headers, "").await;
    assert!(head.starts_with("http/1.0 200") && !head.contains("chunked"), "{head}");
    let mut text = String::new();
    while !text.contains(GATE) {
        site.garden.act(&["water", GATE]).await;
        assert!(wire.more().await);
        text += &String::from_utf8(std::mem::take(&mut wire.bytes)).unwrap();
    }
    site.cancel.cancel();
    text += &wire.rest().await;
    let kinds = ["id: ", "retry: ", "data: "];
    let plain = |line: &str| line.is_empty() || kinds.iter().any(|kind| line.starts_with(kind));
    assert!(text.ends_with("\n\n") && text.lines().all(plain), "{text:?}");
    site.ended().await;
}
