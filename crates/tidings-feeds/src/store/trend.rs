//! Counts of items by topic in a span of time.

use std::collections::HashSet;

use rusqlite::{Connection, params};
use tidings_store::date::Moment;

use crate::store::{Store, StoreError};

/// How many categories of a span are counted; the others are rarer.
const CATEGORIES: i64 = 200;
/// How many titles of a span are read, the newest.
pub(crate) const TITLES: usize = 5_000;

/// A span of time, in the items of one feed or of all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    /// The key of the feed.
    pub(crate) feed: Option<i64>,
    /// Both included.
    pub(crate) from: Moment,
    pub(crate) to: Moment,
}

/// The counts of a span.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Trend {
    /// The number of items.
    pub(crate) items: u64,
    /// The keys of feeds and their numbers of items, the most first.
    pub(crate) feeds: Vec<(i64, u64)>,
    /// Categories as compared and as shown, with their numbers of items: the most frequent first,
    /// then those that are frequent only in the other span.
    pub(crate) categories: Vec<(String, String, u64)>,
    /// The titles of the newest.
    pub(crate) titles: Vec<String>,
}

/// The items of a span.
const WITHIN: &str = "items WHERE moment BETWEEN ?1 AND ?2
    AND +feed IN (SELECT key FROM feeds WHERE active = 1) AND (?3 IS NULL OR +feed = ?3)";

impl Store {
    /// The counts of two spans; each category counted in one of them is counted in both.
    pub(crate) fn trends(&self, spans: [Span; 2]) -> Result<[Trend; 2], StoreError> {
        self.read(|connection| {
            let [mut one, mut other] = [span(connection, spans[0])?, span(connection, spans[1])?];
            count_too(connection, spans[0], &mut one, &other)?;
            count_too(connection, spans[1], &mut other, &one)?;
            Ok([one, other])
        })
    }
}

fn span(connection: &Connection, span: Span) -> Result<Trend, StoreError> {
    let (from, to) = (span.from.unix(), span.to.unix());
    let query =
        format!("SELECT feed, count(*) FROM {WITHIN} GROUP BY +feed ORDER BY count(*) DESC, feed");
    let feeds: Vec<(i64, u64)> = connection
        .prepare_cached(&query)?
        .query_map(params![from, to, span.feed], |row| Ok((row.get(0)?, count(row.get(1)?))))?
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
    let query =
        format!("SELECT title FROM {WITHIN} AND title IS NOT NULL ORDER BY moment DESC LIMIT ?4");
    let titles = connection
        .prepare_cached(&query)?
        .query_map(
            params![from, to, span.feed, i64::try_from(TITLES).unwrap_or(i64::MAX)],
            |row| row.get(0),
        )?
        .collect::<Result<_, _>>()?;
    let items = feeds.iter().map(|(_, count)| count).sum();
    Ok(Trend { items, feeds, categories, titles })
}

/// Counts the categories of another span that are too rare here to be counted yet.
fn count_too(
    connection: &Connection,
    span: Span,
    trend: &mut Trend,
    other: &Trend,
) -> Result<(), StoreError> {
    let known: HashSet<_> = trend.categories.iter().map(|(value, ..)| value.clone()).collect();
    let query = format!(
        "SELECT count(*) FROM {WITHIN} AND +key IN
         (SELECT item FROM labels WHERE kind = 0 AND value = ?4)"
    );
    let mut statement = connection.prepare_cached(&query)?;
    for (value, shown, _) in other.categories.iter().filter(|(value, ..)| !known.contains(value)) {
        let values = params![span.from.unix(), span.to.unix(), span.feed, value];
        let found = count(statement.query_row(values, |row| row.get(0))?);
        if found > 0 {
            trend.categories.push((value.clone(), shown.clone(), found));
        }
    }
    Ok(())
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::Category;
    use crate::store::tests::{ID, day, items, store};

    #[test]
    fn what_lies_in_a_span_is_counted_and_nothing_else() {
        let store = store();
        let mut document = items(&[("c", 3), ("b", 2), ("a", 1)]);
        for (item, term) in document.items.iter_mut().zip(["X", "x", "y"]) {
            item.categories = vec![Category { term: term.to_owned(), ..Category::default() }];
        }
        store.apply(ID, &document, day(4)).unwrap();
        let key = store.feed(ID).unwrap().unwrap().key;
        let trend = |feed, from, to| {
            let span = Span { feed, from: day(from), to: day(to) };
            let [trend, _] = store.trends([span; 2]).unwrap();
            trend
        };
        let both = trend(None, 2, 3);
        assert_eq!((both.items, &both.feeds), (2, &vec![(key, 2)]));
        assert_eq!(both.categories, [("x".to_owned(), "X".to_owned(), 2)]);
        assert_eq!(both.titles, ["c", "b"]);
        assert_eq!(trend(Some(key), 1, 1).categories[0].1, "y");
        assert_eq!(trend(Some(key + 1), 1, 3), Trend::default());
        assert_eq!(trend(None, 4, 9), Trend::default());
    }

    #[test]
    fn a_category_that_is_rare_in_one_span_is_counted_in_both() {
        let store = store();
        let mut document = items(&[("d", 9), ("c", 8), ("b", 2), ("a", 1)]);
        let category = |term: String| Category { term, ..Category::default() };
        // Last by its name, where each has one item.
        let rare = category("zzz".to_owned());
        for (number, item) in document.items[2..].iter_mut().enumerate() {
            let many = (0..CATEGORIES).map(|it| category(format!("{number}-{it}")));
            item.categories = many.chain([rare.clone()]).collect();
        }
        document.items[3].categories.pop();
        document.items[0].categories = vec![rare];
        store.apply(ID, &document, day(9)).unwrap();
        let span = |from, to| Span { feed: None, from: day(from), to: day(to) };
        let [_, before] = store.trends([span(8, 9), span(1, 2)]).unwrap();
        assert!(before.categories.contains(&("zzz".to_owned(), "zzz".to_owned(), 1)));
    }
}
