//! Names to addresses, where only addresses that may be asked come out.
//!
//! The client connects to what comes out here and looks nothing up again, so a name server that
//! changes its mind between the check and the connection changes nothing.

use std::net::{IpAddr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address;

/// Why a name has no address for us. It travels inside the client's error and is found there again.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error("`{host}` is at the private address {address}")]
pub(super) struct PrivateName {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

/// A name that has no address at all.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` has no address")]
struct NoAddress(String);

/// The name server did not answer: it may well do so later, and may answer for others.
#[derive(Debug, thiserror::Error)]
#[error("the name server did not answer for `{0}`")]
pub(super) struct Unresolved(pub(super) String);

/// Who knows the addresses of names.
#[derive(Clone)]
pub(crate) enum Directory {
    /// The operating system.
    System,
    /// What a test says; asked anew each time, as a name server is.
    #[cfg(test)]
    Told(Teller),
    /// Nobody answers.
    #[cfg(test)]
    Silent,
}

/// Answers in place of a name server.
#[cfg(test)]
pub(crate) type Teller = std::sync::Arc<dyn Fn(&str) -> Vec<ResolvedAddress> + Send + Sync>;

/// An address of a name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolvedAddress {
    /// What is judged.
    pub(crate) address: IpAddr,
    /// What is connected to: the same, but in tests, where what is public is on this machine too.
    pub(crate) socket: SocketAddr,
}

/// The client's way from names to addresses.
pub(super) struct Resolver {
    pub(super) directory: Directory,
    pub(super) allow_private: bool,
}

impl Directory {
    async fn look_up(&self, host: &str) -> std::io::Result<Vec<ResolvedAddress>> {
        match self {
            // The port is not known here; the client puts in its own for 0.
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

/// Whether a name was not looked up at all, as against having no address. The system says so in
/// words alone: glibc, then musl.
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
                    // The system says in words of its own that nobody has this name.
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
