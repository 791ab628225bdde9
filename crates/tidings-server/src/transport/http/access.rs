//! Facts about a finished request, for the metrics and the access log.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{Method, StatusCode};
use http_body::{Frame, SizeHint};
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, JsonRpcMessage, RequestId};
use tokio::time::Instant;
use tracing::info;

use crate::metrics::RequestOutcome;
use crate::transport::line::Line;

/// The parsed facts of a request, in the extensions of its answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestFacts {
    /// The method of the message.
    pub(crate) method: Option<String>,
    pub(crate) id: Option<RequestId>,
    pub(crate) era: Option<&'static str>,
    /// The beginning of the session's id, too short to be used.
    pub(crate) session: Option<String>,
    pub(crate) is_error: bool,
}

impl RequestFacts {
    pub(crate) fn of(message: &ClientJsonRpcMessage, era: &'static str) -> Self {
        let (method, id) = match message {
            JsonRpcMessage::Request(request) => {
                (Some(short(request.request.method())), Some(request.id.clone()))
            }
            JsonRpcMessage::Notification(notification) => {
                (Some(method_of(&notification.notification)), None)
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => (None, None),
        };
        Self { method, id, era: Some(era), ..Self::default() }
    }

    /// The outcome of the request.
    pub(crate) fn outcome(&self, status: StatusCode) -> RequestOutcome {
        match status {
            StatusCode::OK | StatusCode::ACCEPTED | StatusCode::NO_CONTENT if !self.is_error => {
                RequestOutcome::Answered
            }
            _ if self.is_error => RequestOutcome::Error,
            _ => RequestOutcome::Refused,
        }
    }
}

fn method_of(notification: &ClientNotification) -> String {
    let known = match notification {
        ClientNotification::CancelledNotification(_) => "notifications/cancelled",
        ClientNotification::ProgressNotification(_) => "notifications/progress",
        ClientNotification::InitializedNotification(_) => "notifications/initialized",
        ClientNotification::RootsListChangedNotification(_) => "notifications/roots/list_changed",
        ClientNotification::CustomNotification(custom) => &custom.method,
        _ => "notifications/other",
    };
    short(known)
}

/// A method or an id for the log, made harmless: a client may send any text.
fn short(text: &str) -> String {
    text.chars().take(64).map(|it| if it.is_control() { '?' } else { it }).collect()
}

/// One line of the access log, written when the answer is sent or its client is gone.
pub(crate) struct Record {
    pub(super) http_method: Method,
    pub(super) client: Option<IpAddr>,
    /// The name of the client's token.
    pub(super) who: Option<Arc<str>>,
    pub(super) status: StatusCode,
    pub(super) seen: RequestFacts,
    pub(super) began: Instant,
    /// The length of the body so far.
    pub(crate) bytes: u64,
}

impl Drop for Record {
    fn drop(&mut self) {
        let seen = &self.seen;
        info!(
            target: "access",
            http = %self.http_method,
            method = seen.method.as_deref(),
            client = self.client.map(tracing::field::display),
            who = self.who.as_deref(),
            session = seen.session.as_deref(),
            era = seen.era,
            status = self.status.as_u16(),
            outcome = seen.outcome(self.status).word(),
            took_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
            bytes = self.bytes,
            request = seen.id.as_ref().map(|id| short(&id.to_string())),
            "request"
        );
    }
}

/// Writes the record when the answer has been sent. A stream that leaves the HTTP library takes the
/// record with it.
pub(super) fn follow(response: Response, record: Record, line: Option<&Line>) -> Response {
    let left = match line {
        Some(line) => line.hold_record(record),
        None => Some(record),
    };
    match left {
        Some(record) => response.map(|body| Body::new(Followed { body, record })),
        None => response,
    }
}

struct Followed {
    body: Body,
    record: Record,
}

impl http_body::Body for Followed {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = std::task::ready!(Pin::new(&mut self.body).poll_frame(context));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            self.record.bytes += data.len() as u64;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
