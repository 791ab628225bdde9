//! The connection below the HTTP library, and the moment at which a stream leaves the library.
//!
//! The library reads the request of a stream and writes the head and the first event. Then the
//! stream has nothing to send, the library flushes, and the socket is taken out of it. From then on
//! a writer of ours has the socket.
//!
//! Invariant: nothing is left in the library. It flushes only when its buffer is empty, and the
//! stream leaves only after a flush that began when the body had nothing more.

mod below;
mod feed;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{Extensions, Version};
use http_body::{Body, Frame};
use tokio::io::{Interest, Ready};
use tokio::net::TcpStream;

use crate::context::Address;
use crate::transport::gate::Busy;
use crate::transport::http::Record;

pub(crate) use below::{Io, PATIENCE};
pub(crate) use feed::Feed;

/// How often to check whether a client that waits for an answer is still connected.
const LOOK: Duration = Duration::from_secs(1);

/// One connection of ours, as its requests know it.
#[derive(Debug)]
pub(crate) struct Line {
    /// The library has the socket.
    socket: Weak<TcpStream>,
    /// The peer's address when it was accepted: a socket that was reset has none.
    peer: IpAddr,
    /// The number of its requests.
    requests: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stage: Stage,
    /// The stream that the library has begun to answer with.
    feed: Option<Feed>,
}

/// How far the library is with a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// It has something to write, or there is no stream.
    #[default]
    Writing,
    /// The body has nothing more, but the library may not have flushed yet.
    Flushing,
    /// Everything is written.
    Flushed,
}

impl std::fmt::Debug for State {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("State").field(&self.stage).finish()
    }
}

impl Line {
    pub(crate) fn new(socket: &Arc<TcpStream>, peer: IpAddr) -> Arc<Self> {
        Arc::new(Self {
            socket: Arc::downgrade(socket),
            peer,
            requests: AtomicUsize::new(0),
            state: Mutex::default(),
        })
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

    /// The line of a request, if the stream that answers it can leave the library: it came over a
    /// connection of ours, and the answer will have chunks.
    pub(crate) fn of(extensions: &Extensions, version: Version) -> Option<Arc<Self>> {
        extensions.get::<Weak<Self>>().filter(|_| version == Version::HTTP_11)?.upgrade()
    }

    /// Waits until the client disconnects. The library notices that by itself, unless the client
    /// sent anything after its request.
    pub(crate) async fn hung_up(&self) {
        loop {
            tokio::time::sleep(LOOK).await;
            let Some(socket) = self.socket.upgrade() else { break };
            let ready = socket.ready(Interest::READABLE).now_or_never();
            if ready.is_some_and(|ready| ready.is_ok_and(Ready::is_read_closed)) {
                break;
            }
        }
    }

    /// A stream begins. Returns the body that the library writes before the stream leaves it.
    pub(crate) fn begin(self: &Arc<Self>, first: Bytes, feed: Feed) -> Opening {
        let begun = State { stage: Stage::Writing, feed: Some(feed) };
        let before = std::mem::replace(&mut *self.lock(), begun);
        // A stream has locks of its own, so it is dropped after this one is released.
        drop(before);
        Opening { first: Some(first), line: self.clone() }
    }

    /// Keeps the connection busy as long as the stream that was begun. Without one, returns it.
    pub(crate) fn hold_busy(&self, busy: Busy) -> Option<Busy> {
        match &mut self.lock().feed {
            Some(feed) => feed.busy.replace(busy),
            None => Some(busy),
        }
    }

    /// Keeps the record as long as the stream that was begun. Without one, returns it.
    pub(crate) fn hold_record(&self, record: Record) -> Option<Record> {
        match &mut self.lock().feed {
            Some(feed) => feed.record.replace(Box::new(record)).map(|record| *record),
            None => Some(record),
        }
    }

    /// The stream, once the library has written its beginning and has nothing more.
    pub(crate) fn leave(&self) -> Option<Feed> {
        let mut state = self.lock();
        if state.stage == Stage::Flushed { std::mem::take(&mut *state).feed } else { None }
    }

    /// The library has written everything.
    fn flushed(&self) {
        let mut state = self.lock();
        if state.stage == Stage::Flushing {
            state.stage = Stage::Flushed;
        }
    }

    /// Whether a stream was begun and has not left.
    fn has_stream(&self) -> bool {
        self.lock().feed.is_some()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds a line")
    }
}

/// The body of a stream as the library sees it: the first event, and then nothing until it leaves.
#[derive(Debug)]
pub(crate) struct Opening {
    first: Option<Bytes>,
    line: Arc<Line>,
}

impl Body for Opening {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut state = self.line.lock();
        let Some(feed) = &mut state.feed else { return Poll::Pending };
        let wrote = self.first.as_ref().map(Bytes::len);
        if let Some(length) = wrote {
            feed.wrote(length);
        } else if state.stage == Stage::Writing {
            state.stage = Stage::Flushing;
        }
        drop(state);
        self.first.take().map_or(Poll::Pending, |first| Poll::Ready(Some(Ok(Frame::data(first)))))
    }
}

impl Drop for Opening {
    /// The library is done with the body. A stream that has not left ends with it.
    fn drop(&mut self) {
        let state = std::mem::take(&mut *self.line.lock());
        drop(state);
    }
}
