//! Messages as lines: over stdio, or over any other pair of byte streams.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TrySendError;
use tokio::task::JoinSet;

use super::raw::Wanted;
use super::skim::{self, Skim};
use super::wire::Wire;
use super::{Signal, arguments, mend};

/// The number of lines that are not messages before the server is given up.
const MAX_GARBAGE: u32 = 1000;
/// Messages that may wait for a server that does not read. Then requests wait until their timeout,
/// and notices are dropped.
const WAITING: usize = 256;
/// Time for waiting messages at the end.
const DRAIN: Duration = Duration::from_millis(500);
const NOT_MCP: &str = "the server prints lines that are not MCP messages on its standard output";
/// How much of such a line is shown.
const SHOWN: usize = 160;

/// Why the server cannot be used any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("could not write the message")]
    Encode(#[source] serde_json::Error),
    #[error("the server has ended")]
    Ended,
}

/// Messages as lines, both ways.
pub(crate) struct LineTransport<R> {
    /// Messages for the writer. A server that does not read delays only the writer.
    output: Option<mpsc::Sender<Vec<u8>>>,
    writer: JoinSet<()>,
    input: R,
    buffer: BytesMut,
    /// The length of the buffer's beginning that has no line end.
    scanned: usize,
    /// The current line, if it is too large to be held.
    passing: Option<Skim>,
    /// Messages of a line with several.
    ready: VecDeque<ServerJsonRpcMessage>,
    garbage: u32,
    max_message: usize,
    wire: Wire,
    wanted: Wanted,
}

impl<R> LineTransport<R> {
    pub(crate) fn new<W>(input: R, output: W, max_message: usize, wire: Wire) -> Self
    where
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, lines) = mpsc::channel(WAITING);
        let mut writer = JoinSet::new();
        writer.spawn(write(output, lines, wire.clone()));
        Self {
            output: Some(sender),
            writer,
            input,
            buffer: BytesMut::new(),
            scanned: 0,
            passing: None,
            ready: VecDeque::new(),
            garbage: 0,
            max_message,
            wire,
            wanted: Wanted::default(),
        }
    }

    /// Skips a line that is too large to be held. At its end, returns the failure of the request it
    /// answers.
    fn pass(&mut self) -> Option<ServerJsonRpcMessage> {
        let end = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        let part = match end {
            Some(end) => self.buffer.split_to(self.scanned + end + 1),
            None => self.buffer.split(),
        };
        self.scanned = 0;
        self.passing.get_or_insert_default().take(&part);
        end?;
        let passed = self.passing.take()?;
        let answer =
            passed.answered().map(|id| skim::too_large(id, self.max_message, passed.bytes()));
        if let Some(answer) = &answer {
            self.wire.received(answer, &[]);
        } else {
            let dropped = format!("a message larger than {} bytes", self.max_message);
            self.wire.tell(Signal::Garbage(dropped.into()));
        }
        answer
    }

    /// Why the rest of the current line is not read.
    fn hopeless(&self) -> Option<String> {
        let passing = self.passing.as_ref()?;
        if !passing.is_object() {
            return Some(NOT_MCP.to_owned());
        }
        let is_endless = passing.bytes() / skim::MOST > self.max_message;
        is_endless.then(|| {
            let most = self.max_message;
            format!(
                "the server sent a message more than {} times larger than {most} bytes",
                skim::MOST
            )
        })
    }

    /// The next complete line in the buffer.
    fn line(&mut self) -> Option<BytesMut> {
        let end = self.buffer[self.scanned..].iter().position(|byte| *byte == b'\n');
        let Some(end) = end else {
            self.scanned = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.scanned + end + 1);
        self.scanned = 0;
        Some(line)
    }

    fn take(&mut self, line: &[u8]) -> Option<ServerJsonRpcMessage> {
        let line = line.trim_ascii();
        if line.is_empty() {
            return None;
        }
        // Revision 2025-03-26 allows several messages in one line.
        if line.starts_with(b"[")
            && let Ok(messages) = serde_json::from_slice::<Vec<&RawValue>>(line)
        {
            for message in &messages {
                self.wanted.keep(message.get().as_bytes());
            }
            for text in messages.iter().map(|message| message.get().as_bytes()) {
                if let Ok(message) = mend::parse(text) {
                    self.heard(&message, text);
                    self.ready.push_back(message);
                }
            }
            return self.ready.pop_front();
        }
        let message = mend::parse(line).ok();
        if let Some(message) = &message {
            self.heard(message, line);
            self.wanted.keep(line);
            self.garbage = 0;
        } else {
            self.garbage += 1;
            let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
            self.wire.tell(Signal::Garbage(text.into()));
        }
        message
    }

    fn heard(&self, message: &ServerJsonRpcMessage, text: &[u8]) {
        self.wire.open.asked(message);
        self.wire.received(message, text);
    }

    fn end(&self, reason: &str) {
        self.wire.tell(Signal::Ended(reason.into()));
    }
}

/// Writes until the channel closes or nobody reads.
async fn write(
    mut output: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Vec<u8>>,
    wire: Wire,
) {
    while let Some(line) = lines.recv().await {
        let written = async {
            output.write_all(&line).await?;
            output.flush().await
        };
        match written.await {
            Ok(()) => {}
            // The server is ending. Its last output gives the reason, and is read first.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return,
            Err(error) => {
                let reason = format!("could not write to the server: {error}");
                wire.tell(Signal::Ended(reason.into()));
                return;
            }
        }
    }
}

impl<R: AsyncRead + Send + Unpin> Transport<RoleClient> for LineTransport<R> {
    type Error = LineError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), LineError>> + Send + 'static {
        self.wanted.note(&item);
        let line = arguments::written(&item);
        if let Ok(line) = &line {
            self.wire.sent(&item, line);
        }
        let (output, is_notice) =
            (self.output.clone(), matches!(item, ClientJsonRpcMessage::Notification(_)));
        async move {
            let mut line = line.map_err(LineError::Encode)?;
            line.push(b'\n');
            let output = output.ok_or(LineError::Ended)?;
            // A caller that gives up must not wait until the server can be notified.
            let unsent = match output.try_send(line) {
                Err(TrySendError::Full(line)) if !is_notice => line,
                _ => return Ok(()),
            };
            // A closed server is noticed where its messages end.
            let _ = output.send(unsent).await;
            Ok(())
        }
    }

    // Cancel-safe: bytes are in the buffer before anything else is awaited.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            if self.passing.is_some()
                && let Some(message) = self.pass()
            {
                return Some(message);
            }
            while self.passing.is_none()
                && let Some(line) = self.line()
            {
                if let Some(message) = self.take(&line) {
                    return Some(message);
                }
            }
            if self.passing.is_none() && self.buffer.len() > self.max_message {
                self.pass();
            }
            if let Some(reason) = self.hopeless() {
                self.end(&reason);
                return None;
            }
            if self.garbage > MAX_GARBAGE {
                self.end(NOT_MCP);
                return None;
            }
            if !matches!(self.input.read_buf(&mut self.buffer).await, Ok(1..)) {
                self.end("the server ended");
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), LineError> {
        // Closing its input asks a server to end. The writer is not waited for if the server does
        // not read.
        self.output = None;
        let _ = tokio::time::timeout(DRAIN, self.writer.join_next()).await;
        self.writer.abort_all();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tokio::time::Instant;

    use super::*;
    use crate::history::History;

    fn transport(room: usize) -> (LineTransport<tokio::io::Empty>, tokio::io::DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(room);
        let wire = Wire::new(Arc::new(|_| {}), Arc::new(History::new(0)));
        (LineTransport::new(tokio::io::empty(), ours, 1 << 20, wire), theirs)
    }

    fn message(message: &serde_json::Value) -> ClientJsonRpcMessage {
        serde_json::from_value(message.clone()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_holds_up_neither_a_notice_nor_the_end() {
        let (mut transport, _theirs) = transport(1);
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        for _ in 0..WAITING {
            transport.send(message(&request)).await.unwrap();
        }
        // One is with the writer.
        tokio::task::yield_now().await;
        transport.send(message(&request)).await.unwrap();
        let second = Duration::from_secs(1);
        let waits = tokio::time::timeout(second, transport.send(message(&request))).await;
        assert!(waits.is_err(), "a request waits for its turn");
        let notice = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 },
        });
        tokio::time::timeout(second, transport.send(message(&notice))).await.unwrap().unwrap();
        let began = Instant::now();
        transport.close().await.unwrap();
        assert!(began.elapsed() <= DRAIN);
        assert!(transport.send(message(&request)).await.is_err(), "it is closed");
    }

    #[tokio::test]
    async fn what_was_sent_before_the_end_is_written() {
        let (mut transport, mut theirs) = transport(1 << 16);
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
        transport.send(message(&request)).await.unwrap();
        transport.close().await.unwrap();
        drop(transport);
        let mut written = String::new();
        theirs.read_to_string(&mut written).await.unwrap();
        let (line, rest) = written.split_once('\n').unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(line).unwrap()["id"], 1);
        assert_eq!(rest, "");
    }
}
