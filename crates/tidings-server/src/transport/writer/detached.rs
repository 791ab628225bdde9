//! One stream that left the HTTP library, with its socket.

use std::io;
use std::net::Shutdown;
use std::ops::Range;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use socket2::SockRef;
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::bell::{Bell, Reasons};
use crate::transport::chunk::Chunks;
use crate::transport::gate::Busy;
use crate::transport::line::{Feed, PATIENCE};

/// How much a client may send after its request. It is ignored, as the answer says that the
/// connection will be closed.
const UNREAD: usize = 64 << 10;
/// How long a client has to close a connection after its stream has ended. Closed sooner, with bytes
/// of the client unread, the system would reset the connection, and the end of the stream might be
/// lost.
const LINGER: Duration = Duration::from_secs(2);
/// A comment: clients ignore it.
const COMMENT: &[u8] = b":\n\n";

/// A stream that leaves the library.
pub(super) struct Newcomer {
    pub(super) socket: TcpStream,
    pub(super) feed: Feed,
    /// How many bytes the client sent after its request.
    pub(super) unread: usize,
    /// Counts the stream as open.
    pub(super) open: TaskTrackerToken,
}

impl std::fmt::Debug for Newcomer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Newcomer").field(&self.socket).finish()
    }
}

/// The socket of a stream, and what it has yet to write. Only its writer has it.
pub(super) struct Detached {
    socket: TcpStream,
    pub(super) bell: Arc<Bell>,
    /// Rings the bell for the socket. The runtime has a copy while the socket is waited for.
    waker: Waker,
    stage: Stage,
    /// Whether bytes were taken that [`Self::write`] has not got yet.
    taken: bool,
    /// What the socket has not accepted yet: at most one piece of notices and the end of the stream.
    rest: Bytes,
    unread: usize,
    /// When a stream that has ended is closed at the latest.
    closes: Option<Instant>,
    /// The earliest time for which its writer was asked to serve it.
    pub(super) alarm: Option<Instant>,
    /// The connection is busy until it is closed.
    busy: Option<Busy>,
    _open: TaskTrackerToken,
}

/// How far a stream is.
enum Stage {
    /// Notices may come.
    Open(Feed),
    /// It has ended, and its last bytes are on their way.
    Ending,
    /// Everything is written. The client closes the connection, or we do after a while.
    Lingering,
}

/// The socket is of no more use: the client left, or everything is done.
#[derive(Debug)]
pub(super) struct Gone;

/// What a stream wants after it was served.
#[derive(Debug, Default)]
pub(super) struct Wants {
    /// Bytes to write now.
    pub(super) chunks: Option<Range<usize>>,
    /// When to serve it again at the latest.
    pub(super) at: Option<Instant>,
}

impl Detached {
    pub(super) fn new(newcomer: Newcomer, bell: Arc<Bell>) -> Self {
        let Newcomer { socket, feed, unread, open } = newcomer;
        Self {
            socket,
            waker: bell.for_socket(),
            bell,
            stage: Stage::Open(feed),
            taken: false,
            rest: Bytes::new(),
            unread,
            closes: None,
            alarm: None,
            busy: None,
            _open: open,
        }
    }

    /// Reads what the client sent, writes what the socket did not accept before, and takes what the
    /// listener has for [`Self::write`].
    pub(super) fn serve(
        &mut self,
        now: Instant,
        chunks: &mut Chunks,
        scratch: &mut [u8],
    ) -> Result<Wants, Gone> {
        if self.taken {
            self.bell.again();
            return Ok(Wants::default());
        }
        let reasons = self.bell.silence();
        if reasons.has(Reasons::SOCKET) {
            self.read(scratch)?;
            self.write_rest(now)?;
        }
        if self.closes.is_some_and(|closes| closes <= now) {
            return Err(Gone);
        }
        let Stage::Open(feed) = &mut self.stage else {
            return Ok(Wants { chunks: None, at: self.closes });
        };
        if !self.rest.is_empty() {
            // The socket rings when it accepts more. A client that reads nothing cannot keep a
            // stream that has ended: it is looked at here at every comment, at the latest.
            if self.closes.is_none() && feed.is_closed() {
                self.closes = Some(now + PATIENCE);
            }
            return Ok(Wants { chunks: None, at: self.closes });
        }
        let fed = feed.take(chunks, || Waker::from(self.bell.clone()));
        if fed.cut {
            self.bell.ring(Reasons::LISTENER);
        }
        let mut wants = Wants { chunks: fed.chunks, at: fed.release };
        if fed.ended {
            self.busy = feed.take_busy();
            self.stage = Stage::Ending;
            self.closes = Some(now + PATIENCE);
        } else if wants.chunks.is_none() && reasons.has(Reasons::COMMENT) {
            feed.wrote(COMMENT.len());
            wants.chunks = Some(chunks.put(COMMENT));
        }
        self.taken = wants.chunks.is_some();
        Ok(wants)
    }

    /// Writes what was taken, without waiting. What the socket does not accept is kept. Returns when
    /// to serve the stream again.
    pub(super) fn write(&mut self, now: Instant, bytes: &[u8]) -> Result<Option<Instant>, Gone> {
        self.taken = false;
        let written = self.try_write(bytes)?;
        if written < bytes.len() {
            self.rest = Bytes::copy_from_slice(&bytes[written..]);
        }
        self.write_rest(now)?;
        Ok(self.closes)
    }

    /// Discards what the client sends. A client that closes its side is gone.
    fn read(&mut self, scratch: &mut [u8]) -> Result<(), Gone> {
        let mut context = Context::from_waker(&self.waker);
        loop {
            match self.socket.poll_read_ready(&mut context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready.map_err(|_| Gone)?,
            }
            match self.socket.try_read(scratch) {
                Ok(0) => return Err(Gone),
                Ok(length) => self.unread += length,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => return Err(Gone),
            }
            if self.unread > UNREAD {
                return Err(Gone);
            }
        }
    }

    /// Writes the rest as far as the socket accepts it. If some is left, the socket rings when it
    /// accepts more. After the last bytes of the stream, our side of the connection is closed.
    fn write_rest(&mut self, now: Instant) -> Result<(), Gone> {
        let mut context = Context::from_waker(&self.waker);
        while !self.rest.is_empty() {
            match self.socket.poll_write_ready(&mut context) {
                Poll::Pending => return Ok(()),
                Poll::Ready(ready) => ready.map_err(|_| Gone)?,
            }
            let written = self.try_write(&self.rest)?;
            self.rest.advance(written);
        }
        // Even an empty rest of a buffer would keep the buffer.
        self.rest = Bytes::new();
        if matches!(self.stage, Stage::Ending) {
            SockRef::from(&self.socket).shutdown(Shutdown::Write).map_err(|_| Gone)?;
            self.stage = Stage::Lingering;
            self.closes = Some(now + LINGER);
        }
        Ok(())
    }

    /// How much of this the socket accepts.
    fn try_write(&self, bytes: &[u8]) -> Result<usize, Gone> {
        match self.socket.try_write(bytes) {
            Ok(0) if !bytes.is_empty() => Err(Gone),
            Ok(written) => Ok(written),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(0),
            Err(_) => Err(Gone),
        }
    }
}
