//! Name resolution that returns only admitted addresses.
//!
//! The client connects to these addresses and resolves nothing again, so a name server that changes
//! its answer between the check and the connection has no effect.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address;

/// Why a name has no admitted address. It is found again inside the client's error.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{host}` is at the private address {address}")]
pub(super) struct PrivateName {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

/// A name without any address.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` has no address")]
struct NoAddress(String);

/// The name server did not answer: it may do so later, or for other names.
#[derive(Debug, thiserror::Error)]
#[error("the name server did not answer for `{0}`")]
pub(super) struct Unresolved(pub(super) String);

/// The source of addresses.
#[derive(Clone)]
pub(crate) enum Directory {
    /// The operating system.
    System,
    /// A test; asked each time, like a name server.
    #[cfg(test)]
    Told(Teller),
    /// No answer.
    #[cfg(test)]
    Silent,
}

/// Answers in place of a name server.
#[cfg(test)]
pub(crate) type Teller = std::sync::Arc<dyn Fn(&str) -> Vec<ResolvedAddress> + Send + Sync>;

/// An address of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolvedAddress {
    /// The address that is checked.
    pub(crate) address: IpAddr,
    /// The address to connect to: the same, except in tests, where public addresses are on this
    /// machine too.
    pub(crate) socket: SocketAddr,
}

/// The client's resolver.
pub(super) struct Resolver {
    pub(super) directory: Directory,
    pub(super) allow_private: bool,
}

impl Directory {
    async fn look_up(&self, host: &str) -> std::io::Result<Vec<ResolvedAddress>> {
        match self {
            // The port is unknown here; the client replaces 0 by its own.
            Self::System => Ok(tokio::net::lookup_host((host, 0))
                .await?
                .map(|socket| ResolvedAddress { address: socket.ip(), socket })
                .collect()),
            #[cfg(test)]
            Self::Told(tell) => Ok(tell(host)),
            #[cfg(test)]
            Self::Silent => Err(std::io::Error::other("Temporary failure in name resolution")),
        }
    }
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Whether the name server did not answer, as opposed to a name without address. The system has
/// only texts for it: glibc, then musl.
fn is_temporary(error: &std::io::Error) -> bool {
    let text = error.to_string();
    text.contains("Temporary failure in name resolution") || text.ends_with("Try again")
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let directory = self.directory.clone();
        let allow_private = self.allow_private;
        Box::pin(async move {
            let host = name.as_str();
            let found = directory.look_up(host).await.map_err(|error| {
                if is_temporary(&error) {
                    Failed::from(Unresolved(host.to_owned()))
                } else if error.raw_os_error().is_none() {
                    // The system's own text for an unknown name.
                    NoAddress(host.to_owned()).into()
                } else {
                    error.into()
                }
            })?;
            let first = found.first().copied().ok_or_else(|| NoAddress(host.to_owned()))?;
            let allowed: Vec<_> = found
                .into_iter()
                .filter(|found| allow_private || address::is_public(found.address))
                .map(|found| found.socket)
                .collect();
            if allowed.is_empty() {
                return Err(PrivateName { host: host.to_owned(), address: first.address }.into());
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}
