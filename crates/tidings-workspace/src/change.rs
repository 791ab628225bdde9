//! What a write does, as the log keeps it: applied again in order, they give the same workspace.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::record::{Connection, Hint};
use crate::stamp::Stamp;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Event {
    /// Its number; they follow each other without a gap.
    pub number: u64,
    /// When it was written.
    pub time: Stamp,
    /// Who did it.
    pub actor: String,
    /// What was done.
    #[serde(flatten)]
    pub change: Change,
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum Change {
    /// Bytes that were not there before, or not any more.
    #[serde(rename = "blob.stored", rename_all = "camelCase")]
    BlobStored {
        /// Their hash.
        hash: String,
        /// What kind of bytes.
        mime_type: String,
        /// How many.
        size: u64,
    },
    /// Bytes nobody used were removed.
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
        /// The new ones.
        tags: Vec<String>,
    },
    /// An artifact lost tags.
    #[serde(rename = "artifact.untagged")]
    Untagged {
        /// Its id.
        artifact: String,
        /// Those it had.
        tags: Vec<String>,
    },
    /// Somebody remarked something.
    #[serde(rename = "artifact.annotated")]
    Annotated {
        /// The artifact's id.
        artifact: String,
        /// What was said.
        message: String,
        /// By whom.
        author: String,
    },
    /// An artifact was put away.
    #[serde(rename = "artifact.archived")]
    Archived {
        /// Its id.
        artifact: String,
    },
    /// An artifact was taken out again.
    #[serde(rename = "artifact.restored")]
    Restored {
        /// Its id.
        artifact: String,
    },
    /// An identity is new, has another name, or more hints.
    #[serde(rename = "identity.bound")]
    Bound {
        /// Its id.
        identity: String,
        /// Its name from now on.
        name: String,
        /// Hints that are new or of another confidence.
        hints: Vec<Hint>,
        /// The identities that lost one of these hints.
        losers: Vec<String>,
    },
    /// An identity got or lost tags.
    #[serde(rename = "identity.tagged")]
    IdentityTagged {
        /// Its id.
        identity: String,
        /// Those it did not have.
        added: Vec<String>,
        /// Those it had.
        removed: Vec<String>,
    },
    /// An identity is gone with its hints, tags and connections.
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
    /// A connection is gone.
    #[serde(rename = "connection.removed")]
    Disconnected(Connection),
    /// Something this release does not know, or cannot read: as it was written, as far as it is
    /// JSON, with its kind as `type`.
    #[serde(untagged, skip_deserializing)]
    Unknown(Map<String, Value>),
}

/// A new artifact as the log keeps it.
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
    /// What kind of bytes.
    pub mime_type: String,
    /// How many.
    pub size: u64,
    /// Who made it.
    pub creator: String,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// Those it was made from.
    pub parents: Vec<String>,
    /// The set it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Its place there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// What else was said of it.
    pub metadata: Map<String, Value>,
}

impl Change {
    /// The words for what can be done, as far as this release knows.
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

    /// The word for what was done.
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

    /// The artifact it is about, if it is about one.
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
