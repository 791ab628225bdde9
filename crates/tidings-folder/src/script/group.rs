//! Process groups: start a program, and end it together with all its children.

use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::Instant;
use tracing::warn;

use super::{Job, Keeper};

/// How long to retry while the program's file is being written.
const BUSY: Duration = Duration::from_millis(200);
/// How often to retry meanwhile.
const BUSY_RETRY: Duration = Duration::from_millis(10);

/// Why a program could not be started, with advice.
#[derive(Debug, thiserror::Error)]
#[error("`{}` {why}", .file.display())]
pub(crate) struct SpawnError {
    file: PathBuf,
    why: Why,
}

#[derive(Debug, thiserror::Error)]
enum Why {
    #[error("does not exist; put a program there")]
    Missing,
    #[error("is not a file that can be run; put a program there")]
    Special,
    #[error("may not be run; give it its permission with `chmod +x`")]
    Forbidden,
    #[error("cannot be run: the program its `#!` line names does not exist")]
    Interpreter,
    #[error("cannot be run: it is not a program of this system and has no `#!` line; add one")]
    Format,
    #[error("cannot be run while it is being written; try again")]
    Busy,
    #[error("cannot be run in its directory, which does not exist any more")]
    Directory,
    #[error("gets more input than the system allows; pass less")]
    TooMuch,
    #[error("could not be started: {0}")]
    Other(io::Error),
}

impl SpawnError {
    fn new(file: &Path, why: Why) -> Self {
        Self { file: file.to_owned(), why }
    }

    /// The error with the file relative to the folder, because clients need not know where the
    /// folder is.
    pub(crate) fn within(mut self, root: &Path) -> Self {
        self.file = if let Ok(inner) = self.file.strip_prefix(root) {
            inner.to_owned()
        } else {
            warn!(file = %self.file.display(), "a program outside of the folder did not start");
            self.file.file_name().map(PathBuf::from).unwrap_or_default()
        };
        self
    }
}

/// The three pipes of a program.
pub(super) struct Pipes {
    pub(super) stdin: ChildStdin,
    pub(super) stdout: ChildStdout,
    pub(super) stderr: ChildStderr,
}

/// A program and its children. Dropping it ends them all at once.
pub(super) struct Group {
    child: Child,
    id: Option<Pid>,
    keeper: Option<Keeper>,
    stream: Option<Stream>,
}

/// A link to the standard error of a program, under a name of our own. `/dev/stderr` would be that
/// of the process that opens it: `touch "$MCP_PROGRESS_STREAM" 2>/dev/null`, as `mcp-bash` does,
/// would touch `/dev/null`.
struct Stream {
    link: PathBuf,
    /// Invariant: open as long as the link exists; after that the link would lead elsewhere.
    _errors: OwnedFd,
}

impl Stream {
    /// Redirects a link from `/dev/stderr`. The link stays as it is if the system has no such
    /// names.
    fn lead(link: &Path, errors: &ChildStderr) -> Option<Self> {
        let errors = errors.as_fd().try_clone_to_owned().ok()?;
        let name = format!("/proc/{}/fd/{}", std::process::id(), errors.as_raw_fd());
        std::fs::symlink_metadata(&name).ok()?;
        let fresh = link.with_extension("new");
        symlink(name, &fresh).ok()?;
        // In one step, so that the stream exists at every moment.
        std::fs::rename(&fresh, link).ok()?;
        Some(Self { link: link.to_owned(), _errors: errors })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.link);
    }
}

impl Group {
    /// Starts a program as the leader of its own process group.
    pub(super) async fn start(job: &Job) -> Result<(Self, Pipes), SpawnError> {
        let file = &job.program.path;
        match std::fs::metadata(file) {
            // Opening a FIFO waits for its other end, in an interpreter too.
            Ok(found) if !found.is_file() => return Err(SpawnError::new(file, Why::Special)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(SpawnError::new(file, Why::Missing));
            }
            Err(error) => return Err(SpawnError::new(file, Why::Other(error))),
        }
        if let Some(keeper) = &job.keeper {
            keeper.begin();
        }
        let mut command = command(job);
        let deadline = Instant::now() + BUSY;
        let mut child = loop {
            match command.spawn() {
                Ok(child) => break child,
                Err(error) if is(&error, Errno::TXTBSY) && Instant::now() < deadline => {
                    tokio::time::sleep(BUSY_RETRY).await;
                }
                Err(error) => return Err(SpawnError::new(file, why(job, error))),
            }
        };
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        // If this process is killed before this line, the program survives. Only code between fork
        // and exec could close this gap of microseconds.
        if let (Some(keeper), Some(id)) = (&job.keeper, id) {
            keeper.add(id);
        }
        let pipes = child.stdin.take().zip(child.stdout.take()).zip(child.stderr.take());
        let mut group = Self { child, id, keeper: job.keeper.clone(), stream: None };
        let ((stdin, stdout), stderr) = pipes.ok_or_else(|| {
            SpawnError::new(file, Why::Other(io::Error::other("its pipes are missing")))
        })?;
        group.stream = job.stream.as_deref().and_then(|link| Stream::lead(link, &stderr));
        Ok((group, Pipes { stdin, stdout, stderr }))
    }

    /// Waits until the program itself has exited.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        // Cancel-safe: a repeated call returns the same status.
        self.child.wait().await
    }

    /// Asks the whole group to exit.
    pub(super) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Kills the whole group.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(id) = self.id {
            // The group may be gone already.
            let _ = kill_process_group(id, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The runtime reaps the program itself.
        self.kill();
        // Order: only after the kill, so that at every moment somebody would end the group.
        if let (Some(keeper), Some(id)) = (&self.keeper, self.id) {
            keeper.remove(id);
        }
    }
}

fn command(job: &Job) -> Command {
    let mut command = match job.program.interpreter.split_first() {
        Some((interpreter, words)) => {
            let mut command = Command::new(interpreter);
            command.args(words).arg(&job.program.path);
            command
        }
        None => Command::new(&job.program.path),
    };
    command
        .args(&job.arguments)
        .current_dir(&job.directory)
        .env_clear()
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true);
    command
}

/// The cause in words: the system reports the same error for several causes.
fn why(job: &Job, error: io::Error) -> Why {
    match error.kind() {
        io::ErrorKind::NotFound if !job.directory.is_dir() => Why::Directory,
        io::ErrorKind::NotFound => Why::Interpreter,
        io::ErrorKind::PermissionDenied => Why::Forbidden,
        _ if is(&error, Errno::NOEXEC) => Why::Format,
        _ if is(&error, Errno::TXTBSY) => Why::Busy,
        _ if is(&error, Errno::TOOBIG) => Why::TooMuch,
        _ => Why::Other(error),
    }
}

fn is(error: &io::Error, number: Errno) -> bool {
    error.raw_os_error() == Some(number.raw_os_error())
}
