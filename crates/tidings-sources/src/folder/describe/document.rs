//! Files of text, JSON, TOML and YAML as values, with the line of what is wrong.

use std::path::Path;

use serde::de::DeserializeOwned;

use super::Desk;
use crate::folder::tree::ReadError;
use crate::folder::{Fix, Problem};

/// How many keys that mean nothing are told; a file of them is one mistake.
const UNKNOWN: usize = 20;
const MARK: &str = "\u{feff}";

impl Desk<'_> {
    /// The text of a file that belongs to a description; `None` after a complaint.
    pub(super) fn text(&mut self, path: &Path) -> Option<String> {
        self.result.reads.insert(path.to_owned());
        if !self.may_read(path) {
            let reason = "it is hidden, or the policy denies it";
            self.reject(Problem::error(path, reason, "name a file that is served"));
            return None;
        }
        let bytes = match self.root().read(path, self.limits().description) {
            Ok(bytes) => bytes,
            Err(error) => {
                self.reject(Problem::error(path, reason(&error), advice(&error)));
                return None;
            }
        };
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => {
                let valid = error.utf8_error().valid_up_to();
                let line = String::from_utf8_lossy(&error.as_bytes()[..valid]).lines().count();
                let problem = Problem::error(path, "it is not UTF-8 text", "save it as UTF-8");
                self.reject(problem.at(line.max(1)));
                return None;
            }
        };
        let Some(rest) = text.strip_prefix(MARK) else { return Some(text) };
        let problem = Problem::warning(
            path,
            "it begins with a byte order mark, which other programs stumble over",
            "save it without, or run `tidings lint --fix`",
        );
        self.complain(problem.at(1).mended_by(Fix::DropByteOrderMark));
        Some(rest.to_owned())
    }

    /// A description in JSON, or in TOML if its name says so.
    pub(super) fn document<T: DeserializeOwned>(&mut self, path: &Path) -> Option<(T, String)> {
        let text = self.text(path)?;
        let parsed = if path.extension().is_some_and(|ending| ending == "toml") {
            toml::from_str(&text).map_err(|error| {
                let line = error.span().map(|span| line_at(&text, span.start));
                (error.message().to_owned(), line)
            })
        } else {
            serde_json::from_str(&text).map_err(|error| {
                let line = (error.line() > 0).then(|| error.line());
                (without_place(&error.to_string()), line)
            })
        };
        match parsed {
            Ok(value) => Some((value, text)),
            Err((reason, line)) => {
                let problem = Problem::error(path, reason, "correct the description");
                self.reject(Problem { line, ..problem });
                None
            }
        }
    }

    /// Complains of keys that mean nothing: a slip of the pen is found by nobody else.
    pub(super) fn unknown_keys<'k>(
        &mut self,
        path: &Path,
        text: &str,
        keys: impl Iterator<Item = &'k String>,
        known: &str,
    ) {
        for key in keys.take(UNKNOWN) {
            let reason = format!("`{key}` means nothing here");
            let problem = Problem::warning(path, reason, format!("known are {known}"));
            self.complain(Problem { line: line_of(text, key), ..problem });
        }
    }
}

/// What is wrong with a file that cannot be read.
pub(super) fn reason(error: &ReadError) -> String {
    match error {
        ReadError::Io(error) => format!("it cannot be read: {error}"),
        other => other.to_string(),
    }
}

fn advice(error: &ReadError) -> &'static str {
    match error {
        ReadError::Missing => "create it, or correct the path",
        ReadError::Outside => "put a copy of the file into the folder",
        ReadError::NotAFile => "put a file there",
        ReadError::TooLarge(_) => "make it smaller",
        ReadError::Io(_) => "correct its permissions",
    }
}

/// The line, from 1, of a position in a text.
pub(super) fn line_at(text: &str, position: usize) -> usize {
    1 + text.as_bytes().iter().take(position).filter(|byte| **byte == b'\n').count()
}

/// The line on which a key is first written.
pub(super) fn line_of(text: &str, key: &str) -> Option<usize> {
    let quoted = format!("\"{key}\"");
    text.lines()
        .position(|line| line.contains(&quoted) || line.trim_start().starts_with(key))
        .map(|line| line + 1)
}

/// The library says where at the end of its message; we say it in front.
fn without_place(message: &str) -> String {
    message.rsplit_once(" at line ").map_or(message, |(message, _)| message).to_owned()
}
