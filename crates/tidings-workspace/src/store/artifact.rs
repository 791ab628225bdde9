//! Reading artifacts.

use std::collections::{BTreeMap, HashSet, VecDeque};

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use tidings_store::date::Moment;

use crate::record::{
    Ancestor, Annotation, Artifact, ArtifactEntry, Blob, Category, Count, Lineage, ListPage,
    Summary,
};
use crate::store::Store;
use crate::store::event::unsigned;
use crate::{Refusal, WorkspaceError};

/// The columns of an [`ArtifactEntry`], in the order [`entry`] reads them.
pub(super) const ENTRY: &str = "artifacts.key, id, artifacts.title, hash, mime, size, creator, \
    created, tags, collection, place, archived";
/// How many children, creators, sets and annotations are shown.
const NAMED: i64 = 100;
/// The longest lineage that is shown.
const ANCESTORS: usize = 10_000;

/// The lists of artifacts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArtifactList {
    /// All artifacts that are not archived, newest first.
    Recent,
    /// Those with this tag.
    Tag(String),
    /// Those of this creator.
    Creator(String),
    /// All artifacts of a set, archived or not, in its order.
    Set(String),
}

/// The properties of an artifact that a write needs.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) key: i64,
    pub(super) creator: String,
    pub(super) tags: Vec<String>,
    pub(super) archived: bool,
}

impl Store {
    /// A page of a list: at most `limit` artifacts, after the one with the id `after`.
    pub(crate) fn list(
        &self,
        list: &ArtifactList,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<ArtifactEntry>, WorkspaceError> {
        self.read(|connection| page(connection, list, after, limit))
    }

    /// One artifact with its details, if it exists.
    pub(crate) fn artifact(&self, id: &str) -> Result<Option<Artifact>, WorkspaceError> {
        self.read(|connection| artifact(connection, id))
    }

    /// One artifact as listed, if it exists.
    pub(crate) fn entry(&self, id: &str) -> Result<Option<ArtifactEntry>, WorkspaceError> {
        self.read(|connection| {
            let sql = format!("SELECT {ENTRY} FROM artifacts WHERE id = ?1");
            let found = connection.prepare_cached(&sql)?.query_row([id], entry).optional()?;
            Ok(found.map(|(_, entry)| entry))
        })
    }

    /// An artifact and all artifacts it was made from, if it exists.
    pub(crate) fn lineage(&self, id: &str) -> Result<Option<Lineage>, WorkspaceError> {
        self.read(|connection| lineage(connection, id, ANCESTORS))
    }

    /// The number of artifacts, by tag, creator and set.
    pub(crate) fn summary(&self) -> Result<Summary, WorkspaceError> {
        self.read(|connection| {
            let most = |kind: &str| {
                let mut statement = connection.prepare_cached(
                    "SELECT name, count FROM counts WHERE kind = ?1
                     ORDER BY count DESC, name LIMIT ?2",
                )?;
                let rows = statement.query_map(params![kind, NAMED], |row| {
                    Ok(Count { name: row.get(0)?, artifacts: unsigned(row.get(1)?) })
                })?;
                rows.collect::<Result<Vec<_>, _>>()
            };
            let mut categories = Vec::new();
            let plain = counted(connection, "plain", "")?;
            if plain > 0 {
                categories.push(Category { category: None, tagged: plain });
            }
            let mut statement = connection.prepare_cached(
                "SELECT name, count FROM counts WHERE kind = 'category' ORDER BY name LIMIT 1000",
            )?;
            let rows = statement.query_map([], |row| {
                Ok(Category { category: Some(row.get(0)?), tagged: unsigned(row.get(1)?) })
            })?;
            for row in rows {
                categories.push(row?);
            }
            Ok(Summary {
                artifacts: counted(connection, "artifacts", "")?,
                archived: counted(connection, "archived", "")?,
                categories,
                creators: most("creator")?,
                sets: most("set")?,
            })
        })
    }

    /// Names with this prefix, sorted: of `tag`, `creator` or `set`.
    pub(crate) fn names_like(
        &self,
        kind: &str,
        typed: &str,
        limit: usize,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT name FROM counts WHERE kind = ?1 AND name >= ?2
                 AND name < ?2 || char(1114111) ORDER BY name LIMIT ?3",
            )?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![kind, typed, limit], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Ids or hashes with this prefix, sorted.
    pub(crate) fn ids_like(
        &self,
        kind: Ids,
        typed: &str,
        limit: usize,
    ) -> Result<Vec<String>, WorkspaceError> {
        let sql = match kind {
            Ids::Artifact => {
                "SELECT id FROM artifacts WHERE id >= ?1 AND id < ?1 || char(1114111)
                 ORDER BY id DESC LIMIT ?2"
            }
            Ids::Blob => {
                "SELECT hash FROM blobs WHERE hash >= ?1 AND hash < ?1 || char(1114111)
                 ORDER BY hash LIMIT ?2"
            }
            Ids::Identity => {
                "SELECT id FROM identities WHERE id >= ?1 AND id < ?1 || char(1114111)
                 ORDER BY id LIMIT ?2"
            }
        };
        self.read(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let rows = statement.query_map(params![typed, limit], |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

/// The kinds of ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ids {
    Artifact,
    Blob,
    Identity,
}

/// The size and MIME type of a blob.
pub(super) fn blob(connection: &Connection, hash: &str) -> Result<Option<Blob>, WorkspaceError> {
    let mut statement =
        connection.prepare_cached("SELECT mime, size FROM blobs WHERE hash = ?1")?;
    let found = statement.query_row([hash], |row| {
        let (mime_type, size) = (row.get(0)?, unsigned(row.get(1)?));
        Ok(Blob { hash: hash.to_owned(), mime_type, size })
    });
    Ok(found.optional()?)
}

/// An artifact that is about to change; refused if it does not exist.
pub(super) fn state(connection: &Connection, id: &str) -> Result<State, WorkspaceError> {
    let mut statement = connection
        .prepare_cached("SELECT key, creator, tags, archived FROM artifacts WHERE id = ?1")?;
    let found = statement.query_row([id], |row| {
        Ok(State {
            key: row.get(0)?,
            creator: row.get(1)?,
            tags: listed(&row.get::<_, String>(2)?),
            archived: row.get(3)?,
        })
    });
    found.optional()?.ok_or_else(|| Refusal::NoArtifact(id.to_owned()).into())
}

fn page(
    connection: &Connection,
    list: &ArtifactList,
    after: Option<&str>,
    limit: usize,
) -> Result<ListPage<ArtifactEntry>, WorkspaceError> {
    let (kind, name) = match list {
        ArtifactList::Recent => ("artifacts", ""),
        ArtifactList::Tag(tag) => ("tag", tag.as_str()),
        ArtifactList::Creator(creator) => ("creator", creator.as_str()),
        ArtifactList::Set(set) => ("set", set.as_str()),
    };
    // Where the page begins: a key for lists that are newest first, a position for sets.
    let (first, place) = match list {
        ArtifactList::Set(_) => {
            (-1, "SELECT place FROM artifacts WHERE id = ?1 AND collection = ?2")
        }
        _ => (i64::MAX, "SELECT key FROM artifacts WHERE id = ?1 AND ?2 IS NOT NULL"),
    };
    let start = match after {
        None => first,
        Some(id) => connection
            .prepare_cached(place)?
            .query_row([id, name], |row| row.get(0))
            .optional()?
            .ok_or_else(|| Refusal::After(id.to_owned()))?,
    };
    let room = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let mut statement = connection.prepare_cached(&statement(list))?;
    let rows = statement.query_map(params![name, start, room], entry)?;
    let mut items = rows.map(|row| Ok(row?.1)).collect::<Result<Vec<_>, WorkspaceError>>()?;
    let has_more = items.len() > limit;
    items.truncate(limit);
    let next = if has_more { items.last().map(|entry| entry.id.clone()) } else { None };
    Ok(ListPage { total: counted(connection, kind, name)?, items, next })
}

/// The statement for a page of a list.
fn statement(list: &ArtifactList) -> String {
    match list {
        // With the index by name, because most artifacts may be archived.
        ArtifactList::Recent => format!(
            "SELECT {ENTRY} FROM artifacts INDEXED BY artifacts_recent
             WHERE key < ?2 AND archived = 0 AND ?1 = '' ORDER BY key DESC LIMIT ?3"
        ),
        ArtifactList::Tag(_) => format!(
            "SELECT {ENTRY} FROM tagged CROSS JOIN artifacts ON key = artifact
             WHERE tag = ?1 AND artifact < ?2 ORDER BY artifact DESC LIMIT ?3"
        ),
        ArtifactList::Creator(_) => format!(
            "SELECT {ENTRY} FROM artifacts WHERE creator = ?1 AND key < ?2 AND archived = 0
             ORDER BY key DESC LIMIT ?3"
        ),
        ArtifactList::Set(_) => format!(
            "SELECT {ENTRY} FROM artifacts WHERE collection = ?1 AND place > ?2
             ORDER BY place LIMIT ?3"
        ),
    }
}

fn artifact(connection: &Connection, id: &str) -> Result<Option<Artifact>, WorkspaceError> {
    let sql = format!("SELECT {ENTRY}, parents, metadata FROM artifacts WHERE id = ?1");
    let found = connection
        .prepare_cached(&sql)?
        .query_row([id], |row| Ok((entry(row)?, row.get(12)?, row.get(13)?)))
        .optional()?;
    let Some(((key, entry), parents, metadata)) = found else { return Ok(None) };
    let (parents, metadata): (String, String) = (parents, metadata);
    let mut statement = connection.prepare_cached(
        "SELECT id FROM descent CROSS JOIN artifacts ON key = child WHERE parent = ?1
         ORDER BY child LIMIT ?2",
    )?;
    let children = statement
        .query_map(params![key, NAMED], |row| row.get(0))?
        .collect::<Result<Vec<String>, _>>()?;
    let mut statement =
        connection.prepare_cached("SELECT count(*) FROM descent WHERE parent = ?1")?;
    let child_count = unsigned(statement.query_row([key], |row| row.get(0))?);
    let mut statement = connection.prepare_cached(
        "SELECT message, author, time FROM annotations WHERE artifact = ?1
         ORDER BY number DESC LIMIT ?2",
    )?;
    let mut annotations = statement
        .query_map(params![key, NAMED], |row| {
            let time = Moment::from_millis(row.get(2)?);
            Ok(Annotation { message: row.get(0)?, author: row.get(1)?, time })
        })?
        .collect::<Result<Vec<_>, _>>()?;
    annotations.reverse();
    let annotation_count = annotated(connection, key)?;
    let metadata = serde_json::from_str(&metadata)
        .map_err(|error| WorkspaceError::Unreadable(format!("metadata of `{id}`: {error}")))?;
    let parents = listed(&parents);
    Ok(Some(Artifact {
        entry,
        parents,
        children,
        child_count,
        metadata,
        annotations,
        annotation_count,
    }))
}

/// The number of annotations of an artifact.
pub(super) fn annotated(connection: &Connection, key: i64) -> Result<u64, WorkspaceError> {
    let mut statement =
        connection.prepare_cached("SELECT max(number) FROM annotations WHERE artifact = ?1")?;
    let last: Option<i64> = statement.query_row([key], |row| row.get(0))?;
    Ok(unsigned(last.unwrap_or_default()))
}

/// Parents are stored before their children, so in order of keys, roots come first. Each is
/// included once, whatever the database contains. The nearest are visited first, so that the most
/// distant ones are left out if there are more than `most`.
fn lineage(
    connection: &Connection,
    id: &str,
    most: usize,
) -> Result<Option<Lineage>, WorkspaceError> {
    let mut found = BTreeMap::new();
    let mut seen = HashSet::from([id.to_owned()]);
    let mut open = VecDeque::from([id.to_owned()]);
    let mut truncated = false;
    while let Some(id) = open.pop_front() {
        if found.len() == most {
            truncated = true;
            break;
        }
        let mut statement = connection.prepare_cached(
            "SELECT key, title, mime, creator, created, parents, archived FROM artifacts
             WHERE id = ?1",
        )?;
        let row = statement.query_row([&id], |row| {
            let ancestor = Ancestor {
                id: id.clone(),
                title: row.get(1)?,
                mime_type: row.get(2)?,
                creator: row.get(3)?,
                created: Moment::from_millis(row.get(4)?),
                parents: listed(&row.get::<_, String>(5)?),
                archived: row.get(6)?,
            };
            Ok((row.get::<_, i64>(0)?, ancestor))
        });
        let Some((key, ancestor)) = row.optional()? else { continue };
        open.extend(ancestor.parents.iter().filter(|it| seen.insert((*it).clone())).cloned());
        found.insert(key, ancestor);
    }
    let lineage = || Lineage { items: found.values().cloned().collect(), truncated };
    Ok((!found.is_empty()).then(lineage))
}

pub(super) fn counted(
    connection: &Connection,
    kind: &str,
    name: &str,
) -> Result<u64, WorkspaceError> {
    let mut statement =
        connection.prepare_cached("SELECT count FROM counts WHERE kind = ?1 AND name = ?2")?;
    let count = statement.query_row([kind, name], |row| row.get(0)).optional()?;
    Ok(unsigned(count.unwrap_or_default()))
}

/// A listed artifact with its key.
pub(super) fn entry(row: &Row<'_>) -> rusqlite::Result<(i64, ArtifactEntry)> {
    let entry = ArtifactEntry {
        id: row.get(1)?,
        title: row.get(2)?,
        hash: row.get(3)?,
        mime_type: row.get(4)?,
        size: unsigned(row.get(5)?),
        creator: row.get(6)?,
        created: Moment::from_millis(row.get(7)?),
        tags: listed(&row.get::<_, String>(8)?),
        set: row.get(9)?,
        index: row.get::<_, Option<i64>>(10)?.map(unsigned),
        archived: row.get(11)?,
    };
    Ok((row.get(0)?, entry))
}

/// Names as stored in the database.
pub(super) fn names(names: &[String]) -> String {
    serde_json::to_string(names).unwrap_or_default()
}

/// Names from the database.
pub(super) fn listed(names: &str) -> Vec<String> {
    serde_json::from_str(names).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::store::Draft;

    fn fresh() -> (tempfile::TempDir, Store) {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(Config::new(directory.path())).unwrap();
        (directory, store)
    }

    #[test]
    fn those_that_were_put_away_are_not_looked_at_for_the_newest() {
        let (_directory, store) = fresh();
        let plan: Result<String, _> = store.read(|connection| {
            let sql = format!("EXPLAIN QUERY PLAN {}", statement(&ArtifactList::Recent));
            Ok(connection.query_row(&sql, params!["", 1, 1], |row| row.get(3))?)
        });
        assert_eq!(plan.unwrap(), "SEARCH artifacts USING INDEX artifacts_recent (key<?)",);
    }

    #[test]
    fn a_lineage_that_is_too_large_has_the_nearest_and_says_so() {
        let (_directory, store) = fresh();
        let create = |title: &str, parents: &[&String]| {
            let mut incoming = store.incoming().unwrap();
            incoming.write(b"same").unwrap();
            let mut draft = Draft::new(title, "", "t");
            draft.parents = parents.iter().map(|it| (*it).clone()).collect();
            store.create_of(incoming.finish().unwrap(), draft, "t").unwrap()
        };
        let root = create("root", &[]);
        let left = create("left", &[&root]);
        let right = create("right", &[]);
        let last = create("last", &[&left, &right]);
        let cut = |most| store.read(|it| lineage(it, &last, most)).unwrap().unwrap();
        let titles =
            |it: &Lineage| it.items.iter().map(|it| it.title.clone()).collect::<Vec<_>>().join(" ");
        assert_eq!((titles(&cut(3)).as_str(), cut(3).truncated), ("left right last", true));
        assert_eq!((titles(&cut(4)).as_str(), cut(4).truncated), ("root left right last", false));
    }
}
