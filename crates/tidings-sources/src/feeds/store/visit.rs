//! What of a feed is news since a moment, for somebody who looks from outside.

use std::collections::BTreeMap;

use crate::feeds::store::{Store, StoreError};

/// Items by their keys, each with a hash of what it says.
pub(crate) type Seen = BTreeMap<i64, String>;

impl Store {
    /// The items of a feed as they are now.
    pub(crate) fn seen(&self, id: &str) -> Result<Seen, StoreError> {
        self.read(|connection| {
            let query = "SELECT items.key, hash FROM items JOIN feeds ON feeds.key = items.feed
                WHERE feeds.id = ?1";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map([id], |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}
