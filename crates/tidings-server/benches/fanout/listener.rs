//! The listeners of one load client: each counts the notices on its own stream.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// What stands once in every notice that is counted.
const MARK: &[u8] = b"notifications/resources/updated";
/// Larger than any one notice; a stream that brings more at once is read again.
const BUFFER: usize = 4096;

/// All listeners of one client; they end when this is dropped.
pub(crate) struct Listeners {
    tally: Rc<Tally>,
    tasks: JoinSet<()>,
}

/// What the listeners have seen together. One thread, so plain cells do.
pub(crate) struct Tally {
    /// When the change was asked for that is being waited for.
    pub(crate) asked: Cell<Instant>,
    /// Notices so far.
    pub(crate) seen: Cell<usize>,
    /// The number of notices at which `reached` is rung.
    pub(crate) target: Cell<usize>,
    /// When the last notice came.
    pub(crate) last: Cell<Instant>,
    /// Rung when the target is reached or a stream has ended.
    pub(crate) reached: Notify,
    /// From `asked` to each notice, in microseconds.
    pub(crate) delays: RefCell<Vec<f64>>,
    /// Streams that have ended; none should.
    pub(crate) lost: Cell<usize>,
}

impl Listeners {
    pub(crate) fn new() -> Self {
        let tally = Tally {
            asked: Cell::new(Instant::now()),
            seen: Cell::new(0),
            target: Cell::new(usize::MAX),
            last: Cell::new(Instant::now()),
            reached: Notify::new(),
            delays: RefCell::default(),
            lost: Cell::new(0),
        };
        Self { tally: Rc::new(tally), tasks: JoinSet::new() }
    }

    /// Reads a stream from now on.
    pub(crate) fn add(&mut self, stream: TcpStream) {
        self.tasks.spawn_local(read(stream, self.tally.clone()));
    }

    pub(crate) fn count(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }
}

async fn read(mut stream: TcpStream, tally: Rc<Tally>) {
    let mut buffer = vec![0; BUFFER];
    let mut kept = 0;
    while let Ok(length @ 1..) = stream.read(&mut buffer[kept..]).await {
        let end = kept + length;
        let (notices, rest) = count(&buffer[..end]);
        // A notice cut in two by the socket is found with the next bytes.
        let from = rest.max(end.saturating_sub(MARK.len() - 1));
        buffer.copy_within(from..end, 0);
        kept = end - from;
        if notices > 0 {
            tally.note(notices);
        }
    }
    tally.lost.set(tally.lost.get() + 1);
    tally.reached.notify_one();
}

/// How many notices there are, and where the last one's mark ends.
fn count(bytes: &[u8]) -> (usize, usize) {
    let (mut notices, mut at) = (0, 0);
    while let Some(found) = bytes[at..].iter().position(|byte| *byte == MARK[0]) {
        at += found;
        if bytes[at..].starts_with(MARK) {
            notices += 1;
            at += MARK.len();
        } else if bytes.len() - at < MARK.len() {
            break;
        } else {
            at += 1;
        }
    }
    (notices, at.min(bytes.len()))
}

impl Tally {
    fn note(&self, notices: usize) {
        let now = Instant::now();
        self.last.set(now);
        self.delays.borrow_mut().push(now.duration_since(self.asked.get()).as_secs_f64() * 1e6);
        let seen = self.seen.get() + notices;
        self.seen.set(seen);
        if seen >= self.target.get() {
            self.reached.notify_one();
        }
    }
}
