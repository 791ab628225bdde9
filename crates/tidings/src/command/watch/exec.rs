//! Runs a command for each change, one at a time. The command and its children end with us.

use std::collections::VecDeque;
use std::process::{ExitStatus, Stdio};

use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;
use tokio::task::JoinSet;

use crate::group::Group;

/// Changes that may wait for the command. If it is slower than the changes, further ones are
/// skipped and reported.
const WAITING: usize = 256;

/// Runs a command for each change, in order.
#[derive(Debug)]
pub(crate) struct Exec {
    command: String,
    waiting: VecDeque<Value>,
    /// At most one.
    running: JoinSet<std::io::Result<ExitStatus>>,
    /// Changes skipped since there was last room.
    skipped: u64,
}

impl Exec {
    pub(crate) fn new(command: &str) -> Self {
        let command = command.to_owned();
        Self { command, waiting: VecDeque::new(), running: JoinSet::new(), skipped: 0 }
    }

    /// Whether a command runs or waits.
    pub(crate) fn is_busy(&self) -> bool {
        !self.running.is_empty() || !self.waiting.is_empty()
    }

    /// Takes a change; returns a warning when it starts to skip.
    pub(crate) fn offer(&mut self, change: Value) -> Option<String> {
        if self.waiting.len() >= WAITING {
            self.skipped += 1;
            return (self.skipped == 1)
                .then(|| format!("`{}` is too slow: changes are skipped", self.command));
        }
        self.waiting.push_back(change);
        self.start();
        None
    }

    /// Waits until the command ends, starts the next, and returns a warning if it failed. Waits for
    /// ever if nothing runs.
    ///
    /// Cancel-safe: a result that was not returned stays.
    pub(crate) async fn ended(exec: &mut Option<Self>) -> Option<String> {
        let Some(exec) = exec else { return std::future::pending().await };
        let Some(ended) = exec.running.join_next().await else {
            return std::future::pending().await;
        };
        exec.start();
        let skipped = std::mem::take(&mut exec.skipped);
        let failure = match ended {
            Ok(Ok(status)) if status.success() => None,
            Ok(Ok(status)) => Some(format!("`{}` failed: {status}", exec.command)),
            Ok(Err(error)) => Some(format!("`{}` could not be run: {error}", exec.command)),
            Err(error) => Some(format!("`{}` could not be run: {error}", exec.command)),
        };
        match (failure, skipped) {
            (failure, 0) => failure,
            (None, skipped) => Some(format!("{skipped} changes were skipped")),
            (Some(failure), skipped) => Some(format!("{failure}; {skipped} changes were skipped")),
        }
    }

    fn start(&mut self) {
        if self.running.is_empty()
            && let Some(change) = self.waiting.pop_front()
        {
            let command = self.command.clone();
            self.running.spawn(async move { run(&command, &change).await });
        }
    }
}

async fn run(command: &str, change: &Value) -> std::io::Result<ExitStatus> {
    let mut child = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    let group = Group::of(&child);
    let input = child.stdin.take();
    let write = async {
        if let Some(mut input) = input {
            // A command need not read its input.
            drop(input.write_all(format!("{change}\n").as_bytes()).await);
        }
    };
    // The command's end counts, even if its child keeps the input open.
    let mut write = std::pin::pin!(write);
    let status = tokio::select! {
        () = &mut write => child.wait().await,
        status = child.wait() => status,
    };
    // Processes that it left behind on purpose stay.
    group.release();
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[tokio::test]
    async fn a_failing_command_is_told_and_the_next_is_run() {
        let mut exec = Some(Exec::new("read -r line; exit ${#line}"));
        let running = exec.as_mut().unwrap();
        assert_eq!(running.offer(json!("ab")), None);
        assert_eq!(running.offer(json!(1)), None);
        let first = Exec::ended(&mut exec).await.unwrap();
        assert!(first.ends_with("failed: exit status: 4"), "{first}");
        let second = Exec::ended(&mut exec).await.unwrap();
        assert!(second.ends_with("failed: exit status: 1"), "{second}");
        assert!(!exec.unwrap().is_busy());
    }

    #[tokio::test]
    async fn what_does_not_fit_is_skipped_and_said() {
        let mut exec = Some(Exec::new("true"));
        let running = exec.as_mut().unwrap();
        let refusals: Vec<_> = (0..WAITING + 3).filter_map(|n| running.offer(json!(n))).collect();
        assert_eq!(refusals, ["`true` is too slow: changes are skipped"]);
        assert_eq!(Exec::ended(&mut exec).await.unwrap(), "2 changes were skipped");
        assert_eq!(Exec::ended(&mut exec).await, None);
    }
}
