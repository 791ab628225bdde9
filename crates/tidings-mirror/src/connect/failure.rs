//! Why a connection could not be made.

use std::sync::Arc;
use std::time::Duration;

use crate::target::TargetError;

/// Why a connection could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The value is not a target.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The program could not be started.
    #[error("could not start `{program}`")]
    Spawn {
        /// The program.
        program: String,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The URL cannot be used.
    #[error("`{0}` is not an http:// or https:// URL")]
    Url(String),
    /// A header cannot be sent.
    #[error("header `{0}` is not valid")]
    Header(String),
    /// The server does not answer.
    #[error("could not reach the server: {0}")]
    Unreachable(String),
    /// The server requires a token, or another one.
    #[error("the server requires authorisation (401)")]
    Unauthorized,
    /// The server refuses access.
    #[error("the server denied access (403)")]
    Forbidden,
    /// The answer is not that of an MCP server.
    #[error("not an MCP server: {0}")]
    NotMcp(String),
    /// The server answered the handshake with an error.
    #[error("the server refused the connection: {0}")]
    Refused(String),
    /// No revision that both sides speak.
    #[error("no protocol version in common: the server speaks {server}")]
    Version {
        /// The versions of the server.
        server: String,
    },
    /// No answer in time.
    #[error("the server did not answer within {} s", .timeout.as_secs_f32())]
    Timeout {
        /// The timeout.
        timeout: Duration,
        /// The last lines of its standard error.
        stderr: Vec<Arc<str>>,
        /// The first line of its standard output that was not a message.
        garbage: Option<Arc<str>>,
    },
    /// The program ended.
    #[error("the server ended before it answered{}", .status.as_ref().map(|status| format!(" ({status})")).unwrap_or_default())]
    Died {
        /// Its exit status.
        status: Option<String>,
        /// The last lines of its standard error.
        stderr: Vec<Arc<str>>,
        /// The first line of its standard output that was not a message.
        garbage: Option<Arc<str>>,
    },
    /// Another transport error.
    #[error("{0}")]
    Transport(String),
}

/// A conversion that cannot fail.
impl From<std::convert::Infallible> for ConnectError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}
