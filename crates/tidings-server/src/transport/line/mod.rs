//! The socket of one connection, which the HTTP library and a writer of ours write in turns.
//!
//! The library writes the head of every answer and the beginning and end of every stream. While it
//! waits for a stream's next frame it has nothing to write, and then frames go to the socket
//! beside it, as chunks of the same body: through the library, each notice would cost a turn of
//! the connection's task.
//!
//! Invariant: bytes of the two are never mixed. A turn passes to us only when the body said that
//! it has nothing for now and the library has since flushed all it had, and back only between
//! chunks; both under one lock.

mod below;
#[cfg(test)]
mod tests;

use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::FutureExt as _;
use http::{Extensions, Version};
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::context::Address;
use crate::outbox::{Next, Outbox};
use crate::transport::chunk::Chunks;
use crate::transport::writer::Writer;

pub(crate) use below::Io;

/// How often it is looked whether a client that waits for an answer is still there.
const LOOK: Duration = Duration::from_secs(1);

/// One connection's socket and whose turn it is to write.
#[derive(Debug)]
pub(crate) struct Line {
    socket: TcpStream,
    /// Where the other end is, as it was accepted: a socket that was reset has no other end.
    peer: IpAddr,
    writer: Arc<Writer>,
    /// How many requests came on it.
    requests: AtomicUsize,
    /// Whether the line stands in its writer's list, where it stands at most once.
    queued: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    turn: Turn,
    /// The stream that is open on this connection: its outbox, and which of its readers it is.
    feed: Option<(Arc<Outbox>, u64)>,
    /// What the socket has not taken yet of a chunk. Invariant: empty unless it is our turn.
    rest: Bytes,
    /// When something was written last.
    sent: Instant,
    /// The connection's own task, which does all that must wait.
    task: Option<Waker>,
    /// Whether it is to be woken when a writer has written.
    wanted: bool,
    /// Why the socket could not be written.
    failure: Option<io::Error>,
}

/// Who may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The library: it was given something, or there is no stream.
    Library,
    /// The library still: it was given nothing more, but may not have flushed what it has.
    Flushing,
    /// We.
    Ours,
    /// We, and a writer holds a chunk that it is about to write.
    Writer,
}

/// What a stream's body must do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing for now.
    Wait,
    /// End: everything was written, and it is the library's turn.
    End,
}

impl Line {
    pub(crate) fn new(socket: TcpStream, peer: IpAddr, writer: Arc<Writer>) -> Arc<Self> {
        Arc::new(Self {
            socket,
            peer,
            writer,
            requests: AtomicUsize::new(0),
            queued: AtomicBool::new(false),
            state: Mutex::new(State::new()),
        })
    }

    /// Has small writes sent at once, and a peer that acknowledges nothing for this long given up.
    pub(crate) fn tune(&self, silence: Duration) -> io::Result<()> {
        self.socket.set_nodelay(true)?;
        socket2::SockRef::from(&self.socket).set_tcp_user_timeout(Some(silence))
    }

    /// Notes the line in a request that comes on it. Whoever keeps the request does not keep the
    /// connection open.
    pub(crate) fn note(self: &Arc<Self>, extensions: &mut Extensions) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        extensions.insert(Arc::downgrade(self));
        extensions.insert(Address(self.peer));
    }

    /// Where a request came from, if it came over a connection of ours that is still open.
    pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Weak<Self>>()?.upgrade().map(|line| line.peer)
    }

    /// The line on which a request came, if the stream that answers it can be written directly: it
    /// came over a connection of ours, and the answer will have chunks.
    pub(crate) fn of(extensions: &Extensions, version: Version) -> Option<Arc<Self>> {
        extensions.get::<Weak<Self>>().filter(|_| version == Version::HTTP_11)?.upgrade()
    }

    /// Waits until the client has hung up. The library finds that out by itself, but not if the
    /// client sent anything after its request.
    pub(crate) async fn hung_up(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let ready = self.socket.ready(Interest::READABLE).now_or_never();
            if ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed)) {
                break;
            }
        }
    }

    /// A stream begins; the library has yet to write its head.
    pub(crate) fn begin(&self, outbox: &Arc<Outbox>, reader: u64) {
        let feed = Some((outbox.clone(), reader));
        let before = std::mem::replace(&mut *self.lock(), State { feed, ..State::new() });
        // What it held may have locks of its own, so it goes when this one is free.
        drop(before);
    }

    /// The stream of this reader is gone.
    pub(crate) fn end(&self, outbox: &Arc<Outbox>, reader: u64) {
        let mut state = self.lock();
        let own =
            |(feeding, of): &(Arc<Outbox>, u64)| Arc::ptr_eq(feeding, outbox) && *of == reader;
        if state.feed.as_ref().is_some_and(own) {
            let ended = std::mem::replace(&mut *state, State::new());
            drop(state);
            drop(ended);
        }
    }

    /// Goes on with the stream, from the connection's own task: writes what the socket did not take
    /// before, and what waits behind it.
    ///
    /// # Errors
    ///
    /// The socket cannot be written any more.
    pub(crate) fn poll(self: &Arc<Self>, context: &mut Context<'_>) -> io::Result<Step> {
        let mut state = self.lock();
        match &mut state.task {
            Some(task) => task.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        if let Some(failure) = state.failure.take() {
            return Err(failure);
        }
        match state.turn {
            Turn::Ours => state.wanted = false,
            Turn::Writer => {
                state.wanted = true;
                return Ok(Step::Wait);
            }
            Turn::Library | Turn::Flushing => {
                state.turn = Turn::Flushing;
                return Ok(Step::Wait);
            }
        }
        loop {
            if !state.rest.is_empty() {
                if self.poll_rest(&mut state.rest, context)?.is_pending() {
                    return Ok(Step::Wait);
                }
                state.sent = Instant::now();
            }
            let Some((outbox, reader)) = &state.feed else { return Ok(Step::Wait) };
            let waker = Waker::from(self.clone());
            match outbox.poll_next(*reader, &mut Context::from_waker(&waker)) {
                Poll::Ready(Next::Frames(frames)) => state.rest = Chunks::one(&frames),
                Poll::Ready(Next::Closed) => {
                    state.turn = Turn::Library;
                    return Ok(Step::End);
                }
                Poll::Pending => return Ok(Step::Wait),
            }
        }
    }

    /// Gives the turn back to the library, for something that the body has; not if a chunk is not
    /// written to its end.
    pub(crate) fn hand_over(&self) -> bool {
        let mut state = self.lock();
        let can = state.turn == Turn::Ours && state.rest.is_empty();
        if can {
            state.turn = Turn::Library;
        }
        can
    }

    /// When something was written last beside the library.
    pub(crate) fn sent(&self) -> Instant {
        self.lock().sent
    }

    /// Takes what waits, as a chunk, for [`Self::write`]; both are the writer's.
    pub(crate) fn take(self: &Arc<Self>, chunks: &mut Chunks) -> Option<Range<usize>> {
        // Order: out of the list first, then a look at what waits. Whoever finds the line in the
        // list comes before this swap, so what it tells of is seen.
        self.queued.swap(false, Ordering::AcqRel);
        let mut state = self.lock();
        if state.turn != Turn::Ours || !state.rest.is_empty() {
            // Whoever ends that looks at the outbox again.
            return None;
        }
        let (outbox, reader) = state.feed.as_ref()?;
        let taken = outbox.take_into(*reader, chunks.begin(), || Waker::from(self.clone()));
        let chunk = chunks.finish();
        state.wanted |= taken.wants_task;
        if chunk.is_some() {
            state.turn = Turn::Writer;
        }
        let task = state.wanted_task();
        drop(state);
        if taken.cut {
            self.queue();
        }
        task.into_iter().for_each(Waker::wake);
        chunk
    }

    /// Writes a chunk that was taken. It does not wait: what the socket does not take at once is
    /// left to the connection's own task.
    pub(crate) fn write(&self, now: Instant, chunk: &[u8]) {
        let mut state = self.lock();
        if state.turn != Turn::Writer {
            // The stream is gone, and the connection with it.
            return;
        }
        state.turn = Turn::Ours;
        state.sent = now;
        let written = match self.socket.try_write(chunk) {
            Ok(written) => written,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
            Err(error) => {
                state.failure = Some(error);
                state.wanted = true;
                chunk.len()
            }
        };
        if written < chunk.len() {
            state.rest = Bytes::copy_from_slice(&chunk[written..]);
            state.wanted = true;
        }
        let task = state.wanted_task();
        drop(state);
        task.into_iter().for_each(Waker::wake);
    }

    fn poll_rest(&self, rest: &mut Bytes, context: &mut Context<'_>) -> io::Result<Poll<()>> {
        while !rest.is_empty() {
            if self.socket.poll_write_ready(context)?.is_pending() {
                return Ok(Poll::Pending);
            }
            match self.socket.try_write(rest) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => rest.advance(written),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Poll::Ready(()))
    }

    /// The library has written all it had.
    fn flushed(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.turn != Turn::Flushing {
            return;
        }
        state.turn = Turn::Ours;
        drop(state);
        self.queue();
    }

    fn queue(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.writer.push(self.clone());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds a line")
    }
}

impl State {
    /// No stream.
    fn new() -> Self {
        Self {
            turn: Turn::Library,
            feed: None,
            rest: Bytes::new(),
            sent: Instant::now(),
            task: None,
            wanted: false,
            failure: None,
        }
    }

    /// The task, if it is wanted and not kept from going on by a writer.
    fn wanted_task(&mut self) -> Option<Waker> {
        if self.turn == Turn::Writer || !std::mem::take(&mut self.wanted) {
            return None;
        }
        self.task.clone()
    }
}

/// An outbox wakes a line when something waits.
impl Wake for Line {
    fn wake(self: Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            let writer = self.writer.clone();
            writer.push(self);
        }
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.queue();
    }
}
