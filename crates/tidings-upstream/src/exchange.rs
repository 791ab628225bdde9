//! One request at the server: what is said meanwhile, how long it may take, and rounds of questions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;
use tidings_mirror::events::RequestTag;
use tidings_mirror::model::{InputResponses, JsonObject};
use tidings_mirror::{Era, Heard, Mirror, Relay, RequestOptions};
use tidings_server::{AnswerError, Context, Raw};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::questions::park::{ParkedCall, Seat, UNKNOWN};
use crate::questions::{Asker, lacking};
use crate::status::{Counts, Failure};
use crate::upstream::Inner;

/// Progress and log messages of one request that may wait for a slow client.
const HEARD: usize = 64;
/// How often a server may ask before it answers one request.
const ROUNDS: usize = 10;

/// A request with its `_meta`, and the arguments of a call as the client sent them.
pub(crate) struct Outgoing {
    pub(crate) request: Relay,
    pub(crate) meta: JsonObject,
    pub(crate) arguments: Option<Arc<str>>,
}

/// Who hears what a server says during a request.
pub(crate) enum Listener<'a> {
    Client(&'a Context),
    Parked(mpsc::Sender<Heard>),
    Nobody,
}

impl Listener<'_> {
    async fn tell(&self, heard: Heard) {
        match self {
            Self::Client(context) => tell(context, heard).await,
            // What finds no room is dropped: its client is away.
            Self::Parked(away) => drop(away.try_send(heard)),
            Self::Nobody => {}
        }
    }
}

/// Questions that a server gives as the result of a request.
struct Asked {
    questions: Value,
    state: Option<String>,
}

impl Asked {
    fn of(text: &str) -> Option<Self> {
        // Most results ask nothing.
        if !text.contains("input_required") {
            return None;
        }
        let result = Raw::<()>::parse(text).ok()?;
        let is_asked = result.get("resultType") == Some(r#""input_required""#);
        let value = |name: &str| serde_json::from_str::<Value>(result.get(name)?).ok();
        is_asked.then(|| Self {
            questions: value("inputRequests").unwrap_or_default(),
            state: value("requestState").and_then(|state| state.as_str().map(str::to_owned)),
        })
    }
}

impl Inner {
    /// A request of a client that can be asked while it waits. Questions that a server gives as
    /// results are put to the client, and their answers sent with the same request.
    pub(crate) async fn ask_meanwhile(
        self: &Arc<Self>,
        mirror: &Mirror,
        mut outgoing: Outgoing,
        context: &Context,
    ) -> Result<Arc<str>, AnswerError> {
        let failures = self.house.failures();
        for _ in 0..ROUNDS {
            let open = self.open_request(Asker::Client(context.clone()));
            let listener = Listener::Client(context);
            let text = self.exchange(mirror, &outgoing, open.tag, listener).await?;
            let Some(asked) = Asked::of(&text) else { return Ok(text) };
            let answers = self.answer_round(&asked.questions, context).await;
            let answers = answers.map_err(|why| failures.refused(&why))?;
            set_input(&mut outgoing.request, Some(answers), asked.state);
        }
        Err(failures.refused("the server kept asking and never answered"))
    }

    /// A request of a client that is asked by the answer.
    pub(crate) async fn ask_by_answer(
        self: &Arc<Self>,
        mirror: Mirror,
        mut outgoing: Outgoing,
        seat: Seat,
        context: &Context,
    ) -> Result<Arc<str>, AnswerError> {
        let is_legacy = mirror.server().is_none_or(|server| server.era == Era::Legacy);
        if !is_legacy {
            let open = self.open_request(Asker::Client(context.clone()));
            let listener = Listener::Client(context);
            let text = self.exchange(&mirror, &outgoing, open.tag, listener).await?;
            let asked = Asked::of(&text);
            let lacks = asked.and_then(|it| lacking(&it.questions, &context.client_capabilities()));
            return lacks.map_or(Ok(text), Err);
        }
        if take_input(&mut outgoing.request).1.is_some() {
            return Err(self.house.failures().refused(UNKNOWN));
        }
        let call = self.begin_parked(mirror, outgoing, context.caller(), seat);
        self.follow(call, context).await
    }

    /// The call that a client comes back to, if it is one that waits.
    pub(crate) fn come_back(
        &self,
        request: &mut Relay,
        context: &Context,
    ) -> Option<Result<ParkedCall, AnswerError>> {
        let handle = state(request).filter(|handle| self.parking.has(handle))?.to_owned();
        let (answers, _) = take_input(request);
        Some(self.resume(&handle, answers.as_ref(), &context.caller(), &what(request)))
    }

    fn begin_parked(
        self: &Arc<Self>,
        mirror: Mirror,
        outgoing: Outgoing,
        caller: String,
        seat: Seat,
    ) -> ParkedCall {
        let what = what(&outgoing.request);
        let (done, result) = oneshot::channel();
        let (park, questions) = mpsc::channel(1);
        let (hears, heard) = mpsc::channel(HEARD);
        let inner = self.clone();
        let task = self.parking.own(async move {
            let open = inner.open_request(Asker::Parked(park));
            let listener = Listener::Parked(hears);
            let _ = done.send(inner.exchange(&mirror, &outgoing, open.tag, listener).await);
        });
        ParkedCall::new((result, questions, heard), task, (caller, what), seat)
    }

    /// One round of a request.
    pub(crate) async fn exchange(
        &self,
        mirror: &Mirror,
        outgoing: &Outgoing,
        tag: u64,
        listener: Listener<'_>,
    ) -> Result<Arc<str>, AnswerError> {
        let timeouts = self.config().timeouts;
        let mut options = RequestOptions::new();
        options.meta.clone_from(&outgoing.meta);
        options.arguments.clone_from(&outgoing.arguments);
        // Silence is measured here, where it is known whether the server waits for an answer itself.
        options.timeout = Some(timeouts.most);
        let mirror = mirror.with(options);
        let (hears, mut heard) = mpsc::channel(HEARD);
        let began = Instant::now();
        Counts::add(&self.counts.requests);
        let (request, is_for_nobody) =
            (outgoing.request.clone(), matches!(listener, Listener::Nobody));
        let asking = async {
            if is_for_nobody {
                return mirror.relay_for_nobody(request, hears).await;
            }
            mirror.relay(request, RequestTag(tag), hears).await
        };
        tokio::pin!(asking);
        let mut silent_until = began + timeouts.call;
        let answer = loop {
            tokio::select! {
                biased;
                Some(heard) = heard.recv() => {
                    silent_until = Instant::now() + timeouts.call;
                    listener.tell(heard).await;
                }
                answer = &mut asking => break answer,
                () = tokio::time::sleep_until(silent_until) => {
                    if !self.is_asked(tag) {
                        Counts::add(&self.counts.failed);
                        return Err(self.house.failures().silent(timeouts.call));
                    }
                    silent_until = Instant::now() + timeouts.call;
                }
            }
        };
        self.counts.answered(began.elapsed(), answer.is_err());
        let failed = answer.as_ref().err().filter(|failed| failed.raw.is_none());
        let refusal = failed.map(|failed| Failure::of(&failed.to_string()));
        self.is_unauthorized.store(refusal == Some(Failure::Unauthorized), Ordering::Relaxed);
        while let Ok(heard) = heard.try_recv() {
            listener.tell(heard).await;
        }
        answer.map_err(|failed| self.house.failures().of(&failed))
    }
}

/// Passes on what a server said during a request.
pub(crate) async fn tell(context: &Context, heard: Heard) {
    match heard {
        Heard::Progress(progress) => {
            let message = progress.message.as_deref();
            context.progress(progress.progress, progress.total, message).await;
        }
        Heard::Log { level, logger, data } => {
            context.log_as(logger.as_deref(), level, data).await;
        }
        _ => {}
    }
}

/// What is asked for, to know it again.
fn what(request: &Relay) -> String {
    match request {
        Relay::Call(params) => format!("call {}", params.name),
        Relay::Prompt(params) => format!("prompt {}", params.name),
        Relay::Read(params) => format!("read {}", params.uri),
        _ => String::new(),
    }
}

fn set_input(request: &mut Relay, answers: Option<InputResponses>, state: Option<String>) {
    match request {
        Relay::Call(params) => (params.input_responses, params.request_state) = (answers, state),
        Relay::Prompt(params) => (params.input_responses, params.request_state) = (answers, state),
        Relay::Read(params) => (params.input_responses, params.request_state) = (answers, state),
        _ => {}
    }
}

fn state(request: &Relay) -> Option<&str> {
    match request {
        Relay::Call(params) => params.request_state.as_deref(),
        Relay::Prompt(params) => params.request_state.as_deref(),
        Relay::Read(params) => params.request_state.as_deref(),
        _ => None,
    }
}

fn take_input(request: &mut Relay) -> (Option<InputResponses>, Option<String>) {
    match request {
        Relay::Call(params) => (params.input_responses.take(), params.request_state.take()),
        Relay::Prompt(params) => (params.input_responses.take(), params.request_state.take()),
        Relay::Read(params) => (params.input_responses.take(), params.request_state.take()),
        _ => (None, None),
    }
}
