//! What a mirror does and how much of it: options with their defaults, and whom it speaks to.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{Implementation, ProtocolVersion};
use tidings_core::ListKinds;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::backoff::Backoff;
use crate::handlers::Handlers;
use crate::lists::List;

/// A server to speak to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A server behind Streamable HTTP.
    Http(HttpTarget),
    /// A program that speaks MCP on its standard input and output.
    Command(CommandTarget),
    /// A server at the other end of two byte streams, with a message a line: one in this process, or
    /// one that somebody else started. They can be used once, so there is no connecting again.
    Streams(StreamsTarget),
}

/// A server behind Streamable HTTP.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpTarget {
    /// The endpoint, as `http://127.0.0.1:8484/mcp`.
    pub url: String,
    /// Headers to send with every request.
    pub headers: Vec<(String, Secret)>,
    /// Where a bearer token comes from; asked when a connection is made, and again when the server
    /// answers 401.
    pub token: Option<TokenSource>,
}

impl HttpTarget {
    /// An endpoint without headers and token.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), token: None }
    }
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HttpTarget")
            .field("url", &shown(&self.url))
            .field("headers", &self.headers)
            .field("token", &self.token)
            .finish()
    }
}

/// A program that speaks MCP on its standard input and output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandTarget {
    /// What to run.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment to add to ours.
    pub environment: BTreeMap<String, Secret>,
    /// Where to run it; here, if not said.
    pub folder: Option<PathBuf>,
}

impl CommandTarget {
    /// A program with arguments, in our folder and environment.
    pub fn new(program: impl Into<String>, arguments: Vec<String>) -> Self {
        Self { program: program.into(), arguments, environment: BTreeMap::new(), folder: None }
    }
}

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Two byte streams with a server at their other end.
#[derive(Clone)]
pub struct StreamsTarget(Arc<Mutex<Option<(Input, Output)>>>);

impl StreamsTarget {
    /// What the server writes, and what it reads.
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self(Arc::new(Mutex::new(Some((Box::new(input), Box::new(output))))))
    }

    pub(crate) fn take(&self) -> Option<(Input, Output)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl std::fmt::Debug for StreamsTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StreamsTarget(…)")
    }
}

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself. Whoever calls this takes care of it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

type Asking = Pin<Box<dyn Future<Output = Option<Secret>> + Send>>;

/// Asks for the current bearer token.
#[derive(Clone)]
pub struct TokenSource(Arc<dyn Fn() -> Asking + Send + Sync>);

impl TokenSource {
    /// A function that gives the token as it is now: it may read a file, or ask somebody.
    pub fn new<F>(source: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Option<Secret>> + Send + 'static,
    {
        Self(Arc::new(move || Box::pin(source())))
    }

    /// A token that never changes.
    #[must_use]
    pub fn fixed(token: Secret) -> Self {
        Self::new(move || std::future::ready(Some(token.clone())))
    }

    pub(crate) async fn token(&self) -> Option<Secret> {
        (self.0)().await
    }
}

impl std::fmt::Debug for TokenSource {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("TokenSource(…)")
    }
}

/// The token that one mirror used last; none at first.
#[derive(Debug, Default)]
pub(crate) struct TokenMemory(Mutex<Option<Secret>>);

impl TokenMemory {
    /// Notes the token that is used from now on; says whether it is another one than before.
    pub(crate) fn is_other(&self, token: Option<&Secret>) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_other = last.as_ref() != token;
        *last = token.cloned();
        is_other
    }
}

/// A URL without what may be secret in it.
pub(crate) fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let plain = &url[..end];
    let begin = plain.find("://").map_or(0, |place| place + 3);
    let host = plain[begin..].find('/').map_or(plain.len(), |place| begin + place);
    match plain[begin..host].rfind('@') {
        Some(place) => format!("{}…{}", &plain[..begin], &plain[begin + place..]),
        None => plain.to_owned(),
    }
}

/// Which protocol to speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Modern if the server speaks it, else legacy.
    #[default]
    Auto,
    /// Legacy, at the newest revision both sides know.
    Legacy,
    /// Modern or nothing.
    Modern,
    /// This revision or nothing; says which era too.
    Version(ProtocolVersion),
}

/// What a mirror does.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The name and version told to the server.
    pub client: Implementation,
    /// Which protocol to speak; default [`Protocol::Auto`].
    pub protocol: Protocol,
    /// Which lists to load and keep; default all. What the server does not offer is empty.
    pub lists: Vec<List>,
    /// Which list notices to follow; default all. Only those the server advertises are active. With
    /// none, and without subscriptions, no stream is opened.
    pub list_changed: ListKinds,
    /// Whether and how to connect again after a connection was lost; default not at all.
    pub reconnect: Option<Backoff>,
    /// Whether to restore subscriptions after connecting again; default yes.
    pub resubscribe: bool,
    /// How much content may be kept; default no limit.
    pub cache: CacheLimits,
    /// How long connecting may take, lists not included; default 30 s.
    pub connect_timeout: Duration,
    /// How long the server may be silent about one request; progress counts as a sign of life.
    /// Default 60 s.
    pub request_timeout: Duration,
    /// The largest message accepted from the server, in bytes; default 64 MiB.
    pub max_message: usize,
    /// The most items one list may have; default 100,000.
    pub max_items: usize,
    /// How many messages the log for debugging keeps; default 0, which is none.
    pub history: usize,
    /// How many events a receiver may be behind before it loses some; default 4,096.
    pub event_capacity: usize,
    /// How long a thing must be quiet before it is loaded again while it keeps changing; default
    /// 50 ms. The first change is followed at once.
    pub quiet: Duration,
    /// How long a thing that keeps changing waits at most to be loaded again; default 500 ms.
    pub max_wait: Duration,
    /// Who answers what the server asks of its client; default nobody.
    pub handlers: Handlers,
}

/// How much content may be kept. What was used longest ago goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CacheLimits {
    /// The most bytes of contents; default no limit.
    pub bytes: Option<usize>,
    /// The most entries; default no limit.
    pub entries: Option<usize>,
}

impl CacheLimits {
    /// Limits of both kinds.
    #[must_use]
    pub fn new(bytes: Option<usize>, entries: Option<usize>) -> Self {
        Self { bytes, entries }
    }
}

impl Config {
    /// The defaults, for a client of this name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self {
            client: Implementation::new(name, version),
            protocol: Protocol::Auto,
            lists: List::ALL.to_vec(),
            list_changed: ListKinds::ALL,
            reconnect: None,
            resubscribe: true,
            cache: CacheLimits::default(),
            connect_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_mins(1),
            max_message: 64 << 20,
            max_items: 100_000,
            history: 0,
            event_capacity: 4096,
            quiet: Duration::from_millis(50),
            max_wait: Duration::from_millis(500),
            handlers: Handlers::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let mut target = HttpTarget::new("http://me:hunter1@127.0.0.1:1/mcp?key=hunter4#hunter5");
        target.headers.push(("x-key".to_owned(), Secret::new("hunter2")));
        target.token = Some(TokenSource::fixed(Secret::new("hunter3")));
        let shown = format!("{:?}", Target::Http(target));
        assert!(!shown.contains("hunter") && shown.contains("127.0.0.1:1/mcp"), "{shown}");
        assert_eq!(super::shown("nonsense"), "nonsense");
        assert_eq!(super::shown("htp://a:hunter@b/c@d"), "htp://…@b/c@d");
    }
}
