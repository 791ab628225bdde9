//! The store as documents come in: what is news, what stays, what survives.

mod recognition;

use std::time::Duration;

use tidings_store::date::Moment;

use super::*;
use crate::config::Earlier;
use crate::fetch::Validators;
use crate::parse::{Document, Feed, Item, Text, TextKind};
use crate::schedule::{Plan, Time};
use crate::tests::feed_at;
use crate::view::Filter;

const URL: &str = "https://example.com/feed.xml";
pub(super) const ID: &str = "b799e597";
/// The days of these tests are counted from here.
const START: i64 = 1_790_000_000;

pub(super) fn day(day: i64) -> Moment {
    Moment::from_unix(START + day * 86_400).unwrap()
}

pub(super) fn text(value: &str) -> Text {
    Text { value: value.to_owned(), ..Text::default() }
}

fn html(value: &str) -> Text {
    Text { kind: TextKind::Html, ..text(value) }
}

pub(super) fn item(guid: &str, published: i64) -> Item {
    Item {
        id: Some(guid.to_owned()),
        title: Some(text(guid)),
        published: Some(day(published)),
        ..Item::default()
    }
}

/// An item of this name on each of the days.
pub(super) fn items(names: &[(&str, i64)]) -> Document {
    let items = names.iter().map(|(name, published)| item(name, *published)).collect();
    Document { items, ..Document::default() }
}

/// A feed that is asked on that day.
fn plan(day: i64) -> Plan {
    Plan::new(time(day))
}

fn time(day: i64) -> Time {
    Time(u64::try_from((START + day * 86_400) * 1000).unwrap())
}

pub(super) fn registration(url: &str) -> Registration {
    feed_at(url).registration()
}

pub(super) fn store_with(retention: Retention) -> Store {
    let store = Store::in_memory(retention).unwrap();
    store.configure(&[registration(URL)], Earlier::Dropped, day(0)).unwrap();
    store
}

pub(super) fn store() -> Store {
    store_with(Retention::default())
}

pub(super) fn titles(store: &Store) -> Vec<String> {
    let found = store.find(ID, &Filter::default()).unwrap().unwrap();
    found.entries.into_iter().map(|entry| entry.title.unwrap()).collect()
}

/// How many are new, changed, withdrawn.
#[track_caller]
pub(super) fn check(store: &Store, document: &Document, now: i64, expected: [usize; 3]) -> Changes {
    let changes = store.apply(ID, document, day(now)).unwrap();
    let counts = [changes.new.len(), changes.changed.len(), changes.withdrawn.len()];
    assert_eq!(counts, expected, "{changes:?}");
    changes
}

#[test]
fn the_same_document_is_news_once() {
    let store = store();
    let document = items(&[("b", 2), ("a", 1)]);
    let first = check(&store, &document, 3, [2, 0, 0]);
    assert!(first.availability);
    assert!(check(&store, &document, 4, [0, 0, 0]).is_empty());
    assert_eq!(titles(&store), ["b", "a"]);
}

#[test]
fn an_edit_keeps_the_item() {
    let store = store();
    let first = check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
    let mut document = items(&[("b", 2), ("a", 1)]);
    document.items[1].title = Some(text("A!"));
    let second = check(&store, &document, 4, [0, 1, 0]);
    assert_eq!(second.changed, [first.new[1]]);
    assert_eq!(titles(&store), ["b", "A!"]);
}

#[test]
fn what_fell_off_the_end_is_kept_and_what_was_taken_back_is_not() {
    let store = store();
    check(&store, &items(&[("d", 4), ("c", 3), ("b", 2), ("a", 1)]), 5, [4, 0, 0]);
    check(&store, &items(&[("e", 5), ("d", 4), ("b", 2)]), 6, [1, 0, 1]);
    assert_eq!(titles(&store), ["e", "d", "b", "a"]);
}

/// Of items of one date none was ever taken back.
#[test]
fn items_of_one_date_are_taken_back_where_nothing_came() {
    let store = store();
    check(&store, &items(&[("c", 1), ("b", 1), ("a", 1)]), 2, [3, 0, 0]);
    check(&store, &items(&[("c", 1), ("a", 1)]), 3, [0, 0, 1]);
    // Where another came, it may have been pushed off the end.
    check(&store, &items(&[("d", 1), ("a", 1)]), 4, [1, 0, 0]);
    assert_eq!(titles(&store).len(), 3);
}

#[test]
fn a_document_that_takes_back_more_than_it_leaves_must_say_so_twice() {
    let store = store();
    let all = [("d", 4), ("c", 3), ("b", 2), ("a", 1)];
    let validators = || {
        let seen = Validators { etag: Some("seen".to_owned()), last_modified: None };
        store.keep_validators(ID, &seen).unwrap();
        store.feed(ID).unwrap().unwrap().validators.etag
    };
    check(&store, &items(&all), 5, [4, 0, 0]);
    check(&store, &items(&[("a", 1)]), 6, [0, 0, 0]);
    assert_eq!(validators(), None);
    // It was a fault.
    check(&store, &items(&all), 7, [0, 0, 0]);
    assert_eq!(validators().as_deref(), Some("seen"));
    check(&store, &items(&[("a", 1)]), 8, [0, 0, 0]);
    check(&store, &items(&[("a", 1)]), 9, [0, 0, 3]);
    assert_eq!(titles(&store), ["a"]);
    check(&store, &items(&[("a", 1)]), 10, [0, 0, 0]);
}

#[test]
fn a_feed_is_modified_when_it_becomes_another_to_read() {
    let store = store();
    let modified = || store.feed(ID).unwrap().unwrap().last_modified();
    assert_eq!(modified(), None);
    check(&store, &items(&[("b", 99), ("a", 1)]), 2, [2, 0, 0]);
    assert_eq!(modified(), Some(day(2)));
    check(&store, &items(&[("b", 99), ("a", 1)]), 3, [0, 0, 0]);
    store.unmodified(ID, day(4)).unwrap();
    assert_eq!(modified(), Some(day(2)));
    let mut edited = items(&[("b", 99), ("a", 1)]);
    edited.items[1].title = Some(text("A!"));
    check(&store, &edited, 5, [0, 1, 0]);
    assert_eq!(modified(), Some(day(5)));
    store.failed(ID, "gone", day(6)).unwrap();
    store.failed(ID, "still gone", day(7)).unwrap();
    assert_eq!(modified(), Some(day(6)));
    assert!(store.pause(ID, true, time(8)).unwrap() && !store.pause(ID, true, time(9)).unwrap());
    store.keep_plan(ID, plan(9)).unwrap();
    assert_eq!(modified(), Some(day(8)));
    assert!(store.moved(ID, "https://b.example/f", day(10)).unwrap());
    assert!(!store.moved(ID, "https://b.example/f", day(11)).unwrap());
    assert_eq!(modified(), Some(day(10)));
}

#[test]
fn nothing_is_taken_back_by_a_document_that_is_cut_or_in_no_order() {
    let store = store();
    let all = [("d", 4), ("c", 3), ("b", 2), ("a", 1)];
    check(&store, &items(&all), 5, [4, 0, 0]);
    let cut = Document { truncated: true, ..items(&[("d", 4), ("a", 1)]) };
    check(&store, &cut, 6, [0, 0, 0]);
    check(&store, &items(&[("c", 3), ("a", 1), ("d", 4)]), 7, [0, 0, 0]);
    check(&store, &Document::default(), 8, [0, 0, 0]);
    assert_eq!(titles(&store).len(), 4);
}

/// A feed that scrolls, with an old notice pinned to its end, and one that was all replaced by a
/// notice, once deleted what was kept.
#[test]
fn a_pinned_item_and_a_last_word_take_nothing_back() {
    let store = store();
    let all: Vec<_> = (1..=10).rev().map(|day| (NAMES[day], i64::try_from(day).unwrap())).collect();
    check(&store, &items(&all), 11, [10, 0, 0]);
    let mut scrolled = all[..6].to_vec();
    scrolled.push(("pinned", -3000));
    check(&store, &items(&scrolled), 12, [1, 0, 0]);
    check(&store, &items(&[("moved", -3000)]), 13, [1, 0, 0]);
    assert_eq!(titles(&store).len(), 12);
}

const NAMES: [&str; 11] = ["", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

#[test]
fn items_without_dates_stand_in_the_order_of_the_document() {
    let store = store();
    let undated = |names: &[&str]| {
        let items = names.iter().map(|name| Item { published: None, ..item(name, 0) }).collect();
        Document { items, ..Document::default() }
    };
    check(&store, &undated(&["c", "b", "a"]), 1, [3, 0, 0]);
    check(&store, &undated(&["d", "c", "b", "a"]), 2, [1, 0, 0]);
    assert_eq!(titles(&store), ["d", "c", "b", "a"]);
    check(&store, &undated(&["d", "b"]), 3, [0, 0, 1]);
    assert_eq!(titles(&store), ["d", "b", "a"]);
}

#[test]
fn one_date_that_moves_is_a_change_and_all_of_them_are_none() {
    let store = store();
    check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
    check(&store, &items(&[("b", 3), ("a", 1)]), 4, [0, 1, 0]);
    check(&store, &items(&[("b", 5), ("a", 5)]), 5, [0, 0, 0]);
}

#[test]
fn what_was_let_go_does_not_come_back_as_new() {
    let store = store_with(Retention::new(2, None));
    let document = items(&[("c", 3), ("b", 2), ("a", 1)]);
    check(&store, &document, 4, [2, 0, 0]);
    check(&store, &document, 5, [0, 0, 0]);
    let changes = check(&store, &items(&[("d", 4), ("c", 3), ("b", 2), ("a", 1)]), 6, [1, 0, 0]);
    assert_eq!(changes.purged, 1);
    assert_eq!(titles(&store), ["d", "c"]);
}

#[test]
fn what_is_too_old_goes_when_something_comes() {
    let store = store_with(Retention::new(10, Some(Duration::from_hours(72))));
    let mut names = vec![("c", 3), ("b", 2), ("a", 1)];
    check(&store, &items(&names), 4, [3, 0, 0]);
    let revision = || store.feed(ID).unwrap().unwrap().revisions.items;
    let before = revision();
    store.unmodified(ID, day(5)).unwrap();
    check(&store, &items(&names), 5, [0, 0, 0]);
    assert_eq!((titles(&store).len(), revision()), (3, before));
    names.insert(0, ("d", 5));
    assert_eq!(check(&store, &items(&names), 5, [1, 0, 0]).purged, 1);
    assert_eq!(titles(&store), ["d", "c", "b"]);
    check(&store, &items(&names), 5, [0, 0, 0]);
    // One that is too old when it comes was never there.
    let before = revision();
    names.push(("e", 0));
    assert_eq!(check(&store, &items(&names), 5, [0, 0, 0]).purged, 0);
    assert_eq!(revision(), before);
}

#[test]
fn a_feed_says_something_else_of_itself_only_if_it_does() {
    let store = store();
    let said = |title: &str, updated: i64, names: &[(&str, i64)]| {
        let feed =
            Feed { title: Some(text(title)), updated: Some(day(updated)), ..Feed::default() };
        Document { feed, ..items(names) }
    };
    assert!(check(&store, &said("One", 1, &[]), 1, [0, 0, 0]).metadata);
    assert!(check(&store, &said("One", 2, &[]), 2, [0, 0, 0]).is_empty());
    let updated = || store.feed(ID).unwrap().unwrap().metadata.updated;
    assert_eq!(updated(), Some(day(1)));
    assert!(check(&store, &said("Two", 3, &[]), 3, [0, 0, 0]).metadata);
    assert!(!check(&store, &said("Two", 4, &[("a", 4)]), 4, [1, 0, 0]).metadata);
    assert_eq!(updated(), Some(day(4)));
}

#[test]
fn a_feed_that_fails_is_news_once_and_so_is_its_return() {
    let store = store();
    assert!(store.failed(ID, "no answer", day(1)).unwrap().is_empty());
    check(&store, &items(&[("a", 1)]), 2, [1, 0, 0]);
    assert!(store.failed(ID, "no answer", day(3)).unwrap().availability);
    assert!(store.failed(ID, "503", day(4)).unwrap().is_empty());
    let row = store.feed(ID).unwrap().unwrap();
    assert_eq!((row.last_error.as_deref(), row.last_success), (Some("503"), Some(day(2))));
    assert!(store.unmodified(ID, day(5)).unwrap().availability);
    assert!(store.unmodified(ID, day(6)).unwrap().is_empty());
}

#[test]
fn a_clash_of_ids_is_seen_and_both_feeds_keep_theirs() {
    let store = Store::in_memory(Retention::default()).unwrap();
    // Both have the same short hash.
    let urls = ["https://example.com/1479599.xml", "https://example.com/1662382.xml"];
    let ids = || urls.map(|url| store.add(&registration(url), day(0)).unwrap().id);
    let first = ids();
    assert_eq!(first[0], "85a91155");
    assert_eq!(first[1].len(), 16);
    assert_eq!(ids(), first);
    assert_eq!(store.feeds().unwrap().len(), 2);
}

#[test]
fn all_survives_a_restart_and_a_permanent_redirect() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::in_directory(directory.path(), Retention::default()).unwrap();
    let store = open();
    store.configure(&[registration(URL)], Earlier::Dropped, day(0)).unwrap();
    check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
    assert!(store.moved(ID, "https://elsewhere.example/feed", day(9)).unwrap());
    store.keep_plan(ID, plan(4)).unwrap();
    drop(store);
    let store = open();
    store.configure(&[registration(URL)], Earlier::Dropped, day(5)).unwrap();
    let row = store.feed(ID).unwrap().unwrap();
    assert_eq!(row.public_url(), "https://elsewhere.example/feed");
    assert_eq!((row.item_count, row.next_fetch), (2, Some(day(4))));
    assert!(check(&store, &items(&[("b", 2), ("a", 1)]), 6, [0, 0, 0]).is_empty());
}

#[test]
fn a_feed_that_is_not_configured_any_more_waits_for_its_return() {
    let store = store();
    check(&store, &items(&[("a", 1)]), 2, [1, 0, 0]);
    let added = store.add(&registration("https://example.com/other"), day(2)).unwrap();
    store.configure(&[], Earlier::Dropped, day(3)).unwrap();
    let ids: Vec<_> = store.feeds().unwrap().into_iter().map(|row| row.id).collect();
    assert_eq!(ids, [added.id]);
    store.configure(&[registration(URL)], Earlier::Dropped, day(4)).unwrap();
    assert_eq!(titles(&store), ["a"]);
}

#[test]
fn a_feed_that_was_added_stays_whatever_becomes_of_the_configuration() {
    let store = store();
    store.add(&registration(URL), day(1)).unwrap();
    store.configure(&[], Earlier::Dropped, day(2)).unwrap();
    assert_eq!(store.feeds().unwrap().len(), 1);
}

#[test]
fn a_process_that_is_killed_loses_nothing_that_was_told() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::in_directory(directory.path(), Retention::default()).unwrap();
    store.configure(&[registration(URL)], Earlier::Dropped, day(0)).unwrap();
    check(&store, &items(&[("b", 2), ("a", 1)]), 3, [2, 0, 0]);
    // What would be found if the process ended here, in the middle of another document.
    let found = tempfile::tempdir().unwrap();
    let mut writer = store.writer();
    let transaction = writer.transaction().unwrap();
    transaction.execute("DELETE FROM items", []).unwrap();
    for entry in std::fs::read_dir(directory.path()).unwrap() {
        let entry = entry.unwrap();
        // What the processes share in memory is gone with them.
        if entry.file_name() != "feeds.sqlite-shm" {
            std::fs::copy(entry.path(), found.path().join(entry.file_name())).unwrap();
        }
    }
    let after = Store::in_directory(found.path(), Retention::default()).unwrap();
    assert_eq!(titles(&after), ["b", "a"]);
}

#[test]
fn what_is_removed_leaves_nothing() {
    let store = store_with(Retention::new(1, None));
    check(&store, &items(&[("b", 2), ("a", 1)]), 3, [1, 0, 0]);
    assert!(store.remove(ID).unwrap());
    assert!(!store.remove(ID).unwrap());
    let writer = store.writer();
    for table in ["feeds", "items", "labels", "tombstones", "words"] {
        let query = format!("SELECT count(*) FROM {table}");
        let count: i64 = writer.query_row(&query, [], |row| row.get(0)).unwrap();
        assert_eq!(count, 0, "{table}");
    }
}

#[test]
fn what_others_write_is_seen_and_what_is_written_here_is_not_theirs() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::in_directory(directory.path(), Retention::default()).unwrap();
    let (store, other) = (open(), open());
    let before = store.written_by_others().unwrap();
    store.configure(&[registration(URL)], Earlier::Dropped, day(0)).unwrap();
    assert_eq!(store.feeds().unwrap().len(), 1);
    assert_eq!(store.written_by_others().unwrap(), before);
    assert!(other.remove(ID).unwrap());
    assert_ne!(store.written_by_others().unwrap(), before);
    assert_eq!(Store::in_memory(Retention::default()).unwrap().written_by_others().unwrap(), None);
}

#[test]
fn a_reader_reads_and_does_not_write() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::in_directory(directory.path(), Retention::default()).unwrap();
    store.configure(&[registration(URL)], Earlier::Dropped, day(0)).unwrap();
    let reader = Store::read_only(directory.path()).unwrap();
    assert_eq!(reader.feeds().unwrap().len(), 1);
    assert!(reader.remove(ID).is_err());
}

#[test]
fn a_store_of_a_later_release_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let open = || Store::in_directory(directory.path(), Retention::default());
    let store = open().unwrap();
    store.writer().pragma_update(None, "user_version", 99).unwrap();
    drop(store);
    assert!(matches!(open(), Err(StoreError::Newer(99))));
}

#[test]
fn a_secret_in_the_url_is_not_shown() {
    let store = Store::in_memory(Retention::default()).unwrap();
    let row = store.add(&registration("https://me:secret@a.org/f?x=1"), day(0)).unwrap();
    assert_eq!(row.public_url(), "https://a.org/f?x=1");
    assert_eq!(row.shown_title(), "a.org/f?x=1");
}

#[test]
fn bytes_are_bounded_and_the_newest_item_stays() {
    let mut retention = Retention::new(100, None);
    retention.bytes = 250;
    let store = store_with(retention);
    let mut document = items(&[("c", 3), ("b", 2), ("a", 1)]);
    for item in &mut document.items {
        item.summary = Some(text(&"x".repeat(100)));
    }
    check(&store, &document, 4, [2, 0, 0]);
    assert_eq!(titles(&store), ["c", "b"]);
    // What went does not come back, and one that is too long by itself is better than none.
    assert!(check(&store, &document, 5, [0, 0, 0]).is_empty());
    let mut long = item("d", 4);
    long.content = Some(text(&"y".repeat(1_000)));
    document.items.insert(0, long);
    check(&store, &document, 6, [1, 0, 0]);
    assert_eq!(titles(&store), ["d"]);
}

#[test]
fn a_text_that_is_too_long_is_cut_between_letters_and_tags() {
    let store = store_with(Retention { text_bytes: 12, ..Retention::default() });
    let mut document = items(&[("a", 1)]);
    document.items[0].summary = Some(text("ééééééé"));
    document.items[0].content = Some(html("<p>some <a href='x'>words</a></p>"));
    check(&store, &document, 2, [1, 0, 0]);
    let found = store.find(ID, &Filter::default()).unwrap().unwrap();
    assert_eq!(found.entries[0].description.as_deref(), Some("éééééé"));
    assert_eq!(found.entries[0].content.as_deref(), Some("<p>some </p>"));
    // Behind the cut nothing is news.
    document.items[0].content = Some(html("<p>some <a href='y'>others</a></p>"));
    check(&store, &document, 3, [0, 0, 0]);
}

#[test]
fn a_pause_is_news_once_and_no_plan_that_is_kept_ends_it() {
    let store = store();
    let revision = || store.feed(ID).unwrap().unwrap().revisions.status;
    let before = revision();
    assert!(store.pause(ID, true, time(1)).unwrap());
    assert!(!store.pause(ID, true, time(1)).unwrap());
    assert_eq!(revision(), before + 1);
    // A request was still under way.
    assert_eq!(store.keep_plan(ID, plan(2)).unwrap().due(), None);
    let row = store.feed(ID).unwrap().unwrap();
    assert_eq!((row.is_paused(), row.next_fetch), (true, None));
    assert!(store.pause(ID, false, time(3)).unwrap());
    let row = store.feed(ID).unwrap().unwrap();
    assert_eq!((row.is_paused(), row.next_fetch), (false, Some(day(3))));
    assert!(store.pause("nope", true, time(1)).is_err());
}

#[test]
fn clients_do_not_learn_where_the_store_is() {
    let path = PathBuf::from("/srv/secret/feeds");
    let error = std::io::Error::other("/srv/secret/feeds: no");
    let directory = StoreError::Directory { path: path.clone(), error };
    let open = Store::read_only(&path).map(drop).unwrap_err();
    for error in [directory, open] {
        assert!(!error.outside().contains("secret"), "{error:?}");
    }
    assert!(StoreError::NoFeed("x".to_owned()).outside().contains("`x`"));
}

#[test]
fn a_full_disk_is_told_by_its_name() {
    let store = store();
    store.fill_up();
    let mut long = items(&[("a", 1)]);
    long.items[0].summary = Some(text(&"x ".repeat(100_000)));
    let error = store.apply(ID, &long, day(2)).unwrap_err();
    assert!(matches!(error, StoreError::Full(_)), "{error:?}");
    assert!(error.outside().contains("the disk is full"));
}

/// One from the next century once stayed on top until then.
#[test]
fn an_item_from_the_future_is_from_when_it_came() {
    let store = store();
    let ahead = Moment::parse("2100-01-01").unwrap();
    let mut document = items(&[("future", 1), ("old", 1)]);
    document.items[0].published = Some(ahead);
    store.apply(ID, &document, day(2)).unwrap();
    let mut later = items(&[("new", 4), ("future", 1), ("old", 1)]);
    later.items[1].published = Some(ahead);
    store.apply(ID, &later, day(4)).unwrap();
    let found = store.find(ID, &Filter::default()).unwrap().unwrap();
    let titles: Vec<_> = found.entries.iter().map(|it| it.title.as_deref().unwrap()).collect();
    assert_eq!(titles, ["new", "future", "old"]);
}

/// What is too much once was written, and deleted at once.
#[test]
fn no_more_is_written_than_is_kept() {
    let store = store_with(Retention::new(2, None));
    let many = [("e", 5), ("d", 4), ("c", 3), ("b", 2), ("a", 1)];
    check(&store, &items(&many), 6, [2, 0, 0]);
    let last: i64 = store
        .read(|it| {
            Ok(it.query_row(
                "SELECT max(seq) FROM sqlite_sequence WHERE name = 'items'",
                [],
                |row| row.get(0),
            )?)
        })
        .unwrap();
    assert_eq!(last, 2);
    // They are remembered.
    check(&store, &items(&many), 7, [0, 0, 0]);
}

#[test]
fn a_store_that_is_closed_is_one_file() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::in_directory(directory.path(), Retention::default()).unwrap();
    store.configure(&[registration("https://a.org/")], Earlier::Dropped, day(0)).unwrap();
    assert_eq!(store.feeds().unwrap().len(), 1);
    let log = directory.path().join("feeds.sqlite-wal");
    assert!(log.metadata().unwrap().len() > 0);
    store.settle().unwrap();
    assert_eq!(log.metadata().unwrap().len(), 0);
    drop(store);
    assert!(!log.exists());
}

/// Three of a changelog once were lost.
#[test]
fn entries_of_one_page_that_differ_in_date_and_text_are_several() {
    let entry = |on: i64, said: &str| Item {
        id: Some("https://a.org/changelog".to_owned()),
        link: Some("https://a.org/changelog".to_owned()),
        title: Some(text("Improvements")),
        published: Some(day(on)),
        summary: Some(text(said)),
        ..Item::default()
    };
    let entries = vec![entry(3, "faster"), entry(2, "smaller"), entry(1, "nicer")];
    let document = Document { items: entries.clone(), ..Document::default() };
    let store = store();
    check(&store, &document, 4, [3, 0, 0]);
    check(&store, &document, 5, [0, 0, 0]);
    // The same text on another day is the same entry.
    let twice = vec![entry(3, "faster"), entry(2, "faster")];
    let other = store_with(Retention::default());
    check(&other, &Document { items: twice, ..Document::default() }, 4, [1, 0, 0]);
}
