//! The one extension point: a source of items for a hub.

use std::pin::Pin;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
};
use tidings_core::{Fingerprint, ResourceUri};
use tokio_util::sync::CancellationToken;

use crate::answer::{Answer, AnswerError, Completion, Completions, Contents};
use crate::context::Context;
use crate::edit::EditError;
use crate::figure::Figure;

/// A source of items for a hub, if one function for each item is not enough: it answers for whole
/// families of items, runs by itself, or learns of watchers.
///
/// A source is built with its [`Shelf`](crate::Shelf), puts its items there and reports changes
/// there. It answers for those of its items that do not answer for themselves. It knows no session,
/// no protocol revision and no transport. Every method may be called at any time, many at once.
///
/// ```
/// use tidings_server::model::Resource;
/// use tidings_server::{AnswerError, Contents, Context, Hub, ResourceUri, Source};
///
/// struct Greeting;
///
/// impl Source for Greeting {
///     async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
///         Ok(Contents::text(uri, "hello"))
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let hub = Hub::new("greeter", "1.0");
/// hub.add("greeting", |shelf| {
///     shelf.add(Resource::new("demo://greeting", "greeting"))?;
///     Ok(Greeting)
/// })
/// .await?;
/// # Ok::<(), tidings_server::AddError>(()) })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Source: Send + Sync + 'static {
    /// Puts items on the shelf that need waiting. Each is offered as soon as it is there.
    ///
    /// # Errors
    ///
    /// An item cannot be offered; then the source is not added.
    fn start(&self) -> impl Future<Output = Result<(), EditError>> + Send {
        std::future::ready(Ok(()))
    }

    /// The source's own task until the token is cancelled: watch, poll, tick. The hub owns the task
    /// and ends it with the source.
    fn run(&self, cancel: CancellationToken) -> impl Future<Output = ()> + Send {
        drop(cancel);
        std::future::ready(())
    }

    /// Answers one read of a URI that is on the shelf or matches a template there. A change that
    /// was announced must be visible here.
    ///
    /// # Errors
    ///
    /// Why nothing can be read.
    fn read(
        &self,
        uri: &ResourceUri,
        context: &Context,
    ) -> impl Future<Output = Result<Contents, AnswerError>> + Send {
        let _ = context;
        std::future::ready(Err(AnswerError::not_found(uri.as_ref())))
    }

    /// Why a URI cannot be read, if it belongs to this source; `None` leaves the answer to the hub.
    /// It must not wait.
    ///
    /// Called for URIs that nobody offers, and for those that a client wants to watch. An
    /// [`AnswerError::Malformed`] or [`AnswerError::Invalid`] URI can never be read, so it cannot
    /// be watched. One that does not exist yet can.
    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        let _ = uri;
        None
    }

    /// Whether this source answers for a URI that no source lists and no template matches: the first
    /// that does is read and watched. It must not wait, nor edit a shelf.
    fn claims(&self, uri: &ResourceUri) -> bool {
        let _ = uri;
        false
    }

    /// A cheap fingerprint of the content (a revision, a hash, an `ETag`): it differs when the
    /// content differs and is equal when the content is equal. Without it, the hub reads the
    /// content to compare it.
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let _ = uri;
        None
    }

    /// Runs a tool of this source. A tool that ran and failed is a result with `is_error`, not an
    /// error. The result may be [`Raw`](crate::Raw).
    ///
    /// # Errors
    ///
    /// Why the tool could not be run at all.
    fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> impl Future<Output = Result<Answer<CallToolResponse>, AnswerError>> + Send {
        let _ = context;
        std::future::ready(Err(AnswerError::not_found(request.name)))
    }

    /// Fills in a prompt of this source. The result may be [`Raw`](crate::Raw).
    ///
    /// # Errors
    ///
    /// Why the prompt could not be filled in.
    fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: &Context,
    ) -> impl Future<Output = Result<Answer<GetPromptResponse>, AnswerError>> + Send {
        let _ = context;
        std::future::ready(Err(AnswerError::not_found(request.name)))
    }

    /// Values for a template variable or a prompt argument that match the typed text.
    ///
    /// # Errors
    ///
    /// Why no values can be returned.
    fn complete(
        &self,
        completion: Completion,
        context: &Context,
    ) -> impl Future<Output = Result<Completions, AnswerError>> + Send {
        let _ = (completion, context);
        std::future::ready(Ok(Completions::default()))
    }

    /// Whether [`Self::watched`] and [`Self::unwatched`] are called. The value must not change.
    fn wants_watchers(&self) -> bool {
        false
    }

    /// A URI of this source got its first watcher: a source that must poll or subscribe elsewhere
    /// begins now. It must not wait.
    fn watched(&self, uri: &ResourceUri) {
        let _ = uri;
    }

    /// A URI of this source lost its last watcher. It must not wait.
    fn unwatched(&self, uri: &ResourceUri) {
        let _ = uri;
    }

    /// The health of the source, for operators. It must not wait.
    fn health(&self) -> Health {
        Health::default()
    }

    /// Figures for operators, which are shown among the metrics of the hub. It must not wait.
    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }
}

/// The health of a source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Its state.
    pub state: HealthState,
    /// The reason, for an operator.
    pub words: Option<String>,
    /// When it retries, from now on.
    pub again_in: Option<Duration>,
}

/// The state of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HealthState {
    /// It works.
    #[default]
    Good,
    /// A part of it fails; the rest is served.
    Degraded,
    /// It cannot answer now.
    Failing,
}

impl Health {
    /// A part of the source fails, with the reason.
    #[must_use]
    pub fn degraded(words: impl Into<String>) -> Self {
        Self { state: HealthState::Degraded, words: Some(words.into()), again_in: None }
    }

    /// The source cannot answer now, with the reason.
    #[must_use]
    pub fn failing(words: impl Into<String>) -> Self {
        Self { state: HealthState::Failing, words: Some(words.into()), again_in: None }
    }

    /// The same, with the time of the next try.
    #[must_use]
    pub fn again_in(mut self, time: Duration) -> Self {
        self.again_in = Some(time);
        self
    }
}

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The trait in the form of the catalog: an open collection of sources of any type. This is the one
/// place that boxes.
pub(crate) trait ErasedSource: Send + Sync {
    fn start(&self) -> Boxed<'_, Result<(), EditError>>;
    fn run(&self, cancel: CancellationToken) -> Boxed<'_, ()>;
    fn read<'a>(
        &'a self,
        uri: &'a ResourceUri,
        context: &'a Context,
    ) -> Boxed<'a, Result<Contents, AnswerError>>;
    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError>;
    fn claims(&self, uri: &ResourceUri) -> bool;
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint>;
    fn call<'a>(
        &'a self,
        request: CallToolRequestParams,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer<CallToolResponse>, AnswerError>>;
    fn prompt<'a>(
        &'a self,
        request: GetPromptRequestParams,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer<GetPromptResponse>, AnswerError>>;
    fn complete<'a>(
        &'a self,
        completion: Completion,
        context: &'a Context,
    ) -> Boxed<'a, Result<Completions, AnswerError>>;
    fn wants_watchers(&self) -> bool;
    fn watched(&self, uri: &ResourceUri);
    fn unwatched(&self, uri: &ResourceUri);
    fn health(&self) -> Health;
    fn figures(&self) -> Vec<Figure>;
}

impl<S: Source> ErasedSource for S {
    fn start(&self) -> Boxed<'_, Result<(), EditError>> {
        Box::pin(Source::start(self))
    }
    fn run(&self, cancel: CancellationToken) -> Boxed<'_, ()> {
        Box::pin(Source::run(self, cancel))
    }
    fn read<'a>(
        &'a self,
        uri: &'a ResourceUri,
        context: &'a Context,
    ) -> Boxed<'a, Result<Contents, AnswerError>> {
        Box::pin(Source::read(self, uri, context))
    }
    fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        Source::refuse(self, uri)
    }
    fn claims(&self, uri: &ResourceUri) -> bool {
        Source::claims(self, uri)
    }
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        Source::version(self, uri)
    }
    fn call<'a>(
        &'a self,
        request: CallToolRequestParams,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer<CallToolResponse>, AnswerError>> {
        Box::pin(Source::call(self, request, context))
    }
    fn prompt<'a>(
        &'a self,
        request: GetPromptRequestParams,
        context: &'a Context,
    ) -> Boxed<'a, Result<Answer<GetPromptResponse>, AnswerError>> {
        Box::pin(Source::prompt(self, request, context))
    }
    fn complete<'a>(
        &'a self,
        completion: Completion,
        context: &'a Context,
    ) -> Boxed<'a, Result<Completions, AnswerError>> {
        Box::pin(Source::complete(self, completion, context))
    }
    fn wants_watchers(&self) -> bool {
        Source::wants_watchers(self)
    }
    fn watched(&self, uri: &ResourceUri) {
        Source::watched(self, uri);
    }
    fn unwatched(&self, uri: &ResourceUri) {
        Source::unwatched(self, uri);
    }
    fn health(&self) -> Health {
        Source::health(self)
    }
    fn figures(&self) -> Vec<Figure> {
        Source::figures(self)
    }
}

/// A source whose items all answer for themselves.
pub(crate) struct Itself;

impl Source for Itself {}
