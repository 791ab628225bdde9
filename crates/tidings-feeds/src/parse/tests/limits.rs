//! Documents that want more than their share: each is read within a moment, or not at all.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use super::*;

/// Far more than any of these takes, in a build without optimisation too; a step whose time grows
/// with the square of the input takes much longer.
const MOMENT: Duration = Duration::from_secs(5);

const LARGE: usize = 1 << 20;

#[track_caller]
fn quick(text: &str) -> Option<Document> {
    let start = Instant::now();
    let document = parse(text.as_bytes(), &Hints::default()).ok();
    assert!(start.elapsed() < MOMENT, "{:?}", start.elapsed());
    document
}

fn around(inner: &str) -> String {
    rss(&format!("<item><title>a</title></item><item><title>{inner}"))
}

#[test]
fn repeated_pieces_take_no_longer_than_others() {
    for piece in [
        "<a>",
        "</a>",
        "<a",
        "<",
        "&",
        "&a",
        "&a;",
        "&amp ",
        "&#39",
        "<!--",
        "<![CDATA[",
        "<b><![CDATA[x]]</b>",
        "<b><![CDATA[x<![CDATA[</b>",
        "<?",
        "<a b='",
        "<a b=\"'",
        "<a b='<a b=\"",
        "<!DOCTYPE [",
        "<!DOCTYPE [<!ENTITY ",
        "<!DOCTYPE '>",
        "]]>",
        "<item>",
        "<item><title>",
        "<x:y xmlns:x='z'>",
        "<a b=\"<c>\"=",
        "<a xml:base='b/'>",
        "\u{e9}",
        "</channel>",
    ] {
        let count = LARGE / 32 / piece.len();
        if let Some(document) = quick(&around(&piece.repeat(count))) {
            assert_eq!(titles(&document).first(), Some(&"a"), "{piece}");
        }
        quick(&piece.repeat(count));
    }
}

#[test]
fn depth_is_limited_and_what_follows_is_read() {
    let deep =
        format!("<description>{}{}</description>", "<a>".repeat(10_000), "</a>".repeat(10_000));
    let document = quick(&rss(&format!("<item>{deep}<title>x</title></item>"))).unwrap();
    assert_eq!(titles(&document), ["x"]);
    assert!(document.problems.contains(&Problem::TooDeep));
}

#[test]
fn ends_of_what_is_too_deep_take_no_longer_than_others() {
    let full = "<a>".repeat(300);
    let mut names = String::new();
    for number in 0..5_000 {
        write!(names, "<b{number}>").unwrap();
    }
    for many in ["</b>", "</a>", "</b><c>", "</A><a><b>", "</a><a><b>"] {
        let many = many.repeat(50_000 / many.len());
        let inner = format!("<item><description>{full}{names}{many}</description></item><item/>");
        assert_eq!(quick(&rss(&inner)).unwrap().items.len(), 2);
    }
}

#[test]
fn json_takes_no_longer_however_it_ends() {
    let head = r#"{"version":"https://jsonfeed.org/version/1","items":[{"title":"a"},"#;
    for piece in ["{", "[", "{\"a\":", "\"", "\\", ",", "]", "}", "{},", "\"\\", "\"\\u", "\n"] {
        let text = format!("{head}{}", piece.repeat(LARGE / 4 / piece.len()));
        assert!(quick(&text).is_none(), "{piece}");
    }
}

#[test]
fn attributes_are_limited() {
    let mut many = String::new();
    for number in 0..LARGE / 16 {
        write!(many, " a{number}='b'").unwrap();
    }
    let document = quick(&rss(&format!("<item{many}><title>x</title></item>"))).unwrap();
    assert_eq!(titles(&document), ["x"]);
    assert!(document.problems.contains(&Problem::TooManyAttributes));
}

#[test]
fn items_are_limited() {
    let document = quick(&rss(&"<item/>".repeat(25_000))).unwrap();
    assert_eq!(document.items.len(), 20_000);
    assert_eq!(document.problems, [Problem::TooManyItems(20_000)]);
}

#[test]
fn texts_are_limited() {
    let document =
        quick(&rss(&format!("<item><title>{}</title></item>", "a".repeat(5 << 20)))).unwrap();
    assert_eq!(titles(&document)[0].len(), 4 << 20);
    assert!(document.problems.contains(&Problem::LongText));
}

#[test]
fn what_is_long_is_not_copied_to_many() {
    let long = "x".repeat(LARGE);
    let links = "<item><link>y</link></item>".repeat(5_000);
    let text = format!("<rss xml:base='http://{long}/'><channel>{links}</channel></rss>");
    let document = quick(&text).unwrap();
    assert_eq!(document.items[4_999].link.as_deref(), Some("y"));
    let media = "<media:content url='http://a.example/'/>".repeat(5_000);
    let group = format!("<media:group><media:title>{long}</media:title>{media}</media:group>");
    let document = quick(&rss(&format!("<item>{group}</item>"))).unwrap();
    assert_eq!(document.items[0].media[4_999].title, None);
}

#[test]
fn entities_do_not_explode() {
    let mut types = "<!ENTITY l0 'haha'>".to_owned();
    for level in 1..30 {
        write!(types, "<!ENTITY l{level} '{}'>", format!("&l{};", level - 1).repeat(10)).unwrap();
    }
    let text = format!("<!DOCTYPE rss [{types}]>{}", rss("<item><title>&l29;</title></item>"));
    let document = quick(&text).unwrap();
    assert!(document.problems.contains(&Problem::Entities));
}
