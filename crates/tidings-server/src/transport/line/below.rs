//! The HTTP library's reads, writes and flushes of a connection.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use crate::transport::line::Line;

/// A client must read its answer to the end, or this many bytes: 16 KiB a second. Counted over a
/// minute, because the system accepts bytes in steps of up to a megabyte.
const LEAST: usize = 960 << 10;
/// The total time that the socket may accept nothing, until it accepted that many bytes.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);

/// A connection as the library reads and writes it.
#[derive(Debug)]
pub(crate) struct Io {
    socket: Arc<TcpStream>,
    line: Arc<Line>,
    /// `None` while the client reads fast enough.
    wait: Option<Box<Wait>>,
}

/// A client that reads its answer slowly.
#[derive(Debug)]
struct Wait {
    /// The number of the request that is answered.
    request: usize,
    /// Bytes accepted since this began, and the time in which the socket accepted nothing.
    taken: usize,
    waited: Duration,
    /// Since when the socket accepts nothing.
    since: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

impl Io {
    pub(crate) fn new(socket: Arc<TcpStream>, line: Arc<Line>) -> Self {
        Self { socket, line, wait: None }
    }

    /// The socket.
    pub(crate) fn into_socket(self) -> Arc<TcpStream> {
        self.socket
    }

    /// Sends small writes at once, and disconnects a peer that acknowledges nothing for this long.
    pub(crate) fn tune(&self, silence: Duration) -> io::Result<()> {
        self.socket.set_nodelay(true)?;
        socket2::SockRef::from(&*self.socket).set_tcp_user_timeout(Some(silence))
    }

    /// Tries until the socket's readiness is known.
    fn poll_try(
        &mut self,
        context: &mut Context<'_>,
        mut attempt: impl FnMut(&TcpStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        let socket = self.socket.clone();
        loop {
            if socket.poll_write_ready(context)?.is_pending() {
                return self.poll_patience(context).map(Err);
            }
            match attempt(&socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => {
                    self.took(done.as_ref().copied().unwrap_or(0));
                    return Poll::Ready(done);
                }
            }
        }
    }

    /// The socket accepts nothing now. A client that reads an answer too slowly is disconnected,
    /// because the answer takes memory. A listener may read at any speed, because nothing piles up
    /// for it.
    fn poll_patience(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        if self.line.has_stream() {
            self.wait = None;
            return Poll::Pending;
        }
        let request = self.line.requests.load(Ordering::Relaxed);
        if self.wait.as_ref().is_some_and(|wait| wait.request != request) {
            self.wait = None;
        }
        let wait = self.wait.get_or_insert_with(|| {
            let (waited, timer) = (Duration::ZERO, Box::pin(tokio::time::sleep(PATIENCE)));
            Box::new(Wait { request, taken: 0, waited, since: None, timer })
        });
        if wait.since.is_none() {
            let now = Instant::now();
            wait.since = Some(now);
            wait.timer.as_mut().reset(now + PATIENCE.saturating_sub(wait.waited));
        }
        wait.timer.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
    }

    /// The socket accepted this many bytes.
    fn took(&mut self, bytes: usize) {
        let Some(wait) = &mut self.wait else { return };
        wait.taken += bytes;
        wait.waited += wait.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        if wait.taken >= LEAST {
            self.wait = None;
        }
    }
}

impl AsyncRead for Io {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            std::task::ready!(self.socket.poll_read_ready(context))?;
            match self.socket.try_read_buf(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done.map(|_| ())),
            }
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(context, |socket| socket.try_write(bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_try(context, |socket| socket.try_write_vectored(slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    /// The library calls this when its own buffer is empty, and only then.
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.line.flushed();
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = socket2::SockRef::from(&*self.socket);
        Poll::Ready(socket.shutdown(std::net::Shutdown::Write))
    }
}
