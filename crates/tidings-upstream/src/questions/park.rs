//! Calls of modern clients at legacy servers: when the server asks, the answer to the client is the
//! question, and the call waits until the client comes back with its answer.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidings_mirror::Heard;
use tidings_mirror::model::{InputRequest, InputResponses};
use tidings_server::{AnswerError, Context};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::{Reply, missing, typed};
use crate::exchange::tell;
use crate::rooms::Guest;
use crate::turns::Turn;
use crate::upstream::Inner;

/// How long a call waits for its client.
pub(crate) const PATIENCE: Duration = Duration::from_mins(5);
/// Calls of one upstream that may wait at once.
const PLACES: usize = 64;
/// The key of the question in the answer.
const KEY: &str = "question";

/// Why a client that comes back is refused.
pub(crate) const UNKNOWN: &str = "the request state is not known, was used before, or has expired";

/// A question of a server, and the way back for its answer.
pub(crate) struct ParkedQuestion {
    request: InputRequest,
    reply: Reply,
}

/// What a call holds at its server.
pub(crate) type Seat = (Turn, Option<Guest>);

/// Where the outcome of a call, its questions and what is said meanwhile come out.
pub(crate) type Ends = (
    oneshot::Receiver<Result<Arc<str>, AnswerError>>,
    mpsc::Receiver<ParkedQuestion>,
    mpsc::Receiver<Heard>,
);

/// A call that goes on while its client is away. Dropping it cancels it at the server.
pub(crate) struct ParkedCall {
    pub(crate) result: oneshot::Receiver<Result<Arc<str>, AnswerError>>,
    pub(crate) questions: mpsc::Receiver<ParkedQuestion>,
    pub(crate) heard: mpsc::Receiver<Heard>,
    pub(crate) task: AbortHandle,
    /// Who called what: nobody else may come back to it.
    pub(crate) caller: String,
    pub(crate) what: String,
    /// The question that waits for an answer.
    reply: Option<Reply>,
    /// Its turn and its room, which it keeps while its client is away.
    _seat: Seat,
}

impl Drop for ParkedCall {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The calls that wait, and the tasks that carry them out.
#[derive(Default)]
pub(crate) struct Parking {
    calls: Mutex<HashMap<String, ParkedCall>>,
    pub(crate) tasks: Mutex<JoinSet<()>>,
}

/// Asks a client by the answer to its request, and waits until it comes back.
pub(crate) async fn ask<T: DeserializeOwned>(
    park: &mpsc::Sender<ParkedQuestion>,
    request: InputRequest,
) -> Result<T, String> {
    const GONE: &str = "the client did not come back with an answer";
    let (reply, answer) = oneshot::channel();
    park.send(ParkedQuestion { request, reply }).await.map_err(|_| GONE.to_owned())?;
    let answer = tokio::time::timeout(PATIENCE, answer).await;
    typed(answer.map_err(|_| GONE.to_owned())?.map_err(|_| GONE.to_owned())?)
}

impl ParkedCall {
    pub(crate) fn new(
        (result, questions, heard): Ends,
        task: AbortHandle,
        (caller, what): (String, String),
        seat: Seat,
    ) -> Self {
        Self { result, questions, heard, task, caller, what, reply: None, _seat: seat }
    }
}

impl Inner {
    /// Waits for the end of a call, or for a question. Then the call is parked, and the answer is the
    /// question.
    pub(crate) async fn follow(
        self: &Arc<Self>,
        mut call: ParkedCall,
        context: &Context,
    ) -> Result<Arc<str>, AnswerError> {
        let ended = || self.house.failures().refused("the call was given up");
        let question = loop {
            tokio::select! {
                biased;
                Some(heard) = call.heard.recv() => tell(context, heard).await,
                result = &mut call.result => return result.unwrap_or_else(|_| Err(ended())),
                Some(question) = call.questions.recv() => break question,
            }
        };
        if let Some(lacks) = missing(&question.request, &context.client_capabilities()) {
            // The call ends here, and with it the question.
            return Err(AnswerError::Capability(Box::new(lacks)));
        }
        call.reply = Some(question.reply);
        let handle = uuid::Uuid::new_v4().to_string();
        let asked = json!({
            "resultType": "input_required",
            "inputRequests": { KEY: question.request },
            "requestState": handle,
        });
        self.park(handle, call)?;
        Ok(asked.to_string().into())
    }

    fn park(self: &Arc<Self>, handle: String, call: ParkedCall) -> Result<(), AnswerError> {
        let mut calls = self.parking.calls();
        if calls.len() >= PLACES {
            let words = "too many calls wait for answers of their clients";
            return Err(self.house.failures().refused(words));
        }
        calls.insert(handle.clone(), call);
        drop(calls);
        let inner = Arc::downgrade(self);
        self.parking.own(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(inner) = inner.upgrade() {
                inner.parking.calls().remove(&handle);
            }
        });
        Ok(())
    }

    /// The call that a client comes back to, with its answer given to the server.
    pub(crate) fn resume(
        &self,
        handle: &str,
        answers: Option<&InputResponses>,
        caller: &str,
        what: &str,
    ) -> Result<ParkedCall, AnswerError> {
        let mut calls = self.parking.calls();
        // Whoever else knows the handle learns nothing and changes nothing.
        let is_own = calls.get(handle).is_some_and(|it| it.caller == caller && it.what == what);
        let call = if is_own { calls.remove(handle) } else { None };
        drop(calls);
        let mut call = call.ok_or_else(|| self.house.failures().refused(UNKNOWN))?;
        let answer = answers.and_then(|answers| answers.get(KEY)).cloned();
        if let Some(reply) = call.reply.take() {
            // Without an answer the server is told that there is none.
            let _ = reply.send(answer.unwrap_or(Value::Null));
        }
        Ok(call)
    }
}

impl Parking {
    /// Whether a call waits under this handle.
    pub(crate) fn has(&self, handle: &str) -> bool {
        self.calls().contains_key(handle)
    }

    /// Ends all calls.
    pub(crate) async fn end(&self) {
        self.calls().clear();
        let mut tasks = {
            let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        tasks.shutdown().await;
    }

    fn calls(&self) -> MutexGuard<'_, HashMap<String, ParkedCall>> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a task that ends with the upstream.
    pub(crate) fn own(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task)
    }
}
