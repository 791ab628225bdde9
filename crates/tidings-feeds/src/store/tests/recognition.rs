//! Stored items are found again in a document after any edit.

use crate::parse::{Document, Item};
use crate::store::identity::{Level, Told};
use crate::store::row::Entry;
use crate::store::tests::{ID, check, day, item, items, store, store_with, text, titles};
use crate::store::{Changes, Retention, Store};
use crate::view::Filter;

fn document(items: Vec<Item>) -> Document {
    Document { items, ..Document::default() }
}

/// An item without a guid and a link, on that day.
fn plain(title: &str, published: i64) -> Item {
    Item { id: None, ..item(title, published) }
}

fn linked(link: &str, title: &str, published: i64) -> Item {
    Item { link: Some(link.to_owned()), ..plain(title, published) }
}

/// Makes it a store of an earlier release, in which this item is called so.
fn rename(store: &Store, title: &str, identity: &str) {
    let query = "UPDATE items SET identity = ?2 WHERE title = ?1";
    assert_eq!(store.writer().execute(query, [title, identity]).unwrap(), 1);
}

#[test]
fn a_part_of_a_page_is_the_same_alone_and_beside_others() {
    let parts = |names: &[&str]| {
        let part = |name: &&str| Item {
            link: Some(format!("https://a.org/log#{name}")),
            title: Some(text(name)),
            ..Item::default()
        };
        document(names.iter().map(part).collect())
    };
    let store = store();
    check(&store, &parts(&["1"]), 1, [1, 0, 0]);
    check(&store, &parts(&["2", "1"]), 2, [1, 0, 0]);
    assert!(check(&store, &parts(&["2", "1"]), 3, [0, 0, 0]).is_empty());
    check(&store, &parts(&["2"]), 4, [0, 0, 0]);
    check(&store, &parts(&["3", "2"]), 5, [1, 0, 0]);
    assert_eq!(titles(&store), ["3", "2", "1"]);
}

/// Status pages and logs of changes have one link for all; of them one item was kept.
#[test]
fn items_that_share_one_link_or_one_guid_are_several() {
    for guid in [None, Some("same".to_owned())] {
        let all = |names: &[(&str, i64)]| {
            let one = |(title, day): &(&str, i64)| Item {
                id: guid.clone(),
                ..linked("https://a.org/status", title, *day)
            };
            document(names.iter().map(one).collect())
        };
        let store = store();
        check(&store, &all(&[("a", 1)]), 1, [1, 0, 0]);
        check(&store, &all(&[("c", 3), ("b", 2), ("a", 1)]), 4, [2, 0, 0]);
        assert!(check(&store, &all(&[("c", 3), ("b", 2), ("a", 1)]), 5, [0, 0, 0]).is_empty());
        check(&store, &all(&[("d", 4), ("c", 3), ("b", 2), ("a", 1)]), 6, [1, 0, 0]);
        check(&store, &all(&[("a", 1), ("b", 2), ("c", 3), ("d", 4)]), 6, [0, 0, 0]);
        // Also if there is one in the document only.
        check(&store, &all(&[("e", 5)]), 7, [1, 0, 0]);
        assert_eq!(titles(&store), ["e", "d", "c", "b", "a"]);
    }
}

#[test]
fn what_was_kept_under_a_shared_name_does_not_come_back_as_new() {
    let store = store();
    let one = |title: &str, day: i64| linked("https://a.org/status", title, day);
    check(&store, &document(vec![one("b", 2)]), 3, [1, 0, 0]);
    rename(&store, "b", "link a.org/status");
    let all = document(vec![one("b", 2), one("a", 1)]);
    let changes = check(&store, &all, 4, [1, 0, 0]);
    assert_eq!(titles(&store), ["b", "a"]);
    assert!(!changes.changed.contains(&changes.new[0]));
    assert!(check(&store, &all, 5, [0, 0, 0]).is_empty());
}

#[test]
fn an_item_that_is_there_twice_under_two_dates_is_one() {
    let store = store();
    let dated = |title: &str, published| Item {
        id: Some("1".to_owned()),
        ..linked("https://a.org/1", title, published)
    };
    check(&store, &document(vec![dated("a", 3), dated("a", 2)]), 4, [1, 0, 0]);
    check(&store, &document(vec![dated("A", 3), dated("A", 2)]), 5, [0, 1, 0]);
}

#[test]
fn an_item_that_is_there_twice_is_one() {
    let store = store();
    let mut twice = items(&[("b", 2), ("a", 1), ("b", 2)]);
    twice.items[2].summary = Some(text("an older text"));
    check(&store, &twice, 3, [2, 0, 0]);
    check(&store, &items(&[("b", 2), ("a", 1)]), 4, [0, 0, 0]);
}

/// They once were all new, and the old ones gone.
#[test]
fn an_item_that_gets_a_guid_is_the_same() {
    let store = store();
    let link = |name: &str| format!("https://a.org/{name}");
    let with = |guid: Option<&str>, name: &str, day: i64| Item {
        id: guid.map(str::to_owned),
        ..linked(&link(name), name, day)
    };
    let first =
        check(&store, &document(vec![with(None, "b", 2), with(None, "a", 1)]), 3, [2, 0, 0]);
    let named = document(vec![with(Some("2"), "b", 2), with(Some("1"), "a", 1)]);
    let second = check(&store, &named, 4, [0, 2, 0]);
    assert_eq!(second.changed, first.new);
    assert!(check(&store, &named, 5, [0, 0, 0]).is_empty());
    // From now on the guid counts, and not the link.
    let mut moved = named.clone();
    moved.items[0].link = Some(link("elsewhere"));
    assert_eq!(check(&store, &moved, 6, [0, 1, 0]).changed, first.new[..1]);
    // One that has another guid is another one, whatever its link.
    check(&store, &document(vec![with(Some("3"), "a", 3), with(Some("2"), "b", 2)]), 7, [1, 1, 0]);
}

#[test]
fn an_item_that_was_let_go_and_gets_a_guid_does_not_come_back() {
    let store = store_with(Retention::new(1, None));
    let all = |guids: [Option<&str>; 2]| {
        let [b, a] = guids.map(|guid| guid.map(str::to_owned));
        let (one, other) = (linked("https://a.org/b", "b", 2), linked("https://a.org/a", "a", 1));
        document(vec![Item { id: b, ..one }, Item { id: a, ..other }])
    };
    check(&store, &all([None, None]), 3, [1, 0, 0]);
    check(&store, &all([Some("2"), Some("1")]), 4, [0, 1, 0]);
    assert_eq!(titles(&store), ["b"]);
}

/// An edited text once was a new item, and the old one was withdrawn.
#[test]
fn what_has_no_name_is_its_title_and_date_and_twins_are_told_apart_by_their_texts() {
    let store = store();
    let said = |title: &str, words: &str, day: i64| Item {
        summary: Some(text(words)),
        ..plain(title, day)
    };
    check(&store, &document(vec![said("b", "one", 2), said("a", "one", 1)]), 3, [2, 0, 0]);
    let edited = document(vec![said("b", "two", 2), said("a", "one", 1)]);
    check(&store, &edited, 4, [0, 1, 0]);
    let twins = document(vec![said("b", "twin", 2), said("b", "two", 2), said("a", "one", 1)]);
    check(&store, &twins, 5, [1, 0, 0]);
    check(&store, &twins, 6, [0, 0, 0]);
}

#[test]
fn what_an_earlier_release_called_by_its_text_is_the_same() {
    let store = store();
    let said = |words: &str| Item { summary: Some(text(words)), ..plain("a", 1) };
    check(&store, &document(vec![plain("b", 2), said("one")]), 3, [2, 0, 0]);
    rename(&store, "a", &Told::by(&Entry::from(&said("one"))).name(Level::Text).unwrap());
    rename(&store, "b", &Told::by(&Entry::from(&plain("b", 2))).name(Level::Text).unwrap());
    check(&store, &document(vec![plain("b", 2), said("one")]), 4, [0, 0, 0]);
    check(&store, &document(vec![plain("b", 2), said("two")]), 5, [0, 1, 0]);
}

#[test]
fn what_has_no_name_and_is_dated_anew_each_time_is_no_news() {
    let store = store();
    let at = |day: i64| document(vec![plain("b", day), plain("a", day)]);
    check(&store, &at(1), 1, [2, 0, 0]);
    for now in 2..5 {
        check(&store, &at(now), now, [0, 0, 0]);
    }
    // One date that is put right is an edit.
    let store = super::tests::store();
    check(&store, &document(vec![plain("c", 9), plain("b", 8), plain("a", 1)]), 9, [3, 0, 0]);
    check(&store, &document(vec![plain("c", 9), plain("b", 7), plain("a", 1)]), 9, [0, 1, 0]);
    // What was said before and is said again is not.
    check(&store, &document(vec![plain("a", 10), plain("c", 9), plain("b", 7)]), 10, [1, 0, 0]);
}

/// A move to https never reached what is read.
#[test]
fn a_link_that_moved_is_kept_and_told_and_one_that_says_where_from_is_not() {
    let store = store();
    let shown = || {
        let found = store.find(ID, &Filter::default()).unwrap().unwrap();
        found.entries.into_iter().map(|it| (it.guid.unwrap(), it.link.unwrap())).collect::<Vec<_>>()
    };
    let at = |guid: &str, link: &str| {
        let moved = Item { id: Some(guid.to_owned()), ..linked(link, "a", 1) };
        document(vec![moved])
    };
    check(&store, &at("http://a.org/1", "http://a.org/1"), 2, [1, 0, 0]);
    let first = check(&store, &at("http://a.org/1", "http://a.org/1?utm_source=x"), 3, [0, 0, 0]);
    assert!(first.is_empty());
    check(&store, &at("http://a.org/1", "https://www.a.org/1"), 4, [0, 1, 0]);
    assert_eq!(shown(), [("http://a.org/1".to_owned(), "https://www.a.org/1".to_owned())]);
    check(&store, &at("https://a.org/1", "https://www.a.org/1"), 5, [0, 1, 0]);
    check(&store, &at("https://a.org/1", "https://www.a.org/1"), 6, [0, 0, 0]);
    assert_eq!(
        store.apply(ID, &at("https://a.org/1", "https://www.a.org/1"), day(7)).unwrap(),
        Changes::default()
    );
}
