//! Listeners and watched URIs, for inspection.

use rmcp::model::Implementation;
use tidings_core::{ListKind, ListKinds, ResourceUri};
use tokio::time::Instant;

use crate::labels::Labels;

/// How a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// A pair of byte streams, usually standard input and output.
    Stdio,
    /// Streamable HTTP.
    Http,
}

/// The identity of a listener.
#[derive(Clone, Debug)]
pub(crate) struct About {
    /// The client's name and version, if stated.
    pub(crate) client: Option<Box<str>>,
    pub(crate) transport: Transport,
    /// Lists that clients of its protocol revision are not notified of.
    pub(crate) withheld: ListKinds,
}

impl About {
    pub(crate) fn new(
        client: Option<&Implementation>,
        transport: Transport,
        withheld: ListKinds,
    ) -> Self {
        let client = client.map(|client| format!("{} {}", client.name, client.version).into());
        Self { client, transport, withheld }
    }
}

/// One listener: a legacy session, or one modern listen request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListenerInfo {
    /// Its number.
    pub id: u64,
    /// The client's name and version, if stated.
    pub client: Option<String>,
    /// Whether it is a modern listen request.
    pub is_modern: bool,
    /// How it is connected.
    pub transport: Transport,
    /// When it began to listen.
    pub since: Instant,
    /// The lists it follows.
    pub lists: Vec<ListKind>,
    /// The labels it has.
    pub labels: Labels,
    /// The URIs it watches, sorted.
    pub uris: Vec<ResourceUri>,
    /// Notices that wait for it.
    pub waiting: usize,
    /// Notices that were sent to it.
    pub told: u64,
}

/// One watched URI.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WatchedInfo {
    /// The URI.
    pub uri: ResourceUri,
    /// The number of listeners that watch it.
    pub listeners: usize,
    /// The number of changes that its source announced.
    pub changes: u64,
}

#[cfg(test)]
impl About {
    /// An unknown client.
    pub(crate) fn nobody() -> Self {
        Self::new(None, Transport::Stdio, ListKinds::EMPTY)
    }
}
