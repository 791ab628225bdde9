//! Streams that left the library, each with a real socket and a client at its other end.

use bytes::Bytes;
use tidings_core::{Fingerprint, ResourceUri};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpSocket};

use super::*;
use crate::about::About;
use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::notice::{Notice, Wire};
use crate::outbox::{Check, Outbox, Pulse, Seen};

/// How long a notice may be held back here.
const PATIENCE: Duration = Duration::from_secs(1);
/// A time between comments that no test waits for.
const NEVER: Duration = Duration::from_hours(10);
const LAST: &str = "data: last\n\n";

/// A stream, the listener behind it and the client before it.
struct Bench {
    writers: Writers,
    outbox: Arc<Outbox>,
    uri: ResourceUri,
    pulse: Pulse,
    client: TcpStream,
    /// Notified when the guard of the stream is dropped.
    ended: Arc<tokio::sync::Semaphore>,
}

struct Ends(Arc<tokio::sync::Semaphore>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

/// Both ends of a connection; with buffers as small as they can be.
async fn pair(narrow: bool) -> (TcpStream, TcpStream) {
    let (server, client) = (TcpSocket::new_v4().unwrap(), TcpSocket::new_v4().unwrap());
    if narrow {
        server.set_send_buffer_size(4096).unwrap();
        client.set_recv_buffer_size(4096).unwrap();
    }
    server.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener: TcpListener = server.listen(1).unwrap();
    let client = client.connect(listener.local_addr().unwrap()).await.unwrap();
    (listener.accept().await.unwrap().0, client)
}

async fn bench_with(idle: Duration, narrow: bool, unread: usize, uri: &str) -> Bench {
    let (socket, client) = pair(narrow).await;
    let wire = Wire::Legacy { titled: false, numbered: false };
    let outbox = Outbox::new(1, wire, About::nobody(), PATIENCE, Arc::new(Metrics::new()));
    let (uri, pulse) = (ResourceUri::parse(uri).unwrap(), Pulse::default());
    outbox.follow(&uri, &pulse);
    let (writers, ended) = (Writers::start(idle), Arc::new(tokio::sync::Semaphore::new(0)));
    let last = Some(Bytes::from_static(LAST.as_bytes()));
    let feed = Feed::new(outbox.clone(), last, Ends(ended.clone()));
    let bench = Bench { writers, outbox, uri, pulse, client, ended };
    bench.outbox.baseline(&bench.uri, bench.check(), &Labels::NONE);
    bench.writers.next().take(socket, feed, unread);
    bench
}

async fn bench() -> Bench {
    bench_with(NEVER, false, 0, "p://a").await
}

impl Bench {
    fn check(&self) -> Check {
        let at = self.pulse.count();
        Check { at, fingerprint: Fingerprint::of_bytes(&at.to_le_bytes()) }
    }

    /// The thing changes, and a notice waits.
    fn change(&self) {
        self.pulse.beat();
        let notice = Arc::new(Notice::updated(&self.uri, None));
        let (check, audience) = (self.check(), &Labels::NONE);
        let seen = Seen { check, audience, notice: &notice, gone: &notice };
        self.outbox.mark(&self.uri, &seen, Instant::now());
    }

    /// The content of the next chunk; `None` at the end of the body.
    async fn chunk(&mut self) -> Option<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n") {
            head.push(char::from(self.client.read_u8().await.unwrap()));
        }
        let length = usize::from_str_radix(head.trim_end(), 16).unwrap();
        let mut content = vec![0; length + 2];
        self.client.read_exact(&mut content).await.unwrap();
        assert!(content.ends_with(b"\r\n"));
        content.truncate(length);
        (length > 0).then(|| String::from_utf8(content).unwrap())
    }

    /// The stream ends, and its socket is closed.
    async fn is_gone(&self) {
        self.ended.acquire().await.unwrap().forget();
        self.writers.idle().await;
    }
}

#[tokio::test]
async fn notices_are_chunks_and_the_end_is_the_last_of_them() {
    let mut bench = bench().await;
    for _ in 0..3 {
        bench.change();
        assert!(bench.chunk().await.unwrap().contains("p://a"));
    }
    bench.change();
    bench.outbox.close();
    assert!(bench.chunk().await.unwrap().contains("p://a"), "what waits comes before the end");
    assert_eq!(bench.chunk().await.as_deref(), Some(LAST));
    assert_eq!(bench.chunk().await, None);
    assert_eq!(bench.client.read(&mut [0]).await.unwrap(), 0);
    drop(std::mem::replace(&mut bench.client, pair(false).await.0));
    bench.is_gone().await;
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_at_once() {
    for how in ["closes", "resets", "closes its side"] {
        let mut bench = bench().await;
        bench.change();
        bench.chunk().await.unwrap();
        if how == "closes its side" {
            bench.client.shutdown().await.unwrap();
            bench.is_gone().await;
        } else {
            let client = std::mem::replace(&mut bench.client, pair(false).await.0);
            if how == "resets" {
                client.set_zero_linger().unwrap();
            }
            drop(client);
            bench.is_gone().await;
        }
    }
}

#[tokio::test]
async fn bytes_after_the_request_are_ignored_up_to_a_limit() {
    let limit = 64 << 10;
    for before in [0, 100, limit] {
        let mut bench = bench_with(NEVER, false, before, "p://a").await;
        bench.client.write_all(&vec![b'x'; limit - before]).await.unwrap();
        for _ in 0..3 {
            bench.change();
            assert!(bench.chunk().await.unwrap().contains("p://a"));
        }
        bench.client.write_all(b"x").await.unwrap();
        bench.is_gone().await;
    }
}

#[tokio::test]
async fn a_reader_that_stands_still_reads_whole_chunks_later_and_delays_nobody() {
    let name = format!("p://{}", "long".repeat(500));
    let mut slow = bench_with(NEVER, true, 0, &name).await;
    let mut other = bench_with(NEVER, false, 0, "p://a").await;
    for _ in 0..3 {
        // Until the socket takes no more: then one notice waits, whatever happens.
        for _ in 0..1000 {
            slow.change();
            other.change();
            assert!(other.chunk().await.unwrap().contains("p://a"));
        }
        assert_eq!(slow.outbox.waiting(), 1);
        let sent = slow.outbox.sent();
        // The one that waited comes after those that the socket has.
        while slow.outbox.sent() == sent {
            assert!(slow.chunk().await.unwrap().contains(&name));
        }
    }
    slow.outbox.close();
    while let Some(chunk) = slow.chunk().await {
        assert!(chunk.contains(&name) || chunk == LAST, "{chunk}");
    }
    assert_eq!(slow.client.read(&mut [0]).await.unwrap(), 0);
}

#[tokio::test]
async fn an_end_that_does_not_fit_into_the_socket_is_complete() {
    let name = format!("p://{}", "long".repeat(500));
    let mut slow = bench_with(NEVER, true, 0, &name).await;
    while slow.outbox.waiting() == 0 {
        slow.change();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    slow.outbox.close();
    let mut last = String::new();
    while let Some(chunk) = slow.chunk().await {
        last = chunk;
    }
    assert_eq!(last, LAST);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_is_held_back_is_sent_when_it_was_held_long_enough() {
    let mut bench = bench().await;
    bench.change();
    bench.pulse.beat();
    let begun = Instant::now();
    assert!(bench.chunk().await.unwrap().contains("p://a"));
    assert!(begun.elapsed() >= PATIENCE, "{:?}", begun.elapsed());
    // The next one is not held.
    bench.change();
    assert!(bench.chunk().await.unwrap().contains("p://a"));
    assert!(begun.elapsed() < 2 * PATIENCE, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_client_that_does_not_close_is_closed_after_a_while() {
    let mut bench = bench().await;
    bench.outbox.close();
    bench.ended.acquire().await.unwrap().forget();
    let begun = Instant::now();
    // What it sends meanwhile does no harm to the end of its stream.
    bench.client.write_all(b"GET / HTTP/1.1\r\n").await.unwrap();
    assert_eq!(bench.chunk().await.as_deref(), Some(LAST));
    assert_eq!(bench.chunk().await, None);
    bench.writers.idle().await;
    assert!((1..3).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn an_end_that_nobody_reads_is_given_up() {
    let name = format!("p://{}", "long".repeat(500));
    let slow = bench_with(Duration::from_secs(15), true, 0, &name).await;
    while slow.outbox.waiting() == 0 {
        slow.change();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
    }
    slow.outbox.close();
    slow.writers.idle().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_stream_gets_comments_in_time() {
    let idle = Duration::from_secs(15);
    let mut bench = bench_with(idle, false, 0, "p://a").await;
    let mut last = Instant::now();
    for _ in 0..5 {
        assert_eq!(bench.chunk().await.as_deref(), Some(":\n\n"));
        assert!(last.elapsed() <= idle + Duration::from_millis(2), "{:?}", last.elapsed());
        last = Instant::now();
    }
}

#[tokio::test]
async fn stopped_writers_leave_no_stream() {
    let mut bench = bench().await;
    bench.change();
    bench.chunk().await.unwrap();
    bench.writers.stop().await;
    bench.ended.acquire().await.unwrap().forget();
    assert_eq!(bench.client.read(&mut [0]).await.unwrap(), 0);
}
