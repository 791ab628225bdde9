//! What a workspace holds, as it is shown: the fields and their order are those of every body.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::stamp::Stamp;

/// Bytes that are kept, by their hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Blob {
    /// The whole BLAKE3 hash, in hexadecimal.
    pub hash: String,
    /// What kind of bytes, as it was said when they were first stored.
    pub mime_type: String,
    /// How many.
    pub size: u64,
}

/// An artifact in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ArtifactEntry {
    /// Its own id: unique, and it begins with the time it was made at.
    pub id: String,
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
    /// When.
    pub created: Stamp,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// The set it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Its place in the set, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Whether it was put away.
    pub archived: bool,
}

/// An artifact with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Artifact {
    /// As in lists.
    #[serde(flatten)]
    pub entry: ArtifactEntry,
    /// The ids of those it was made from, in the order they were named.
    pub parents: Vec<String>,
    /// The ids of the first hundred that were made from it, oldest first.
    pub children: Vec<String>,
    /// How many were made from it.
    pub child_count: u64,
    /// What else was said of it.
    pub metadata: Map<String, Value>,
    /// The newest hundred of what was remarked, oldest first.
    pub annotations: Vec<Annotation>,
    /// How much was remarked.
    pub annotation_count: u64,
}

/// A remark on an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Annotation {
    /// What was said.
    pub message: String,
    /// By whom.
    pub author: String,
    /// When.
    pub time: Stamp,
}

/// An artifact and what it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lineage {
    /// Each once, roots first, itself last.
    pub items: Vec<Ancestor>,
    /// Whether there are more than ten thousand; then those furthest from it are left out.
    pub truncated: bool,
}

/// One of a lineage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Ancestor {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What kind of bytes.
    pub mime_type: String,
    /// Who made it.
    pub creator: String,
    /// When.
    pub created: Stamp,
    /// Those it was made from.
    pub parents: Vec<String>,
    /// Whether it was put away.
    pub archived: bool,
}

/// Part of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListPage<T> {
    /// How many there are in the whole list.
    pub total: u64,
    /// Some of them, in the order of the list.
    pub items: Vec<T>,
    /// What to give as `after` for those that follow; nothing at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Something by which an identity is recognised. No two identities have the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// What kind of hint.
    pub kind: String,
    /// What it says.
    pub value: String,
    /// How sure it is, from 0 to 1.
    #[serde(default = "sure")]
    pub confidence: f64,
}

fn sure() -> f64 {
    1.0
}

/// An identity in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Identity {
    /// Its id, as it was given.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// When it was first bound.
    pub created: Stamp,
}

/// An identity with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct IdentityDetails {
    /// As in lists.
    #[serde(flatten)]
    pub identity: Identity,
    /// By what it is recognised, in order of kind and value.
    pub hints: Vec<Hint>,
    /// The first hundred connections from it and to it, in the order they were made.
    pub connections: Vec<Connection>,
    /// How many connections there are from it and to it.
    pub connection_count: u64,
}

/// A connection of two identities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// Where it begins: the id of an identity.
    pub from: String,
    /// The port there.
    pub from_port: String,
    /// Where it ends: the id of an identity.
    pub to: String,
    /// The port there.
    pub to_port: String,
    /// What kind of connection it is; may be empty.
    #[serde(default)]
    pub transport: String,
}

/// How much there is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Artifacts that are not archived.
    pub artifacts: u64,
    /// Those that are.
    pub archived: u64,
    /// Uses of tags by category, in order; plain tags are without one.
    pub categories: Vec<Category>,
    /// The hundred creators with the most artifacts.
    pub creators: Vec<Count>,
    /// The hundred sets with the most artifacts.
    pub sets: Vec<Count>,
}

/// The tags of one category.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Category {
    /// What stands before the colon; nothing for plain tags.
    pub category: Option<String>,
    /// How often artifacts have such a tag.
    pub tagged: u64,
}

/// How many artifacts have something in common.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Count {
    /// What it is.
    pub name: String,
    /// How many.
    pub artifacts: u64,
}
