//! The program as a process, asked over stdio, and medians of what that took.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");

pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// The floor of a start: the same program that only says its version.
pub(crate) fn bare_start() -> Result<Duration, Failure> {
    let begun = Instant::now();
    Command::new(PROGRAM).arg("--version").stdout(Stdio::null()).status()?;
    Ok(begun.elapsed())
}

pub(crate) fn median(times: &mut [Duration]) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// `tidings serve --stdio …`, and a client that said hello to it.
pub(crate) struct Server {
    pub(crate) child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Server {
    /// Serves what the arguments say.
    pub(crate) fn start<A: AsRef<std::ffi::OsStr>>(
        arguments: impl IntoIterator<Item = A>,
    ) -> Result<Self, Failure> {
        let mut child = Command::new(PROGRAM)
            .args(["serve", "--stdio", "--silent"])
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no input")?;
        let output = BufReader::new(child.stdout.take().ok_or("no output")?);
        let mut server = Self { child, input, output, next_id: 0 };
        let client = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        });
        server.ask("initialize", &client)?;
        server.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn send(&mut self, message: &Value) -> Result<(), Failure> {
        writeln!(self.input, "{message}")?;
        Ok(self.input.flush()?)
    }

    fn next(&mut self) -> Result<Value, Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        loop {
            let message = self.next()?;
            if message["id"] == id {
                return Ok(message["result"].clone());
            }
        }
    }

    pub(crate) fn hear(&mut self, method: &str) -> Result<(), Failure> {
        while self.next()?["method"] != method {}
        Ok(())
    }

    /// Resident memory in kB.
    pub(crate) fn resident(&self) -> Result<u64, Failure> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        Ok(line.ok_or("no memory")?.trim().trim_end_matches(" kB").parse()?)
    }

    pub(crate) fn end(mut self) -> Result<(), Failure> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}
