//! Errors and hints, printed for people.

use std::io::{ErrorKind, Write as _};
use std::process::ExitCode;

use crate::present::text::harmless;

/// A next step for the person who sees an error.
#[derive(Debug)]
pub(crate) struct Hint(pub(crate) String);

impl std::fmt::Display for Hint {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Hint {}

/// A command line that cannot be run: exit code 2.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    message: String,
    hint: Option<String>,
}

impl Usage {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl std::fmt::Display for Usage {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Usage {}

/// Prints why the program failed. A closed output pipe is not a failure.
pub(crate) fn failure(error: &anyhow::Error) -> ExitCode {
    let closed = |cause: &(dyn std::error::Error + 'static)| {
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
    };
    if error.chain().any(closed) {
        return ExitCode::SUCCESS;
    }
    // The text may contain the server's words.
    drop(std::io::stderr().write_all(harmless(&text(error)).as_bytes()));
    if error.downcast_ref::<Usage>().is_some() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

/// The same as lines, for commands that continue.
pub(crate) fn lines(error: &anyhow::Error) -> String {
    text(error).trim_end().to_owned()
}

/// The same as one line, for logs.
pub(crate) fn line(error: &anyhow::Error) -> String {
    let text = lines(error);
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    text.replace("\ncaused by: ", ": ").replace("\nhint: ", "; ")
}

fn text(error: &anyhow::Error) -> String {
    let usage = error.downcast_ref::<Usage>().and_then(|usage| usage.hint.clone());
    let hint = error.downcast_ref::<Hint>().map(ToString::to_string);
    let shown = error.chain().map(ToString::to_string).filter(|line| Some(line) != hint.as_ref());
    let mut text = String::new();
    for (index, line) in shown.enumerate() {
        text += if index == 0 { "error: " } else { "caused by: " };
        text += &line;
        text.push('\n');
    }
    if let Some(hint) = hint.or(usage) {
        text += "hint: ";
        text += &hint;
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn an_error_is_a_chain_and_a_hint() {
        let failed = std::fs::read("/nonexistent/token").map(drop);
        let error = failed
            .context("reading the token")
            .context(Hint("give a file that exists".to_owned()))
            .unwrap_err();
        assert_eq!(
            text(&error),
            "error: reading the token\n\
             caused by: No such file or directory (os error 2)\n\
             hint: give a file that exists\n"
        );
    }

    #[test]
    fn wrong_usage_has_its_own_hint() {
        let error = anyhow::Error::new(Usage::new("TARGET is missing").hint("give one"));
        assert_eq!(text(&error), "error: TARGET is missing\nhint: give one\n");
    }
}
