//! A server as a child process: started, read, and ended together with its children.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal as Kill, kill_process_group};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};

use super::lines::LineTransport;
use super::wire::Wire;
use super::{ConnectError, Signal, Sink};
use crate::history::Happened;
use crate::target::CommandTarget;

/// Time for a server to end after its input is closed, and again after a signal.
const FAREWELL: Duration = Duration::from_secs(2);
/// Lines of standard error kept for error reports.
const STDERR_LINES: usize = 100;
/// Bytes kept of one line of standard error.
const STDERR_LINE: usize = 8 << 10;

/// The last lines a server wrote on its standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stderr(Arc<Mutex<VecDeque<Arc<str>>>>);

impl Stderr {
    pub(crate) fn lines(&self) -> Vec<Arc<str>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
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
            // A line without an end must not take all memory, so it is split.
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

/// The standard error of servers: of the current one, and of the previous one while it is of
/// interest.
#[derive(Debug, Default)]
pub(crate) struct LastWords(Mutex<(Stderr, Stderr)>);

impl LastWords {
    /// A new server is being started: the place for its lines.
    pub(super) fn begin(&self) -> Stderr {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (present, earlier) = &mut *words;
        // A silent server does not hide the lines of the one before.
        if !present.is_empty() {
            *earlier = std::mem::take(present);
        }
        present.clone()
    }

    /// The current server works, so the lines of others are dropped.
    pub(super) fn forget_earlier(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = Stderr::default();
    }

    pub(super) fn lines(&self) -> Vec<Arc<str>> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (present, earlier) = &*words;
        if present.is_empty() { earlier.lines() } else { present.lines() }
    }
}

/// The process, and how to end it.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    /// For the log, until the end of the process is logged.
    untold: Option<(Wire, u32)>,
}

impl Process {
    /// Waits for it to end, then kills it.
    pub(crate) async fn end(mut self) {
        if tokio::time::timeout(FAREWELL, self.child.wait()).await.is_err() {
            self.kill(Kill::TERM);
            let _ = tokio::time::timeout(FAREWELL, self.child.wait()).await;
        }
        // Its children are in its process group, and may have outlived it.
        self.kill(Kill::KILL);
        let status = self.child.wait().await.ok();
        self.exited(status.map(|status| status.to_string()).as_deref());
        self.group = None;
    }

    /// Kills it without waiting.
    pub(crate) fn end_now(self) {
        drop(self);
    }

    /// The exit status in words, if it ended.
    pub(crate) async fn status(&mut self) -> Option<String> {
        let status = tokio::time::timeout(Duration::from_millis(200), self.child.wait()).await;
        let status = status.ok()?.ok().map(|status| status.to_string())?;
        self.exited(Some(&status));
        Some(status)
    }

    /// Logs its end, once.
    fn exited(&mut self, status: Option<&str>) {
        if let Some((wire, pid)) = self.untold.take() {
            wire.happened(Happened::ProcessExited { pid, status: status.map(Into::into) });
        }
    }

    fn kill(&self, signal: Kill) {
        if let Some(group) = self.group {
            // It may have ended already.
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill(Kill::KILL);
        self.exited(None);
    }
}

/// The parts of a newly started server.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) transport: LineTransport<ChildStdout>,
    pub(crate) stderr: ChildStderr,
}

/// Starts a server as the leader of its own process group.
pub(crate) fn start(
    target: &CommandTarget,
    max_message: usize,
    wire: Wire,
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
    let untold = child.id().map(|pid| (wire.clone(), pid));
    if let Some((wire, pid)) = &untold {
        wire.happened(Happened::ProcessStarted { pid: *pid });
    }
    let transport = LineTransport::new(stdout, stdin, max_message, wire);
    Ok(Started { process: Process { child, group, untold }, transport, stderr })
}
