//! Who a client is: its name, its labels, and its own limits.

use std::sync::Arc;
use std::time::SystemTime;

use crate::labels::Labels;

/// Who a client is, as its token or its configuration says. The name is for logs, for metrics and
/// for [`Hub::grant`](crate::Hub::grant); it is never a secret.
///
/// ```
/// use tidings_server::{Identity, Labels};
///
/// let ada = Identity::new("ada", Labels::parse("role:admin")?);
/// assert_eq!(ada.name.as_deref(), Some("ada"));
/// assert_eq!(Identity::anonymous().name, None);
/// # Ok::<(), tidings_server::LabelError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// The person or program; `None` for anybody.
    pub name: Option<Arc<str>>,
    /// The labels whose items it sees, besides those for everyone.
    pub labels: Labels,
    /// When it is not served any more.
    pub expires: Option<SystemTime>,
    /// How much of the server it may use.
    pub limits: IdentityLimits,
}

/// How much of a server one identity may use, over all its connections. Without a value, only the
/// limits of the server apply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IdentityLimits {
    /// Connections over HTTP. Without a value, a token has half of them if there are several tokens.
    pub connections: Option<usize>,
    /// Legacy sessions over HTTP.
    pub sessions: Option<usize>,
    /// Modern listen requests over HTTP.
    pub listeners: Option<usize>,
}

impl Identity {
    /// Anybody: a client without a name and without labels.
    #[must_use]
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// A person or program with these labels.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, labels: Labels) -> Self {
        Self { name: Some(name.into()), labels, ..Self::default() }
    }

    /// Whether it is not served any more.
    #[must_use]
    pub fn is_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}
