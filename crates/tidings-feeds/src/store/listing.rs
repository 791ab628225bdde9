//! Items of several feeds in one list: the newest, or the best matches of a search.

use std::collections::HashSet;
use std::fmt::Write as _;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tidings_store::date::Moment;

use crate::store::marks::Marked;
use crate::store::query::{COLUMNS, entry};
use crate::store::row::Kept;
use crate::store::{Store, StoreError};
use crate::view::Filter;

/// How far matches of a search are counted: counting takes time, and nobody reads more.
const COUNTED: i64 = 10_000;
/// The maximum number of matches that are ranked. Ranking reads the whole index of each word; of
/// more matches, the newest are shown, those with all words in their titles first.
const RANKED: i64 = 1_000;
/// The weight of a word in the title, in the description and in the content.
const RANK: &str = "bm25(words, 0.0, 8.0, 3.0, 1.0)";

/// The requested items.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Listing {
    /// The keys of their feeds; default: all served feeds.
    pub(crate) feeds: Vec<i64>,
    pub(crate) filter: Filter,
    pub(crate) marked: Marked,
    pub(crate) order: Order,
}

/// The order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Order {
    #[default]
    Newest,
    /// The best matches first; without a search, the newest.
    Best,
}

/// The result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Listed {
    /// The total number, without the limit; of a search, counted up to ten thousand, or up to a
    /// thousand if the best are first.
    pub(crate) total: u64,
    /// Whether all were counted.
    pub(crate) is_counted: bool,
    pub(crate) items: Vec<Kept>,
}

impl Listed {
    /// The total in words: `1 item`, `1000 or more items`.
    pub(crate) fn count(&self) -> String {
        let more = if self.is_counted { "" } else { " or more" };
        let plural = if self.total == 1 && self.is_counted { "" } else { "s" };
        format!("{}{more} item{plural}", self.total)
    }
}

impl Store {
    /// The requested items and their number, from one snapshot.
    pub(crate) fn list(&self, listing: &Listing) -> Result<Listed, StoreError> {
        self.read(|connection| {
            let query = Query::new(listing, &unserved(connection)?);
            let (total, is_counted) = query.total(connection, listing.order)?;
            let items = query.items(connection, listing, is_counted)?;
            Ok(Listed { total, is_counted, items })
        })
    }
}

/// A query being written: conditions on items, and the search.
#[derive(Default)]
struct Query {
    search: Option<String>,
    /// The same in titles only.
    in_titles: Option<String>,
    conditions: String,
    values: Vec<Value>,
}

impl Query {
    fn new(listing: &Listing, unserved: &[i64]) -> Self {
        let Listing { feeds, filter, marked, .. } = listing;
        let search = filter.search.as_ref().map(|search| search.within(feeds));
        let in_titles = filter.search.as_ref().map(|search| search.in_titles(feeds));
        let mut query = Self { search, in_titles, ..Self::default() };
        let list = |keys: &[i64]| keys.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        if feeds.is_empty() && !unserved.is_empty() {
            let _ = write!(query.conditions, " AND items.feed NOT IN ({})", list(unserved));
        }
        if !feeds.is_empty() && query.search.is_none() {
            let _ = write!(query.conditions, " AND items.feed IN ({})", list(feeds));
        }
        if let Some(since) = filter.since {
            query.and("moment >= ?", since.unix());
        }
        if let Some(until) = filter.until {
            query.and("moment <= ?", until.unix());
        }
        let labelled = "items.key IN (SELECT item FROM labels WHERE kind";
        if let Some(category) = &filter.category {
            query.and(&format!("{labelled} = 0 AND value = ?)"), category.clone());
        }
        if let Some(author) = &filter.author {
            query.and(&format!("{labelled} IN (1, 2) AND value = ?)"), author.clone());
        }
        query.conditions += match marked {
            Marked::Any => "",
            Marked::Unread => " AND items.key NOT IN (SELECT item FROM marks WHERE read = 1)",
            Marked::Starred => " AND items.key IN (SELECT item FROM marks WHERE starred = 1)",
        };
        query
    }

    fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.conditions += " AND ";
        self.conditions += condition;
        self.values.push(value.into());
    }

    /// The matching items, with these columns; only the index of words if there are no other
    /// conditions.
    fn select(&self, columns: &str) -> (String, Vec<Value>) {
        self.select_with(self.search.as_ref(), columns)
    }

    fn select_with(&self, search: Option<&String>, columns: &str) -> (String, Vec<Value>) {
        let conditions = &self.conditions;
        let Some(search) = search else {
            let query = format!("SELECT {columns} FROM items WHERE 1{conditions}");
            return (query, self.values.clone());
        };
        let tables = if conditions.is_empty() {
            "words"
        } else {
            "words CROSS JOIN items ON items.key = words.rowid"
        };
        let mut values = vec![Value::from(search.clone())];
        values.extend(self.values.iter().cloned());
        (format!("SELECT {columns} FROM {tables} WHERE words MATCH ?{conditions}"), values)
    }

    fn items(
        &self,
        connection: &Connection,
        listing: &Listing,
        is_counted: bool,
    ) -> Result<Vec<Kept>, StoreError> {
        let newest = "moment DESC, first_seen DESC, position, items.key LIMIT ? OFFSET ?";
        let (found, mut values) = if self.search.is_none() {
            let (query, values) = self.select("items.key");
            (format!("{query} ORDER BY {newest}"), values)
        } else if listing.order == Order::Best && is_counted {
            let (query, values) = self.select(&format!("words.rowid AS key, {RANK} AS fit"));
            let found = format!(
                "SELECT found.key FROM ({query}) AS found
                 CROSS JOIN items INDEXED BY items_when ON items.key = found.key
                 ORDER BY fit, {newest}"
            );
            (found, values)
        } else if listing.order == Order::Best {
            let keys = self.last(connection)?;
            let limit = listing.filter.limit.map_or(usize::MAX, |limit| limit as usize);
            let offset = usize::try_from(listing.filter.offset).unwrap_or(usize::MAX);
            let shown = keys.into_iter().skip(offset).take(limit);
            return shown.map(|key| kept(connection, key)).collect();
        } else {
            let (query, values) = self.select("words.rowid");
            (format!("SELECT key FROM items WHERE key IN ({query}) ORDER BY {newest}"), values)
        };
        // A negative number is no limit.
        values.push(listing.filter.limit.map_or(-1, i64::from).into());
        values.push(i64::try_from(listing.filter.offset).unwrap_or(i64::MAX).into());
        // Found first and read after, so that texts of items that are not shown are never read.
        let keys = keys_of(connection, &found, values)?;
        keys.into_iter().map(|key| kept(connection, key)).collect()
    }

    /// The newest, those with all words in their titles first.
    fn last(&self, connection: &Connection) -> Result<Vec<i64>, StoreError> {
        let (query, values) = self.select("words.rowid");
        let last = format!("{query} ORDER BY words.rowid DESC LIMIT {RANKED}");
        let newest = format!(
            "SELECT items.key FROM ({last}) AS last
             CROSS JOIN items INDEXED BY items_when ON items.key = last.rowid
             ORDER BY moment DESC, first_seen DESC, position, items.key"
        );
        let mut keys = keys_of(connection, &newest, values)?;
        let (query, mut values) = self.select_with(self.in_titles.as_ref(), "words.rowid");
        // Only from there on. Otherwise the whole index would be read for a word that is in no
        // title.
        values.push(keys.iter().copied().min().unwrap_or_default().into());
        let titled = keys_of(connection, &format!("{query} AND words.rowid >= ?"), values)?;
        let titled: HashSet<_> = titled.into_iter().collect();
        keys.sort_by_key(|key| !titled.contains(key));
        Ok(keys)
    }

    /// How many match, and whether all were counted.
    fn total(&self, connection: &Connection, order: Order) -> Result<(u64, bool), StoreError> {
        let (query, values) = self.select("1");
        let most = match (&self.search, order) {
            (None, _) => i64::MAX,
            (Some(_), Order::Newest) => COUNTED,
            // Items behind them are never shown.
            (Some(_), Order::Best) => RANKED,
        };
        let query = format!("SELECT count(*) FROM ({query} LIMIT {most})");
        let count: i64 = connection
            .prepare_cached(&query)?
            .query_row(params_from_iter(values), |row| row.get(0))?;
        Ok((u64::try_from(count).unwrap_or_default(), count < most))
    }
}

fn keys_of(
    connection: &Connection,
    query: &str,
    values: Vec<Value>,
) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached(query)?;
    let keys = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    Ok(keys.collect::<Result<_, _>>()?)
}

/// The feeds that are stored but not served.
fn unserved(connection: &Connection) -> Result<Vec<i64>, StoreError> {
    let mut statement = connection.prepare_cached("SELECT key FROM feeds WHERE active = 0")?;
    let keys = statement.query_map([], |row| row.get(0))?;
    Ok(keys.collect::<Result<_, _>>()?)
}

/// One item with its marks.
pub(super) fn kept(connection: &Connection, key: i64) -> Result<Kept, StoreError> {
    let query = format!(
        "SELECT {COLUMNS}, items.key, feed, moment, coalesce(read, 0), coalesce(starred, 0)
         FROM items LEFT JOIN marks ON marks.item = items.key WHERE items.key = ?"
    );
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query([key])?;
    let damaged = || StoreError::Damaged(format!("the item {key}"));
    let row = rows.next()?.ok_or_else(damaged)?;
    Ok(Kept {
        entry: entry(row)?,
        key: row.get(13)?,
        feed: row.get(14)?,
        moment: Moment::from_unix(row.get(15)?).ok_or_else(damaged)?,
        read: row.get(16)?,
        starred: row.get(17)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Earlier;
    use crate::parse::{Category, Document};
    use crate::store::tests::{day, item, registration, text};
    use crate::store::{Mark, Retention};

    const URLS: [&str; 2] = ["https://a.org/f", "https://b.org/f"];

    /// Two feeds with two items each, with their texts beside them.
    fn store() -> (Store, Vec<i64>) {
        let store = Store::in_memory(Retention::default()).unwrap();
        store.configure(&URLS.map(registration), Earlier::Dropped, day(0)).unwrap();
        let mut keys = Vec::new();
        for (number, url) in (0..).zip(URLS) {
            let id = crate::id::short(url);
            let said = |name: &str, published: i64, words: &str| crate::parse::Item {
                summary: Some(text(words)),
                categories: vec![Category { term: name.to_owned(), ..Category::default() }],
                ..item(&format!("{name}{number}"), published + number)
            };
            let items = vec![said("new", 4, "one pear"), said("old", 1, "apple pear pear tree")];
            store.apply(&id, &Document { items, ..Document::default() }, day(9)).unwrap();
            keys.push(store.feed(&id).unwrap().unwrap().key);
        }
        (store, keys)
    }

    fn filter(pairs: &[(&str, &str)]) -> Filter {
        Filter::of(pairs.iter().copied()).unwrap()
    }

    #[track_caller]
    fn check(store: &Store, listing: &Listing, total: u64, expected: &str) {
        let listed = store.list(listing).unwrap();
        let titles: Vec<_> =
            listed.items.iter().map(|it| it.entry.title.clone().unwrap()).collect();
        assert_eq!((titles.join(" ").as_str(), listed.total), (expected, total));
    }

    #[test]
    fn items_of_all_feeds_are_one_list() {
        let (store, keys) = store();
        check(&store, &Listing::default(), 4, "new1 new0 old1 old0");
        let one = Listing { feeds: vec![keys[1]], ..Listing::default() };
        check(&store, &one, 2, "new1 old1");
        let page = filter(&[("limit", "2"), ("offset", "1")]);
        check(&store, &Listing { filter: page, ..Listing::default() }, 4, "new0 old1");
        let old = filter(&[("category", "OLD")]);
        check(&store, &Listing { filter: old, ..Listing::default() }, 2, "old1 old0");
    }

    #[test]
    fn the_best_are_first_where_something_is_searched() {
        let (store, keys) = store();
        let search = |feeds: Vec<i64>, words| Listing {
            feeds,
            filter: filter(&[("search", words)]),
            order: Order::Best,
            ..Listing::default()
        };
        check(&store, &search(Vec::new(), "apple"), 2, "old1 old0");
        check(&store, &search(vec![keys[0]], "new0"), 1, "new0");
        // Twice beats once, also against a newer item.
        check(&store, &search(vec![keys[1]], "pear"), 2, "old1 new1");
        check(&store, &search(Vec::new(), "nothing"), 0, "");
    }

    #[test]
    fn words_are_found_by_their_beginning_and_in_other_forms() {
        let (store, _) = store();
        let search = |words| Listing {
            filter: filter(&[("search", words)]),
            order: Order::Best,
            ..Listing::default()
        };
        check(&store, &search("app*"), 2, "old1 old0");
        check(&store, &search("appl"), 0, "");
        check(&store, &search("apple* old1"), 1, "old1");
    }

    /// The oldest of a document used to come first.
    #[test]
    fn of_equal_hits_the_newest_is_first() {
        let store = Store::in_memory(Retention::default()).unwrap();
        store.configure(&[registration(URLS[0])], Earlier::Dropped, day(0)).unwrap();
        let items = [("old", 1), ("new", 3), ("mid", 2)];
        let items = items
            .map(|(name, on)| crate::parse::Item { summary: Some(text("pear")), ..item(name, on) });
        let document = Document { items: items.to_vec(), ..Document::default() };
        store.apply(&crate::id::short(URLS[0]), &document, day(9)).unwrap();
        let filter = filter(&[("search", "pear")]);
        let listing = Listing { filter, order: Order::Best, ..Listing::default() };
        check(&store, &listing, 3, "new mid old");
    }

    #[test]
    fn of_what_is_everywhere_only_those_count_that_are_put_in_order() {
        let store = Store::in_memory(Retention::new(3_000, None)).unwrap();
        store.configure(&[registration(URLS[0])], Earlier::Dropped, day(0)).unwrap();
        let items = (0..=RANKED).map(|number| crate::parse::Item {
            summary: Some(text("pear")),
            ..item(&number.to_string(), 1)
        });
        let document = Document { items: items.collect(), ..Document::default() };
        store.apply(&crate::id::short(URLS[0]), &document, day(9)).unwrap();
        let list = |order| {
            let filter = filter(&[("search", "pear"), ("offset", &RANKED.to_string())]);
            let listed = store.list(&Listing { filter, order, ..Listing::default() }).unwrap();
            (listed.items.len(), listed.count())
        };
        assert_eq!(list(Order::Best), (0, "1000 or more items".to_owned()));
        // Those with the word in their titles are first, then the newest.
        let mut titled = item("9", 1);
        titled.title = Some(text("A pear"));
        let document = Document { items: vec![titled], ..Document::default() };
        store.apply(&crate::id::short(URLS[0]), &document, day(9)).unwrap();
        let filter = filter(&[("search", "pear"), ("limit", "3")]);
        let listing = Listing { filter, order: Order::Best, ..Listing::default() };
        let titles = store.list(&listing).unwrap().items.into_iter().map(|it| it.entry.title);
        assert_eq!(titles.flatten().collect::<Vec<_>>(), ["A pear", "0", "1"]);
        assert_eq!(list(Order::Newest), (1, "1001 items".to_owned()));
    }

    #[test]
    fn marks_choose_and_go_with_their_item() {
        let (store, _) = store();
        let key = store.list(&Listing::default()).unwrap().items[0].key;
        let mark = Mark { read: Some(true), starred: Some(true) };
        assert_eq!(store.mark(&[(key, crate::id::short(URLS[1]))], mark).unwrap().len(), 1);
        let marked = |marked| Listing { marked, ..Listing::default() };
        check(&store, &marked(Marked::Starred), 1, "new1");
        check(&store, &marked(Marked::Unread), 3, "new0 old1 old0");
        store.remove(&crate::id::short(URLS[1])).unwrap();
        check(&store, &marked(Marked::Starred), 0, "");
    }

    #[test]
    fn what_is_not_served_is_not_listed() {
        let (store, _) = store();
        store.configure(&[registration(URLS[0])], Earlier::Dropped, day(9)).unwrap();
        check(&store, &Listing::default(), 2, "new0 old0");
        let listing = Listing { filter: filter(&[("search", "pear")]), ..Listing::default() };
        check(&store, &listing, 2, "new0 old0");
    }

    #[test]
    fn lists_are_read_by_their_index() {
        let (store, _) = store();
        let plan = |query: &str, values: Vec<Value>| -> String {
            let steps = store.read(|connection| {
                let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {query}"))?;
                let steps = statement.query_map(params_from_iter(values), |row| row.get(3))?;
                Ok(steps.collect::<Result<Vec<String>, _>>()?)
            });
            steps.unwrap().join("\n")
        };
        let found = "SELECT 1 FROM words CROSS JOIN items INDEXED BY items_when
            ON items.key = words.rowid WHERE words MATCH 'pear' ORDER BY moment";
        let steps = plan(found, Vec::new());
        assert!(steps.contains("COVERING INDEX items_when (key=?)"), "{steps}");
        let (query, values) = Query::new(&Listing::default(), &[1]).select("items.key");
        let newest = format!("{query} ORDER BY moment DESC, first_seen DESC, position, items.key");
        let steps = plan(&newest, values);
        assert!(steps.contains("items_of_all") && !steps.contains("TEMP"), "{steps}");
        let listing = Listing { filter: filter(&[("category", "x")]), ..Listing::default() };
        let (query, values) = Query::new(&listing, &[]).select("1");
        let steps = plan(&query, values);
        assert!(steps.contains("labels_by_value") && !steps.contains("SCAN"), "{steps}");
    }
}
