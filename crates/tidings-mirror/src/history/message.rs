//! One message of the log: its text on the wire.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;

/// The most bytes kept of one message.
pub(super) const MAX_MESSAGE: usize = 1 << 20;

/// One message of the log.
///
/// Its text is that on the wire, so unknown fields and spellings are in it. Headers and
/// environment, which may contain secrets, are not.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Message {
    /// Its number: messages and [`Fact`](crate::Fact)s of one mirror are numbered together, from 1.
    pub number: u64,
    /// When it passed.
    pub at: SystemTime,
    /// Its direction.
    pub direction: Direction,
    /// For an answer: the time since the request.
    pub took: Option<Duration>,
    /// Its length in bytes.
    pub length: usize,
    /// Who sent the request: see [`RequestOptions::by`](crate::RequestOptions::by).
    pub by: Option<Arc<str>>,
    text: Box<str>,
}

/// The direction of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// To the server.
    Sent,
    /// From the server.
    Received,
}

impl Direction {
    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Sent => Self::Received,
            Self::Received => Self::Sent,
        }
    }
}

impl Message {
    pub(super) fn new(number: u64, direction: Direction, text: &[u8], length: usize) -> Self {
        let kept = &text[..text.len().min(MAX_MESSAGE)];
        let kept = match std::str::from_utf8(kept) {
            Ok(kept) => kept,
            // The cut is inside a character.
            Err(error) => std::str::from_utf8(&kept[..error.valid_up_to()]).unwrap_or_default(),
        };
        let (at, took, by) = (SystemTime::now(), None, None);
        Self { number, at, direction, took, length, by, text: kept.into() }
    }

    /// A message that was kept elsewhere, such as in a file, with all of its text.
    #[must_use]
    pub fn of_text(number: u64, at: SystemTime, direction: Direction, text: &str) -> Self {
        let (took, length, by) = (None, text.len(), None);
        Self { number, at, direction, took, length, by, text: text.into() }
    }

    /// Its text on the wire; of a message longer than 1 MiB, the beginning. A message that was too
    /// large to receive has only its [`length`](Self::length).
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether [`text`](Self::text) is incomplete.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.text.len() < self.length
    }

    /// Parses its text; `None` if it was cut.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        serde_json::from_str(&self.text).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_between_two_characters_and_says_how_long_it_was() {
        let text = format!("x{}", "ä".repeat(MAX_MESSAGE));
        let message = Message::new(1, Direction::Sent, text.as_bytes(), text.len());
        assert_eq!((message.text().len(), message.length), (MAX_MESSAGE - 1, text.len()));
        assert!(message.is_cut() && message.json().is_none());
        let whole = Message::new(1, Direction::Sent, br#"{"a": 1}"#, 8);
        assert_eq!((whole.text(), whole.is_cut()), (r#"{"a": 1}"#, false));
        assert_eq!(whole.json(), Some(serde_json::json!({ "a": 1 })));
    }
}
