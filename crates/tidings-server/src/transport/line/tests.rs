//! Whose turn it is, step by step, with a real socket below.

use std::pin::Pin;
use std::time::Duration;

use tidings_core::{Fingerprint, ResourceUri};
use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::about::About;
use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::notice::{Notice, Wire};
use crate::outbox::{Check, Pulse, Seen};

/// How long a notice may be held back here.
const PATIENCE: Duration = Duration::from_secs(1);

/// A line with a stream, the listener behind it and the client before it.
struct Bench {
    line: Arc<Line>,
    io: Io,
    outbox: Arc<Outbox>,
    uri: ResourceUri,
    pulse: Pulse,
    client: TcpStream,
    /// Counts how often the connection's task was woken.
    task: Arc<Woken>,
}

#[derive(Default)]
struct Woken(std::sync::atomic::AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

async fn bench() -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    socket.writable().await.unwrap();
    let wire = Wire::Legacy { titled: false, numbered: false };
    let outbox = Outbox::new(1, wire, About::nobody(), PATIENCE, Arc::new(Metrics::new()));
    let (uri, pulse) = (ResourceUri::parse("p://a").unwrap(), Pulse::default());
    outbox.follow(&uri, &pulse);
    let line = Line::new(socket, [127, 0, 0, 1].into(), Arc::default());
    line.begin(&outbox, outbox.attach());
    let io = Io::new(line.clone());
    let bench = Bench { line, io, outbox, uri, pulse, client, task: Arc::default() };
    bench.outbox.baseline(&bench.uri, bench.check(), &Labels::NONE);
    bench
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

    /// The library asks the body.
    fn poll(&self) -> Step {
        let waker = Waker::from(self.task.clone());
        self.line.poll(&mut Context::from_waker(&waker)).unwrap()
    }

    /// The library has written all it had.
    fn flush(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut self.io).poll_flush(&mut context).is_ready());
    }

    fn write(&self) {
        let mut chunks = Chunks::default();
        if let Some(chunk) = self.line.take(&mut chunks) {
            self.line.write(Instant::now(), chunks.get(chunk));
        }
    }

    /// What the client got of what we wrote; a mark of the library's own follows it.
    async fn got(&mut self) -> String {
        self.io.write_all(b"|").await.unwrap();
        let mut text = String::new();
        while !text.ends_with('|') {
            text.push(char::from(self.client.read_u8().await.unwrap()));
        }
        text.pop();
        text
    }
}

#[tokio::test]
async fn nothing_is_written_before_the_library_has_flushed() {
    let mut bench = bench().await;
    bench.change();
    bench.flush();
    bench.write();
    assert_eq!(bench.got().await, "", "the library was given something, and may hold it");
    assert_eq!(bench.poll(), Step::Wait);
    bench.write();
    assert_eq!(bench.got().await, "", "it was given nothing more, and may hold what it has");
    bench.flush();
    bench.write();
    let got = bench.got().await;
    assert!(got.contains("p://a") && got.ends_with("\n\n\r\n"), "{got:?}");
}

#[tokio::test]
async fn nothing_is_written_while_the_library_has_something_to_write() {
    let mut bench = bench().await;
    bench.poll();
    bench.flush();
    assert!(bench.line.hand_over());
    bench.change();
    bench.write();
    assert_eq!(bench.got().await, "");
    bench.poll();
    bench.flush();
    bench.outbox.close();
    bench.write();
    assert!(bench.got().await.contains("p://a"), "what waits comes before the end");
    assert_eq!(bench.poll(), Step::End);
    bench.flush();
    bench.change();
    bench.write();
    assert_eq!(bench.got().await, "", "the end is the library's");
}

#[tokio::test(start_paused = true)]
async fn what_is_held_back_is_left_to_the_task_that_can_wait() {
    let mut bench = bench().await;
    bench.poll();
    bench.flush();
    bench.change();
    bench.pulse.beat();
    bench.write();
    assert_eq!(bench.got().await, "", "it is dirty again");
    assert_eq!(bench.task.0.load(Ordering::Relaxed), 1);
    tokio::time::advance(PATIENCE).await;
    bench.poll();
    assert!(bench.got().await.contains("p://a"));
}

#[tokio::test]
async fn a_chunk_that_was_taken_comes_before_what_the_body_has() {
    let mut bench = bench().await;
    bench.poll();
    bench.flush();
    bench.change();
    bench.outbox.close();
    let mut chunks = Chunks::default();
    let chunk = bench.line.take(&mut chunks).unwrap();
    assert_eq!(bench.poll(), Step::Wait, "not the end yet");
    assert!(!bench.line.hand_over(), "nor a comment");
    assert_eq!(bench.task.0.load(Ordering::Relaxed), 0);
    bench.line.write(Instant::now(), chunks.get(chunk));
    assert_eq!(bench.task.0.load(Ordering::Relaxed), 1, "now it can go on");
    assert_eq!(bench.poll(), Step::End);
    assert!(bench.got().await.contains("p://a"));
}

#[tokio::test]
async fn a_client_that_is_gone_is_an_error_of_the_body() {
    let mut bench = bench().await;
    bench.poll();
    bench.flush();
    drop(std::mem::replace(&mut bench.client, {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        TcpStream::connect(listener.local_addr().unwrap()).await.unwrap()
    }));
    // The first write is answered by a reset, the next fails.
    while bench.task.0.load(Ordering::Relaxed) == 0 {
        bench.change();
        bench.write();
        tokio::task::yield_now().await;
    }
    let waker = Waker::from(bench.task.clone());
    bench.line.poll(&mut Context::from_waker(&waker)).unwrap_err();
}

/// Writes an answer of eight megabytes through the library's side, to a client that reads so many
/// bytes every 50 seconds.
async fn answered(reads: usize, is_listener: bool) -> io::Result<()> {
    let mut bench = bench().await;
    if !is_listener {
        bench.line.note(&mut Extensions::new());
        bench.line.state.lock().unwrap().feed = None;
    }
    let (mut client, mut part) = (bench.client, vec![0; reads]);
    let reading = async move {
        loop {
            tokio::time::sleep(Duration::from_secs(50)).await;
            if !part.is_empty() && client.read_exact(&mut part).await.is_err() {
                break;
            }
        }
    };
    let answer = vec![b'x'; 8 << 20];
    tokio::select! {
        written = bench.io.write_all(&answer) => written,
        () = reading => unreachable!("the line outlives its reader"),
        () = tokio::time::sleep(Duration::from_hours(1)) => Err(io::ErrorKind::Other.into()),
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_read_too_slowly_is_given_up() {
    let result = async |reads| answered(reads, false).await.map_err(|error| error.kind());
    assert_eq!(result(0).await, Err(io::ErrorKind::TimedOut));
    assert_eq!(result(100 << 10).await, Err(io::ErrorKind::TimedOut));
    assert_eq!(result(2 << 20).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_listener_may_read_as_slowly_as_it_likes() {
    let error = answered(0, true).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::Other, "it is still waited for after an hour");
}
