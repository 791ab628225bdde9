//! The configuration of an HTTP server, with the defaults and their reasons.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;

use crate::tokens::Tokens;

/// The configuration of an HTTP server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct HttpConfig {
    /// `Host` names served besides loopback ones: `name` or `name:port`. Loopback names count only
    /// for connections from this machine.
    pub hosts: Vec<String>,
    /// Origins whose pages may use the server, besides those of loopback and of `hosts`.
    pub origins: Vec<String>,
    /// The tokens that clients must send one of, if any are needed. They can be replaced while the
    /// server runs.
    pub tokens: Tokens,
    /// Whether clients without a token are served, too: no. They have no name and no labels.
    pub anonymous: bool,
    /// The largest request body: 4 MiB.
    pub body_limit: usize,
    /// Bytes of all requests and answers under way at once: 256 MiB.
    pub budget: usize,
    /// How many connections may be open: 32,768. A server should lower it to what its file limit
    /// allows.
    pub connections: usize,
    /// How many legacy sessions there may be: 10,000.
    pub sessions: usize,
    /// How many modern listen requests may be open: 20,000.
    pub listeners: usize,
    /// A session without an open stream ends after this long without a request: 30 min.
    pub idle: Duration,
    /// A session that did nothing since its handshake ends after this: 60 s.
    pub unused: Duration,
    /// The time between comments on an idle stream: 15 s.
    pub keep_alive: Duration,
    /// The time after which a client should reconnect to a lost stream: 1 s.
    pub retry: Duration,
    /// How long requests under way may take when the server stops: 10 s.
    pub drain: Duration,
    /// Whether each request is logged when it ends: no. The lines have the target `access`.
    pub access_log: bool,
    /// Additional checks of `/readyz`.
    pub checks: Vec<Check>,
    /// Additional routes. Host, origin and token are checked as for `/mcp`; limits are the routes'
    /// own. They must not repeat a route of the server.
    pub beside: Option<Router>,
    /// Additional routes that decide themselves who may use them: this server checks neither host
    /// nor origin nor token for them. They must not repeat a route of the server.
    pub apart: Option<Router>,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            tokens: Tokens::default(),
            anonymous: false,
            body_limit: 4 << 20,
            budget: 256 << 20,
            connections: 32_768,
            sessions: 10_000,
            listeners: 20_000,
            idle: Duration::from_mins(30),
            unused: Duration::from_mins(1),
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            drain: Duration::from_secs(10),
            access_log: false,
            checks: Vec::new(),
            beside: None,
            apart: None,
        }
    }
}

/// A condition for the server to take requests.
#[derive(Clone)]
pub struct Check {
    pub(crate) name: &'static str,
    // A trait object: each check is a closure of its own type.
    pub(crate) run: Arc<dyn Fn() -> Result<(), String> + Send + Sync>,
}

impl Check {
    /// A check of this name. It may read a file, but must not wait. Its error is shown to anybody,
    /// so it must contain no secrets.
    pub fn new(
        name: &'static str,
        run: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        Self { name, run: Arc::new(run) }
    }
}

impl fmt::Debug for Check {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Check").field(&self.name).finish()
    }
}
