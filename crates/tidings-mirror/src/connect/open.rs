//! The open requests of a connection, to attribute questions, progress notices and log messages.

// The level of a log message is deprecated and still sent.
#![expect(deprecated, reason = "servers of every revision are listened to")]

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, GetExtensions as _, GetMeta as _,
    ProgressNotificationParam, ProgressToken, RequestId, ServerJsonRpcMessage, ServerNotification,
    ServerRequest,
};
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

use crate::events::{Progress, RequestTag};
use crate::handlers::During;
use crate::relay::Heard;

/// Questions that may wait for their handler before the oldest record is dropped. Handlers start at
/// once, so only a flooding server reaches this.
const QUESTIONS: usize = 256;
/// How long a server may still ask about a request that was cancelled.
const ABANDONED: Duration = Duration::from_mins(2);

/// The open requests. Ids are compared as text: some servers return numbers as text.
#[derive(Debug, Default)]
pub(super) struct Open(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    requests: HashMap<String, Sent>,
    /// Requests that were cancelled and not answered, by when: the server may still ask about them.
    abandoned: HashMap<String, Instant>,
    /// Questions that wait for their handler, if their request is known.
    questions: HashMap<String, During>,
}

#[derive(Debug)]
struct Sent {
    during: During,
    token: Option<ProgressToken>,
    /// Hears of progress and log messages, for a relayed request.
    hears: Option<mpsc::Sender<Heard>>,
}

/// Who hears of the progress and the log messages of a request. It travels with the request, never
/// on the wire.
#[derive(Clone)]
struct Hears(mpsc::Sender<Heard>);

impl Open {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records what a request is for. The record travels with the request, never on the wire.
    pub(super) fn mark(request: &mut ClientRequest, during: During) {
        request.extensions_mut().insert(during);
    }

    /// Records who hears of what happens during a request.
    pub(super) fn mark_hears(request: &mut ClientRequest, hears: mpsc::Sender<Heard>) {
        request.extensions_mut().insert(Hears(hears));
    }

    /// A message is being sent.
    pub(super) fn sent(&self, message: &ClientJsonRpcMessage) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                let inner = &request.request;
                let other = || During::Other { method: inner.method().into() };
                let during = inner.extensions().get().cloned().unwrap_or_else(other);
                let token = inner.get_meta().get_progress_token();
                let hears = inner.extensions().get::<Hears>().map(|hears| hears.0.clone());
                let sent = Sent { during, token, hears };
                self.state().requests.insert(request.id.to_string(), sent);
            }
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.state().abandon(&id.to_string());
                }
            }
            _ => {}
        }
    }

    /// A request was answered, or could not be sent.
    pub(super) fn ended(&self, id: &RequestId) {
        let (mut state, id) = (self.state(), id.to_string());
        state.requests.remove(&id);
        state.abandoned.remove(&id);
    }

    /// The server asks a question on the stream that answers this request.
    pub(super) fn asked_within(&self, message: &ServerJsonRpcMessage, request: &RequestId) {
        let Some(question) = question(message) else { return };
        let mut state = self.state();
        if let Some(sent) = state.requests.get(&request.to_string()) {
            let during = sent.during.clone();
            state.ask(question, during);
        }
    }

    /// The server asks a question, or logs, on a connection that attributes neither. The request is
    /// known only if exactly one is open. Lists and subscriptions count only if nothing else is
    /// open: they are no reason to ask.
    pub(super) fn asked(&self, message: &ServerJsonRpcMessage) {
        if let ServerJsonRpcMessage::Notification(notice) = message {
            if let Some(sent) = self.state().only() {
                sent.log(&notice.notification);
            }
            return;
        }
        let Some(question) = question(message) else { return };
        let mut state = self.state();
        if let Some(during) = state.only().map(|sent| sent.during.clone()) {
            state.ask(question, during);
        }
    }

    /// The server logs on the stream that answers this request.
    pub(super) fn heard_within(&self, notice: &ServerNotification, request: &RequestId) {
        if let Some(sent) = self.state().requests.get(&request.to_string()) {
            sent.log(notice);
        }
    }

    /// Passes progress on to the relayed request that it belongs to, if there is one.
    pub(super) fn progressed(&self, params: &ProgressNotificationParam) -> bool {
        let state = self.state();
        let token = Some(&params.progress_token);
        let mut sent = state.requests.values().filter(|sent| sent.token.as_ref() == token);
        let Some(hears) = sent.find_map(|sent| sent.hears.as_ref()) else { return false };
        let (progress, total) = (params.progress, params.total);
        let message = params.message.clone();
        let _ =
            hears.try_send(Heard::Progress(Progress { request: None, progress, total, message }));
        true
    }

    /// The request of a question, for its handler.
    pub(super) fn during(&self, question: &RequestId) -> Option<During> {
        self.state().questions.remove(&question.to_string())
    }

    /// The call that reports progress.
    pub(super) fn tag(&self, token: &ProgressToken) -> Option<RequestTag> {
        let state = self.state();
        let sent = state.requests.values().find(|sent| sent.token.as_ref() == Some(token))?;
        match sent.during {
            During::Call { tag, .. } | During::Relay { tag, .. } => Some(tag),
            _ => None,
        }
    }
}

impl Sent {
    /// Passes a log message on. One that finds no room is dropped: a log is no reason to wait.
    fn log(&self, notice: &ServerNotification) {
        let ServerNotification::LoggingMessageNotification(notice) = notice else { return };
        let Some(hears) = &self.hears else { return };
        let params = notice.params.clone();
        let (level, logger, data) = (params.level, params.logger, params.data);
        let _ = hears.try_send(Heard::Log { level, logger, data });
    }
}

impl State {
    /// A request was cancelled.
    fn abandon(&mut self, id: &str) {
        self.abandoned.retain(|_, since| since.elapsed() < ABANDONED);
        let Some(sent) = self.requests.remove(id) else { return };
        if !matches!(sent.during, During::Other { .. }) {
            self.abandoned.insert(id.to_owned(), Instant::now());
        }
    }

    /// The only request that a question can belong to.
    fn only(&self) -> Option<&Sent> {
        if self.abandoned.values().any(|since| since.elapsed() < ABANDONED) {
            return None;
        }
        let is_other = |sent: &&Sent| matches!(sent.during, During::Other { .. });
        let mut asking = self.requests.values().filter(|sent| !is_other(sent));
        match (asking.next(), asking.next()) {
            (Some(sent), None) => Some(sent),
            (Some(_), Some(_)) => None,
            (None, _) => {
                let mut others = self.requests.values();
                others.next().filter(|_| others.next().is_none())
            }
        }
    }

    fn ask(&mut self, question: &RequestId, during: During) {
        if self.questions.len() >= QUESTIONS {
            self.questions.clear();
        }
        self.questions.insert(question.to_string(), during);
    }
}

/// The id of a question that a handler answers.
fn question(message: &ServerJsonRpcMessage) -> Option<&RequestId> {
    let ServerJsonRpcMessage::Request(request) = message else { return None };
    let is_handled = matches!(
        request.request,
        ServerRequest::CreateMessageRequest(_)
            | ServerRequest::ElicitRequest(_)
            | ServerRequest::ListRootsRequest(_)
    );
    is_handled.then_some(&request.id)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(id: i64, tool: &str) -> ClientJsonRpcMessage {
        let params = json!({ "name": tool, "_meta": { "progressToken": id } });
        let message =
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
        let mut message: ClientJsonRpcMessage = serde_json::from_value(message).unwrap();
        let ClientJsonRpcMessage::Request(request) = &mut message else { panic!("a request") };
        Open::mark(&mut request.request, during(tool));
        message
    }

    fn during(tool: &str) -> During {
        During::Call { tool: tool.into(), tag: RequestTag(tool.len() as u64) }
    }

    fn roots(id: i64) -> ServerJsonRpcMessage {
        serde_json::from_value(json!({ "jsonrpc": "2.0", "id": id, "method": "roots/list" }))
            .unwrap()
    }

    #[test]
    fn a_question_without_a_stream_of_its_own_is_never_guessed_about() {
        let open = Open::default();
        open.asked(&roots(1));
        assert_eq!(open.during(&RequestId::Number(1)), None, "nothing is open");
        open.sent(&call(10, "one"));
        open.asked(&roots(2));
        open.sent(&call(11, "three"));
        open.asked(&roots(3));
        assert_eq!(open.during(&RequestId::Number(2)), Some(during("one")));
        assert_eq!(open.during(&RequestId::Number(3)), None, "two are open");
        open.ended(&RequestId::String("10".into()));
        open.asked(&roots(4));
        assert_eq!(open.during(&RequestId::Number(4)), Some(during("three")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_may_belong_to_a_request_that_was_cancelled_until_it_is_answered() {
        let open = Open::default();
        let cancel = |id: i64| {
            let message = json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
            });
            open.sent(&serde_json::from_value(message).unwrap());
        };
        let asked = |id: i64| {
            open.asked(&roots(id));
            open.during(&RequestId::Number(id))
        };
        open.sent(&call(10, "one"));
        cancel(10);
        open.sent(&call(11, "three"));
        assert_eq!(asked(1), None, "it may be about the first");
        open.ended(&RequestId::Number(10));
        assert_eq!(asked(2), Some(during("three")));
        open.sent(&call(12, "seven"));
        cancel(12);
        assert_eq!(asked(3), None);
        tokio::time::advance(ABANDONED).await;
        assert_eq!(asked(4), Some(during("three")), "nobody waits for ever");
    }

    #[test]
    fn a_list_that_is_loaded_meanwhile_leaves_a_question_to_its_call() {
        let open = Open::default();
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        open.sent(&serde_json::from_value(list).unwrap());
        open.asked(&roots(2));
        let other = During::Other { method: "tools/list".into() };
        assert_eq!(open.during(&RequestId::Number(2)), Some(other));
        open.sent(&call(10, "one"));
        open.asked(&roots(3));
        assert_eq!(open.during(&RequestId::Number(3)), Some(during("one")));
    }

    #[test]
    fn a_relayed_request_hears_of_its_progress_and_of_log_messages_that_are_surely_its() {
        let open = Open::default();
        let (hears, mut heard) = mpsc::channel(8);
        let mut relayed = call(7, "one");
        let ClientJsonRpcMessage::Request(request) = &mut relayed else { panic!("a request") };
        Open::mark_hears(&mut request.request, hears);
        open.sent(&relayed);
        let progress = json!({ "progressToken": 7, "progress": 0.5 });
        assert!(open.progressed(&serde_json::from_value(progress).unwrap()));
        let progress = json!({ "progressToken": 8, "progress": 0.5 });
        assert!(!open.progressed(&serde_json::from_value(progress).unwrap()));
        let log: ServerJsonRpcMessage = serde_json::from_value(json!({
            "jsonrpc": "2.0", "method": "notifications/message",
            "params": { "level": "info", "data": "working" },
        }))
        .unwrap();
        open.asked(&log);
        open.sent(&call(8, "three"));
        open.asked(&log);
        assert!(matches!(heard.try_recv(), Ok(Heard::Progress(_))));
        assert!(matches!(heard.try_recv(), Ok(Heard::Log { .. })));
        assert!(heard.try_recv().is_err(), "two are open");
    }

    #[test]
    fn a_question_on_the_stream_of_a_request_belongs_to_it() {
        let open = Open::default();
        open.sent(&call(10, "one"));
        open.sent(&call(11, "three"));
        open.asked_within(&roots(2), &RequestId::Number(11));
        assert_eq!(open.during(&RequestId::Number(2)), Some(during("three")));
        assert_eq!(open.during(&RequestId::Number(2)), None, "it is asked once");
    }

    #[test]
    fn progress_is_known_by_its_token_until_the_request_is_over() {
        let open = Open::default();
        open.sent(&call(7, "three"));
        let token = ProgressToken(RequestId::Number(7));
        assert_eq!(open.tag(&token), Some(RequestTag(5)));
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 },
        });
        open.sent(&serde_json::from_value(cancelled).unwrap());
        assert_eq!(open.tag(&token), None);
    }
}
