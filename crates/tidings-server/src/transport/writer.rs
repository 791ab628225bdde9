//! Writers: tasks that write waiting notices to the sockets of streams.
//!
//! A writer never waits for a socket. The connection's own task writes the rest that a socket does
//! not accept, so a slow reader delays nobody else.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::transport::chunk::Chunks;
use crate::transport::line::Line;

/// How many sockets are written before other tasks run: a fraction of a millisecond.
const TURN: usize = 64;

/// The lines with waiting notices, and the task that writes to them.
#[derive(Debug, Default)]
pub(crate) struct Writer {
    /// Invariant: a line is here at most once, so there are at most as many as connections.
    ready: Mutex<Vec<Arc<Line>>>,
    wake: Notify,
}

impl Writer {
    /// Notes that a notice waits for a line.
    pub(crate) fn push(&self, line: Arc<Line>) {
        let mut ready = self.lock();
        ready.push(line);
        let first = ready.len() == 1;
        drop(ready);
        if first {
            self.wake.notify_one();
        }
    }

    async fn run(self: Arc<Self>) {
        let (mut lines, mut chunks, mut taken) = (Vec::new(), Chunks::default(), Vec::new());
        loop {
            std::mem::swap(&mut *self.lock(), &mut lines);
            if lines.is_empty() {
                // Cancel-safe: the first entry of an empty list leaves a permit.
                self.wake.notified().await;
                continue;
            }
            let mut left = lines.drain(..);
            while left.len() > 0 {
                // All are taken, then all are written: alternating with the kernel's work would
                // empty the processor's caches each time.
                let now = Instant::now();
                for line in left.by_ref().take(TURN) {
                    taken.extend(line.take(&mut chunks).map(|chunk| (line, chunk)));
                }
                for (line, chunk) in taken.drain(..) {
                    line.write(now, chunks.get(chunk));
                }
                chunks.clear();
                tokio::task::yield_now().await;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Line>>> {
        self.ready.lock().expect("no code panics while it holds the lines that are ready")
    }
}

/// The writers of one server: as many as can run at once.
#[derive(Debug)]
pub(crate) struct Writers {
    all: Vec<Arc<Writer>>,
    next: AtomicUsize,
    /// They end when this is dropped.
    _tasks: JoinSet<()>,
}

impl Writers {
    /// Starts the writers of this runtime.
    pub(crate) fn start() -> Self {
        let workers = Handle::current().metrics().num_workers();
        let all: Vec<Arc<Writer>> = (0..workers).map(|_| Arc::default()).collect();
        let tasks = all.iter().map(|writer| writer.clone().run()).collect();
        Self { all, next: AtomicUsize::new(0), _tasks: tasks }
    }

    /// The writer of the next connection.
    pub(crate) fn next(&self) -> Arc<Writer> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        self.all[next % self.all.len()].clone()
    }
}
