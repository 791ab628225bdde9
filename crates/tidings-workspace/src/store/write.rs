//! Writes of blobs and artifacts: validated, logged and applied.

use serde_json::{Map, Value};

use crate::change::{Change, Created};
use crate::record::Blob;
use crate::store::artifact::{self, counted};
use crate::store::commit::Ledger;
use crate::store::{Store, Whole, check_hash};
use crate::text::{self, Lines};
use crate::{Refusal, WorkspaceError, WorkspaceLimits, id};

/// The limit of indexes, so that they stay exact in every language that reads JSON.
const INDEX: u64 = 1 << 53;

/// An artifact to create.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Draft {
    /// Its title.
    pub title: String,
    /// The hash of stored bytes.
    pub hash: String,
    /// The MIME type; that of the blob by default.
    pub mime_type: Option<String>,
    /// Its creator.
    pub creator: String,
    /// Its tags, in any order; duplicates are removed.
    pub tags: Vec<String>,
    /// The ids of the artifacts it is made from.
    pub parents: Vec<String>,
    /// Its position in a set.
    pub place: Option<SetPlace>,
    /// Additional properties.
    pub metadata: Map<String, Value>,
}

impl Draft {
    /// An artifact of these bytes, without further properties.
    #[must_use]
    pub fn new(
        title: impl Into<String>,
        hash: impl Into<String>,
        creator: impl Into<String>,
    ) -> Self {
        Self {
            title: title.into(),
            hash: hash.into(),
            mime_type: None,
            creator: creator.into(),
            tags: Vec::new(),
            parents: Vec::new(),
            place: None,
            metadata: Map::new(),
        }
    }
}

/// A position in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetPlace {
    /// The name of the set; a set exists while it has artifacts.
    pub set: String,
    /// The position, from 0; after the last one by default.
    pub index: Option<u64>,
}

impl Store {
    /// Stores bytes as a blob. If equal bytes exist, their MIME type stays.
    pub(crate) fn put(
        &self,
        whole: Whole,
        mime: Option<String>,
        actor: &str,
    ) -> Result<Blob, WorkspaceError> {
        let limits = &self.config.limits;
        text::check("creator", actor, limits.name, Lines::One)?;
        if let Some(mime) = &mime {
            text::mime_type(mime, limits.tag)?;
        }
        // Before the transaction, so that writers wait for their files in parallel.
        let was_lost = self.is_lost(&whole.hash)?;
        self.blobs.keep(&whole)?;
        let actor = actor.to_owned();
        self.write(move |ledger| put(ledger, &whole, was_lost, mime, &actor))
    }

    /// Whether a blob is known, but its file is gone.
    fn is_lost(&self, hash: &str) -> Result<bool, WorkspaceError> {
        // Order: a file is stored before its entry, so it exists unless it was lost.
        Ok(self.blob(hash)?.is_some() && !self.has_file(hash))
    }

    /// Stores bytes and creates an artifact from them, in one step; returns its id.
    pub(crate) fn create_of(
        &self,
        whole: Whole,
        mut draft: Draft,
        actor: &str,
    ) -> Result<String, WorkspaceError> {
        draft.hash.clone_from(&whole.hash);
        let draft = checked(draft, &self.config.limits)?;
        let was_lost = self.is_lost(&whole.hash)?;
        self.blobs.keep(&whole)?;
        let actor = actor.to_owned();
        self.write(move |ledger| {
            put(ledger, &whole, was_lost, draft.mime_type.clone(), &actor)?;
            create(ledger, draft, &actor)
        })
    }

    /// Creates an artifact; returns its id.
    pub(crate) fn create(&self, draft: Draft, actor: &str) -> Result<String, WorkspaceError> {
        let draft = checked(draft, &self.config.limits)?;
        let actor = actor.to_owned();
        self.write(move |ledger| create(ledger, draft, &actor))
    }

    /// Adds tags; returns the new ones.
    pub(crate) fn tag(
        &self,
        artifact: &str,
        tags: &[String],
        actor: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        let tags = text::tags(tags, &self.config.limits)?;
        let (artifact, actor) = (artifact.to_owned(), actor.to_owned());
        self.write(move |ledger| {
            let row = artifact::state(ledger.connection, &artifact)?;
            let mut tags = tags;
            tags.retain(|tag| !row.tags.contains(tag));
            if tags.is_empty() {
                return Ok(tags);
            }
            at_most("tags", row.tags.len() + tags.len(), ledger.limits.tags)?;
            ledger.record(&actor, Change::Tagged { artifact, tags: tags.clone() })?;
            Ok(tags)
        })
    }

    /// Removes tags; returns those the artifact had.
    pub(crate) fn untag(
        &self,
        artifact: &str,
        tags: &[String],
        actor: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        let (artifact, actor) = (artifact.to_owned(), actor.to_owned());
        let mut tags = tags.to_vec();
        tags.sort();
        tags.dedup();
        self.write(move |ledger| {
            let row = artifact::state(ledger.connection, &artifact)?;
            let mut tags = tags;
            tags.retain(|tag| row.tags.contains(tag));
            if !tags.is_empty() {
                ledger.record(&actor, Change::Untagged { artifact, tags: tags.clone() })?;
            }
            Ok(tags)
        })
    }

    /// Adds an annotation; returns how many there are now.
    pub(crate) fn annotate(
        &self,
        artifact: &str,
        message: &str,
        author: &str,
        actor: &str,
    ) -> Result<u64, WorkspaceError> {
        let limits = &self.config.limits;
        text::check("message", message, limits.message, Lines::Many)?;
        text::check("author", author, limits.name, Lines::One)?;
        let (artifact, message) = (artifact.to_owned(), message.to_owned());
        let (author, actor) = (author.to_owned(), actor.to_owned());
        self.write(move |ledger| {
            let row = artifact::state(ledger.connection, &artifact)?;
            let count = artifact::annotated(ledger.connection, row.key)? + 1;
            let limit = ledger.limits.annotations;
            at_most("annotations", usize::try_from(count).unwrap_or(usize::MAX), limit)?;
            ledger.record(&actor, Change::Annotated { artifact, message, author })?;
            Ok(count)
        })
    }

    /// Archives or restores an artifact; returns whether that changed anything.
    pub(crate) fn archive(
        &self,
        artifact: &str,
        away: bool,
        actor: &str,
    ) -> Result<bool, WorkspaceError> {
        let (artifact, actor) = (artifact.to_owned(), actor.to_owned());
        self.write(move |ledger| {
            if artifact::state(ledger.connection, &artifact)?.archived == away {
                return Ok(false);
            }
            let change =
                if away { Change::Archived { artifact } } else { Change::Restored { artifact } };
            ledger.record(&actor, change)?;
            Ok(true)
        })
    }
}

/// Validates a draft; sorts its tags and removes duplicates.
fn checked(mut draft: Draft, limits: &WorkspaceLimits) -> Result<Draft, WorkspaceError> {
    text::check("title", &draft.title, limits.name, Lines::One)?;
    text::check("creator", &draft.creator, limits.name, Lines::One)?;
    check_hash(&draft.hash)?;
    if let Some(mime) = &draft.mime_type {
        text::mime_type(mime, limits.tag)?;
    }
    draft.tags = text::tags(&draft.tags, limits)?;
    at_most("parents", draft.parents.len(), limits.parents)?;
    let mut seen = std::collections::HashSet::new();
    draft.parents.retain(|parent| seen.insert(parent.clone()));
    if let Some(place) = &draft.place {
        text::check("set", &place.set, limits.name, Lines::One)?;
        if place.index.is_some_and(|index| index >= INDEX) {
            return Err(Refusal::Index.into());
        }
    }
    let length = serde_json::to_string(&draft.metadata).unwrap_or_default().len();
    if length > limits.metadata {
        let limit = limits.metadata;
        return Err(Refusal::TooLong { what: "metadata", length, limit }.into());
    }
    Ok(draft)
}

/// Logs a new blob, or one whose lost bytes are back, so that its watchers are notified.
fn put(
    ledger: &mut Ledger<'_>,
    whole: &Whole,
    was_lost: bool,
    mime: Option<String>,
    actor: &str,
) -> Result<Blob, WorkspaceError> {
    // Checked again, now that nothing can be collected meanwhile.
    let was_lost = was_lost || !ledger.blobs.path_of(&whole.hash).is_file();
    ledger.blobs.keep(whole)?;
    let known = artifact::blob(ledger.connection, &whole.hash)?;
    let is_known = known.is_some();
    let blob = known.unwrap_or_else(|| {
        let mime_type = mime.unwrap_or_else(|| whole.mime.clone());
        Blob { hash: whole.hash.clone(), mime_type, size: whole.size }
    });
    if is_known && !was_lost {
        return Ok(blob);
    }
    ledger.blobs.settle(whole)?;
    let Blob { hash, mime_type, size } = blob.clone();
    ledger.record(actor, Change::BlobStored { hash, mime_type, size })?;
    Ok(blob)
}

fn create(ledger: &mut Ledger<'_>, draft: Draft, actor: &str) -> Result<String, WorkspaceError> {
    let connection = ledger.connection;
    let blob = artifact::blob(connection, &draft.hash)?
        .ok_or_else(|| Refusal::NoBlob(draft.hash.clone()))?;
    if !ledger.blobs.path_of(&blob.hash).is_file() {
        return Err(Refusal::NoBlob(draft.hash).into());
    }
    for parent in &draft.parents {
        let is_there =
            connection.prepare_cached("SELECT 1 FROM artifacts WHERE id = ?1")?.exists([parent])?;
        if !is_there {
            return Err(Refusal::NoParent(parent.clone()).into());
        }
    }
    let (set, index) = match draft.place {
        None => (None, None),
        Some(SetPlace { set, index }) => {
            let index = place_in(ledger, &set, index)?;
            (Some(set), Some(index))
        }
    };
    let id = id::new();
    let created = Created {
        artifact: id.clone(),
        title: draft.title,
        hash: blob.hash,
        mime_type: draft.mime_type.unwrap_or(blob.mime_type),
        size: blob.size,
        creator: draft.creator,
        tags: draft.tags,
        parents: draft.parents,
        set,
        index,
        metadata: draft.metadata,
    };
    ledger.record(actor, Change::Created(Box::new(created)))?;
    Ok(id)
}

/// The requested position, if it is free, or the one after the last.
fn place_in(ledger: &Ledger<'_>, set: &str, index: Option<u64>) -> Result<u64, WorkspaceError> {
    let connection = ledger.connection;
    let Some(index) = index else {
        if counted(connection, "set", set)? == 0 {
            return Ok(0);
        }
        let last: Option<i64> = connection
            .prepare_cached("SELECT max(place) FROM artifacts WHERE collection = ?1")?
            .query_row([set], |row| row.get(0))?;
        let next = last.map_or(0, |last| last.unsigned_abs() + 1);
        return if next < INDEX { Ok(next) } else { Err(Refusal::Index.into()) };
    };
    let is_taken = connection
        .prepare_cached("SELECT 1 FROM artifacts WHERE collection = ?1 AND place = ?2")?
        .exists(rusqlite::params![set, i64::try_from(index).unwrap_or(i64::MAX)])?;
    if is_taken {
        return Err(Refusal::PlaceTaken { set: set.to_owned(), index }.into());
    }
    Ok(index)
}

/// Refuses more than `limit` items.
pub(super) fn at_most(what: &'static str, count: usize, limit: usize) -> Result<(), Refusal> {
    if count > limit { Err(Refusal::TooMany { what, count, limit }) } else { Ok(()) }
}
