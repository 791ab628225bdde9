//! Why a fetch failed, and what that means for the next attempt.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

use super::resolve::{PrivateName, Unresolved};
use crate::ask::chain;
use crate::schedule::Failure;

/// Why a document could not be fetched.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchError {
    /// 410: it is gone for ever.
    #[error("the server reports that it was removed for good (410)")]
    Gone,
    /// 404.
    #[error("the server has nothing at this address (404)")]
    Missing,
    /// 429 or 503: later.
    #[error("the server refuses requests for now ({status})")]
    Refused {
        /// The status.
        status: u16,
        /// For how long, if stated.
        retry_after: Option<Duration>,
    },
    /// The host sent `Retry-After` earlier; it was not contacted again.
    #[error("`{host}` refuses requests for another {} s", .remaining.as_secs())]
    Paused {
        /// The host.
        host: String,
        /// The rest of the time.
        remaining: Duration,
    },
    /// Any other status without a document.
    #[error("the server answered {0}")]
    Status(u16),
    /// Larger than the limit, decompressed.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// More redirects than are followed.
    #[error("the server redirects more than {0} times")]
    Redirects(usize),
    /// A redirect without an address.
    #[error("the server redirects without an address")]
    Location,
    /// A redirect from `https` to this address.
    #[error("the server redirects from https to the unprotected {0}")]
    Downgrade(String),
    /// An address that is not on the public internet.
    #[error("`{host}` is at the private address {address}")]
    Private {
        /// The name of the host.
        host: String,
        /// Its address.
        address: IpAddr,
    },
    /// Not a URL.
    #[error("this is not a URL")]
    Url,
    /// Neither `http` nor `https`.
    #[error("`{0}` addresses are not fetched")]
    Scheme(String),
    /// A port that is not for the web.
    #[error("port {0} is not for the web")]
    Port(u16),
    /// A URL with a user name or password.
    #[error("a URL with a user name or password is not accepted: give a header instead")]
    Credentials,
    /// An invalid header.
    #[error("`{0}` is not a header that can be sent")]
    Header(String),
    /// The timeout passed.
    #[error("the server took longer than {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// No connection, or no trusted one, with the reason.
    #[error("could not reach the server: {0}")]
    Connect(String),
    /// The name server did not answer for this host.
    #[error("could not look up `{0}`: the name server did not answer")]
    Unresolved(String),
    /// This machine cannot open any connection; the server's state is unknown.
    #[error("{0}")]
    Here(&'static str),
    /// The answer was interrupted, with the reason.
    #[error("the answer was interrupted: {0}")]
    Broken(String),
    /// The answer is not compressed as it claims.
    #[error("the answer could not be decompressed")]
    Decode(#[source] std::io::Error),
}

impl FetchError {
    /// Whether a retry may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::Paused { .. }
            | Self::Timeout(_)
            | Self::Connect(_)
            | Self::Unresolved(_)
            | Self::Here(_)
            | Self::Broken(_) => true,
            Self::Status(status) => matches!(status, 408 | 425 | 500..),
            _ => false,
        }
    }

    /// Whether the answer was incomplete.
    pub(super) fn is_cut(&self) -> bool {
        match self {
            Self::Broken(_) | Self::TooLarge(_) => true,
            Self::Decode(error) => error.kind() == std::io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }

    /// Whether it was not fetched because private addresses are not allowed; another process may be
    /// allowed to.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self, Self::Private { .. } | Self::Port(_))
    }

    /// The server's `Retry-After`, if it sent one.
    #[cfg(test)]
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Paused { remaining, .. } => Some(*remaining),
            _ => None,
        }
    }

    /// Its meaning for the schedule.
    pub(crate) fn kind(&self) -> Failure {
        match self {
            Self::Gone => Failure::Gone,
            Self::Missing => Failure::Missing,
            Self::Refused { retry_after, .. } => Failure::Refused { retry_after: *retry_after },
            Self::Paused { remaining, .. } => Failure::Postponed { by: *remaining },
            Self::Here(_) => Failure::Here,
            other if other.is_transient() => Failure::Transient,
            Self::Decode(_) | Self::TooLarge(_) => Failure::Unparsable,
            _ => Failure::Rejected,
        }
    }

    /// The failure of a request without an answer. The URL is removed from it: it may be secret,
    /// and readers of the error know it.
    pub(super) fn of_request(error: &reqwest::Error, connect_timeout: Duration) -> Self {
        if let Some(private) = chain(error).find_map(|cause| cause.downcast_ref::<PrivateName>()) {
            return Self::Private { host: private.host.clone(), address: private.address };
        }
        // The client's only timeout is for connecting.
        if error.is_timeout() {
            return Self::Timeout(connect_timeout);
        }
        if let Some(here) = chain(error).find_map(here) {
            return Self::Here(here);
        }
        if let Some(name) = chain(error).find_map(|cause| cause.downcast_ref::<Unresolved>()) {
            return Self::Unresolved(name.0.clone());
        }
        Self::Connect(reason(error))
    }

    /// The failure of an incomplete answer.
    pub(super) fn of_body(error: &reqwest::Error) -> Self {
        Self::Broken(reason(error))
    }
}

/// The fault of this machine in an error, if there is one.
fn here(error: &(dyn Error + 'static)) -> Option<&'static str> {
    let error = error.downcast_ref::<io::Error>()?;
    // `EMFILE` and `ENFILE` are the same numbers on every Unix; the library has no name for them.
    if matches!(error.raw_os_error(), Some(23 | 24)) {
        return Some("too many files are open on this machine");
    }
    match error.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::NetworkDown => Some(NO_NETWORK),
        _ => None,
    }
}

/// The message if the network is down, as opposed to one server.
pub(super) const NO_NETWORK: &str = "this machine has no network";

/// The innermost cause: those around it name parts of libraries.
fn reason(error: &(dyn Error + 'static)) -> String {
    let cause = chain(error).last().map(ToString::to_string).unwrap_or_default();
    // `Connection refused (os error 111)`.
    cause.split(" (os error").next().unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: i32, expected: Option<&str>) {
        assert_eq!(here(&io::Error::from_raw_os_error(code)), expected);
    }

    #[test]
    fn what_is_wrong_here_is_told_from_what_is_wrong_there() {
        check(23, Some("too many files are open on this machine"));
        check(24, Some("too many files are open on this machine"));
        check(111, None);
        let down = io::Error::from(io::ErrorKind::NetworkUnreachable);
        assert_eq!(here(&down), Some(NO_NETWORK));
        assert_eq!(FetchError::Here(NO_NETWORK).kind(), Failure::Here);
    }

    #[test]
    fn a_reason_is_the_innermost_one_without_its_number() {
        let refused = io::Error::from_raw_os_error(111);
        let wrapped = io::Error::other(refused);
        assert_eq!(reason(&wrapped), "connection refused");
    }
}
