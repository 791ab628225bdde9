//! Requests of other processes to fetch feeds: the process that fetches fulfils and removes them.

use rusqlite::params;
use tidings_store::date::Moment;

use crate::store::{Store, StoreError};

/// A request that is not fulfilled yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) key: i64,
    /// The id of the feed.
    pub(crate) feed: String,
}

impl Store {
    /// Stores requests to fetch these feeds; returns their keys.
    pub(crate) fn wish(&self, feeds: &[String], now: Moment) -> Result<Vec<i64>, StoreError> {
        self.write(|transaction| {
            let query = "INSERT INTO wishes (feed, made) VALUES (?1, ?2)";
            let mut insert = transaction.prepare_cached(query)?;
            let inserted = feeds.iter().map(|feed| insert.insert(params![feed, now.unix()]));
            Ok(inserted.collect::<Result<_, _>>()?)
        })
    }

    /// The unfulfilled requests, the oldest first.
    pub(crate) fn wishes(&self) -> Result<Vec<Wish>, StoreError> {
        self.read(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT key, feed FROM wishes ORDER BY key")?;
            let rows =
                statement.query_map([], |row| Ok(Wish { key: row.get(0)?, feed: row.get(1)? }))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// Removes requests that are fulfilled, or never will be.
    pub(crate) fn granted(&self, keys: &[i64]) -> Result<(), StoreError> {
        self.write(|transaction| {
            let mut delete = transaction.prepare_cached("DELETE FROM wishes WHERE key = ?1")?;
            for key in keys {
                delete.execute([key])?;
            }
            Ok(())
        })
    }
}
