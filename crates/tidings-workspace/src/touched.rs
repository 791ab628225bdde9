//! Views that a change may affect. One too many costs a needless comparison; one too few loses a
//! notice.

use crate::change::{Change, Created};
use crate::record::ArtifactEntry;
use crate::view;

/// URIs, and patterns that end in `*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TouchedUris {
    pub(crate) uris: Vec<String>,
    pub(crate) patterns: Vec<String>,
}

impl TouchedUris {
    fn uri(&mut self, uri: impl Into<String>) {
        self.uris.push(uri.into());
    }

    /// A list, and every page of it.
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

    fn identities(&mut self, ids: &[String]) {
        for id in ids {
            self.identity(id);
        }
    }

    /// Every list that artifacts with this creator, set and tags may be in.
    fn lists_of(&mut self, creator: &str, set: Option<&str>, tags: &[String]) {
        self.list(view::RECENT);
        self.lists(view::by_creator(creator));
        if let Some(set) = set {
            self.lists(view::set(set));
        }
        for tag in tags {
            self.lists(view::by_tag(tag));
        }
    }

    /// A new artifact, which may have been watched before it existed.
    fn created(&mut self, created: &Created) {
        self.uri(view::SUMMARY);
        self.lists_of(&created.creator, created.set.as_deref(), &created.tags);
        self.uri(view::artifact_uri(&created.artifact));
        self.patterns.push(format!("artifacts://lineage/{}", created.artifact));
        for parent in &created.parents {
            self.uri(view::artifact_uri(parent));
        }
    }

    /// An artifact that is shown differently, with the lists that show it.
    fn shown(&mut self, artifact: &str, entry: Option<&ArtifactEntry>) {
        self.uri(view::SUMMARY);
        self.uri(view::artifact_uri(artifact));
        if let Some(entry) = entry {
            self.lists_of(&entry.creator, entry.set.as_deref(), &entry.tags);
        }
    }
}

/// The views that a change may affect. `entry` is the changed artifact as it is now; a new artifact
/// needs none.
pub(crate) fn touched(change: &Change, entry: Option<&ArtifactEntry>) -> TouchedUris {
    let mut touched = TouchedUris::default();
    touched.list(view::EVENTS);
    touched.patterns.push(view::ALL_SINCE.to_owned());
    match change {
        Change::BlobStored { hash, .. } => touched.uri(view::cas_uri(hash)),
        Change::BlobsCollected { hashes } => {
            for hash in hashes {
                touched.uri(view::cas_uri(hash));
            }
        }
        Change::Created(created) => touched.created(created),
        Change::Tagged { artifact, tags } | Change::Untagged { artifact, tags } => {
            touched.shown(artifact, entry);
            for tag in tags {
                touched.lists(view::by_tag(tag));
            }
        }
        Change::Annotated { artifact, .. } => touched.uri(view::artifact_uri(artifact)),
        Change::Archived { artifact } | Change::Restored { artifact } => {
            touched.shown(artifact, entry);
            touched.patterns.push(view::LINEAGES.to_owned());
        }
        Change::Bound { identity, losers, .. } => {
            touched.list(view::IDENTITIES);
            touched.identity(identity);
            touched.identities(losers);
        }
        Change::IdentityTagged { identity, .. } => {
            touched.list(view::IDENTITIES);
            touched.identity(identity);
        }
        Change::Unbound { identity, neighbours } => {
            touched.list(view::IDENTITIES);
            touched.list(view::CONNECTIONS);
            touched.identity(identity);
            touched.identities(neighbours);
        }
        Change::Connected(connection) | Change::Disconnected(connection) => {
            touched.list(view::CONNECTIONS);
            touched.identity(&connection.from);
            touched.identity(&connection.to);
        }
        // The publisher announces everything in this case.
        Change::Unknown(_) => {}
    }
    touched
}
