//! How far a long work is, on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::present::text::{cut, one_line, width};

/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(100);
/// As much of a line as fits any terminal.
const COLUMNS: usize = 78;

/// One line on standard error that is written over; nothing where nobody looks.
pub(super) struct Progress {
    is_shown: bool,
    last: Option<Instant>,
    columns: usize,
}

impl Progress {
    pub(super) fn new(json: bool) -> Self {
        let is_shown = !json && std::io::stderr().is_terminal();
        Self { is_shown, last: None, columns: 0 }
    }

    /// Says how far it is, if it is time to say so.
    pub(super) fn tell(&mut self, text: impl FnOnce() -> String) {
        if !self.is_shown || self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let text = one_line(&text());
        self.write(&cut(&text, COLUMNS));
    }

    /// Takes the line away, so that something else can be said.
    pub(super) fn clear(&mut self) {
        if self.columns > 0 {
            self.write("");
            drop(std::io::stderr().write_all(b"\r"));
        }
    }

    fn write(&mut self, text: &str) {
        let now = width(text);
        let rest = " ".repeat(self.columns.saturating_sub(now));
        self.columns = now;
        drop(std::io::stderr().write_all(format!("\r{text}{rest}").as_bytes()));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
