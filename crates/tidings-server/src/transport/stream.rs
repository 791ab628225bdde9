//! The answer of a listener's stream over HTTP, both eras.
//!
//! On a connection of ours, the HTTP library writes the beginning, and then the stream leaves it.
//! Elsewhere the library polls a body, and the body polls the outbox, when the socket can be
//! written. There is no channel in between, so the backlog of a slow reader stays a set of dirty
//! things.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, header};
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use crate::outbox::{Next, Outbox};
use crate::transport::line::{Feed, Line};
use crate::transport::reply;

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

/// Answers with a stream that begins with `first`, and ends with `last` if the hub ends it. `line`
/// is [`Line::of`] the request. The guard is dropped when the stream ends or the client leaves.
pub(crate) fn answer(
    outbox: Arc<Outbox>,
    (first, last): (Bytes, Option<Bytes>),
    idle: Duration,
    line: Option<Arc<Line>>,
    guard: impl Send + Unpin + 'static,
) -> Response {
    let Some(line) = line else {
        return reply::stream(body::Body::new(Stream::new(outbox, (first, last), idle, guard)));
    };
    let opening = line.begin(first, Feed::new(outbox, last, guard));
    let mut response = reply::stream(body::Body::new(opening));
    // Its connection cannot go back to the library.
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

/// The body of one listener's stream that stays with the HTTP library.
struct Stream<G> {
    /// The first event: the acknowledgement, or the id to reconnect with.
    first: Option<Bytes>,
    outbox: Arc<Outbox>,
    reader: u64,
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
    fn new(
        outbox: Arc<Outbox>,
        (first, last): (Bytes, Option<Bytes>),
        idle: Duration,
        guard: G,
    ) -> Self {
        Self {
            first: Some(first),
            reader: outbox.attach(),
            outbox,
            last,
            ended: false,
            keep_alive: KeepAlive::new(idle),
            release: None,
            _guard: guard,
        }
    }

    /// The next bytes for the library; `None` if the stream has ended.
    fn poll_bytes(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(first));
        }
        if self.ended {
            return Poll::Ready(None);
        }
        match self.outbox.poll_next(self.reader, context) {
            Poll::Ready(Next::Frames(frames)) => {
                self.keep_alive.reset();
                Poll::Ready(Some(frames))
            }
            Poll::Ready(Next::Closed) => Poll::Ready(self.end()),
            Poll::Pending => {
                self.wait_for_release(context);
                self.keep_alive.poll(context).map(Some)
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
        self.get_mut().poll_bytes(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
