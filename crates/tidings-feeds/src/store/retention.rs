//! Retention: how many items are stored, and that removed ones do not return as new.

use std::collections::HashSet;
use std::time::Duration;

use rusqlite::{Transaction, params};
use serde::{Deserialize, Serialize};
use tidings_store::date::Moment;

use crate::store::row::Entry;
use crate::store::{Store, StoreError};

/// The maximum number of tombstones for each item that a feed may store.
const TOMBSTONES_PER_ITEM: u64 = 10;
/// The longest tag that may be cut in two.
const TAG: usize = 1_000;
/// A tombstone has the day on which the feed last contained its item, so that an unchanged feed is
/// never written.
const DAY: i64 = 86_400;

/// The limits of stored items per feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Retention {
    /// The maximum number of items, the newest: 1,000.
    pub count: u64,
    /// The maximum age of items. By default age does not matter.
    pub age: Option<Duration>,
    /// The maximum number of bytes, of the newest items: 16 MiB, which is 1,000 long posts, each as
    /// received and as shown. The newest item always stays. Without this limit one feed could fill
    /// the disk.
    pub bytes: u64,
    /// The maximum number of bytes of one text; the rest is cut: 256 KiB, which is a novella.
    /// Longer texts are books and mistakes.
    pub text_bytes: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { count: 1_000, age: None, bytes: 16 << 20, text_bytes: 256 << 10 }
    }
}

impl Store {
    /// Stores the limits for other writers.
    pub(crate) fn tell_retention(&self) -> Result<(), StoreError> {
        let bounds = serde_json::to_string(&self.retention).unwrap_or_default();
        self.write(|transaction| {
            let query = "UPDATE origin SET retention = ?1 WHERE retention IS NOT ?1";
            transaction.execute(query, [bounds])?;
            Ok(())
        })
    }

    /// The limits of the last server, if there was one.
    pub(crate) fn follow_retention(&mut self) -> Result<(), StoreError> {
        let query = "SELECT retention FROM origin";
        let told: Option<String> =
            self.read(|it| Ok(it.query_row(query, [], |row| row.get(0))?))?;
        let told = told.and_then(|told| serde_json::from_str(&told).ok());
        self.retention = told.unwrap_or(self.retention);
        Ok(())
    }
}

impl Retention {
    /// These limits, and defaults for the others.
    #[must_use]
    pub fn new(count: u64, age: Option<Duration>) -> Self {
        Self { count, age, ..Self::default() }
    }

    /// Cuts texts that are too long, but not within a tag.
    pub(super) fn cut(self, entry: &mut Entry) {
        let most = usize::try_from(self.text_bytes).unwrap_or(usize::MAX);
        for text in [&mut entry.title, &mut entry.description, &mut entry.content] {
            let Some(text) = text.as_mut().filter(|text| text.len() > most) else { continue };
            text.truncate(text.floor_char_boundary(most));
            let tag = text.rfind('<').filter(|tag| !text[*tag..].contains('>'));
            // A long text after an angle bracket is not a tag.
            if let Some(tag) = tag.filter(|tag| text.len() - tag < TAG) {
                text.truncate(tag);
            }
        }
    }

    /// Removes the items of a feed beyond the limits, and returns their keys. Starred items stay,
    /// and are not counted.
    pub(super) fn purge(
        self,
        transaction: &Transaction<'_>,
        feed: i64,
        entries: &[(String, Entry)],
        now: Moment,
    ) -> Result<Vec<i64>, StoreError> {
        let oldest = self.age.map_or(i64::MIN, |age| {
            now.unix().saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
        });
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let bytes = i64::try_from(self.bytes).unwrap_or(i64::MAX);
        let query = "SELECT key FROM (SELECT key, moment, row_number() OVER newest AS rank,
                sum(ifnull(octet_length(title), 0) + ifnull(octet_length(description), 0)
                    + ifnull(octet_length(content), 0) + ifnull(octet_length(guid), 0)
                    + ifnull(octet_length(link), 0) + ifnull(octet_length(image), 0)
                    + ifnull(octet_length(safe_description), 0) + ifnull(octet_length(safe_content), 0)
                    + octet_length(authors) + octet_length(categories)
                    + octet_length(enclosures)) OVER newest AS bytes
            FROM items WHERE feed = ?1 AND NOT EXISTS
                (SELECT 1 FROM marks WHERE item = items.key AND starred = 1)
            WINDOW newest AS (ORDER BY moment DESC, first_seen DESC, position, key
                ROWS UNBOUNDED PRECEDING))
            WHERE rank > ?2 OR moment < ?3 OR (bytes > ?4 AND rank > 1)";
        let gone: Vec<i64> = transaction
            .prepare_cached(query)?
            .query_map(params![feed, count, oldest, bytes], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut bury = transaction.prepare_cached(
            "INSERT OR REPLACE INTO tombstones (feed, identity, seen)
             SELECT feed, identity, ?2 FROM items WHERE key = ?1",
        )?;
        let mut delete = transaction.prepare_cached("DELETE FROM items WHERE key = ?1")?;
        for key in &gone {
            bury.execute(params![key, today(now)])?;
            delete.execute([key])?;
        }
        if !gone.is_empty() {
            let most = self.count.saturating_mul(TOMBSTONES_PER_ITEM);
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let query = "SELECT identity FROM tombstones WHERE feed = ?1
                ORDER BY seen DESC, identity LIMIT -1 OFFSET ?2";
            let forgotten: Vec<String> = transaction
                .prepare_cached(query)?
                .query_map(params![feed, most], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            // Items that the feed still contains would return, and be removed, each time.
            let said: HashSet<_> = entries.iter().map(|(identity, _)| identity).collect();
            let mut forget = transaction
                .prepare_cached("DELETE FROM tombstones WHERE feed = ?1 AND identity = ?2")?;
            for identity in forgotten.iter().filter(|identity| !said.contains(identity)) {
                forget.execute(params![feed, identity])?;
            }
        }
        Ok(gone)
    }
}

/// Remembers a removed item, so that it does not return as new.
pub(super) fn bury(
    transaction: &Transaction<'_>,
    feed: i64,
    identity: &str,
    now: Moment,
) -> Result<(), StoreError> {
    let query = "INSERT OR REPLACE INTO tombstones (feed, identity, seen) VALUES (?1, ?2, ?3)";
    transaction.prepare_cached(query)?.execute(params![feed, identity, today(now)])?;
    Ok(())
}

/// Whether an item was removed before. That the feed still contains it is noted.
pub(super) fn is_buried(
    transaction: &Transaction<'_>,
    feed: i64,
    identity: &str,
    now: Moment,
) -> Result<bool, StoreError> {
    let mut find = transaction
        .prepare_cached("SELECT seen FROM tombstones WHERE feed = ?1 AND identity = ?2")?;
    let mut rows = find.query(params![feed, identity])?;
    let Some(row) = rows.next()? else { return Ok(false) };
    if row.get::<_, i64>(0)? < today(now) {
        transaction
            .prepare_cached("UPDATE tombstones SET seen = ?3 WHERE feed = ?1 AND identity = ?2")?
            .execute(params![feed, identity, today(now)])?;
    }
    Ok(true)
}

fn today(now: Moment) -> i64 {
    now.unix().div_euclid(DAY) * DAY
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{check, items, store_with};

    /// They used to be forgotten while the feed still had their items, which came and went each
    /// time.
    #[test]
    fn what_a_feed_still_has_is_remembered_however_much_it_is() {
        let store = store_with(Retention::new(1, None));
        let names: Vec<_> = (0..30).map(|number| format!("{number:02}")).collect();
        let all: Vec<_> = names.iter().rev().map(|name| (name.as_str(), 1)).collect();
        let buried = || {
            let count = "SELECT count(*) FROM tombstones";
            store.read(|it| Ok(it.query_row(count, [], |row| row.get::<_, i64>(0))?)).unwrap()
        };
        check(&store, &items(&all[1..]), 2, [1, 0, 0]);
        assert_eq!(buried(), 28);
        check(&store, &items(&all), 3, [1, 0, 0]);
        assert_eq!(buried(), 29);
        // Tombstones of items that the feed does not contain any more are limited.
        check(&store, &items(&[("x", 9)]), 10, [1, 0, 0]);
        assert_eq!(buried(), 10);
    }
}
