//! Streamable HTTP: what the protocol library asks for, over one HTTP client, with limits; and what
//! becomes of the stream of notices.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use tokio::sync::watch;

use super::agent::{self, innermost};
use super::body::{self, BodyError};
use super::choice::{self, not_modern};
use super::raw::Raw;
use super::{ConnectError, Signal, Sink, mend};
use crate::config::Config;
use crate::secret::{Secret, TokenMemory};
use crate::target::{self, HttpTarget};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
/// How much of a body that is no message is shown to a person.
const PREVIEW: usize = 160;

/// Why an HTTP exchange failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("could not reach the server: {0}")]
    Unreachable(String),
    #[error("the server wants authorisation (401)")]
    Unauthorized,
    #[error("the server forbids this (403)")]
    Forbidden,
    #[error("the server answered HTTP {status}{}", shown(.preview))]
    Status { status: u16, preview: String },
    #[error("the server answered with {0}, not with a message")]
    ContentType(String),
    #[error("the server's answer is no message{}", shown(.0))]
    NotAMessage(String),
    #[error("the server answered another request than the one it was sent")]
    OtherAnswer,
    #[error("the server's answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer broke off: {0}")]
    Broken(String),
}

fn shown(preview: &str) -> String {
    if preview.is_empty() { String::new() } else { format!(": {preview}") }
}

impl From<HttpError> for ConnectError {
    fn from(error: HttpError) -> Self {
        match error {
            HttpError::Unreachable(reason) => Self::Unreachable(reason),
            HttpError::Unauthorized => Self::Unauthorized,
            HttpError::Forbidden => Self::Forbidden,
            HttpError::Status { .. }
            | HttpError::ContentType(_)
            | HttpError::NotAMessage(_)
            | HttpError::OtherAnswer => Self::NotMcp(error.to_string()),
            HttpError::TooLarge(_) | HttpError::Broken(_) => Self::Transport(error.to_string()),
        }
    }
}

/// Where the stream of notices of a legacy session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StreamState {
    /// Not asked for yet.
    Unopened,
    /// Open.
    Open,
    /// Broken, and tried again.
    Broken,
    /// The server has none.
    Refused,
}

/// The HTTP side of one connection. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HttpClient {
    shared: Arc<Shared>,
}

struct Shared {
    client: reqwest::Client,
    url: reqwest::Url,
    target: HttpTarget,
    headers: HeaderMap,
    token: Mutex<Option<Secret>>,
    memory: Arc<TokenMemory>,
    max_message: usize,
    /// How long the server may take to say whether it is modern.
    probe: Option<Duration>,
    sink: Sink,
    /// Whether somebody wants the stream of notices; until then it is not opened.
    wanted: watch::Sender<bool>,
    stream: watch::Sender<StreamState>,
    /// Whether the server keeps a session; without one it has no stream of notices.
    has_session: AtomicBool,
    /// The last failure, for whoever must say why connecting failed.
    trouble: Mutex<Option<HttpError>>,
}

impl HttpClient {
    pub(crate) async fn new(
        target: &HttpTarget,
        config: &Config,
        sink: Sink,
        memory: &Arc<TokenMemory>,
    ) -> Result<Self, ConnectError> {
        let url = reqwest::Url::parse(&target.url)
            .ok()
            .filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
            .ok_or_else(|| ConnectError::Url(target::shown(&target.url)))?;
        let mut headers = HeaderMap::new();
        for (name, value) in &target.headers {
            let parsed = HeaderName::try_from(name.as_str())
                .ok()
                .zip(HeaderValue::try_from(value.reveal()).ok());
            let (key, mut value) = parsed.ok_or_else(|| ConnectError::Header(name.clone()))?;
            value.set_sensitive(true);
            headers.append(key, value);
        }
        let client = agent::client(&url)?;
        let token = match &target.token {
            Some(source) => source.token().await,
            None => None,
        };
        if memory.is_other(token.as_ref()) {
            sink(Signal::Reauthorized);
        }
        let shared = Shared {
            client,
            url,
            target: target.clone(),
            headers,
            token: Mutex::new(token),
            memory: memory.clone(),
            max_message: config.max_message,
            probe: choice::probe(config),
            sink,
            wanted: watch::Sender::new(false),
            stream: watch::Sender::new(StreamState::Unopened),
            has_session: AtomicBool::new(false),
            trouble: Mutex::new(None),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Opens the stream of notices, and waits until that worked or did not.
    pub(crate) async fn want_stream(&self) {
        let is_first = !self.shared.wanted.send_replace(true);
        if !self.shared.has_session.load(Ordering::Relaxed) {
            if is_first {
                (self.shared.sink)(Signal::NoStream("it keeps no session".into()));
            }
            return;
        }
        let mut state = self.shared.stream.subscribe();
        // Invariant: the sender is ours, so it is there.
        let _ = state.wait_for(|state| *state != StreamState::Unopened).await;
    }

    /// Whether it is known that the server has no stream of notices.
    pub(crate) fn has_no_stream(&self) -> bool {
        !self.shared.has_session.load(Ordering::Relaxed)
            || *self.shared.stream.borrow() == StreamState::Refused
    }

    /// Why an exchange failed last.
    pub(crate) fn trouble(&self) -> Option<HttpError> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes why an exchange failed.
    fn fail(&self, error: HttpError) -> StreamableHttpError<HttpError> {
        let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = Some(error.clone());
        StreamableHttpError::Client(error)
    }

    /// Sends a request; if it is not authorised, once more with the token as it is now.
    async fn send(
        &self,
        method: Method,
        body: Option<Vec<u8>>,
        headers: HeaderMap,
    ) -> Result<reqwest::Response, HttpError> {
        let token = self.token();
        let response = self.send_with(&method, body.clone(), &headers, token.as_ref()).await?;
        let Some(source) = &self.shared.target.token else { return Ok(response) };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let renewed = source.token().await;
        self.shared.token.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&renewed);
        if self.shared.memory.is_other(renewed.as_ref()) {
            (self.shared.sink)(Signal::Reauthorized);
        }
        self.send_with(&method, body, &headers, renewed.as_ref()).await
    }

    async fn send_with(
        &self,
        method: &Method,
        body: Option<Vec<u8>>,
        headers: &HeaderMap,
        token: Option<&Secret>,
    ) -> Result<reqwest::Response, HttpError> {
        let mut request = self.shared.client.request(method.clone(), self.shared.url.clone());
        request = request.headers(self.shared.headers.clone()).headers(headers.clone());
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.reveal()))
                .map_err(|_| HttpError::Unauthorized)?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, JSON).body(body);
        }
        request.send().await.map_err(|error| HttpError::Unreachable(innermost(&error)))
    }

    fn token(&self) -> Option<Secret> {
        self.shared.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The body as text, as far as a person would read it.
    async fn preview(response: reqwest::Response) -> (u16, Vec<u8>) {
        let status = response.status().as_u16();
        let body = body::collect(response.bytes_stream(), 64 << 10).await.unwrap_or_default();
        (status, body)
    }

    /// Sends a message. The question whether the server is modern does not wait for long.
    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        let probe = self.shared.probe.zip(probed(&message).cloned());
        let Some((patience, id)) = probe else {
            return self.exchange(message, session, custom).await;
        };
        let answered =
            tokio::time::timeout(patience, self.exchange(message, session, custom)).await;
        answered.unwrap_or_else(|_| {
            let legacy = not_modern(id, "no answer to server/discover in time".to_owned());
            Ok(StreamableHttpPostResponse::Json(legacy, None))
        })
    }

    async fn exchange(
        &self,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        let body = serde_json::to_vec(&message)?;
        let headers = headers(custom, session.as_deref(), None);
        let response =
            self.send(Method::POST, Some(body), headers).await.map_err(|error| self.fail(error))?;
        let status = response.status();
        let wants_answer = matches!(message, ClientJsonRpcMessage::Request(_));
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !status.is_success() {
            return self.refused(&message, session.is_some(), response).await;
        }
        let given = header(&response, &SESSION);
        if given.is_some() {
            self.shared.has_session.store(true, Ordering::Relaxed);
        }
        match content_type(&response).as_str() {
            EVENT_STREAM => {
                let events = self.events(response, Raw::asked(&message));
                Ok(StreamableHttpPostResponse::Sse(events, given))
            }
            JSON => {
                let most = self.shared.max_message;
                let body = body::collect(response.bytes_stream(), most).await;
                let body = body.map_err(|error| self.fail(error.into()))?;
                if let Some((id, raw)) = Raw::asked(&message) {
                    raw.keep(&id, &body);
                }
                match mend::parse(&body) {
                    Ok(answer) => match belongs(&message, answer) {
                        Some(answer) => Ok(StreamableHttpPostResponse::Json(answer, given)),
                        None => Err(self.fail(HttpError::OtherAnswer)),
                    },
                    // Nobody waits for an answer to this one.
                    Err(_) if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
                    Err(_) => Err(self.fail(HttpError::NotAMessage(preview(&body)))),
                }
            }
            _ if !wants_answer => Ok(StreamableHttpPostResponse::Accepted),
            other => Err(self.fail(HttpError::ContentType(other.to_owned()))),
        }
    }

    /// What an answer that is no success means.
    async fn refused(
        &self,
        message: &ClientJsonRpcMessage,
        has_session: bool,
        response: reqwest::Response,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        let status = response.status();
        match status {
            StatusCode::UNAUTHORIZED => return Err(self.fail(HttpError::Unauthorized)),
            StatusCode::FORBIDDEN => return Err(self.fail(HttpError::Forbidden)),
            StatusCode::NOT_FOUND if has_session => {
                (self.shared.sink)(Signal::Ended(
                    "the server does not know the session any longer".into(),
                ));
                return Err(StreamableHttpError::SessionExpired);
            }
            _ => {}
        }
        let (code, body) = Self::preview(response).await;
        let parsed = serde_json::from_slice::<ServerJsonRpcMessage>(&body).ok();
        let error = match parsed {
            Some(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let ClientJsonRpcMessage::Request(request) = message else {
            return Err(self.fail(HttpError::Status { status: code, preview: preview(&body) }));
        };
        if let Some(mut error) = error {
            // A server that does not understand the request cannot always name it.
            error.id = Some(request.id.clone());
            return Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None));
        }
        let failure = HttpError::Status { status: code, preview: preview(&body) };
        if let Some(id) = probed(message).filter(|_| status.is_client_error()) {
            // A legacy server may refuse what it does not know in any way it likes.
            let legacy = not_modern(id.clone(), failure.to_string());
            let _ = self.fail(failure);
            return Ok(StreamableHttpPostResponse::Json(legacy, None));
        }
        Err(self.fail(failure))
    }

    async fn open_stream(
        &self,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<HttpError>> {
        let mut wanted = self.shared.wanted.subscribe();
        // Answers that broke off are resumed by a GET too. Only one stream is the stream of notices,
        // and it comes back after it broke.
        let is_answer = last_event.is_some() && *self.shared.stream.borrow() != StreamState::Broken;
        if !is_answer {
            // Invariant: the sender is ours, so it is there.
            let _ = wanted.wait_for(|wanted| *wanted).await;
        }
        let headers = headers(custom, session.as_deref(), last_event.as_deref());
        let response = match self.send(Method::GET, None, headers).await {
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
            return Ok(self.events(response, None));
        }
        if is_answer {
            let status = status.as_u16();
            return Err(self.fail(HttpError::Status { status, preview: String::new() }));
        }
        if status == StatusCode::NOT_FOUND && session.is_some() && self.was_open() {
            (self.shared.sink)(Signal::Ended(
                "the server does not know the session any longer".into(),
            ));
            return Err(StreamableHttpError::SessionExpired);
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
        // Asking again would not change it.
        let reason = match status {
            StatusCode::METHOD_NOT_ALLOWED => "it has no stream for them".to_owned(),
            status if status.is_success() => format!("its stream is {kind}"),
            status => format!("opening the stream was answered with HTTP {}", status.as_u16()),
        };
        self.shared.stream.send_replace(StreamState::Refused);
        (self.shared.sink)(Signal::NoStream(reason.into()));
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }

    /// The events of a body, each as the protocol library will understand it.
    fn events(
        &self,
        response: reqwest::Response,
        asked: Option<(RequestId, Raw)>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let stream = body::bounded(response.bytes_stream(), self.shared.max_message);
        let understood = move |mut event: Sse| {
            if let (Some((id, raw)), Some(data)) = (&asked, &event.data) {
                raw.keep(id, data.as_bytes());
            }
            if let Some(translated) = event.data.as_deref().and_then(mend::translated) {
                event.data = Some(translated);
            }
            event
        };
        SseStream::from_bytes_stream(stream).map(move |event| event.map(&understood)).boxed()
    }

    /// The stream could not be opened, or not again.
    fn stream_failed(&self, reason: &str) {
        let was_open = self.was_open();
        self.shared.stream.send_replace(StreamState::Broken);
        if was_open {
            (self.shared.sink)(Signal::Ended(reason.into()));
        } else {
            (self.shared.sink)(Signal::NoStream(reason.into()));
        }
    }

    fn was_open(&self) -> bool {
        matches!(*self.shared.stream.borrow(), StreamState::Open | StreamState::Broken)
    }

    fn opened(&self, response: reqwest::Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let is_again = self.was_open();
        self.shared.stream.send_replace(StreamState::Open);
        if is_again {
            (self.shared.sink)(Signal::StreamBack);
        }
        let end = StreamEnd(self.clone());
        // The guard lives in the stream: when the stream ends, or is not wanted any longer, it says so.
        self.events(response, None)
            .map(move |event| {
                let _ = &end;
                event
            })
            .boxed()
    }
}

/// Says that the stream of notices is over.
struct StreamEnd(HttpClient);

impl Drop for StreamEnd {
    fn drop(&mut self) {
        let shared = &self.0.shared;
        shared.stream.send_replace(StreamState::Broken);
        (shared.sink)(Signal::StreamLost);
    }
}

impl StreamableHttpClient for HttpClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, StreamableHttpError<HttpError>> {
        self.post(message, session_id, custom_headers).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), StreamableHttpError<HttpError>> {
        let headers = headers(custom_headers, Some(&session_id), None);
        // Whatever the server says: we are leaving.
        let _ = self.send(Method::DELETE, None, headers).await;
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, StreamableHttpError<HttpError>> {
        self.open_stream(session_id, last_event_id, custom_headers).await
    }
}

fn headers(
    custom: HashMap<HeaderName, HeaderValue>,
    session: Option<&str>,
    last_event: Option<&str>,
) -> HeaderMap {
    let mut headers: HeaderMap = custom.into_iter().collect();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
    for (name, value) in [(SESSION, session), (LAST_EVENT, last_event)] {
        // A server that gives something that is no header value gets it back from nobody.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

fn header(response: &reqwest::Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// The answer, if it is one to this message. Without this check the answer to another request would
/// leave ours waiting for ever.
fn belongs(
    sent: &ClientJsonRpcMessage,
    answer: ServerJsonRpcMessage,
) -> Option<ServerJsonRpcMessage> {
    let ClientJsonRpcMessage::Request(request) = sent else { return Some(answer) };
    match answer {
        ServerJsonRpcMessage::Response(response) => {
            is_same(&request.id, &response.id).then_some(ServerJsonRpcMessage::Response(response))
        }
        ServerJsonRpcMessage::Error(mut error) => {
            // A server that does not understand a request cannot always name it.
            let id = error.id.get_or_insert_with(|| request.id.clone());
            is_same(&request.id, id).then_some(ServerJsonRpcMessage::Error(error))
        }
        other => Some(other),
    }
}

/// The question whether the server is modern, if this is it.
fn probed(message: &ClientJsonRpcMessage) -> Option<&RequestId> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    matches!(request.request, ClientRequest::DiscoverRequest(_)).then_some(&request.id)
}

/// Some servers give numbers back as text.
fn is_same(one: &RequestId, other: &RequestId) -> bool {
    one.to_string() == other.to_string()
}

/// The type without its parameters; `nothing` if there is none.
fn content_type(response: &reqwest::Response) -> String {
    let full = header(response, &CONTENT_TYPE).unwrap_or_else(|| "no content type".to_owned());
    full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn preview(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(PREVIEW) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

impl From<BodyError> for HttpError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(most) => Self::TooLarge(most),
            BodyError::Broken(reason) => Self::Broken(reason),
        }
    }
}
