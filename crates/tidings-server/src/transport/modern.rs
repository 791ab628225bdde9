//! Requests of modern clients over HTTP: each stands for itself.
//!
//! The protocol library checks and answers them. It checks and acknowledges a listen request too,
//! but then its service ends and the stream goes on with bytes from the listener's outbox.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{Request, StatusCode, header, request};
use http_body_util::{BodyExt as _, Full};
use rmcp::ServerHandler as _;
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorCode, ErrorData, GetMeta, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage, ServerResult, SubscriptionsListenResult,
};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use crate::era;
use crate::handler::{Handler, accept_filter};
use crate::notice;
use crate::path::{Core, Listener};
use crate::transport::http::{App, HttpConfig, ListenPlace};
use crate::transport::legacy::VERSION;
use crate::transport::line::Line;
use crate::transport::reply;
use crate::transport::stream::Stream;

/// The protocol library's own HTTP service, for requests that need no session.
pub(crate) type Service = StreamableHttpService<Handler, NeverSessionManager>;

/// The service of one server. Host and origin were checked before it is asked.
pub(crate) fn service(core: Arc<Core>, config: &HttpConfig) -> Service {
    let library = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .with_sse_keep_alive(Some(config.keep_alive))
        .with_sse_retry(None)
        .with_max_request_body_bytes(config.body_limit)
        .with_cancellation_token(core.stopped.clone())
        .disable_allowed_hosts();
    let factory = move || Ok(Handler::stateless(core.clone()));
    StreamableHttpService::new(factory, Arc::default(), library)
}

/// Whether a message is a modern client's: its own metadata says so, or the header.
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
    parts: request::Parts,
    message: ClientJsonRpcMessage,
    body: Bytes,
) -> Response {
    let JsonRpcMessage::Request(request) = message else {
        // No notification of a client means anything here, and none is refused: older libraries
        // send `notifications/cancelled` without the headers a request needs.
        return reply::accepted();
    };
    match request.request {
        ClientRequest::InitializeRequest(_) => {
            let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "initialize", None);
            reply::error(StatusCode::NOT_FOUND, Some(request.id), error)
        }
        ClientRequest::SubscriptionsListenRequest(mut listen) => {
            let id = request.id;
            let filter = &mut listen.params.notifications;
            let place = app.listen_place().filter(|_| !app.closing.is_cancelled());
            let Some(place) = place else {
                app.core.metrics.refused.inc();
                let error = ErrorData::internal_error("Too many listeners", None);
                return reply::error(StatusCode::SERVICE_UNAVAILABLE, Some(id), error);
            };
            let listener = match accept_filter(&app.core, &id, filter).await {
                Ok(listener) => listener,
                Err(error) => return reply::error(StatusCode::OK, Some(id), error),
            };
            let request = ClientRequest::SubscriptionsListenRequest(listen);
            let message = ClientJsonRpcMessage::request(request, id.clone());
            let body = serde_json::to_vec(&message).expect("a request is plain JSON");
            listen_stream(app, parts, body.into(), &id, (place, listener)).await
        }
        _ => {
            let request = Request::from_parts(parts, Full::new(body));
            app.modern.handle(request).await.map(Body::new)
        }
    }
}

/// Lets the protocol library check and acknowledge the request, then goes on by itself.
async fn listen_stream(
    app: &Arc<App>,
    parts: request::Parts,
    body: Bytes,
    id: &RequestId,
    (mut place, listener): (ListenPlace, Listener),
) -> Response {
    let line = Line::of(&parts.extensions, parts.version);
    let answer = app.modern.handle(Request::from_parts(parts, Full::new(body))).await;
    let is_stream = answer
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
    if answer.status() != StatusCode::OK || !is_stream {
        return answer.map(Body::new);
    }
    // The whole answer is read, though only its first event is sent on: the library's service ends
    // by itself only if somebody takes its last words.
    let events = match answer.into_body().collect().await {
        Ok(events) => events.to_bytes(),
        Err(never) => match never {},
    };
    let Some(acknowledgement) = notice::events(&events).next() else {
        let error = ErrorData::internal_error("Internal error", None);
        return reply::error(StatusCode::INTERNAL_SERVER_ERROR, Some(id.clone()), error);
    };
    let outbox = listener.outbox().clone();
    let last = final_result(&app.core, id);
    // A copy: the library's bytes stand in a larger buffer, which would live as long.
    let first = Bytes::copy_from_slice(&acknowledgement);
    place.take(listener);
    let stream = Stream::new(outbox, (first, Some(last)), app.config.keep_alive, line, place);
    reply::stream(Body::new(stream))
}

/// How a stream ends that the server ends itself.
fn final_result(core: &Arc<Core>, id: &RequestId) -> Bytes {
    let mut result = SubscriptionsListenResult::complete(id.clone());
    result.meta.set_server_info(Handler::stateless(core.clone()).get_info().server_info);
    let result = ServerResult::SubscriptionsListenResult(result);
    let message = ServerJsonRpcMessage::response(result, id.clone());
    notice::event(&serde_json::to_string(&message).expect("a result is plain JSON"))
}
