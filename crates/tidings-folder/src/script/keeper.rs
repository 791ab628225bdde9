//! The keeper: a small process that ends our programs if we are killed.
//!
//! It reads lines on its standard input: `+ID` when a process group starts, `-ID` when it is gone.
//! Only we hold the other end of that pipe. When we die, for whatever reason, the system closes it;
//! the keeper then kills every group that is still listed.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::time::Instant;
use tracing::warn;

/// How long to wait after the keeper could not be started, or died soon after its start.
const PAUSE: Duration = Duration::from_secs(10);

/// Ends the programs of all folders that share it if this process is killed.
///
/// Clones are the same keeper. Its process is started with the first program, and again if it died.
/// If it cannot be started, that is logged and programs run without it. It exits when the last
/// clone is dropped.
#[derive(Clone, Debug)]
pub struct Keeper(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    command: Command,
    running: Option<Running>,
    /// When it may be started.
    next: Option<Instant>,
    /// The running groups, so that a restarted keeper gets all of them.
    groups: BTreeSet<i32>,
}

/// A running keeper. Dropping it ends the process, and leaves the groups alone.
#[derive(Debug)]
struct Running {
    process: Child,
    input: ChildStdin,
}

impl Keeper {
    /// A keeper started with this command, which must call [`keep`] with its standard input. Pipes,
    /// process group and directory are set here.
    #[must_use]
    pub fn new(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            // A reader of our output must see it end when we exit.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .current_dir("/")
            // An interrupt from the terminal must not reach the keeper before us.
            .process_group(0);
        let groups = BTreeSet::new();
        Self(Arc::new(Mutex::new(State { command, running: None, next: None, groups })))
    }

    /// Ends this group if we die before [`Keeper::remove`].
    pub(super) fn add(&self, group: Pid) {
        let mut state = self.lock();
        let id = group.as_raw_pid();
        state.groups.insert(id);
        if state.running.is_none() {
            state.start();
        } else if let Err(error) = state.send(&format!("+{id}\n")) {
            state.restart(&error);
        }
    }

    /// Starts the keeper, unless it runs: starting takes milliseconds in which a program has no
    /// keeper.
    pub(super) fn begin(&self) {
        let mut state = self.lock();
        if state.running.is_none() {
            state.start();
        }
    }

    /// Removes a group that is gone; its number may soon be reused.
    pub(super) fn remove(&self, group: Pid) {
        let mut state = self.lock();
        let id = group.as_raw_pid();
        state.groups.remove(&id);
        if state.running.is_some()
            && let Err(error) = state.send(&format!("-{id}\n"))
        {
            state.restart(&error);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Starts the process and sends it the running groups.
    fn start(&mut self) {
        if self.next.is_some_and(|next| Instant::now() < next) {
            return;
        }
        let started = Running::start(&mut self.command).and_then(|running| {
            self.running = Some(running);
            let lines: Vec<_> = self.groups.iter().map(|id| format!("+{id}\n")).collect();
            self.send(&lines.concat())
        });
        if let Err(error) = started {
            (self.running, self.next) = (None, Some(Instant::now() + PAUSE));
            warn!(%error, "if this process is killed, programs of its folders will keep running");
        }
    }

    fn restart(&mut self, error: &io::Error) {
        // Order: the old process ends before the new one starts. It may list groups that are gone,
        // and must not see the end of its input.
        self.running = None;
        warn!(%error, "the keeper of programs died and is restarted");
        self.start();
        self.next = Some(Instant::now() + PAUSE);
    }

    /// Never blocks: a keeper that does not read is an error.
    fn send(&mut self, lines: &str) -> io::Result<()> {
        match &mut self.running {
            // So few bytes are written at once or not at all.
            Some(running) => running.input.write_all(lines.as_bytes()),
            None => Ok(()),
        }
    }
}

impl Running {
    fn start(command: &mut Command) -> io::Result<Self> {
        let mut process = command.spawn()?;
        let input = process.stdin.take().ok_or_else(|| io::Error::other("it has no input"))?;
        let flags = fcntl_getfl(&input)?;
        fcntl_setfl(&input, flags | OFlags::NONBLOCK)?;
        Ok(Self { process, input })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already. A killed keeper leaves all groups alone.
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Does the keeper's work: reads the running process groups, and kills those that are left when the
/// input ends. The caller must ignore the signals that end the process it keeps for.
pub fn keep(input: impl BufRead) {
    for group in left(input) {
        // The group may be gone already.
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The groups that are listed when the input ends. A read error counts as the end.
fn left(mut input: impl BufRead) -> Vec<Pid> {
    let (mut groups, mut line) = (BTreeSet::new(), String::new());
    while matches!(input.read_line(&mut line), Ok(1..)) {
        // A truncated line may be a wrong number.
        if let Some(id) = line.strip_suffix('\n') {
            let (sign, id) = id.split_at_checked(1).unwrap_or_default();
            // 1 is not a group of ours, and would mean every process.
            match (sign, id.parse::<i32>()) {
                ("+", Ok(id @ 2..)) => drop(groups.insert(id)),
                ("-", Ok(id)) => drop(groups.remove(&id)),
                _ => {}
            }
        }
        line.clear();
    }
    groups.into_iter().filter_map(Pid::from_raw).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pid(id: i32) -> Pid {
        Pid::from_raw(id).unwrap()
    }

    fn shell(script: &str) -> Keeper {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Keeper::new(command)
    }

    #[test]
    fn groups_that_are_not_gone_at_the_end_are_left() {
        let check = |input: &str, expected: &[i32]| {
            let left = left(input.as_bytes());
            assert_eq!(left.iter().map(|it| it.as_raw_pid()).collect::<Vec<_>>(), expected);
        };
        check("", &[]);
        check("+20\n+30\n-20\n", &[30]);
        check("+20\n+20\n", &[20]);
        check("-20\n+20\n", &[20]);
        // Invalid lines must end nobody: 0 is our own group, -1 and 1 are everyone.
        check("+0\n+1\n+-1\n+-7\n20\n\n+\n+x\né\n+99999999999\n", &[]);
        // The number may have had more digits.
        check("+20\n+3", &[20]);
    }

    #[test]
    fn a_keeper_that_cannot_be_started_costs_nothing() {
        let keeper = Keeper::new(Command::new("/nonexistent/keeper"));
        keeper.add(pid(20));
        keeper.remove(pid(20));
        assert!(keeper.lock().running.is_none());
    }

    #[test]
    fn a_keeper_that_died_is_started_again_with_the_groups_there_are() {
        let folder = tempfile::tempdir().unwrap();
        let told = folder.path().join("told");
        let keeper = shell(&format!("echo begun >> '{0}'; exec cat >> '{0}'", told.display()));
        keeper.add(pid(20));
        keeper.add(pid(30));
        keeper.remove(pid(20));
        let mut state = keeper.lock();
        let running = state.running.as_mut().unwrap();
        running.process.kill().unwrap();
        running.process.wait().unwrap();
        drop(state);
        std::fs::write(&told, "").unwrap();
        keeper.add(pid(40));
        let read = || std::fs::read_to_string(&told).unwrap();
        while read().len() < "begun\n+30\n+40\n".len() {
            std::thread::yield_now();
        }
        assert_eq!(read(), "begun\n+30\n+40\n");
    }

    #[test]
    fn a_keeper_that_does_not_read_holds_nobody_up() {
        let keeper = shell("exec sleep 600");
        // More than a pipe holds.
        for id in 2..30_000 {
            keeper.add(pid(id));
            keeper.remove(pid(id));
        }
        assert!(keeper.lock().groups.is_empty());
    }
}
