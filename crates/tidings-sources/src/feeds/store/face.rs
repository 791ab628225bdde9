//! What an item is to who reads it: whether it says something else, and how long it is.

use rusqlite::{Transaction, params};

use crate::feeds::id::Digest;
use crate::feeds::store::StoreError;
use crate::feeds::store::identity::{alias, untracked};
use crate::feeds::store::known::Known;
use crate::feeds::store::query::entry_of;
use crate::feeds::store::row::Entry;
use crate::feeds::view::Item;
use crate::feeds::words;

/// What is kept beside an item, so that it need not be made safe to be compared.
pub(super) struct Face<'a> {
    /// It as it is read.
    pub(super) item: Item<'a>,
    /// A hash of what it says: of what is shown, for what was left out is nobody's news. Its dates
    /// are not in it, nor is what moves by itself: the order of its categories, how a link says
    /// where the reader came from, the size of a file into which advertisements are cut.
    pub(super) hash: String,
}

impl<'a> Face<'a> {
    pub(super) fn of(entry: &'a Entry) -> Self {
        let item = Item::of(entry);
        Self { hash: hash(entry, &item), item }
    }

    /// How many bytes it is as it is read.
    pub(super) fn size(&self) -> i64 {
        i64::try_from(self.item.size()).unwrap_or(i64::MAX)
    }

    /// Whether an item that is kept says something else than this one. Hashes of another release
    /// may differ where nothing else does; then this one is kept from now on.
    pub(super) fn is_other(
        &self,
        transaction: &Transaction<'_>,
        known: &Known,
    ) -> Result<bool, StoreError> {
        if known.hash == self.hash {
            return Ok(false);
        }
        let is_other = content_hash(&entry_of(transaction, known.key)?) != self.hash;
        if !is_other {
            let query = "UPDATE items SET hash = ?2 WHERE key = ?1";
            transaction.prepare_cached(query)?.execute(params![known.key, self.hash])?;
        }
        Ok(is_other)
    }
}

/// The hash alone.
pub(super) fn content_hash(entry: &Entry) -> String {
    hash(entry, &Item::of(entry))
}

fn hash(entry: &Entry, item: &Item<'_>) -> String {
    let mut digest = Digest::new();
    digest.add(entry.title.as_deref());
    for text in [&item.description, &item.content] {
        digest.add(text.as_deref());
    }
    digest.add(entry.link.as_deref().map(alias).as_deref());
    digest.add(entry.image.as_deref().map(untracked).as_deref());
    let mut categories: Vec<_> = entry.categories.iter().map(|name| words::name(name)).collect();
    categories.sort();
    categories.dedup();
    for category in &categories {
        digest.add(Some(category));
    }
    let mut aliases: Vec<_> = entry.aliases.iter().map(|name| words::name(name)).collect();
    aliases.sort();
    for alias in &aliases {
        digest.add(Some(alias));
    }
    digest.add(None);
    for person in &entry.authors {
        digest.add(person.name.as_deref());
        digest.add(person.email.as_deref());
    }
    digest.add(None);
    for enclosure in &entry.enclosures {
        digest.add(Some(&untracked(&enclosure.url)));
        digest.add(enclosure.media_type.as_deref());
    }
    digest.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feeds::parse::{Document, Item as Said, Text, TextKind};
    use crate::feeds::store::row::Enclosure;
    use crate::feeds::store::tests::{ID, check, item, store};
    use crate::feeds::view::{self, Filter};

    fn html(value: &str) -> Text {
        Text { value: value.to_owned(), kind: TextKind::Html }
    }

    fn saying(text: &str, base: &str) -> Document {
        let content = Some(html(text));
        let said = Said { content, base: Some(base.to_owned()), ..item("a", 1) };
        Document { items: vec![said], ..Document::default() }
    }

    /// Some have a number in a script that is another each time.
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

    #[test]
    fn what_another_release_made_safe_is_made_again_and_is_no_news() {
        let store = store();
        let document = saying("<p>a<br/>b</p>", "x:");
        check(&store, &document, 2, [1, 0, 0]);
        let kept = || {
            let query = "SELECT hash, size, items_size FROM items JOIN feeds ON feeds.key = feed";
            let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            store.writer().query_row(query, [], row).unwrap()
        };
        let first: (String, Option<i64>, Option<i64>) = kept();
        let older = "UPDATE items SET hash = 'older', size = 0, made_safe = 'older',
            safe_content = '<script>x()</script>'";
        assert_eq!(store.writer().execute(older, []).unwrap(), 1);
        assert!(check(&store, &document, 3, [0, 0, 0]).is_empty());
        assert_eq!(kept(), (first.0, Some(0), first.2));
        let read = || view::items(&store.find(ID, &Filter::default()).unwrap().unwrap().entries);
        assert!(read().contains("\"<p>a<br>b</p>\""), "{}", read());
        // With the next news it is kept.
        let more = Document { items: vec![item("b", 2), document.items[0].clone()], ..document };
        check(&store, &more, 4, [1, 0, 0]);
        let length = i64::try_from(read().len()).unwrap();
        let again = "SELECT count(*) FROM items WHERE safe_content = '<p>a<br>b</p>'";
        assert_eq!(store.writer().query_row(again, [], |row| row.get::<_, i64>(0)).unwrap(), 1);
        assert_eq!(store.feed(ID).unwrap().unwrap().items_size, u64::try_from(length).ok());
        assert_eq!(kept().2, Some(length));
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
        assert_eq!(content_hash(&entry), content_hash(&other));
        other.categories.push("c".to_owned());
        assert_ne!(content_hash(&entry), content_hash(&other));
        // Where a picture and a file are is shown, and a move to https is another place.
        let at = |picture: &str, file: &str| {
            let url = file.to_owned();
            let enclosures = vec![Enclosure { url, media_type: None, length: None }];
            let entry = Entry { image: Some(picture.to_owned()), enclosures, ..Entry::default() };
            content_hash(&entry)
        };
        let first = at("http://a.org/i", "http://a.org/f");
        assert_eq!(at("http://a.org/i?utm_source=x", "http://a.org/f?utm_medium=y"), first);
        assert_ne!(at("https://a.org/i", "http://a.org/f"), first);
        assert_ne!(at("http://a.org/i", "https://a.org/f"), first);
        // Another word for machines under the same name: it is found by another word.
        let mut other = entry.clone();
        other.aliases.push("ai".to_owned());
        assert_ne!(content_hash(&entry), content_hash(&other));
    }
}
