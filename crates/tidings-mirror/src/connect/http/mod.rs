//! Streamable HTTP for the protocol library, over one HTTP client with limits; and the stream of
//! notices.

mod error;
mod post;
mod stream;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use tokio::sync::{Mutex as AsyncMutex, watch};

pub(crate) use self::error::HttpError;
use self::stream::{EventStream, StreamState};
use super::agent::{self, innermost};
use super::choice;
use super::wire::Wire;
use super::{ConnectError, Signal};
use crate::config::Config;
use crate::history::{ClosedBy, Happened, shortened};
use crate::secret::{Secret, TokenMemory, TokenSource};
use crate::target::{self, HttpTarget};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const EVENT_STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";

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
    /// Held while the token is renewed.
    renewing: AsyncMutex<()>,
    memory: Arc<TokenMemory>,
    max_message: usize,
    /// Time for the server to answer `server/discover`.
    probe: Option<Duration>,
    wire: Wire,
    /// Whether the stream of notices is wanted; until then it is not opened.
    wanted: watch::Sender<bool>,
    stream: watch::Sender<StreamState>,
    /// Whether the server keeps a session. Without one there is no stream of notices.
    has_session: AtomicBool,
    /// The number of event streams opened.
    streams: AtomicU64,
    /// Whether the end of the session is logged.
    is_session_over: AtomicBool,
    /// The last failure, to report why connecting failed.
    trouble: Mutex<Option<HttpError>>,
}

/// Whether a request may reach the server twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repeat {
    /// Repeating it changes nothing.
    Harmless,
    /// It may act twice.
    Harmful,
}

/// One request, without the parts common to all.
struct HttpRequest<'a> {
    method: &'a Method,
    body: Option<Bytes>,
    headers: &'a HeaderMap,
}

/// Why a request has no answer.
struct Failed {
    error: HttpError,
    /// Whether a connection was open, without an answer.
    was_connected: bool,
}

impl HttpClient {
    pub(crate) async fn new(
        target: &HttpTarget,
        config: &Config,
        wire: Wire,
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
            wire.tell(Signal::Reauthorized);
        }
        let shared = Shared {
            client,
            url,
            target: target.clone(),
            headers,
            token: Mutex::new(token),
            renewing: AsyncMutex::default(),
            memory: memory.clone(),
            max_message: config.max_message,
            probe: choice::probe(config),
            wire,
            wanted: watch::Sender::new(false),
            stream: watch::Sender::new(StreamState::Unopened),
            has_session: AtomicBool::new(false),
            streams: AtomicU64::new(0),
            is_session_over: AtomicBool::new(false),
            trouble: Mutex::new(None),
        };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// Opens the stream of notices, and waits for the outcome.
    pub(crate) async fn want_stream(&self) {
        let is_first = !self.shared.wanted.send_replace(true);
        if !self.shared.has_session.load(Ordering::Relaxed) {
            if is_first {
                self.shared.wire.tell(Signal::NoStream("it keeps no session".into()));
            }
            return;
        }
        let mut state = self.shared.stream.subscribe();
        // Invariant: the sender is ours, so it exists.
        let _ = state.wait_for(|state| *state != StreamState::Unopened).await;
    }

    /// Whether the server is known to have no stream of notices.
    pub(crate) fn has_no_stream(&self) -> bool {
        !self.shared.has_session.load(Ordering::Relaxed)
            || *self.shared.stream.borrow() == StreamState::Refused
    }

    /// The last failure.
    pub(crate) fn trouble(&self) -> Option<HttpError> {
        self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Records a failure.
    fn fail(&self, error: HttpError) -> StreamableHttpError<HttpError> {
        let mut trouble = self.shared.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        *trouble = Some(error.clone());
        StreamableHttpError::Client(error)
    }

    /// Sends a request; if it is refused with 401, once more with the current token.
    async fn send(
        &self,
        method: Method,
        body: Option<Bytes>,
        headers: HeaderMap,
        repeat: Repeat,
    ) -> Result<reqwest::Response, HttpError> {
        let token = self.token();
        let request = HttpRequest { method: &method, body, headers: &headers };
        let response = self.send_twice(&request, token.as_ref(), repeat).await?;
        let Some(source) = &self.shared.target.token else { return Ok(response) };
        if response.status() != StatusCode::UNAUTHORIZED {
            return Ok(response);
        }
        let renewed = self.renewed(source, token.as_ref()).await;
        self.retried(&method, "the server required authorisation");
        self.send_twice(&request, renewed.as_ref(), repeat).await
    }

    /// The token after this one was refused. Requests that are refused together ask for it once.
    async fn renewed(&self, source: &TokenSource, refused: Option<&Secret>) -> Option<Secret> {
        let _turn = self.shared.renewing.lock().await;
        let now = self.token();
        if now.as_ref() != refused {
            return now;
        }
        let renewed = source.token().await;
        self.shared.token.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&renewed);
        if self.shared.memory.is_other(renewed.as_ref()) {
            self.shared.wire.tell(Signal::Reauthorized);
        }
        renewed
    }

    /// Sends a request. If the server closed the connection before answering, a request that can be
    /// repeated is sent once more on a new connection: servers and proxies drop idle connections.
    ///
    /// The HTTP client itself resends requests that were not sent at all.
    async fn send_twice(
        &self,
        request: &HttpRequest<'_>,
        token: Option<&Secret>,
        repeat: Repeat,
    ) -> Result<reqwest::Response, HttpError> {
        match self.send_with(&self.shared.client, request, token).await {
            Ok(response) => Ok(response),
            Err(failed) if failed.was_connected && repeat == Repeat::Harmless => {
                self.retried(request.method, "the connection was closed before the answer");
                // A new client: the pool of this one may hold more such connections.
                let fresh = agent::client(&self.shared.url);
                let fresh = fresh.map_err(|error| HttpError::Unreachable(error.to_string()))?;
                let again = self.send_with(&fresh, request, token).await;
                again.map_err(|failed| failed.error)
            }
            Err(failed) => Err(failed.error),
        }
    }

    async fn send_with(
        &self,
        client: &reqwest::Client,
        sent: &HttpRequest<'_>,
        token: Option<&Secret>,
    ) -> Result<reqwest::Response, Failed> {
        let mut request = client.request(sent.method.clone(), self.shared.url.clone());
        request = request.headers(self.shared.headers.clone()).headers(sent.headers.clone());
        if let Some(token) = token {
            let mut value = HeaderValue::try_from(format!("Bearer {}", token.reveal()))
                .map_err(|_| Failed { error: HttpError::Unauthorized, was_connected: false })?;
            value.set_sensitive(true);
            request = request.header(AUTHORIZATION, value);
        }
        if let Some(body) = &sent.body {
            request = request.header(CONTENT_TYPE, JSON).body(body.clone());
        }
        let began = Instant::now();
        let answered = request.send().await;
        let (method, took) = (sent.method.as_str().into(), began.elapsed());
        match answered {
            Ok(response) => {
                let status = response.status().as_u16();
                self.shared.wire.happened(Happened::HttpAnswered { method, status, took });
                Ok(response)
            }
            Err(error) => {
                let reason = innermost(&error);
                let words = reason.as_str().into();
                self.shared.wire.happened(Happened::HttpFailed { method, reason: words, took });
                let was_connected = !error.is_connect() && !error.is_timeout();
                Err(Failed { error: HttpError::Unreachable(reason), was_connected })
            }
        }
    }

    fn retried(&self, method: &Method, reason: &str) {
        let (method, reason) = (method.as_str().into(), reason.into());
        self.shared.wire.happened(Happened::HttpRetried { method, reason });
    }

    /// Logs the end of the session, once.
    fn session_ended(&self, session: &str, by: ClosedBy) {
        if !self.shared.is_session_over.swap(true, Ordering::Relaxed) {
            let session = shortened(session);
            self.shared.wire.happened(Happened::SessionEnded { session, by });
        }
    }

    /// The server no longer knows the session, so the connection is over.
    fn session_expired(&self, session: &str) -> StreamableHttpError<HttpError> {
        self.session_ended(session, ClosedBy::Server);
        self.shared.wire.tell(Signal::Ended("the server no longer knows the session".into()));
        StreamableHttpError::SessionExpired
    }

    fn token(&self) -> Option<Secret> {
        self.shared.token.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        // The answer does not matter: the connection ends.
        let _ = self.send(Method::DELETE, None, headers, Repeat::Harmless).await;
        self.session_ended(&session_id, ClosedBy::Client);
        Ok(())
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<EventStream, StreamableHttpError<HttpError>> {
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
        // A session id that is not a valid header value is not sent back.
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    headers
}

fn header(response: &reqwest::Response, name: &HeaderName) -> Option<String> {
    response.headers().get(name)?.to_str().ok().map(str::to_owned)
}

/// The media type without its parameters.
fn content_type(response: &reqwest::Response) -> String {
    let full = header(response, &CONTENT_TYPE).unwrap_or_else(|| "no content type".to_owned());
    full.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}
