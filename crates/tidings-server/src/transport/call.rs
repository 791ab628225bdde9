//! One request of a legacy session while it is answered, and the stream of its answer.
//!
//! The protocol library serves the request with a service that lives only as long as the request.
//! If the client loses the connection meanwhile, nothing is cancelled: it can reconnect to the
//! stream with the id of the last event it saw.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, GetExtensions as _, JsonRpcMessage,
    JsonRpcRequest, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handler::Beside;
use crate::transport::budget::Budget;
use crate::transport::session::{Session, StreamGuard};
use crate::transport::shares::Origin;
use crate::transport::stream::KeepAlive;

/// The messages of one answer that are kept for a client that reconnects, and their bytes. Older
/// ones, which are progress and log messages, are dropped, and their number is reported.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 1024 * 1024;
/// While the reader is this many messages behind, the next sender waits.
const BEHIND: u64 = 128;
/// But no longer than this: a client that does not read loses messages, and learns how many.
const PATIENCE: Duration = Duration::from_secs(10);

/// The answer to one request, message by message.
pub(crate) struct PendingAnswer {
    number: u64,
    /// Ends the service of the request.
    pub(crate) given_up: CancellationToken,
    /// The kept messages count in it,
    budget: Arc<Budget>,
    /// for this address.
    origin: Option<Origin>,
    state: Mutex<State>,
    /// A message was read, or no sender waits any more.
    read: Notify,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    bytes: usize,
    next: u64,
    /// The last message that the newest reader has.
    taken: u64,
    finished: Option<Instant>,
    /// The newest reader; earlier ones end.
    reader: u64,
    /// When the newest reader left, if it left before the end.
    left: Option<Instant>,
    /// Whether the budget knows that it has no reader.
    noted: bool,
    /// Readers up to this one were asked to reconnect later.
    released: u64,
    /// Whether the answer is a stream in any case.
    is_begun: bool,
    waker: Option<Waker>,
}

struct Message {
    sequence: u64,
    json: Bytes,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Result,
    Error,
    /// A notification or a question, before the answer.
    Before,
}

impl Kind {
    fn of(message: &ServerJsonRpcMessage) -> Self {
        match message {
            JsonRpcMessage::Response(_) => Self::Result,
            JsonRpcMessage::Error(_) => Self::Error,
            JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => Self::Before,
        }
    }
}

/// How a request is answered.
pub(crate) enum AnswerForm {
    /// By one message.
    Message {
        /// The message.
        json: Bytes,
        /// Whether it is an error.
        is_error: bool,
    },
    /// By a stream of several.
    Stream,
}

impl PendingAnswer {
    pub(crate) fn new(
        number: u64,
        given_up: CancellationToken,
        budget: Arc<Budget>,
        origin: Option<Origin>,
    ) -> Arc<Self> {
        let (state, read) = (Mutex::default(), Notify::new());
        Arc::new(Self { number, given_up, budget, origin, state, read })
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// When the last message was put here.
    pub(crate) fn finished(&self) -> Option<Instant> {
        self.lock().finished
    }

    /// Since when it has no reader, if the last one left before the end.
    pub(crate) fn left(&self) -> Option<Instant> {
        let state = self.lock();
        state.left.filter(|_| state.finished.is_none())
    }

    /// Answers it with an error, unless it is answered.
    pub(crate) fn fail(self: &Arc<Self>, id: RequestId, error: ErrorData) {
        if self.finished().is_none() {
            self.push(&ServerJsonRpcMessage::error(error, Some(id)), None);
        }
    }

    /// Answers with a stream, although there is nothing to say yet.
    pub(crate) fn begin(&self) {
        let mut state = self.lock();
        state.is_begun = true;
        wake(state);
    }

    /// Ends the current reader's stream; the client reconnects for the rest.
    pub(crate) fn release(&self) {
        let mut state = self.lock();
        // Without a reader, this ends the stream of the first one.
        state.released = state.reader.max(1);
        wake(state);
    }

    /// Nothing more will come.
    pub(crate) fn finish(&self) {
        let mut state = self.lock();
        state.finished.get_or_insert_with(Instant::now);
        wake(state);
    }

    /// Drops the messages if there is no reader. A client that reconnects learns how many it missed,
    /// or gets an empty stream if no more will come.
    pub(crate) fn forget(&self) {
        let forgotten = {
            let mut state = self.lock();
            state.noted = false;
            if state.left.is_none() {
                return;
            }
            state.bytes = 0;
            std::mem::take(&mut state.messages)
        };
        // Their share of the budget has a lock of its own.
        drop(forgotten);
    }

    /// Reports messages without a reader to the budget.
    fn note(self: &Arc<Self>) {
        let mut state = self.lock();
        let is_kept = state.left.is_some() && !state.messages.is_empty();
        if is_kept && !std::mem::replace(&mut state.noted, true) {
            drop(state);
            self.budget.keep(self.origin, self);
        }
    }

    fn push(self: &Arc<Self>, message: &ServerJsonRpcMessage, beside: Option<&Beside>) {
        let mut kind = Kind::of(message);
        let json = Beside::write_with(beside, message).into();
        let json = if kind == Kind::Before {
            self.budget.question(json)
        } else {
            self.budget.answer(self.origin, json).unwrap_or_else(|| {
                // The client gets the reason in place of the answer.
                kind = Kind::Error;
                too_busy(message)
            })
        };
        let mut state = self.lock();
        if state.finished.is_some() {
            return;
        }
        state.next += 1;
        let sequence = state.next;
        state.bytes += json.len();
        state.messages.push_back(Message { sequence, json, kind });
        while state.messages.len() > KEPT || (state.bytes > KEPT_BYTES && state.messages.len() > 1)
        {
            let Some(forgotten) = state.messages.pop_front() else { break };
            state.bytes -= forgotten.json.len();
        }
        if kind != Kind::Before {
            state.finished = Some(Instant::now());
        }
        wake(state);
        self.note();
    }

    /// Waits until a reader that is far behind has caught up. Does not wait without a reader.
    async fn room(&self) {
        let caught_up = async {
            loop {
                let mut read = std::pin::pin!(self.read.notified());
                read.as_mut().enable();
                if !self.lock().is_behind() {
                    break;
                }
                read.await;
            }
        };
        tokio::select! {
            () = caught_up => {}
            () = self.given_up.cancelled() => {}
            () = tokio::time::sleep(PATIENCE) => {}
        }
    }

    /// Waits for the form of the answer.
    pub(crate) async fn answer(&self) -> AnswerForm {
        std::future::poll_fn(|context| {
            let mut state = self.lock();
            match state.messages.front() {
                // The only one: no message was sent or dropped before it.
                Some(message)
                    if message.kind != Kind::Before
                        && message.sequence == 1
                        && state.released == 0 =>
                {
                    let (json, is_error) = (message.json.clone(), message.kind == Kind::Error);
                    return Poll::Ready(AnswerForm::Message { json, is_error });
                }
                Some(_) => return Poll::Ready(AnswerForm::Stream),
                None if state.released > 0 || state.is_begun || state.finished.is_some() => {
                    return Poll::Ready(AnswerForm::Stream);
                }
                None => {}
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// A reader of the messages after this number.
    pub(crate) fn read(
        self: &Arc<Self>,
        after: u64,
        first: Option<Bytes>,
        idle: Duration,
        guard: StreamGuard,
    ) -> CallBody {
        let mut state = self.lock();
        state.reader += 1;
        state.left = None;
        state.taken = after;
        let reader = state.reader;
        if let Some(earlier) = state.waker.take() {
            earlier.wake();
        }
        let keep_alive = KeepAlive::new(idle);
        let (call, rest) = (self.clone(), Vec::new());
        CallBody { call, reader, after, first, rest, keep_alive, _guard: guard }
    }

    fn poll_next(
        &self,
        reader: u64,
        after: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<(u64, Bytes)>> {
        let mut state = self.lock();
        if state.reader != reader {
            return Poll::Ready(None);
        }
        if let Some(message) = state.messages.iter().find(|message| message.sequence > after) {
            let forgotten = message.sequence - after - 1;
            let next = match forgotten {
                0 => (message.sequence, message.json.clone()),
                _ => (message.sequence - 1, left_out(forgotten)),
            };
            state.taken = next.0;
            drop(state);
            self.read.notify_waiters();
            return Poll::Ready(Some(next));
        }
        if state.finished.is_some() || state.released >= reader {
            return Poll::Ready(None);
        }
        state.waker = Some(context.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds a call")
    }
}

impl State {
    fn is_behind(&self) -> bool {
        let is_read = self.left.is_none() && self.finished.is_none();
        is_read && self.next.saturating_sub(self.taken) > BEHIND
    }
}

/// The log message in place of dropped messages.
fn left_out(number: u64) -> Bytes {
    let data = format!("{number} messages of this call were left out: they were not read in time");
    let params = serde_json::json!({ "level": "warning", "logger": "tidings", "data": data });
    let method = "notifications/message";
    serde_json::json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string().into()
}

/// The error in place of an answer that does not fit into the budget.
fn too_busy(message: &ServerJsonRpcMessage) -> Bytes {
    let id = match message {
        JsonRpcMessage::Response(response) => Some(response.id.clone()),
        JsonRpcMessage::Error(error) => error.id.clone(),
        JsonRpcMessage::Request(_) | JsonRpcMessage::Notification(_) => None,
    };
    let error = ServerJsonRpcMessage::error(crate::transport::reply::too_large_now(), id);
    serde_json::to_vec(&error).expect("an error is plain JSON").into()
}

fn wake(mut state: MutexGuard<'_, State>) {
    if let Some(waker) = state.waker.take() {
        drop(state);
        waker.wake();
    }
}

/// The id of the event that opens the stream of a call.
pub(crate) fn priming(number: u64, retry: Duration) -> Bytes {
    format!("id: c{number}-0\nretry: {}\ndata: \n\n", retry.as_millis()).into()
}

/// The call and the message that an event id names.
pub(crate) fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (call, sequence) = id.strip_prefix('c')?.split_once('-')?;
    Some((call.parse().ok()?, sequence.parse().ok()?))
}

/// The stream of one reader of a call.
pub(crate) struct CallBody {
    call: Arc<PendingAnswer>,
    reader: u64,
    after: u64,
    first: Option<Bytes>,
    /// The unsent parts of an event, the next one last.
    rest: Vec<Bytes>,
    keep_alive: KeepAlive,
    /// The session is in use while this is read.
    _guard: StreamGuard,
}

impl Drop for CallBody {
    fn drop(&mut self) {
        let mut state = self.call.lock();
        if state.reader == self.reader {
            state.left = Some(Instant::now());
        }
        drop(state);
        self.call.note();
        self.call.read.notify_waiters();
    }
}

impl Body for CallBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = self.get_mut();
        if let Some(first) = this.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        // The message itself is not copied: it counts in the budget as long as it is here.
        if let Some(next) = this.rest.pop() {
            return Poll::Ready(Some(Ok(Frame::data(next))));
        }
        let bytes = match this.call.poll_next(this.reader, this.after, context) {
            Poll::Ready(Some((sequence, json))) => {
                this.after = sequence;
                this.rest = vec![Bytes::from_static(b"\n\n"), json];
                format!("id: c{}-{sequence}\ndata: ", this.call.number).into()
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Pending => std::task::ready!(this.keep_alive.poll(context)),
        };
        Poll::Ready(Some(Ok(Frame::data(bytes))))
    }
}

/// Carries one request to the protocol library and its messages back.
pub(crate) struct CallTransport {
    request: Option<ClientJsonRpcMessage>,
    /// The client's answers to questions of the request, and its cancellation.
    inbound: mpsc::Receiver<ClientJsonRpcMessage>,
    sender: mpsc::Sender<ClientJsonRpcMessage>,
    call: Arc<PendingAnswer>,
    session: Arc<Session>,
    /// The data that bypasses the library.
    beside: Beside,
    answered: CancellationToken,
}

impl CallTransport {
    /// A transport for one request, and the sender of further messages for it.
    pub(crate) fn new(
        mut request: JsonRpcRequest<ClientRequest>,
        call: Arc<PendingAnswer>,
        session: Arc<Session>,
    ) -> (Self, mpsc::Sender<ClientJsonRpcMessage>) {
        // A client answers few questions at a time. Further answers of a flood are dropped.
        let (sender, inbound) = mpsc::channel(16);
        let answered = CancellationToken::new();
        let beside = Beside::default();
        request.request.extensions_mut().insert(beside.clone());
        let request = Some(JsonRpcMessage::Request(request));
        let own = sender.clone();
        (Self { request, inbound, sender: own, call, session, beside, answered }, sender)
    }
}

impl Transport<RoleServer> for CallTransport {
    type Error = Infallible;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let item = match item {
            JsonRpcMessage::Request(mut request) => {
                // Several requests of a session are served at once, each by a service that counts
                // its questions from zero; on the wire a question has an id of the session.
                request.id = self.session.asked(request.id, self.sender.clone());
                JsonRpcMessage::Request(request)
            }
            other => other,
        };
        self.call.push(&item, Some(&self.beside));
        let is_answer = Kind::of(&item) != Kind::Before;
        if is_answer {
            self.answered.cancel();
        }
        // Order: the message is in its place already; only the sender of the next one waits.
        let call = self.call.clone();
        async move {
            if !is_answer {
                call.room().await;
            }
            Ok(())
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        if let Some(request) = self.request.take() {
            return Some(request);
        }
        tokio::select! {
            biased;
            message = self.inbound.recv() => message,
            () = self.answered.cancelled() => None,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.call.finish();
        Ok(())
    }
}
