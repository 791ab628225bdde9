//! The output of commands: tables, texts, colours.

pub(crate) mod body;
pub(crate) mod colour;
pub(crate) mod content;
pub(crate) mod diff;
pub(crate) mod event;
pub(crate) mod item;
pub(crate) mod save;
pub(crate) mod standing;
pub(crate) mod structured;
pub(crate) mod table;
pub(crate) mod text;

use std::io::{IsTerminal as _, Write as _};

use anyhow::Result;
use serde::Serialize;
use tokio::io::AsyncWriteExt as _;

use crate::present::colour::Paint;

/// The output of a command: data on standard output, remarks on standard error.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    /// One JSON object per line instead of text.
    pub(crate) json: bool,
    /// Whether standard output is a terminal.
    pub(crate) terminal: bool,
    /// The width of the terminal; without one, nothing is cut.
    pub(crate) width: Option<usize>,
    /// The colours of standard output.
    pub(crate) paint: Paint,
}

impl Output {
    /// Standard output as it is.
    pub(crate) fn new(json: bool) -> Self {
        let terminal = std::io::stdout().is_terminal();
        let size = terminal.then(terminal_size::terminal_size).flatten();
        let paint = Paint::when(terminal && !json);
        Self { json, terminal, width: size.map(|(width, _)| usize::from(width.0)), paint }
    }

    /// Prints text unchanged, with a line break at its end. Text from a server must be made
    /// [harmless](text::harmless) first if a terminal shows it.
    pub(crate) fn raw(&self, text: &str) -> Result<()> {
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        self.bytes(format!("{text}{end}").as_bytes())
    }

    /// Prints one object as a line of JSON.
    pub(crate) fn object(&self, object: &impl Serialize) -> Result<()> {
        self.raw(&serde_json::to_string(object)?)
    }

    /// Prints bytes unchanged.
    #[expect(clippy::unused_self, reason = "whoever prints has an output")]
    pub(crate) fn bytes(&self, bytes: &[u8]) -> Result<()> {
        let mut output = std::io::stdout().lock();
        output.write_all(bytes)?;
        output.flush()?;
        Ok(())
    }

    /// Prints text unchanged, and lets other tasks run while a slow reader does not take it.
    pub(crate) async fn send(&self, text: &str) -> Result<()> {
        let mut output = tokio::io::stdout();
        output.write_all(text.as_bytes()).await?;
        output.flush().await?;
        Ok(())
    }

    /// Prints a remark on standard error. If the reader has gone, the error is ignored.
    #[expect(clippy::unused_self, reason = "whoever prints has an output")]
    pub(crate) fn remark(&self, text: &str) {
        drop(std::io::stderr().write_all(format!("{}\n", text::harmless(text)).as_bytes()));
    }
}
