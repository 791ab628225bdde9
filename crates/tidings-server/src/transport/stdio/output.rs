//! The output of a stdio connection: a queue of lines, and the one future that writes them.
//!
//! A sender queues its line at once and may then wait until it is written. Nobody holds the output
//! while waiting, so a sender that is not polled delays nobody.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, oneshot};

use crate::handler::FrameWriter;
use crate::notice;

/// How many answers may wait for a client that does not read; then no more requests are read.
pub(super) const UNREAD: usize = 64;

/// The sending side: answers by the protocol library, notices and refusals by us.
#[derive(Clone, Default)]
pub(super) struct LineWriter {
    queue: Arc<Queue>,
}

/// The lines that wait, in the order they were sent.
#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    /// A line was queued, or no more will be.
    more: Notify,
    /// An answer was written.
    fewer: Notify,
}

#[derive(Default)]
struct State {
    /// Bounded by its senders: each listener waits until its notices are written before it takes
    /// more, and no input is read while [`UNREAD`] answers wait.
    lines: VecDeque<OutputLine>,
    /// How many answers are not written yet.
    answers: usize,
    end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    /// The queued lines are written, and no more are accepted.
    Finishing,
    /// Nothing is written any more.
    Closed,
}

/// A queued line or group of lines.
struct OutputLine {
    bytes: Vec<u8>,
    kind: Kind,
    written: oneshot::Sender<()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Answer,
    Notices,
}

impl LineWriter {
    /// Sends a message of the library; the future waits until it is written.
    pub(super) fn send(
        &self,
        line: Vec<u8>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let written = self.queue.push(line, Kind::Answer);
        async { written.await.map_err(|_| io::ErrorKind::BrokenPipe.into()) }
    }

    /// Sends an error. Nobody waits for it.
    pub(super) fn refuse(&self, id: Option<RequestId>, error: ErrorData) {
        let message = JsonRpcError::new(id, error);
        let mut line = serde_json::to_vec(&message).expect("an error is plain JSON");
        line.push(b'\n');
        drop(self.queue.push(line, Kind::Answer));
    }

    /// Waits until the client has read most of its answers.
    pub(super) async fn answers_are_few(&self) {
        while self.queue.lock().answers >= UNREAD {
            self.queue.fewer.notified().await;
        }
    }

    /// Accepts no more lines: [`Self::run`] returns when the queued ones are written.
    pub(super) fn finish(&self) {
        let mut state = self.queue.lock();
        if state.end == End::Open {
            state.end = End::Finishing;
        }
        drop(state);
        self.queue.more.notify_one();
    }

    /// Writes the queue, until [`Self::finish`] or until the output fails. When this returns or is
    /// dropped, senders that still wait get an error.
    pub(super) async fn run(&self, mut output: impl AsyncWrite + Unpin) -> io::Result<()> {
        let _closing = Closing(&self.queue);
        loop {
            let (line, end) = self.queue.pop();
            let Some(line) = line else {
                if end != End::Open {
                    return Ok(());
                }
                self.queue.more.notified().await;
                continue;
            };
            output.write_all(&line.bytes).await?;
            output.flush().await?;
            if line.kind == Kind::Answer {
                self.queue.lock().answers -= 1;
                self.queue.fewer.notify_one();
            }
            // The sender may not wait for it.
            let _ = line.written.send(());
        }
    }
}

impl FrameWriter for LineWriter {
    fn write(&self, frames: Bytes) -> BoxFuture<'_, bool> {
        let mut lines = Vec::with_capacity(frames.len());
        for event in notice::events(&frames) {
            lines.extend_from_slice(&notice::line(&event));
        }
        let written = self.queue.push(lines, Kind::Notices);
        Box::pin(async { written.await.is_ok() })
    }
}

impl Queue {
    fn push(&self, bytes: Vec<u8>, kind: Kind) -> oneshot::Receiver<()> {
        let (written, waiting) = oneshot::channel();
        let mut state = self.lock();
        if state.end != End::Closed {
            state.answers += usize::from(kind == Kind::Answer);
            state.lines.push_back(OutputLine { bytes, kind, written });
        }
        drop(state);
        self.more.notify_one();
        waiting
    }

    fn pop(&self) -> (Option<OutputLine>, End) {
        let mut state = self.lock();
        (state.lines.pop_front(), state.end)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the lines of an output")
    }
}

/// Closes the queue when it is dropped.
struct Closing<'a>(&'a Queue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.end = End::Closed;
        state.answers = 0;
        let lines = std::mem::take(&mut state.lines);
        drop(state);
        drop(lines);
        self.0.fewer.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_leave_in_the_order_they_were_sent() {
        let (writer, mut output) = (LineWriter::default(), Vec::new());
        let sent: Vec<_> = (0..9).map(|line| writer.send(format!("{line}\n").into())).collect();
        writer.finish();
        writer.run(&mut output).await.unwrap();
        for line in sent {
            line.await.unwrap();
        }
        assert_eq!(output, b"0\n1\n2\n3\n4\n5\n6\n7\n8\n");
    }

    #[tokio::test]
    async fn nobody_waits_for_an_output_that_failed() {
        let (ours, theirs) = tokio::io::duplex(1);
        drop(theirs);
        let writer = LineWriter::default();
        let waiting: Vec<_> = (0..UNREAD).map(|_| writer.send(b"a line\n".to_vec())).collect();
        let error = writer.run(ours).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
        for line in waiting {
            assert!(line.await.is_err());
        }
        writer.answers_are_few().await;
        assert!(writer.send(b"late\n".to_vec()).await.is_err());
        assert!(!writer.write(Bytes::from_static(b"data: {}\n\n")).await);
    }
}
