//! Handlers of the server's requests: questions for the user, model sampling, roots.

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

/// The result of a handler; the server gets the error as text.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, String>> + Send>>;

type Handler<Q, A> = Arc<dyn Fn(Q, Asking) -> Answer<A> + Send + Sync>;

/// Identifies a question, and the request of this mirror that led to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Asking {
    /// The server's identifier of the question.
    pub question: Question,
    /// The request that the question belongs to; `None` if unknown.
    ///
    /// - In the modern era it is always known: the question is part of the request's answer.
    /// - Over legacy HTTP it is known if the question came on the stream that answers the request.
    ///   A question on the session's own stream belongs to no request.
    /// - Over legacy stdio, questions are not attributed. The request is known only if exactly one
    ///   is open when the question arrives.
    pub during: Option<During>,
}

impl Asking {
    /// A question that belongs to this request.
    #[must_use]
    pub fn new(question: Question, during: Option<During>) -> Self {
        Self { question, during }
    }
}

/// The server's identifier of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Question {
    /// By the id of its request, in the legacy era.
    Request(RequestId),
    /// By the key of the question in a round of input, in the modern era.
    Input(Arc<str>),
}

/// A request of this mirror that a question belongs to.
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
    /// A relayed request: see [`Mirror::relay`](crate::Mirror::relay).
    Relay {
        /// Its method.
        method: Arc<str>,
        /// Its tag.
        tag: RequestTag,
    },
    /// Any other request, such as a list.
    Other {
        /// The method of the request.
        method: Arc<str>,
    },
}

/// Handlers of the server's requests.
///
/// A capability without a handler is not declared to the server, and declined if the server uses it
/// anyway. Each handler gets an [`Asking`] with the question:
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
    /// Whether all three are declared, even without handlers.
    pub(crate) declares_all: bool,
}

impl Handlers {
    /// Handles questions for the user.
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

    /// Handles requests to sample a model.
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

    /// Declares questions, sampling and roots even without handlers, for callers that answer with
    /// [`Mirror::call_tool_once`](crate::Mirror::call_tool_once) and the like. Other questions
    /// without a handler are still declined.
    #[must_use]
    pub fn declare_all(mut self) -> Self {
        self.declares_all = true;
        self
    }

    /// Handles requests for the folders the server may use.
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
