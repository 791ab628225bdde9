//! The tables, and the migration of older versions.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};
use tidings_store::database::migration;

use crate::WorkspaceError;

/// Each step migrates from the version before it; the first creates the tables. Published steps
/// never change, because a workspace may be at any of them.
const MIGRATIONS: [&str; 1] = [r"
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    mime TEXT NOT NULL,
    size INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE artifacts (
    -- The order in which they were stored; never used again.
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    hash TEXT NOT NULL REFERENCES blobs(hash),
    mime TEXT NOT NULL,
    size INTEGER NOT NULL,
    creator TEXT NOT NULL,
    created INTEGER NOT NULL,
    -- JSON, in order.
    tags TEXT NOT NULL,
    parents TEXT NOT NULL,
    collection TEXT,
    place INTEGER,
    metadata TEXT NOT NULL,
    archived INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX artifacts_of_set ON artifacts (collection, place)
    WHERE collection IS NOT NULL;
CREATE INDEX artifacts_of_creator ON artifacts (creator, key) WHERE archived = 0;
CREATE INDEX artifacts_recent ON artifacts (key) WHERE archived = 0;
CREATE INDEX artifacts_of_hash ON artifacts (hash);
-- Of artifacts that are not archived.
CREATE TABLE tagged (
    tag TEXT NOT NULL,
    artifact INTEGER NOT NULL REFERENCES artifacts(key),
    PRIMARY KEY (tag, artifact)
) WITHOUT ROWID;
CREATE TABLE descent (
    parent INTEGER NOT NULL REFERENCES artifacts(key),
    child INTEGER NOT NULL REFERENCES artifacts(key),
    PRIMARY KEY (parent, child)
) WITHOUT ROWID;
CREATE TABLE annotations (
    key INTEGER PRIMARY KEY,
    artifact INTEGER NOT NULL REFERENCES artifacts(key),
    -- From 1, for each artifact.
    number INTEGER NOT NULL,
    message TEXT NOT NULL,
    author TEXT NOT NULL,
    time INTEGER NOT NULL
);
CREATE UNIQUE INDEX annotations_of_artifact ON annotations (artifact, number);
-- Counted as it is written, so that nothing is counted when it is read.
CREATE TABLE counts (
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (kind, name)
) WITHOUT ROWID;
CREATE INDEX counts_by_count ON counts (kind, count DESC, name);
CREATE TABLE identities (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    tags TEXT NOT NULL,
    created INTEGER NOT NULL,
    -- The name and the id in lower case, to be found by a part of either.
    folded TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE hints (
    kind TEXT NOT NULL,
    value TEXT NOT NULL,
    identity TEXT NOT NULL REFERENCES identities(id),
    confidence REAL NOT NULL,
    PRIMARY KEY (kind, value)
) WITHOUT ROWID;
CREATE INDEX hints_of_identity ON hints (identity, kind, value);
CREATE TABLE connections (
    key INTEGER PRIMARY KEY AUTOINCREMENT,
    source TEXT NOT NULL REFERENCES identities(id),
    source_port TEXT NOT NULL,
    target TEXT NOT NULL REFERENCES identities(id),
    target_port TEXT NOT NULL,
    transport TEXT NOT NULL,
    UNIQUE (source, source_port, target, target_port, transport)
);
CREATE INDEX connections_to ON connections (target);
CREATE TABLE events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    time INTEGER NOT NULL,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    change TEXT NOT NULL
);
-- Of artifacts, by key.
CREATE VIRTUAL TABLE words USING fts5(
    title, body,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
-- Of annotations, by key: a remark costs the same however many there are.
CREATE VIRTUAL TABLE remarks USING fts5(
    message,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
"];

/// Tables that every version has.
const TABLES: [&str; 3] = ["artifacts", "blobs", "events"];

/// Migrates a workspace to this version.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), WorkspaceError> {
    migration::migrate(connection, &MIGRATIONS)
        .map_err(|error| WorkspaceError::migration(path, error))
}

/// The content of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// No tables.
    Empty,
    /// The tables of a workspace.
    Workspace,
    /// Other tables.
    Foreign,
}

/// The content of a database; an error if it is from a later release.
pub(super) fn kind(connection: &Connection, path: &Path) -> Result<Kind, WorkspaceError> {
    // In one transaction: another process may be creating the tables.
    let connection = connection.unchecked_transaction()?;
    let version = migration::version_of(&connection, &MIGRATIONS)
        .map_err(|error| WorkspaceError::migration(path, error))?;
    let mut statement = connection.prepare(
        "SELECT count(*), count(*) FILTER (WHERE name IN (?1, ?2, ?3)) FROM sqlite_master",
    )?;
    let (all, ours): (i64, i64) =
        statement.query_row(TABLES, |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(match version {
        0 if all == 0 => Kind::Empty,
        1.. if usize::try_from(ours) == Ok(TABLES.len()) => Kind::Workspace,
        _ => Kind::Foreign,
    })
}

/// Checks that a database belongs to a workspace, or is empty without blobs beside it.
pub(super) fn check(
    connection: &Connection,
    path: &Path,
    blobs: impl FnOnce() -> Result<bool, WorkspaceError>,
) -> Result<(), WorkspaceError> {
    let damaged = |details: &str| {
        Err(WorkspaceError::Damaged { path: path.to_owned(), details: details.to_owned() })
    };
    match kind(connection, path)? {
        Kind::Foreign => damaged("it is not the database of a workspace"),
        // Checked again: a process that creates the workspace makes its tables before its blobs.
        Kind::Empty if blobs()? && kind(connection, path)? == Kind::Empty => damaged(LOST),
        Kind::Workspace | Kind::Empty => Ok(()),
    }
}

/// The damage if the database is missing or empty beside blobs.
pub(super) const LOST: &str = "there is nothing in it, but `objects` has blobs";

/// Turns an error that means damage into one that says so.
pub(super) fn damaged(path: &Path, error: WorkspaceError) -> WorkspaceError {
    let WorkspaceError::Database(cause) = &error else { return error };
    let is_damage = match &**cause {
        // Stored values always have the type of their column.
        rusqlite::Error::InvalidColumnType(..)
        | rusqlite::Error::FromSqlConversionFailure(..)
        | rusqlite::Error::IntegralValueOutOfRange(..)
        | rusqlite::Error::Utf8Error(..) => true,
        cause => matches!(
            cause.sqlite_error_code(),
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase)
        ),
    };
    if !is_damage {
        return error;
    }
    WorkspaceError::Damaged { path: path.to_owned(), details: cause.to_string() }
}
