//! Requests of modern clients over HTTP, each without a session.
//!
//! The protocol library checks and answers them. It checks and acknowledges a listen request too.
//! Then its service ends, and the stream continues with bytes from the listener's outbox.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{Request, StatusCode, header, request};
use http_body::Frame;
use http_body_util::{BodyExt as _, Full};
use rmcp::ServerHandler as _;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetExtensions as _, GetMeta,
    JsonRpcMessage, RequestId, ServerJsonRpcMessage, ServerResult, SubscriptionsListenRequest,
    SubscriptionsListenResult,
};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tidings_core::ListKinds;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::about::{About, Transport};
use crate::era;
use crate::handler::{Beside, Handler, Part, accept_filter};
use crate::notice;
use crate::pipeline::{Listener, Pipeline};
use crate::sent::SentCall;
use crate::tokens::Admitted;
use crate::transport::body::{busy, retry_later};
use crate::transport::budget::{Budget, Share};
use crate::transport::http::{App, HttpConfig, ListenPlace, RequestFacts, stopping};
use crate::transport::intake::{self, Received};
use crate::transport::legacy::VERSION;
use crate::transport::line::Line;
use crate::transport::shares::Origin;
use crate::transport::{reply, stream};
use crate::viewers::Viewer;

/// The maximum weight of arguments that the library must parse because headers repeat them.
const HEADER_ARGUMENTS: usize = 8 << 20;

/// The protocol library's own HTTP service, for requests that need no session.
pub(crate) type Service = StreamableHttpService<Handler, NeverSessionManager>;

/// The service of one server, or of one viewer. Host, origin and size are checked before, and it does
/// not stop with the server.
pub(crate) fn service(
    pipeline: Arc<Pipeline>,
    config: &HttpConfig,
    viewer: Option<Arc<Viewer>>,
) -> Service {
    let library = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(config.keep_alive))
        .with_sse_retry(None)
        .with_max_request_body_bytes(config.body_limit)
        .with_cancellation_token(CancellationToken::new())
        .disable_allowed_hosts();
    let factory = move || Ok(Handler::stateless(pipeline.clone(), viewer.clone()));
    StreamableHttpService::new(factory, Arc::default(), library)
}

/// Whether a message is a modern client's, by its own metadata or the header.
pub(crate) fn is_modern(parts: &request::Parts, message: &ClientJsonRpcMessage) -> bool {
    let header = parts.headers.get(VERSION).and_then(|version| version.to_str().ok());
    let by_header = header.is_some_and(era::is_modern);
    match message {
        JsonRpcMessage::Request(request) => {
            let by_body = request.request.get_meta().protocol_version().is_some();
            match &request.request {
                ClientRequest::InitializeRequest(_) => by_body,
                ClientRequest::DiscoverRequest(_) => true,
                _ => by_body || by_header,
            }
        }
        _ => by_header,
    }
}

/// Answers one message of a modern client.
pub(crate) async fn post(
    app: &Arc<App>,
    mut parts: request::Parts,
    received: Received,
    body: Bytes,
    mut share: Share,
) -> Response {
    let JsonRpcMessage::Request(request) = received.message else {
        // Notifications of clients are ignored and not refused: older libraries send
        // `notifications/cancelled` without the headers a request needs.
        return reply::accepted();
    };
    let id = request.id;
    let beside = Beside::default();
    parts.extensions.insert(beside.clone());
    // The library reads the message once more, and only knows the parts.
    if let Some(sent) = SentCall::of(request.request.extensions()) {
        parts.extensions.insert(sent.clone());
    }
    let listens = matches!(request.request, ClientRequest::SubscriptionsListenRequest(_));
    let client = listens.then(|| request.request.get_meta().client_info()).flatten();
    match request.request {
        ClientRequest::InitializeRequest(_) => {
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "initialize", None);
            reply::error(StatusCode::NOT_FOUND, Some(id), error)
        }
        ClientRequest::SubscriptionsListenRequest(request) => {
            let about = About::new(client.as_ref(), Transport::Http, ListKinds::EMPTY);
            listen(app, parts, id, request, about).await
        }
        ClientRequest::CallToolRequest(call) => {
            let body = match received.heavy {
                Some(heavy) if has_header_parameters(app, &call.params.name, &parts) => {
                    // The library compares such headers with the arguments, so it must see them.
                    if heavy.weight > HEADER_ARGUMENTS {
                        let error = intake::too_large();
                        return reply::error(StatusCode::PAYLOAD_TOO_LARGE, Some(id), error);
                    }
                    if !share.grow(3 * heavy.weight) {
                        return busy();
                    }
                    body
                }
                Some(heavy) => {
                    beside.put_arguments(heavy.arguments);
                    heavy.light
                }
                None => body,
            };
            serve(app, Request::from_parts(parts, Full::new(body)), (id, beside), share).await
        }
        _ => serve(app, Request::from_parts(parts, Full::new(body)), (id, beside), share).await,
    }
}

/// Begins the stream of a listener.
async fn listen(
    app: &Arc<App>,
    parts: request::Parts,
    id: RequestId,
    mut listen: SubscriptionsListenRequest,
    about: About,
) -> Response {
    let origin = Line::peer(&parts.extensions).map(Origin::of);
    let admitted = Admitted::of(&parts.extensions);
    let viewer = viewer(app, &admitted);
    let Some(place) = app.listen_place(origin, &admitted) else {
        app.pipeline.metrics.refused.inc();
        let error = ErrorData::internal_error("Too many listeners", None);
        let response = reply::error(StatusCode::SERVICE_UNAVAILABLE, Some(id), error);
        return retry_later(response);
    };
    let filter = &mut listen.params.notifications;
    let listener = match accept_filter(&app.pipeline, &id, filter, about, viewer).await {
        Ok(listener) => listener,
        Err(error) => return reply::error(StatusCode::OK, Some(id), error),
    };
    let request = ClientRequest::SubscriptionsListenRequest(listen);
    let message = ClientJsonRpcMessage::request(request, id.clone());
    let body = serde_json::to_vec(&message).expect("a request is plain JSON");
    listen_stream(app, parts, body.into(), &id, (place, listener)).await
}

/// Who sent a request; nothing if it is anybody.
fn viewer(app: &App, admitted: &Admitted) -> Option<Arc<Viewer>> {
    let identity = admitted.token.map(|_| admitted.identity.clone())?;
    Some(app.pipeline.viewers.request(identity))
}

/// Whether some arguments of a tool must be repeated in headers.
fn has_header_parameters(app: &App, tool: &str, parts: &request::Parts) -> bool {
    let viewer = viewer(app, &Admitted::of(&parts.extensions));
    let labels = viewer.map(|viewer| viewer.labels()).unwrap_or_default();
    let tool = app.pipeline.catalog.tool(tool, &labels);
    tool.is_some_and(|tool| {
        serde_json::to_string(&tool.input_schema).is_ok_and(|it| it.contains("\"x-mcp-header\""))
    })
}

/// Lets the protocol library answer a request, unless the server stops before it does.
async fn serve(
    app: &Arc<App>,
    request: Request<Full<Bytes>>,
    (id, beside): (RequestId, Beside),
    share: Share,
) -> Response {
    let origin = Line::peer(request.extensions()).map(Origin::of);
    let under_way = app.under_way.token();
    // The library asks a handler for tools before it has a request, so it must know who asks.
    let viewer = viewer(app, &Admitted::of(request.extensions()));
    let own = viewer.map(|viewer| service(app.pipeline.clone(), &app.config, Some(viewer)));
    let service = own.as_ref().unwrap_or(&app.modern);
    let response = tokio::select! {
        biased;
        response = service.handle(request) => response,
        () = app.cut.cancelled() => {
            let response = reply::error(StatusCode::SERVICE_UNAVAILABLE, Some(id), stopping());
            return retry_later(response);
        }
    };
    if is_stream(&response) {
        return response.map(|body| {
            Body::new(Answering {
                body: Some(body),
                id,
                beside,
                cut: app.cut.clone(),
                cutting: None,
                budget: app.budget.clone(),
                origin,
                _under_way: under_way,
                _share: share,
            })
        });
    }
    finish(app, response, (id, beside), origin).await
}

/// Counts an answer in the budget, and turns the library's plain-text errors into JSON-RPC errors.
async fn finish(
    app: &App,
    response: LibraryResponse,
    (id, beside): (RequestId, Beside),
    origin: Option<Origin>,
) -> Response {
    let (parts, body) = response.into_parts();
    let bytes = match body.collect().await {
        Ok(bytes) => bytes.to_bytes(),
        Err(never) => match never {},
    };
    let is_json = parts
        .headers
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    if !is_json && !parts.status.is_success() {
        let details = String::from_utf8_lossy(&bytes);
        return reply::refuse_request(parts.status, Some(id), &details);
    }
    let part = part_of(&bytes);
    let written = part.and_then(|part| beside.take_answer(part));
    let bytes = written.map_or(bytes, Bytes::from);
    let is_error = parts.status != StatusCode::OK || part == Some(Part::Error);
    let Some(bytes) = app.budget.answer(origin, bytes) else {
        let error = reply::too_large_now();
        return retry_later(reply::error(StatusCode::SERVICE_UNAVAILABLE, Some(id), error));
    };
    let mut response = Response::from_parts(parts, Body::from(bytes));
    response.extensions_mut().insert(RequestFacts { is_error, ..RequestFacts::default() });
    response
}

/// The kind of an answer; `None` if the message is not one. It is read only as far as necessary,
/// because an answer may be megabytes long.
fn part_of(message: &[u8]) -> Option<Part> {
    struct Members<'a>(&'a mut Option<Part>);
    impl<'de> serde::de::Visitor<'de> for Members<'_> {
        type Value = ();

        fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            formatter.write_str("a message")
        }

        fn visit_map<M: serde::de::MapAccess<'de>>(self, mut members: M) -> Result<(), M::Error> {
            while let Some(name) = members.next_key::<String>()? {
                *self.0 = match name.as_str() {
                    "result" => Some(Part::Result),
                    "error" => Some(Part::Error),
                    _ => None,
                };
                if self.0.is_some() || name == "method" {
                    break;
                }
                members.next_value::<serde::de::IgnoredAny>()?;
            }
            Ok(())
        }
    }
    let mut part = None;
    let mut reader = serde_json::Deserializer::from_slice(message);
    // The rest is not read, which the reader reports as an error.
    drop(serde::Deserializer::deserialize_map(&mut reader, Members(&mut part)));
    part
}

type LibraryBody = http_body_util::combinators::BoxBody<Bytes, Infallible>;
type LibraryResponse = http::Response<LibraryBody>;

fn is_stream(response: &LibraryResponse) -> bool {
    let kind = response.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// An answer of several messages; if the server stops before the last one, an error is the last.
struct Answering {
    /// `None` after it was cut off.
    body: Option<LibraryBody>,
    id: RequestId,
    beside: Beside,
    cut: CancellationToken,
    cutting: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
    budget: Arc<Budget>,
    origin: Option<Origin>,
    _under_way: TaskTrackerToken,
    /// The memory of the request counts until it is answered.
    _share: Share,
}

impl http_body::Body for Answering {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        if let Poll::Ready(frame) = Pin::new(body).poll_frame(context) {
            let Some(Ok(frame)) = frame else { return Poll::Ready(frame) };
            let Ok(data) = frame.into_data() else { return Poll::Ready(None) };
            let data = this.written(data);
            let counted = this.budget.answer(this.origin, data);
            let data = counted.unwrap_or_else(|| this.end(reply::too_large_now()));
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        let cutting =
            this.cutting.get_or_insert_with(|| Box::pin(this.cut.clone().cancelled_owned()));
        std::task::ready!(cutting.as_mut().poll(context));
        Poll::Ready(Some(Ok(Frame::data(this.end(stopping())))))
    }
}

impl Answering {
    /// An event of the library, or the replacement of its last.
    fn written(&self, event: Bytes) -> Bytes {
        if !self.beside.has_answer() {
            return event;
        }
        let part = notice::message(&event).and_then(part_of);
        let message = part.and_then(|part| self.beside.take_answer(part));
        message.map_or(event, |message| notice::event(&message))
    }

    /// Ends with this error.
    fn end(&mut self, error: ErrorData) -> Bytes {
        self.body = None;
        let error = ServerJsonRpcMessage::error(error, Some(self.id.clone()));
        notice::event(&serde_json::to_vec(&error).expect("an error is plain JSON"))
    }
}

/// Lets the protocol library check and acknowledge the request, then continues with the stream.
async fn listen_stream(
    app: &Arc<App>,
    parts: request::Parts,
    body: Bytes,
    id: &RequestId,
    (mut place, listener): (ListenPlace, Listener),
) -> Response {
    let line = Line::of(&parts.extensions, parts.version);
    let origin = Line::peer(&parts.extensions).map(Origin::of);
    let answer = app.modern.handle(Request::from_parts(parts, Full::new(body))).await;
    if answer.status() != StatusCode::OK || !is_stream(&answer) {
        return finish(app, answer, (id.clone(), Beside::default()), origin).await;
    }
    // The whole answer is read, although only its first event is sent: the library's service ends
    // by itself only if its last event is read.
    let events = match answer.into_body().collect().await {
        Ok(events) => events.to_bytes(),
        Err(never) => match never {},
    };
    let Some(acknowledgement) = notice::events(&events).next() else {
        let error = ErrorData::internal_error("Internal error", None);
        return reply::error(StatusCode::INTERNAL_SERVER_ERROR, Some(id.clone()), error);
    };
    let outbox = listener.outbox().clone();
    let last = final_result(&app.pipeline, id);
    // A copy: the library's bytes are part of a larger buffer, which would live as long.
    let first = Bytes::copy_from_slice(&acknowledgement);
    place.take(listener);
    stream::answer(outbox, (first, Some(last)), app.config.keep_alive, line, place)
}

/// The last event of a stream that the server ends.
fn final_result(pipeline: &Arc<Pipeline>, id: &RequestId) -> Bytes {
    let mut result = SubscriptionsListenResult::complete(id.clone());
    result.meta.set_server_info(Handler::stateless(pipeline.clone(), None).get_info().server_info);
    let result = ServerResult::SubscriptionsListenResult(result);
    let message = ServerJsonRpcMessage::response(result, id.clone());
    notice::event(&serde_json::to_vec(&message).expect("a result is plain JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_known_by_its_first_members() {
        let check =
            |message: &str, part| assert_eq!(part_of(message.as_bytes()), part, "{message}");
        let (error, result) = (Some(Part::Error), Some(Part::Result));
        check(r#"{"jsonrpc":"2.0","id":[{"result":1}],"error":{"code":1}}"#, error);
        check(r#"{"error":"#, error);
        check(r#"{"jsonrpc":"2.0","id":1,"result":{"error":1},"error":2}"#, result);
        check(r#"{"jsonrpc":"2.0","id":"error"}"#, None);
        check(r#"{"jsonrpc":"2.0","method":"x","params":{"result":1},"result":{}}"#, None);
        check("[]", None);
        check("", None);
    }
}
