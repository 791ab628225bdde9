//! Marks of items: read, starred. Feeds do not know them, and resources do not show them.

use rusqlite::{OptionalExtension as _, params};

use crate::store::{Store, StoreError};

/// The maximum number of starred items: they are kept for ever.
pub(crate) const STARRED: u64 = 10_000;

/// The wanted items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Marked {
    #[default]
    Any,
    Unread,
    Starred,
}

/// A change of an item's marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) read: Option<bool>,
    pub(crate) starred: Option<bool>,
}

impl Store {
    /// Marks items, each given by its key and the id of its feed; returns the keys of those that
    /// exist. If there would be too many stars, nothing is changed, and that is an error.
    pub(crate) fn mark(&self, items: &[(i64, String)], mark: Mark) -> Result<Vec<i64>, StoreError> {
        self.write(|transaction| {
            let mut find = transaction.prepare_cached(
                "SELECT items.key FROM items JOIN feeds ON feeds.key = items.feed
                 WHERE items.key = ?1 AND feeds.id = ?2 AND active = 1",
            )?;
            let mut put = transaction.prepare_cached(
                "INSERT INTO marks (item, read, starred)
                 VALUES (?1, coalesce(?2, 0), coalesce(?3, 0)) ON CONFLICT DO UPDATE
                 SET read = coalesce(?2, read), starred = coalesce(?3, starred)",
            )?;
            let mut marked = Vec::new();
            for (key, feed) in items {
                let found = find.query_row(params![key, feed], |row| row.get(0)).optional()?;
                if let Some(key) = found {
                    put.execute(params![key, mark.read, mark.starred])?;
                    marked.push(key);
                }
            }
            transaction.execute("DELETE FROM marks WHERE read = 0 AND starred = 0", [])?;
            let count = "SELECT count(*) FROM marks WHERE starred = 1";
            let starred: i64 = transaction.query_row(count, [], |row| row.get(0))?;
            if mark.starred == Some(true) && u64::try_from(starred).is_ok_and(|it| it > STARRED) {
                return Err(StoreError::TooManyStars(STARRED));
            }
            Ok(marked)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::tests::{ID, check, items, store_with, titles};
    use crate::store::{Listing, Retention};

    fn star(store: &Store, starred: bool) -> Vec<i64> {
        let listed = store.list(&Listing::default()).unwrap().items;
        let oldest = (listed.last().unwrap().key, ID.to_owned());
        store.mark(&[oldest], Mark { read: None, starred: Some(starred) }).unwrap()
    }

    #[test]
    fn what_is_starred_outlives_what_is_not() {
        let store = store_with(Retention::new(2, None));
        check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
        assert_eq!(star(&store, true).len(), 1);
        check(&store, &items(&[("d", 4), ("c", 3), ("b", 2)]), 5, [2, 0, 0]);
        assert_eq!(titles(&store), ["d", "c", "a"]);
        star(&store, false);
        check(&store, &items(&[("e", 5), ("d", 4), ("c", 3)]), 6, [1, 0, 0]);
        assert_eq!(titles(&store), ["e", "d"]);
    }

    #[test]
    fn an_item_is_marked_under_its_own_name_only() {
        let store = store_with(Retention::default());
        check(&store, &items(&[("a", 1)]), 3, [1, 0, 0]);
        let key = store.list(&Listing::default()).unwrap().items[0].key;
        let mark = Mark { read: Some(true), starred: None };
        let wrong = [(key, "05c914db".to_owned()), (key + 1, ID.to_owned())];
        assert!(store.mark(&wrong, mark).unwrap().is_empty());
        assert_eq!(store.mark(&[(key, ID.to_owned())], mark).unwrap(), [key]);
    }
}
