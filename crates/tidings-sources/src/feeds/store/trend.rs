//! How many items there were about what, in a span of time.

use rusqlite::params;

use crate::feeds::date::Moment;
use crate::feeds::store::{Store, StoreError};

/// How many categories are counted; the others are rarer.
const CATEGORIES: i64 = 200;
/// How many titles are looked at, the newest.
const TITLES: i64 = 5_000;

/// A span of time, in the items of one feed or of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The key of the feed.
    pub(crate) feed: Option<i64>,
    /// Both included.
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

/// What there was in a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trend {
    /// How many items.
    pub(crate) items: u64,
    /// The keys of feeds and how many items they had, the most first.
    pub(crate) feeds: Vec<(i64, u64)>,
    /// Categories as they are compared and as they are shown, with how many items had them, the
    /// most first.
    pub(crate) categories: Vec<(String, String, u64)>,
    /// The titles of the newest.
    pub(crate) titles: Vec<String>,
}

/// The items of a span.
const WITHIN: &str = "items WHERE moment BETWEEN ?1 AND ?2
    AND +feed IN (SELECT key FROM feeds WHERE active = 1) AND (?3 IS NULL OR +feed = ?3)";

impl Store {
    pub(crate) fn trend(&self, span: Span) -> Result<Trend, StoreError> {
        self.read(|connection| {
            let (from, to) = (span.from.unix(), span.to.unix());
            let count = |number: i64| u64::try_from(number).unwrap_or_default();
            let query = format!(
                "SELECT feed, count(*) FROM {WITHIN} GROUP BY +feed ORDER BY count(*) DESC, feed"
            );
            let feeds: Vec<(i64, u64)> = connection
                .prepare_cached(&query)?
                .query_map(params![from, to, span.feed], |row| {
                    Ok((row.get(0)?, count(row.get(1)?)))
                })?
                .collect::<Result<_, _>>()?;
            let query = format!(
                "SELECT value, min(shown), count(*) FROM (SELECT key FROM {WITHIN})
                 CROSS JOIN labels ON labels.item = key AND kind = 0
                 GROUP BY value ORDER BY count(*) DESC, value LIMIT ?4"
            );
            let categories = connection
                .prepare_cached(&query)?
                .query_map(params![from, to, span.feed, CATEGORIES], |row| {
                    Ok((row.get(0)?, row.get(1)?, count(row.get(2)?)))
                })?
                .collect::<Result<_, _>>()?;
            let query = format!(
                "SELECT title FROM {WITHIN} AND title IS NOT NULL ORDER BY moment DESC LIMIT ?4"
            );
            let titles = connection
                .prepare_cached(&query)?
                .query_map(params![from, to, span.feed, TITLES], |row| row.get(0))?
                .collect::<Result<_, _>>()?;
            let items = feeds.iter().map(|(_, count)| count).sum();
            Ok(Trend { items, feeds, categories, titles })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::parse::Category;
    use crate::feeds::store::tests::{ID, day, items, store};

    #[test]
    fn what_lies_in_a_span_is_counted_and_nothing_else() {
        let store = store();
        let mut document = items(&[("c", 3), ("b", 2), ("a", 1)]);
        for (item, term) in document.items.iter_mut().zip(["X", "x", "y"]) {
            item.categories = vec![Category { term: term.to_owned(), ..Category::default() }];
        }
        store.apply(ID, &document, day(4)).unwrap();
        let key = store.feed(ID).unwrap().unwrap().key;
        let trend =
            |feed, from, to| store.trend(Span { feed, from: day(from), to: day(to) }).unwrap();
        let both = trend(None, 2, 3);
        assert_eq!((both.items, &both.feeds), (2, &vec![(key, 2)]));
        assert_eq!(both.categories, [("x".to_owned(), "X".to_owned(), 2)]);
        assert_eq!(both.titles, ["c", "b"]);
        assert_eq!(trend(Some(key), 1, 1).categories[0].1, "y");
        assert_eq!(trend(Some(key + 1), 1, 3), Trend::default());
        assert_eq!(trend(None, 4, 9), Trend::default());
    }
}
