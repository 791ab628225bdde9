//! The processes of a run: this program again, as a server or as the load client.

use std::error::Error;
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::{env, fs, io};

use tokio::net::TcpListener;

use crate::{floor, ours, plain, raw};

/// The servers that are compared, in the order they take their turns.
pub(crate) const SERVERS: [&str; 4] = ["ours", "raw", "floor", "rmcp"];

/// Kernel clock ticks per second in `/proc`; the same on every Linux a program can see.
const TICKS: f64 = 100.0;

/// Runs one server until standard input ends: it must not outlive the run that started it.
#[tokio::main]
pub(crate) async fn serve(name: &str) -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    std::thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    match name {
        "ours" => ours::serve(listener).await,
        "raw" => raw::serve(listener).await,
        "floor" => floor::serve(listener).await,
        "rmcp" => plain::serve(listener).await,
        _ => Err(format!("there is no server `{name}`").into()),
    }
}

/// A server in its own process; it ends when this is dropped.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) pid: u32,
    child: Child,
    _lifeline: Option<ChildStdin>,
}

impl Server {
    /// Starts a server on the first core.
    pub(crate) fn start(name: &str) -> Result<Self, Box<dyn Error>> {
        let mut child = again(0)?
            .args(["server", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let lifeline = child.stdin.take();
        let output = child.stdout.take().ok_or("the server has no output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        Ok(Self { address: line.trim().parse()?, pid: child.id(), child, _lifeline: lifeline })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Runs the load client on the second core and returns what it printed.
pub(crate) fn client(order: &[String]) -> Result<String, Box<dyn Error>> {
    let output = again(1)?.arg("client").args(order).stderr(Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("the load client failed: {}", order.join(" ")).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

/// This program, kept to one core where the machine has another and `taskset` is there.
fn again(core: usize) -> io::Result<Command> {
    let program = env::current_exe()?;
    let cores = std::thread::available_parallelism()?.get();
    if cores < 2 || Command::new("taskset").arg("-V").stdout(Stdio::null()).status().is_err() {
        return Ok(Command::new(program));
    }
    let mut command = Command::new("taskset");
    command.arg("-c").arg(core.to_string()).arg(program);
    Ok(command)
}

/// CPU time a process has used, in microseconds.
pub(crate) fn cpu_micros(pid: u32) -> io::Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is a name in parentheses that may hold anything.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok());
    Ok(ticks.sum::<f64>() / TICKS * 1e6)
}

/// Resident memory of a process, in KiB.
pub(crate) fn resident_kib(pid: u32) -> io::Result<f64> {
    status_kib(pid, "VmRSS:")
}

/// The most resident memory that a process had, in KiB.
pub(crate) fn peak_kib(pid: u32) -> io::Result<f64> {
    status_kib(pid, "VmHWM:")
}

fn status_kib(pid: u32, name: &str) -> io::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    number.ok_or_else(|| io::Error::other(format!("the process shows no {name}")))
}

/// How many files a process of this run may open.
pub(crate) fn open_files() -> usize {
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
    soft.unwrap_or(usize::MAX)
}
