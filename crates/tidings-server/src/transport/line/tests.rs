//! When a stream leaves the library, and how the library reads and writes, with a real socket.

use std::io;
use std::sync::atomic::AtomicBool;
use std::task::Waker;

use tokio::io::{AsyncReadExt as _, AsyncWrite as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::about::About;
use crate::metrics::Metrics;
use crate::notice::Wire;
use crate::outbox::Outbox;

/// A connection as the library has it, and the client at its other end.
struct Bench {
    line: Arc<Line>,
    io: Io,
    client: TcpStream,
    /// Whether the guard of the stream was dropped.
    ended: Arc<AtomicBool>,
}

struct Ends(Arc<AtomicBool>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn bench() -> Bench {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (socket, _) = listener.accept().await.unwrap();
    socket.writable().await.unwrap();
    let socket = Arc::new(socket);
    let line = Line::new(&socket, [127, 0, 0, 1].into());
    let io = Io::new(socket, line.clone());
    Bench { line, io, client, ended: Arc::default() }
}

impl Bench {
    /// A stream begins.
    fn begin(&self) -> Opening {
        let wire = Wire::Legacy { titled: false, numbered: false };
        let metrics = Arc::new(Metrics::new());
        let outbox = Outbox::new(1, wire, About::nobody(), Duration::ZERO, metrics);
        let feed = Feed::new(outbox, None, Ends(self.ended.clone()));
        self.line.begin(Bytes::from_static(b"first"), feed)
    }

    /// The library has written all it had.
    fn flush(&mut self) {
        let mut context = Context::from_waker(Waker::noop());
        assert!(Pin::new(&mut self.io).poll_flush(&mut context).is_ready());
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

/// The library asks the body; whether it got something.
fn poll(body: &mut Opening) -> bool {
    Pin::new(body).poll_frame(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[tokio::test]
async fn a_stream_leaves_after_a_flush_that_follows_its_first_event() {
    let mut bench = bench().await;
    bench.flush();
    assert!(bench.line.leave().is_none(), "there is no stream");
    let mut body = bench.begin();
    bench.flush();
    assert!(bench.line.leave().is_none(), "the library has not asked for anything yet");
    assert!(poll(&mut body));
    bench.flush();
    assert!(bench.line.leave().is_none(), "it may hold what it was given");
    assert!(!poll(&mut body));
    assert!(bench.line.leave().is_none(), "it has not written everything");
    bench.flush();
    let feed = bench.line.leave().expect("it has nothing more");
    assert!(bench.line.leave().is_none(), "it left");
    drop(body);
    assert!(!bench.has_ended(), "the body is of no more use");
    drop(feed);
    assert!(bench.has_ended());
}

#[tokio::test]
async fn a_stream_that_did_not_leave_ends_with_its_body() {
    let mut bench = bench().await;
    let mut body = bench.begin();
    assert!(poll(&mut body) && !poll(&mut body));
    drop(body);
    assert!(bench.has_ended());
    bench.flush();
    assert!(bench.line.leave().is_none());
}

/// Writes an answer of eight megabytes through the library's side, to a client that reads so many
/// bytes every 50 seconds.
async fn answered(reads: usize, is_listener: bool) -> io::Result<()> {
    let mut bench = bench().await;
    bench.line.note(&mut Extensions::new());
    let _body = is_listener.then(|| bench.begin());
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
