//! Benchmark of parsing, beside another parser and beside the floor.
//!
//! The documents have a thousand items with HTML; the other reader is `feed-rs` without its cleaning
//! of HTML, and the floor is the events of `quick-xml` alone, which tell neither what they mean nor
//! what is wrong.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use quick_xml::Reader;
use quick_xml::events::Event;
use tidings_feeds::parse::{Hints, parse};

use crate::table::{Row, median};

const ITEMS: usize = 1_000;
/// The share of the other reader's speed that is enough.
const TARGET: f64 = 0.6;

/// One row for each kind of document.
pub(crate) fn rows(rounds: usize) {
    for (name, document) in [
        ("rss, quoted", rss(Html::Quoted)),
        ("rss, cdata", rss(Html::Section)),
        ("atom, quoted", atom()),
    ] {
        let [mut ours, mut other, mut floor] = [const { Vec::new() }; 3];
        // They take turns, so that whatever else the machine does falls on all.
        for _ in 0..rounds {
            ours.push(time(|| items_of_ours(&document)));
            other.push(time(|| items_of_other(&document)));
            floor.push(time(|| events(&document)));
        }
        let (ours, other) = (median(&mut ours), median(&mut other));
        let speed = other / ours;
        Row {
            what: &format!("parse {ITEMS} items, {name}, {} KiB", document.len() / 1024),
            ours,
            floor: Some(median(&mut floor)),
            peer: Some(other),
            allowed: &format!("≥ {TARGET} × feed-rs; is {speed:.2} ×"),
            is_met: speed >= TARGET,
        }
        .print();
    }
}

fn time(work: impl Fn() -> usize) -> f64 {
    let start = Instant::now();
    let found = black_box(work());
    let elapsed = start.elapsed().as_secs_f64() * 1000.0;
    assert!(found >= ITEMS, "{found} of {ITEMS}");
    elapsed
}

fn items_of_ours(document: &str) -> usize {
    parse(document.as_bytes(), &Hints::default()).map_or(0, |document| document.items.len())
}

fn items_of_other(document: &str) -> usize {
    feed_rs::parser::parse(document.as_bytes()).map_or(0, |feed| feed.entries.len())
}

fn events(document: &str) -> usize {
    let mut reader = Reader::from_str(document);
    let mut count = 0;
    while let Ok(event) = reader.read_event() {
        if event == Event::Eof {
            break;
        }
        count += 1;
    }
    count
}

#[derive(Clone, Copy)]
enum Html {
    Quoted,
    Section,
}

/// Two paragraphs and a picture.
fn html(number: usize) -> String {
    format!(
        "<p>Item <b>{number}</b> &amp; <a href=\"http://a.example/{number}?a=1&amp;b=2\">more</a>. \
         {words}</p><p><img src=\"http://a.example/{number}.png\" alt=\"\"> {words}</p>",
        words = "Words that say nothing in particular, some of them naïve. ".repeat(8),
    )
}

fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn rss(way: Html) -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\" \
        xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" \
        xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel><title>Bench</title>\
        <link>http://a.example/</link><description>A feed</description>\n"
        .to_owned();
    for number in 0..ITEMS {
        let content = match way {
            Html::Quoted => quoted(&html(number)),
            Html::Section => format!("<![CDATA[{}]]>", html(number)),
        };
        let _ = writeln!(
            text,
            "<item><title>Item {number} &amp; more</title><link>http://a.example/{number}</link>\n\
             <guid isPermaLink=\"false\">urn:item:{number}</guid><dc:creator>Someone</dc:creator>\n\
             <pubDate>Thu, 01 Jan 2004 19:48:{:02} GMT</pubDate><category>news</category>\n\
             <description>In short</description><content:encoded>{content}</content:encoded></item>",
            number % 60,
        );
    }
    text + "</channel></rss>\n"
}

fn atom() -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
        <feed xmlns=\"http://www.w3.org/2005/Atom\"><title>Bench</title><id>urn:bench</id>\
        <updated>2004-01-01T00:00:00Z</updated>\n"
        .to_owned();
    for number in 0..ITEMS {
        let _ = writeln!(
            text,
            "<entry><title type=\"html\">Item {number} &amp;amp; more</title><id>urn:item:{number}</id>\n\
             <link rel=\"alternate\" type=\"text/html\" href=\"http://a.example/{number}\"/>\n\
             <updated>2004-01-01T19:48:{:02}Z</updated><author><name>Someone</name></author>\n\
             <category term=\"news\"/><content type=\"html\">{}</content></entry>",
            number % 60,
            quoted(&html(number)),
        );
    }
    text + "</feed>\n"
}
