//! What a stream brings with it when it leaves the HTTP library: where its notices come from, how it
//! ends, and the guards that live as long.

use std::ops::Range;
use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use tokio::time::Instant;

use crate::outbox::Outbox;
use crate::transport::chunk::Chunks;
use crate::transport::gate::Busy;
use crate::transport::http::Record;

/// The stream of one listener, without its socket. Dropping it ends it.
pub(crate) struct Feed {
    outbox: Arc<Outbox>,
    /// Its number among the readers of the outbox.
    reader: u64,
    /// The last event if the hub ends the stream; empty if there is none.
    last: Bytes,
    /// Its line of the access log.
    pub(super) record: Option<Box<Record>>,
    /// Its connection is busy until this is dropped.
    pub(super) busy: Option<Busy>,
    // A trait object: each era has guards of its own, which are only ever dropped.
    _guard: Box<dyn Send>,
}

/// What a feed had for its stream.
pub(crate) struct Fed {
    /// Bytes for the socket.
    pub(crate) chunks: Option<Range<usize>>,
    /// There may be more at once.
    pub(crate) cut: bool,
    /// When a notice that is held back must be sent.
    pub(crate) release: Option<Instant>,
    /// Whether the bytes are the last of the body.
    pub(crate) ended: bool,
}

impl Feed {
    pub(crate) fn new(
        outbox: Arc<Outbox>,
        last: Option<Bytes>,
        guard: impl Send + 'static,
    ) -> Self {
        let (reader, last) = (outbox.attach(), last.unwrap_or_default());
        Self { outbox, reader, last, record: None, busy: None, _guard: Box::new(guard) }
    }

    /// Takes the waiting notices as one chunk, and the end of the body if the hub ended the stream.
    /// Otherwise `waker` is woken by the next notice.
    pub(crate) fn take(&mut self, chunks: &mut Chunks, waker: impl FnOnce() -> Waker) -> Fed {
        let buffer = chunks.begin();
        let before = buffer.len();
        let taken = self.outbox.take_into(self.reader, buffer, waker);
        let length = buffer.len() - before;
        self.wrote(length);
        let mut chunk = chunks.finish();
        if taken.closed {
            self.wrote(self.last.len());
            let end = chunks.end(&self.last);
            chunk = Some(chunk.map_or(end.start, |chunk| chunk.start)..end.end);
        }
        Fed { chunks: chunk, cut: taken.cut, release: taken.release, ended: taken.closed }
    }

    /// Whether the hub ended the stream.
    pub(crate) fn is_closed(&self) -> bool {
        self.outbox.is_closed()
    }

    /// Notes bytes of the body.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        if let Some(record) = &mut self.record {
            record.bytes += bytes as u64;
        }
    }

    /// What keeps its connection busy, for a connection that outlives the stream.
    pub(crate) fn take_busy(&mut self) -> Option<Busy> {
        self.busy.take()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.outbox.detach(self.reader);
    }
}
