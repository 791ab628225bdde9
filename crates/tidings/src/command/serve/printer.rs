//! The output of `tidings serve`: one line for each change and each notice.

use std::io::{IsTerminal as _, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use tidings_folder::{Problem, Report, Severity};
use tidings_server::{Event, Outcome, http};
use tidings_store::date::Moment;
use tokio::sync::{broadcast, mpsc, oneshot};

use crate::folder::advice::advised;
use crate::present::standing::StandingLine;

/// Names in one line; a checkout changes hundreds.
const NAMES: usize = 8;
/// Lines that may wait for a reader: enough for a folder full of problems, few enough to drop when
/// nobody reads. Further lines are dropped and counted.
const WAITING: usize = 4096;
/// Time to write the last lines at the end. A reader that does not read gets no more.
const LAST_LINES: Duration = Duration::from_millis(100);

/// Prints one line for each change and each notice.
///
/// A separate thread writes the lines, and nobody joins it: a reader that does not read blocks it,
/// but delays neither a client nor a signal.
pub(super) struct Printer {
    look: Look,
    lines: SyncSender<PrintedLine>,
    /// Dropped lines that were not reported yet. The printer adds; the reporting thread takes all.
    lost: Arc<AtomicUsize>,
    /// Closed when the thread has written everything.
    written: oneshot::Receiver<()>,
}

/// The format of a line and where it goes.
#[derive(Clone, Copy)]
struct Look {
    json: bool,
    /// With stdio, standard output belongs to the protocol.
    to_stderr: bool,
    /// Whether only problems are printed: hosts log the standard error of their servers.
    quiet: bool,
}

struct PrintedLine {
    /// Lines dropped just before this one.
    lost: usize,
    text: String,
    /// Whether it stays below all others, on standard error, and is replaced by the next of its
    /// kind.
    stands: bool,
}

impl Printer {
    /// # Errors
    ///
    /// The system cannot start a thread.
    pub(super) fn new(json: bool, to_stderr: bool, verbose: bool) -> Result<Self> {
        let look = Look { json, to_stderr, quiet: to_stderr && !json && !verbose };
        let (lines, waiting) = sync_channel(WAITING);
        let lost = Arc::new(AtomicUsize::new(0));
        let (done, written) = oneshot::channel();
        let thread = std::thread::Builder::new().name("printer".to_owned());
        let untold = lost.clone();
        let write = move || {
            if to_stderr {
                look.write_all(&waiting, &untold, &mut std::io::stderr());
            } else {
                look.write_all(&waiting, &untold, &mut std::io::stdout());
            }
            drop(done);
        };
        thread.spawn(write).context("starting the printer")?;
        Ok(Self { look, lines, lost, written })
    }

    /// Gives the last lines a moment to be written.
    pub(super) async fn finish(self) {
        drop(self.lines);
        drop(tokio::time::timeout(LAST_LINES, self.written).await);
    }

    pub(super) async fn run(
        &self,
        mut told: mpsc::Receiver<String>,
        mut reported: mpsc::Receiver<Report>,
        mut events: broadcast::Receiver<Event>,
    ) {
        loop {
            tokio::select! {
                Some(change) = told.recv() => self.change("change", &change),
                Some(report) = reported.recv() => self.report(&report),
                event = events.recv() => match event {
                    Ok(Event::Change { what, outcome: Outcome::Announced(listeners) })
                        if !self.look.quiet =>
                    {
                        self.line("notice", &what, Some(listeners));
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    /// Prints a change, unless only problems are printed.
    pub(super) fn change(&self, kind: &str, what: &str) {
        if !self.look.quiet {
            self.line(kind, what, None);
        }
    }

    /// Whether a person sees progress lines.
    pub(super) fn has_standing_line(&self) -> bool {
        !self.look.json && std::io::stderr().is_terminal()
    }

    /// Sets the progress line below all others; an empty text removes it. It may be dropped.
    pub(super) fn stand(&self, text: String) {
        drop(self.lines.try_send(PrintedLine { lost: 0, text, stands: true }));
    }

    /// Prints the endpoint, the address of a workspace's blobs, and the link to the console.
    pub(super) fn started(&self, address: SocketAddr, has_blobs: bool, console: Option<&str>) {
        let endpoint = http::endpoint(address);
        let blobs = has_blobs.then(|| format!("http://{address}/blob"));
        if self.look.json {
            let mut line = json!({ "event": "listening", "endpoint": endpoint });
            if let Some(blobs) = blobs {
                line["blobs"] = blobs.into();
            }
            if let Some(link) = console {
                line["console"] = link.into();
            }
            self.print(line.to_string());
            return;
        }
        self.print(format!("listening on {endpoint}"));
        if let Some(blobs) = blobs {
            self.print(format!("blobs: upload to {blobs}, download from {blobs}/HASH"));
        }
        if let Some(link) = console {
            self.print(format!("console: {link}"));
        }
        self.print("connect any MCP client there; Ctrl-C ends it".to_owned());
    }

    /// The result of a folder's reload.
    fn report(&self, report: &Report) {
        let parts =
            [("added", &report.added), ("changed", &report.changed), ("removed", &report.removed)];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty() && !self.look.quiet);
        if self.look.json {
            let lists: serde_json::Map<_, _> =
                parts.map(|(word, names)| ((*word).to_owned(), json!(names))).collect();
            if !lists.is_empty() {
                let mut line = Value::Object(lists);
                line["event"] = "reload".into();
                line["unix_ms"] = json!(Moment::now());
                self.print(line.to_string());
            }
        } else {
            let said: Vec<_> =
                parts.map(|(word, names)| format!("{word} {}", few(names))).collect();
            if !said.is_empty() {
                self.line("change", &said.join("; "), None);
            }
        }
        for problem in &report.problems {
            let kind = if problem.severity == Severity::Note { "note" } else { "problem" };
            self.problem(kind, problem);
        }
        for problem in &report.mended {
            self.problem("mended", problem);
        }
    }

    fn problem(&self, kind: &str, problem: &Problem) {
        let problem = advised(problem);
        if self.look.json {
            let severity = match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
                Severity::Note => "note",
            };
            let line = json!({
                "event": kind,
                "file": problem.file.to_string_lossy(),
                "line": problem.line,
                "severity": severity,
                "reason": problem.reason,
                "advice": problem.advice,
                "unix_ms": Moment::now(),
            });
            self.print(line.to_string());
            return;
        }
        self.line(kind, &problem.to_string(), None);
    }

    pub(super) fn line(&self, kind: &str, what: &str, listeners: Option<usize>) {
        self.print(self.look.line(kind, what, listeners));
    }

    /// Never waits.
    fn print(&self, text: String) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        if self.lines.try_send(PrintedLine { lost, text, stands: false }).is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }
}

impl Look {
    fn line(self, kind: &str, what: &str, listeners: Option<usize>) -> String {
        let now = Moment::now();
        if self.json {
            let mut line = json!({ "event": kind, "what": what, "unix_ms": now });
            if let Some(listeners) = listeners {
                line["listeners"] = listeners.into();
            }
            return line.to_string();
        }
        let what = printable(what);
        let told = match listeners {
            Some(1) => " → 1 listener".to_owned(),
            Some(listeners) => format!(" → {listeners} listeners"),
            None => String::new(),
        };
        let kind = self.coloured(kind);
        format!("{:.0}Z  {kind}  {what}{told}", now.civil().time())
    }

    fn coloured(self, kind: &str) -> String {
        let terminal = if self.to_stderr {
            std::io::stderr().is_terminal()
        } else {
            std::io::stdout().is_terminal()
        };
        if !terminal || std::env::var_os("NO_COLOR").is_some() {
            return kind.to_owned();
        }
        let colour = match kind {
            "notice" => 36,
            "problem" | "lost" => 31,
            "mended" => 32,
            _ => 33,
        };
        format!("\u{1b}[{colour}m{kind}\u{1b}[0m")
    }

    /// Writes lines until the channel closes.
    fn write_all(
        self,
        waiting: &Receiver<PrintedLine>,
        lost: &AtomicUsize,
        output: &mut impl Write,
    ) {
        let mut standing = StandingLine::new(self.json);
        let mut stands = String::new();
        loop {
            let line = match waiting.try_recv() {
                Ok(line) => line,
                // There is room again, and perhaps no further line to report the dropped ones.
                Err(TryRecvError::Empty) => {
                    self.tell(lost.swap(0, Ordering::Relaxed), output);
                    let Ok(line) = waiting.recv() else { break };
                    line
                }
                Err(TryRecvError::Disconnected) => break,
            };
            standing.clear();
            self.tell(line.lost, output);
            if line.stands {
                stands = line.text;
            } else {
                write(line.text, output);
            }
            if !stands.is_empty() {
                standing.draw(&stands);
            }
        }
        standing.clear();
        self.tell(lost.swap(0, Ordering::Relaxed), output);
    }

    fn tell(self, lost: usize, output: &mut impl Write) {
        let lines = if lost == 1 { "line" } else { "lines" };
        if lost > 0 {
            let what = format!("{lost} {lines}: they came faster than they were read");
            write(self.line("lost", &what, None), output);
        }
    }
}

/// If the reader has gone, the error is ignored: clients are still served.
fn write(mut line: String, output: &mut impl Write) {
    line.push('\n');
    drop(output.write_all(line.as_bytes()));
}

fn few(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// A file name cannot control the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_find_no_room_are_counted_where_they_are_missing() {
        let look = Look { json: true, to_stderr: true, quiet: false };
        let (lines, waiting) = sync_channel(2);
        let lost = Arc::new(AtomicUsize::new(0));
        let printer = Printer { look, lines, lost: lost.clone(), written: oneshot::channel().1 };
        let mut output = Vec::new();
        let print = |texts: &[&str]| texts.iter().for_each(|text| printer.print((*text).into()));
        print(&["a", "b", "lost", "lost"]);
        write(waiting.recv().unwrap().text, &mut output);
        print(&["c", "lost"]);
        drop(printer);
        look.write_all(&waiting, &lost, &mut output);
        let output = String::from_utf8(output).unwrap();
        let what = |line: &str| match serde_json::from_str::<Value>(line) {
            Ok(line) => format!("{} {}", line["event"], line["what"]),
            Err(_) => line.to_owned(),
        };
        let said: Vec<_> = output.lines().map(what).collect();
        let two = r#""lost" "2 lines: they came faster than they were read""#;
        let one = r#""lost" "1 line: they came faster than they were read""#;
        assert_eq!(said, ["a", "b", two, "c", one]);
    }
}
