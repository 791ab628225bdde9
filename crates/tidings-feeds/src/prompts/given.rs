//! The arguments of a prompt: parsing of their texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;
use tidings_server::AnswerError;
use tidings_server::model::JsonObject;

use crate::Inner;
use crate::prompts::Words;
use crate::store::Listing;
use crate::tools::{Budget, Unavailable, part};
use crate::view::Filter;

/// The given arguments.
#[derive(Debug)]
pub(super) struct Given {
    texts: BTreeMap<String, String>,
    /// The named feeds that were never fetched.
    unavailable: Unavailable,
}

impl Given {
    /// Takes the arguments of a prompt; an empty one counts as missing.
    pub(super) fn read(
        inner: &Inner,
        words: &Words,
        arguments: JsonObject,
    ) -> Result<Self, AnswerError> {
        let mut given = BTreeMap::new();
        for (name, value) in arguments {
            let value = match value {
                Value::String(text) => text.trim().to_owned(),
                other => other.to_string(),
            };
            if !words.arguments.iter().any(|argument| argument.name == name) {
                let names: Vec<_> = words.arguments.iter().map(|it| it.name).collect();
                let details =
                    format!("there is no such argument; there are `{}`", names.join("`, `"));
                return Err(AnswerError::invalid(name, value, details));
            }
            if !value.is_empty() {
                given.insert(name, value);
            }
        }
        let missing =
            words.arguments.iter().find(|it| it.is_required && !given.contains_key(it.name));
        match missing {
            Some(it) => Err(AnswerError::invalid(it.name, "", "this argument is required")),
            None => Self { texts: given, unavailable: Unavailable::default() }.looked(inner),
        }
    }

    /// The same, with the state of the named feeds.
    fn looked(mut self, inner: &Inner) -> Result<Self, AnswerError> {
        if self.names_feeds() {
            let mut keys: Vec<_> = self.feed(inner)?.into_iter().collect();
            for id in self.parts("feeds") {
                keys.push(key_of(inner, "feeds", &id)?);
            }
            self.unavailable = Unavailable::among(inner, &keys, &mut part(self.budget()?));
        }
        Ok(self)
    }

    pub(super) fn names_feeds(&self) -> bool {
        ["feed", "feeds"].iter().any(|name| !self.parts(name).is_empty())
    }

    pub(super) fn unavailable(&self) -> &Unavailable {
        &self.unavailable
    }

    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.texts.get(name).map(String::as_str)
    }

    /// The parts of a text with commas between them.
    pub(super) fn parts(&self, name: &str) -> Vec<String> {
        let parts = self.text(name).unwrap_or_default().split(',').map(str::trim);
        parts.filter(|part| !part.is_empty()).map(str::to_owned).collect()
    }

    /// A whole number between bounds.
    pub(super) fn number(
        &self,
        name: &str,
        range: std::ops::RangeInclusive<u64>,
    ) -> Result<Option<u64>, AnswerError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let number = text.parse().ok().filter(|number| range.contains(number));
        let details =
            || format!("it must be a whole number from {} to {}", range.start(), range.end());
        number.map(Some).ok_or_else(|| AnswerError::invalid(name, text, details()))
    }

    /// The length of an item's text.
    pub(super) fn budget(&self) -> Result<Budget, AnswerError> {
        let tokens = self.number("maxTokens", 1_000..=200_000)?;
        let budget = tokens.map(Budget::of_tokens).unwrap_or_default();
        Ok(self.unavailable.rest_of(budget))
    }

    /// The key of the named feed, if any.
    pub(super) fn feed(&self, inner: &Inner) -> Result<Option<i64>, AnswerError> {
        self.text("feed").map(|id| key_of(inner, "feed", id)).transpose()
    }

    /// The items that the usual arguments choose.
    pub(super) fn listing(&self, inner: &Inner, limit: u32) -> Result<Listing, AnswerError> {
        let names = ["since", "until", "category", "search"];
        let pairs = names.iter().filter_map(|name| Some((*name, self.text(name)?)));
        let filter = Filter { limit: Some(limit), ..Filter::of(pairs)? };
        let feeds = self.feed(inner)?.into_iter().collect();
        Ok(Listing { feeds, filter, ..Listing::default() })
    }

    /// The choice in words, for the beginning of a prompt.
    pub(super) fn described(&self) -> String {
        let mut words = String::new();
        for (name, before) in
            [("category", "of the category "), ("since", "since "), ("until", "until ")]
        {
            if let Some(value) = self.text(name) {
                let _ = write!(words, ", {before}{value}");
            }
        }
        words
    }
}

pub(super) fn key_of(inner: &Inner, argument: &str, id: &str) -> Result<i64, AnswerError> {
    let details = "there is no such feed; `feeds://all` lists their ids";
    let board = inner.board();
    board.get(id).map(|row| row.key).ok_or_else(|| AnswerError::invalid(argument, id, details))
}
