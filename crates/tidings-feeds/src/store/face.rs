//! The readable form of an item: whether it changed, and its size.

use std::collections::HashSet;

use rusqlite::{Connection, ToSql, Transaction, params};

use crate::id::Checksum;
use crate::store::identity::{alias, possible_names, untracked};
use crate::store::known::Known;
use crate::store::query::{RULES, entry_of};
use crate::store::record::index;
use crate::store::register::feed_of;
use crate::store::row::Entry;
use crate::store::{Store, StoreError};
use crate::view::ReadableItem;
use crate::words;

/// The data stored beside an item, so that it need not be made safe again for a comparison.
pub(super) struct Face<'a> {
    /// Its readable form.
    pub(super) item: ReadableItem<'a>,
    /// A hash of the shown content. Dates are not part of it, nor is anything that changes by
    /// itself: the order of categories, tracking parameters of links, the size of a file with
    /// inserted advertisements.
    pub(super) hash: String,
    /// A hash of its texts as shown.
    pub(super) shown: String,
    /// A hash of its texts as received.
    pub(super) received: String,
}

impl<'a> Face<'a> {
    pub(super) fn of(entry: &'a Entry) -> Self {
        let item = ReadableItem::of(entry);
        let shown = shown(&item);
        Self { hash: hash(entry, &shown), received: received(entry), item, shown }
    }

    /// Its size in bytes in readable form.
    pub(super) fn size(&self) -> i64 {
        i64::try_from(self.item.size()).unwrap_or(i64::MAX)
    }
}

/// The hash of an item's content. For a stored item, unchanged texts are not made safe again.
pub(super) fn content_hash(entry: &Entry, known: Option<&Known>) -> String {
    match known.filter(|known| known.received.as_deref() == Some(&received(entry))) {
        Some(Known { shown: Some(shown), .. }) => hash(entry, shown),
        _ => hash(entry, &shown(&ReadableItem::of(entry))),
    }
}

fn received(entry: &Entry) -> String {
    let mut checksum = Checksum::new();
    for text in [&entry.description, &entry.content, &entry.base] {
        checksum.add(text.as_deref());
    }
    checksum.finish()
}

fn shown(item: &ReadableItem<'_>) -> String {
    let mut checksum = Checksum::new();
    for text in [&item.description, &item.content] {
        checksum.add(text.as_deref());
    }
    checksum.finish()
}

fn hash(entry: &Entry, shown: &str) -> String {
    let mut checksum = Checksum::new();
    checksum.add(entry.title.as_deref());
    checksum.add(Some(shown));
    checksum.add(entry.link.as_deref().map(alias).as_deref());
    checksum.add(entry.image.as_deref().map(untracked).as_deref());
    let mut categories: Vec<_> = entry.categories.iter().map(|name| words::name(name)).collect();
    categories.sort();
    categories.dedup();
    for category in &categories {
        checksum.add(Some(category));
    }
    checksum.add(None);
    let mut aliases: Vec<_> = entry.aliases.iter().map(|name| words::label(name)).collect();
    aliases.sort();
    for alias in &aliases {
        checksum.add(Some(alias));
    }
    checksum.add(None);
    for person in &entry.authors {
        checksum.add(person.name.as_deref());
        checksum.add(person.email.as_deref());
    }
    checksum.add(None);
    for enclosure in &entry.enclosures {
        checksum.add(Some(&untracked(&enclosure.url)));
        checksum.add(enclosure.media_type.as_deref());
    }
    checksum.finish()
}

impl Store {
    /// Makes texts safe before the write, because it takes time and nobody else can write
    /// meanwhile. Missed ones are made safe when needed.
    pub(super) fn make_safe(&self, id: &str, entries: &mut [Entry]) -> Result<(), StoreError> {
        let is_needed: Vec<bool> = self.read(|connection| {
            let Some(feed) = feed_of(connection, id)? else { return Ok(Vec::new()) };
            let all = |query: &str, params: &[&dyn ToSql]| -> Result<HashSet<String>, StoreError> {
                let mut statement = connection.prepare_cached(query)?;
                let rows = statement.query_map(params, |row| row.get(0))?;
                Ok(rows.collect::<Result<_, _>>()?)
            };
            let query = "SELECT received_hash FROM items WHERE feed = ?1 AND made_safe = ?2";
            let kept = all(query, &[&feed.key, &RULES])?;
            let query = "SELECT identity FROM tombstones WHERE feed = ?1";
            let buried = all(query, &[&feed.key])?;
            let is_needed = |entry: &Entry| {
                let is_buried = || possible_names(entry).any(|name| buried.contains(&name));
                !kept.contains(&received(entry)) && (buried.is_empty() || !is_buried())
            };
            Ok(entries.iter().map(is_needed).collect())
        })?;
        let needed = entries.iter_mut().zip(is_needed).filter(|(_, is_needed)| *is_needed);
        needed.for_each(|(entry, _)| entry.make_safe());
        Ok(())
    }
}

/// Computes all items of a feed again that other rules made safe, or none, with all consequences.
/// Nobody is notified: the content was safe before.
pub(super) fn renew(transaction: &Transaction<'_>, feed: i64) -> Result<(), StoreError> {
    let query = "SELECT key FROM items WHERE feed = ?1 AND made_safe IS NOT ?2";
    let keys: Vec<i64> = transaction
        .prepare_cached(query)?
        .query_map(params![feed, RULES], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for key in keys {
        let entry = entry_of(transaction, key)?;
        let face = Face::of(&entry);
        write_beside(transaction, key, &entry, &face)?;
        transaction.prepare_cached("DELETE FROM labels WHERE item = ?1")?.execute([key])?;
        transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([key])?;
        index(transaction, feed, key, &entry, &face.item)?;
    }
    Ok(())
}

/// Writes the data beside an item.
pub(super) fn write_beside(
    connection: &Connection,
    key: i64,
    entry: &Entry,
    face: &Face<'_>,
) -> Result<(), StoreError> {
    let query = "UPDATE items SET hash = ?2, shown_hash = ?3, received_hash = ?4, size = ?5,
            made_safe = ?6, safe_description = ?7, safe_content = ?8
        WHERE key = ?1";
    connection.prepare_cached(query)?.execute(params![
        key,
        face.hash,
        face.shown,
        face.received,
        face.size(),
        RULES,
        beside(entry.description.as_deref(), face.item.description.as_deref()),
        beside(entry.content.as_deref(), face.item.content.as_deref()),
    ])?;
    Ok(())
}

/// The stored text as shown, beside the one as received: `None` if they are equal.
pub(super) fn beside<'a>(received: Option<&str>, shown: Option<&'a str>) -> Option<&'a str> {
    received?;
    match shown {
        Some(_) if received == shown => None,
        Some(shown) => Some(shown),
        None => Some(""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{Category, Document, Item as Said, Text, TextKind};
    use crate::store::row::{Enclosure, Safe};
    use crate::store::tests::{ID, check, item, store, store_with};
    use crate::store::{Retention, query};
    use crate::view::{self, Filter};

    fn html(value: &str) -> Text {
        Text { value: value.to_owned(), kind: TextKind::Html }
    }

    fn saying(text: &str, base: &str) -> Document {
        let content = Some(html(text));
        let said = Said { content, base: Some(base.to_owned()), ..item("a", 1) };
        Document { items: vec![said], ..Document::default() }
    }

    /// Some have a number in a script that changes each time.
    #[test]
    fn what_is_never_shown_is_kept_and_is_no_news() {
        let store = store();
        let with = |script: &str| saying(&format!("<p>a</p><script>{script}</script>"), "x:");
        check(&store, &with("1"), 2, [1, 0, 0]);
        assert!(check(&store, &with("2"), 3, [0, 0, 0]).is_empty());
        check(&store, &saying("<p>b</p><script>2</script>", "x:"), 4, [0, 1, 0]);
        let kept = "SELECT content, safe_content FROM items";
        let kept = store.writer().query_row(kept, [], |row| Ok((row.get(0)?, row.get(1)?)));
        let expected = ("<p>b</p><script>2</script>".to_owned(), "<p>b</p>".to_owned());
        assert_eq!(kept.unwrap(), expected);
    }

    #[test]
    fn an_address_that_leads_elsewhere_is_news_and_another_base_alone_is_none() {
        let store = store();
        let (link, words) = ("<a href=b>a</a>", "<b>a</b>");
        check(&store, &saying(link, "https://a.org/1/"), 2, [1, 0, 0]);
        check(&store, &saying(link, "https://a.org/2/"), 3, [0, 1, 0]);
        check(&store, &saying(words, "https://a.org/2/"), 4, [0, 1, 0]);
        check(&store, &saying(words, "https://a.org/3/"), 5, [0, 0, 0]);
    }

    /// A store of other rules, with all texts as received.
    fn made_older(store: &Store) {
        let older = "UPDATE items SET hash = 'older', size = NULL, made_safe = 'older',
                safe_content = '<script>x()</script>', shown_hash = NULL,
                received_hash = NULL;
            UPDATE origin SET made_safe = 'older'; UPDATE feeds SET items_size = 7;
            DELETE FROM words;
            INSERT INTO words (rowid, feed, title, description, content)
                SELECT key, feed, title, '', 'a x' FROM items;";
        store.writer().execute_batch(older).unwrap();
    }

    #[test]
    fn what_other_rules_made_safe_is_made_again_and_is_no_news() {
        let store = store();
        let category =
            Category { term: "rust".to_owned(), label: Some("r/rust".to_owned()), scheme: None };
        let said = |name: &str, day: i64| Said {
            content: Some(html("<p>a<br/>b</p><script>x()</script>")),
            categories: vec![category.clone()],
            ..item(name, day)
        };
        let nameless = |name: &str, day: i64| Said { id: None, ..said(name, day) };
        let all = |day: i64| Document {
            items: vec![nameless("b", day), nameless("a", day)],
            ..Document::default()
        };
        let read = || view::items(&store.find(ID, &Filter::default()).unwrap().unwrap().entries);
        let size = || store.feed(ID).unwrap().unwrap().items_size;
        let filtered = |key: &str, value: &str| {
            let filter = Filter::of([(key, value)]).unwrap();
            store.find(ID, &filter).unwrap().unwrap().entries.len()
        };
        check(&store, &all(1), 1, [2, 0, 0]);
        let (first, length) = (read(), size());
        assert_eq!(length, u64::try_from(first.len()).ok());
        made_older(&store);
        assert_eq!((read(), filtered("search", "x")), (first.clone(), 2));
        query::forget_sizes(&store.writer()).unwrap();
        assert_eq!(size(), None);
        // All of it has new dates, and still nothing is news.
        assert!(check(&store, &all(2), 2, [0, 0, 0]).is_empty());
        assert_eq!((read(), filtered("search", "x"), filtered("category", "rust")), (first, 0, 2));
        // With the next news the sizes of all are known.
        let mut more = all(3);
        more.items.insert(0, said("c", 3));
        check(&store, &more, 3, [1, 0, 0]);
        assert_eq!(size(), u64::try_from(read().len()).ok());
    }

    #[test]
    fn another_word_for_machines_is_found_and_the_one_before_is_not() {
        let store = store();
        let with = |term: &str, label: Option<&str>| {
            let category =
                Category { term: term.to_owned(), label: label.map(str::to_owned), scheme: None };
            let said = Said { categories: vec![category], ..item("a", 1) };
            Document { items: vec![said], ..Document::default() }
        };
        let found = |name: &str| {
            let filter = Filter::of([("category", name)]).unwrap();
            store.find(ID, &filter).unwrap().unwrap().entries.len()
        };
        check(&store, &with("ml", Some("AI")), 1, [1, 0, 0]);
        assert_eq!((found("ml"), found("ai")), (1, 1));
        check(&store, &with("AI", None), 2, [0, 1, 0]);
        assert_eq!((found("ml"), found("ai")), (0, 1));
        // A word that finds it anyway is not another name.
        check(&store, &with("a i", Some("AI")), 3, [0, 0, 0]);
    }

    /// Everybody else waits for the writer.
    #[test]
    fn only_what_is_new_is_made_safe_and_before_it_is_written() {
        let store = store_with(Retention::new(1, None));
        let document = Document { items: vec![item("b", 2), item("a", 1)], ..Document::default() };
        let made = |document: &Document| -> Vec<bool> {
            let mut entries: Vec<_> = document.items.iter().map(Entry::from).collect();
            store.make_safe(ID, &mut entries).unwrap();
            entries.iter().map(|entry| entry.safe != Safe::Unknown).collect()
        };
        assert_eq!(made(&document), [true, true]);
        // One is stored, and one removed.
        check(&store, &document, 3, [1, 0, 0]);
        assert_eq!(made(&document), [false, false]);
        let mut edited = document;
        edited.items[0].content = Some(html("<p>b"));
        assert_eq!(made(&edited), [true, false]);
    }

    #[test]
    fn what_moves_by_itself_is_no_change() {
        let entry = Entry {
            link: Some("https://a.org/1?utm_source=x".to_owned()),
            categories: vec!["b".to_owned(), "a".to_owned()],
            ..Entry::default()
        };
        let mut other = entry.clone();
        other.categories.reverse();
        other.link = Some("http://a.org/1".to_owned());
        assert_eq!(content_hash(&entry, None), content_hash(&other, None));
        other.categories.push("c".to_owned());
        assert_ne!(content_hash(&entry, None), content_hash(&other, None));
        // The addresses of a picture and a file are shown, and a move to https changes them.
        let at = |picture: &str, file: &str| {
            let url = file.to_owned();
            let enclosures = vec![Enclosure { url, media_type: None, length: None }];
            let entry = Entry { image: Some(picture.to_owned()), enclosures, ..Entry::default() };
            content_hash(&entry, None)
        };
        let first = at("http://a.org/i", "http://a.org/f");
        assert_eq!(at("http://a.org/i?utm_source=x", "http://a.org/f?utm_medium=y"), first);
        assert_ne!(at("https://a.org/i", "http://a.org/f"), first);
        assert_ne!(at("http://a.org/i", "https://a.org/f"), first);
        // Another term under the same label: another word finds it.
        let mut other = entry.clone();
        other.aliases.push("ai".to_owned());
        assert_ne!(content_hash(&entry, None), content_hash(&other, None));
    }
}
