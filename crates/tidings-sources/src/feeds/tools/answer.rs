//! What a tool answers: a structure for programs with the same in words, or why there is none.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use tidings_server::AnswerError;
use tidings_server::model::{CallToolResult, ContentBlock};

use crate::feeds::{FeedsError, StoreError};

/// What was found or done.
#[derive(Debug)]
pub(super) struct Answer {
    structure: Value,
    text: String,
}

impl Answer {
    /// A structure, which satisfies the output schema of its tool, and the same for people.
    pub(super) fn new(structure: &impl Serialize, text: impl Into<String>) -> Self {
        let structure = serde_json::to_value(structure).expect("answers are plain JSON");
        Self { structure, text: text.into() }
    }

    /// Adds a field to the structure.
    pub(super) fn add(&mut self, name: &str, value: impl Serialize) {
        self.structure[name] = serde_json::to_value(value).expect("answers are plain JSON");
    }

    /// Adds to the text.
    pub(super) fn say(&mut self, words: &str) {
        self.text.push_str(words);
    }

    pub(super) fn result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(self.structure);
        result
    }
}

/// Why nothing was found or done, and what can be done about it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct Refusal(String);

impl Refusal {
    pub(super) fn new(details: impl Into<String>) -> Self {
        Self(details.into())
    }

    /// An argument has a value that cannot be; `details` says what can.
    pub(super) fn argument(name: &str, value: impl std::fmt::Display, details: &str) -> Self {
        let value = value.to_string();
        Self(format!("`{name}`: `{}` cannot be used: {details}", shortened(&value, 100)))
    }

    /// There is no such feed.
    pub(super) fn no_feed(name: &str, id: &str) -> Self {
        Self::argument(name, id, "there is no such feed; `all_syndication_feeds` lists their ids")
    }

    pub(super) fn result(&self, tool: &str) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(format!("`{tool}` was not done: {self}"))])
    }
}

impl From<AnswerError> for Refusal {
    fn from(error: AnswerError) -> Self {
        match error {
            AnswerError::Invalid { parameter, value, details } => {
                Self::argument(&parameter, value, &details)
            }
            other => Self(other.to_string()),
        }
    }
}

impl From<FeedsError> for Refusal {
    fn from(error: FeedsError) -> Self {
        match error {
            FeedsError::Store(error) => error.into(),
            error => Self(error.to_string()),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self(error.outside())
    }
}

/// The beginning of a text, with a sign where it was cut; at most so many bytes.
pub(crate) fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most.saturating_sub('…'.len_utf8()));
    Cow::Owned(format!("{}…", text[..end].trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_between_characters_and_says_so() {
        assert_eq!(shortened("añb", 4), "añb");
        assert_eq!(shortened("ääää", 6), "ä…");
        assert_eq!(shortened("one two", 6), "one…");
        assert_eq!(shortened("long", 2), "…");
    }
}
