//! Messages as lines, both ways: what stdio is, and any other pair of byte streams.

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
use super::{Signal, mend};

/// How many lines that are no messages are put up with.
const MAX_GARBAGE: u32 = 1000;
/// How many messages may wait for a server that does not read: then requests wait, for as long as
/// they may, and notices are dropped.
const WAITING: usize = 256;
/// How long the messages that wait have at the end.
const DRAIN: Duration = Duration::from_millis(500);
const NOT_MCP: &str = "the server prints something that is not MCP on its standard output";
/// How much of such a line is shown.
const SHOWN: usize = 160;

/// Why a server cannot be spoken to any longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("could not write the message")]
    Encode(#[source] serde_json::Error),
    #[error("the server has ended")]
    Ended,
}

/// Messages as lines, both ways.
pub(crate) struct LineTransport<R> {
    /// Messages on their way to the writer. A server that does not read holds up the writer alone.
    output: Option<mpsc::Sender<Vec<u8>>>,
    writer: JoinSet<()>,
    input: R,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
    /// The line that is passing, if it is too large to be held.
    passing: Option<Skim>,
    /// Messages of one line that had several.
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

    /// Lets a line pass that is too large to be held. At its end, gives the failure of the request that
    /// it answers.
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

    /// Why what is passing is not waited for.
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

    /// The next whole line, if the buffer has one.
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
        // Revision 2025-03-26 lets a server send several messages at once.
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

/// Writes what there is to write, until there is no more to come or nobody reads.
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
            // It is ending. What it printed before says why, and is read before the end is seen.
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
        let line = serde_json::to_vec(&item);
        if let Ok(line) = &line {
            self.wire.sent(&item, line);
        }
        let (output, is_notice) =
            (self.output.clone(), matches!(item, ClientJsonRpcMessage::Notification(_)));
        async move {
            let mut line = line.map_err(LineError::Encode)?;
            line.push(b'\n');
            let output = output.ok_or(LineError::Ended)?;
            // Whoever gives up a request must not have to wait until the server can be told.
            let unsent = match output.try_send(line) {
                Err(TrySendError::Full(line)) if !is_notice => line,
                _ => return Ok(()),
            };
            // A server that is gone is seen where its messages end.
            let _ = output.send(unsent).await;
            Ok(())
        }
    }

    // Cancel-safe: what was read is in the buffer before anything else is awaited.
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
        // The end of its input tells a server to end. One that does not read is not waited for.
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
