//! Applying a document: all of it or nothing, with its news.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Transaction, params};
use tidings_store::date::Moment;

use crate::id::Checksum;
use crate::parse::{Document, Problem};
use crate::store::face::{Face, content_hash, renew};
use crate::store::identity::{Level, Told, identified, is_shown_alike, is_told_by_text, names};
use crate::store::known::{Known, Rank, known_items, take_found};
use crate::store::record::{apply_metadata, insert, moment_of, succeed, update};
use crate::store::register::feed_of;
use crate::store::retention::{bury, is_buried};
use crate::store::row::{Entry, FeedRow};
use crate::store::{Store, StoreError, redate};

/// The news of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Items that are new.
    pub(crate) new: Vec<i64>,
    /// Items that changed.
    pub(crate) changed: Vec<i64>,
    /// Items that the feed withdrew.
    pub(crate) withdrawn: Vec<i64>,
    /// Items that were removed to make room: only together with other news, so that an unchanged
    /// feed notifies nobody.
    pub(crate) purged: usize,
    /// Whether the feed's own details changed.
    pub(crate) metadata: bool,
    /// Whether fetching it began to work, or to fail.
    pub(crate) availability: bool,
}

impl Changes {
    /// Whether any item is news.
    pub(crate) fn has_items(&self) -> bool {
        !(self.new.is_empty() && self.changed.is_empty() && self.withdrawn.is_empty())
    }

    /// Whether there is nothing to announce.
    pub(crate) fn is_empty(&self) -> bool {
        !(self.has_items() || self.metadata || self.availability)
    }
}

impl Store {
    /// Stores a document.
    pub(crate) fn apply(
        &self,
        id: &str,
        document: &Document,
        now: Moment,
    ) -> Result<Changes, StoreError> {
        let mut entries: Vec<_> = document.items.iter().map(Entry::from).collect();
        for entry in &mut entries {
            self.retention.cut(entry);
        }
        self.make_safe(id, &mut entries)?;
        self.write(|transaction| {
            let feed = served(transaction, id)?;
            renew(transaction, feed.key)?;
            let known = known_items(transaction, feed.key)?;
            let entries = identified(entries, known.values());
            let most = usize::try_from(self.retention.count).unwrap_or(usize::MAX);
            let mut changes =
                apply_entries(transaction, &feed, &entries, known, document, most, now)?;
            if changes.has_items() {
                let gone = self.retention.purge(transaction, feed.key, &entries, now)?;
                let mut gone: HashSet<_> = gone.into_iter().collect();
                changes.changed.retain(|key| !gone.contains(key));
                // An item that was removed at once was never stored.
                changes.new.retain(|key| !gone.remove(key));
                changes.purged = gone.len();
            }
            apply_metadata(transaction, &feed, document, &mut changes)?;
            succeed(transaction, &feed, now, &mut changes)?;
            Ok(changes)
        })
    }

    /// The server reported that nothing changed.
    pub(crate) fn unmodified(&self, id: &str, now: Moment) -> Result<Changes, StoreError> {
        self.write(|transaction| {
            let feed = served(transaction, id)?;
            let mut changes = Changes::default();
            succeed(transaction, &feed, now, &mut changes)?;
            Ok(changes)
        })
    }

    /// The fetch failed, or the answer was not a feed.
    pub(crate) fn failed(&self, id: &str, error: &str, now: Moment) -> Result<Changes, StoreError> {
        self.write(|transaction| {
            let feed = served(transaction, id)?;
            // Another reason is not a change: some contain the time, and would change each time.
            let news = !feed.is_failing();
            let query = "UPDATE feeds SET last_error = ?2, last_fetch = ?3,
                status_revision = status_revision + ?4, modified = iif(?4, ?3, modified)
                WHERE key = ?1";
            transaction.execute(query, params![feed.key, error, now.unix(), news])?;
            let availability = !feed.is_new() && news;
            Ok(Changes { availability, ..Changes::default() })
        })
    }
}

fn served(connection: &Connection, id: &str) -> Result<FeedRow, StoreError> {
    feed_of(connection, id)?.ok_or_else(|| StoreError::NoFeed(id.to_owned()))
}

fn apply_entries(
    transaction: &Transaction<'_>,
    feed: &FeedRow,
    entries: &[(String, Entry)],
    mut known: HashMap<String, Known>,
    document: &Document,
    most: usize,
    now: Moment,
) -> Result<Changes, StoreError> {
    let newest = known.values().map(|known| known.rank.moment).max();
    let found = take_found(transaction, entries, &mut known)?;
    let pairs = entries.iter().zip(&found);
    let pairs: Vec<_> =
        pairs.filter_map(|((_, entry), known)| Some((entry, known.as_ref()?))).collect();
    let dates_count = redate::count(transaction, feed.key, &pairs, now)?;
    let mut changes = Changes::default();
    // In the order of the document.
    let mut ranks = Vec::new();
    let mut new = Vec::new();
    for (position, ((identity, entry), found)) in (0_i64..).zip(entries.iter().zip(&found)) {
        if let Some(known) = found {
            ranks.push(known.rank);
            let redated = dates_count && entry.published.map(Moment::unix) != known.published;
            let is_other = content_hash(entry, Some(known)) != known.hash;
            if is_other || redated || is_moved(entry, known) {
                update(transaction, feed, known, entry, &Face::of(entry), now)?;
                changes.changed.push(known.key);
            }
        } else if !was_let_go(transaction, feed.key, identity, entry, newest, now)? {
            let rank = Rank {
                moment: moment_of(entry, now.unix(), now),
                first_seen: now.unix(),
                position: -position,
            };
            ranks.push(rank);
            new.push((rank, identity, entry));
        }
    }
    changes.new = insert_new(transaction, feed, new, most, now)?;
    let is_whole = !document.truncated
        && !document.problems.iter().any(|it| matches!(it, Problem::TooManyItems(_)));
    // Only new items push older ones off the end.
    let pushed = !changes.new.is_empty();
    let mut gone: Vec<_> = match edge(&ranks).filter(|_| is_whole) {
        Some(edge) => known.values().filter(|it| it.is_covered_from(edge, pushed)).collect(),
        None => Vec::new(),
    };
    if !is_believed(transaction, feed.key, entries, gone.len() > ranks.len())? {
        gone.clear();
    }
    changes.withdrawn = withdraw(transaction, &gone)?;
    Ok(changes)
}

/// Stores new items, at most `most`, and returns their keys: the newest first, as everywhere.
fn insert_new(
    transaction: &Transaction<'_>,
    feed: &FeedRow,
    mut new: Vec<(Rank, &String, &Entry)>,
    most: usize,
    now: Moment,
) -> Result<Vec<i64>, StoreError> {
    // Order: the newest last, so that a higher key is a newer item, also within a document.
    new.sort_by_key(|(rank, ..)| *rank);
    // Items beyond the limit would be deleted at once, so they are not written.
    let too_many = new.len().saturating_sub(most);
    for (_, identity, _) in new.drain(..too_many) {
        bury(transaction, feed.key, identity, now)?;
    }
    let mut keys = Vec::new();
    for (rank, identity, entry) in new {
        keys.push(insert(transaction, feed, identity, entry, &Face::of(entry), rank)?);
    }
    keys.reverse();
    Ok(keys)
}

/// Deletes items that the document does not have any more, and returns their keys.
fn withdraw(transaction: &Transaction<'_>, gone: &[&Known]) -> Result<Vec<i64>, StoreError> {
    let mut delete = transaction.prepare_cached("DELETE FROM items WHERE key = ?1")?;
    for gone in gone {
        delete.execute([gone.key])?;
    }
    let mut keys: Vec<_> = gone.iter().map(|gone| gone.key).collect();
    keys.sort_unstable();
    Ok(keys)
}

/// Whether a document's withdrawals are accepted. Withdrawing more items than it contains is mostly
/// the publisher's mistake, so the next document must confirm it.
fn is_believed(
    transaction: &Transaction<'_>,
    feed: i64,
    entries: &[(String, Entry)],
    is_shrunk: bool,
) -> Result<bool, StoreError> {
    let query = "SELECT shrunk FROM feeds WHERE key = ?1";
    let before: Option<String> =
        transaction.prepare_cached(query)?.query_row([feed], |row| row.get(0))?;
    let said = is_shrunk.then(|| {
        let mut checksum = Checksum::new();
        for (identity, _) in entries {
            checksum.add(Some(identity));
        }
        checksum.finish()
    });
    let is_believed = said.is_none() || said == before;
    let kept = said.filter(|_| !is_believed);
    if kept != before {
        let query = "UPDATE feeds SET shrunk = ?2 WHERE key = ?1";
        transaction.prepare_cached(query)?.execute(params![feed, kept])?;
    }
    Ok(is_believed)
}

/// Whether an item has another link or guid. Both are shown, so even a link to the same page, as
/// after a move to https, is a change.
fn is_moved(entry: &Entry, known: &Known) -> bool {
    !is_shown_alike(entry.link.as_deref(), known.link.as_deref())
        || !is_shown_alike(entry.guid.as_deref(), known.guid.as_deref())
}

/// Whether an item was removed before, under this name or an earlier one. An item newer than all
/// stored ones was not, whatever page it shares with others.
fn was_let_go(
    transaction: &Transaction<'_>,
    feed: i64,
    identity: &str,
    entry: &Entry,
    newest: Option<i64>,
    now: Moment,
) -> Result<bool, StoreError> {
    if is_buried(transaction, feed, identity, now)? {
        return Ok(true);
    }
    let moment = entry.published.or(entry.updated).map(Moment::unix);
    if moment.zip(newest).is_some_and(|(moment, newest)| moment > newest) {
        return Ok(false);
    }
    for (level, name) in names(identity, Told::by(entry)) {
        // Titles are too weak to identify an item that has an address.
        let counts = is_told_by_text(identity) || level <= Level::Part;
        if counts && name != identity && is_buried(transaction, feed, &name, now)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How far back a document reaches: to its last item, if it is sorted from new to old. With another
/// order, or an item pinned to the end, a missing item may just have lost its place; then this is
/// `None`, and nothing was withdrawn. An item at the end that is much older than all others is
/// pinned there, and not counted.
fn edge(ranks: &[Rank]) -> Option<Rank> {
    let (mut first, mut last) = (ranks.first()?, ranks.last()?);
    if let [one, two, .., before, end] = ranks {
        let gap = |one: &Rank, other: &Rank| one.moment.abs_diff(other.moment);
        let far = |end: &Rank, near: &Rank, other: &Rank| {
            gap(end, near) > gap(near, other).saturating_mul(10)
        };
        (first, last) = (
            if far(one, two, end) { two } else { first },
            if far(end, before, one) { before } else { last },
        );
    }
    let falling = ranks.windows(2).filter(|pair| pair[0] >= pair[1]).count();
    let pairs = ranks.len() - 1;
    // One in ten may be out of place: a pinned item, or one that was dated back.
    if falling * 10 >= pairs * 9 {
        Some(*last)
    } else if (pairs - falling) * 10 >= pairs * 9 {
        Some(*first)
    } else {
        None
    }
}
