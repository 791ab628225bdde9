//! Which views a write may have moved. Too many is a needless look; too few would be a silence.

use crate::change::Change;
use crate::record::Entry;
use crate::view;

/// URIs, and patterns that end in `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) uris: Vec<String>,
    pub(crate) patterns: Vec<String>,
}

impl Touched {
    fn uri(&mut self, uri: impl Into<String>) {
        self.uris.push(uri.into());
    }

    /// A list, and every part of it.
    fn list(&mut self, uri: impl Into<String>) {
        let uri = uri.into();
        self.patterns.push(format!("{uri}?*"));
        self.uris.push(uri);
    }

    fn lists(&mut self, uris: Vec<String>) {
        for uri in uris {
            self.list(uri);
        }
    }

    fn identity(&mut self, id: &str) {
        self.uris.extend(view::identity(id));
    }

    /// Every list an artifact may be in.
    fn everywhere(&mut self, entry: &Entry) {
        self.list(view::RECENT);
        self.lists(view::by_creator(&entry.creator));
        if let Some(set) = &entry.set {
            self.lists(view::set(set));
        }
        for tag in &entry.tags {
            self.lists(view::by_tag(tag));
        }
    }
}

/// The views a change may have moved. `entry` is the artifact it is about as it is afterwards; a
/// new one says all of itself.
pub(crate) fn touched(change: &Change, entry: Option<&Entry>) -> Touched {
    let mut touched = Touched::default();
    touched.list(view::EVENTS);
    touched.patterns.push(view::ALL_SINCE.to_owned());
    match change {
        Change::BlobStored { hash, .. } => touched.uri(view::cas_uri(hash)),
        Change::BlobsCollected { hashes } => {
            for hash in hashes {
                touched.uri(view::cas_uri(hash));
            }
        }
        Change::Created(created) => {
            touched.uri(view::SUMMARY);
            touched.list(view::RECENT);
            touched.lists(view::by_creator(&created.creator));
            if let Some(set) = &created.set {
                touched.lists(view::set(set));
            }
            for tag in &created.tags {
                touched.lists(view::by_tag(tag));
            }
            // Watched before it was there.
            touched.uri(view::artifact_uri(&created.artifact));
            touched.patterns.push(format!("artifacts://lineage/{}", created.artifact));
            for parent in &created.parents {
                touched.uri(view::artifact_uri(parent));
            }
        }
        Change::Tagged { artifact, tags } | Change::Untagged { artifact, tags } => {
            touched.uri(view::SUMMARY);
            touched.uri(view::artifact_uri(artifact));
            for tag in tags {
                touched.lists(view::by_tag(tag));
            }
            if let Some(entry) = entry {
                touched.everywhere(entry);
            }
        }
        Change::Annotated { artifact, .. } => touched.uri(view::artifact_uri(artifact)),
        Change::Archived { artifact } | Change::Restored { artifact } => {
            touched.uri(view::SUMMARY);
            touched.uri(view::artifact_uri(artifact));
            touched.patterns.push(view::LINEAGES.to_owned());
            if let Some(entry) = entry {
                touched.everywhere(entry);
            }
        }
        Change::Bound { identity, losers, .. } => {
            touched.list(view::IDENTITIES);
            touched.identity(identity);
            for loser in losers {
                touched.identity(loser);
            }
        }
        Change::IdentityTagged { identity, .. } => {
            touched.list(view::IDENTITIES);
            touched.identity(identity);
        }
        Change::Unbound { identity, neighbours } => {
            touched.list(view::IDENTITIES);
            touched.list(view::CONNECTIONS);
            touched.identity(identity);
            for neighbour in neighbours {
                touched.identity(neighbour);
            }
        }
        Change::Connected(connection) | Change::Disconnected(connection) => {
            touched.list(view::CONNECTIONS);
            touched.identity(&connection.from);
            touched.identity(&connection.to);
        }
        // Whoever tells of it tells that anything may have moved.
        Change::Unknown(_) => {}
    }
    touched
}
