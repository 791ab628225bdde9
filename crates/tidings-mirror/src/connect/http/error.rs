//! Why an HTTP exchange failed.

use super::super::ConnectError;
use super::super::body::BodyError;

/// How much of an unexpected body is shown.
const PREVIEW: usize = 160;

/// Why an HTTP exchange failed.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("could not reach the server: {0}")]
    Unreachable(String),
    #[error("the server requires authorisation (401)")]
    Unauthorized,
    #[error("the server denied access (403)")]
    Forbidden,
    #[error("the server answered HTTP {status}{}", shown(.preview))]
    Status { status: u16, preview: String },
    #[error("the server answered with {0} instead of a message")]
    ContentType(String),
    #[error("the server's answer is not a message{}", shown(.0))]
    NotAMessage(String),
    #[error("the server answered a different request")]
    OtherAnswer,
    #[error("the server's answer is larger than {0} bytes")]
    TooLarge(usize),
    #[error("the answer ended early: {0}")]
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

impl From<BodyError> for HttpError {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::TooLarge(most) => Self::TooLarge(most),
            BodyError::Broken(reason) => Self::Broken(reason),
        }
    }
}

/// The beginning of a body, in one line.
pub(super) fn preview(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(PREVIEW) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
