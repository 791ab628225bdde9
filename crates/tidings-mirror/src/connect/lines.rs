//! Messages as lines, both ways: what stdio is, and any other pair of byte streams.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::BytesMut;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Mutex as AsyncMutex;

use super::raw::Wanted;
use super::skim::{self, Skim};
use super::wire::Wire;
use super::{Signal, mend};

/// How many lines that are no messages are put up with.
const MAX_GARBAGE: u32 = 1000;
const NOT_MCP: &str = "the server prints something that is not MCP on its standard output";
/// How much of such a line is shown.
const SHOWN: usize = 160;

/// Why a server cannot be spoken to any longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LineError {
    #[error("could not write to the server")]
    Write(#[source] std::io::Error),
    #[error("could not write the message")]
    Encode(#[source] serde_json::Error),
    #[error("the server has ended")]
    Ended,
}

/// Messages as lines, both ways.
pub(crate) struct LineTransport<R, W> {
    output: Arc<AsyncMutex<Option<W>>>,
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

impl<R, W> LineTransport<R, W> {
    pub(crate) fn new(input: R, output: W, max_message: usize, wire: Wire) -> Self {
        Self {
            output: Arc::new(AsyncMutex::new(Some(output))),
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

impl<R, W> Transport<RoleClient> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
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
        let output = self.output.clone();
        async move {
            let mut line = line.map_err(LineError::Encode)?;
            line.push(b'\n');
            let mut output = output.lock().await;
            let pipe = output.as_mut().ok_or(LineError::Ended)?;
            let written = async {
                pipe.write_all(&line).await?;
                pipe.flush().await
            };
            match written.await {
                // It is ending. What it printed before says why, and is read before the end is seen.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(LineError::Write),
            }
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
        // The end of its input tells a server to end.
        drop(self.output.lock().await.take());
        Ok(())
    }
}
