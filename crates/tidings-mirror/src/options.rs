//! Options of a request: its metadata and timeout.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::JsonObject;
use serde_json::Value;

/// No arguments, for calls, prompts and templates that take none.
pub const NO_ARGUMENTS: [(&str, &str); 0] = [];

/// Options of the requests of one handle: see [`Mirror::with`](crate::Mirror::with).
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
    /// The `_meta` to send; default only the protocol's own.
    pub meta: JsonObject,
    /// How long the server may be silent; default [`Config::request_timeout`](crate::Config).
    pub timeout: Option<Duration>,
    /// Whether unlisted templates may be read; default no.
    pub unlisted_templates: bool,
    /// The arguments of a relayed call as JSON text: see [`Mirror::relay`](crate::Mirror::relay). It
    /// is sent in place of the arguments of the request, which must mean the same; default none.
    pub arguments: Option<Arc<str>>,
    /// Who asks, for [`Message::by`](crate::Message::by) in the log; it is not sent. Default nobody.
    pub by: Option<Arc<str>>,
}

impl RequestOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a key to `_meta`.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.meta.insert(key.into(), value.into());
        self
    }

    /// Sets the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Says in the log who asks.
    #[must_use]
    pub fn by(mut self, who: impl Into<Arc<str>>) -> Self {
        self.by = Some(who.into());
        self
    }

    /// Allows unlisted templates.
    #[must_use]
    pub fn unlisted_templates(mut self) -> Self {
        self.unlisted_templates = true;
        self
    }
}
