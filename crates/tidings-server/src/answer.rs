//! What a source answers with: contents, completions, and why there is no answer.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CacheScope, ClientCapabilities, ResourceContents};
use serde::Deserialize;
use tidings_core::{Fingerprint, ResourceUri};

/// What a completion is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The prompt's name or the URI template.
    pub of: CompletionOf,
    /// The argument or variable to complete.
    pub argument: String,
    /// What was typed so far.
    pub value: String,
    /// The other arguments that are known already.
    pub known: BTreeMap<String, String>,
}

impl Completion {
    pub(crate) fn new(of: CompletionOf, argument: String, value: String) -> Self {
        Self { of, argument, value, known: BTreeMap::new() }
    }
}

/// What may be filled in.
///
/// A plain list of values is one, too: `vec!["red".to_owned()].into()`. The hub cuts the list to what
/// the protocol allows and says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completions {
    /// The values, best first.
    pub values: Vec<String>,
    /// How many there are in all, if that is known and not the number of values here.
    pub total: Option<u32>,
    /// Whether there are more than these.
    pub has_more: bool,
}

impl Completions {
    /// These values, of so many in all.
    #[must_use]
    pub fn of_total(values: Vec<String>, total: u32) -> Self {
        let has_more = u32::try_from(values.len()).is_ok_and(|shown| shown < total);
        Self { values, total: Some(total), has_more }
    }
}

impl From<Vec<String>> for Completions {
    fn from(values: Vec<String>) -> Self {
        Self { values, total: None, has_more: false }
    }
}

/// Whose argument is completed.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum CompletionOf {
    /// The prompt of this name.
    Prompt(String),
    /// The resource template with this text.
    Template(String),
}

/// What a read returns, and how long a client may keep it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Contents {
    /// The parts, usually one.
    pub parts: Vec<ResourceContents>,
    /// How long the source itself knows the content to stay as it is. Zero by default: a client
    /// that wants to keep it should listen.
    pub fresh_for: Duration,
    /// Whether others than this client may keep it.
    pub scope: CacheScope,
}

impl Contents {
    /// These parts, fresh for no time, for this client only.
    #[must_use]
    pub fn new(parts: Vec<ResourceContents>) -> Self {
        Self { parts, fresh_for: Duration::ZERO, scope: CacheScope::Private }
    }

    /// One plain text.
    #[must_use]
    pub fn text(uri: &ResourceUri, text: impl Into<String>) -> Self {
        Self::new(vec![ResourceContents::text(text, uri.as_ref())])
    }

    /// One JSON document.
    #[must_use]
    pub fn json(uri: &ResourceUri, value: &serde_json::Value) -> Self {
        let part = ResourceContents::text(value.to_string(), uri.as_ref());
        Self::new(vec![part.with_mime_type("application/json")])
    }

    /// Bytes.
    #[must_use]
    pub fn bytes(uri: &ResourceUri, bytes: &[u8]) -> Self {
        Self::new(vec![ResourceContents::blob(STANDARD.encode(bytes), uri.as_ref())])
    }

    /// What names this content.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let value = serde_json::to_value(&self.parts).expect("contents are plain JSON");
        Fingerprint::of_json(&value)
    }
}

/// Why a source has no answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// There is no such thing.
    #[error("{0} does not exist")]
    NotFound(String),
    /// There is no such thing, in the source's own words.
    #[error("{0}")]
    Absent(String),
    /// The URI that is read is none that this source could have; what would be one.
    #[error("{0}")]
    Malformed(String),
    /// The request cannot be answered as it is.
    #[error("{details}")]
    Invalid {
        /// Which parameter is wrong.
        parameter: String,
        /// Its value.
        value: String,
        /// What is wrong with it and what is allowed.
        details: String,
    },
    /// There may be an answer later.
    #[error("{0}")]
    Unavailable(String),
    /// The client must be able to do more than it says it can.
    #[error("the client lacks a capability this needs")]
    Capability(Box<ClientCapabilities>),
    /// The source is at fault.
    #[error("{0}")]
    Failed(String),
}

impl AnswerError {
    /// There is no such thing.
    #[must_use]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound(what.into())
    }

    /// A parameter has a value that cannot be.
    #[must_use]
    pub fn invalid(
        parameter: impl Into<String>,
        value: impl Into<String>,
        details: impl Into<String>,
    ) -> Self {
        Self::Invalid { parameter: parameter.into(), value: value.into(), details: details.into() }
    }
}
