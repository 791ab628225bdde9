//! Verification: read every blob and check every reference.

use std::collections::HashSet;
use std::fmt;
use std::io::Read as _;
use std::time::SystemTime;

use rusqlite::Connection;

use crate::WorkspaceError;
use crate::store::event::unsigned;
use crate::store::{Collected, Store, gc};

const CHUNK: usize = 1 << 16;

/// The result of a verification.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verified {
    /// Blobs that were read.
    pub blobs: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// The number of artifacts.
    pub artifacts: u64,
    /// The number of stored events.
    pub events: u64,
    /// Files that the database does not know and that are not being stored. They are harmless:
    /// mostly blobs of a process that was killed.
    pub strays: Collected,
    /// The problems; empty if all is well.
    pub problems: Vec<IntegrityProblem>,
}

/// A problem of a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum IntegrityProblem {
    /// A blob whose bytes do not have its hash.
    Changed {
        /// Its hash.
        hash: String,
    },
    /// A used blob whose bytes are gone.
    Lost {
        /// Its hash.
        hash: String,
    },
    /// A blob whose bytes cannot be read.
    Unreadable {
        /// Its hash.
        hash: String,
        /// The reason.
        details: String,
    },
    /// An inconsistency in the database.
    Database {
        /// The inconsistency.
        details: String,
    },
}

impl fmt::Display for IntegrityProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Changed { hash } => {
                write!(formatter, "the bytes of the blob {hash} are not those it was stored with")
            }
            Self::Lost { hash } => write!(formatter, "the bytes of the blob {hash} are gone"),
            Self::Unreadable { hash, details } => {
                write!(formatter, "the bytes of the blob {hash} cannot be read: {details}")
            }
            Self::Database { details } => formatter.write_str(details),
        }
    }
}

/// Queries that must return no row, and what a row means.
const LAWS: [(&str, &str); 6] = [
    (
        "an artifact has a parent that does not exist",
        "SELECT artifacts.id || ' of ' || value FROM artifacts, json_each(artifacts.parents)
         WHERE NOT EXISTS (SELECT 1 FROM artifacts AS it WHERE it.id = value)",
    ),
    (
        "an artifact is older than its parent",
        "SELECT parent || ' of ' || child FROM descent WHERE parent >= child",
    ),
    (
        "the list of a tag is wrong",
        "SELECT artifacts.id || ' ' || value FROM artifacts, json_each(artifacts.tags) WHERE archived = 0
         EXCEPT SELECT id || ' ' || tag FROM tagged JOIN artifacts ON key = artifact",
    ),
    (
        "the list of a tag has too much",
        "SELECT id || ' ' || tag FROM tagged JOIN artifacts ON key = artifact EXCEPT
         SELECT artifacts.id || ' ' || value FROM artifacts, json_each(artifacts.tags) WHERE archived = 0",
    ),
    (
        "a count is wrong",
        "WITH found AS (
             SELECT 'artifacts' AS kind, '' AS name, count(*) AS count FROM artifacts
             WHERE archived = 0 HAVING count(*) > 0
             UNION ALL SELECT 'archived', '', count(*) FROM artifacts
             WHERE archived = 1 HAVING count(*) > 0
             UNION ALL SELECT 'creator', creator, count(*) FROM artifacts
             WHERE archived = 0 GROUP BY creator
             UNION ALL SELECT 'set', collection, count(*) FROM artifacts
             WHERE collection IS NOT NULL GROUP BY collection
             UNION ALL SELECT 'tag', tag, count(*) FROM tagged GROUP BY tag
             UNION ALL SELECT 'category', substr(tag, 1, instr(tag, ':') - 1), count(*) FROM tagged
             WHERE instr(tag, ':') > 0 GROUP BY 2
             UNION ALL SELECT 'plain', '', count(*) FROM tagged
             WHERE instr(tag, ':') = 0 HAVING count(*) > 0
             UNION ALL SELECT 'identities', '', count(*) FROM identities HAVING count(*) > 0
             UNION ALL SELECT 'connections', '', count(*) FROM connections HAVING count(*) > 0
         )
         SELECT kind || ' `' || name || '` is ' || coalesce(counts.count, 'not there') ||
             ' and should be ' || coalesce(found.count, 'gone')
         FROM found FULL JOIN counts USING (kind, name) WHERE found.count IS NOT counts.count",
    ),
    (
        "an event is missing",
        "SELECT min(number) || ' to ' || max(number) FROM events
         HAVING count(*) <> max(number) - min(number) + 1",
    ),
];

impl Store {
    /// Verifies everything. Calls `progress` with the number of blobs read and the total.
    pub(crate) fn verify(
        &self,
        mut progress: impl FnMut(u64, u64),
    ) -> Result<Verified, WorkspaceError> {
        let mut verified = Verified::default();
        // Files first, then the database: a blob that is stored meanwhile is neither stray nor
        // missing.
        let files = self.blobs.all()?;
        let (known, problems) = self.read(|connection| {
            verified.artifacts = number(connection, "SELECT count(*) FROM artifacts")?;
            verified.events = number(connection, "SELECT count(*) FROM events")?;
            Ok((known(connection)?, laws(connection)?))
        })?;
        verified.problems = problems;
        let hashes: HashSet<_> = known.iter().map(|it| it.hash.as_str()).collect();
        let now = SystemTime::now();
        for (hash, metadata) in files {
            if !hashes.contains(hash.as_str()) && gc::is_older(&metadata, now, gc::ABANDONED) {
                verified.strays.blobs += 1;
                verified.strays.bytes += metadata.len();
            }
        }
        let all = known.len() as u64;
        for (read, KnownBlob { hash, size, is_used }) in (0..).zip(known) {
            progress(read, all);
            match self.hashed(&hash) {
                Err(error) => {
                    let details = details(&error);
                    verified.problems.push(IntegrityProblem::Unreadable { hash, details });
                }
                Ok(None) if is_used => verified.problems.push(IntegrityProblem::Lost { hash }),
                // Collected meanwhile, or by a process that was killed.
                Ok(None) => {}
                Ok(Some((found, bytes))) => {
                    verified.blobs += 1;
                    verified.bytes += bytes;
                    if found != hash || bytes != size {
                        verified.problems.push(IntegrityProblem::Changed { hash });
                    }
                }
            }
        }
        progress(all, all);
        Ok(verified)
    }

    /// The actual hash and length of a blob.
    fn hashed(&self, hash: &str) -> Result<Option<(String, u64)>, WorkspaceError> {
        let Some(mut file) = self.blobs.open_file(hash)? else { return Ok(None) };
        let (mut hasher, mut size, mut chunk) = (blake3::Hasher::new(), 0, vec![0; CHUNK]);
        loop {
            let read = file
                .read(&mut chunk)
                .map_err(|error| WorkspaceError::path(self.blobs.path_of(hash), error))?;
            if read == 0 {
                return Ok(Some((hasher.finalize().to_hex().to_string(), size)));
            }
            hasher.update(&chunk[..read]);
            size += read as u64;
        }
    }
}

/// A blob in the database.
pub(super) struct KnownBlob {
    pub(super) hash: String,
    pub(super) size: u64,
    /// Whether an artifact uses it.
    pub(super) is_used: bool,
}

/// All blobs in the database, sorted by hash.
pub(super) fn known(connection: &Connection) -> Result<Vec<KnownBlob>, WorkspaceError> {
    let mut statement = connection.prepare(
        "SELECT hash, size, EXISTS (SELECT 1 FROM artifacts WHERE hash = blobs.hash)
         FROM blobs ORDER BY hash",
    )?;
    let rows = statement.query_map([], |row| {
        Ok(KnownBlob { hash: row.get(0)?, size: unsigned(row.get(1)?), is_used: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The error without the file, which is reported beside it.
pub(super) fn details(error: &WorkspaceError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

pub(super) fn laws(connection: &Connection) -> Result<Vec<IntegrityProblem>, WorkspaceError> {
    let mut problems = Vec::new();
    let mut wrong = |details: String| problems.push(IntegrityProblem::Database { details });
    let mut statement = connection.prepare("PRAGMA integrity_check(20)")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    for row in rows.collect::<Result<Vec<_>, _>>()? {
        if row != "ok" {
            wrong(row);
        }
    }
    let mut statement = connection.prepare("PRAGMA foreign_key_check")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    for table in rows.collect::<Result<Vec<_>, _>>()? {
        wrong(format!("a row of `{table}` refers to a missing one"));
    }
    for (meaning, law) in LAWS {
        let mut statement = connection.prepare(&format!("{law} LIMIT 5"))?;
        let rows = statement.query_map([], |row| row.get::<_, rusqlite::types::Value>(0))?;
        for found in rows.collect::<Result<Vec<_>, _>>()? {
            wrong(format!("{meaning}: {}", shown(&found)));
        }
    }
    Ok(problems)
}

fn shown(value: &rusqlite::types::Value) -> String {
    match value {
        rusqlite::types::Value::Text(text) => text.clone(),
        rusqlite::types::Value::Integer(number) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn number(connection: &Connection, sql: &str) -> Result<u64, WorkspaceError> {
    Ok(unsigned(connection.query_row(sql, [], |row| row.get(0))?))
}
