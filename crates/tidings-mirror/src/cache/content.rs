//! What a read, a prompt or a call gave, as it is kept.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmcp::model::{CallToolResult, ContentBlock, GetPromptResult, JsonObject, ResourceContents};
use serde::Serialize;
use serde_json::Value;

use crate::cache::{bytes_of, odd_bytes, raw_bytes};
use crate::odd::{self, Odd};
use crate::written;

/// What a resource held when it was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ResourceContent {
    /// The contents, text or binary; a resource may have several.
    pub contents: Vec<ResourceContents>,
    /// Contents that are not as the protocol says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The whole result as it was sent, if that says more.
    #[serde(skip)]
    pub(crate) raw: Option<Arc<str>>,
    /// When they were read.
    #[serde(rename = "read_at_ms", serialize_with = "written::time")]
    pub read_at: SystemTime,
    /// How long the server said they stay fresh.
    #[serde(rename = "ttl_ms", serialize_with = "written::maybe_duration")]
    pub ttl: Option<Duration>,
    /// Whether they are for this authorisation alone.
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

    /// All that is text, in the order of the contents and a line each; empty if nothing is.
    #[must_use]
    pub fn text(&self) -> String {
        lines(self.contents.iter().filter_map(text_of))
    }

    /// The whole result as the server sent it, with fields and contents that nobody here knows.
    /// What the mirror read again by itself has what was understood of it, and the odd contents.
    #[must_use]
    pub fn raw(&self) -> Value {
        sent(self.raw.as_deref()).unwrap_or_else(|| {
            let mut contents = serde_json::to_value(&self.contents).unwrap_or_default();
            odd::put_back(&mut contents, &self.odd);
            serde_json::json!({ "contents": contents })
        })
    }

    /// Whether the same was read, whenever that was.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.contents == other.contents && self.odd == other.odd
    }

    pub(super) fn bytes(&self) -> usize {
        bytes_of(&self.contents) + odd_bytes(&self.odd) + raw_bytes(self.raw.as_ref())
    }
}

/// What a template held when it was read, with the latest values only.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct TemplateContent {
    /// The template's name, if the server lists it.
    pub name: Option<Arc<str>>,
    /// The template with its values filled in.
    pub uri: Arc<str>,
    /// The values.
    pub values: BTreeMap<String, String>,
    /// What was read.
    pub content: ResourceContent,
}

impl TemplateContent {
    /// What was read at a template whose values are filled in.
    pub fn new<K: Into<String>, V: Into<String>>(
        uri: impl Into<Arc<str>>,
        values: impl IntoIterator<Item = (K, V)>,
        content: ResourceContent,
    ) -> Self {
        Self { name: None, uri: uri.into(), values: texts(values), content }
    }

    /// All that is text: see [`ResourceContent::text`].
    #[must_use]
    pub fn text(&self) -> String {
        self.content.text()
    }
}

/// What a prompt was when it was filled in, with the latest arguments only.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct PromptContent {
    /// The arguments.
    pub arguments: BTreeMap<String, String>,
    /// The messages, as the server gave them.
    pub result: GetPromptResult,
    /// Messages that are not as the protocol says.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The whole result as it was sent, if that says more.
    #[serde(skip)]
    pub(crate) raw: Option<Arc<str>>,
    /// When it was asked for.
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

    /// The whole result as the server sent it, with fields and messages that nobody here knows.
    #[must_use]
    pub fn raw(&self) -> Value {
        sent(self.raw.as_deref()).unwrap_or_else(|| {
            let mut result = serde_json::to_value(&self.result).unwrap_or_default();
            odd::put_back(&mut result["messages"], &self.odd);
            result
        })
    }

    /// All messages that are text, a line each; empty if none is.
    #[must_use]
    pub fn text(&self) -> String {
        lines(self.result.messages.iter().filter_map(|message| said(&message.content)))
    }
}

/// What came of the latest call of a tool.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ToolOutcome {
    /// The arguments.
    pub arguments: JsonObject,
    /// The result, which may itself say that the tool failed; or why there is none.
    #[serde(flatten, serialize_with = "written::outcome")]
    pub result: Result<CallToolResult, Arc<str>>,
    /// Blocks of the result that are not as the protocol says, or a whole result that is not.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub odd: Vec<Odd>,
    /// The whole result as it was sent, if that says more.
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
    /// What came of a call just now.
    pub fn new<K: Into<String>, V: Into<Value>>(
        arguments: impl IntoIterator<Item = (K, V)>,
        result: Result<CallToolResult, Arc<str>>,
    ) -> Self {
        let (arguments, odd) = (values(arguments), Vec::new());
        let (called_at, took) = (SystemTime::now(), Duration::ZERO);
        Self { arguments, result, odd, raw: None, called_at, took }
    }

    /// The whole result as the server sent it, with fields and blocks that nobody here knows; `null`
    /// if there is none.
    #[must_use]
    pub fn raw(&self) -> Value {
        let Ok(result) = &self.result else { return Value::Null };
        sent(self.raw.as_deref()).unwrap_or_else(|| {
            let mut result = serde_json::to_value(result).unwrap_or_default();
            odd::put_back(&mut result["content"], &self.odd);
            result
        })
    }

    /// All of the result that is text, a line for each block; why there is none, if there is none.
    #[must_use]
    pub fn text(&self) -> String {
        match &self.result {
            Ok(result) => lines(result.content.iter().filter_map(said)),
            Err(reason) => reason.to_string(),
        }
    }

    /// Whether the tool answered and did not say that it failed.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.result.as_ref().is_ok_and(|result| result.is_error != Some(true))
    }
}

/// What was sent, if it was kept.
fn sent(raw: Option<&str>) -> Option<Value> {
    serde_json::from_str(raw?).ok()
}

/// Pairs of texts, whatever they came as.
pub(crate) fn texts<K: Into<String>, V: Into<String>>(
    pairs: impl IntoIterator<Item = (K, V)>,
) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect()
}

/// Named values, whatever they came as.
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
