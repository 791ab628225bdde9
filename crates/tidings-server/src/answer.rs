//! What a source answers with: results, contents, completions, and why there is no answer.

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
    /// As the protocol library writes it.
    Typed(T),
    /// As it is.
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
    /// The whole result, in place of all this.
    pub raw: Option<Raw<CompleteResult>>,
}

impl Completions {
    /// These values, of so many in all.
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
    /// The whole result, in place of the parts.
    pub raw: Option<Raw<ReadResourceResponse>>,
}

impl Contents {
    /// These parts, fresh for no time, for this client only.
    #[must_use]
    pub fn new(parts: Vec<ResourceContents>) -> Self {
        Self { parts, fresh_for: Duration::ZERO, scope: CacheScope::Private, raw: None }
    }

    /// A whole result as raw JSON, with `contents` and whatever else it has. How long it is fresh is
    /// said by [`Self::fresh_for`] and [`Self::scope`], not by the result.
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

    /// What names this content.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        if let Some(raw) = &self.raw {
            // The rest is for the hub to say.
            let said = ["resultType", "ttlMs", "cacheScope"];
            let rest = said.iter().fold(raw.beyond_hop(), |raw, name| raw.without(name));
            return rest.fingerprint();
        }
        let value = serde_json::to_value(&self.parts).expect("contents are plain JSON");
        Fingerprint::of_json(&value)
    }
}

/// The code of a relayed error; one that it lacks is that of an internal error.
pub(crate) fn error_code(error: &Raw<ErrorData>) -> ErrorCode {
    let code = error.get("code").and_then(|code| code.parse().ok());
    code.map_or(ErrorCode::INTERNAL_ERROR, ErrorCode)
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
    /// An error of somebody else, relayed: a JSON-RPC error object with its own `code`, `message` and
    /// `data`. Clients get it as it is, but for "resource not found" (`-32002`), which is `-32602` in
    /// revisions without that code.
    #[error("{}", .0.string("message").as_deref().unwrap_or("an error without a message"))]
    Raw(Raw<ErrorData>),
}

impl AnswerError {
    /// Whether it says that there is nothing, and not only that it cannot be had.
    pub(crate) fn is_absence(&self) -> bool {
        match self {
            Self::NotFound(_) => true,
            Self::Raw(error) => error_code(error) == ErrorCode::RESOURCE_NOT_FOUND,
            _ => false,
        }
    }

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
