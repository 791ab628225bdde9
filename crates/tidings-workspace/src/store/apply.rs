//! Applying events to the tables. An event is validated before it is logged.

use rusqlite::{Connection, params};
use tidings_store::date::Moment;

use crate::WorkspaceError;
use crate::change::{Change, Created, Event};
use crate::record::{self, Hint};
use crate::store::artifact::{self, names};
use crate::store::event::signed;
use crate::store::{Blobs, graph};

/// How much of a text is indexed for search.
const SEARCHED: u64 = 256 << 10;

/// Applies an event.
pub(super) fn apply(
    connection: &Connection,
    blobs: &Blobs,
    event: &Event,
) -> Result<(), WorkspaceError> {
    match &event.change {
        Change::BlobStored { hash, mime_type, size } => {
            store_blob(connection, hash, mime_type, *size)
        }
        Change::BlobsCollected { hashes } => forget_blobs(connection, hashes),
        Change::Created(created) => create(connection, blobs, created, event.time),
        Change::Tagged { artifact, tags } => {
            let row = artifact::state(connection, artifact)?;
            let mut all = row.tags.clone();
            all.extend(tags.iter().cloned());
            retag(connection, &row, all, tags, 1)
        }
        Change::Untagged { artifact, tags } => {
            let row = artifact::state(connection, artifact)?;
            let mut all = row.tags.clone();
            all.retain(|tag| !tags.contains(tag));
            retag(connection, &row, all, tags, -1)
        }
        Change::Annotated { artifact, message, author } => {
            annotate(connection, artifact, message, author, event.time)
        }
        Change::Archived { artifact } => archive(connection, artifact, true),
        Change::Restored { artifact } => archive(connection, artifact, false),
        Change::Bound { identity, name, hints, .. } => {
            bind(connection, identity, name, hints, event.time)
        }
        Change::IdentityTagged { identity, added, removed } => {
            retag_identity(connection, identity, added, removed)
        }
        Change::Unbound { identity, .. } => unbind(connection, identity),
        Change::Connected(ends) => connect(connection, ends),
        Change::Disconnected(ends) => disconnect(connection, ends),
        Change::Unknown(_) => {
            let (number, kind) = (event.number, event.change.kind());
            Err(WorkspaceError::Unreadable(format!("event {number} of the kind `{kind}`")))
        }
    }
}

fn store_blob(
    connection: &Connection,
    hash: &str,
    mime_type: &str,
    size: u64,
) -> Result<(), WorkspaceError> {
    connection
        .prepare_cached("INSERT OR IGNORE INTO blobs VALUES (?1, ?2, ?3)")?
        .execute(params![hash, mime_type, i64::try_from(size).unwrap_or(i64::MAX)])?;
    Ok(())
}

fn forget_blobs(connection: &Connection, hashes: &[String]) -> Result<(), WorkspaceError> {
    let mut statement = connection.prepare_cached("DELETE FROM blobs WHERE hash = ?1")?;
    hashes.iter().try_for_each(|hash| statement.execute([hash]).map(drop))?;
    Ok(())
}

fn annotate(
    connection: &Connection,
    artifact: &str,
    message: &str,
    author: &str,
    time: Moment,
) -> Result<(), WorkspaceError> {
    let row = artifact::state(connection, artifact)?;
    let number = artifact::annotated(connection, row.key)? + 1;
    connection
        .prepare_cached(
            "INSERT INTO annotations (artifact, number, message, author, time)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute(params![row.key, signed(number), message, author, time.millis()])?;
    connection
        .prepare_cached("INSERT INTO remarks (rowid, message) VALUES (?1, ?2)")?
        .execute(params![connection.last_insert_rowid(), message])?;
    Ok(())
}

fn retag_identity(
    connection: &Connection,
    identity: &str,
    added: &[String],
    removed: &[String],
) -> Result<(), WorkspaceError> {
    let mut tags = graph::tags(connection, identity)?.unwrap_or_default();
    tags.retain(|tag| !removed.contains(tag));
    tags.extend(added.iter().cloned());
    tags.sort();
    tags.dedup();
    connection
        .prepare_cached("UPDATE identities SET tags = ?2 WHERE id = ?1")?
        .execute(params![identity, names(&tags)])?;
    Ok(())
}

fn unbind(connection: &Connection, identity: &str) -> Result<(), WorkspaceError> {
    let delete = |statement| connection.prepare_cached(statement)?.execute([identity]);
    let ends = delete("DELETE FROM connections WHERE source = ?1 OR target = ?1")?;
    delete("DELETE FROM hints WHERE identity = ?1")?;
    delete("DELETE FROM identities WHERE id = ?1")?;
    count(connection, "connections", "", -i64::try_from(ends).unwrap_or(i64::MAX))?;
    count(connection, "identities", "", -1)
}

fn connect(connection: &Connection, ends: &record::Connection) -> Result<(), WorkspaceError> {
    connection
        .prepare_cached(
            "INSERT INTO connections (source, source_port, target, target_port, transport)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?
        .execute([&ends.from, &ends.from_port, &ends.to, &ends.to_port, &ends.transport])?;
    count(connection, "connections", "", 1)
}

fn disconnect(connection: &Connection, ends: &record::Connection) -> Result<(), WorkspaceError> {
    connection
        .prepare_cached(
            "DELETE FROM connections WHERE source = ?1 AND source_port = ?2
             AND target = ?3 AND target_port = ?4 AND transport = ?5",
        )?
        .execute([&ends.from, &ends.from_port, &ends.to, &ends.to_port, &ends.transport])?;
    count(connection, "connections", "", -1)
}

fn create(
    connection: &Connection,
    blobs: &Blobs,
    it: &Created,
    created: Moment,
) -> Result<(), WorkspaceError> {
    let metadata = serde_json::to_string(&it.metadata).unwrap_or_default();
    connection
        .prepare_cached(
            "INSERT INTO artifacts (id, title, hash, mime, size, creator, created, tags, parents,
                collection, place, metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            it.artifact,
            it.title,
            it.hash,
            it.mime_type,
            i64::try_from(it.size).unwrap_or(i64::MAX),
            it.creator,
            created.millis(),
            names(&it.tags),
            names(&it.parents),
            it.set,
            it.index.map(|index| i64::try_from(index).unwrap_or(i64::MAX)),
            metadata,
        ])?;
    let key = connection.last_insert_rowid();
    for parent in &it.parents {
        connection
            .prepare_cached(
                "INSERT OR IGNORE INTO descent SELECT key, ?2 FROM artifacts WHERE id = ?1",
            )?
            .execute(params![parent, key])?;
    }
    count(connection, "artifacts", "", 1)?;
    count(connection, "creator", &it.creator, 1)?;
    if let Some(set) = &it.set {
        count(connection, "set", set, 1)?;
    }
    tag(connection, key, &it.tags, 1)?;
    index(connection, blobs, key, &it.title, &it.hash)
}

fn retag(
    connection: &Connection,
    row: &artifact::State,
    mut all: Vec<String>,
    moved: &[String],
    by: i64,
) -> Result<(), WorkspaceError> {
    all.sort();
    all.dedup();
    connection
        .prepare_cached("UPDATE artifacts SET tags = ?2 WHERE key = ?1")?
        .execute(params![row.key, names(&all)])?;
    if row.archived { Ok(()) } else { tag(connection, row.key, moved, by) }
}

/// Adds an artifact to the lists of tags, or removes it.
fn tag(connection: &Connection, key: i64, tags: &[String], by: i64) -> Result<(), WorkspaceError> {
    let statement = if by > 0 {
        "INSERT INTO tagged VALUES (?1, ?2)"
    } else {
        "DELETE FROM tagged WHERE tag = ?1 AND artifact = ?2"
    };
    for tag in tags {
        connection.prepare_cached(statement)?.execute(params![tag, key])?;
        count(connection, "tag", tag, by)?;
        match tag.split_once(':') {
            Some((category, _)) => count(connection, "category", category, by)?,
            None => count(connection, "plain", "", by)?,
        }
    }
    Ok(())
}

fn archive(connection: &Connection, id: &str, away: bool) -> Result<(), WorkspaceError> {
    let row = artifact::state(connection, id)?;
    connection
        .prepare_cached("UPDATE artifacts SET archived = ?2 WHERE key = ?1")?
        .execute(params![row.key, away])?;
    let by = if away { -1 } else { 1 };
    count(connection, "artifacts", "", by)?;
    count(connection, "archived", "", -by)?;
    count(connection, "creator", &row.creator, by)?;
    tag(connection, row.key, &row.tags, by)
}

fn bind(
    connection: &Connection,
    id: &str,
    name: &str,
    hints: &[Hint],
    time: Moment,
) -> Result<(), WorkspaceError> {
    if graph::name(connection, id)?.is_none() {
        count(connection, "identities", "", 1)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO identities VALUES (?1, ?2, '[]', ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET name = excluded.name, folded = excluded.folded",
        )?
        .execute(params![id, name, time.millis(), graph::folded(id, name)])?;
    for hint in hints {
        connection
            .prepare_cached(
                "INSERT INTO hints VALUES (?1, ?2, ?3, ?4) ON CONFLICT (kind, value)
                 DO UPDATE SET identity = excluded.identity, confidence = excluded.confidence",
            )?
            .execute(params![hint.kind, hint.value, id, hint.confidence])?;
    }
    Ok(())
}

fn count(connection: &Connection, kind: &str, name: &str, by: i64) -> Result<(), WorkspaceError> {
    if by == 0 {
        return Ok(());
    }
    connection
        .prepare_cached(
            "INSERT INTO counts VALUES (?1, ?2, ?3)
             ON CONFLICT (kind, name) DO UPDATE SET count = count + excluded.count",
        )?
        .execute(params![kind, name, by])?;
    if by < 0 {
        connection
            .prepare_cached("DELETE FROM counts WHERE kind = ?1 AND name = ?2 AND count = 0")?
            .execute(params![kind, name])?;
    }
    Ok(())
}

/// Indexes the words of an artifact's title and text.
fn index(
    connection: &Connection,
    blobs: &Blobs,
    key: i64,
    title: &str,
    hash: &str,
) -> Result<(), WorkspaceError> {
    let body = blobs.text(hash, SEARCHED)?.unwrap_or_default();
    connection
        .prepare_cached("INSERT INTO words (rowid, title, body) VALUES (?1, ?2, ?3)")?
        .execute(params![key, title, body])?;
    Ok(())
}
