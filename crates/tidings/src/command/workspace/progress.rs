//! The progress of a long operation, on a terminal.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use crate::present::text::{cut, one_line, width};

/// How often the line is redrawn.
const EVERY: Duration = Duration::from_millis(100);
/// A length that fits any terminal.
const COLUMNS: usize = 78;

/// One line on standard error that is redrawn; nothing without a terminal.
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

    /// Shows the progress, if it is time to redraw.
    pub(super) fn tell(&mut self, text: impl FnOnce() -> String) {
        if !self.is_shown || self.last.is_some_and(|last| last.elapsed() < EVERY) {
            return;
        }
        self.last = Some(Instant::now());
        let text = one_line(&text());
        self.write(&cut(&text, COLUMNS));
    }

    /// Removes the line before other output.
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
