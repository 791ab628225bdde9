//! Friendly and hostile HTML, made safe.

use proptest::prelude::*;

use super::*;

fn level(source: &str) -> String {
    levelled(source, None)
}

const ARTICLE: &str = "<h2>Pears</h2><p>One <b>big</b>&nbsp;pear &eacute; &lt;3, \
    <a href=\"https://a.org/x?a=1&amp;b=2\" onclick=\"steal()\">more</a>.<br>Two.</p>\
    <ul><li>a<li>b</ul><script>steal()</script><style>p{}</style>";

#[track_caller]
fn check(format: TextFormat, source: &str, expected: &str) {
    let shown = shown(source, None, format, 10_000);
    assert_eq!((shown.text.as_str(), shown.is_cut), (expected, false));
}

#[test]
fn an_article_is_shown_in_each_way() {
    check(TextFormat::Text, ARTICLE, "Pears\nOne big pear é <3, more.\nTwo.\na\nb");
    check(
        TextFormat::Markdown,
        ARTICLE,
        "## Pears\n\nOne **big** pear é <3, [more](https://a.org/x?a=1&b=2).  \nTwo.\n\n*   a\n*   b",
    );
    let safe = shown(ARTICLE, None, TextFormat::Html, 10_000).text;
    assert!(safe.contains("<b>big</b>") && safe.contains("href=\"https://a.org/x?a=1&amp;b=2\""));
    for harm in ["onclick", "script", "steal", "style"] {
        assert!(!safe.contains(harm), "{safe}");
    }
}

#[test]
fn addresses_that_run_something_are_gone_everywhere() {
    let source = "<a href=\"javascript:steal()\">a</a><img src='data:text/html,x' onerror=steal()>";
    for format in [TextFormat::Text, TextFormat::Markdown, TextFormat::Html] {
        let shown = shown(source, None, format, 1000).text;
        assert!(!shown.contains("steal") && !shown.contains("data:"), "{shown}");
    }
}

#[test]
fn words_without_markup_stay_as_they_are() {
    check(TextFormat::Text, "1 < 2 and <3 & 4", "1 < 2 and <3 & 4");
    check(TextFormat::Text, "a<svg/>b<math/>c", "abc");
    check(TextFormat::Text, "", "");
    check(TextFormat::Text, "東京\u{a0}é", "東京 é");
}

#[test]
fn what_has_no_tag_is_as_it_was_and_what_has_is_safe() {
    for plain in ["1 < 2 & 3 > <3", "R&D &eacute; &#60;b&#62;", "a <", "\"'\u{a0}"] {
        assert_eq!(safe(plain, None), Some(Cow::Borrowed(plain)));
    }
    for (source, expected) in [
        ("<p onclick=x()>a</p>", Some("<p>a</p>")),
        ("a<!-- b -->c", Some("ac")),
        ("a<?b c?>d", Some("ad")),
        ("a</p>b", Some("ab")),
        (" <script>x()</script> ", None),
        ("<section>a</section><main>b</main>", Some("a b")),
        ("<blockquote cite='javascript:x()'>a</blockquote>", Some("<blockquote>a</blockquote>")),
        // Names that only drawings and formulas know once took all that follows with them.
        ("vector<int> v; <p>a</p>", Some("vector v; <p>a</p>")),
        ("1 < list<text> b <p>c</p>", Some("1 &lt; list b <p>c</p>")),
        ("<a href='javascript:x()'>a</a>", Some("<a rel=\"noopener noreferrer\">a</a>")),
    ] {
        assert_eq!(safe(source, None).as_deref(), expected, "{source}");
    }
}

#[test]
fn what_is_too_long_is_cut_and_says_so() {
    let shown_ = |format, most| shown("<p>ääää bbbb</p><p>cccc</p>", None, format, most);
    assert_eq!(shown_(TextFormat::Text, 6), Shown { text: "ääää…".to_owned(), is_cut: true });
    assert_eq!(shown_(TextFormat::Text, 14).text, "ääää bbbb\ncccc");
    let html = shown_(TextFormat::Html, 20);
    assert!(html.is_cut && html.text.ends_with("</p>"), "{html:?}");
    assert!(html.text.chars().count() <= 20);
}

/// Each of these once overflowed a stack, or took minutes, in one parser or another.
#[test]
fn hostile_markup_ends_soon_and_well() {
    let many = 1_500;
    let references = "<p title='".to_owned() + &"&".repeat(5_000) + "'>";
    let attributes: Vec<_> = (0..many).map(|number| format!("a{number}")).collect();
    let formats: Vec<_> = (0..500).map(|number| format!("<b a={number}>")).collect();
    for source in [
        "<div>".repeat(100_000),
        "<div></x>".repeat(many),
        "<b><p>".repeat(many),
        "<ul><li>".repeat(many),
        "<blockquote>".repeat(many) + "x",
        "<table><tr><td>".repeat(many),
        "<svg><g>".repeat(many),
        "</p>".repeat(many),
        "<a".repeat(many),
        "<!--".repeat(many),
        "<script>".repeat(many),
        "&".repeat(many),
        "a&amp;é".repeat(many),
        "<".repeat(10_000),
        "&amp;</x>".repeat(10_000),
        references,
        "<p ".to_owned() + &attributes.join(" ") + ">x</p>",
        formats.join("") + &"<p>x".repeat(500),
        "<font size=1>".repeat(many) + &"</p>x<p>".repeat(1000),
    ] {
        for format in [TextFormat::Text, TextFormat::Markdown, TextFormat::Html] {
            let shown = shown(&source, None, format, 2_000);
            assert!(shown.text.chars().count() <= 2_000);
        }
        markdown(&source, None);
    }
}

#[test]
fn references_without_end_are_split_whatever_is_left_out_between_them() {
    for source in ["&amp;".repeat(300), "<".repeat(300), "&amp;</x>".repeat(300)] {
        let level = level(&source);
        assert_eq!(level.matches('&').count(), 300);
        assert!(level.split("<!---->").all(|part| part.matches('&').count() <= 64), "{level}");
    }
}

/// Many write no end of a paragraph or an item; the fiftieth once was no paragraph any more.
#[test]
fn what_ends_where_the_next_begins_is_ended() {
    assert_eq!(level("<p>a<p>b<b>c<div>d"), "<p>a</p><p>b<b>c</b></p><div>d</div>");
    assert_eq!(
        level("<ul><li>a<ul><li>b</ul><li>c</ul>"),
        "<ul><li>a<ul><li>b</li></ul></li><li>c</li></ul>"
    );
    assert_eq!(level("<dl><dt>a<dd><p>b<dt>c"), "<dl><dt>a</dt><dd><p>b</p></dd><dt>c</dt></dl>");
    assert_eq!(
        level("<table><tr><td>a<td>b<tr><td><table><tr><td>c</table>d"),
        "<table><tr><td>a</td><td>b</td></tr><tr><td><table><tr><td>c</td></tr></table>d</td></tr></table>"
    );
    assert_eq!(level("<b><p>a<p>b</b>"), "<b><p>a</p><p>b</p></b>");
    assert_eq!(level("<p>a<hr>b"), "<p>a</p><hr>b");
    for (begin, item) in [("", "<p>"), ("<ol>", "<li>"), ("<table>", "<tr><td>")] {
        let many = begin.to_owned() + &format!("{item}x").repeat(60);
        assert_eq!(safe(&many, None).unwrap().matches('x').count(), 60);
        assert_eq!(plain(&safe(&many, None).unwrap()).lines().count(), 60, "{item}");
    }
    // Words in what is too deep are words still.
    let deep = "<div>a".repeat(60);
    assert_eq!(plain(&safe(&deep, None).unwrap()).split_whitespace().count(), 60);
}

#[test]
fn a_text_that_is_made_safe_does_not_grow_without_bound() {
    let formats: Vec<_> = (0..23).map(|number| format!("<b title=\"{number}\">")).collect();
    let hostile = format!("<p>{}{}", formats.concat(), "<p>y".repeat(23)).repeat(200);
    for source in [hostile, "<a>x</a>".repeat(50_000), "<table>x".repeat(9_000)] {
        let safe = safe(&source, None).unwrap();
        assert!(safe.len() <= 2 * source.len() + LONGER, "{} {}", safe.len(), source.len());
    }
}

#[test]
fn the_rules_are_those_of_the_library_in_use() {
    let lock = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));
    let (name, release) = rules!().split_once(", ").unwrap().0.split_once(' ').unwrap();
    let expected = format!("name = \"{name}\"\nversion = \"{release}\"");
    assert!(lock.unwrap().contains(&expected), "the library is another: say so in `rules!`");
}

#[test]
fn addresses_that_run_something_are_told() {
    for harmful in
        ["javascript:x()", " JavaScript:x", "java\nscript:x", "data:text/html,x", "vbscript:x"]
    {
        assert!(is_harmful(harmful), "{harmful}");
    }
    for fine in ["https://a.org/javascript:x", "mailto:a@b.org", "urn:x", "/data", "", "data"] {
        assert!(!is_harmful(fine), "{fine}");
    }
}

#[test]
fn elements_end_where_they_should_and_none_is_too_deep() {
    assert_eq!(level("<b><i>x</b>y</i><br/>"), "<b><i>x</i></b>y<br>");
    assert_eq!(level("<img alt='' />"), "<img alt='' >");
    assert_eq!(level("<a href=http://a.org/b/>x"), "<a href=http://a.org/b/>x</a>");
    assert_eq!(level("a<!-- <b> -->c<p class='x>y'>"), "ac<p class='x>y'></p>");
    let deep = level(&("<i>".repeat(60) + "x" + &"</i>".repeat(60)));
    assert_eq!(deep.matches("<i>").count(), 48);
    assert_eq!(deep.matches("</i>").count(), 48);
}

proptest! {
    #[test]
    fn anything_is_shown_within_its_bounds(source in "[<>/a-p \"'=&;#!-]{0,80}", most in 0..50_usize) {
        for format in [TextFormat::Text, TextFormat::Markdown, TextFormat::Html] {
            prop_assert!(shown(&source, None, format, most).text.chars().count() <= most.max(1));
        }
    }

    #[test]
    fn what_is_safe_stays_as_it_is(source in "[<>/a-p \"'=&;#!-]{0,80}") {
        let safe = sanitised(&source, None);
        prop_assert_eq!(sanitised(&safe, None), safe.as_ref());
    }
}

#[test]
fn addresses_are_shown_from_where_the_text_was_found() {
    let source = "<p><a href='/b'>x</a> <img src=i.png></p><script src=/s></script>";
    let shown = |format| shown(source, Some("https://a.org/c/"), format, 1000).text;
    let html = shown(TextFormat::Html);
    assert!(html.contains("href=\"https://a.org/b\""), "{html}");
    assert!(html.contains("src=\"https://a.org/c/i.png\"") && !html.contains("/s"), "{html}");
    assert_eq!(shown(TextFormat::Markdown), "[x](https://a.org/b) ![](https://a.org/c/i.png)");
    assert_eq!(shown(TextFormat::Text), "x");
}

#[test]
fn what_no_reader_sees_is_not_shown() {
    let hidden = "<p>Seen<span style='display: none'>do <b>this</b> <span>x</span></span> too</p>";
    for (html, expected) in [
        (hidden, "Seen too"),
        ("a<div hidden>obey</div>b", "a\nb"),
        ("a<div style=\"font-size:0\">obey</div>b", "ab"),
        ("<p style='visibility:hidden'>obey<p>seen", "seen"),
        ("a\u{e0041}\u{e0042}b &#xE0043;c", "ab c"),
        ("<p hidden-count=3>seen</p>", "seen"),
    ] {
        let text = shown(html, None, TextFormat::Text, 100).text.replace('\n', "");
        assert_eq!(text, expected.replace('\n', ""), "{html}");
        for format in [TextFormat::Markdown, TextFormat::Html] {
            let text = shown(html, None, format, 1000).text;
            assert!(!text.contains("obey") && !text.contains("this"), "{text}");
        }
        let safe = safe(html, None).unwrap();
        assert!(!safe.contains("obey") && !safe.contains('\u{e0041}'), "{safe}");
    }
}

#[test]
fn what_readers_see_is_shown_though_it_looks_hidden() {
    for html in [
        "<td style=\"font-size:0px\"><div style=\"font-size:13px\">V</div></td>",
        "<a href=\"https://e.org/hidden/page\">V</a>",
        "<a title=\"the hidden truth\" href=\"https://e.org/\">V</a>",
        "<div class=\"md:flex hidden lg:block\">V</div>",
        "<a href=\"https://e.org/?a=style&b=display:none\">V</a>",
        "<svg><path style=\"display:none\" d=\"M0\"/><text>V</text></svg>",
        "<div><p hidden>x</div>V",
        "<ul><li hidden>x</ul>V",
        "<p style=\"margin-left: -20px; top: 1000px\">V</p>",
    ] {
        assert_eq!(shown(html, None, TextFormat::Text, 100).text.trim(), "V", "{html}");
    }
    for html in [
        "<p class=\"x\"\nhidden>obey</p>",
        "<p style=\"display&#58;none\">obey</p>",
        "<p style=\"display:/**/none\">obey</p>",
        "<p style=\"Opacity: 0.0 !important\">obey</p>",
        "<p style=\"position: absolute; left: -9999px\">obey</p>",
        "<p style=\"text-indent:-999em\">obey</p>",
    ] {
        assert_eq!(shown(html, None, TextFormat::Text, 100).text.trim(), "", "{html}");
    }
}

#[test]
fn an_address_of_a_player_is_no_markup() {
    let html = "<video src=\"https://e.org/<img src=x><b>\"></video>";
    let safe = safe(html, None).unwrap();
    assert!(!safe.contains("<img") && !safe.contains("<b>"), "{safe}");
}

#[test]
fn formulas_and_drawings_keep_their_words_and_players_leave_a_link() {
    let text = |html: &str| shown(html, None, TextFormat::Text, 1000).text;
    assert_eq!(text("<p>so <math><mi>x</mi><mo>=</mo><mn>2</mn></math></p>"), "so x=2");
    assert_eq!(text("<svg><style>a{}</style><text>North</text></svg>"), "North");
    let film = "https://a.org/film?x=1";
    for html in [
        "<iframe width=1 src='https://a.org/film?x=1'>old</iframe>",
        "<video controls src=\"https://a.org/film?x=1\"></video>",
        "<audio><source src=https://a.org/film?x=1 type=audio/mp3></audio>",
        "<object data='https://a.org/film?x=1'>old</object>",
    ] {
        assert_eq!(text(html), film, "{html}");
        let markdown = shown(html, None, TextFormat::Markdown, 1000).text;
        assert!(markdown.contains(film), "{markdown}");
        let safe = safe(html, None).unwrap();
        assert!(safe.contains(&format!("<a href=\"{film}\"")), "{safe}");
    }
    assert_eq!(text("<iframe src='javascript:x()'></iframe>"), "");
}

#[test]
fn a_title_is_no_markup_of_markdown() {
    assert_eq!(as_markdown("[a](b) *c* <d>"), "\\[a\\](b) \\*c\\* \\<d\\>");
    assert_eq!(as_markdown("plain, 1."), "plain, 1.");
}
