//! The bytes of one listener's stream over HTTP, both eras: a body that is fed from an outbox.
//!
//! No task and no channel stand between the two. The body asks the outbox when the socket can be
//! written, so what a slow reader has not taken stays a set of dirty things.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use crate::outbox::{Next, Outbox};

/// Comments on a stream on which nothing else happens: clients ignore them, and they keep the path
/// between us open.
pub(crate) struct KeepAlive {
    every: Duration,
    /// When something was sent last. The timer is not moved with each event: it looks here when it
    /// fires.
    sent: Instant,
    next: Pin<Box<Sleep>>,
}

impl KeepAlive {
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, sent: Instant::now(), next: Box::pin(tokio::time::sleep(every)) }
    }

    /// Something else was sent.
    pub(crate) fn reset(&mut self) {
        self.sent = Instant::now();
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
    /// What comes first, whatever waits: the acknowledgement, or how to come back.
    first: Option<Bytes>,
    outbox: Arc<Outbox>,
    reader: u64,
    /// What comes last if the hub ends the stream.
    last: Option<Bytes>,
    ended: bool,
    keep_alive: KeepAlive,
    /// Wakes the stream when a notice that was held back goes out all the same.
    release: Option<Pin<Box<Sleep>>>,
    /// What must live as long as the stream: dropped when the client leaves.
    _guard: G,
}

impl<G> Stream<G> {
    pub(crate) fn new(
        outbox: Arc<Outbox>,
        first: Option<Bytes>,
        last: Option<Bytes>,
        idle: Duration,
        guard: G,
    ) -> Self {
        let reader = outbox.attach();
        let keep_alive = KeepAlive::new(idle);
        Self { first, outbox, reader, last, ended: false, keep_alive, release: None, _guard: guard }
    }
}

impl<G> Stream<G> {
    fn wait_for_release(&mut self, context: &mut Context<'_>) {
        let Some(at) = self.outbox.release() else {
            self.release = None;
            return;
        };
        let release = self.release.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(at)));
        release.as_mut().reset(at);
        if release.as_mut().poll(context).is_ready() {
            // It is time already: look again at once.
            context.waker().wake_by_ref();
        }
    }
}

impl<G> Drop for Stream<G> {
    fn drop(&mut self) {
        self.outbox.detach(self.reader);
    }
}

impl<G: Unpin> Body for Stream<G> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        if this.ended {
            return Poll::Ready(None);
        }
        let bytes = match this.outbox.poll_next(this.reader, context) {
            Poll::Ready(Next::Frames(frames)) => {
                this.keep_alive.reset();
                frames
            }
            Poll::Ready(Next::Closed) => {
                this.ended = true;
                return Poll::Ready(this.last.take().map(|last| Ok(Frame::data(last))));
            }
            Poll::Pending => {
                this.wait_for_release(context);
                std::task::ready!(this.keep_alive.poll(context))
            }
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}
