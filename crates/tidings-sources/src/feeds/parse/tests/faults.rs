//! Documents as they are: ill formed, mislabelled, cut off, or no feeds at all.

use super::*;

#[track_caller]
fn check_title(inner: &str, expected: &str) {
    assert_eq!(value(item(&format!("<title>{inner}</title>")).title.as_ref()), expected);
}

#[test]
fn titles_survive_bad_references() {
    check_title("AT&T & R&D", "AT&T & R&D");
    check_title("caf&eacute; &#146; &nosuch;", "café ’ &nosuch;");
    check_title("1 < 2 > 0", "1 < 2 > 0");
    check_title("<![CDATA[<b>&amp;</b>]]>", "<b>&amp;</b>");
    check_title("a <b>c</b>", "a <b>c</b>");
    check_title("a\u{1}b", "ab");
}

#[test]
fn ends_that_are_missing_are_put_where_they_belong() {
    let document =
        read(&rss("<item><title>a<link>http://a.example/1<item><title>b</i></title></item>"));
    assert_eq!(titles(&document), ["a", "b"]);
    assert_eq!(document.items[0].link.as_deref(), Some("http://a.example/1"));
    assert!(document.problems.contains(&Problem::Nesting));
    let document = read("<rss version=2.0><channel><item><title>a</title></channel></rss>");
    assert_eq!((titles(&document), document.truncated), (vec!["a"], false));
}

#[test]
fn names_are_known_whatever_their_case_and_prefix() {
    let text = "<RSS VERSION='2.0'><CHANNEL><ITEM><TITLE>a</TITLE><PUBDATE>2004</PUBDATE></ITEM></CHANNEL></RSS>";
    let document = read(text);
    assert_eq!((titles(&document), document.items[0].published.is_some()), (vec!["a"], true));
    let text = "<x:feed xmlns:x='http://www.w3.org/2005/Atom'><x:entry><x:title>a</x:title></x:entry></x:feed>";
    assert_eq!(titles(&read(text)), ["a"]);
    let text = "<rss xmlns='http://nowhere.example/'><channel><item><title>a</title></item></channel></rss>";
    assert_eq!(titles(&read(text)), ["a"]);
    assert!(item("<dc:date>2004</dc:date>").updated.is_some());
}

#[test]
fn what_comes_before_the_declaration_is_skipped() {
    for junk in [
        "\n \n",
        "\u{feff}",
        "junk",
        "<!-- x -->",
        "<br />\n<b>Warning</b>: 'x' in y.php",
        "<html><body>no</body></html>",
    ] {
        let text = format!("{junk}<?xml version='1.0'?>{}", rss("<item/>"));
        assert_eq!(read(&text).items.len(), 1, "{junk}");
    }
}

#[test]
fn a_byte_order_mark_behind_a_declaration_moves_nothing() {
    let text = format!("<?xml version=!le>\u{feff}{}", rss("<item><title>a</title></item>"));
    assert_eq!(titles(&read(&text)), ["a"]);
}

#[test]
fn entities_of_the_document_are_expanded() {
    let text = format!(
        "<!DOCTYPE rss [<!ENTITY a 'x'><!ENTITY b '&a;y'>]>{}",
        rss("<item><title>&b;</title></item>")
    );
    assert_eq!(titles(&read(&text)), ["xy"]);
}

#[test]
fn a_cut_keeps_what_was_complete() {
    let text = rss("<item><title>a</title></item><item><title>b</title><descr");
    let text = &text[..text.find("<descr").unwrap() + 4];
    let document = read(text);
    assert_eq!(titles(&document), ["a"]);
    assert!(document.truncated && document.problems.contains(&Problem::Truncated));
}

#[test]
fn a_base_is_not_lost_on_the_way() {
    let text = "<feed xml:base='http://a.example/'><entry xml:base='b/'><link href='c'/></entry><entry><link href='d'/></entry></feed>";
    let document = read(text);
    let links: Vec<_> = document.items.iter().filter_map(|item| item.link.as_deref()).collect();
    assert_eq!(links, ["http://a.example/b/c", "http://a.example/d"]);
}

#[test]
fn a_date_that_is_none_is_told_once() {
    let document =
        read(&rss("<item><pubDate>soon</pubDate></item><item><pubDate>later</pubDate></item>"));
    assert_eq!(document.problems, [Problem::Date("soon".to_owned())]);
}

#[test]
fn a_page_names_its_feeds() {
    let text = "<!DOCTYPE html><html><head><base href='/b/'><link rel=stylesheet href=x.css>
        <link rel='alternate' type='application/rss+xml' title='News' href='feed.xml'>
        <script>if (a < b && c > d) { '</x>' }</script>
        <link rel='alternate' type='application/feed+json' href='//c.example/f.json'></head><body>";
    let hints = Hints { base: Some("http://a.example/".to_owned()), ..Hints::default() };
    let Err(ParseError::Page { feeds }) = parse(text.as_bytes(), &hints) else { panic!("a page") };
    let urls: Vec<_> = feeds.iter().map(|feed| feed.url.as_str()).collect();
    assert_eq!(urls, ["http://a.example/b/feed.xml", "http://c.example/f.json"]);
    assert_eq!(feeds[0].title.as_deref(), Some("News"));
    let message = ParseError::Page { feeds }.to_string();
    assert!(message.contains("it names http://a.example/b/feed.xml"), "{message}");
}

#[test]
fn what_is_no_feed_is_said_in_words() {
    let refused = |text: &str| parse(text.as_bytes(), &Hints::default()).unwrap_err().to_string();
    assert_eq!(refused(" \n"), "the document is empty");
    assert_eq!(
        refused("<opml/>"),
        "the document is not a feed: it begins with the element `opml`, as no feed does"
    );
    assert_eq!(refused("hello"), "the document is not a feed: it has no elements and is no JSON");
    assert_eq!(
        refused("{\"a\":1}"),
        "the document is not a feed: it is JSON, but has no `version` of JSON Feed"
    );
    assert!(refused("{\"a\":").contains("begins like JSON"));
    assert_eq!(
        refused("<html><body>x"),
        "the document is a web page, not a feed, and it names none"
    );
}
