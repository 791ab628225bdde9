//! Who answers what a server asks of its client: questions for the user, samples of a model, roots.

// Sampling, roots and logging are deprecated and still in use.
#![expect(deprecated, reason = "servers of every revision are spoken to")]

use std::pin::Pin;
use std::sync::Arc;

use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams, ElicitResult, RequestId,
    Root,
};
use serde::Serialize;

use crate::events::RequestTag;

/// What a handler gives back; its error is told to the server in words.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

type Handler<Q, A> = Arc<dyn Fn(Q, Asking) -> Answer<A> + Send + Sync>;

/// Which question a handler is given, and which request of this mirror led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Asking {
    /// How the server identifies the question.
    pub question: Question,
    /// The request in whose course the server asks; `None` if that is not known.
    ///
    /// - In the modern era it is always known: the question is part of the request's answer.
    /// - Over legacy HTTP it is known if the question came on the stream that answers the request.
    ///   A question on the session's own stream belongs to no request.
    /// - Over legacy stdio, questions do not say what they are about. The request is known only if
    ///   exactly one is open when the question arrives.
    pub during: Option<During>,
}

impl Asking {
    /// A question that was asked in the course of this request.
    #[must_use]
    pub fn new(question: Question, during: Option<During>) -> Self {
        Self { question, during }
    }
}

/// How a server identifies a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Question {
    /// By the id of its request, in the legacy era.
    Request(RequestId),
    /// By the key of the question in a round of input, in the modern era.
    Input(Arc<str>),
}

/// A request of this mirror, in whose course a server asks something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "request", rename_all = "snake_case")]
#[non_exhaustive]
pub enum During {
    /// A call of a tool.
    Call {
        /// The tool's name.
        tool: Arc<str>,
        /// The tag of the call: see [`Mirror::call_tool_tagged`](crate::Mirror::call_tool_tagged).
        tag: RequestTag,
    },
    /// A read of a resource.
    Read {
        /// The resource.
        uri: Arc<str>,
    },
    /// A prompt that is being filled in.
    Prompt {
        /// The prompt's name.
        name: Arc<str>,
    },
    /// Any other request, such as a list.
    Other {
        /// The method of the request.
        method: Arc<str>,
    },
}

/// Who answers what a server asks of its client.
///
/// Whatever has no handler is not declared to the server, and declined if it asks all the same. Each
/// handler gets an [`Asking`] beside the question:
///
/// ```
/// use tidings_mirror::model::{ElicitResult, ElicitationAction};
/// use tidings_mirror::{During, Handlers};
///
/// let handlers = Handlers::default().elicit(async |_question, asking| {
///     let action = match asking.during {
///         Some(During::Call { tool, .. }) if &*tool == "deploy" => ElicitationAction::Accept,
///         _ => ElicitationAction::Decline,
///     };
///     Ok(ElicitResult::new(action))
/// });
/// # let _ = handlers;
/// ```
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct Handlers {
    pub(crate) elicit: Option<Handler<ElicitRequestParams, ElicitResult>>,
    pub(crate) sample: Option<Handler<CreateMessageRequestParams, CreateMessageResult>>,
    pub(crate) roots: Option<Handler<(), Vec<Root>>>,
    /// Whether all three are declared, handler or not.
    pub(crate) declares_all: bool,
}

impl Handlers {
    /// Answers questions for the user.
    #[must_use]
    pub fn elicit<F>(
        mut self,
        handler: impl Fn(ElicitRequestParams, Asking) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ElicitResult, String>> + Send + 'static,
    {
        self.elicit = Some(Arc::new(move |question, asking| Box::pin(handler(question, asking))));
        self
    }

    /// Answers requests to sample a model.
    #[must_use]
    pub fn sample<F>(
        mut self,
        handler: impl Fn(CreateMessageRequestParams, Asking) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<CreateMessageResult, String>> + Send + 'static,
    {
        self.sample = Some(Arc::new(move |question, asking| Box::pin(handler(question, asking))));
        self
    }

    /// Declares questions, samples and roots to the server even where there is no handler: for whoever
    /// drives rounds of input with [`Mirror::call_tool_once`](crate::Mirror::call_tool_once) and its
    /// kin. Without a handler, what is asked in any other way is still declined.
    #[must_use]
    pub fn declare_all(mut self) -> Self {
        self.declares_all = true;
        self
    }

    /// Names the folders the server may look at.
    #[must_use]
    pub fn roots<F>(mut self, handler: impl Fn(Asking) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<Vec<Root>, String>> + Send + 'static,
    {
        self.roots = Some(Arc::new(move |(), asking| Box::pin(handler(asking))));
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
            .field("declares_all", &self.declares_all)
            .finish()
    }
}
