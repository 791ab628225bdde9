//! The socket of one connection, written by the HTTP library and a writer of ours in turns.
//!
//! The library writes the head of every answer and the beginning and end of every stream. While it
//! waits for a stream's next frame, our writer sends frames to the socket as chunks of the same
//! body. Through the library, each notice would cost a turn of the connection's task.
//!
//! Invariant: the bytes of the two are never mixed. The turn passes to us only when the body has
//! nothing for now and the library has flushed everything since. It passes back only between chunks.
//! Both happen under one lock.

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

/// How often to check whether a client that waits for an answer is still connected.
const LOOK: Duration = Duration::from_secs(1);

/// One connection's socket and whose turn it is to write.
#[derive(Debug)]
pub(crate) struct Line {
    socket: TcpStream,
    /// The peer's address when it was accepted: a socket that was reset has none.
    peer: IpAddr,
    writer: Arc<Writer>,
    /// The number of its requests.
    requests: AtomicUsize,
    /// Whether the line is in its writer's list, where it is at most once.
    queued: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    turn: Turn,
    /// The open stream of this connection: its outbox, and its number among the readers.
    feed: Option<(Arc<Outbox>, u64)>,
    /// The rest of a chunk that the socket has not accepted yet. Invariant: empty unless it is our
    /// turn.
    rest: Bytes,
    /// The time of the last write.
    sent: Instant,
    /// The connection's own task, which does all waiting.
    task: Option<Waker>,
    /// Whether to wake it when a writer has written.
    wanted: bool,
    /// Why the socket could not be written.
    failure: Option<io::Error>,
}

/// Whose turn it is to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// The library's: it has something to write, or no stream is open.
    Library,
    /// Still the library's: the body has nothing more, but the library may not have flushed yet.
    Flushing,
    /// Ours.
    Ours,
    /// Ours, and a writer has a chunk that it is about to write.
    Writer,
}

/// The next step of a stream's body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing for now.
    Wait,
    /// End: everything is written, and it is the library's turn.
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

    /// Sends small writes at once, and disconnects a peer that acknowledges nothing for this long.
    pub(crate) fn tune(&self, silence: Duration) -> io::Result<()> {
        self.socket.set_nodelay(true)?;
        socket2::SockRef::from(&self.socket).set_tcp_user_timeout(Some(silence))
    }

    /// Notes the line in its request. Keeping the request does not keep the connection open.
    pub(crate) fn note(self: &Arc<Self>, extensions: &mut Extensions) {
        self.requests.fetch_add(1, Ordering::Relaxed);
        extensions.insert(Arc::downgrade(self));
        extensions.insert(Address(self.peer));
    }

    /// The address of a request's client, if it came over a connection of ours that is still open.
    pub(crate) fn peer(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Weak<Self>>()?.upgrade().map(|line| line.peer)
    }

    /// The line of a request, if the stream that answers it can be written directly: it came over a
    /// connection of ours, and the answer will have chunks.
    pub(crate) fn of(extensions: &Extensions, version: Version) -> Option<Arc<Self>> {
        extensions.get::<Weak<Self>>().filter(|_| version == Version::HTTP_11)?.upgrade()
    }

    /// Waits until the client disconnects. The library notices that by itself, unless the client
    /// sent anything after its request.
    pub(crate) async fn hung_up(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let ready = self.socket.ready(Interest::READABLE).now_or_never();
            if ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed)) {
                break;
            }
        }
    }

    /// A stream begins; the library writes its head next.
    pub(crate) fn begin(&self, outbox: &Arc<Outbox>, reader: u64) {
        let feed = Some((outbox.clone(), reader));
        let before = std::mem::replace(&mut *self.lock(), State { feed, ..State::new() });
        // The old stream may have locks of its own, so it is dropped after this lock is released.
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

    /// Continues the stream in the connection's own task: writes the rest of the last chunk, and
    /// waiting notices.
    ///
    /// # Errors
    ///
    /// The socket failed.
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

    /// Gives the turn back to the library, because the body has something. Fails while a chunk is
    /// incomplete.
    pub(crate) fn hand_over(&self) -> bool {
        let mut state = self.lock();
        let can = state.turn == Turn::Ours && state.rest.is_empty();
        if can {
            state.turn = Turn::Library;
        }
        can
    }

    /// The time of our last write.
    pub(crate) fn sent(&self) -> Instant {
        self.lock().sent
    }

    /// Takes the waiting notices as a chunk, for [`Self::write`]. Only the writer calls both.
    pub(crate) fn take(self: &Arc<Self>, chunks: &mut Chunks) -> Option<Range<usize>> {
        // Order: out of the list first, then read the outbox. A notice that finds the line in the
        // list came before this swap, so it is seen.
        self.queued.swap(false, Ordering::AcqRel);
        let mut state = self.lock();
        if state.turn != Turn::Ours || !state.rest.is_empty() {
            // At the end of that turn, the outbox is read again.
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

    /// Writes a chunk that was taken, without waiting. The connection's own task writes the rest
    /// that the socket does not accept at once.
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

    /// The library has written everything.
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

    /// The task, if it must be woken and no writer holds it up.
    fn wanted_task(&mut self) -> Option<Waker> {
        if self.turn == Turn::Writer || !std::mem::take(&mut self.wanted) {
            return None;
        }
        self.task.clone()
    }
}

/// An outbox wakes its line when a notice waits.
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
