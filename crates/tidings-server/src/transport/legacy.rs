//! Requests of legacy clients over HTTP: a handshake, a session, and a stream of its own.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderValue, Request, StatusCode};
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, EmptyResult, ErrorData, GetExtensions,
    InitializeRequest, JsonRpcMessage, JsonRpcRequest, ProtocolVersion, RequestId,
    ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::serve_directly_with_ct;
use serde_json::json;

use crate::context::{Begin, Release};
use crate::era;
use crate::handler::Handler;
use crate::tokens::Admitted;
use crate::transport::body::retry_later;
use crate::transport::budget::Share;
use crate::transport::call::{self, AnswerForm, CallTransport, PendingAnswer};
use crate::transport::http::{App, RequestFacts, stopping};
use crate::transport::lenient::Unnamed;
use crate::transport::line::Line;
use crate::transport::session::Session;
use crate::transport::shares::{Origin, Scarce};
use crate::transport::{reply, stream};

const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";
pub(crate) const VERSION: &str = "mcp-protocol-version";

/// Answers one message of a legacy client.
pub(crate) async fn post(
    app: &Arc<App>,
    parts: &Parts,
    message: ClientJsonRpcMessage,
    share: Share,
) -> Response {
    let headers = &parts.headers;
    if let Some(refusal) = refuse_version(headers) {
        return refusal;
    }
    if let JsonRpcMessage::Request(request) = &message
        && matches!(request.request, ClientRequest::InitializeRequest(_))
    {
        return initialize(app, parts, message, share).await;
    }
    let id = match &message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    };
    let session = match session(app, headers, &parts.extensions, id) {
        Ok(session) => session,
        Err(refusal) => return ping(&message).unwrap_or(*refusal),
    };
    let mut response = match message {
        JsonRpcMessage::Request(request) => serve(app, &session, request, share).await,
        JsonRpcMessage::Notification(ref notification) => {
            match &notification.notification {
                ClientNotification::InitializedNotification(_) => session.connection.greet(),
                ClientNotification::CancelledNotification(cancelled) => {
                    if let Some(id) = &cancelled.params.request_id {
                        session.cancelled(id, &message, |ending| app.own(ending));
                    }
                }
                _ => {}
            }
            reply::accepted()
        }
        answer @ (JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_)) => {
            session.answered(answer);
            reply::accepted()
        }
    };
    name_session(&mut response, &session);
    response
}

/// Notes the session in an answer, for the log.
fn name_session(response: &mut Response, session: &Session) {
    let seen = response.extensions_mut().get_or_insert_default::<RequestFacts>();
    seen.session = Some(session.short_id().to_owned());
}

/// Opens the stream of a session, or continues the interrupted stream of a request.
pub(crate) fn get(app: &App, request: &Request<Body>) -> Response {
    let headers = request.headers();
    if let Some(refusal) = refuse_version(headers) {
        return refusal;
    }
    let session = match session(app, headers, request.extensions(), None) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let last = headers.get(LAST_EVENT).and_then(|id| id.to_str().ok());
    if let Some((number, sequence)) = last.and_then(call::parse_event_id) {
        let Some(call) = session.call(number) else {
            // The answer is not kept any more. After an error clients would retry again and again;
            // after an empty stream they do not.
            return reply::stream(Body::empty());
        };
        let guard = session.open_stream();
        return reply::stream(Body::new(call.read(sequence, None, app.config.keep_alive, guard)));
    }
    let (Some(outbox), Some(version)) =
        (session.connection.outbox().cloned(), session.connection.version())
    else {
        return reply::refuse(StatusCode::BAD_REQUEST, "the session was not initialized");
    };
    if let Some(seen) = last.and_then(|last| last.strip_prefix('s')?.parse().ok()) {
        outbox.resume_after(seen);
    }
    let retry = app.config.retry.as_millis();
    let first: Bytes = if era::primes_streams(version) {
        format!("id: s{}\nretry: {retry}\ndata: \n\n", outbox.sent()).into()
    } else {
        format!("retry: {retry}\n\n").into()
    };
    let guard = session.open_stream();
    let line = Line::of(request.extensions(), request.version());
    stream::answer(outbox, (first, None), app.config.keep_alive, line, guard)
}

/// Ends a session.
pub(crate) fn delete(app: &App, request: &Request<Body>) -> Response {
    match session(app, request.headers(), request.extensions(), None) {
        Ok(session) => {
            app.sessions.remove(&session.id);
            reply::empty(StatusCode::NO_CONTENT)
        }
        Err(refusal) => *refusal,
    }
}

async fn initialize(
    app: &Arc<App>,
    parts: &Parts,
    message: ClientJsonRpcMessage,
    share: Share,
) -> Response {
    let JsonRpcMessage::Request(mut request) = message else { return reply::accepted() };
    let id = request.id.clone();
    if let ClientRequest::InitializeRequest(initialize) = &mut request.request
        && !agree(parts.headers.get(VERSION), initialize)
    {
        let details = "the MCP-Protocol-Version header differs from the body's protocolVersion";
        let error =
            ErrorData::invalid_request("Version mismatch", Some(json!({ "details": details })));
        return reply::error(StatusCode::BAD_REQUEST, Some(id), error);
    }
    // Order: a token that may have no more sessions is refused before any session ends for it.
    let admitted = Admitted::of(&parts.extensions);
    let own = admitted.identity.limits.sessions;
    let Some(own) = app.shares.take_own(admitted.token, Scarce::Sessions, own) else {
        return full(app, id);
    };
    let origin = Line::peer(&parts.extensions).map(Origin::of);
    let take = || app.shares.take(origin, Scarce::Sessions, app.config.sessions);
    // An address that used up its share loses only its own idle sessions.
    let place = take().or_else(|| {
        let is_ended = origin.is_some() && app.sessions.end_idle(1, origin);
        is_ended.then(take).flatten()
    });
    let Some(place) = place.filter(|_| app.sessions.make_room()) else { return full(app, id) };
    let session = app.sessions.make([own, place], origin, &admitted);
    let mut response = serve(app, &session, request, share).await;
    if session.connection.peer().is_some() {
        let name = HeaderValue::from_str(&session.id).expect("a session id is plain ASCII");
        response.headers_mut().insert(SESSION, name);
        let client = session.connection.peer().map(|peer| peer.client_info.name.as_str());
        let client: Option<String> = client.map(|name| name.chars().take(64).collect());
        tracing::info!(client = client.as_deref(), session = session.short_id(), "session opened");
        name_session(&mut response, &session);
        if !app.sessions.keep(session.clone()) {
            return full(app, id);
        }
        // Order: kept, then checked, so that a token withdrawn in between ends it.
        app.follow_token_of(&session);
    }
    response
}

/// Whether the header and the body of an `initialize` name the same revision. A body without one
/// gets the header's, unless that revision has no handshake.
fn agree(header: Option<&HeaderValue>, initialize: &mut InitializeRequest) -> bool {
    let Some(header) = header.and_then(|header| header.to_str().ok()) else { return true };
    if initialize.extensions.get::<Unnamed>().is_none() {
        return header == initialize.params.protocol_version.as_str();
    }
    let header = serde_json::from_value(header.into()).ok();
    if let Some(version) =
        header.filter(|version: &ProtocolVersion| !era::is_modern(version.as_str()))
    {
        initialize.params.protocol_version = version;
    }
    true
}

/// Serves one request with a service that lives as long as the request.
async fn serve(
    app: &Arc<App>,
    session: &Arc<Session>,
    mut request: JsonRpcRequest<ClientRequest>,
    share: Share,
) -> Response {
    let id = request.id.clone();
    let Some(number) = session.number() else { return too_busy(app, id) };
    let call = PendingAnswer::new(
        number,
        session.cancel.child_token(),
        app.budget.clone(),
        session.origin,
    );
    let primes = session.connection.version().is_some_and(era::primes_streams);
    if primes {
        steer(&mut request, &call);
    }
    let (transport, inbound) = CallTransport::new(request, call.clone(), session.clone());
    session.begin(id.clone(), inbound, call.clone());
    let handler = Handler::of(app.pipeline.clone(), session.connection.clone());
    let peer = session.connection.peer().map(|peer| peer.as_ref().clone());
    let service = serve_directly_with_ct(handler, transport, peer, call.given_up.clone());
    let under_way = app.under_way.token();
    app.own(async move {
        drop(service.waiting().await);
        // The memory of the request counts until it is carried out, even if its client left.
        drop((under_way, share));
    });
    // The session is in use while somebody waits for this answer.
    let guard = session.open_stream();
    let mut waiting = Waiting { session, call: Some(&call) };
    let answer = tokio::select! {
        biased;
        () = app.cut.cancelled() => {
            let response = reply::error(StatusCode::SERVICE_UNAVAILABLE, Some(id), stopping());
            return retry_later(response);
        }
        answer = call.answer() => answer,
    };
    // From here on the client has its answer, or the id of an event to reconnect with.
    waiting.call = None;
    match answer {
        AnswerForm::Message { json, is_error } => {
            session.end(&call);
            let mut response = reply::json(StatusCode::OK, json);
            response.extensions_mut().insert(RequestFacts { is_error, ..RequestFacts::default() });
            response
        }
        AnswerForm::Stream => {
            let priming = primes.then(|| call::priming(call.number(), app.config.retry));
            reply::stream(Body::new(call.read(0, priming, app.config.keep_alive, guard)))
        }
    }
}

/// Lets the source of a request begin the stream of its answer and end it early: its client can
/// reconnect.
fn steer(request: &mut JsonRpcRequest<ClientRequest>, call: &Arc<PendingAnswer>) {
    let (released, begun) = (call.clone(), call.clone());
    let extensions = request.request.extensions_mut();
    extensions.insert(Release(Arc::new(move || released.release())));
    extensions.insert(Begin(Arc::new(move || begun.begin())));
}

/// The refusal of a request of a session that has too many under way.
fn too_busy(app: &App, id: RequestId) -> Response {
    app.pipeline.metrics.refused.inc();
    let details = "this session has too many requests under way";
    let error = ErrorData::internal_error("Too busy", Some(json!({ "details": details })));
    reply::error(StatusCode::TOO_MANY_REQUESTS, Some(id), error)
}

/// A client that waits for the beginning of an answer. If it leaves, the request is cancelled: the
/// client got no event id, so it cannot reconnect.
struct Waiting<'a> {
    session: &'a Arc<Session>,
    call: Option<&'a Arc<PendingAnswer>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(call) = self.call {
            self.session.abandon(call);
        }
    }
}

fn session(
    app: &App,
    headers: &HeaderMap,
    extensions: &Extensions,
    request: Option<RequestId>,
) -> Result<Arc<Session>, Box<Response>> {
    let Some(id) = headers.get(SESSION) else {
        let details = "begin with `initialize` and send its Mcp-Session-Id with every request";
        return Err(Box::new(reply::refuse_request(StatusCode::BAD_REQUEST, request, details)));
    };
    // The answer does not reveal that the session belongs to another token.
    let token = Admitted::of(extensions).token;
    id.to_str().ok().and_then(|id| app.sessions.get(id, token)).ok_or_else(|| {
        let details = "there is no such session, or not any more; begin again with `initialize`";
        Box::new(reply::refuse_request(StatusCode::NOT_FOUND, request, details))
    })
}

/// A ping needs no session.
fn ping(message: &ClientJsonRpcMessage) -> Option<Response> {
    let JsonRpcMessage::Request(request) = message else { return None };
    let ClientRequest::PingRequest(_) = &request.request else { return None };
    let pong = ServerResult::EmptyResult(EmptyResult {});
    let message = ServerJsonRpcMessage::response(pong, request.id.clone());
    let json = serde_json::to_vec(&message).expect("a pong is plain JSON");
    Some(reply::json(StatusCode::OK, json))
}

fn refuse_version(headers: &HeaderMap) -> Option<Response> {
    let version = headers.get(VERSION)?;
    if version.to_str().is_ok_and(era::is_known) {
        return None;
    }
    let details = "this MCP-Protocol-Version is not spoken here";
    Some(reply::refuse(StatusCode::BAD_REQUEST, details))
}

fn full(app: &App, id: RequestId) -> Response {
    app.pipeline.metrics.refused.inc();
    let details = "this server has as many sessions as it may; try again later";
    let error = ErrorData::internal_error("Too many sessions", Some(json!({ "details": details })));
    let mut response = reply::error(StatusCode::SERVICE_UNAVAILABLE, Some(id), error);
    response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from_static("30"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::intake;

    /// The revision that an `initialize` asks for, if its header and its body agree.
    fn asked(header: Option<&'static str>, params: &str) -> Option<String> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        let JsonRpcMessage::Request(request) = intake::parse(text.as_bytes()).unwrap() else {
            panic!("a request is one")
        };
        let ClientRequest::InitializeRequest(mut initialize) = request.request else {
            panic!("an initialize request is one")
        };
        agree(header.map(HeaderValue::from_static).as_ref(), &mut initialize)
            .then(|| initialize.params.protocol_version.to_string())
    }

    #[test]
    fn an_initialize_that_names_no_revision_has_that_of_its_header() {
        let check = |header, params, version: Option<&str>| {
            assert_eq!(asked(header, params).as_deref(), version, "{header:?} {params}");
        };
        check(None, "{}", Some("2025-11-25"));
        check(Some("2025-03-26"), "{}", Some("2025-03-26"));
        check(Some("2025-06-18"), r#"{"protocolVersion":null}"#, Some("2025-06-18"));
        // A revision without a handshake cannot be meant.
        check(Some("2026-07-28"), "{}", Some("2025-11-25"));
        let named = r#"{"protocolVersion":"2025-06-18"}"#;
        check(Some("2025-06-18"), named, Some("2025-06-18"));
        check(Some("2025-11-25"), named, None);
    }
}
