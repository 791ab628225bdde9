//! Views: what is asked for, what is wrong with it, and the law that the index finds what a look at
//! every item would.

use proptest::prelude::*;
use tidings_server::AnswerError;
use tidings_store::date::Moment;

use super::search::Search;
use super::*;
use crate::parse::{Category, Document, Item, Person, Text, TextKind};
use crate::store::{Entry, Retention, Store};
use crate::tests::feed_at;
use crate::words;

fn parse(uri: &str) -> Result<View, AnswerError> {
    View::parse(&ResourceUri::parse(uri).unwrap())
}

fn filter(query: &str) -> Filter {
    match parse(&format!("feeds://feed/x/items?{query}")) {
        Ok(View::Items(_, filter)) => filter,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn check_invalid(query: &str, name: &str, given: &str) {
    let error = parse(&format!("feeds://feed/x/items?{query}")).unwrap_err();
    let AnswerError::Invalid { parameter, value, .. } = error else { panic!("{error:?}") };
    assert_eq!((parameter.as_str(), value.as_str()), (name, given));
}

#[test]
fn each_resource_has_its_uri() {
    assert_eq!(parse("feeds://all"), Ok(View::All));
    assert_eq!(parse("feeds://feed/x"), Ok(View::Feed("x".into())));
    assert_eq!(parse("feeds://feed/x/meta"), Ok(View::Meta("x".into())));
    assert_eq!(parse("feeds://feed/x/items"), Ok(View::Items("x".into(), Filter::default())));
    for wrong in ["feeds://other", "feeds://feed/", "feeds://feed/x/y", "feeds://feed/x/items/1"] {
        let error = parse(wrong).unwrap_err();
        assert!(matches!(&error, AnswerError::Malformed(_)));
    }
    for uri in ["feeds://all", "feeds://feed/x", "feeds://feed/x/meta"] {
        let error = parse(&format!("{uri}?limit=1&offset=2")).unwrap_err();
        let AnswerError::Invalid { parameter, value, .. } = error else { panic!("{error:?}") };
        assert_eq!((parameter.as_str(), value.as_str()), ("limit", "1"));
    }
}

#[test]
fn a_day_begins_at_midnight_and_ends_before_the_next() {
    let filter = filter("since=2024-01-01&until=2024-01-31");
    assert_eq!(filter.since.unwrap().to_string(), "2024-01-01T00:00:00Z");
    assert_eq!(filter.until.unwrap().to_string(), "2024-01-31T23:59:59Z");
}

#[track_caller]
fn check_since(value: &str, expected: &str) {
    assert_eq!(filter(&format!("since={value}")).since.unwrap().to_string(), expected);
}

#[test]
fn moments_are_in_any_zone() {
    check_since("2024-01-01T12:00:00Z", "2024-01-01T12:00:00Z");
    check_since("2024-01-01T12:00Z", "2024-01-01T12:00:00Z");
    check_since("2024-01-01T12:00:00%2B02:00", "2024-01-01T10:00:00Z");
    check_since("2024-01-01T12:00:00+02:00", "2024-01-01T10:00:00Z");
    check_since("2024-01-01T12:00:00-02:30", "2024-01-01T14:30:00Z");
    check_since("2024-01-01T12:00:00.000Z", "2024-01-01T12:00:00Z");
    check_since("2024-01-01T12:00:00.001Z", "2024-01-01T12:00:01Z");
    let filter = filter("until=2024-01-01T12:00:00.999Z");
    assert_eq!(filter.until.unwrap().to_string(), "2024-01-01T12:00:00Z");
}

#[test]
fn what_is_wrong_is_named() {
    for value in ["yesterday", "2024", "2024-13-01", "2024-02-30", "2024-01-01T12:00:00", "", "Z"] {
        check_invalid(&format!("since={value}"), "since", value);
    }
    for value in ["0", "1001", "-1", "1.5", "ten", "", " 1"] {
        check_invalid(&format!("limit={}", value.replace(' ', "+")), "limit", value);
    }
    check_invalid("offset=-1", "offset", "-1");
    check_invalid("offset=99999999999999999999", "offset", "99999999999999999999");
    check_invalid("category=", "category", "");
    check_invalid("author=+", "author", " ");
    check_invalid("search=%22open", "search", "\"open");
    check_invalid("search=--", "search", "--");
    check_invalid("limit=1&limit=2", "limit", "2");
    check_invalid("colour=red", "colour", "red");
    check_invalid("Limit=1", "Limit", "1");
    check_invalid("limit", "limit", "");
    check_invalid("limit=1&", "", "");
    check_invalid("search=%ff", "search", "%ff");
    for value in ["%zz", "%", "100%", "a%2", "%%41"] {
        check_invalid(&format!("search={value}"), "search", value);
    }
    check_invalid("since=2024-01-02&until=2024-01-01", "since", "2024-01-02");
}

#[test]
fn a_plus_is_a_space_and_quotation_marks_make_a_phrase() {
    let filter = filter("author=Jane++Smith&search=%22Machine+learning%22+a.b&category=%C3%84");
    assert_eq!(filter.author.as_deref(), Some("janesmith"));
    assert_eq!(filter.category.as_deref(), Some("ä"));
    assert_eq!(filter.search, Some(Search::parse("\"machine LEARNING\" a-b").unwrap()));
}

/// The order and the choice of a view, by looking at every item.
fn naive(items: &[(usize, Entry)], now: Moment, filter: &Filter) -> Vec<Entry> {
    let moment = |entry: &Entry| entry.published.or(entry.updated).unwrap_or(now);
    let is_name = |text: &Option<String>, wanted: &String| {
        text.as_ref().is_some_and(|text| words::label(text) == *wanted)
    };
    let fits = |entry: &Entry| {
        let category = |wanted: &String| {
            entry.categories.iter().any(|category| words::label(category) == *wanted)
        };
        let author = |wanted: &String| {
            let mut people = entry.authors.iter();
            people.any(|one| is_name(&one.name, wanted) || is_name(&one.email, wanted))
        };
        let markup = |text: &Option<String>| words::words_of_markup(text.as_deref().unwrap_or(""));
        let title = words::words(entry.title.as_deref().unwrap_or(""));
        let texts = [title, markup(&entry.description), markup(&entry.content)];
        filter.since.is_none_or(|since| moment(entry) >= since)
            && filter.until.is_none_or(|until| moment(entry) <= until)
            && filter.category.as_ref().is_none_or(category)
            && filter.author.as_ref().is_none_or(author)
            && filter.search.as_ref().is_none_or(|search| search.fits(&texts))
    };
    let mut found: Vec<_> = items.iter().filter(|(_, entry)| fits(entry)).collect();
    found.sort_by_key(|(position, entry)| (std::cmp::Reverse(moment(entry)), *position));
    let offset = usize::try_from(filter.offset).unwrap();
    let limit = filter.limit.map_or(usize::MAX, |limit| limit as usize);
    found.into_iter().skip(offset).take(limit).map(|(_, entry)| entry.clone()).collect()
}

fn phrase() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "Ångström",
        "angstrom",
        "one",
        "TWO",
        "東京",
        "京",
        "c++",
        "<b>one</b>",
        "two&amp;one",
        "<br>",
        "-",
        "\"",
        "3",
    ]);
    prop::collection::vec(word, 0..5).prop_map(|words| words.join(" "))
}

fn moment() -> impl Strategy<Value = Option<Moment>> {
    prop::option::of((0..4_i64).prop_map(|day| Moment::from_unix(day * 43_200).unwrap()))
}

prop_compose! {
    fn item()(
        title in phrase(), summary in phrase(), content in prop::option::of(phrase()),
        published in moment(), updated in moment(),
        name in prop::sample::select(vec!["Jane Smith", "jane  SMITH", "JaneSmith", "j@a.org", "Jo"]),
        email in prop::option::of(prop::sample::select(vec!["J@a.org", "x@y.z"])),
        category in prop::option::of(prop::sample::select(vec!["AI", "ai ", "A I"])),
    ) -> Item {
        let text = |value: String| Text { value, kind: TextKind::Html };
        let term = |term: &str| Category { term: term.to_owned(), ..Category::default() };
        let author = Person { name: Some(name.into()), email: email.map(str::to_owned), uri: None };
        Item {
            title: Some(text(title)), summary: Some(text(summary)), content: content.map(text),
            published, updated, authors: vec![author],
            categories: category.into_iter().map(term).collect(),
            ..Item::default()
        }
    }
}

fn day() -> impl Strategy<Value = Option<Moment>> {
    moment()
}

prop_compose! {
    fn any_filter()(
        since in day(), until in day(), limit in prop::option::of(1..5_u32), offset in 0..3_u64,
        category in prop::option::of(prop::sample::select(vec!["ai", "none"])),
        author in prop::option::of(prop::sample::select(vec!["janesmith", "j@a.org", "jo"])),
        search in prop::option::of(prop::sample::select(vec![
            "one", "ANGSTROM", "\"one two\"", "two one", "京", "東京", "c", "b", "amp", "1",
        ])),
    ) -> Filter {
        Filter {
            since, until, limit, offset,
            category: category.map(str::to_owned), author: author.map(str::to_owned),
            search: search.map(|text| Search::parse(text).unwrap()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_index_finds_what_a_look_at_every_item_would(
        items in prop::collection::vec(item(), 0..12),
        filters in prop::collection::vec(any_filter(), 1..8),
    ) {
        let now = Moment::from_unix(43_200).unwrap();
        let store = Store::in_memory(Retention::default()).unwrap();
        let other = feed_at("https://b.org").registration();
        let feed = feed_at("https://a.org").registration();
        let (other, feed) = (store.add(&other, now).unwrap(), store.add(&feed, now).unwrap());
        let named = items.into_iter().enumerate().map(|(number, item)| {
            Item { id: Some(number.to_string()), ..item }
        });
        let document = Document { items: named.collect(), ..Document::default() };
        // Another feed with the same items is never found.
        store.apply(&other.id, &document, now).unwrap();
        store.apply(&feed.id, &document, now).unwrap();
        let entries: Vec<_> = document.items.iter().map(Entry::from).enumerate().collect();
        for filter in filters {
            let found = store.find(&feed.id, &filter).unwrap().unwrap();
            let expected = super::items(&naive(&entries, now, &filter));
            prop_assert_eq!(super::items(&found.entries), expected, "{:?}", filter);
        }
    }
}
