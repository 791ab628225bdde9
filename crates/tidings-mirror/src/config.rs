//! The configuration of a mirror.

use std::time::Duration;

use rmcp::model::{Implementation, ProtocolVersion};
use tidings_core::ListKinds;

use crate::backoff::Backoff;
use crate::handlers::Handlers;
use crate::lists::List;

/// The protocol to speak.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// Modern if the server speaks it, else legacy.
    ///
    /// A server that does not answer within 2 s (or a quarter of [`Config::connect_timeout`], if
    /// that is shorter) counts as legacy. If a program ends at the modern request, it is started
    /// again as legacy. The outcome is remembered for the next connection.
    #[default]
    Auto,
    /// Legacy, at the newest revision both sides know.
    Legacy,
    /// Modern only.
    Modern,
    /// This revision only.
    Version(ProtocolVersion),
}

/// The configuration of a mirror.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The client's name and version.
    pub client: Implementation,
    /// The protocol to speak; default [`Protocol::Auto`].
    pub protocol: Protocol,
    /// The lists to keep; default all. A list that the server does not offer is empty.
    pub lists: Vec<List>,
    /// The list notices to follow; default all. Only those the server advertises are active. With
    /// none, and without subscriptions, no stream is opened.
    pub list_changed: ListKinds,
    /// How to reconnect after a lost connection; default [`Backoff::default`], without an end.
    /// [`Target::Streams`](crate::Target) cannot be reconnected.
    pub reconnect: Option<Backoff>,
    /// Whether to restore subscriptions after reconnecting; default yes.
    pub resubscribe: bool,
    /// Limits of the cache; default no limit.
    pub cache: CacheLimits,
    /// How long connecting may take, lists not included; default 30 s.
    pub connect_timeout: Duration,
    /// How long the server may be silent about one request; progress extends it. Default 60 s.
    pub request_timeout: Duration,
    /// The largest message accepted from the server, in bytes; default 64 MiB.
    pub max_message: usize,
    /// The most items of one list; default 100,000. Further items are dropped, with a warning.
    pub max_items: usize,
    /// The most pages of one list; default 1,000. Further pages are dropped, with a warning.
    pub max_pages: usize,
    /// The number of messages in the log, and of facts; default 0, which disables it. Messages take
    /// 16 MiB at most, and one message 1 MiB.
    pub history: usize,
    /// How many events a receiver may be behind before it misses some; default 4,096.
    pub event_capacity: usize,
    /// Quiet time before a list or resource that keeps changing is loaded again; default 50 ms. The
    /// first change is loaded at once.
    pub quiet: Duration,
    /// The longest wait before it is loaded again while it keeps changing; default 500 ms.
    pub max_wait: Duration,
    /// When to load a list once more if a notice announced it and nothing had changed: some servers
    /// announce a change before it can be read. Default never.
    pub second_look: Option<Duration>,
    /// Whether notices of a legacy server count although it does not advertise them; default no: a
    /// warning.
    pub unannounced: bool,
    /// Whether items of lists keep the text that the server sent even if all of their fields are
    /// known; default no.
    pub as_sent: bool,
    /// Handlers of the server's requests; default none.
    pub handlers: Handlers,
}

/// Limits of the cache. The least recently used entry is removed first.
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
            second_look: None,
            unannounced: false,
            as_sent: false,
            handlers: Handlers::default(),
        }
    }
}

/// The defaults, for a client with the name of this crate.
impl Default for Config {
    fn default() -> Self {
        Self::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }
}
