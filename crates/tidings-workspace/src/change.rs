//! Events of the log. Applied in order, they rebuild the workspace.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tidings_store::date::Moment;

use crate::record::{Connection, Hint, to_the_millisecond};

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// Its number; numbers have no gaps.
    pub number: u64,
    /// When it was written.
    #[serde(serialize_with = "to_the_millisecond")]
    pub time: Moment,
    /// The client or program that made the change.
    pub actor: String,
    /// The change.
    #[serde(flatten)]
    pub change: Change,
}

/// A change of a workspace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Change {
    /// A blob was stored, or its lost bytes were stored again.
    #[serde(rename = "blob.stored", rename_all = "camelCase")]
    BlobStored {
        /// Their hash.
        hash: String,
        /// The MIME type.
        mime_type: String,
        /// The number of bytes.
        size: u64,
    },
    /// Unused blobs were removed.
    #[serde(rename = "blobs.collected")]
    BlobsCollected {
        /// Their hashes.
        hashes: Vec<String>,
    },
    /// A new artifact.
    #[serde(rename = "artifact.created")]
    Created(Box<Created>),
    /// An artifact got tags it did not have.
    #[serde(rename = "artifact.tagged")]
    Tagged {
        /// Its id.
        artifact: String,
        /// The new tags.
        tags: Vec<String>,
    },
    /// An artifact lost tags.
    #[serde(rename = "artifact.untagged")]
    Untagged {
        /// Its id.
        artifact: String,
        /// The removed tags.
        tags: Vec<String>,
    },
    /// An annotation was added to an artifact.
    #[serde(rename = "artifact.annotated")]
    Annotated {
        /// The artifact's id.
        artifact: String,
        /// The text.
        message: String,
        /// Its author.
        author: String,
    },
    /// An artifact was archived.
    #[serde(rename = "artifact.archived")]
    Archived {
        /// Its id.
        artifact: String,
    },
    /// An archived artifact was restored.
    #[serde(rename = "artifact.restored")]
    Restored {
        /// Its id.
        artifact: String,
    },
    /// An identity was created or renamed, or got hints.
    #[serde(rename = "identity.bound")]
    Bound {
        /// Its id.
        identity: String,
        /// Its current name.
        name: String,
        /// Hints that are new or have a new confidence.
        hints: Vec<Hint>,
        /// The identities that lost one of these hints.
        losers: Vec<String>,
    },
    /// An identity got or lost tags.
    #[serde(rename = "identity.tagged")]
    IdentityTagged {
        /// Its id.
        identity: String,
        /// The new tags.
        added: Vec<String>,
        /// The removed tags.
        removed: Vec<String>,
    },
    /// An identity was removed with its hints, tags and connections.
    #[serde(rename = "identity.unbound")]
    Unbound {
        /// Its id.
        identity: String,
        /// The identities at the other ends of its connections.
        neighbours: Vec<String>,
    },
    /// Two identities were connected.
    #[serde(rename = "connection.made")]
    Connected(Connection),
    /// A connection was removed.
    #[serde(rename = "connection.removed")]
    Disconnected(Connection),
    /// A change that this release does not know or cannot read: the JSON as it was written, with
    /// its kind as `type`.
    #[serde(untagged, skip_deserializing)]
    Unknown(Map<String, Value>),
}

/// A new artifact, as logged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Created {
    /// Its id.
    pub artifact: String,
    /// Its title.
    pub title: String,
    /// The hash of its bytes.
    pub hash: String,
    /// The MIME type.
    pub mime_type: String,
    /// The number of bytes.
    pub size: u64,
    /// Its creator.
    pub creator: String,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// The ids of the artifacts it was made from.
    pub parents: Vec<String>,
    /// The set it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Its position in the set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Additional properties.
    pub metadata: Map<String, Value>,
}

impl Change {
    /// All kinds that this release knows.
    pub const KINDS: [&str; 13] = [
        "blob.stored",
        "blobs.collected",
        "artifact.created",
        "artifact.tagged",
        "artifact.untagged",
        "artifact.annotated",
        "artifact.archived",
        "artifact.restored",
        "identity.bound",
        "identity.tagged",
        "identity.unbound",
        "connection.made",
        "connection.removed",
    ];

    /// The kind of the change.
    #[must_use]
    pub fn kind(&self) -> &str {
        Self::KINDS[match self {
            Self::Unknown(fields) => {
                return fields.get("type").and_then(Value::as_str).unwrap_or_default();
            }
            Self::BlobStored { .. } => 0,
            Self::BlobsCollected { .. } => 1,
            Self::Created(_) => 2,
            Self::Tagged { .. } => 3,
            Self::Untagged { .. } => 4,
            Self::Annotated { .. } => 5,
            Self::Archived { .. } => 6,
            Self::Restored { .. } => 7,
            Self::Bound { .. } => 8,
            Self::IdentityTagged { .. } => 9,
            Self::Unbound { .. } => 10,
            Self::Connected(_) => 11,
            Self::Disconnected(_) => 12,
        }]
    }

    /// The id of the changed artifact, if it is one.
    #[must_use]
    pub fn artifact(&self) -> Option<&str> {
        match self {
            Self::Created(created) => Some(&created.artifact),
            Self::Tagged { artifact, .. }
            | Self::Untagged { artifact, .. }
            | Self::Annotated { artifact, .. }
            | Self::Archived { artifact }
            | Self::Restored { artifact } => Some(artifact),
            _ => None,
        }
    }
}
