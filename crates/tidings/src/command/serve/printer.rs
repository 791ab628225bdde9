//! What `tidings serve` prints while it serves: one line for each change and each notice.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::time::SystemTime;

use serde_json::{Value, json};
use tidings_server::{Event, http};
use tidings_sources::folder::{Problem, Report, Severity};
use tokio::sync::{broadcast, mpsc};

/// How many names one line has; a checkout moves hundreds.
const NAMES: usize = 8;

/// Prints one line for each change and each notice.
pub(super) struct Printer {
    json: bool,
    /// Standard output is the protocol's when it serves stdio.
    to_stderr: bool,
}

impl Printer {
    pub(super) fn new(json: bool, to_stderr: bool) -> Self {
        Self { json, to_stderr }
    }

    pub(super) async fn run(
        &self,
        mut told: mpsc::Receiver<String>,
        mut reported: mpsc::Receiver<Report>,
        mut events: broadcast::Receiver<Event>,
    ) {
        loop {
            tokio::select! {
                Some(change) = told.recv() => self.line("change", &change, None),
                Some(report) = reported.recv() => self.report(&report),
                event = events.recv() => match event {
                    Ok(Event::Announced { what, listeners }) => {
                        self.line("notice", &what, Some(listeners));
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    pub(super) fn started(&self, address: SocketAddr) {
        let endpoint = http::endpoint(address);
        if self.json {
            self.print(&json!({ "event": "listening", "endpoint": endpoint }).to_string());
            return;
        }
        self.print(&format!("listening on {endpoint}"));
        self.print("connect any MCP client there; Ctrl-C ends it");
    }

    /// What a reload of a folder found.
    fn report(&self, report: &Report) {
        let parts =
            [("added", &report.added), ("changed", &report.changed), ("removed", &report.removed)];
        let parts = parts.iter().filter(|(_, names)| !names.is_empty());
        if self.json {
            let lists: serde_json::Map<_, _> =
                parts.map(|(word, names)| ((*word).to_owned(), json!(names))).collect();
            if !lists.is_empty() {
                let mut line = Value::Object(lists);
                line["event"] = "reload".into();
                line["unix_ms"] = json!(now().as_millis());
                self.print(&line.to_string());
            }
        } else {
            let said: Vec<_> =
                parts.map(|(word, names)| format!("{word} {}", few(names))).collect();
            if !said.is_empty() {
                self.line("change", &said.join("; "), None);
            }
        }
        for problem in &report.problems {
            self.problem("problem", problem);
        }
        for problem in &report.mended {
            self.problem("mended", problem);
        }
    }

    fn problem(&self, kind: &str, problem: &Problem) {
        if self.json {
            let severity = match problem.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let line = json!({
                "event": kind,
                "file": problem.file.to_string_lossy(),
                "line": problem.line,
                "severity": severity,
                "reason": problem.reason,
                "advice": problem.advice,
                "unix_ms": now().as_millis(),
            });
            self.print(&line.to_string());
            return;
        }
        self.line(kind, &problem.to_string(), None);
    }

    fn line(&self, kind: &str, what: &str, listeners: Option<usize>) {
        let now = now();
        if self.json {
            let mut line = json!({ "event": kind, "what": what, "unix_ms": now.as_millis() });
            if let Some(listeners) = listeners {
                line["listeners"] = listeners.into();
            }
            self.print(&line.to_string());
            return;
        }
        let what = printable(what);
        let seconds = now.as_secs() % 86_400;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let told = match listeners {
            Some(1) => " → 1 listener".to_owned(),
            Some(listeners) => format!(" → {listeners} listeners"),
            None => String::new(),
        };
        let kind = self.coloured(kind);
        self.print(&format!("{hour:02}:{minute:02}:{second:02}Z  {kind}  {what}{told}"));
    }

    fn coloured(&self, kind: &str) -> String {
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
            "problem" => 31,
            "mended" => 32,
            _ => 33,
        };
        format!("\u{1b}[{colour}m{kind}\u{1b}[0m")
    }

    /// A reader that has gone away is not told; the clients are still served.
    fn print(&self, line: &str) {
        let line = format!("{line}\n");
        drop(if self.to_stderr {
            std::io::stderr().write_all(line.as_bytes())
        } else {
            std::io::stdout().write_all(line.as_bytes())
        });
    }
}

fn now() -> std::time::Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}

fn few(names: &[String]) -> String {
    let shown = names.iter().take(NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What a file is called cannot steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { '\u{fffd}' } else { it }).collect()
}
