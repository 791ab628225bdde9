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
fn titles_survive_references_without_an_end() {
    check_title("a &amp b &copy c &eacute", "a & b \u{a9} c é");
    check_title("&copy a; b &laquo;", "\u{a9} a; b «");
    check_title("R&D &nosuch x?a=1&copy=2", "R&D &nosuch x?a=1&copy=2");
    check_title("<![CDATA[a &amp b]]>", "a &amp b");
    let text =
        "<feed><entry><title type='xhtml'><b>x &lt y</b></title><category>a &amp b</category>
        <link>http://a.example/?a&copy</link></entry></feed>";
    let entry = read(text).items.remove(0);
    assert_eq!(value(entry.title.as_ref()), "<b>x &lt; y</b>");
    assert_eq!(entry.categories[0].term, "a & b");
    assert_eq!(entry.link.as_deref(), Some("http://a.example/?a&copy"));
    // As in HTML that is read later.
    let text = item("<description>a &amp b</description>");
    assert_eq!(value(text.summary.as_ref()), "a &amp b");
    assert_eq!(unescaped("a &amp b?c&copy=1 &copy"), "a & b?c&copy=1 \u{a9}");
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
fn an_entry_begins_though_a_text_of_xhtml_has_not_ended() {
    let text = "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>x</p>";
    for end in ["", "</div>", "</div></content>"] {
        let entry = |title: &str| {
            format!(
                "<entry xmlns:d='http://purl.org/dc/elements/1.1/'><title>{title}</title>\
                <d:creator>e</d:creator>{text}"
            )
        };
        let whole = format!("{}</div></content></entry>", entry("c"));
        let text = format!(
            "<feed xmlns='http://www.w3.org/2005/Atom'>{}{end}{}{end}{whole}</feed>",
            entry("a"),
            entry("b"),
        );
        let document = read(&text);
        assert_eq!(titles(&document), ["a", "b", "c"], "{end}");
        assert!(document.items.iter().all(|item| item.authors.len() == 1), "{end}");
        assert!(document.items.iter().all(|item| value(item.content.as_ref()).contains('x')));
    }
}

#[test]
fn an_item_in_a_text_of_xhtml_is_none_where_items_are_called_otherwise() {
    let document = read(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry><content type='xhtml'>
         <div xmlns='http://www.w3.org/1999/xhtml'>a <item>b</item></div></content></entry></feed>",
    );
    assert_eq!(document.items.len(), 1);
    assert_eq!(value(document.items[0].content.as_ref()), "a <item>b</item>");
}

/// Every element of HTML that many leave open: two hundred of them once swallowed the ends of all
/// that they were in.
#[test]
fn many_tags_without_an_end_cost_no_later_item() {
    for tag in ["br", "p", "li", "div", "font", "BR", "P"] {
        let lines = format!("line<{tag}>").repeat(300);
        let first = format!("<item><title>0</title><description>{lines}</description></item>");
        let others: String = (1..10).fold(String::new(), |others, number| {
            others + &format!("<item><title>{number}</title></item>")
        });
        let document = read(&rss(&(first + &others)));
        assert_eq!(titles(&document).len(), 10, "{tag}");
        assert!(!document.truncated);
        let text = value(document.items[0].summary.as_ref());
        assert_eq!(text.matches("line").count(), 300, "{tag}");
        // Without the end of the text, the end of the item will do; without that, the next item.
        for end in ["</item>", ""] {
            let document = read(&rss(&format!("<item><description>{lines}{end}{others}")));
            assert_eq!(titles(&document).len(), 10, "{tag} {end}");
        }
    }
    let document = read(&rss("<item><description>a<br></br>b<hr/>c</description></item>"));
    assert_eq!(value(document.items[0].summary.as_ref()), "a<br>b<hr>c");
    assert_eq!(document.problems, []);
}

#[test]
fn a_section_without_an_end_costs_no_later_item() {
    let others = "<item><title><![CDATA[b]]></title></item><item><title>c</title></item>";
    for end in ["]]</title>", "]>\n</title>", "</title>", "]]", ""] {
        let broken = format!("<item><title><![CDATA[a &amp; <b>{end}<link>x</link></item>");
        for others in [others, &others[41..]] {
            let document = read(&rss(&format!("{broken}{others}")));
            let found = titles(&document);
            assert_eq!(found[found.len() - 1], "c", "{end}");
            assert_eq!(found.len(), 1 + others.matches("<item>").count(), "{end}");
            assert!(!document.truncated);
        }
        if end.contains("/title") {
            let document = read(&rss(&broken));
            assert_eq!(titles(&document), ["a &amp; <b>"], "{end}");
            assert_eq!(document.items[0].link.as_deref(), Some("x"));
        }
    }
    check_title(
        "<![CDATA[a[b[1]]</code> <![CDATA[ </title ]]>",
        "a[b[1]]</code> <![CDATA[ </title",
    );
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
fn a_document_type_in_a_text_costs_no_item() {
    let text = rss("<item><title>a</title><description>b <!DOCTYPE c [ d</description></item>
        <item><title>e</title></item>");
    let document = read(&text);
    assert_eq!((titles(&document), document.truncated), (vec!["a", "e"], false));
    assert_eq!(value(document.items[0].summary.as_ref()), "b");
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
fn invalid_json_is_refused_with_the_place_of_the_fault() {
    let head = r#"{"version":"https://jsonfeed.org/version/1.1","title":"T","items":["#;
    for rest in [r#"{"id":"1"},{"id":"2","title":"b"#, r#"{"id":"1"},]}"#, r#"{"id" "1"}]}"#] {
        let error = parse(format!("{head}{rest}").as_bytes(), &Hints::default()).unwrap_err();
        assert!(error.to_string().contains("line 1 column"), "{error}");
    }
}

#[test]
fn a_base_is_not_lost_on_the_way() {
    let text = "<feed xml:base='http://a.example/'><entry xml:base='b/'><link href='c'/></entry><entry><link href='d'/></entry></feed>";
    let document = read(text);
    let links: Vec<_> = document.items.iter().filter_map(|item| item.link.as_deref()).collect();
    assert_eq!(links, ["http://a.example/b/c", "http://a.example/d"]);
}

#[test]
fn texts_come_with_what_their_addresses_are_relative_to() {
    let text = "<feed xml:base='http://a.example/'><entry xml:base='b/'><summary>x</summary>
        <content xml:base='c/?d#e'>x</content></entry><entry><summary>x</summary></entry><entry/></feed>";
    let bases = |document: &Document| {
        document.items.iter().map(|item| item.base.clone()).collect::<Vec<_>>()
    };
    let some = |base: &str| Some(base.to_owned());
    let expected = [some("http://a.example/b/c/"), some("http://a.example/"), None];
    assert_eq!(bases(&read(text)), expected);
    let text = rss("<link>http://b.example/</link><item><description>x</description></item>");
    assert_eq!(bases(&read(&text)), [some("http://b.example/")]);
    let hints = Hints { base: some("http://c.example/f?token=1"), ..Hints::default() };
    let document = parse(text.as_bytes(), &hints).unwrap();
    assert_eq!(bases(&document), [some("http://c.example/f")]);
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
        refused("<wml/>"),
        "the document is not a feed: it begins with the element `wml`, which no feed has"
    );
    for list in ["<opml/>", "<?xml version='1.0'?><OPML><head/><body><outline/></body></OPML>"] {
        assert_eq!(refused(list), "the document is a list of feeds in OPML, not a feed");
    }
    assert_eq!(refused("hello"), "the document is not a feed: it has no elements and is not JSON");
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

/// A post about feeds: what it quotes is not what it is in.
#[test]
fn a_section_that_ends_with_its_element_is_left_as_it_is() {
    let document = read(
        "<rss version='2.0'><channel><item><title>A</title><description><![CDATA[Each ends with \
         </item> and has <![CDATA[ in it]]></description><link>http://a.org/</link></item>\
         <item><title>B</title></item></channel></rss>",
    );
    assert_eq!(document.items[0].link.as_deref(), Some("http://a.org/"));
    assert_eq!((document.items.len(), document.problems), (2, vec![]));
}

#[test]
fn a_section_without_an_end_behind_markup_costs_nothing_else() {
    let document = read(
        "<rss version='2.0'><channel><item><description><b>x</b> <![CDATA[lost </description>\
         <title>A</title><link>http://a.org/</link></item></channel></rss>",
    );
    let title = document.items[0].title.as_ref().map(|title| title.value.as_str());
    assert_eq!((title, document.items[0].link.as_deref()), (Some("A"), Some("http://a.org/")));
}

/// Names that HTML uses too.
#[test]
fn an_element_of_another_kind_keeps_what_is_in_it() {
    for name in ["track", "embed", "input", "source", "param"] {
        let inner = format!("<{name}><title>Inner</title></{name}>");
        let document = read(&format!(
            "<rss version='2.0'><channel><item>{inner}<title>Real</title></item></channel></rss>"
        ));
        let title = document.items[0].title.as_ref().map(|title| title.value.as_str());
        assert_eq!(title, Some("Real"), "{name}");
    }
}

#[test]
fn json_with_a_fault_before_every_item_says_what_is_wrong() {
    let text = r#"{"version":"https://jsonfeed.org/version/1","title":"t","items":[{"id":"1","attachments":[{"url":"u","size_in_bytes":1e999}]},{"id":"2"}]}"#;
    let error = parse(text.as_bytes(), &Hints::default()).unwrap_err().to_string();
    assert!(error.contains("number out of range"), "{error}");
}

#[test]
fn letters_that_were_read_are_not_called_lost() {
    let text = b"<?xml version='1.0' encoding='us-ascii'?><rss version='2.0'><channel>\
        <title>caf\xe9 \x93q\x94</title></channel></rss>";
    let document = parse(text, &Hints::default()).unwrap();
    assert_eq!(value(document.feed.title.as_ref()), "caf\u{e9} \u{201c}q\u{201d}");
    let declared = "us-ascii".to_owned();
    assert_eq!(document.problems, [Problem::Encoding { declared, used: "windows-1252" }]);
}

#[test]
fn the_text_of_a_link_goes_before_its_attributes() {
    let link = |written: &str| {
        read(&rss(&format!("<item>{written}</item>"))).items[0].link.clone().unwrap_or_default()
    };
    assert_eq!(
        link("<link uri='http://a.example/x'>http://a.example/y</link>"),
        "http://a.example/y"
    );
    assert_eq!(link("<link uri='http://a.example/x'/>"), "http://a.example/x");
    assert_eq!(link("<link url='http://a.example/x'></link>"), "http://a.example/x");
}
