//! A progress line below the output of a terminal, redrawn in place.

use std::io::{IsTerminal as _, Write as _};

use crate::present::text::{cut, harmless};

/// No terminal is narrower.
const WIDTH: usize = 79;
/// Moves to the start of the line and clears it.
pub(crate) const ERASE: &str = "\r\u{1b}[K";

/// A line on standard error, if that is a terminal.
#[derive(Debug)]
pub(crate) struct StandingLine {
    shown: bool,
    drawn: bool,
}

impl StandingLine {
    /// With `json`, nothing is shown.
    pub(crate) fn new(json: bool) -> Self {
        Self { shown: !json && std::io::stderr().is_terminal(), drawn: false }
    }

    pub(crate) fn draw(&mut self, text: &str) {
        if self.shown {
            write(&format!("{ERASE}{}", cut(&harmless(text), WIDTH)));
            self.drawn = true;
        }
    }

    pub(crate) fn clear(&mut self) {
        if self.drawn {
            write(ERASE);
            self.drawn = false;
        }
    }
}

/// If the reader has gone, the error is ignored.
fn write(text: &str) {
    let mut stderr = std::io::stderr();
    drop(stderr.write_all(text.as_bytes()));
    drop(stderr.flush());
}
