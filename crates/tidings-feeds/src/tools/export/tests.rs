//! Exports are read back by our own parser.

use std::borrow::Cow;

use proptest::prelude::*;
use tidings_store::date::Moment;

use super::*;
use crate::parse::{self, Hints};
use crate::store::{Enclosure, Person};
use crate::tools::budget::Budget;

/// Texts with all that is hard: markup, ends of sections, characters that XML cannot hold.
const TEXT: &str = "([ -~éΩж中あ€😀\u{2028}\u{1}\u{b}\u{fffe}]|\\]\\]>|&amp;|<b>|</b>|&#38;){0,12}";

fn kept(title: &str, body: &str, name: &str, published: i64, number: usize) -> Kept {
    let line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let filled = |text: String| Some(text).filter(|text| !text.is_empty());
    let name = line(name);
    let entry = Entry {
        title: filled(line(title)),
        content: filled(body.trim().to_owned()),
        link: Some(format!("https://a.org/{number}?a=1&b='2'")),
        guid: Some(format!("urn:x:{number}")),
        published: Moment::from_unix(published),
        authors: filled(name.clone())
            .into_iter()
            .map(|name| Person { name: Some(name), email: None })
            .collect(),
        categories: filled(name).into_iter().collect(),
        enclosures: vec![Enclosure {
            url: format!("https://a.org/{number}.mp3?a&b"),
            media_type: Some("audio/mpeg".to_owned()),
            length: Some(7),
        }],
        ..Entry::default()
    };
    let moment = Moment::from_unix(published).unwrap();
    Kept { key: 1, feed: 1, moment, read: false, starred: false, entry }
}

fn items() -> impl Strategy<Value = Vec<Kept>> {
    let name = "[a-zé<&\"]{0,8}";
    let published = 0..4_000_000_000_i64;
    let item = (TEXT, TEXT, name, published);
    prop::collection::vec(item, 0..5).prop_map(|items| {
        let items = items.into_iter().enumerate();
        items
            .map(|(number, (title, body, name, at))| kept(&title, &body, &name, at, number))
            .collect()
    })
}

fn document(format: Format, items: &[Kept]) -> String {
    let (document, count) = written(format, &[], items, &mut Budget::of_tokens(200_000).room());
    assert_eq!(count, items.len());
    document
}

/// A text as it is after XML, which cannot hold every character.
fn held(text: Option<&String>) -> Option<String> {
    let hold = |letter: char| if crate::opml::is_held(letter) { letter } else { '\u{fffd}' };
    text.map(|text| text.chars().map(hold).collect())
}

proptest! {
    #[test]
    fn items_survive_every_format(items in items()) {
        for format in [Format::Rss, Format::Atom, Format::Json] {
            let document = document(format, &items);
            let read = parse::parse(document.as_bytes(), &Hints::default()).unwrap();
            prop_assert!(!read.truncated && read.problems.is_empty(), "{:?}\n{document}", read.problems);
            let back: Vec<_> = read.items.iter().map(Entry::from).collect();
            prop_assert_eq!(back.len(), items.len());
            for (back, item) in back.iter().zip(&items) {
                let written = &item.entry;
                let keep = |text: &Option<String>| match format {
                    Format::Json => text.clone(),
                    _ => held(text.as_ref()),
                };
                prop_assert_eq!(&back.title, &keep(&written.title), "{}", document);
                let body = back.content.as_ref().or(back.description.as_ref()).cloned();
                let safe = written.content.as_deref().and_then(|text| crate::html::safe(text, None));
                let safe = keep(&safe.map(Cow::into_owned));
                let safe = safe.map(|text| text.trim().to_owned());
                prop_assert_eq!(body, safe, "{}", document);
                prop_assert_eq!(&back.link, &written.link);
                prop_assert_eq!(&back.guid, &written.guid);
                prop_assert_eq!(back.published, written.published);
                prop_assert_eq!(&back.categories, &written.categories, "{}", document);
                prop_assert_eq!(&back.enclosures, &written.enclosures);
            }
        }
    }
}

#[test]
fn a_document_that_must_be_short_has_whole_items_and_at_least_one() {
    let item = |number: usize| kept("t", &"x".repeat(700), "n", 0, number);
    let items: Vec<_> = (0..9).map(item).collect();
    for format in [Format::Rss, Format::Atom, Format::Json] {
        let (document, count) = written(format, &[], &items, &mut Budget::of_tokens(1000).room());
        assert!((1..9).contains(&count), "{count}");
        let read = parse::parse(document.as_bytes(), &Hints::default()).unwrap();
        assert_eq!((read.items.len(), read.truncated), (count, false));
        let long = [kept("t", &"x".repeat(99_999), "n", 0, 0)];
        let (document, count) =
            written(format, &[], &long, &mut Budget::of_tokens(0).shared(2).room());
        assert_eq!(count, 1, "{document}");
        assert!(parse::parse(document.as_bytes(), &Hints::default()).is_ok());
        let title = [kept(&"<".repeat(40_000), "", "n", 0, 0)];
        let (document, count) =
            written(format, &[], &title, &mut Budget::of_tokens(0).shared(2).room());
        assert_eq!(count, 1, "{document}");
    }
}

#[test]
fn a_title_is_quoted_once_unless_it_would_be_read_as_markup() {
    for (title, expected) in [
        ("Q & A", "Q &amp; A"),
        ("AT&T, 1 < 2 <3", "AT&amp;T, 1 &lt; 2 &lt;3"),
        ("use <b> &amp; x", "use &amp;lt;b&amp;gt; &amp;amp;amp; x"),
    ] {
        let document = document(Format::Rss, &[kept(title, "", "", 0, 0)]);
        assert!(document.contains(&format!("<title>{expected}</title>")), "{document}");
    }
}

#[test]
fn texts_are_for_readers_elsewhere() {
    let mut item = kept("t", "<p><a href='b'>x</a></p>", "", 0, 0);
    item.entry.base = Some("https://a.org/c/".to_owned());
    item.entry.description = Some("<p>In <b>short</b> &amp; so</p>".to_owned());
    for format in [Format::Rss, Format::Atom, Format::Json] {
        let document = document(format, std::slice::from_ref(&item));
        assert!(document.contains("https://a.org/c/b"), "{document}");
        if format == Format::Json {
            let value: serde_json::Value = serde_json::from_str(&document).unwrap();
            assert_eq!(value["items"][0]["summary"], "In short & so");
        }
    }
}

#[test]
fn items_of_several_feeds_have_names_of_their_own() {
    let same = |key, feed| Kept { key, feed, ..kept("t", "x", "", 0, 0) };
    let items = [same(7, 2), same(3, 1), same(9, 3)];
    for format in [Format::Rss, Format::Atom, Format::Json] {
        let document = document(format, &items);
        let read = parse::parse(document.as_bytes(), &Hints::default()).unwrap();
        let ids: Vec<_> = read.items.iter().filter_map(|item| item.id.as_deref()).collect();
        assert_eq!(ids[1], "urn:x:0", "the eldest keeps it");
        assert!(ids[0].ends_with("-7") && ids[2].ends_with("-9"), "{ids:?}");
    }
}

#[test]
fn an_item_that_was_only_updated_has_a_date() {
    let mut item = kept("a", "b", "c", 1_700_000_000, 1);
    item.entry.updated = item.entry.published.take();
    let (csv, rss) = (document(Format::Csv, &[item.clone()]), document(Format::Rss, &[item]));
    assert!(csv.contains("2023-11-14T22:13:20Z"), "{csv}");
    assert!(rss.contains("<pubDate>Tue, 14 Nov 2023 22:13:20"), "{rss}");
}
