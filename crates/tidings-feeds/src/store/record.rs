//! Writing one item and the state of one feed into their tables.

use std::borrow::Cow;
use std::collections::HashSet;

use rusqlite::{Transaction, params};
use tidings_store::date::Moment;

use crate::parse::Document;
use crate::store::StoreError;
use crate::store::apply::Changes;
use crate::store::face::{Face, beside, write_beside};
use crate::store::known::{Known, Rank};
use crate::store::query::RULES;
use crate::store::row::{Entry, FeedRow, Metadata};
use crate::view::ReadableItem;
use crate::words::{self, words, words_of_markup};

/// How far in the future a date may be: the time zones of the world are a day apart.
const AHEAD: i64 = 86_400;

/// The date of an item: its own, else when it was first seen. An item from the future would stay on
/// top until then, so it gets the date of its arrival.
pub(super) fn moment_of(entry: &Entry, first_seen: i64, now: Moment) -> i64 {
    let said = entry.published.or(entry.updated).map(Moment::unix);
    said.filter(|said| *said <= now.unix().saturating_add(AHEAD)).unwrap_or(first_seen)
}

pub(super) fn insert(
    transaction: &Transaction<'_>,
    feed: &FeedRow,
    identity: &str,
    entry: &Entry,
    face: &Face<'_>,
    rank: Rank,
) -> Result<i64, StoreError> {
    let query = "INSERT INTO items (feed, identity, first_seen, position, guid, link, title,
            description, content, published, updated, moment, authors, categories, enclosures,
            image, base, hash, shown_hash, received_hash, size, made_safe, safe_description,
            safe_content)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
            ?19, ?20, ?21, ?22, ?23, ?24)";
    transaction.prepare_cached(query)?.execute(params![
        feed.key,
        identity,
        rank.first_seen,
        -rank.position,
        entry.guid,
        entry.link,
        entry.title,
        entry.description,
        entry.content,
        entry.published.map(Moment::unix),
        entry.updated.map(Moment::unix),
        rank.moment,
        json(&entry.authors),
        json(&entry.categories),
        json(&entry.enclosures),
        entry.image,
        entry.base,
        face.hash,
        face.shown,
        face.received,
        face.size(),
        RULES,
        beside(entry.description.as_deref(), face.item.description.as_deref()),
        beside(entry.content.as_deref(), face.item.content.as_deref()),
    ])?;
    let key = transaction.last_insert_rowid();
    index(transaction, feed.key, key, entry, &face.item)?;
    Ok(key)
}

pub(super) fn update(
    transaction: &Transaction<'_>,
    feed: &FeedRow,
    known: &Known,
    entry: &Entry,
    face: &Face<'_>,
    now: Moment,
) -> Result<(), StoreError> {
    let moment = moment_of(entry, known.rank.first_seen, now);
    let query = "UPDATE items SET guid = ?2, link = ?3, title = ?4, description = ?5,
            content = ?6, published = ?7, updated = ?8, moment = ?9, authors = ?10,
            categories = ?11, enclosures = ?12, image = ?13, base = ?14
        WHERE key = ?1";
    transaction.prepare_cached(query)?.execute(params![
        known.key,
        entry.guid,
        entry.link,
        entry.title,
        entry.description,
        entry.content,
        entry.published.map(Moment::unix),
        entry.updated.map(Moment::unix),
        moment,
        json(&entry.authors),
        json(&entry.categories),
        json(&entry.enclosures),
        entry.image,
        entry.base,
    ])?;
    write_beside(transaction, known.key, entry, face)?;
    transaction.prepare_cached("DELETE FROM labels WHERE item = ?1")?.execute([known.key])?;
    transaction.prepare_cached("DELETE FROM words WHERE rowid = ?1")?.execute([known.key])?;
    index(transaction, feed.key, known.key, entry, &face.item)
}

/// Indexes an item by its texts, categories and authors.
pub(super) fn index(
    transaction: &Transaction<'_>,
    feed: i64,
    key: i64,
    entry: &Entry,
    item: &ReadableItem<'_>,
) -> Result<(), StoreError> {
    let joined = |words: Vec<String>| words.join(" ");
    let markup = |text: &Option<Cow<'_, str>>| {
        joined(text.as_deref().map(words_of_markup).unwrap_or_default())
    };
    let query = "INSERT INTO words (rowid, feed, title, description, content)
        VALUES (?1, ?2, ?3, ?4, ?5)";
    transaction.prepare_cached(query)?.execute(params![
        key,
        feed.to_string(),
        joined(entry.title.as_deref().map(words).unwrap_or_default()),
        markup(&item.description),
        markup(&item.content),
    ])?;
    let query = "INSERT OR IGNORE INTO labels (item, kind, value, shown) VALUES (?1, ?2, ?3, ?4)";
    let mut label = transaction.prepare_cached(query)?;
    for category in entry.categories.iter().chain(&entry.aliases) {
        label.execute(params![key, 0, words::label(category), category])?;
    }
    for person in &entry.authors {
        for (kind, text) in [(1, &person.name), (2, &person.email)] {
            if let Some(text) = text {
                label.execute(params![key, kind, words::label(text), text])?;
            }
        }
    }
    Ok(())
}

/// Stores the feed's own details. Its `updated` date alone is not a change: most feeds state that
/// they changed just now.
pub(super) fn apply_metadata(
    transaction: &Transaction<'_>,
    feed: &FeedRow,
    document: &Document,
    changes: &mut Changes,
) -> Result<(), StoreError> {
    let said = Metadata::from(document);
    let mut shown = said.clone().shown(&feed.address);
    let updated = std::mem::replace(&mut shown.updated, feed.metadata.updated);
    changes.metadata = !is_alike(&shown, &feed.metadata);
    if changes.metadata || changes.has_items() {
        shown.updated = updated;
        let query = "UPDATE feeds SET metadata = ?2, metadata_revision = metadata_revision + ?3
            WHERE key = ?1";
        let moved = shown != feed.metadata;
        transaction.execute(query, params![feed.key, json(&said), moved])?;
    }
    Ok(())
}

fn is_alike(one: &Metadata, other: &Metadata) -> bool {
    let names = |metadata: &Metadata| -> HashSet<String> {
        metadata.categories.iter().map(|name| words::name(name)).collect()
    };
    let rest = |metadata: &Metadata| Metadata { categories: Vec::new(), ..metadata.clone() };
    names(one) == names(other) && rest(one) == rest(other)
}

/// The feed answered.
pub(super) fn succeed(
    transaction: &Transaction<'_>,
    feed: &FeedRow,
    now: Moment,
    changes: &mut Changes,
) -> Result<(), StoreError> {
    changes.availability = feed.is_new() || feed.is_failing();
    // The first answer counts even if it is empty.
    let items = changes.has_items() || changes.purged > 0 || !feed.is_known();
    let query = "UPDATE feeds SET last_error = NULL, last_fetch = ?2,
            last_success = ?2, items_revision = items_revision + ?3,
            status_revision = status_revision + ?4, modified = iif(?5, ?2, modified)
        WHERE key = ?1";
    let now = now.unix();
    let is_news = items || !changes.is_empty();
    transaction.execute(query, params![feed.key, now, items, changes.availability, is_news])?;
    if items {
        measure(transaction, feed.key)?;
    }
    Ok(())
}

/// Stores the size of a feed's items in readable form.
fn measure(transaction: &Transaction<'_>, feed: i64) -> Result<(), StoreError> {
    // With a comma between two, and a bracket at each end.
    let query = "UPDATE feeds SET items_size =
            (SELECT coalesce(sum(size), 0) + max(count(*), 1) + 1 FROM items WHERE feed = ?1)
        WHERE key = ?1";
    transaction.prepare_cached(query)?.execute([feed])?;
    Ok(())
}

fn json<T: serde::Serialize>(value: &T) -> String {
    serde_json::to_string(value).expect("rows are plain JSON")
}
