//! The news of a feed since a moment, for another process.

use std::collections::BTreeMap;

use crate::store::{Store, StoreError};

/// Items by their keys, each with a number that changes with its readable form, and its identity.
pub(crate) type Seen = BTreeMap<i64, (String, String)>;

impl Store {
    /// The items of a feed as they are now.
    pub(crate) fn seen(&self, id: &str) -> Result<Seen, StoreError> {
        self.read(|connection| {
            let query = "SELECT items.key, concat_ws(' ', hash, published, link, guid), identity
                FROM items
                JOIN feeds ON feeds.key = items.feed WHERE feeds.id = ?1";
            let mut statement = connection.prepare_cached(query)?;
            let rows =
                statement.query_map([id], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }

    /// How many of these the feed withdrew; the others were removed to make room.
    pub(crate) fn taken_back(&self, id: &str, gone: &[String]) -> Result<usize, StoreError> {
        self.read(|connection| {
            let query = "SELECT 1 FROM tombstones JOIN feeds ON feeds.key = tombstones.feed
                WHERE feeds.id = ?1 AND identity = ?2";
            let mut statement = connection.prepare_cached(query)?;
            let mut count = 0;
            for identity in gone {
                count += usize::from(!statement.exists([id, identity.as_str()])?);
            }
            Ok(count)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::store::Retention;
    use crate::store::tests::{ID, check, items, store_with};

    #[test]
    fn what_was_let_go_was_not_taken_back() {
        let store = store_with(Retention::new(3, None));
        check(&store, &items(&[("c", 3), ("b", 2), ("a", 1)]), 4, [3, 0, 0]);
        let before = store.seen(ID).unwrap();
        // The oldest does not fit, and `c` is missing between the others.
        check(&store, &items(&[("e", 5), ("d", 4), ("b", 2), ("a", 1)]), 6, [2, 0, 1]);
        let now = store.seen(ID).unwrap();
        let gone: Vec<_> = before.into_iter().filter(|(key, _)| !now.contains_key(key)).collect();
        let gone: Vec<_> = gone.into_iter().map(|(_, (_, identity))| identity).collect();
        assert_eq!((gone.len(), store.taken_back(ID, &gone).unwrap()), (2, 1));
    }
}
