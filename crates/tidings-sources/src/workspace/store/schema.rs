//! The tables, and how a workspace of an older version becomes one of this.

use std::path::Path;

use rusqlite::{Connection, ErrorCode};

use crate::migration;
use crate::workspace::WorkspaceError;

/// Each makes a workspace of the version before it one of the next; the first makes one of
/// nothing. What is written here stays as it is: a workspace may be at any of them.
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

/// Makes the workspace one of this version.
pub(super) fn migrate(connection: &mut Connection) -> Result<(), WorkspaceError> {
    Ok(migration::migrate(connection, &MIGRATIONS)?)
}

/// Checks that a database is one, of a version this release knows.
pub(super) fn check(connection: &Connection) -> Result<(), WorkspaceError> {
    migration::version_of(connection, &MIGRATIONS)?;
    Ok(())
}

/// Says that a database is damaged, where that is what an error means.
pub(super) fn damaged(path: &Path, error: WorkspaceError) -> WorkspaceError {
    let WorkspaceError::Database(cause) = &error else { return error };
    match cause.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            WorkspaceError::Damaged { path: path.to_owned(), details: cause.to_string() }
        }
        _ => error,
    }
}
