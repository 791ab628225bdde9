//! A server that is a child process: started, listened to, and gone with all its children when it is
//! not wanted any longer.

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

/// How long a server may take to end by itself once its input is closed, and then after a signal.
const FAREWELL: Duration = Duration::from_secs(2);
/// How many lines of standard error are kept for whoever asks why.
const STDERR_LINES: usize = 100;
/// How much of one line of standard error is kept.
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

/// What servers wrote on their standard error: the present one, and the one before while that is
/// still of interest.
#[derive(Debug, Default)]
pub(crate) struct LastWords(Mutex<(Stderr, Stderr)>);

impl LastWords {
    /// Another server is being started: where its lines go.
    pub(super) fn begin(&self) -> Stderr {
        let mut words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (present, earlier) = &mut *words;
        // A server that said nothing does not hide what the one before it said.
        if !present.is_empty() {
            *earlier = std::mem::take(present);
        }
        present.clone()
    }

    /// The present server works: what another one said is of no interest any longer.
    pub(super) fn forget_earlier(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1 = Stderr::default();
    }

    pub(super) fn lines(&self) -> Vec<Arc<str>> {
        let words = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (present, earlier) = &*words;
        if present.is_empty() { earlier.lines() } else { present.lines() }
    }
}

/// The process, and how to be rid of it.
pub(crate) struct Process {
    child: Child,
    group: Option<Pid>,
    /// For the log, until the end of the process is in it.
    untold: Option<(Wire, u32)>,
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
        let status = self.child.wait().await.ok();
        self.exited(status.map(|status| status.to_string()).as_deref());
        self.group = None;
    }

    /// Ends it without waiting.
    pub(crate) fn end_now(self) {
        drop(self);
    }

    /// How it ended, in words, if it did.
    pub(crate) async fn status(&mut self) -> Option<String> {
        let status = tokio::time::timeout(Duration::from_millis(200), self.child.wait()).await;
        let status = status.ok()?.ok().map(|status| status.to_string())?;
        self.exited(Some(&status));
        Some(status)
    }

    /// Notes its end in the log, once.
    fn exited(&mut self, status: Option<&str>) {
        if let Some((wire, pid)) = self.untold.take() {
            wire.happened(Happened::ProcessExited { pid, status: status.map(Into::into) });
        }
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
        self.exited(None);
    }
}

/// What a freshly started server consists of.
pub(crate) struct Started {
    pub(crate) process: Process,
    pub(crate) transport: LineTransport<ChildStdout>,
    pub(crate) stderr: ChildStderr,
}

/// Starts a server, as the leader of a process group of its own.
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
