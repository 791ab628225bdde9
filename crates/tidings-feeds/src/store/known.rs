//! The stored items of a feed, and their counterparts in a document.

use std::collections::HashMap;

use rusqlite::{Transaction, params};
use tidings_store::date::Moment;

use crate::store::StoreError;
use crate::store::face::content_hash;
use crate::store::identity::{Level, Told, is_told_by_text, names};
use crate::store::row::Entry;

/// The known facts of a stored item.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) key: i64,
    pub(super) hash: String,
    /// Hashes of its texts, as received and as shown.
    pub(super) received: Option<String>,
    pub(super) shown: Option<String>,
    pub(super) published: Option<i64>,
    pub(super) updated: Option<i64>,
    pub(super) guid: Option<String>,
    pub(super) link: Option<String>,
    pub(super) title: Option<String>,
    pub(super) rank: Rank,
}

/// The rank of an item: greater is newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) moment: i64,
    pub(super) first_seen: i64,
    /// Negative, because the first of a document is the newest.
    pub(super) position: i64,
}

impl Known {
    /// Whether a feed that reaches back to `edge` would still contain this item. Items with the
    /// date of the last one may have been pushed off the end by new ones.
    pub(super) fn is_covered_from(&self, edge: Rank, pushed: bool) -> bool {
        if pushed && self.published.or(self.updated).is_some() {
            self.rank.moment > edge.moment
        } else {
            self.rank > edge
        }
    }
}

/// The items of a feed by identity.
pub(super) fn known_items(
    transaction: &Transaction<'_>,
    feed: i64,
) -> Result<HashMap<String, Known>, StoreError> {
    let query =
        "SELECT identity, key, hash, published, updated, moment, first_seen, position, link,
            guid, title, received_hash, shown_hash
        FROM items WHERE feed = ?1";
    let mut statement = transaction.prepare_cached(query)?;
    let rows = statement.query_map([feed], |row| {
        let position = -row.get::<_, i64>(7)?;
        let rank = Rank { moment: row.get(5)?, first_seen: row.get(6)?, position };
        let known = Known {
            key: row.get(1)?,
            hash: row.get(2)?,
            published: row.get(3)?,
            updated: row.get(4)?,
            link: row.get(8)?,
            guid: row.get(9)?,
            title: row.get(10)?,
            received: row.get(11)?,
            shown: row.get(12)?,
            rank,
        };
        Ok((row.get(0)?, known))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Takes the stored counterparts of a document's items out of `known`, in the document's order. An
/// item found by another name gets its current name.
pub(super) fn take_found(
    transaction: &Transaction<'_>,
    entries: &[(String, Entry)],
    known: &mut HashMap<String, Known>,
) -> Result<Vec<Option<Known>>, StoreError> {
    let mut found: Vec<_> = entries.iter().map(|(identity, _)| known.remove(identity)).collect();
    if known.is_empty() || found.iter().all(Option::is_some) {
        return Ok(found);
    }
    let aliases = Aliases::new(entries, known);
    let mut rename = transaction.prepare_cached("UPDATE items SET identity = ?2 WHERE key = ?1")?;
    for ((identity, entry), found) in entries.iter().zip(&mut found) {
        if found.is_none()
            && let Some(kept_as) = aliases.find(identity, entry, known)
            && let Some(item) = known.remove(&kept_as)
        {
            rename.execute(params![item.key, identity])?;
            *found = Some(item);
        }
    }
    take_redated(entries, known, &mut found);
    Ok(found)
}

/// The names of the items that were not found at once.
struct Aliases {
    /// The possible names of the stored items, and their identities.
    kept: HashMap<(Level, String), Vec<String>>,
    /// How many items of the document could have that name.
    said: HashMap<(Level, String), usize>,
}

/// The names that both a document and the store have.
const COMPARED: [Level; 4] = [Level::Guid, Level::Page, Level::Part, Level::Title];

impl Aliases {
    fn new(entries: &[(String, Entry)], known: &HashMap<String, Known>) -> Self {
        let mut aliases = Self { kept: HashMap::new(), said: HashMap::new() };
        for (identity, known) in known {
            for level in COMPARED {
                if let Some(name) = Told::kept(known).name(level) {
                    aliases.kept.entry((level, name)).or_default().push(identity.clone());
                }
            }
        }
        for (_, entry) in entries {
            for level in COMPARED {
                if let Some(name) = Told::by(entry).name(level) {
                    *aliases.said.entry((level, name)).or_default() += 1;
                }
            }
        }
        aliases
    }

    /// The identity of the only possible counterpart, by the identifying name or a weaker one.
    fn find(
        &self,
        identity: &str,
        entry: &Entry,
        known: &HashMap<String, Known>,
    ) -> Option<String> {
        let told = Told::by(entry);
        names(identity, told).find_map(|name| {
            if self.said.get(&name).is_some_and(|count| *count > 1) {
                return None;
            }
            let fits = |it: &&String| known.get(*it).is_some_and(|it| told.can_be(Told::kept(it)));
            let mut fitting = self.kept.get(&name)?.iter().filter(fits);
            let first = fitting.next()?;
            fitting.next().is_none().then(|| first.clone())
        })
    }
}

/// Items that are identified by their dates, and have the same content under another date: if all
/// dates changed, or if the feed would still have the item of the old date. They keep their old
/// names; some feeds date everything anew each time.
fn take_redated(
    entries: &[(String, Entry)],
    known: &mut HashMap<String, Known>,
    found: &mut [Option<Known>],
) {
    let dated =
        || entries.iter().enumerate().filter(|(_, (identity, _))| is_told_by_text(identity));
    let all_moved = dated().all(|(index, _)| found[index].is_none());
    let oldest = entries.iter().filter_map(|(_, entry)| entry.published).min().map(Moment::unix);
    let mut by_hash: HashMap<&str, Vec<&String>> = HashMap::new();
    for (identity, known) in known.iter().filter(|(identity, _)| is_told_by_text(identity)) {
        if all_moved || oldest.is_some_and(|oldest| known.published >= Some(oldest)) {
            by_hash.entry(&known.hash).or_default().push(identity);
        }
    }
    if by_hash.is_empty() {
        return;
    }
    for same in by_hash.values_mut() {
        // The newest is taken first, as it is the first of most documents.
        same.sort_by_key(|identity| known[*identity].rank);
    }
    let mut taken = Vec::new();
    for (index, (_, entry)) in dated().filter(|(index, _)| found[*index].is_none()) {
        let same = by_hash.get_mut(content_hash(entry, None).as_str());
        taken.extend(same.and_then(Vec::pop).map(|identity| (index, identity.clone())));
    }
    for (index, identity) in taken {
        found[index] = known.remove(&identity);
    }
}
