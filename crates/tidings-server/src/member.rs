//! A source of the hub, called so that a panic becomes an error.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use futures_util::FutureExt as _;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
};
use tidings_core::{Fingerprint, ResourceUri};
use tokio::sync::Semaphore;
use tracing::error;

use crate::answer::{Answer, AnswerError, Completion, Completions, Contents};
use crate::answers::{Answers, Variables};
use crate::context::Context;
use crate::figure::Figure;
use crate::source::{ErasedSource, Health, Itself};

/// Concurrent reads of one source for comparison, so that a slow source delays only itself.
const COMPARING_READS: usize = 32;

/// A source and its name.
pub(crate) struct Member {
    pub(crate) name: String,
    /// Set once, when the source was built with its shelf. Without it, items answer with their
    /// functions.
    source: OnceLock<Arc<dyn ErasedSource>>,
    /// Bounds the reads made to compare content.
    pub(crate) gate: Semaphore,
    /// How it is used, for clients that connect.
    instructions: Mutex<Option<String>>,
}

impl Member {
    pub(crate) fn new(name: &str) -> Self {
        let gate = Semaphore::new(COMPARING_READS);
        let instructions = Mutex::default();
        Self { name: name.to_owned(), source: OnceLock::new(), gate, instructions }
    }

    pub(crate) fn instruct(&self, instructions: Option<String>) {
        *self.instructions.lock().unwrap_or_else(PoisonError::into_inner) = instructions;
    }

    pub(crate) fn instructions(&self) -> Option<String> {
        self.instructions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the member's source.
    pub(crate) fn attach(&self, source: Arc<dyn ErasedSource>) {
        drop(self.source.set(source));
    }

    pub(crate) fn source(&self) -> &dyn ErasedSource {
        self.source.get().map_or(&Itself, |source| &**source)
    }

    /// Why the source cannot read a URI.
    pub(crate) fn refuse(&self, uri: &ResourceUri) -> Option<AnswerError> {
        self.guard_call(|| self.source().refuse(uri)).flatten()
    }

    /// Whether the source answers for a URI that nobody lists.
    pub(crate) fn claims(&self, uri: &ResourceUri) -> bool {
        self.guard_call(|| self.source().claims(uri)).unwrap_or_default()
    }

    pub(crate) fn watched(&self, uri: &ResourceUri) {
        self.guard_call(|| self.source().watched(uri));
    }

    pub(crate) fn unwatched(&self, uri: &ResourceUri) {
        self.guard_call(|| self.source().unwatched(uri));
    }

    pub(crate) fn health(&self) -> Health {
        let health = self.guard_call(|| self.source().health());
        health.unwrap_or_else(|| Health::failing("its health check panicked; see the log"))
    }

    pub(crate) fn figures(&self) -> Vec<Figure> {
        self.guard_call(|| self.source().figures()).unwrap_or_default()
    }

    fn guard_call<T>(&self, call: impl FnOnce() -> T) -> Option<T> {
        let done = catch_unwind(AssertUnwindSafe(call));
        done.inspect_err(|_| error!(source = self.name, "a source panicked")).ok()
    }

    async fn guard<T>(
        &self,
        answer: impl Future<Output = Result<T, AnswerError>>,
    ) -> Result<T, AnswerError> {
        AssertUnwindSafe(answer).catch_unwind().await.unwrap_or_else(|_| {
            error!(source = self.name, "a source panicked");
            Err(AnswerError::Failed(format!("the source `{}` failed; see its log", self.name)))
        })
    }
}

/// The answerer of one item: its own functions, else its source.
#[derive(Clone)]
pub(crate) struct Answerer {
    pub(crate) member: Arc<Member>,
    pub(crate) answers: Option<Arc<Answers>>,
}

impl Answerer {
    pub(crate) async fn read(
        &self,
        uri: &ResourceUri,
        variables: &Variables,
        context: &Context,
    ) -> Result<Contents, AnswerError> {
        let own = self.answers.as_ref().and_then(|answers| answers.read.as_ref());
        let answer = async {
            match own {
                Some(read) => read(uri.clone(), variables.clone(), context.clone()).await,
                None => self.member.source().read(uri, context).await,
            }
        };
        self.member.guard(answer).await
    }

    /// The version of a resource's content, if it is cheap to get.
    pub(crate) fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        let version = || match &self.answers {
            Some(answers) if answers.read.is_some() => answers.version.as_ref().map(|it| it()),
            _ => self.member.source().version(uri),
        };
        self.member.guard_call(version).flatten()
    }

    pub(crate) async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let own = self.answers.as_ref().and_then(|answers| answers.call.as_ref());
        let answer = async {
            match own {
                Some(call) => call(request.arguments.unwrap_or_default(), context.clone()).await,
                None => self.member.source().call(request, context).await,
            }
        };
        self.member.guard(answer).await
    }

    pub(crate) async fn prompt(
        &self,
        request: GetPromptRequestParams,
        context: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        let own = self.answers.as_ref().and_then(|answers| answers.fill.as_ref());
        let answer = async {
            match own {
                Some(fill) => fill(request.arguments.unwrap_or_default(), context.clone()).await,
                None => self.member.source().prompt(request, context).await,
            }
        };
        self.member.guard(answer).await
    }

    pub(crate) async fn complete(
        &self,
        completion: Completion,
        context: &Context,
    ) -> Result<Completions, AnswerError> {
        let own = self.answers.as_ref().and_then(|it| it.complete.get(&completion.argument));
        let answer = async {
            match own {
                Some(complete) => complete(completion, context.clone()).await,
                None => self.member.source().complete(completion, context).await,
            }
        };
        self.member.guard(answer).await
    }
}
