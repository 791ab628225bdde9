//! Why nothing was fetched, and what that means for the next attempt.

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
    /// 410: it is not coming back.
    #[error("the server says that this is gone for good (410)")]
    Gone,
    /// 404.
    #[error("the server has nothing at this address (404)")]
    Missing,
    /// 429 or 503: not now.
    #[error("the server wants to be left alone for now ({status})")]
    Refused {
        /// Which of the two.
        status: u16,
        /// For how long, if it said so.
        retry_after: Option<Duration>,
    },
    /// The host said earlier that it wants to be left alone; it was not asked again.
    #[error("`{host}` wants to be left alone for another {} s", .remaining.as_secs())]
    Paused {
        /// Who said so.
        host: String,
        /// How much of the time is left.
        remaining: Duration,
    },
    /// Any other answer that is no document.
    #[error("the server answered {0}")]
    Status(u16),
    /// More bytes than the limit allows, unpacked.
    #[error("the answer is larger than {0} bytes")]
    TooLarge(u64),
    /// A longer chain of redirects than is followed.
    #[error("the server redirects more than {0} times")]
    Redirects(usize),
    /// A redirect that does not say where to.
    #[error("the server redirects to nowhere")]
    Location,
    /// A redirect from `https` to this address.
    #[error("the server redirects from https to the unprotected {0}")]
    Downgrade(String),
    /// An address that is not on the public internet.
    #[error("`{host}` is at the private address {address}")]
    Private {
        /// The host as it was named.
        host: String,
        /// Where it is.
        address: IpAddr,
    },
    /// Not a URL.
    #[error("this is no URL")]
    Url,
    /// Neither `http` nor `https`.
    #[error("`{0}` addresses are not fetched")]
    Scheme(String),
    /// A port where something else than the web is expected.
    #[error("port {0} is not one of the web")]
    Port(u16),
    /// A URL with a name or password in it.
    #[error("a URL with a name or password in it is not used: give a header instead")]
    Credentials,
    /// A header that is none.
    #[error("`{0}` is not a header that can be sent")]
    Header(String),
    /// It took too long.
    #[error("the server took longer than {} s", .0.as_secs_f32())]
    Timeout(Duration),
    /// No connection, or none that could be trusted, with the reason.
    #[error("could not reach the server: {0}")]
    Connect(String),
    /// The name server did not answer for this host.
    #[error("could not look up `{0}`: the name server did not answer")]
    Unresolved(String),
    /// This machine can open no connection at all; nothing is known about the server.
    #[error("{0}")]
    Here(&'static str),
    /// The answer broke off, with the reason.
    #[error("the answer broke off: {0}")]
    Broken(String),
    /// The answer is not packed the way it says.
    #[error("the answer could not be unpacked")]
    Decode(#[source] std::io::Error),
}

impl FetchError {
    /// Whether the same request may well succeed later.
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

    /// Whether an answer came and ended before its end.
    pub(super) fn is_cut(&self) -> bool {
        match self {
            Self::Broken(_) | Self::TooLarge(_) => true,
            Self::Decode(error) => error.kind() == std::io::ErrorKind::UnexpectedEof,
            _ => false,
        }
    }

    /// Whether it was not asked because private addresses are not: somebody else may be allowed to.
    pub(crate) fn is_private(&self) -> bool {
        matches!(self, Self::Private { .. } | Self::Port(_))
    }

    /// How long the server wants to be left alone, if it said so.
    #[cfg(test)]
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused { retry_after, .. } => *retry_after,
            Self::Paused { remaining, .. } => Some(*remaining),
            _ => None,
        }
    }

    /// What this means for the schedule.
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

    /// What the client says about a request that got no answer. The URL is taken out of it: it may
    /// be secret, and whoever reads the error knows it.
    pub(super) fn of_request(error: &reqwest::Error, connect_timeout: Duration) -> Self {
        if let Some(private) = chain(error).find_map(|cause| cause.downcast_ref::<PrivateName>()) {
            return Self::Private { host: private.host.clone(), address: private.address };
        }
        // The only time the client itself watches is that of connecting.
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

    /// What the client says about an answer that ended too soon.
    pub(super) fn of_body(error: &reqwest::Error) -> Self {
        Self::Broken(reason(error))
    }
}

/// What is wrong on this machine, if that is what an error says.
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

/// Said where the network is gone, as against one server.
pub(super) const NO_NETWORK: &str = "this machine has no network";

/// The innermost cause, which alone is about the matter: those around it name parts of libraries.
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
