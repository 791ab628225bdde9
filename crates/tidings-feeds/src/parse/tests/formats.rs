//! Documents as they should be, in every format.

use super::*;

#[track_caller]
fn check_format(text: &str, expected: &str) {
    assert_eq!(read(text).format.to_string(), expected);
}

#[test]
fn formats_are_told_apart() {
    let inner = "<channel><title>T</title></channel>";
    for version in ["0.90", "0.91", "0.92", "0.93", "0.94", "2.0"] {
        check_format(&format!("<rss version='{version}'>{inner}</rss>"), &format!("rss {version}"));
    }
    check_format(&format!("<rss>{inner}</rss>"), "rss");
    let netscape = "<!DOCTYPE rss PUBLIC '-//Netscape Communications//DTD RSS 0.91//EN' ''>";
    check_format(&format!("{netscape}<rss>{inner}</rss>"), "rss 0.91");
    let rdf = "xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'";
    check_format(
        &format!("<rdf:RDF {rdf} xmlns='http://purl.org/rss/1.0/'>{inner}</rdf:RDF>"),
        "rss 1.0",
    );
    let first = "http://my.netscape.com/rdf/simple/0.9/";
    check_format(&format!("<rdf:RDF {rdf} xmlns='{first}'>{inner}</rdf:RDF>"), "rss 0.90");
    check_format("<feed version='0.3' xmlns='http://purl.org/atom/ns#'/>", "atom 0.3");
    check_format("<feed xmlns='http://www.w3.org/2005/Atom'/>", "atom 1.0");
    check_format("<CHANNEL HREF='http://a.example/'/>", "cdf");
    check_format(r#"{"version":"https://jsonfeed.org/version/1.1","items":[]}"#, "json feed 1.1");
    check_format(r#"{"version":"https://jsonfeed.org/version/1","items":[]}"#, "json feed 1.0");
}

#[test]
fn everything_rss_says_of_itself_is_read() {
    let feed = read(&rss(
        "<description>D</description><link>http://a.example/</link><language>en</language>
         <copyright>C</copyright><generator>G</generator><ttl>60</ttl>
         <managingEditor>me@a.example (Me)</managingEditor><category domain='x'>c</category>
         <skipHours><hour>0</hour><hour>24</hour><hour>99</hour></skipHours>
         <skipDays><day>Monday</day></skipDays><pubDate>2004-01-01</pubDate>
         <lastBuildDate>2004-01-02</lastBuildDate>
         <image><url>i.png</url><title>no</title><link>http://no.example/</link></image>
         <textInput><title>no</title><link>http://no.example/</link></textInput>
         <atom:link rel='self' href='feed.xml'/><atom:link rel='hub' href='http://hub.example/'/>
         <sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>",
    ))
    .feed;
    assert_eq!((value(feed.title.as_ref()), value(feed.description.as_ref())), ("T", "D"));
    assert_eq!(feed.link.as_deref(), Some("http://a.example/"));
    assert_eq!(feed.self_link.as_deref(), Some("http://a.example/feed.xml"));
    assert_eq!(feed.hubs, ["http://hub.example/"]);
    assert_eq!(feed.image.as_deref(), Some("http://a.example/i.png"));
    assert_eq!(
        (feed.ttl, feed.skip_hours, feed.skip_days),
        (Some(60), vec![0, 0], vec!["monday".to_owned()])
    );
    assert_eq!((feed.update_period.as_deref(), feed.update_frequency), (Some("hourly"), Some(2)));
    assert_eq!(feed.authors[0].email.as_deref(), Some("me@a.example"));
    assert_eq!(
        (feed.categories[0].term.as_str(), feed.categories[0].scheme.as_deref()),
        ("c", Some("x"))
    );
    assert_eq!(feed.published.unwrap().to_string(), "2004-01-01T00:00:00Z");
    assert_eq!(feed.updated.unwrap().to_string(), "2004-01-02T00:00:00Z");
    assert_eq!((feed.language.as_deref(), feed.generator.as_deref()), (Some("en"), Some("G")));
}

#[test]
fn everything_rss_says_of_an_item_is_read() {
    let item = item(
        "<title>A &amp; B</title><link>http://a.example/1</link><guid isPermaLink='false'>g</guid>
         <description>&lt;p&gt;short</description><content:encoded><![CDATA[<p>long]]></content:encoded>
         <pubDate>Thu, 01 Jan 2004 00:00:00 GMT</pubDate><dc:creator>Me</dc:creator>
         <comments>http://a.example/1#c</comments><slash:comments>3</slash:comments>
         <wfw:commentRss>http://a.example/1.xml</wfw:commentRss>
         <enclosure url='http://a.example/1.mp3' type='audio/mpeg' length='9'/>
         <source url='http://b.example/'>B</source><georss:point>1.5 -2</georss:point>
         <itunes:duration>1:02:03</itunes:duration><itunes:episode>4</itunes:episode>
         <itunes:season>5</itunes:season><itunes:explicit>clean</itunes:explicit>
         <itunes:image href='http://a.example/1.png'/><category>c</category>
         <media:group><media:content url='http://a.example/1.mp4' width='3' duration='7'/>
         <media:title>film</media:title></media:group><thr:in-reply-to ref='urn:0'/>",
    );
    assert_eq!(
        (value(item.title.as_ref()), item.link.as_deref()),
        ("A & B", Some("http://a.example/1"))
    );
    assert_eq!((item.id.as_deref(), item.id_is_link), (Some("g"), Some(false)));
    assert_eq!(item.summary, Some(Text { value: "<p>short".to_owned(), kind: TextKind::Html }));
    assert_eq!(item.content, Some(Text { value: "<p>long".to_owned(), kind: TextKind::Html }));
    assert_eq!(item.published.unwrap().unix(), 1_072_915_200);
    assert_eq!(item.authors[0].name.as_deref(), Some("Me"));
    assert_eq!(
        (item.comments.as_deref(), item.comment_count),
        (Some("http://a.example/1#c"), Some(3))
    );
    assert_eq!(item.comments_feed.as_deref(), Some("http://a.example/1.xml"));
    assert_eq!(
        (item.enclosures[0].url.as_str(), item.enclosures[0].length),
        ("http://a.example/1.mp3", Some(9))
    );
    assert_eq!(item.source.unwrap().title.as_deref(), Some("B"));
    assert_eq!(item.place, Some(Place { latitude: 1.5, longitude: -2.0 }));
    assert_eq!((item.episode.duration, item.episode.number), (Some(3723), Some(4)));
    assert_eq!((item.episode.season, item.episode.explicit), (Some(5), Some(false)));
    assert_eq!(item.image.as_deref(), Some("http://a.example/1.png"));
    assert_eq!((item.media[0].title.as_deref(), item.media[0].duration), (Some("film"), Some(7)));
    assert_eq!(item.in_reply_to[0].id.as_deref(), Some("urn:0"));
    assert_eq!(item.categories[0].term, "c");
}

#[test]
fn atom_is_read() {
    let document = read(
        "<feed xmlns='http://www.w3.org/2005/Atom' xml:base='http://a.example/b/' xml:lang='de'>
         <title type='html'>A &amp;lt; B</title><id>urn:f</id><icon>i.ico</icon><logo>l.png</logo>
         <author><name>N</name><email>n@a.example</email><uri>n</uri></author>
         <entry xml:base='c/'><title>X</title><id>urn:1</id><link href='d'/>
         <link rel='enclosure' href='e.mp3' length='3'/><updated>2004-01-01T00:00:00Z</updated>
         <summary type='text'>a &lt; b</summary><contributor><name>H</name></contributor>
         <content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'>1 &lt; 2<br/><b>x</b></div></content>
         <category term='t' scheme='s' label='l'/>
         <source><title>S</title><id>urn:s</id><updated>2003-01-01</updated></source></entry></feed>",
    );
    let (feed, item) = (&document.feed, &document.items[0]);
    assert_eq!(feed.title, Some(Text { value: "A &lt; B".to_owned(), kind: TextKind::Html }));
    assert_eq!(
        (feed.icon.as_deref(), feed.image.as_deref()),
        (Some("http://a.example/b/i.ico"), Some("http://a.example/b/l.png"))
    );
    assert_eq!(feed.authors[0].uri.as_deref(), Some("http://a.example/b/n"));
    assert_eq!(feed.language.as_deref(), Some("de"));
    assert_eq!(
        (item.link.as_deref(), item.id.as_deref()),
        (Some("http://a.example/b/c/d"), Some("urn:1"))
    );
    assert_eq!(item.enclosures[0].url, "http://a.example/b/c/e.mp3");
    assert_eq!(item.summary, Some(Text { value: "a < b".to_owned(), kind: TextKind::Plain }));
    assert_eq!(value(item.content.as_ref()), "1 &lt; 2<br><b>x</b>");
    assert_eq!((value(item.title.as_ref()), item.contributors.len()), ("X", 1));
    assert_eq!(item.source.as_ref().unwrap().id.as_deref(), Some("urn:s"));
    assert_eq!(item.categories[0].label.as_deref(), Some("l"));
    assert!(document.problems.is_empty() && !document.truncated);
}

#[test]
fn the_modes_of_the_first_atom_are_read() {
    let title = |title: &str| {
        let text = format!("<feed version='0.3' xmlns='http://purl.org/atom/ns#'>{title}</feed>");
        read(&text).feed.title.unwrap().value
    };
    assert_eq!(title("<title mode='escaped' type='text/html'>a &lt;b></title>"), "a <b>");
    assert_eq!(title("<title mode='base64' type='text/html'>YSA8Yj4=</title>"), "a <b>");
    assert_eq!(title("<title mode='xml' type='text/html'>a <b>c</b></title>"), "a <b>c</b>");
}

#[test]
fn json_feeds_are_read() {
    let document = read(
        r#"{"version": "https://jsonfeed.org/version/1.1", "title": "T", "home_page_url": "http://a.example/",
        "items": [{"id": 2, "url": "/x", "content_html": "<p>", "date_published": "2004-01-01T00:00:00Z",
        "tags": ["a"], "authors": [{"name": "N"}], "attachments": [{"url": "y.mp3", "mime_type": "audio/mpeg"}]}]}"#,
    );
    let item = &document.items[0];
    assert_eq!((item.id.as_deref(), item.link.as_deref()), (Some("2"), Some("http://a.example/x")));
    assert_eq!((item.categories.len(), item.authors.len(), item.enclosures.len()), (1, 1, 1));
    assert!(item.published.is_some());
}

#[test]
fn ids_of_json_feeds_keep_their_digits() {
    let text = r#"{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": 184467440737095516161},
        {"id": 12345678901234567890}, {"id": 1.10}]}"#;
    let document = read(text);
    let ids: Vec<_> = document.items.iter().filter_map(|item| item.id.as_deref()).collect();
    assert_eq!(ids, ["184467440737095516161", "12345678901234567890", "1.10"]);
    assert_eq!(document.problems, []);
}

#[test]
fn entries_without_an_author_have_that_of_their_feed() {
    let name =
        |item: &Item| item.authors.first().and_then(|it| it.name.clone()).unwrap_or_default();
    let names = |document: &Document| document.items.iter().map(name).collect::<Vec<_>>();
    let person = |name: &str| format!("<author><name>{name}</name></author>");
    let source = format!("<source>{}</source>", person("c"));
    let text = format!(
        "<feed xmlns='http://www.w3.org/2005/Atom'><entry/><entry>{}</entry><entry>{source}</entry>
         <entry>{source}{}</entry>{}</feed>",
        person("b"),
        person("d"),
        person("a"),
    );
    let document = read(&text);
    assert_eq!(names(&document), ["a", "b", "c", "d"]);
    assert!(document.items.iter().all(|item| item.authors.len() == 1));
    let text = r#"{"version":"https://jsonfeed.org/version/1.1","authors":[{"name":"a"}],
        "items":[{"id":"1"},{"id":"2","authors":[{"name":"b"}]}]}"#;
    assert_eq!(names(&read(text)), ["a", "b"]);
    // Who answers for a channel did not write all of it.
    let text = rss("<managingEditor>a</managingEditor><dc:creator>a</dc:creator><item/>");
    assert_eq!(names(&read(&text)), [""]);
    // What is long is not copied into each of many.
    let text = format!("<feed>{}<entry/></feed>", person(&"x".repeat(10_000)));
    assert_eq!(names(&read(&text)), [""]);
}

#[test]
fn links_are_seen_from_the_base_the_hint_or_the_feed() {
    let text = rss("<item><link>x</link></item>");
    let hints = Hints { base: Some("http://a.example/b/f.xml".to_owned()), ..Hints::default() };
    let document = parse(text.as_bytes(), &hints).unwrap();
    assert_eq!(document.items[0].link.as_deref(), Some("http://a.example/b/x"));
    let text = rss("<link>http://c.example/d/</link><item><link>x</link></item>");
    assert_eq!(read(&text).items[0].link.as_deref(), Some("http://c.example/d/x"));
    assert_eq!(item("<link>x</link>").link.as_deref(), Some("x"));
}
