//! Stored contents and results of reads, prompts and calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, JsonObject, ResourceContents};
use serde::Serialize;
use serde_json::Value;

use crate::cache::{bytes_of, odd_bytes, raw_bytes};
use crate::odd::{self, Odd};
use crate::written;

/// The content of a resource when it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ResourceContent {
    /// The contents, text or binary; a resource may have several.
    pub contents: Vec<ResourceContents>,
    /// Contents that violate the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The whole result as it was sent, if it has more than the typed fields.
    #[serde(skip)]
    pub(crate) raw: Option<Arc<str>>,
    /// When it was read.
    #[serde(rename = "read_at_ms", serialize_with = "written::time")]
    pub read_at: SystemTime,
    /// How long the content stays fresh, as stated by the server.
    #[serde(rename = "ttl_ms", serialize_with = "written::maybe_duration")]
    pub ttl: Option<Duration>,
    /// Whether it is private to this authorisation.
    pub private: bool,
}

impl ResourceContent {
    /// Contents that were read just now.
    #[must_use]
    pub fn new(contents: Vec<ResourceContents>) -> Self {
        let (odd, read_at) = (Vec::new(), SystemTime::now());
        Self { contents, odd, raw: None, read_at, ttl: None, private: false }
    }

    /// One text that was read just now.
    pub fn of_text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(vec![ResourceContents::text(text, uri)])
    }

    /// The result of a read as it was sent, such as in a file.
    ///
    /// # Errors
    ///
    /// If it is not one.
    pub fn parse(sent: &str) -> Result<Self, serde_json::Error> {
        let mut result: Value = serde_json::from_str(sent)?;
        let contents = serde_json::from_value(result["contents"].take())?;
        Ok(Self { raw: Some(sent.into()), ..Self::new(contents) })
    }

    /// All text, in order, one line per content; empty if there is none.
    #[must_use]
    pub fn text(&self) -> String {
        lines(self.contents.iter().filter_map(text_of))
    }

    /// The whole result as the server sent it, with unknown fields and contents. A result that the
    /// mirror loaded by itself has the typed fields and the odd contents only.
    #[must_use]
    pub fn raw(&self) -> Value {
        sent(self.raw.as_deref()).unwrap_or_else(|| {
            let mut contents = serde_json::to_value(&self.contents).unwrap_or_default();
            odd::put_back(&mut contents, &self.odd);
            serde_json::json!({ "contents": contents })
        })
    }

    /// Whether the content is the same, ignoring times.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.contents == other.contents && self.odd == other.odd
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.contents) + odd_bytes(&self.odd) + raw_bytes(self.raw.as_ref())
    }
}

/// The content of a template when it was read, for the latest values only.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TemplateContent {
    /// The template's name, if the server lists it.
    pub name: Option<Arc<str>>,
    /// The template with its values filled in.
    pub uri: Arc<str>,
    /// The values.
    pub values: BTreeMap<String, String>,
    /// The content.
    pub content: ResourceContent,
}

impl TemplateContent {
    /// The content of a template with these values.
    pub fn new<K: Into<String>, V: Into<String>>(
        uri: impl Into<Arc<str>>,
        values: impl IntoIterator<Item = (K, V)>,
        content: ResourceContent,
    ) -> Self {
        Self { name: None, uri: uri.into(), values: texts(values), content }
    }

    /// All text: see [`ResourceContent::text`].
    #[must_use]
    pub fn text(&self) -> String {
        self.content.text()
    }
}

/// A filled-in prompt, for the latest arguments only.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptContent {
    /// The arguments.
    pub arguments: BTreeMap<String, String>,
    /// The messages.
    pub result: GetPromptResult,
    /// Messages that violate the protocol.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The whole result as it was sent, if it has more than the typed fields.
    #[serde(skip)]
    pub(crate) raw: Option<Arc<str>>,
    /// When it was requested.
    #[serde(rename = "read_at_ms", serialize_with = "written::time")]
    pub read_at: SystemTime,
}

impl PromptContent {
    /// A prompt that was filled in just now.
    pub fn new<K: Into<String>, V: Into<String>>(
        arguments: impl IntoIterator<Item = (K, V)>,
        result: GetPromptResult,
    ) -> Self {
        let (arguments, odd) = (texts(arguments), Vec::new());
        Self { arguments, result, odd, raw: None, read_at: SystemTime::now() }
    }

    /// The whole result as the server sent it, with unknown fields and messages.
    #[must_use]
    pub fn raw(&self) -> Value {
        sent(self.raw.as_deref()).unwrap_or_else(|| {
            let mut result = serde_json::to_value(&self.result).unwrap_or_default();
            odd::put_back(&mut result["messages"], &self.odd);
            result
        })
    }

    /// All text messages, one per line; empty if there is none.
    #[must_use]
    pub fn text(&self) -> String {
        lines(self.result.messages.iter().filter_map(|message| said(&message.content)))
    }
}

/// The outcome of the latest call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The arguments.
    pub arguments: JsonObject,
    /// The result, which may itself report a failure; or why there is none.
    #[serde(flatten, serialize_with = "written::outcome")]
    pub result: Result<CallToolResult, Arc<str>>,
    /// Blocks of the result that violate the protocol, or a whole result that does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The whole result as it was sent, if it has more than the typed fields.
    #[serde(skip)]
    pub(crate) raw: Option<Arc<str>>,
    /// When it was called.
    #[serde(rename = "called_at_ms", serialize_with = "written::time")]
    pub called_at: SystemTime,
    /// How long it took.
    #[serde(rename = "took_ms", serialize_with = "written::duration")]
    pub took: Duration,
}

impl ToolOutcome {
    /// The outcome of a call just now.
    pub fn new<K: Into<String>, V: Into<Value>>(
        arguments: impl IntoIterator<Item = (K, V)>,
        result: Result<CallToolResult, Arc<str>>,
    ) -> Self {
        let (arguments, odd) = (values(arguments), Vec::new());
        let (called_at, took) = (SystemTime::now(), Duration::ZERO);
        Self { arguments, result, odd, raw: None, called_at, took }
    }

    /// The whole result as the server sent it, with unknown fields and blocks; `null` if there is
    /// none.
    #[must_use]
    pub fn raw(&self) -> Value {
        let Ok(result) = &self.result else { return Value::Null };
        sent(self.raw.as_deref()).unwrap_or_else(|| {
            let mut result = serde_json::to_value(result).unwrap_or_default();
            odd::put_back(&mut result["content"], &self.odd);
            result
        })
    }

    /// All text of the result, one line per block. Without a result, the reason.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.result {
            Ok(result) => lines(result.content.iter().filter_map(said)),
            Err(reason) => reason.to_string(),
        }
    }

    /// Whether the tool answered and reported no failure.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.result.as_ref().is_ok_and(|result| result.is_error != Some(true))
    }
}

/// The text that was sent, if it was kept.
fn sent(raw: Option<&str>) -> Option<Value> {
    serde_json::from_str(raw?).ok()
}

/// Pairs of texts, from any collection.
pub(crate) fn texts<K: Into<String>, V: Into<String>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

/// Named values, from any collection.
pub(crate) fn values<K: Into<String>, V: Into<Value>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> JsonObject {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

fn lines<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    texts.collect::<Vec<_>>().join("\n")
}

fn text_of(contents: &ResourceContents) -> Option<&str> {
    match contents {
        ResourceContents::TextResourceContents { text, .. } => Some(text),
        _ => None,
    }
}

/// The text of a block, an embedded resource's included.
fn said(block: &ContentBlock) -> Option<&str> {
    match block {
        ContentBlock::Text(text) => Some(&text.text),
        ContentBlock::Resource(embedded) => text_of(&embedded.resource),
        _ => None,
    }
}
