//! Reading identities and their connections.

use rusqlite::{Connection as Database, OptionalExtension as _, Row, params};
use tidings_store::date::Moment;

use crate::record::{Connection, Hint, Identity, IdentityDetails, ListPage};
use crate::store::Store;
use crate::store::artifact::{counted, listed};
use crate::store::event::unsigned;
use crate::{Refusal, WorkspaceError};

/// How many connections are shown with an identity.
const SHOWN: i64 = 100;

/// Conditions on identities; all must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Find {
    /// A part of the name or the id, ignoring case.
    pub name: Option<String>,
    /// A tag.
    pub tag: Option<String>,
    /// The kind of a hint.
    pub hint_kind: Option<String>,
    /// The value of a hint.
    pub hint_value: Option<String>,
}

impl Store {
    /// Identities sorted by id, after the given one.
    pub(crate) fn identities(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Identity>, WorkspaceError> {
        self.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT id, name, tags, created FROM identities WHERE id > ?1 ORDER BY id LIMIT ?2",
            )?;
            let room = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let rows = statement.query_map(params![after.unwrap_or_default(), room], identity)?;
            let mut items = rows.collect::<Result<Vec<_>, _>>()?;
            let has_more = items.len() > limit;
            items.truncate(limit);
            let next = if has_more { items.last().map(|it| it.id.clone()) } else { None };
            Ok(ListPage { total: counted(database, "identities", "")?, items, next })
        })
    }

    /// One identity with its hints and connections, if it exists.
    pub(crate) fn identity(&self, id: &str) -> Result<Option<IdentityDetails>, WorkspaceError> {
        self.read(|database| {
            let found = database
                .prepare_cached("SELECT id, name, tags, created FROM identities WHERE id = ?1")?
                .query_row([id], identity)
                .optional()?;
            let Some(identity) = found else { return Ok(None) };
            let mut statement = database.prepare_cached(
                "SELECT source, source_port, target, target_port, transport FROM connections
                 WHERE source = ?1 OR target = ?1 ORDER BY key LIMIT ?2",
            )?;
            let connections = statement
                .query_map(params![id, SHOWN], |row| connection(row, 0))?
                .collect::<Result<_, _>>()?;
            let mut statement = database.prepare_cached(
                "SELECT count(*) FROM connections WHERE source = ?1 OR target = ?1",
            )?;
            let connection_count = unsigned(statement.query_row([id], |row| row.get(0))?);
            let hints = hints(database, id)?;
            Ok(Some(IdentityDetails { identity, hints, connections, connection_count }))
        })
    }

    /// Connections in the order they were made, after the given one.
    pub(crate) fn connections(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<Connection>, WorkspaceError> {
        let after: i64 = match after {
            None => 0,
            Some(text) => text.parse().map_err(|_| Refusal::After(text.to_owned()))?,
        };
        self.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT key, source, source_port, target, target_port, transport FROM connections
                 WHERE key > ?1 ORDER BY key LIMIT ?2",
            )?;
            let room = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let rows = statement.query_map(params![after, room], |row| {
                Ok((row.get::<_, i64>(0)?, connection(row, 1)?))
            })?;
            let mut items = rows.collect::<Result<Vec<_>, _>>()?;
            let has_more = items.len() > limit;
            items.truncate(limit);
            let next = if has_more { items.last().map(|(key, _)| key.to_string()) } else { None };
            let items = items.into_iter().map(|(_, connection)| connection).collect();
            Ok(ListPage { total: counted(database, "connections", "")?, items, next })
        })
    }

    /// The matching identities sorted by id, and whether there are more.
    pub(crate) fn find(
        &self,
        find: &Find,
        limit: usize,
    ) -> Result<(Vec<IdentityDetails>, bool), WorkspaceError> {
        let mut ids = self.read(|database| {
            let mut statement = database.prepare_cached(
                "SELECT id FROM identities WHERE
                 (?1 IS NULL OR instr(folded, ?1))
                 AND (?2 IS NULL OR EXISTS (SELECT 1 FROM json_each(tags) WHERE value = ?2))
                 AND (?3 IS NULL AND ?4 IS NULL OR EXISTS (SELECT 1 FROM hints
                    WHERE identity = id AND (?3 IS NULL OR kind = ?3)
                    AND (?4 IS NULL OR value = ?4)))
                 ORDER BY id LIMIT ?5",
            )?;
            let name = find.name.as_ref().map(|name| name.to_lowercase());
            let room = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
            let values = params![name, find.tag, find.hint_kind, find.hint_value, room];
            let rows = statement.query_map(values, |row| row.get(0))?;
            Ok(rows.collect::<Result<Vec<String>, _>>()?)
        })?;
        let has_more = ids.len() > limit;
        ids.truncate(limit);
        let mut found = Vec::new();
        for id in ids {
            found.extend(self.identity(&id)?);
        }
        Ok((found, has_more))
    }

    /// Whether there are identities, and whether there are connections.
    pub(crate) fn has_graph(&self) -> Result<(bool, bool), WorkspaceError> {
        self.read(|database| {
            let has = |kind| counted(database, kind, "").map(|count| count > 0);
            Ok((has("identities")?, has("connections")?))
        })
    }
}

/// The tags of an identity, if it exists.
pub(super) fn tags(database: &Database, id: &str) -> Result<Option<Vec<String>>, WorkspaceError> {
    let mut statement = database.prepare_cached("SELECT tags FROM identities WHERE id = ?1")?;
    let found = statement.query_row([id], |row| row.get::<_, String>(0)).optional()?;
    Ok(found.map(|tags| listed(&tags)))
}

/// The name of an identity, if it exists.
pub(super) fn name(database: &Database, id: &str) -> Result<Option<String>, WorkspaceError> {
    let mut statement = database.prepare_cached("SELECT name FROM identities WHERE id = ?1")?;
    Ok(statement.query_row([id], |row| row.get(0)).optional()?)
}

/// The identity with this hint, and the confidence.
pub(super) fn owner(
    database: &Database,
    hint: &Hint,
) -> Result<Option<(String, f64)>, WorkspaceError> {
    let mut statement = database
        .prepare_cached("SELECT identity, confidence FROM hints WHERE kind = ?1 AND value = ?2")?;
    let found =
        statement.query_row([&hint.kind, &hint.value], |row| Ok((row.get(0)?, row.get(1)?)));
    Ok(found.optional()?)
}

/// The hints of an identity.
pub(super) fn hints(database: &Database, id: &str) -> Result<Vec<Hint>, WorkspaceError> {
    let mut statement = database.prepare_cached(
        "SELECT kind, value, confidence FROM hints WHERE identity = ?1 ORDER BY kind, value",
    )?;
    let rows = statement.query_map([id], |row| {
        Ok(Hint { kind: row.get(0)?, value: row.get(1)?, confidence: row.get(2)? })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// The identities connected with one, other than itself.
pub(super) fn neighbours(database: &Database, id: &str) -> Result<Vec<String>, WorkspaceError> {
    let mut statement = database.prepare_cached(
        "SELECT target FROM connections WHERE source = ?1 AND target <> ?1
         UNION SELECT source FROM connections WHERE target = ?1 AND source <> ?1 ORDER BY 1",
    )?;
    let rows = statement.query_map([id], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Whether a connection exists.
pub(super) fn is_connected(database: &Database, it: &Connection) -> Result<bool, WorkspaceError> {
    let mut statement = database.prepare_cached(
        "SELECT 1 FROM connections WHERE source = ?1 AND source_port = ?2 AND target = ?3
         AND target_port = ?4 AND transport = ?5",
    )?;
    Ok(statement.exists([&it.from, &it.from_port, &it.to, &it.to_port, &it.transport])?)
}

/// Name and id in the form that is searched, on a line each: neither has a line break.
pub(super) fn folded(id: &str, name: &str) -> String {
    format!("{}\n{}", name.to_lowercase(), id.to_lowercase())
}

fn identity(row: &Row<'_>) -> rusqlite::Result<Identity> {
    let (tags, created) = (listed(&row.get::<_, String>(2)?), Moment::from_millis(row.get(3)?));
    Ok(Identity { id: row.get(0)?, name: row.get(1)?, tags, created })
}

fn connection(row: &Row<'_>, first: usize) -> rusqlite::Result<Connection> {
    Ok(Connection {
        from: row.get(first)?,
        from_port: row.get(first + 1)?,
        to: row.get(first + 2)?,
        to_port: row.get(first + 3)?,
        transport: row.get(first + 4)?,
    })
}
