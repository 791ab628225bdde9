//! A source that is part of the hub, called so that its panic is an error and nothing more.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
};
use tidings_core::ResourceUri;
use tokio::sync::Semaphore;
use tracing::error;

use crate::handler::Exchange;
use crate::source::{AnswerError, Completion, Contents, ErasedSource};

/// At most this many reads of one source run at once for comparing, so that a slow source queues
/// behind itself only.
const COMPARING_READS: usize = 32;

/// A source and its name.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) source: Arc<dyn ErasedSource>,
    /// Bounds the reads made to compare content.
    pub(crate) gate: Semaphore,
}

impl Member {
    pub(crate) fn new(name: &str, source: Arc<dyn ErasedSource>) -> Self {
        Self { name: name.to_owned(), source, gate: Semaphore::new(COMPARING_READS) }
    }

    pub(crate) async fn read(&self, uri: &ResourceUri) -> Result<Contents, AnswerError> {
        self.guard(self.source.read(uri)).await
    }

    /// Why the source cannot read a URI.
    pub(crate) fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        let refused = std::panic::catch_unwind(AssertUnwindSafe(|| self.source.refuse(uri)));
        refused.unwrap_or_else(|_| {
            error!(source = self.name, "a source panicked");
            None
        })
    }

    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        exchange: &Exchange,
    ) -> Result<CallToolResponse, AnswerError> {
        self.guard(self.source.call(request, exchange)).await
    }

    pub(crate) async fn prompt(
        &self,
        request: GetPromptRequestParams,
        exchange: &Exchange,
    ) -> Result<GetPromptResponse, AnswerError> {
        self.guard(self.source.prompt(request, exchange)).await
    }

    pub(crate) async fn complete(
        &self,
        completion: Completion,
    ) -> Result<Vec<String>, AnswerError> {
        self.guard(self.source.complete(completion)).await
    }

    async fn guard<T>(
        &self,
        answer: impl Future<Output = Result<T, AnswerError>>,
    ) -> Result<T, AnswerError> {
        AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
            error!(source = self.name, "a source panicked");
            Err(AnswerError::Failed(format!(
                "the source `{}` failed; its log says more",
                self.name
            )))
        })
    }
}
