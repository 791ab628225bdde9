//! How much is kept of a feed, and that what went does not come back as new.

use std::time::Duration;

use rusqlite::{Transaction, params};

use crate::feeds::date::Moment;
use crate::feeds::store::StoreError;

/// How many tombstones a feed may have for each item it may keep.
const TOMBSTONES_PER_ITEM: u64 = 10;
/// A tombstone says to the day when the feed last had its item, so that a feed that never changes
/// is never written.
const DAY: i64 = 86_400;

/// How much is kept of each feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Retention {
    /// So many items at most, the newest: 1,000.
    pub count: u64,
    /// Items no older than this. By default age does not matter.
    pub age: Option<Duration>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { count: 1_000, age: None }
    }
}

impl Retention {
    /// Both bounds.
    #[must_use]
    pub fn new(count: u64, age: Option<Duration>) -> Self {
        Self { count, age }
    }

    /// Lets go of what is too much of a feed, and gives the keys of it. What is starred stays, and
    /// is not counted.
    pub(super) fn purge(
        self,
        transaction: &Transaction<'_>,
        feed: i64,
        now: Moment,
    ) -> Result<Vec<i64>, StoreError> {
        let oldest = self.age.map_or(i64::MIN, |age| {
            now.unix().saturating_sub(i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
        });
        let count = i64::try_from(self.count).unwrap_or(i64::MAX);
        let query = "SELECT key FROM (SELECT key, moment, row_number() OVER (
                ORDER BY moment DESC, first_seen DESC, position, key) AS rank
            FROM items WHERE feed = ?1 AND NOT EXISTS
                (SELECT 1 FROM marks WHERE item = items.key AND starred = 1))
            WHERE rank > ?2 OR moment < ?3";
        let gone: Vec<i64> = transaction
            .prepare_cached(query)?
            .query_map(params![feed, count, oldest], |row| row.get(0))?
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
            transaction
                .prepare_cached(
                    "DELETE FROM tombstones WHERE feed = ?1 AND identity IN (
                    SELECT identity FROM tombstones WHERE feed = ?1
                    ORDER BY seen DESC, identity LIMIT -1 OFFSET ?2)",
                )?
                .execute(params![feed, most])?;
        }
        Ok(gone)
    }
}

/// Whether an item went before. That the feed has it still is remembered.
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
