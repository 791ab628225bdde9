//! What a mirror does and how much of it: options with their defaults.

use std::time::Duration;

use rmcp::model::{Implementation, ProtocolVersion};
use tidings_core::ListKinds;

use crate::backoff::Backoff;
use crate::handlers::Handlers;
use crate::lists::List;

/// Which protocol to speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Modern if the server speaks it, else legacy.
    ///
    /// A server that does not say within 2 s that it is modern (or within a quarter of
    /// [`Config::connect_timeout`], if that is shorter) is taken for legacy. If a program ends when it
    /// is asked, it is started once more as legacy. The outcome is remembered for the next connection.
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
    /// Whether and how to connect again after a connection was lost; default
    /// [`Backoff::default`], without an end. A server behind [`Target::Streams`](crate::Target) is
    /// never connected to again.
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
    /// The most items one list may have; default 100,000. The others are left out, with a warning.
    pub max_items: usize,
    /// The most pages one list may have; default 1,000. The others are left out, with a warning.
    pub max_pages: usize,
    /// How many messages the log keeps, and as many facts; default 0, which is none. Messages take
    /// 16 MiB at most, and one message 1 MiB.
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
            reconnect: Some(Backoff::default()),
            resubscribe: true,
            cache: CacheLimits::default(),
            connect_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_mins(1),
            max_message: 64 << 20,
            max_items: 100_000,
            max_pages: 1_000,
            history: 0,
            event_capacity: 4096,
            quiet: Duration::from_millis(50),
            max_wait: Duration::from_millis(500),
            handlers: Handlers::default(),
        }
    }
}

/// The defaults, for a client that is called as this crate.
impl Default for Config {
    fn default() -> Self {
        Self::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }
}
