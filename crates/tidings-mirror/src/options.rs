//! How a request is made: what is sent along with it, and how long its answer may take.

use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;

/// No arguments, for calls, prompts and templates that take none.
pub const NO_ARGUMENTS: [(&str, &str); 0] = [];

/// How requests are made through one handle: see [`Mirror::with`](crate::Mirror::with).
///
/// ```
/// use std::time::Duration;
/// use tidings_mirror::RequestOptions;
///
/// let options = RequestOptions::new()
///     .meta("example.com/trace", "7f3a")
///     .timeout(Duration::from_secs(5));
/// assert_eq!(options.meta["example.com/trace"], "7f3a");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RequestOptions {
    /// What to send as `_meta`; default nothing but what the protocol needs.
    pub meta: JsonObject,
    /// How long the server may be silent; default [`Config::request_timeout`](crate::Config).
    pub timeout: Option<Duration>,
    /// Whether templates may be read that the server does not list; default no.
    pub unlisted_templates: bool,
}

impl RequestOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sends this in `_meta` too.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Waits so long for the answer.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Reads templates that the server does not list, too.
    #[must_use]
    pub fn unlisted_templates(mut self) -> Self {
        self.unlisted_templates = true;
        self
    }
}
