//! Target to connection: the only code that uses the protocol library's services and transports.

mod agent;
mod arguments;
mod body;
mod child;
mod choice;
mod client;
mod failure;
mod http;
mod lines;
mod link;
mod listen;
mod mend;
mod open;
mod raw;
mod skim;
mod tap;
mod wire;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerNotification};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService};
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub(crate) use self::agent::client;
use self::child::{LastWords, Process};
use self::choice::Attempt;
pub(crate) use self::choice::EraMemory;
use self::client::Client;
pub use self::failure::ConnectError;
use self::http::HttpClient;
use self::lines::LineTransport;
pub(crate) use self::link::{Link, Taken};
pub(crate) use self::listen::{End, Listening};
use self::open::Open;
use self::tap::Tap;
use self::wire::Wire;
use crate::config::{Config, Protocol};
use crate::era::{self, Era};
use crate::history::History;
use crate::mirror::Server;
use crate::secret::TokenMemory;
use crate::target::{CommandTarget, HttpTarget, StreamsTarget, Target};

/// Time for the stream of notices of a legacy session to open. After that we continue without it.
const STREAM_OPENING: Duration = Duration::from_secs(2);
/// The wait before a broken stream is reopened: first and longest.
const STREAM_RETRY: (Duration, Duration) = (Duration::from_millis(250), Duration::from_secs(15));

/// A signal of a connection.
#[derive(Debug)]
pub(crate) enum Signal {
    /// A notification, in the order of the wire, and the number of its message in the log.
    Notice(Box<ServerNotification>, Option<u64>),
    /// The stream of notices broke.
    StreamLost,
    /// The stream of notices is open again.
    StreamBack,
    /// There is no stream of notices.
    NoStream(Arc<str>),
    /// The connection is over.
    Ended(Arc<str>),
    /// A stdio server printed a line that is not a message.
    Garbage(Arc<str>),
    /// A stdio server wrote a line to standard error.
    Stderr(Arc<str>),
    /// The authorisation changed.
    Reauthorized,
    /// The server answered as modern after it was taken for legacy.
    LateModern,
}

/// Receives signals. It does not block: signals only mark things as dirty.
pub(crate) type Sink = Arc<dyn Fn(Signal) + Send + Sync>;

/// What one mirror remembers of its server between connections.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// The last token: content that was private to another one must not be kept.
    token: Arc<TokenMemory>,
    era: EraMemory,
    words: LastWords,
}

impl Memory {
    /// The last lines of a server's standard error: of the current server if it wrote any, else of
    /// the one before.
    pub(crate) fn stderr(&self) -> Vec<Arc<str>> {
        self.words.lines()
    }
}

/// Opens a connection: starts or reaches the server, and negotiates a protocol.
///
/// If the era is unknown, a failed attempt is followed by one in the other era: a legacy server may
/// crash at the first request of a modern client.
pub(crate) async fn open(
    target: &Target,
    config: &Config,
    sink: Sink,
    history: Arc<History>,
    memory: &Memory,
) -> Result<Link, ConnectError> {
    let began = Instant::now();
    let first = memory.era.first(&config.protocol);
    let mut now = Config { protocol: first.clone(), ..config.clone() };
    now.connect_timeout = choice::first_timeout(config, &first, target);
    let attempt = Attempt::new(sink.clone());
    let mut opened = open_as(target, &now, &attempt, history.clone(), memory).await;
    if let Err(error) = &opened
        && let Some(second) = attempt.second(&config.protocol, &first, target, error)
    {
        now.protocol = second;
        // A server that only starts slowly gets the full time again.
        now.connect_timeout = match error {
            ConnectError::Timeout { .. } => config.connect_timeout,
            _ => config.connect_timeout.saturating_sub(began.elapsed()),
        };
        let attempt = Attempt::new(sink);
        let again = open_as(target, &now, &attempt, history, memory).await;
        // The versions that a server lists are the better error.
        if again.is_ok() || !matches!(error, ConnectError::Version { .. }) {
            opened = again;
        }
    }
    match &opened {
        Ok(link) => memory.era.note(Some(link.server().era)),
        // It may be away for a while and return unchanged.
        Err(ConnectError::Unreachable(_)) => {}
        Err(_) => memory.era.note(None),
    }
    opened
}

async fn open_as(
    target: &Target,
    config: &Config,
    attempt: &Arc<Attempt>,
    history: Arc<History>,
    memory: &Memory,
) -> Result<Link, ConnectError> {
    let (sink, words) = (attempt.sink(), &memory.words);
    let opened = match target {
        Target::Http(target) => {
            open_http(target, config, Wire::new(sink, history), &memory.token).await
        }
        Target::Command(target) => open_command(target, config, sink, history, words).await,
        Target::Streams(target) => open_streams(target, config, Wire::new(sink, history)).await,
    };
    if opened.is_ok() {
        attempt.worked();
    } else {
        attempt.failed();
    }
    opened
}

async fn open_http(
    target: &HttpTarget,
    config: &Config,
    wire: Wire,
    token: &Arc<TokenMemory>,
) -> Result<Link, ConnectError> {
    let http = HttpClient::new(target, config, wire.clone(), token).await?;
    let mut options = StreamableHttpClientTransportConfig::with_uri(target.url.as_str());
    // A new session has no subscriptions, so it must not go unnoticed.
    options.reinit_on_expired_session = false;
    options.allow_stateless = true;
    options.retry_config = Arc::new(Retry);
    let transport = StreamableHttpClientTransport::with_client(http.clone(), options);
    // The HTTP client enforces this timeout: the library blocks while the request is open.
    let open = wire.open.clone();
    let running = match handshake(config, Tap::new(transport, wire, None), open).await {
        Ok(running) => running,
        Err(Failure::Timeout) => {
            let (stderr, garbage) = (Vec::new(), None);
            return Err(ConnectError::Timeout { timeout: config.connect_timeout, stderr, garbage });
        }
        Err(Failure::Refused(error)) => return Err(error),
        Err(Failure::Protocol(error)) => {
            return Err(http.trouble().map_or_else(|| refusal(&error), ConnectError::from));
        }
    };
    let link = Link::new(running, config, Some(http.clone()), None)?;
    if link.server().era == Era::Legacy && wants_stream(config, link.server()) {
        // Before anything is listed, so that no change is missed.
        let _ = tokio::time::timeout(STREAM_OPENING, http.want_stream()).await;
    }
    Ok(link)
}

/// Whether the stream of notices is needed: for followed changes, or for questions that a handler
/// answers.
fn wants_stream(config: &Config, server: &Server) -> bool {
    let (handlers, offered) = (&config.handlers, &server.capabilities);
    let changes = [
        offered.tools.as_ref().and_then(|tools| tools.list_changed),
        offered.prompts.as_ref().and_then(|prompts| prompts.list_changed),
        offered.resources.as_ref().and_then(|resources| resources.list_changed),
    ];
    (!config.list_changed.is_empty() && changes.contains(&Some(true)))
        || handlers.elicit.is_some()
        || handlers.sample.is_some()
        || handlers.roots.is_some()
}

/// The retry schedule of the stream of notices, unless the server sets one.
#[derive(Debug)]
struct Retry;

impl rmcp::transport::common::client_side_sse::SseRetryPolicy for Retry {
    fn retry(&self, attempts: usize) -> Option<Duration> {
        let (first, most) = STREAM_RETRY;
        let exponent = u32::try_from(attempts).unwrap_or(u32::MAX);
        Some(first.saturating_mul(2u32.saturating_pow(exponent)).min(most))
    }
}

async fn open_command(
    target: &CommandTarget,
    config: &Config,
    sink: Sink,
    history: Arc<History>,
    words: &LastWords,
) -> Result<Link, ConnectError> {
    let garbage = Arc::new(std::sync::OnceLock::new());
    let first_garbage = garbage.clone();
    let outer = sink;
    let sink: Sink = Arc::new(move |signal| {
        if let Signal::Garbage(line) = &signal {
            let _ = first_garbage.set(line.clone());
        }
        outer(signal);
    });
    let wire = Wire::new(sink.clone(), history);
    let started = child::start(target, config.max_message, wire.clone())?;
    let mut process = started.process;
    let stderr = words.begin();
    let mut tasks = JoinSet::new();
    tasks.spawn(stderr.clone().follow(started.stderr, sink));
    let open = wire.open.clone();
    let tap = Tap::new(started.transport, wire, choice::probe(config));
    let failure = match handshake(config, tap, open).await {
        Ok(running) => {
            words.forget_earlier();
            return Link::new(running, config, None, Some((process, tasks)));
        }
        Err(failure) => failure,
    };
    // Its last output arrives soon after it ended.
    let status = process.status().await;
    let _ = tokio::time::timeout(Duration::from_millis(100), tasks.join_next()).await;
    process.end_now();
    let (stderr, garbage) = (stderr.lines(), garbage.get().cloned());
    Err(match failure {
        Failure::Timeout => {
            ConnectError::Timeout { timeout: config.connect_timeout, stderr, garbage }
        }
        Failure::Refused(error) => error,
        Failure::Protocol(error) => match *error {
            ClientInitializeError::ConnectionClosed(_)
            | ClientInitializeError::TransportError { .. } => {
                ConnectError::Died { status, stderr, garbage }
            }
            other => refusal(&other),
        },
    })
}

async fn open_streams(
    target: &StreamsTarget,
    config: &Config,
    wire: Wire,
) -> Result<Link, ConnectError> {
    let used = || ConnectError::Transport("streams can be used only once".to_owned());
    let (input, output) = target.take().ok_or_else(used)?;
    let lines = LineTransport::new(input, output, config.max_message, wire.clone());
    let open = wire.open.clone();
    let tap = Tap::new(lines, wire, choice::probe(config));
    let failure = match handshake(config, tap, open).await {
        Ok(running) => return Link::new(running, config, None, None),
        Err(failure) => failure,
    };
    let (stderr, garbage) = (Vec::new(), None);
    Err(match failure {
        Failure::Timeout => {
            ConnectError::Timeout { timeout: config.connect_timeout, stderr, garbage }
        }
        Failure::Refused(error) => error,
        Failure::Protocol(error) => refusal(&error),
    })
}

/// Why a handshake failed.
enum Failure {
    Timeout,
    Refused(ConnectError),
    Protocol(Box<ClientInitializeError>),
}

/// The first request, and the client's identity.
fn opening(config: &Config, open: Arc<Open>) -> (ClientLifecycleMode, Client) {
    let modern = vec![era::NEWEST_MODERN];
    let (mode, version) = match &config.protocol {
        Protocol::Auto => {
            let legacy_version = Some(era::NEWEST_LEGACY);
            let mode = ClientLifecycleMode::Auto { preferred_versions: modern, legacy_version };
            (mode, era::NEWEST_LEGACY)
        }
        Protocol::Legacy => (ClientLifecycleMode::Initialize, era::NEWEST_LEGACY),
        Protocol::Modern => {
            (ClientLifecycleMode::Discover { preferred_versions: modern }, era::NEWEST_MODERN)
        }
        Protocol::Version(version) => match era::era(version) {
            Era::Legacy => (ClientLifecycleMode::Initialize, version.clone()),
            Era::Modern => {
                let preferred_versions = vec![version.clone()];
                (ClientLifecycleMode::Discover { preferred_versions }, version.clone())
            }
        },
    };
    (mode, Client::new(config, version, open))
}

/// Negotiates a protocol with the server.
fn handshake<T>(config: &Config, transport: T, open: Arc<Open>) -> Handshake
where
    T: Transport<RoleClient> + Send + 'static,
{
    let (mode, client) = opening(config, open);
    let (wanted, timeout) = (config.protocol.clone(), config.connect_timeout);
    // Boxed and without borrows: the compiler cannot infer the bounds of the library's future.
    Box::pin(async move {
        let cancel = CancellationToken::new();
        let serving =
            rmcp::service::serve_client_with_lifecycle_and_ct(client, transport, mode, cancel);
        let running = match tokio::time::timeout(timeout, serving).await {
            Err(_) => return Err(Failure::Timeout),
            Ok(running) => running.map_err(|error| Failure::Protocol(Box::new(error)))?,
        };
        if let (Protocol::Version(wanted), Some(info)) = (wanted, running.peer().peer_info())
            && info.protocol_version != wanted
        {
            let server = info.protocol_version.to_string();
            return Err(Failure::Refused(ConnectError::Version { server }));
        }
        Ok(running)
    })
}

type Handshake =
    Pin<Box<dyn Future<Output = Result<RunningService<RoleClient, Client>, Failure>> + Send>>;

/// A handshake error in words.
fn refusal(error: &ClientInitializeError) -> ConnectError {
    match error {
        ClientInitializeError::JsonRpcError(error) => {
            ConnectError::Refused(format!("{} ({})", error.message, error.code.0))
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let versions: Vec<_> = server_supported.iter().map(ProtocolVersion::as_str).collect();
            let server = if versions.is_empty() { "none".to_owned() } else { versions.join(", ") };
            ConnectError::Version { server }
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => refusal(fallback),
        ClientInitializeError::TransportError { error, .. } => {
            ConnectError::Transport(error.error.to_string())
        }
        ClientInitializeError::ConnectionClosed(_) => ConnectError::Transport(
            "the server closed the connection before it answered".to_owned(),
        ),
        ClientInitializeError::ExpectedInitResult(result) => {
            ConnectError::NotMcp(format!("it answered the handshake with {}", said(result)))
        }
        ClientInitializeError::ExpectedInitResponse(message) => {
            ConnectError::NotMcp(format!("it answered the handshake with {}", said(message)))
        }
        ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            ConnectError::NotMcp("it answered a different request".to_owned())
        }
        other => ConnectError::NotMcp(other.to_string()),
    }
}

/// The beginning of a server's message.
fn said(message: &impl serde::Serialize) -> String {
    const SHOWN: usize = 160;
    let text = serde_json::to_string(message).unwrap_or_default();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

type ProcessParts = (Process, JoinSet<()>);
