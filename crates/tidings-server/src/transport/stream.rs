//! The bytes of one listener's stream over HTTP, both eras: a body that is fed from an outbox.
//!
//! There is no channel between the two. On a connection of ours, a writer writes to the socket while
//! the HTTP library waits for the body. Elsewhere the library polls the body, and the body polls the
//! outbox, when the socket can be written. Either way the backlog of a slow reader stays a set of
//! dirty things.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use crate::outbox::{Next, Outbox};
use crate::transport::line::{Line, Step};

/// Comments on an idle stream: clients ignore them, and they keep the connection open.
pub(crate) struct KeepAlive {
    every: Duration,
    /// The time of the last event. The timer is not reset with each event: it reads this when it
    /// fires.
    sent: Instant,
    next: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, sent: Instant::now(), next: Box::pin(tokio::time::sleep(every)) }
    }

    /// Notes an event.
    pub(crate) fn reset(&mut self) {
        self.sent_at(Instant::now());
    }

    /// Notes an event at this time.
    fn sent_at(&mut self, sent: Instant) {
        self.sent = self.sent.max(sent);
    }

    /// A comment, if it is time for one.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            std::task::ready!(self.next.as_mut().poll(context));
            let now = Instant::now();
            let idle = now >= self.sent + self.every;
            self.sent = if idle { now } else { self.sent };
            self.next.as_mut().reset(self.sent + self.every);
            if idle {
                return Poll::Ready(Bytes::from_static(b":\n\n"));
            }
        }
    }
}

/// The stream of one listener.
pub(crate) struct Stream<G> {
    /// The first event: the acknowledgement, or the id to reconnect with.
    first: Option<Bytes>,
    outbox: Arc<Outbox>,
    reader: u64,
    /// The connection, if frames are written to it beside the HTTP library.
    line: Option<Arc<Line>>,
    /// The last event if the hub ends the stream.
    last: Option<Bytes>,
    ended: bool,
    keep_alive: KeepAlive,
    /// Wakes the stream when a held notice must be sent.
    release: Option<Pin<Box<Sleep>>>,
    /// Guards that live as long as the stream: dropped when the client leaves.
    _guard: G,
}

impl<G> Stream<G> {
    /// A stream that begins with `first`, and ends with `last` if the hub ends it. `line` is
    /// [`Line::of`] the request that it answers.
    pub(crate) fn new(
        outbox: Arc<Outbox>,
        (first, last): (Bytes, Option<Bytes>),
        idle: Duration,
        line: Option<Arc<Line>>,
        guard: G,
    ) -> Self {
        let reader = outbox.attach();
        if let Some(line) = &line {
            line.begin(&outbox, reader);
        }
        Self {
            first: Some(first),
            outbox,
            reader,
            line,
            last,
            ended: false,
            keep_alive: KeepAlive::new(idle),
            release: None,
            _guard: guard,
        }
    }

    /// The next bytes for the library; `None` if the stream has ended.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Ok(Some(first)));
        }
        if self.ended {
            return Poll::Ready(Ok(None));
        }
        if let Some(line) = self.line.clone() {
            return self.poll_beside(&line, context);
        }
        match self.outbox.poll_next(self.reader, context) {
            Poll::Ready(Next::Frames(frames)) => {
                self.keep_alive.reset();
                Poll::Ready(Ok(Some(frames)))
            }
            Poll::Ready(Next::Closed) => Poll::Ready(Ok(self.end())),
            Poll::Pending => {
                self.wait_for_release(context);
                self.keep_alive.poll(context).map(|comment| Ok(Some(comment)))
            }
        }
    }

    /// As [`Self::poll_bytes`], on a line, where a writer sends the notices.
    fn poll_beside(
        &mut self,
        line: &Arc<Line>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<Option<Bytes>>> {
        if line.poll(context)? == Step::End {
            return Poll::Ready(Ok(self.end()));
        }
        self.wait_for_release(context);
        loop {
            self.keep_alive.sent_at(line.sent());
            let comment = std::task::ready!(self.keep_alive.poll(context));
            // A line that is being written needs no comment.
            if line.hand_over() {
                return Poll::Ready(Ok(Some(comment)));
            }
        }
    }

    fn end(&mut self) -> Option<Bytes> {
        self.ended = true;
        self.last.take()
    }

    fn wait_for_release(&mut self, context: &mut Context<'_>) {
        let Some(at) = self.outbox.release() else {
            self.release = None;
            return;
        };
        let release = self.release.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        release.as_mut().reset(at);
        if release.as_mut().poll(context).is_ready() {
            // The time has passed already: poll again at once.
            context.waker().wake_by_ref();
        }
    }
}

impl<G> Drop for Stream<G> {
    fn drop(&mut self) {
        if let Some(line) = &self.line {
            line.end(&self.outbox, self.reader);
        }
        self.outbox.detach(self.reader);
    }
}

impl<G: Unpin> Body for Stream<G> {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let bytes = std::task::ready!(self.get_mut().poll_bytes(context));
        Poll::Ready(bytes.transpose().map(|bytes| bytes.map(Frame::data)))
    }
}
