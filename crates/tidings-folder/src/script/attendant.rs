//! Attending a running program: write its input, read its output, watch the time.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::unconstrained;
use tokio::time::Instant;

use super::clock::RunClock;
use super::group::{Group, Pipes};
use super::lines::Lines;
use super::outbox::Outbox;
use super::{Ending, Job, Run};

/// How much is read at once.
const CHUNK: usize = 16 << 10;
/// How long to wait for more output after the program exited, if a child process holds its output
/// open.
const LINGER: Duration = Duration::from_millis(100);
/// How much is read after the exit. A pipe holds no more, so everything the program itself printed
/// is included.
const LEFT: usize = 1 << 20;
/// How long the system may take to end a killed program.
const DEATH: Duration = Duration::from_secs(1);

/// The stage of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Running,
    /// It was asked to exit, and has until then.
    Asked(Instant),
    /// It was killed, and should be gone by then.
    Killed(Instant),
    /// It exited; child processes may still print until then.
    Ended(Instant),
}

/// What can happen. `None` for a pipe means that it is closed.
enum ProgramEvent {
    Fed(Option<usize>),
    Printed(Option<usize>),
    Said(Option<usize>),
    Room,
    Exited(io::Result<ExitStatus>),
    TimeUp,
}

/// A running program.
pub(super) struct Attendant<'a> {
    group: Group,
    stdin: Option<ChildStdin>,
    input: Vec<u8>,
    fed: usize,
    stdout: Option<ChildStdout>,
    output: Vec<u8>,
    output_limit: usize,
    stderr: Option<ChildStderr>,
    /// Bytes of standard error that are read but not parsed.
    said: Vec<u8>,
    /// When standard error was last read.
    read_at: SystemTime,
    lines: Lines,
    outbox: &'a Outbox,
    clock: RunClock,
    grace: Duration,
    stage: Stage,
    status: Option<ExitStatus>,
    /// Bytes read since the program exited.
    left: usize,
    /// Why we ended the program, if we did.
    verdict: Option<Ending>,
}

impl<'a> Attendant<'a> {
    pub(super) fn new(group: Group, pipes: Pipes, job: Job, outbox: &'a Outbox) -> Self {
        Self {
            group,
            stdin: Some(pipes.stdin).filter(|_| !job.input.is_empty()),
            input: job.input,
            fed: 0,
            stdout: Some(pipes.stdout),
            output: Vec::new(),
            output_limit: job.output_limit,
            stderr: Some(pipes.stderr),
            said: Vec::with_capacity(CHUNK),
            read_at: SystemTime::now(),
            lines: Lines::default(),
            outbox,
            clock: RunClock::start(job.patience),
            grace: job.grace,
            stage: Stage::Running,
            status: None,
            left: 0,
            verdict: None,
        }
    }

    /// Runs until the program has exited and its output is read.
    pub(super) async fn run(mut self) -> Run {
        let mut alarm = std::pin::pin!(tokio::time::sleep_until(self.deadline()));
        while !self.is_over() {
            if alarm.deadline() != self.deadline() {
                alarm.as_mut().reset(self.deadline());
            }
            // While the program has time, waiting signs pause the reading of standard error.
            let full = self.stage == Stage::Running && self.outbox.is_full();
            let event = tokio::select! {
                fed = feed(&mut self.stdin, &self.input[self.fed..]) => ProgramEvent::Fed(fed),
                read = read(&mut self.stdout, &mut self.output) => ProgramEvent::Printed(read),
                read = read(&mut self.stderr, &mut self.said), if !full => ProgramEvent::Said(read),
                () = self.outbox.room(), if full => ProgramEvent::Room,
                status = self.group.wait(), if self.status.is_none() => ProgramEvent::Exited(status),
                () = &mut alarm => ProgramEvent::TimeUp,
            };
            let event = match (event, self.stage) {
                // On a busy machine, time may be up before the output is read.
                (ProgramEvent::TimeUp, Stage::Ended(_)) => {
                    self.left_over().unwrap_or(ProgramEvent::TimeUp)
                }
                (event, _) => event,
            };
            if !self.step(event) {
                break;
            }
        }
        self.finish()
    }

    /// Output that can be read without waiting.
    fn left_over(&mut self) -> Option<ProgramEvent> {
        let printed = unconstrained(read(&mut self.stdout, &mut self.output)).now_or_never();
        if let Some(read) = printed {
            return Some(ProgramEvent::Printed(read));
        }
        let said = unconstrained(read(&mut self.stderr, &mut self.said)).now_or_never();
        said.map(ProgramEvent::Said)
    }

    /// After the exit, more output may follow each read.
    fn linger(&mut self, read: Option<usize>) {
        if matches!(self.stage, Stage::Ended(_)) {
            self.left += read.unwrap_or(0);
            self.stage = Stage::Ended(Instant::now() + LINGER);
        }
    }

    /// Handles an event; false if there is nothing left to wait for.
    fn step(&mut self, event: ProgramEvent) -> bool {
        match event {
            ProgramEvent::Fed(fed) => self.fed(fed),
            ProgramEvent::Printed(read) => self.printed(read),
            ProgramEvent::Said(read) => self.heard(read),
            ProgramEvent::Room => {}
            ProgramEvent::Exited(status) => self.exited(status),
            ProgramEvent::TimeUp => return self.time_up(),
        }
        true
    }

    fn is_over(&self) -> bool {
        let ended = matches!(self.stage, Stage::Ended(_));
        ended && (self.left > LEFT || (self.stdout.is_none() && self.stderr.is_none()))
    }

    fn deadline(&self) -> Instant {
        match self.stage {
            Stage::Running => self.clock.deadline().0,
            Stage::Asked(until) | Stage::Killed(until) | Stage::Ended(until) => until,
        }
    }

    /// A program need not read its input: it may close it, or exit before.
    fn fed(&mut self, fed: Option<usize>) {
        self.fed += fed.unwrap_or(0);
        if fed.is_none() || self.fed == self.input.len() {
            self.stdin = None;
        }
    }

    fn printed(&mut self, read: Option<usize>) {
        self.linger(read);
        if read.is_none() {
            self.stdout = None;
        }
        if self.output.len() > self.output_limit {
            // Writing to a closed pipe ends the writer.
            self.stdout = None;
            self.end(Ending::TooMuchOutput);
        }
    }

    fn heard(&mut self, read: Option<usize>) {
        self.linger(read);
        if read.is_none() {
            self.stderr = None;
        }
        self.read_at = SystemTime::now();
        let (outbox, clock) = (self.outbox, &mut self.clock);
        self.lines.feed(&self.said, |sign| {
            clock.sign();
            outbox.push(sign);
        });
        self.said.clear();
    }

    fn exited(&mut self, status: io::Result<ExitStatus>) {
        // The system may not report the exit status if another handler took it.
        self.status = Some(status.unwrap_or_else(|_| ExitStatus::from_raw(0xff00)));
        self.stdin = None;
        if self.stage != Stage::Running {
            // The program obeyed; its children may not have.
            self.group.kill();
        }
        self.stage = Stage::Ended(Instant::now() + LINGER);
    }

    fn time_up(&mut self) -> bool {
        match self.stage {
            Stage::Running => {
                if let Some(age) = self.touched() {
                    self.clock.sign_before(age);
                }
                let (deadline, reason) = self.clock.deadline();
                if deadline <= Instant::now() {
                    self.end(Ending::TimedOut(reason));
                }
            }
            Stage::Asked(_) => {
                self.group.kill();
                self.stage = Stage::Killed(Instant::now() + DEATH);
            }
            Stage::Killed(_) | Stage::Ended(_) => return false,
        }
        true
    }

    /// How long ago the program touched its standard error without writing. `mcp-bash` does that
    /// with its progress stream, so it counts as a sign of life.
    fn touched(&self) -> Option<Duration> {
        let pipe = self.stderr.as_ref()?.as_fd().try_clone_to_owned().ok()?;
        let touched = File::from(pipe).metadata().and_then(|pipe| pipe.modified()).ok()?;
        // Written bytes were read at once, so only a touch is later than the last read.
        touched.duration_since(self.read_at).ok()?;
        SystemTime::now().duration_since(touched).ok()
    }

    fn end(&mut self, verdict: Ending) {
        self.verdict.get_or_insert(verdict);
        if self.stage == Stage::Running {
            self.group.terminate();
            self.stage = Stage::Asked(Instant::now() + self.grace);
        }
    }

    fn finish(self) -> Run {
        // Ends everything the program left behind.
        drop(self.group);
        let ended = self.status.map_or(Ending::Signal(9), |status| match status.signal() {
            Some(signal) => Ending::Signal(signal),
            None => Ending::Code(status.code().unwrap_or(-1)),
        });
        let errors = self.lines.finish(|sign| self.outbox.push(sign));
        Run { ending: self.verdict.unwrap_or(ended), output: self.output, errors }
    }
}

/// Cancel-safe: unwritten bytes are offered again.
async fn feed(pipe: &mut Option<ChildStdin>, rest: &[u8]) -> Option<usize> {
    match pipe {
        Some(pipe) => pipe.write(rest).await.ok(),
        None => std::future::pending().await,
    }
}

/// Cancel-safe: bytes are in the buffer or still in the pipe.
async fn read(pipe: &mut Option<impl AsyncRead + Unpin>, buffer: &mut Vec<u8>) -> Option<usize> {
    match pipe {
        Some(pipe) => {
            if buffer.capacity() - buffer.len() < CHUNK / 4 {
                buffer.reserve(CHUNK);
            }
            pipe.read_buf(buffer).await.ok().filter(|count| *count > 0)
        }
        None => std::future::pending().await,
    }
}
