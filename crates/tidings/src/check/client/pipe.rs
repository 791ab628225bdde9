//! A client's two byte streams: of a program it started, or in memory.

use std::collections::VecDeque;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tidings_mirror::CommandTarget;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, Command};
use tokio::sync::Mutex as AsyncMutex;

use super::asked::Manners;
use super::log::{Log, Via, What};
use crate::group::Group;

/// The longest line that is read.
const LINE: u64 = 32 << 20;
/// Lines of standard error that are kept.
const STDERR: usize = 20;
/// Time to write a message to a server that does not read.
const WRITE: Duration = Duration::from_secs(10);

pub(crate) type FromServer = Box<dyn AsyncRead + Send + Unpin>;
pub(crate) type ToServer = Box<dyn AsyncWrite + Send + Unpin>;

/// The end of a pipe that is written.
pub(crate) struct Pipe {
    /// Empty once it is closed.
    output: Arc<AsyncMutex<Option<ToServer>>>,
    program: Option<Program>,
}

impl Pipe {
    pub(crate) fn new(output: ToServer, program: Option<Program>) -> Self {
        Self { output: Arc::new(AsyncMutex::new(Some(output))), program }
    }

    pub(crate) fn writer(&self) -> Arc<AsyncMutex<Option<ToServer>>> {
        self.output.clone()
    }

    pub(crate) async fn send(&self, message: &Value) -> Result<(), String> {
        write(&self.output, message).await
    }

    /// Closes the server's input.
    pub(crate) async fn close(&self) {
        if let Some(mut output) = self.output.lock().await.take() {
            // A server that is gone has nothing to be closed.
            drop(output.shutdown().await);
        }
    }

    pub(crate) fn program(&mut self) -> Option<&mut Program> {
        self.program.as_mut()
    }

    pub(crate) fn last_words(&self) -> Vec<String> {
        let words = self.program.as_ref().map(|program| program.stderr.clone());
        words.map(|words| words.lines()).unwrap_or_default()
    }
}

pub(crate) async fn write(
    output: &AsyncMutex<Option<ToServer>>,
    message: &Value,
) -> Result<(), String> {
    let mut output = output.lock().await;
    let output = output.as_mut().ok_or("its input is closed")?;
    let line = format!("{message}\n");
    let writing = async {
        output.write_all(line.as_bytes()).await?;
        output.flush().await
    };
    match tokio::time::timeout(WRITE, writing).await {
        Ok(written) => written.map_err(|error| error.to_string()),
        Err(_) => Err("it does not read its input".to_owned()),
    }
}

/// Reads lines into the log until the server closes its output. Requests of the server are answered.
pub(crate) async fn follow(
    input: FromServer,
    log: Arc<Log>,
    writer: Arc<AsyncMutex<Option<ToServer>>>,
    manners: Manners,
) {
    let mut reader = BufReader::new(input);
    let mut line = Vec::new();
    let why = loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line).await {
            Ok(0) => break "it closed its output".to_owned(),
            Ok(_) => {}
            Err(error) => break error.to_string(),
        }
        let text = line.trim_ascii();
        if text.is_empty() {
            continue;
        }
        match serde_json::from_slice::<Value>(text) {
            Ok(message) if message.is_object() && message.get("jsonrpc").is_some() => {
                let reply = manners.reply(&message);
                log.push(Via::Pipe, What::Message(message));
                if let Some(reply) = reply {
                    log.replied(&reply);
                    // A server that does not read its answer misses it.
                    drop(write(&writer, &reply).await);
                }
            }
            _ => log.push(Via::Pipe, What::Garbage(String::from_utf8_lossy(text).into_owned())),
        }
    };
    log.push(Via::Pipe, What::Ended(why));
}

/// The last lines of a program's standard error.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) async fn follow(self, stderr: impl AsyncRead + Unpin) {
        let mut reader = BufReader::new(stderr);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut reader).take(8 << 10).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if lines.len() == STDERR {
                lines.pop_front();
            }
            lines.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }
}

/// A server that we started, the leader of its own process group.
pub(crate) struct Program {
    child: Child,
    group: Group,
    stderr: LastLines,
}

/// What a program is started with.
pub(crate) struct Started {
    pub(crate) program: Program,
    pub(crate) input: FromServer,
    pub(crate) output: ToServer,
    pub(crate) stderr: tokio::process::ChildStderr,
    pub(crate) words: LastLines,
}

impl Program {
    pub(crate) fn start(target: &CommandTarget) -> Result<Started, String> {
        let failed = |error: std::io::Error| format!("cannot start `{}`: {error}", target.program);
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
        let ((stdin, stdout), stderr) = pipes.ok_or("its pipes are missing")?;
        let group = Group::of(&child);
        let words = LastLines::default();
        let program = Self { child, group, stderr: words.clone() };
        Ok(Started { program, input: Box::new(stdout), output: Box::new(stdin), stderr, words })
    }

    /// Whether it and all its children end in time.
    pub(crate) async fn ends_within(&mut self, time: Duration) -> Result<(), String> {
        let deadline = tokio::time::Instant::now() + time;
        if tokio::time::timeout_at(deadline, self.child.wait()).await.is_err() {
            let seconds = time.as_secs_f64();
            return Err(format!("it still runs {seconds:.1} s after its input was closed"));
        }
        loop {
            if !self.group.is_alive() {
                return Ok(());
            }
            if tokio::time::Instant::now() >= deadline {
                return Err("it ended, but processes that it started still run".to_owned());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Asks it to end, as a service manager does.
    pub(crate) fn terminate(&self) {
        self.group.terminate();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ends(script: &str) -> Result<(), String> {
        let target = CommandTarget::run("sh", ["-c", script]);
        let mut started = Program::start(&target).unwrap();
        drop(started.output);
        started.program.ends_within(Duration::from_secs(2)).await
    }

    #[tokio::test]
    async fn a_server_ends_with_all_its_children_or_not_at_all() {
        assert_eq!(ends("cat").await, Ok(()));
        let left = ends("sleep 100 & cat").await.unwrap_err();
        assert!(left.contains("processes that it started still run"), "{left}");
    }
}
