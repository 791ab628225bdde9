//! The one extension point: something whose items a hub offers.

use std::pin::Pin;
use std::time::Duration;

use rmcp::model::{
    CacheScope, CallToolRequestParams, CallToolResponse, ClientCapabilities,
    GetPromptRequestParams, GetPromptResponse, ResourceContents,
};
use tidings_core::{Fingerprint, ResourceUri};
use tokio_util::sync::CancellationToken;

use crate::catalog::{EditError, Shelf};
use crate::handler::Exchange;

/// Something whose items a hub offers.
///
/// A source puts its items on its [`Shelf`] and says there what changed. It knows no session, no
/// protocol revision and no transport. Every method may be called at any time, many at once.
///
/// ```
/// use tidings_server::model::Resource;
/// use tidings_server::{AnswerError, Config, Contents, EditError, Hub, ResourceUri, Shelf, Source};
///
/// struct Greeting;
///
/// impl Source for Greeting {
///     async fn start(&self, shelf: &Shelf) -> Result<(), EditError> {
///         shelf.add(Resource::new("demo://greeting", "greeting"))?;
///         Ok(())
///     }
///
///     async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
///         Ok(Contents::text(uri, "hello"))
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let hub = Hub::new(Config::new("greeter", "1.0"));
/// hub.add("greeting", Greeting).await?;
/// # Ok::<(), tidings_server::AddError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source: Send + Sync + 'static {
    /// Puts the first items on the shelf; they are offered as they are put there.
    ///
    /// # Errors
    ///
    /// An item that cannot be offered; then the source is not added.
    fn start(&self, shelf: &Shelf) -> impl Future<Output = Result<(), EditError>> + Send;

    /// What the source does by itself until the token is cancelled: watch, poll, tick. The hub owns
    /// the task and ends it with the source.
    fn run(&self, shelf: Shelf, cancel: CancellationToken) -> impl Future<Output = ()> + Send {
        drop((shelf, cancel));
        std::future::ready(())
    }

    /// Answers one read of a URI that is on the shelf or matches a template there. A change that
    /// was announced must be visible here.
    ///
    /// # Errors
    ///
    /// Why there is nothing to read.
    fn read(
        &self,
        uri: &ResourceUri,
    ) -> impl Future<Output = Result<Contents, AnswerError>> + Send {
        std::future::ready(Err(AnswerError::not_found(uri.as_ref())))
    }

    /// Why a URI cannot be read, if it is one that this source could have had; `None` leaves the
    /// answer to the hub. It must not wait.
    ///
    /// It is asked for URIs that nobody offers, and for those that somebody wants to watch: what is
    /// [`AnswerError::Malformed`] or [`AnswerError::Invalid`] can never be read, and is not watched
    /// either. What only does not exist yet may be.
    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        let _ = uri;
        None
    }

    /// A cheap name for what a read would return now (a revision, a hash, an `ETag`): it differs
    /// when the content differs and is equal when the content is equal. Without one the hub reads
    /// the content to compare it.
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let _ = uri;
        None
    }

    /// Runs a tool of this source. A tool that ran and failed is a result with `is_error`, not an
    /// error.
    ///
    /// # Errors
    ///
    /// Why the tool could not be run at all.
    fn call(
        &self,
        request: CallToolRequestParams,
        exchange: &Exchange,
    ) -> impl Future<Output = Result<CallToolResponse, AnswerError>> + Send {
        let _ = exchange;
        std::future::ready(Err(AnswerError::not_found(request.name)))
    }

    /// Fills in a prompt of this source.
    ///
    /// # Errors
    ///
    /// Why the prompt could not be made.
    fn prompt(
        &self,
        request: GetPromptRequestParams,
        exchange: &Exchange,
    ) -> impl Future<Output = Result<GetPromptResponse, AnswerError>> + Send {
        let _ = exchange;
        std::future::ready(Err(AnswerError::not_found(request.name)))
    }

    /// Values for a template variable or a prompt argument that begin with, or otherwise fit, what
    /// was typed; best first. The hub cuts the list to what the protocol allows and says so.
    ///
    /// # Errors
    ///
    /// Why nothing can be proposed.
    fn complete(
        &self,
        completion: Completion,
    ) -> impl Future<Output = Result<Vec<String>, AnswerError>> + Send {
        let _ = completion;
        std::future::ready(Ok(Vec::new()))
    }
}

/// What a completion is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Completion {
    /// The prompt's name or the URI template.
    pub of: CompletionOf,
    /// The argument or variable to complete.
    pub argument: String,
    /// What was typed so far.
    pub value: String,
    /// The other arguments that are known already.
    pub known: std::collections::BTreeMap<String, String>,
}

impl Completion {
    pub(crate) fn new(of: CompletionOf, argument: String, value: String) -> Self {
        Self { of, argument, value, known: std::collections::BTreeMap::new() }
    }
}

/// Whose argument is completed.
#[derive(Clone, Debug, PartialEq, Eq)]
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

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The trait as the catalog keeps it: an open collection of sources of any type. This is the one
/// place that boxes.
pub(crate) trait ErasedSource: Send + Sync {
    fn start<'a>(&'a self, shelf: &'a Shelf) -> Boxed<'a, Result<(), EditError>>;
    fn run(&self, shelf: Shelf, cancel: CancellationToken) -> Boxed<'_, ()>;
    fn read<'a>(&'a self, uri: &'a ResourceUri) -> Boxed<'a, Result<Contents, AnswerError>>;
    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError>;
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint>;
    fn call<'a>(
        &'a self,
        request: CallToolRequestParams,
        exchange: &'a Exchange,
    ) -> Boxed<'a, Result<CallToolResponse, AnswerError>>;
    fn prompt<'a>(
        &'a self,
        request: GetPromptRequestParams,
        exchange: &'a Exchange,
    ) -> Boxed<'a, Result<GetPromptResponse, AnswerError>>;
    fn complete(&self, completion: Completion) -> Boxed<'_, Result<Vec<String>, AnswerError>>;
}

impl<S: Source> ErasedSource for S {
    fn start<'a>(&'a self, shelf: &'a Shelf) -> Boxed<'a, Result<(), EditError>> {
        Box::pin(Source::start(self, shelf))
    }
    fn run(&self, shelf: Shelf, cancel: CancellationToken) -> Boxed<'_, ()> {
        Box::pin(Source::run(self, shelf, cancel))
    }
    fn read<'a>(&'a self, uri: &'a ResourceUri) -> Boxed<'a, Result<Contents, AnswerError>> {
        Box::pin(Source::read(self, uri))
    }
    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        Source::refuse(self, uri)
    }
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        Source::version(self, uri)
    }
    fn call<'a>(
        &'a self,
        request: CallToolRequestParams,
        exchange: &'a Exchange,
    ) -> Boxed<'a, Result<CallToolResponse, AnswerError>> {
        Box::pin(Source::call(self, request, exchange))
    }
    fn prompt<'a>(
        &'a self,
        request: GetPromptRequestParams,
        exchange: &'a Exchange,
    ) -> Boxed<'a, Result<GetPromptResponse, AnswerError>> {
        Box::pin(Source::prompt(self, request, exchange))
    }
    fn complete(&self, completion: Completion) -> Boxed<'_, Result<Vec<String>, AnswerError>> {
        Box::pin(Source::complete(self, completion))
    }
}
