//! Why a request to the server gave no result.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::ErrorData;

/// Why a request gave no result.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered with an error.
    #[error("{}", refusal(.0))]
    Refused(ErrorData),
    /// The server did not answer in time.
    #[error("the server did not answer within {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// There is no connection.
    #[error("not connected: {0}")]
    NotConnected(Arc<str>),
    /// The connection broke during the request, which may have been carried out.
    #[error("the connection broke before the answer came: {0}")]
    Lost(Arc<str>),
    /// The server cannot be reached.
    #[error("could not reach the server: {0}")]
    Unreachable(Arc<str>),
    /// The message could not be sent, or its answer could not be used.
    #[error("{0}")]
    Transport(Arc<str>),
    /// The answer is larger than [`Config::max_message`](crate::Config::max_message), and was
    /// dropped.
    #[error("the server's answer is larger than {0} bytes")]
    TooLarge(usize),
    /// The answer does not match the request.
    #[error("the server's answer does not fit the request")]
    Unexpected,
    /// The server kept asking questions and never answered.
    #[error("the server kept asking for input and never answered")]
    TooManyRounds,
    /// One of our handlers could not answer the server's question.
    #[error("the server's question could not be answered: {0}")]
    Input(Arc<str>),
    /// The server does not offer this.
    #[error("the server does not offer {0}")]
    NotOffered(&'static str),
    /// The server does not list this template.
    #[error("the server does not list the template `{0}`")]
    Unlisted(String),
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
}

impl RequestError {
    /// Whether the same request may succeed later.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Timeout(_)
            | Self::NotConnected(_)
            | Self::Lost(_)
            | Self::Unreachable(_)
            | Self::Transport(_) => true,
            // An internal error of the server, or one of its own range, may be temporary.
            Self::Refused(error) => !(-32602..=-32600).contains(&error.code.0),
            _ => false,
        }
    }

    /// Whether the server is gone.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(self, Self::NotConnected(_) | Self::Lost(_) | Self::Unreachable(_))
    }

    /// The server's error, if it answered with one.
    #[must_use]
    pub fn refusal(&self) -> Option<&ErrorData> {
        match self {
            Self::Refused(error) => Some(error),
            _ => None,
        }
    }
}

/// The server's message, with its details for people.
fn refusal(error: &ErrorData) -> String {
    let mut text = format!("{} ({})", error.message, error.code.0);
    let details = error
        .data
        .as_ref()
        .and_then(|data| data.get("details"))
        .and_then(|details| details.as_str());
    if let Some(details) = details {
        text += ": ";
        text += details;
    }
    text
}
