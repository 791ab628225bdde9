//! HTTP answers that are not streams.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use rmcp::model::{ErrorData, JsonRpcError, RequestId};
use serde_json::json;

/// The headers of a stream: an event stream that proxies must not buffer.
pub(crate) fn stream(body: Body) -> Response {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// One JSON-RPC message.
pub(crate) fn json(status: StatusCode, body: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// A JSON-RPC error; without an id if the request's is unknown.
pub(crate) fn error(status: StatusCode, id: Option<RequestId>, error: ErrorData) -> Response {
    let message = JsonRpcError::new(id, error);
    json(status, serde_json::to_vec(&message).expect("an error is plain JSON"))
}

/// An error of the transport, in words.
pub(crate) fn refuse(status: StatusCode, details: &str) -> Response {
    refuse_request(status, None, details)
}

/// An error of the transport for a request whose id was read.
pub(crate) fn refuse_request(status: StatusCode, id: Option<RequestId>, details: &str) -> Response {
    let message = status.canonical_reason().unwrap_or("Refused");
    error(status, id, ErrorData::invalid_request(message, Some(json!({ "details": details }))))
}

/// The error in place of an answer to a request that was carried out.
pub(crate) fn too_large_now() -> ErrorData {
    let details = "the request was carried out, but too many bytes are under way to send its \
                   answer; ask again in a moment";
    ErrorData::internal_error("Too busy", Some(json!({ "details": details })))
}

/// Accepted, without a body.
pub(crate) fn accepted() -> Response {
    empty(StatusCode::ACCEPTED)
}

/// A status without a body.
pub(crate) fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
