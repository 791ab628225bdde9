//! A document becomes what can be read: all of it or nothing, and what was news in it.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Transaction, params};

use crate::feeds::date::Moment;
use crate::feeds::parse::{Document, Problem};
use crate::feeds::store::identity::{Part, content_hash, fragment_of, identified, part_of};
use crate::feeds::store::record::{apply_metadata, insert, succeed, update};
use crate::feeds::store::register::feed_of;
use crate::feeds::store::retention::is_buried;
use crate::feeds::store::row::{Entry, FeedRow, State};
use crate::feeds::store::{Store, StoreError};

/// An item that is dated anew each time is dated this close to now, in seconds; an answer may have
/// been kept on the way.
const STAMP: u64 = 3600;

/// What was news.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Items that were not there before.
    pub(crate) new: Vec<i64>,
    /// Items that say something else.
    pub(crate) changed: Vec<i64>,
    /// Items that the feed took back.
    pub(crate) withdrawn: Vec<i64>,
    /// Items that were let go for the sake of others: never without news, so that nobody is told
    /// of a feed that said nothing.
    pub(crate) purged: usize,
    /// Whether the feed says something else of itself.
    pub(crate) metadata: bool,
    /// Whether it can be fetched and could not be before, or the other way round.
    pub(crate) availability: bool,
}

impl Changes {
    /// Whether any item is news.
    pub(crate) fn has_items(&self) -> bool {
        !(self.new.is_empty() && self.changed.is_empty() && self.withdrawn.is_empty())
    }

    /// Whether there is nothing to tell.
    pub(crate) fn is_empty(&self) -> bool {
        !(self.has_items() || self.metadata || self.availability)
    }
}

/// What is known of an item that is kept.
pub(super) struct Known {
    pub(super) key: i64,
    hash: String,
    published: Option<i64>,
    updated: Option<i64>,
    link: Option<String>,
    pub(super) rank: Rank,
}

/// Where an item stands in the order: the greater, the newer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) moment: i64,
    pub(super) first_seen: i64,
    /// Counted from below, because the first of a document is the newest.
    pub(super) position: i64,
}

impl Store {
    /// Keeps what a document says.
    pub(crate) fn apply(
        &self,
        id: &str,
        document: &Document,
        now: Moment,
    ) -> Result<Changes, StoreError> {
        self.write(|transaction| {
            let feed = served(transaction, id)?;
            let mut entries: Vec<_> = document.items.iter().map(Entry::from).collect();
            for entry in &mut entries {
                self.retention.cut(entry);
            }
            let entries = identified(entries);
            let mut changes = apply_entries(transaction, &feed, &entries, document, now)?;
            if changes.has_items() {
                let gone = self.retention.purge(transaction, feed.key, &entries, now)?;
                let mut gone: HashSet<_> = gone.into_iter().collect();
                changes.changed.retain(|key| !gone.contains(key));
                // One that went at once was never there.
                changes.new.retain(|key| !gone.remove(key));
                changes.purged = gone.len();
            }
            apply_metadata(transaction, &feed, document, &mut changes)?;
            succeed(transaction, &feed, now, &mut changes)?;
            Ok(changes)
        })
    }

    /// The server said that nothing changed.
    pub(crate) fn unmodified(&self, id: &str, now: Moment) -> Result<Changes, StoreError> {
        self.write(|transaction| {
            let feed = served(transaction, id)?;
            let mut changes = Changes::default();
            succeed(transaction, &feed, now, &mut changes)?;
            Ok(changes)
        })
    }

    /// The feed could not be fetched, or what came was none.
    pub(crate) fn failed(&self, id: &str, error: &str, now: Moment) -> Result<Changes, StoreError> {
        self.write(|transaction| {
            let feed = served(transaction, id)?;
            // Another reason is no news: some have the time in them, and would be news each time.
            let news = feed.state != State::Failing;
            let query = "UPDATE feeds SET state = 2, last_error = ?2, last_fetch = ?3,
                status_revision = status_revision + ?4 WHERE key = ?1";
            transaction.execute(query, params![feed.key, error, now.unix(), news])?;
            let availability = feed.state == State::Good;
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
    document: &Document,
    now: Moment,
) -> Result<Changes, StoreError> {
    let mut known = known_items(transaction, feed.key)?;
    let stamped = is_stamped(entries, &known, now);
    let mut changes = Changes::default();
    // In the order of the document.
    let mut ranks = Vec::new();
    for (position, (identity, entry)) in (0_i64..).zip(entries) {
        let hash = content_hash(entry);
        let found = match known.remove(identity) {
            None => namesake(transaction, &mut known, identity, entry)?,
            found => found,
        };
        if let Some(known) = found {
            ranks.push(known.rank);
            let redated = !stamped && entry.published.map(Moment::unix) != known.published;
            if known.hash != hash || redated {
                update(transaction, feed, &known, entry, &hash)?;
                changes.changed.push(known.key);
            }
        } else if !is_buried(transaction, feed.key, identity, now)? {
            let rank = Rank {
                moment: entry.published.or(entry.updated).unwrap_or(now).unix(),
                first_seen: now.unix(),
                position: -position,
            };
            ranks.push(rank);
            changes.new.push(insert(transaction, feed, identity, entry, &hash, rank)?);
        }
    }
    let is_whole = !document.truncated
        && !document.problems.iter().any(|it| matches!(it, Problem::TooManyItems(_)));
    let gone = |edge: Rank| known.values().filter(|known| known.is_covered_from(edge)).count();
    // A document that takes back more than it says is a fault of the publisher far more often than
    // a wish.
    if let Some(edge) = edge(&ranks).filter(|edge| is_whole && gone(*edge) <= ranks.len()) {
        let mut delete = transaction.prepare_cached("DELETE FROM items WHERE key = ?1")?;
        for gone in known.values().filter(|known| known.is_covered_from(edge)) {
            delete.execute([gone.key])?;
            changes.withdrawn.push(gone.key);
        }
        changes.withdrawn.sort_unstable();
    }
    Ok(changes)
}

impl Known {
    /// Whether a feed that reaches back to `edge` would still have this item.
    fn is_covered_from(&self, edge: Rank) -> bool {
        if self.published.or(self.updated).is_some() {
            self.rank.moment > edge.moment
        } else {
            self.rank > edge
        }
    }
}

/// How far back a document reaches: to its last item, if it goes from new to old. Where another
/// order rules, or one item is pinned to the end, an item that is gone may just have lost its
/// place; then this is `None`, and nothing was taken back. One at the end that is much older than
/// all others is pinned there, and not counted.
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
    // One in ten may be out of place: an item that is pinned, one that was dated back.
    if falling * 10 >= pairs * 9 {
        Some(*last)
    } else if (pairs - falling) * 10 >= pairs * 9 {
        Some(*first)
    } else {
        None
    }
}

/// Whether the feed dates every item anew each time it is asked: then dates are no news.
fn is_stamped(entries: &[(String, Entry)], known: &HashMap<String, Known>, now: Moment) -> bool {
    let mut moved = Vec::new();
    for (identity, entry) in entries {
        let published = entry.published.map(Moment::unix);
        // Where there is no date, none can be new.
        let known = known.get(identity).filter(|it| it.published.or(published).is_some());
        if let Some(known) = known {
            if published == known.published {
                return false;
            }
            moved.push((entry, known));
        }
    }
    match moved.as_slice() {
        [] => false,
        // One that says the same as before, and that it is of this moment.
        [(entry, known)] => {
            let is_now = |it: Moment| it.unix().abs_diff(now.unix()) <= STAMP;
            entry.published.is_some_and(is_now) && content_hash(entry) == known.hash
        }
        _ => true,
    }
}

/// An item of a page of several that was there alone, or the other way round: its fragment counts
/// in one of the two and not in the other.
fn namesake(
    transaction: &Transaction<'_>,
    known: &mut HashMap<String, Known>,
    identity: &str,
    entry: &Entry,
) -> Result<Option<Known>, StoreError> {
    let Some(Part { alone, beside, fragment }) = part_of(entry) else { return Ok(None) };
    if identity == alone {
        return Ok(known.remove(&beside));
    }
    let is_other = |known: &Known| fragment_of(known.link.as_deref()) != fragment;
    if known.get(&alone).is_none_or(is_other) {
        return Ok(None);
    }
    let found = known.remove(&alone);
    if let Some(known) = &found {
        // From now on it is told apart from the others.
        transaction
            .prepare_cached("UPDATE items SET identity = ?2 WHERE key = ?1")?
            .execute(params![known.key, identity])?;
    }
    Ok(found)
}

fn known_items(
    transaction: &Transaction<'_>,
    feed: i64,
) -> Result<HashMap<String, Known>, StoreError> {
    let query = "SELECT identity, key, hash, published, updated, moment, first_seen, position, link
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
            rank,
        };
        Ok((row.get(0)?, known))
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::parse::Item;
    use crate::feeds::store::tests::{check, day, items, store, text, titles};

    /// It once was told at each answer: two of several are needed to see that all dates move.
    #[test]
    fn a_feed_of_one_item_that_is_dated_anew_each_time_is_no_news() {
        let store = store();
        check(&store, &items(&[("a", 1)]), 1, [1, 0, 0]);
        check(&store, &items(&[("a", 2)]), 2, [0, 0, 0]);
        check(&store, &items(&[("a", 5)]), 9, [0, 1, 0]);
        let mut edited = items(&[("a", 10)]);
        edited.items[0].title = Some(text("A!"));
        check(&store, &edited, 10, [0, 1, 0]);
    }

    #[test]
    fn items_without_dates_do_not_hide_that_all_dates_move() {
        let store = store();
        let mut document = items(&[("c", 3), ("b", 2), ("a", 1)]);
        document.items[0].published = None;
        check(&store, &document, 3, [3, 0, 0]);
        for item in &mut document.items[1..] {
            item.published = Some(day(4));
        }
        check(&store, &document, 4, [0, 0, 0]);
    }

    #[test]
    fn a_part_of_a_page_is_the_same_alone_and_beside_others() {
        let parts = |names: &[&str]| {
            let part = |name: &&str| Item {
                link: Some(format!("https://a.org/log#{name}")),
                title: Some(text(name)),
                ..Item::default()
            };
            Document { items: names.iter().map(part).collect(), ..Document::default() }
        };
        let store = store();
        check(&store, &parts(&["1"]), 1, [1, 0, 0]);
        check(&store, &parts(&["2", "1"]), 2, [1, 0, 0]);
        assert!(check(&store, &parts(&["2", "1"]), 3, [0, 0, 0]).is_empty());
        check(&store, &parts(&["2"]), 4, [0, 0, 0]);
        check(&store, &parts(&["3", "2"]), 5, [1, 0, 0]);
        assert_eq!(titles(&store), ["3", "2", "1"]);
    }
}
