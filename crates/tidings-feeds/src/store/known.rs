//! The items that are kept of a feed, and which of them the items of a document are.

use std::collections::HashMap;

use rusqlite::{Transaction, params};
use tidings_store::date::Moment;

use crate::store::StoreError;
use crate::store::face::content_hash;
use crate::store::identity::{Level, Told, is_told_by_text, names};
use crate::store::row::Entry;

/// What is known of an item that is kept.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) key: i64,
    pub(super) hash: String,
    /// Hashes of its texts, as they were received and as they are shown.
    pub(super) received: Option<String>,
    pub(super) shown: Option<String>,
    pub(super) published: Option<i64>,
    pub(super) updated: Option<i64>,
    pub(super) guid: Option<String>,
    pub(super) link: Option<String>,
    pub(super) title: Option<String>,
    pub(super) rank: Rank,
}

/// Where an item stands in the order: the greater, the newer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) moment: i64,
    pub(super) first_seen: i64,
    /// Counted from below, because the first of a document is the newest.
    pub(super) position: i64,
}

impl Known {
    /// Whether a feed that reaches back to `edge` would still have this item. Of those that are
    /// dated like the last, any may have been pushed off the end if others came.
    pub(super) fn is_covered_from(&self, edge: Rank, pushed: bool) -> bool {
        if pushed && self.published.or(self.updated).is_some() {
            self.rank.moment > edge.moment
        } else {
            self.rank > edge
        }
    }
}

/// The items of a feed by what they are.
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

/// Takes out of `known` what the items of a document are, for each of them in their order. One that
/// is found by another name than it was kept under goes by its present name from now on.
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

/// The names of those that were not found at once.
struct Aliases {
    /// What those that are kept could be called, and what they are called.
    kept: HashMap<(Level, String), Vec<String>>,
    /// How many of the document could be called so.
    said: HashMap<(Level, String), usize>,
}

/// The names that both a document and the store can tell.
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

    /// What the one item is called that this one can only be, by the name that tells it apart or by
    /// a weaker one.
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

/// Those that are told by their dates, and that say the same under another date: if the dates of
/// all moved, or if the feed would still have the one of the old date. They keep their old names;
/// some feeds date everything anew each time.
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
