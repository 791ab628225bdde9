//! Processes and what they hold, and the head of an HTTP message.

use std::io::BufRead;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Time for a gateway to end by itself.
const FAREWELL: Duration = Duration::from_secs(3);

/// A process and all that it started, itself first.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let pairs: Vec<_> = pids.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![root];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(pairs.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    found
}

fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is a name in parentheses that may hold anything.
    let (_, fields) = stat.rsplit_once(')')?;
    fields.split_whitespace().nth(1)?.parse().ok()
}

/// Memory of a process in KiB, with its share of what it has in common with others.
pub(crate) fn proportional_kib(pid: u32) -> Option<f64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Ends a process and all that it started: it is asked, then killed with what is left of it.
pub(crate) fn end(root: u32) {
    let all = tree(root);
    kill(root, Signal::TERM);
    let until = Instant::now() + FAREWELL;
    // One that ended and was not waited for yet has no parent to ask for, but is still there.
    while all.iter().any(|pid| runs(*pid)) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    for pid in all.into_iter().filter(|pid| runs(*pid)) {
        kill(pid, Signal::KILL);
    }
}

pub(crate) fn kill(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may be gone.
        let _ = kill_process(pid, signal);
    }
}

/// Whether a process is there and did not end.
fn runs(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, fields)| !fields.starts_with('Z'))
}

/// What the head of a message says about its body.
#[derive(Default)]
pub(crate) struct Head {
    /// 0 for a request.
    pub(crate) status: u16,
    pub(crate) length: Option<usize>,
    pub(crate) is_chunked: bool,
    pub(crate) session: Option<String>,
}

/// Reads the head of a request or an answer.
pub(crate) fn head(reader: &mut impl BufRead) -> std::io::Result<Head> {
    let (mut head, mut line) = (Head::default(), String::new());
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let text = line.trim_end();
        if text.is_empty() {
            return Ok(head);
        }
        let Some((name, value)) = text.split_once(": ").filter(|_| !text.starts_with("HTTP/"))
        else {
            let status = text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3));
            head.status = status.and_then(|it| it.parse().ok()).unwrap_or_default();
            continue;
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => head.length = value.parse().ok(),
            "transfer-encoding" => head.is_chunked = value == "chunked",
            "mcp-session-id" => head.session = Some(value.to_owned()),
            _ => {}
        }
    }
}
