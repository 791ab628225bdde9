//! Why a connection could not be made.

use std::sync::Arc;
use std::time::Duration;

use crate::target::TargetError;

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// What was given is not a target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The program could not be started.
    #[error("could not start `{program}`")]
    Spawn {
        /// What was to be started.
        program: String,
        /// Why it could not.
        #[source]
        source: std::io::Error,
    },
    /// The URL cannot be used.
    #[error("`{0}` is not an http:// or https:// URL")]
    Url(String),
    /// A header cannot be sent.
    #[error("header `{0}` is not valid")]
    Header(String),
    /// Nobody answers there.
    #[error("could not reach the server: {0}")]
    Unreachable(String),
    /// The server wants a token, or another one.
    #[error("the server wants authorisation (401)")]
    Unauthorized,
    /// The server does not let us in.
    #[error("the server forbids this (403)")]
    Forbidden,
    /// Somebody answers, but not as an MCP server.
    #[error("nothing there speaks MCP: {0}")]
    NotMcp(String),
    /// The server answered the handshake with an error.
    #[error("the server refused the connection: {0}")]
    Refused(String),
    /// No revision that both sides speak.
    #[error("no protocol version in common: the server speaks {server}")]
    Version {
        /// The versions the server named.
        server: String,
    },
    /// No answer in time.
    #[error("the server did not answer within {} s", .timeout.as_secs_f32())]
    Timeout {
        /// How long was waited.
        timeout: Duration,
        /// The last lines of its standard error.
        stderr: Vec<Arc<str>>,
        /// The first line on its standard output that was no message.
        garbage: Option<Arc<str>>,
    },
    /// The program ended.
    #[error("the server ended before it answered{}", .status.as_ref().map(|status| format!(" ({status})")).unwrap_or_default())]
    Died {
        /// How it ended.
        status: Option<String>,
        /// The last lines of its standard error.
        stderr: Vec<Arc<str>>,
        /// The first line on its standard output that was no message.
        garbage: Option<Arc<str>>,
    },
    /// Something else went wrong on the way.
    #[error("{0}")]
    Transport(String),
}

/// What is always a target never fails to be one.
impl From<std::convert::Infallible> for ConnectError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
