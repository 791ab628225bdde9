//! Writers: tasks that own the sockets of streams and write everything that streams send.
//!
//! A writer never waits for a socket. What a socket does not accept waits beside it, and the socket
//! wakes its writer when it accepts more. So a slow reader delays nobody else.

mod bell;
mod detached;
mod streams;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use crate::transport::chunk::Chunks;
use crate::transport::line::Feed;
use bell::{Work, WorkList};
use detached::Newcomer;
use streams::Streams;

/// How many streams are served before other tasks run: a fraction of a millisecond. A stream asks
/// its socket at most four times in that, and the runtime lets a task ask 128 times before it must
/// pause. A question beyond that wakes the stream, which is served in the next turn.
const TURN: usize = 64;

/// One of the writers.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    list: Arc<WorkList>,
    /// All streams of all writers, until their sockets are closed.
    open: TaskTracker,
}

impl Writer {
    /// Takes a stream over, with its socket. The client sent this many bytes after its request.
    pub(crate) fn take(&self, socket: TcpStream, feed: Feed, unread: usize) {
        self.list.add(Newcomer { socket, feed, unread, open: self.open.token() });
    }

    /// Serves streams, with a comment on each that is idle for so long.
    async fn run(self, idle: Duration) {
        let mut streams = Streams::new(self.list.clone(), idle);
        let (mut work, mut chunks) = (Work::default(), Chunks::default());
        loop {
            self.list.swap(&mut work);
            let now = Instant::now();
            work.newcomers.drain(..).for_each(|newcomer| streams.add(newcomer));
            streams.ring_those_due(now);
            if work.ready.is_empty() {
                // Cancel-safe: work for an empty list leaves a permit.
                let work = self.list.wake.notified();
                match streams.next_due() {
                    Some(due) => drop(tokio::time::timeout_at(due, work).await),
                    None => work.await,
                }
                continue;
            }
            for turn in work.ready.chunks(TURN) {
                streams.serve(turn, &mut chunks);
                tokio::task::yield_now().await;
            }
            work.ready.clear();
        }
    }
}

/// The writers of one server: as many as can run at once.
#[derive(Debug)]
pub(crate) struct Writers {
    all: Vec<Writer>,
    next: AtomicUsize,
    open: TaskTracker,
    /// They end when this is dropped.
    tasks: JoinSet<()>,
}

impl Writers {
    /// Starts the writers of this runtime. An idle stream gets a comment after `idle`.
    pub(crate) fn start(idle: Duration) -> Self {
        let (workers, open) = (Handle::current().metrics().num_workers(), TaskTracker::new());
        let writer = |_| Writer { list: Arc::default(), open: open.clone() };
        let all: Vec<Writer> = (0..workers).map(writer).collect();
        let tasks = all.iter().map(|writer| writer.clone().run(idle)).collect();
        Self { all, next: AtomicUsize::new(0), open, tasks }
    }

    /// The writer of the next connection.
    pub(crate) fn next(&self) -> Writer {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.all[next % self.all.len()].clone()
    }

    /// Waits until no stream is open; no more may come.
    pub(crate) async fn idle(&self) {
        self.open.close();
        self.open.wait().await;
    }

    /// Ends the writers, and with them all streams.
    pub(crate) async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
