//! A server that is a child process: started, spoken to line by line, and gone with all its children
//! when it is not wanted any longer.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::BytesMut;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use rustix::process::{Pid, Signal as Kill, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex as AsyncMutex;

use super::{Signal, Sink};
use crate::config::CommandTarget;
use crate::mirror::ConnectError;

/// How long a server may take to end by itself once its input is closed, and then after a signal.
const FAREWELL: Duration = Duration::from_secs(2);
/// How many lines of standard error are kept for whoever asks why.
const STDERR_LINES: usize = 100;
/// How much of one line of standard error is kept.
const STDERR_LINE: usize = 8 << 10;
/// How many lines that are no messages are put up with.
const MAX_GARBAGE: u32 = 1000;
/// How much of such a line is shown.
const SHOWN: usize = 160;

/// Why a server over stdio cannot be spoken to any longer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ChildError {
    #[error("could not write to the server")]
    Write(#[source] std::io::Error),
    #[error("could not write the message")]
    Encode(#[source] serde_json::Error),
    #[error("the server has ended")]
    Ended,
}

/// The last lines a server wrote on its standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stderr(Arc<Mutex<VecDeque<Arc<str>>>>);

impl Stderr {
    pub(crate) fn lines(&self) -> Vec<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn push(&self, line: Arc<str>) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == STDERR_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    /// Reads until the server closes it.
    pub(crate) async fn follow(self, stderr: ChildStderr, sink: Sink) {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            // A line without an end must not take all memory: it comes in pieces.
            let mut piece = (&mut reader).take(STDERR_LINE as u64);
            match piece.read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text: Arc<str> = String::from_utf8_lossy(&line).trim_end().into();
            self.push(text.clone());
            sink(Signal::Stderr(text));
        }
    }
}

/// The process, and how to be rid of it.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
}

impl Process {
    /// Waits for it to end by itself, then makes it.
    pub(crate) async fn end(mut self) {
        if tokio::time::timeout(FAREWELL, self.child.wait()).await.is_err() {
            self.kill(Kill::TERM);
            let _ = tokio::time::timeout(FAREWELL, self.child.wait()).await;
        }
        // Whatever it started is in its group, and may have outlived it.
        self.kill(Kill::KILL);
        let _ = self.child.wait().await;
        self.group = None;
    }

    /// Ends it without waiting.
    pub(crate) fn end_now(self) {
        drop(self);
    }

    /// How it ended, in words, if it did.
    pub(crate) async fn status(&mut self) -> Option<String> {
        let status = tokio::time::timeout(Duration::from_millis(200), self.child.wait()).await;
        status.ok()?.ok().map(|status| status.to_string())
    }

    fn kill(&self, signal: Kill) {
        if let Some(group) = self.group {
            // It may be gone already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill(Kill::KILL);
    }
}

/// What a freshly started server consists of.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) transport: ChildTransport,
    pub(crate) stderr: ChildStderr,
}

/// Starts a server, as the leader of a process group of its own.
pub(crate) fn start(
    target: &CommandTarget,
    max_message: usize,
    sink: Sink,
) -> Result<Started, ConnectError> {
    let failed = |source| ConnectError::Spawn { program: target.program.clone(), source };
    let mut command = Command::new(&target.program);
    command
        .args(&target.arguments)
        .envs(target.environment.iter().map(|(name, value)| (name, value.reveal())))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    if let Some(folder) = &target.folder {
        command.current_dir(folder);
    }
    let mut child = command.spawn().map_err(failed)?;
    let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
    let ((stdin, stdout), stderr) =
        pipes.ok_or_else(|| failed(std::io::Error::other("its pipes are missing")))?;
    let group = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let transport = ChildTransport {
        stdin: Arc::new(AsyncMutex::new(Some(stdin))),
        stdout,
        buffer: BytesMut::new(),
        scanned: 0,
        ready: VecDeque::new(),
        garbage: 0,
        max_message,
        sink,
    };
    Ok(Started { process: Process { child, group }, transport, stderr })
}

/// Messages as lines, both ways.
pub(crate) struct ChildTransport {
    stdin: Arc<AsyncMutex<Option<ChildStdin>>>,
    stdout: ChildStdout,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
    /// Messages of one line that had several.
    ready: VecDeque<ServerJsonRpcMessage>,
    garbage: u32,
    max_message: usize,
    sink: Sink,
}

impl ChildTransport {
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
            && let Ok(messages) = serde_json::from_slice::<Vec<ServerJsonRpcMessage>>(line)
        {
            self.ready.extend(messages);
            return self.ready.pop_front();
        }
        let message = serde_json::from_slice(line).ok();
        if message.is_none() {
            self.garbage += 1;
            let text = String::from_utf8_lossy(&line[..line.len().min(SHOWN)]);
            (self.sink)(Signal::Garbage(text.into()));
        }
        message
    }

    fn end(&self, reason: &str) {
        (self.sink)(Signal::Ended(reason.into()));
    }
}

impl Transport<RoleClient> for ChildTransport {
    type Error = ChildError;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), ChildError>> + Send + 'static {
        let stdin = self.stdin.clone();
        async move {
            let mut line = serde_json::to_vec(&item).map_err(ChildError::Encode)?;
            line.push(b'\n');
            let mut stdin = stdin.lock().await;
            let pipe = stdin.as_mut().ok_or(ChildError::Ended)?;
            let written = async {
                pipe.write_all(&line).await?;
                pipe.flush().await
            };
            match written.await {
                // It is ending. What it printed before says why, and is read before the end is seen.
                Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
                other => other.map_err(ChildError::Write),
            }
        }
    }

    // Cancel-safe: what was read is in the buffer before anything else is awaited.
    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if let Some(message) = self.ready.pop_front() {
                return Some(message);
            }
            while let Some(line) = self.line() {
                if let Some(message) = self.take(&line) {
                    return Some(message);
                }
            }
            if self.buffer.len() > self.max_message {
                self.end(&format!(
                    "the server sent a message larger than {} bytes",
                    self.max_message
                ));
                return None;
            }
            if self.garbage > MAX_GARBAGE {
                self.end("the server prints something that is not MCP on its standard output");
                return None;
            }
            if !matches!(self.stdout.read_buf(&mut self.buffer).await, Ok(1..)) {
                self.end("the server ended");
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), ChildError> {
        // The end of its input tells a server to end.
        drop(self.stdin.lock().await.take());
        Ok(())
    }
}
