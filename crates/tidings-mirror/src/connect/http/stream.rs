//! Event streams: answers to requests, and the stream of notices of a legacy session.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{SseError, StreamableHttpError};
use sse_stream::{Sse, SseStream};

use super::super::body;
use super::super::raw::Raw;
use super::super::wire::Wire;
use super::super::{Signal, mend};
use super::{EVENT_STREAM, HttpClient, HttpError, Repeat, content_type, headers};
use crate::history::{ClosedBy, Happened};

/// The state of a legacy session's stream of notices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamState {
    /// Not requested yet.
    Unopened,
    /// Open.
    Open,
    /// Broken; it is being retried.
    Broken,
    /// The server has none.
    Refused,
}

/// The form of a stream that the protocol library reads.
pub(super) type EventStream = BoxStream<'static, Result<Sse, SseError>>;

impl HttpClient {
    pub(super) async fn open_stream(
        &self,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, StreamableHttpError<HttpError>> {
        let mut wanted = self.shared.wanted.subscribe();
        // Interrupted answers are resumed with a GET too. Only one stream is the stream of notices,
        // and it returns after it broke.
        let is_answer = last_event.is_some() && *self.shared.stream.borrow() != StreamState::Broken;
        if !is_answer {
            // Invariant: the sender is ours, so it exists.
            let _ = wanted.wait_for(|wanted| *wanted).await;
        }
        let headers = headers(custom, session.as_deref(), last_event.as_deref());
        let response = match self.send(Method::GET, None, headers, Repeat::Harmless).await {
            Ok(response) => response,
            Err(error) => {
                if !is_answer {
                    self.stream_failed(&error.to_string());
                }
                return Err(self.fail(error));
            }
        };
        let status = response.status();
        if is_answer && status.is_success() {
            return Ok(self.events(response, &Method::GET, None));
        }
        if is_answer {
            let status = status.as_u16();
            return Err(self.fail(HttpError::Status { status, preview: String::new() }));
        }
        if let Some(session) = session.as_deref().filter(|_| self.was_open())
            && status == StatusCode::NOT_FOUND
        {
            return Err(self.session_expired(session));
        }
        let kind = content_type(&response);
        if status.is_success() && kind == EVENT_STREAM {
            return Ok(self.opened(response));
        }
        if status.is_server_error() && self.was_open() {
            return Err(
                self.fail(HttpError::Status { status: status.as_u16(), preview: String::new() })
            );
        }
        // Retrying would not change it.
        let reason = match status {
            StatusCode::METHOD_NOT_ALLOWED => "the server has no stream of notices".to_owned(),
            status if status.is_success() => format!("its stream is {kind}"),
            status => format!("opening the stream was answered with HTTP {}", status.as_u16()),
        };
        self.shared.stream.send_replace(StreamState::Refused);
        self.shared.wire.tell(Signal::NoStream(reason.into()));
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }

    /// The events of a body in a form that the protocol library accepts. On the stream that answers
    /// a request, `asked` is that request.
    pub(super) fn events(
        &self,
        response: reqwest::Response,
        method: &Method,
        asked: Option<(RequestId, Option<Raw>)>,
    ) -> EventStream {
        let stream = body::bounded(response.bytes_stream(), self.shared.max_message);
        let wire = self.shared.wire.clone();
        let understood = move |mut event: Sse| {
            let Some(data) = event.data.as_deref() else { return event };
            let Ok(message) = serde_json::from_str(data) else { return event };
            wire.received(&message, data.as_bytes());
            match (&message, &asked) {
                (ServerJsonRpcMessage::Request(_), Some((id, _))) => {
                    wire.open.asked_within(&message, id);
                }
                (
                    ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_),
                    Some((id, Some(raw))),
                ) => raw.keep(id, data.as_bytes()),
                (ServerJsonRpcMessage::Notification(notice), Some((id, _))) => {
                    wire.open.heard_within(&notice.notification, id);
                }
                _ => {}
            }
            if let Some(translated) = mend::translated(data, &message) {
                event.data = Some(translated);
            }
            event
        };
        let mut open = OpenStream::new(self, method);
        // One more step after the last event reports the end.
        let events = SseStream::from_bytes_stream(stream).map(Some);
        events
            .chain(futures_util::stream::once(std::future::ready(None)))
            .filter_map(move |event| {
                open.take(event.as_ref());
                std::future::ready(event.map(|event| event.map(&understood)))
            })
            .boxed()
    }

    /// The stream could not be opened or reopened.
    fn stream_failed(&self, reason: &str) {
        let was_open = self.was_open();
        self.shared.stream.send_replace(StreamState::Broken);
        if was_open {
            self.shared.wire.tell(Signal::Ended(reason.into()));
        } else {
            self.shared.wire.tell(Signal::NoStream(reason.into()));
        }
    }

    fn was_open(&self) -> bool {
        matches!(*self.shared.stream.borrow(), StreamState::Open | StreamState::Broken)
    }

    fn opened(&self, response: reqwest::Response) -> EventStream {
        let is_again = self.was_open();
        self.shared.stream.send_replace(StreamState::Open);
        if is_again {
            self.shared.wire.tell(Signal::StreamBack);
        }
        let end = StreamEnd(self.clone());
        // The guard lives in the stream: when the stream ends or is dropped, the guard reports it.
        self.events(response, &Method::GET, None)
            .map(move |event| {
                let _ = &end;
                event
            })
            .boxed()
    }
}

/// Logs the beginning and the end of an event stream.
struct OpenStream {
    wire: Wire,
    number: u64,
    by: ClosedBy,
}

impl OpenStream {
    fn new(client: &HttpClient, method: &Method) -> Self {
        let shared = &client.shared;
        let (stream, wire) = (shared.streams.fetch_add(1, Ordering::Relaxed), shared.wire.clone());
        let stream = stream + 1;
        wire.happened(Happened::StreamOpened { stream, method: method.as_str().into() });
        Self { wire, number: stream, by: ClosedBy::Client }
    }

    /// An event of the stream; `None` at its end.
    fn take(&mut self, event: Option<&Result<Sse, SseError>>) {
        match event {
            Some(Err(_)) => self.by = ClosedBy::Nobody,
            None if self.by == ClosedBy::Client => self.by = ClosedBy::Server,
            _ => {}
        }
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.wire.happened(Happened::StreamClosed { stream: self.number, by: self.by });
    }
}

/// Reports that the stream of notices ended.
struct StreamEnd(HttpClient);

impl Drop for StreamEnd {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        shared.stream.send_replace(StreamState::Broken);
        shared.wire.tell(Signal::StreamLost);
    }
}
