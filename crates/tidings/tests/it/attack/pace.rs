//! Large messages: whoever sends them holds up nobody else.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::{head, site};

/// For no longer may work on large messages keep a thread that serves everyone.
const LONGEST: Duration = Duration::from_millis(20);

/// The processor time that this thread has had. Unlike the clock, it does not run while others have
/// the processor.
fn worked() -> Duration {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(figures.split(' ').next().unwrap().parse().unwrap())
}

/// Calls with arguments that are only just accepted, and one that is not: many rows, very many short
/// texts, one long text, and a bomb.
fn arguments() -> Vec<(String, u16)> {
    let row = format!(r#"{{"id":1,"text":"{}"}},"#, "a row of some length ".repeat(6));
    let rows = row.repeat(4_000_000 / row.len());
    let texts = r#""brief","#.repeat(520_000);
    let long = format!(r#""{}","#, "x".repeat(4_000_000));
    let bomb = r#"{"":0},"#.repeat(4_000_000 / 7);
    let rows = [(rows, 200), (texts, 200), (long, 200), (bomb, 413)];
    rows.map(|(rows, status)| (format!(r#"{{"rows":[{rows}0]}}"#), status)).into()
}

/// A call of `count`: for a session, or else a modern one.
fn call(arguments: &str, session: Option<&str>) -> Vec<u8> {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}},"#;
    let (meta, headers) = if let Some(session) = session {
        ("", format!("mcp-session-id: {session}"))
    } else {
        let modern = "mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call";
        (meta, format!("{modern}\r\nmcp-name: count"))
    };
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{{meta}"name":"count","arguments":{arguments}}}}}"#
    );
    let head = head(body.len())
        .replace("\r\n\r\n", &format!("\r\nconnection: close\r\n{headers}\r\n\r\n"));
    (head + &body).into_bytes()
}

/// Sends a request from a thread of its own; returns the status.
fn send(address: SocketAddr, request: &[u8]) -> u16 {
    let mut socket = TcpStream::connect(address).unwrap();
    socket.write_all(request).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    answer.strip_prefix("HTTP/1.1 ").and_then(|answer| answer.get(..3)).unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn large_messages_keep_no_thread_that_serves_others() {
    let site = site(|_| {}).await;
    let (session, address) = (site.session().await, site.address);
    let calls: Vec<_> = arguments()
        .into_iter()
        .flat_map(|(arguments, status)| {
            [Some(session.as_str()), None].map(|session| (call(&arguments, session), status))
        })
        .collect();
    let done = std::sync::Arc::new(AtomicBool::new(false));
    let is_done = done.clone();
    let sending = std::thread::spawn(move || {
        for (call, status) in &calls {
            assert_eq!(send(address, call), *status);
        }
        is_done.store(true, Ordering::Relaxed);
    });
    // The server has this thread only. Whatever it does comes between two ticks.
    let mut tick = tokio::time::interval(Duration::from_millis(1));
    let (mut before, mut longest) = (worked(), Duration::ZERO);
    while !done.load(Ordering::Relaxed) && !sending.is_finished() {
        tick.tick().await;
        let now = worked();
        longest = longest.max(now.saturating_sub(before));
        before = now;
    }
    sending.join().unwrap();
    assert!(longest <= LONGEST, "{longest:?}");
    site.ended().await;
}
