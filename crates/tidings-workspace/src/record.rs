//! Records of a workspace, as shown: fields and their order are those of all JSON bodies.

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};
use tidings_store::date::Moment;

/// A stored blob, named by its hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Blob {
    /// The BLAKE3 hash, in hexadecimal.
    pub hash: String,
    /// The MIME type, as it was first stored.
    pub mime_type: String,
    /// The number of bytes.
    pub size: u64,
}

/// An artifact in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ArtifactEntry {
    /// Its id: unique, and sorted by creation time.
    pub id: String,
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
    /// When it was created.
    #[serde(serialize_with = "to_the_millisecond")]
    pub created: Moment,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// The set it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub set: Option<String>,
    /// Its position in the set, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
    /// Whether it is archived.
    pub archived: bool,
}

/// An artifact with its details.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Artifact {
    /// As in lists.
    #[serde(flatten)]
    pub entry: ArtifactEntry,
    /// The ids of the artifacts it was made from, in the given order.
    pub parents: Vec<String>,
    /// The ids of the first hundred artifacts made from it, oldest first.
    pub children: Vec<String>,
    /// How many artifacts were made from it.
    pub child_count: u64,
    /// Additional properties.
    pub metadata: Map<String, Value>,
    /// The newest hundred annotations, oldest first.
    pub annotations: Vec<Annotation>,
    /// How many annotations it has.
    pub annotation_count: u64,
}

/// An annotation of an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Annotation {
    /// The text.
    pub message: String,
    /// Its author.
    pub author: String,
    /// When it was added.
    #[serde(serialize_with = "to_the_millisecond")]
    pub time: Moment,
}

/// An artifact and all artifacts it was made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Lineage {
    /// Each artifact once, roots first, the artifact itself last.
    pub items: Vec<Ancestor>,
    /// Whether there are more than ten thousand; then the most distant ones are left out.
    pub truncated: bool,
}

/// An artifact of a lineage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Ancestor {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// The MIME type.
    pub mime_type: String,
    /// Its creator.
    pub creator: String,
    /// When it was created.
    #[serde(serialize_with = "to_the_millisecond")]
    pub created: Moment,
    /// The ids of the artifacts it was made from.
    pub parents: Vec<String>,
    /// Whether it is archived.
    pub archived: bool,
}

/// A page of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ListPage<T> {
    /// The length of the whole list.
    pub total: u64,
    /// The items of this page, in the order of the list.
    pub items: Vec<T>,
    /// The `after` of the next page; not set at the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// A property by which an identity is recognised. No two identities share one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hint {
    /// The kind of hint.
    pub kind: String,
    /// Its value.
    pub value: String,
    /// The confidence, from 0 to 1.
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
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags, in order.
    pub tags: Vec<String>,
    /// When it was created.
    #[serde(serialize_with = "to_the_millisecond")]
    pub created: Moment,
}

/// An identity with its details.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct IdentityDetails {
    /// As in lists.
    #[serde(flatten)]
    pub identity: Identity,
    /// Its hints, sorted by kind and value.
    pub hints: Vec<Hint>,
    /// The first hundred connections from and to it, oldest first.
    pub connections: Vec<Connection>,
    /// How many connections it has.
    pub connection_count: u64,
}

/// A connection between two identities.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connection {
    /// The id of the source identity.
    pub from: String,
    /// The port of the source.
    pub from_port: String,
    /// The id of the target identity.
    pub to: String,
    /// The port of the target.
    pub to_port: String,
    /// The kind of connection; may be empty.
    #[serde(default)]
    pub transport: String,
}

/// The number of artifacts, and how they are used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Summary {
    /// Artifacts that are not archived.
    pub artifacts: u64,
    /// Artifacts that are archived.
    pub archived: u64,
    /// Uses of tags by category, sorted; plain tags have none.
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
    /// The text before the colon; `None` for plain tags.
    pub category: Option<String>,
    /// How many tags of this category artifacts have.
    pub tagged: u64,
}

/// The number of artifacts with a creator or in a set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Count {
    /// The name of the creator or set.
    pub name: String,
    /// The number of artifacts.
    pub artifacts: u64,
}

/// Moments of a workspace are written to the millisecond: `2026-01-31T09:30:00.250Z`.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
pub(crate) fn to_the_millisecond<S: Serializer>(
    moment: &Moment,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{moment:.3}"))
}
