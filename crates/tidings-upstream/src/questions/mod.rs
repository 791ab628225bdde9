//! Questions of a server: they reach the client whose request led to them, or nobody.

// Sampling and roots are deprecated and still asked for.
#![expect(deprecated, reason = "servers and clients of every revision are relayed")]

pub(crate) mod park;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use serde::de::DeserializeOwned;
use serde_json::Value;
use tidings_mirror::model::{
    ClientCapabilities, CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult,
    ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    FormElicitationCapability, InputRequest, InputResponses, ListRootsRequest, ListRootsResult,
    Root, RootsCapabilities, SamplingCapability, UrlElicitationCapability,
};
use tidings_mirror::{Asking, During, Handlers, Target};
use tidings_server::{AnswerError, Context};
use tokio::sync::{mpsc, oneshot};

use self::park::ParkedQuestion;
use crate::upstream::Inner;

/// Who is asked.
#[derive(Clone)]
pub(crate) enum Asker {
    /// A client that can be asked while it waits.
    Client(Context),
    /// A client that is asked by the answer to its request.
    Parked(mpsc::Sender<ParkedQuestion>),
}

/// The requests that questions may belong to, by their tags.
#[derive(Default)]
pub(crate) struct Questions(Mutex<HashMap<u64, Askable>>);

/// A request, and how many questions about it wait for an answer.
struct Askable {
    asker: Asker,
    asked: usize,
}

/// A question that waits for an answer. It ends when this is dropped.
struct OpenQuestion<'a> {
    questions: &'a Questions,
    tag: u64,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        if let Some(request) = self.questions.lock().get_mut(&self.tag) {
            request.asked -= 1;
        }
    }
}

/// One request that may be asked about. It ends when this is dropped.
pub(crate) struct OpenRequest {
    inner: Arc<Inner>,
    pub(crate) tag: u64,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        self.inner.questions.lock().remove(&self.tag);
    }
}

impl Questions {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Askable>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// A request of a client begins.
    pub(crate) fn open_request(self: &Arc<Self>, asker: Asker) -> OpenRequest {
        let tag = self.tag();
        self.questions.lock().insert(tag, Askable { asker, asked: 0 });
        OpenRequest { inner: self.clone(), tag }
    }

    /// Whether the server waits for an answer to a question about this request.
    pub(crate) fn is_asked(&self, tag: u64) -> bool {
        self.questions.lock().get(&tag).is_some_and(|request| request.asked > 0)
    }

    /// Who is asked, if that is known for sure.
    fn asker(&self, asking: &Asking) -> Option<(Asker, OpenQuestion<'_>)> {
        if let Some(During::Relay { tag, .. }) = &asking.during {
            let mut requests = self.questions.lock();
            let request = requests.get_mut(&tag.0)?;
            request.asked += 1;
            let open = OpenQuestion { questions: &self.questions, tag: tag.0 };
            return Some((request.asker.clone(), open));
        }
        // Of several requests nobody knows which one is meant; from now on there is one at a time.
        // Over HTTP a question comes on the stream of its request, or belongs to none.
        let is_http = matches!(self.config().target, Target::Http(_));
        let is_doubtful = !is_http && asking.during.is_none() && !self.questions.lock().is_empty();
        if is_doubtful && self.turns.make_single() {
            let name = &self.config().name;
            tracing::info!(source = %name, "upstream asks questions: its requests are made one at a time");
        }
        None
    }

    async fn elicit(
        &self,
        params: ElicitRequestParams,
        asking: Asking,
    ) -> Result<ElicitResult, String> {
        let Some((asker, _open)) = self.asker(&asking) else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        let request = InputRequest::Elicitation(ElicitRequest::new(params.clone()));
        match asker {
            Asker::Client(context) => {
                allowed(&request, &context.client_capabilities())?;
                context.elicit(params).await.map_err(|error| error.to_string())
            }
            Asker::Parked(park) => park::ask(&park, request).await,
        }
    }

    async fn sample(
        &self,
        params: CreateMessageRequestParams,
        asking: Asking,
    ) -> Result<CreateMessageResult, String> {
        let asker = self.asker(&asking);
        let (asker, _open) = asker.ok_or("the question belongs to no request of a client")?;
        let request = InputRequest::CreateMessage(CreateMessageRequest::new(params.clone()));
        match asker {
            Asker::Client(context) => {
                allowed(&request, &context.client_capabilities())?;
                context.sample(params).await.map_err(|error| error.to_string())
            }
            Asker::Parked(park) => park::ask(&park, request).await,
        }
    }

    async fn list_roots(&self, asking: Asking) -> Result<Vec<Root>, String> {
        let config = self.config();
        let own = || config.roots.iter().map(Root::new).collect::<Vec<_>>();
        if !config.roots.is_empty() && !config.isolate {
            return Ok(own());
        }
        let Some((asker, _open)) = self.asker(&asking) else { return Ok(own()) };
        let request = InputRequest::ListRoots(ListRootsRequest::default());
        match asker {
            Asker::Client(context)
                if allowed(&request, &context.client_capabilities()).is_err() =>
            {
                Ok(own())
            }
            Asker::Client(context) => {
                context.roots().await.map(|roots| roots.roots).map_err(|error| error.to_string())
            }
            Asker::Parked(park) => {
                park::ask::<ListRootsResult>(&park, request).await.map(|roots| roots.roots)
            }
        }
    }

    /// Answers the questions of one round by asking a client that can be asked while it waits.
    pub(crate) async fn answer_round(
        &self,
        questions: &Value,
        context: &Context,
    ) -> Result<InputResponses, String> {
        let Value::Object(questions) = questions else { return Ok(InputResponses::new()) };
        let mut answers = InputResponses::new();
        for (key, question) in questions {
            let question: InputRequest = serde_json::from_value(question.clone())
                .map_err(|error| format!("the question `{key}` is not valid: {error}"))?;
            allowed(&question, &context.client_capabilities())?;
            let answer = match question {
                InputRequest::Elicitation(asked) => json(context.elicit(asked.params).await),
                InputRequest::CreateMessage(asked) => json(context.sample(asked.params).await),
                InputRequest::ListRoots(_) => json(context.roots().await),
                _ => Err(format!("the question `{key}` is of an unknown kind")),
            };
            answers.insert(key.clone(), answer?);
        }
        Ok(answers)
    }
}

/// Handlers for the questions of a server.
pub(crate) fn handlers(inner: &Weak<Inner>) -> Handlers {
    const OVER: &str = "the gateway ends";
    let (elicits, samples, roots) = (inner.clone(), inner.clone(), inner.clone());
    Handlers::default()
        .elicit(move |params, asking| {
            let inner = elicits.upgrade();
            async move { inner.ok_or(OVER)?.elicit(params, asking).await }
        })
        .sample(move |params, asking| {
            let inner = samples.upgrade();
            async move { inner.ok_or(OVER)?.sample(params, asking).await }
        })
        .roots(move |asking| {
            let inner = roots.upgrade();
            async move { inner.ok_or(OVER)?.list_roots(asking).await }
        })
}

fn json<T: serde::Serialize, E: std::fmt::Display>(answer: Result<T, E>) -> Result<Value, String> {
    let answer = answer.map_err(|error| error.to_string())?;
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

/// Whether a client can be asked this; in words, why not.
fn allowed(question: &InputRequest, can: &ClientCapabilities) -> Result<(), String> {
    match missing(question, can) {
        None => Ok(()),
        Some(_) => Err("the client whose request this is cannot be asked that".to_owned()),
    }
}

/// The capability that a client lacks for a question.
pub(crate) fn missing(
    question: &InputRequest,
    can: &ClientCapabilities,
) -> Option<ClientCapabilities> {
    let mut lacks = ClientCapabilities::default();
    match question {
        InputRequest::CreateMessage(_) if can.sampling.is_none() => {
            lacks.sampling = Some(SamplingCapability::default());
        }
        InputRequest::ListRoots(_) if can.roots.is_none() => {
            lacks.roots = Some(RootsCapabilities::default());
        }
        InputRequest::Elicitation(asked) => {
            let is_url = matches!(asked.params, ElicitRequestParams::UrlElicitationParams { .. });
            let can = can.elicitation.as_ref();
            // One that says nothing of modes has forms.
            let has_form = can.is_some_and(|can| can.form.is_some() || can.url.is_none());
            let has_url = can.is_some_and(|can| can.url.is_some());
            if if is_url { has_url } else { has_form } {
                return None;
            }
            let mut needed = ElicitationCapability::new();
            if is_url {
                needed = needed.with_url(UrlElicitationCapability::default());
            } else {
                needed = needed.with_form(FormElicitationCapability::default());
            }
            lacks.elicitation = Some(needed);
        }
        _ => return None,
    }
    Some(lacks)
}

/// What a modern client lacks for a result that asks it something.
pub(crate) fn lacking(questions: &Value, can: &ClientCapabilities) -> Option<AnswerError> {
    let questions = questions.as_object()?.values();
    let typed = questions.filter_map(|it| serde_json::from_value::<InputRequest>(it.clone()).ok());
    let mut lacks = typed.filter_map(|question| missing(&question, can));
    lacks.next().map(|lacks| AnswerError::Capability(Box::new(lacks)))
}

/// An answer as the type that the server wants.
pub(crate) fn typed<T: DeserializeOwned>(answer: Value) -> Result<T, String> {
    serde_json::from_value(answer)
        .map_err(|error| format!("the client's answer does not fit the question: {error}"))
}

/// The way back for an answer.
pub(crate) type Reply = oneshot::Sender<Value>;
