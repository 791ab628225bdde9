//! Legacy sessions over HTTP. An idle one has subscriptions and nothing else: no task, no service, no
//! channel.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::Connection;
use crate::pipeline::Pipeline;
use crate::tokens::Admitted;
use crate::tokens::TokenHash;
use crate::transport::call::PendingAnswer;
use crate::transport::http::{App, HttpConfig};
use crate::transport::shares::{Origin, TakenPlace};

/// How long the answer to a request is kept for a client that lost the connection.
const ANSWER_KEPT: Duration = Duration::from_mins(1);
/// How many requests one session may have under way.
const CALLS: usize = 256;
/// How many answers are kept for it.
const ANSWERS: usize = 16;
/// At the maximum number of sessions, this part of them ends at once if they are idle, because each
/// search for them costs time.
const BATCH: usize = 100;
/// The shortest and the longest time between two searches.
const SHORTEST: Duration = Duration::from_millis(250);
const LONGEST: Duration = Duration::from_secs(30);
/// How long a cancelled request may continue before its service is ended.
const LAST_CHANCE: Duration = Duration::from_secs(1);

type Inbound = mpsc::Sender<ClientJsonRpcMessage>;

/// One legacy client.
pub(crate) struct Session {
    pub(crate) id: Arc<str>,
    pub(crate) connection: Arc<Connection>,
    /// Ends everything the session has under way.
    pub(crate) cancel: CancellationToken,
    state: Mutex<State>,
    pub(crate) origin: Option<Origin>,
    /// The token that opened the session; no other one may use it.
    pub(crate) token: Option<TokenHash>,
    _places: [TakenPlace; 2],
}

struct State {
    seen: Instant,
    /// Whether it had a request since the handshake.
    used: bool,
    streams: usize,
    next: u64,
    /// Requests under way, and answers that may be asked for again.
    calls: HashMap<u64, (RequestId, Inbound, Arc<PendingAnswer>)>,
    /// Questions to the client: the id each has in its own service.
    asked: HashMap<i64, (RequestId, Inbound)>,
}

impl State {
    /// Drops answers that no client came back for, and cancels such requests.
    fn sweep(&mut self) {
        for (_, _, call) in self.calls.values() {
            if call.left().is_some_and(|when| when.elapsed() >= ANSWER_KEPT) {
                call.given_up.cancel();
            }
        }
        self.calls.retain(|_, (_, _, call)| {
            call.finished().is_none_or(|when| when.elapsed() < ANSWER_KEPT)
        });
        let done = self.calls.iter().filter(|(_, (_, _, call))| call.finished().is_some());
        let mut done: Vec<_> = done.map(|(number, _)| *number).collect();
        done.sort_unstable();
        for number in done.iter().rev().skip(ANSWERS) {
            self.calls.remove(number);
        }
    }
}

impl Session {
    fn new(
        pipeline: &Arc<Pipeline>,
        places: [TakenPlace; 2],
        origin: Option<Origin>,
        admitted: &Admitted,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: uuid::Uuid::new_v4().to_string().into(),
            connection: Connection::new(pipeline.clone(), admitted.identity.clone(), None),
            cancel: pipeline.stopped.child_token(),
            state: Mutex::new(State {
                seen: Instant::now(),
                used: false,
                streams: 0,
                next: 0,
                calls: HashMap::new(),
                asked: HashMap::new(),
            }),
            origin,
            token: admitted.token,
            _places: places,
        })
    }

    /// Notes a request of the client.
    pub(crate) fn touch(&self) {
        let mut state = self.lock();
        state.seen = Instant::now();
        state.used = true;
    }

    /// The session in logs: too little of its id to use it.
    pub(crate) fn short_id(&self) -> &str {
        short(&self.id)
    }

    /// Takes a number for a request; `None` if too many are under way.
    pub(crate) fn number(&self) -> Option<u64> {
        let mut state = self.lock();
        state.sweep();
        let under_way = state.calls.values().filter(|(_, _, call)| call.finished().is_none());
        if under_way.count() >= CALLS {
            return None;
        }
        state.next += 1;
        Some(state.next)
    }

    /// Notes a request under way.
    pub(crate) fn begin(&self, id: RequestId, inbound: Inbound, call: Arc<PendingAnswer>) {
        self.lock().calls.insert(call.number(), (id, inbound, call));
    }

    /// Removes a request whose answer was delivered.
    pub(crate) fn end(&self, call: &PendingAnswer) {
        let mut state = self.lock();
        state.calls.remove(&call.number());
        state.seen = Instant::now();
    }

    /// The request of this number.
    pub(crate) fn call(&self, number: u64) -> Option<Arc<PendingAnswer>> {
        self.lock().calls.get(&number).map(|(_, _, call)| call.clone())
    }

    /// Notes a question to the client; returns the id it has in this session.
    pub(crate) fn asked(&self, own: RequestId, inbound: Inbound) -> RequestId {
        let mut state = self.lock();
        // Abandoned questions are removed here.
        state.asked.retain(|_, (_, inbound)| !inbound.is_closed());
        state.next += 1;
        let id = i64::try_from(state.next).unwrap_or(i64::MAX);
        state.asked.insert(id, (own, inbound));
        RequestId::Number(id)
    }

    /// Passes the client's answer to the request that asked the question.
    pub(crate) fn answered(&self, message: ClientJsonRpcMessage) {
        let mut find = |id: &RequestId| match id {
            RequestId::Number(id) => self.lock().asked.remove(id),
            RequestId::String(id) => id.parse().ok().and_then(|id| self.lock().asked.remove(&id)),
        };
        let (message, inbound) = match message {
            JsonRpcMessage::Response(mut response) => {
                let Some((own, inbound)) = find(&response.id) else { return };
                response.id = own;
                (JsonRpcMessage::Response(response), inbound)
            }
            JsonRpcMessage::Error(mut error) => {
                let Some((own, inbound)) = error.id.as_ref().and_then(&mut find) else { return };
                error.id = Some(own);
                (JsonRpcMessage::Error(error), inbound)
            }
            _ => return,
        };
        drop(inbound.try_send(message));
    }

    /// Cancels a request whose client is gone and cannot reconnect.
    pub(crate) fn abandon(&self, call: &Arc<PendingAnswer>) {
        call.finish();
        call.given_up.cancel();
        self.end(call);
    }

    /// Answers every request under way with this error.
    fn cut_calls(&self, error: &ErrorData) {
        let calls: Vec<_> = {
            let state = self.lock();
            state.calls.values().map(|(id, _, call)| (id.clone(), call.clone())).collect()
        };
        for (id, call) in calls {
            call.fail(id, error.clone());
            call.given_up.cancel();
        }
    }

    /// Cancels a request of the client.
    pub(crate) fn cancelled(
        &self,
        id: &RequestId,
        message: &ClientJsonRpcMessage,
        after: impl Fn(BoxFuture<'static, ()>),
    ) {
        let calls: Vec<_> = {
            let state = self.lock();
            let of_id = state.calls.values().filter(|(request, _, _)| request == id);
            of_id.map(|(_, inbound, call)| (inbound.clone(), call.clone())).collect()
        };
        for (inbound, call) in calls {
            drop(inbound.try_send(message.clone()));
            call.finish();
            // The library drops the answer of a cancelled request, so its service would wait for
            // ever. The tool has a moment to finish.
            let given_up = call.given_up.clone();
            after(Box::pin(async move {
                tokio::time::sleep(LAST_CHANCE).await;
                given_up.cancel();
            }));
        }
    }

    /// A stream is open from now until the guard is dropped.
    pub(crate) fn open_stream(self: &Arc<Self>) -> StreamGuard {
        self.lock().streams += 1;
        StreamGuard { session: self.clone() }
    }

    /// Since when it is idle, and whether it was ever used; `None` while a stream is open or a
    /// request under way.
    fn idle_since(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        let works = state.calls.values().any(|(_, _, call)| call.finished().is_none());
        (state.streams == 0 && !works).then_some((state.used, state.seen))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds a session")
    }
}

/// Keeps a session from expiring while its stream is open.
pub(crate) struct StreamGuard {
    session: Arc<Session>,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        let mut state = self.session.lock();
        state.streams -= 1;
        state.seen = Instant::now();
    }
}

/// The beginning of a session's id, for logs.
pub(crate) fn short(id: &str) -> &str {
    id.get(..8).unwrap_or(id)
}

/// All legacy sessions of one server.
pub(crate) struct Sessions {
    pipeline: Arc<Pipeline>,
    limit: usize,
    idle: Duration,
    unused: Duration,
    all: Mutex<HashMap<Arc<str>, Arc<Session>>>,
}

impl Sessions {
    pub(crate) fn new(pipeline: Arc<Pipeline>, config: &HttpConfig) -> Self {
        let (limit, idle, unused) = (config.sessions, config.idle, config.unused);
        Self { pipeline, limit, idle, unused, all: Mutex::default() }
    }

    /// A session that cannot be used before it is kept.
    pub(crate) fn make(
        &self,
        places: [TakenPlace; 2],
        origin: Option<Origin>,
        admitted: &Admitted,
    ) -> Arc<Session> {
        Session::new(&self.pipeline, places, origin, admitted)
    }

    /// Whether one more may be made.
    pub(crate) fn has_room(&self) -> bool {
        self.lock().len() < self.limit
    }

    /// As [`Self::has_room`], after ending idle sessions if necessary.
    pub(crate) fn make_room(&self) -> bool {
        self.has_room() || self.end_idle((self.limit / BATCH).max(1), None)
    }

    /// Ends this many idle sessions, of one address or of all: first those that were never used,
    /// then those that were idle longest. False if there are none.
    pub(crate) fn end_idle(&self, count: usize, origin: Option<Origin>) -> bool {
        let ended: Vec<_> = {
            let mut all = self.lock();
            let of = all.values().filter(|session| origin.is_none() || session.origin == origin);
            let mut idle: Vec<_> = of
                .filter_map(|session| Some((session.idle_since()?, session.id.clone())))
                .collect();
            idle.sort_unstable();
            idle.iter().take(count).filter_map(|(_, id)| all.remove(id)).collect()
        };
        for session in &ended {
            tracing::debug!(session = session.short_id(), "session ended for another");
            self.ended(session);
        }
        !ended.is_empty()
    }

    /// Whether one more may be made, if necessary in place of an idle one.
    pub(crate) fn has_place(&self) -> bool {
        let all = self.lock();
        all.len() < self.limit || all.values().any(|session| session.idle_since().is_some())
    }

    /// Keeps a session whose client was answered; false at the maximum number.
    pub(crate) fn keep(&self, session: Arc<Session>) -> bool {
        let mut all = self.lock();
        if all.len() >= self.limit {
            return false;
        }
        all.insert(session.id.clone(), session);
        self.pipeline.metrics.sessions.set(i64::try_from(all.len()).unwrap_or(i64::MAX));
        true
    }

    /// The session of this id, if this token opened it.
    pub(crate) fn get(&self, id: &str, token: Option<TokenHash>) -> Option<Arc<Session>> {
        let session = self.lock().get(id).filter(|session| session.token == token).cloned()?;
        session.touch();
        Some(session)
    }

    /// Ends a session.
    pub(crate) fn remove(&self, id: &str) -> bool {
        let removed = self.lock().remove(id);
        removed.inspect(|session| self.ended(session)).is_some()
    }

    /// All sessions.
    pub(crate) fn all(&self) -> Vec<Arc<Session>> {
        self.lock().values().cloned().collect()
    }

    /// Ends the streams and subscriptions of a session.
    fn ended(&self, session: &Session) {
        let left = self.lock().len();
        self.pipeline.metrics.sessions.set(i64::try_from(left).unwrap_or(i64::MAX));
        session.cancel.cancel();
        if let Some(outbox) = session.connection.outbox() {
            for uri in self.pipeline.subscriptions.forget(outbox) {
                self.pipeline.unwatched(&uri);
            }
            outbox.close();
        }
    }

    /// Ends the streams of every session.
    pub(crate) fn close_streams(&self) {
        let all: Vec<_> = self.lock().values().cloned().collect();
        for session in all {
            if let Some(outbox) = session.connection.outbox() {
                outbox.close();
            }
        }
    }

    /// Answers every request under way with this error.
    pub(crate) fn cut_calls(&self, error: &ErrorData) {
        let all: Vec<_> = self.lock().values().cloned().collect();
        for session in all {
            session.cut_calls(error);
        }
    }

    fn expire_now(&self) {
        let is_idle = |session: &Session| {
            let Some((used, since)) = session.idle_since() else { return false };
            since.elapsed() >= if used { self.idle } else { self.unused.min(self.idle) }
        };
        let mut expired = Vec::new();
        self.lock().retain(|_, session| {
            session.lock().sweep();
            let is_idle = is_idle(session);
            if is_idle {
                expired.push(session.clone());
            }
            !is_idle
        });
        for session in expired {
            tracing::info!(session = session.short_id(), "session expired");
            self.ended(&session);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Arc<Session>>> {
        self.all.lock().expect("no code panics while it holds the sessions")
    }
}

/// Ends sessions that were idle for long, as long as their server exists.
pub(crate) async fn expire(app: Weak<App>, closing: CancellationToken) {
    let shortest = |app: Arc<App>| app.sessions.idle.min(app.sessions.unused);
    while let Some(every) = app.upgrade().map(|app| shortest(app) / 4) {
        tokio::select! {
            () = closing.cancelled() => break,
            () = tokio::time::sleep(every.clamp(SHORTEST, LONGEST)) => {}
        }
        let Some(app) = app.upgrade() else { break };
        app.sessions.expire_now();
    }
}
