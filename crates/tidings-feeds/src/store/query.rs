//! Items of a feed for a view.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params_from_iter};
use tidings_store::date::Moment;

use crate::html::rules;
use crate::refresh::Headline;
use crate::store::register::{feed_of, json};
use crate::store::row::{Entry, FeedRow, Safe, retain_others};
use crate::store::{Store, StoreError};
use crate::view::Filter;

/// The result of a view: the feed and its items, from one snapshot.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct FoundItems {
    pub(crate) feed: FeedRow,
    pub(crate) entries: Vec<Entry>,
}

/// The kinds of labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    /// Categories.
    Category,
    /// Authors, by name.
    Author,
}

/// The rules whose safe texts need not be made again.
pub(super) const RULES: &str = rules!();

/// Whether the texts of an item were made safe by these rules.
macro_rules! made_safe {
    () => {
        concat!("ifnull(made_safe = '", rules!(), "', 0)")
    };
}

/// A text of an item, safe if it is known to be.
macro_rules! safe {
    ($column:literal) => {
        concat!("iif(", made_safe!(), ", ifnull(safe_", $column, ", ", $column, "), ", $column, ")")
    };
}

/// The columns of an entry.
pub(super) const COLUMNS: &str = concat!(
    "title, ",
    safe!("description"),
    ", ",
    safe!("content"),
    ", link, published, updated, authors, categories, guid, image, enclosures, base, ",
    made_safe!(),
);

impl Store {
    /// The matching items of a feed, newest first; `None` if there is no such feed.
    pub(crate) fn find(&self, id: &str, filter: &Filter) -> Result<Option<FoundItems>, StoreError> {
        self.read(|connection| {
            let Some(feed) = feed_of(connection, id)? else { return Ok(None) };
            let entries = entries(connection, feed.key, filter)?;
            Ok(Some(FoundItems { feed, entries }))
        })
    }

    /// The labels of a feed's items, or of all items, the most frequent first.
    pub(crate) fn labels(&self, id: Option<&str>, label: Label) -> Result<Vec<String>, StoreError> {
        let kind = match label {
            Label::Category => 0,
            Label::Author => 1,
        };
        self.read(|connection| {
            let query = "SELECT min(shown) FROM labels JOIN items ON items.key = labels.item
                JOIN feeds ON feeds.key = items.feed
                WHERE kind = ?1 AND active = 1 AND (?2 IS NULL OR feeds.id = ?2)
                GROUP BY value ORDER BY count(*) DESC, value";
            let mut statement = connection.prepare_cached(query)?;
            let rows = statement.query_map((kind, id), |row| row.get(0))?;
            Ok(rows.collect::<Result<_, _>>()?)
        })
    }
}

impl Store {
    /// The names of the items of these keys, each with whether it is new; removed ones are skipped.
    pub(crate) fn headlines(&self, keys: &[(i64, bool)]) -> Result<Vec<Headline>, StoreError> {
        self.read(|connection| {
            let query = "SELECT title, link, published FROM items WHERE key = ?";
            let mut statement = connection.prepare_cached(query)?;
            let mut headlines = Vec::new();
            for (key, is_new) in keys {
                let mut rows = statement.query([key])?;
                if let Some(row) = rows.next()? {
                    let published: Option<i64> = row.get(2)?;
                    let published = published.and_then(Moment::from_unix);
                    let (title, link) = (row.get(0)?, row.get(1)?);
                    headlines.push(Headline { is_new: *is_new, title, link, published });
                }
            }
            Ok(headlines)
        })
    }
}

/// Removes the sizes of items by other rules.
pub(super) fn forget_sizes(connection: &Connection) -> Result<(), StoreError> {
    let query = "SELECT made_safe IS ?1 FROM origin";
    if !connection.query_row(query, [RULES], |row| row.get(0))? {
        connection.execute("UPDATE feeds SET items_size = NULL", [])?;
        connection.execute("UPDATE origin SET made_safe = ?1", [RULES])?;
    }
    Ok(())
}

/// The matching items of a feed, newest first.
pub(super) fn entries(
    connection: &Connection,
    feed: i64,
    filter: &Filter,
) -> Result<Vec<Entry>, StoreError> {
    let mut query = format!("SELECT {COLUMNS} FROM items WHERE feed = ?");
    let mut values = vec![Value::from(feed)];
    let mut condition = |text: &str, value: Value| {
        query.push_str(text);
        values.push(value);
    };
    if let Some(since) = filter.since {
        condition(" AND moment >= ?", since.unix().into());
    }
    if let Some(until) = filter.until {
        condition(" AND moment <= ?", until.unix().into());
    }
    if let Some(category) = &filter.category {
        let text = " AND EXISTS
            (SELECT 1 FROM labels WHERE item = items.key AND kind = 0 AND value = ?)";
        condition(text, category.clone().into());
    }
    if let Some(author) = &filter.author {
        let text = " AND EXISTS
            (SELECT 1 FROM labels WHERE item = items.key AND kind IN (1, 2) AND value = ?)";
        condition(text, author.clone().into());
    }
    if let Some(search) = &filter.search {
        let text = " AND key IN (SELECT rowid FROM words WHERE words MATCH ?)";
        condition(text, search.expression(feed).into());
    }
    let order = " ORDER BY moment DESC, first_seen DESC, position, key LIMIT ?";
    // A negative number is no limit.
    condition(order, filter.limit.map_or(-1, i64::from).into());
    condition(" OFFSET ?", i64::try_from(filter.offset).unwrap_or(i64::MAX).into());
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(entry(row)?);
    }
    Ok(entries)
}

/// One item, with all its names for the search.
pub(super) fn entry_of(connection: &Connection, key: i64) -> Result<Entry, StoreError> {
    let query = format!("SELECT {COLUMNS} FROM items WHERE key = ?");
    let mut statement = connection.prepare_cached(&query)?;
    let mut rows = statement.query([key])?;
    let row = rows.next()?.ok_or_else(|| StoreError::Damaged(format!("the item {key}")))?;
    let mut entry = entry(row)?;
    // Additional names are only among its labels.
    let query = "SELECT shown FROM labels WHERE item = ? AND kind = 0 ORDER BY value";
    let mut statement = connection.prepare_cached(query)?;
    let names = statement.query_map([key], |row| row.get(0))?;
    entry.aliases = names.collect::<Result<_, _>>()?;
    retain_others(&mut entry.aliases, &entry.categories);
    Ok(entry)
}

/// An entry from a row that begins with its columns.
pub(super) fn entry(row: &Row<'_>) -> Result<Entry, StoreError> {
    let moment = |index: usize| -> Result<Option<Moment>, StoreError> {
        Ok(row.get::<_, Option<i64>>(index)?.and_then(Moment::from_unix))
    };
    Ok(Entry {
        title: row.get(0)?,
        description: row.get(1)?,
        content: row.get(2)?,
        link: row.get(3)?,
        published: moment(4)?,
        updated: moment(5)?,
        authors: json(row.get_ref(6)?.as_str().map_err(rusqlite::Error::from)?)?,
        categories: json(row.get_ref(7)?.as_str().map_err(rusqlite::Error::from)?)?,
        guid: row.get(8)?,
        image: row.get(9)?,
        enclosures: json(row.get_ref(10)?.as_str().map_err(rusqlite::Error::from)?)?,
        aliases: Vec::new(),
        base: row.get(11)?,
        safe: if row.get(12)? { Safe::Itself } else { Safe::Unknown },
    })
}
