//! Answers of sources: results, contents, completions, and errors.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CacheScope, CallToolResponse, CallToolResult, ClientCapabilities, CompleteResult, ErrorCode,
    ErrorData, GetPromptResponse, GetPromptResult, InputRequiredResult, ReadResourceResponse,
    ResourceContents,
};
use serde::Deserialize;
use tidings_core::{Fingerprint, ResourceUri};

use crate::raw::Raw;

/// The answer to a request: a result of the protocol library, or raw JSON.
///
/// Results become answers with `into()`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Answer<T> {
    /// Serialised by the protocol library.
    Typed(T),
    /// Sent unchanged.
    Raw(Raw<T>),
}

impl<T> From<Raw<T>> for Answer<T> {
    fn from(raw: Raw<T>) -> Self {
        Self::Raw(raw)
    }
}

macro_rules! answers {
    ($($response:ty: $($result:ty),*;)*) => {
        $($(impl From<$result> for Answer<$response> {
            fn from(result: $result) -> Self {
                Self::Typed(result.into())
            }
        })*)*
    };
}

answers! {
    CallToolResponse: CallToolResponse, CallToolResult, InputRequiredResult;
    GetPromptResponse: GetPromptResponse, GetPromptResult, InputRequiredResult;
}

/// The subject of a completion.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct Completion {
    /// The prompt's name or the URI template.
    pub of: CompletionOf,
    /// The argument or variable to complete.
    pub argument: String,
    /// The text typed so far.
    pub value: String,
    /// The known values of other arguments.
    pub known: BTreeMap<String, String>,
}

impl Completion {
    pub(crate) fn new(of: CompletionOf, argument: String, value: String) -> Self {
        Self { of, argument, value, known: BTreeMap::new() }
    }
}

/// Possible values of an argument.
///
/// A plain list converts to it: `vec!["red".to_owned()].into()`. The hub cuts the list to the
/// protocol's limit and marks it as incomplete.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completions {
    /// The values, best first.
    pub values: Vec<String>,
    /// Their total number, if it is known and differs from the number of values here.
    pub total: Option<u32>,
    /// Whether there are more.
    pub has_more: bool,
    /// The whole result, instead of the fields above.
    pub raw: Option<Raw<CompleteResult>>,
}

impl Completions {
    /// These values, of a total.
    #[must_use]
    pub fn of_total(values: Vec<String>, total: u32) -> Self {
        let has_more = u32::try_from(values.len()).is_ok_and(|shown| shown < total);
        Self { values, total: Some(total), has_more, raw: None }
    }

    /// A whole result as raw JSON. It is not cut.
    #[must_use]
    pub fn raw(result: Raw<CompleteResult>) -> Self {
        Self { raw: Some(result), ..Self::default() }
    }
}

impl From<Vec<String>> for Completions {
    fn from(values: Vec<String>) -> Self {
        Self { values, ..Self::default() }
    }
}

/// The owner of the completed argument.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub enum CompletionOf {
    /// The prompt of this name.
    Prompt(String),
    /// The resource template with this text.
    Template(String),
}

/// The result of a read, and how long a client may cache it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Contents {
    /// The contents, usually one.
    pub parts: Vec<ResourceContents>,
    /// How long the content is sure to stay unchanged. Zero by default: a client that caches it
    /// should subscribe.
    pub fresh_for: Duration,
    /// Whether it may be cached for other clients.
    pub scope: CacheScope,
    /// The whole result, instead of the parts.
    pub raw: Option<Raw<ReadResourceResponse>>,
}

impl Contents {
    /// These parts, not cacheable, for this client only.
    #[must_use]
    pub fn new(parts: Vec<ResourceContents>) -> Self {
        Self { parts, fresh_for: Duration::ZERO, scope: CacheScope::Private, raw: None }
    }

    /// A whole result as raw JSON, with `contents` and any other fields. Its freshness is that of
    /// [`Self::fresh_for`] and [`Self::scope`], not of the result.
    #[must_use]
    pub fn raw(result: Raw<ReadResourceResponse>) -> Self {
        Self { raw: Some(result), ..Self::new(Vec::new()) }
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

    /// The fingerprint of this content: what the hub compares, and so what
    /// [`Source::version`](crate::Source::version) returns for it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        if let Some(raw) = &self.raw {
            // The hub sets the rest.
            let said = ["resultType", "ttlMs", "cacheScope"];
            let rest = said.iter().fold(raw.beyond_hop(), |raw, name| raw.without(name));
            return rest.fingerprint();
        }
        let value = serde_json::to_value(&self.parts).expect("contents are plain JSON");
        Fingerprint::of_json(&value)
    }
}

/// The code of a relayed error; without one, that of an internal error.
pub(crate) fn error_code(error: &Raw<ErrorData>) -> ErrorCode {
    let code = error.get("code").and_then(|code| code.parse().ok());
    code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode)
}

/// Why a source cannot answer.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// It does not exist.
    #[error("{0} does not exist")]
    NotFound(String),
    /// It does not exist; a message of the source.
    #[error("{0}")]
    Absent(String),
    /// The URI is invalid for this source; the valid form.
    #[error("{0}")]
    Malformed(String),
    /// A parameter is invalid.
    #[error("{details}")]
    Invalid {
        /// The parameter.
        parameter: String,
        /// Its value.
        value: String,
        /// What is wrong, and what is allowed.
        details: String,
    },
    /// A temporary failure.
    #[error("{0}")]
    Unavailable(String),
    /// The client lacks a required capability.
    #[error("the client lacks a capability this needs")]
    Capability(Box<ClientCapabilities>),
    /// An internal error of the source.
    #[error("{0}")]
    Failed(String),
    /// A relayed error: a JSON-RPC error object with its own `code`, `message` and `data`. Clients
    /// get it unchanged, except that "resource not found" (`-32002`) is `-32602` in revisions
    /// without that code.
    #[error("{}", .0.string("message").as_deref().unwrap_or("an error without a message"))]
    Raw(Raw<ErrorData>),
}

impl AnswerError {
    /// Whether it means that there is nothing, not only that it is unavailable.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::NotFound(_) => true,
            Self::Raw(error) => error_code(error) == ErrorCode::RESOURCE_NOT_FOUND,
            _ => false,
        }
    }

    /// Whether clients are told that it does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.is_absence() || matches!(self, Self::Absent(_))
    }

    /// It does not exist.
    #[must_use]
    pub fn not_found(what: impl Into<String>) -> Self {
        Self::NotFound(what.into())
    }

    /// A parameter has an invalid value.
    #[must_use]
    pub fn invalid(
        parameter: impl Into<String>,
        value: impl Into<String>,
        details: impl Into<String>,
    ) -> Self {
        Self::Invalid { parameter: parameter.into(), value: value.into(), details: details.into() }
    }
}
