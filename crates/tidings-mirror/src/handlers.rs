//! Who answers what a server asks of its client: questions for the user, samples of a model, roots.

// Sampling, roots and logging are deprecated and still in use.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, Root,
};

/// What a handler gives back; its error is told to the server in words.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

type Handler<Q, A> = Arc<dyn Fn(Q) -> Answer<A> + Send + Sync>;

/// Who answers what a server asks of its client.
///
/// Whatever has no handler is not declared to the server, and declined if it asks all the same.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Handlers {
    pub(crate) elicit: Option<Handler<ElicitRequestParams, ElicitResult>>,
    pub(crate) sample: Option<Handler<CreateMessageRequestParams, CreateMessageResult>>,
    pub(crate) roots: Option<Handler<(), Vec<Root>>>,
}

impl Handlers {
    /// Answers questions for the user.
    #[must_use]
    pub fn elicit<F>(
        mut self,
        handler: impl Fn(ElicitRequestParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ElicitResult, String>> + Send + 'static,
    {
        self.elicit = Some(Arc::new(move |question| Box::pin(handler(question))));
        self
    }

    /// Answers requests to sample a model.
    #[must_use]
    pub fn sample<F>(
        mut self,
        handler: impl Fn(CreateMessageRequestParams) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, String>> + Send + 'static,
    {
        self.sample = Some(Arc::new(move |question| Box::pin(handler(question))));
        self
    }

    /// Names the folders the server may look at.
    #[must_use]
    pub fn roots<F>(mut self, handler: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Root>, String>> + Send + 'static,
    {
        self.roots = Some(Arc::new(move |()| Box::pin(handler())));
        self
    }
}

impl std::fmt::Debug for Handlers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Handlers")
            .field("elicit", &self.elicit.is_some())
            .field("sample", &self.sample.is_some())
            .field("roots", &self.roots.is_some())
            .finish()
    }
}
