//! Laws of every feed: writing and reading it changes nothing, and a cut loses only the rest.

use proptest::prelude::*;
use tidings_store::date::Moment;

use super::*;

/// What the writers below write of an item.
#[derive(Clone, Debug)]
struct Sample {
    id: String,
    title: String,
    link: String,
    content: String,
    published: i64,
    author: String,
    term: String,
}

fn sample() -> impl Strategy<Value = Sample> {
    // No `€`: `é€€` alone is also how 退 looks after one conversion too many, and read as that.
    let text = "[ -~àéñßΩжあ中&<>\"']{0,24}";
    let word = "[a-z]{1,8}";
    let published = -10_000_000_000_i64..100_000_000_000;
    (word, text, word, text, published, word, text).prop_map(
        |(id, title, path, content, published, author, term)| Sample {
            id: format!("urn:x:{id}"),
            title: title.trim().to_owned(),
            link: format!("http://a.example/{path}?a=1&b=2"),
            content: content.trim().to_owned(),
            published,
            author,
            term: term.trim().to_owned(),
        },
    )
}

fn quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

fn date(sample: &Sample) -> Moment {
    Moment::from_unix(sample.published).unwrap()
}

fn as_rss(samples: &[Sample]) -> String {
    let items = samples.iter().map(|sample| {
        format!(
            "<item><guid isPermaLink=\"false\">{}</guid><title>{}</title><link>{}</link>\
             <description>{}</description><pubDate>{}</pubDate><author>{}</author>\
             <category>{}</category></item>\n",
            quoted(&sample.id),
            quoted(&sample.title),
            quoted(&sample.link),
            quoted(&sample.content),
            date(sample),
            quoted(&sample.author),
            quoted(&sample.term),
        )
    });
    rss(&items.collect::<String>())
}

fn as_atom(samples: &[Sample]) -> String {
    let entries = samples.iter().map(|sample| {
        format!(
            "<entry><id>{}</id><title type=\"text\">{}</title><link href=\"{}\"/>\
             <content type=\"html\">{}</content><published>{}</published>\
             <author><name>{}</name></author><category term=\"{}\"/></entry>\n",
            quoted(&sample.id),
            quoted(&sample.title),
            quoted(&sample.link),
            quoted(&sample.content),
            date(sample),
            quoted(&sample.author),
            quoted(&sample.term),
        )
    });
    let entries: String = entries.collect();
    format!("<feed xmlns=\"http://www.w3.org/2005/Atom\"><title>T</title>{entries}</feed>")
}

fn as_json(samples: &[Sample]) -> String {
    let items = samples.iter().map(|sample| {
        let item = serde_json::json!({
            "id": sample.id,
            "title": sample.title,
            "url": sample.link,
            "content_html": sample.content,
            "date_published": date(sample).to_string(),
            "authors": [{ "name": sample.author }],
            "tags": [sample.term],
        });
        // The end of an item is told from all others by the line it is on.
        item.to_string().trim_end_matches('}').to_owned() + "\n}"
    });
    let items: Vec<String> = items.collect();
    let items = items.join(",");
    format!(
        "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":\"T\",\"items\":[{items}]}}"
    )
}

fn check(sample: &Sample, item: &Item) {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let said = |text: &Option<Text>| text.as_ref().map(|text| text.value.clone());
    assert_eq!(item.id.as_deref(), Some(sample.id.as_str()));
    assert_eq!(said(&item.title), some(&sample.title));
    assert_eq!(item.link.as_deref(), Some(sample.link.as_str()));
    assert_eq!(said(&item.content).or(said(&item.summary)), some(&sample.content));
    assert_eq!(item.published, Some(date(sample)));
    assert_eq!(item.authors[0].name.as_deref(), Some(sample.author.as_str()));
    let terms: Vec<_> = item.categories.iter().map(|category| category.term.as_str()).collect();
    assert_eq!(terms, some(&sample.term).as_deref().into_iter().collect::<Vec<_>>());
}

proptest! {
    #[test]
    fn what_is_written_is_read(samples in prop::collection::vec(sample(), 0..5)) {
        for text in [as_rss(&samples), as_atom(&samples), as_json(&samples)] {
            let document = read(&text);
            prop_assert_eq!(document.items.len(), samples.len());
            prop_assert!(document.problems.is_empty(), "{:?}", document.problems);
            for (sample, item) in samples.iter().zip(&document.items) {
                check(sample, item);
            }
        }
    }

    #[test]
    fn a_cut_anywhere_keeps_the_items_before_it(
        samples in prop::collection::vec(sample(), 1..4), share in 0.0..1.0_f64, is_atom: bool,
    ) {
        let (text, end) = if is_atom {
            (as_atom(&samples), "</entry>")
        } else {
            (as_rss(&samples), "</item>")
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a length")]
        let cut = (text.len() as f64 * share) as usize;
        let bytes = &text.as_bytes()[..cut];
        let complete = String::from_utf8_lossy(bytes).matches(end).count();
        if let Ok(document) = parse(bytes, &Hints::default()) {
            prop_assert!(document.truncated);
            prop_assert_eq!(document.items.len(), complete);
            for (sample, item) in samples.iter().zip(&document.items) {
                check(sample, item);
            }
        } else {
            prop_assert_eq!(complete, 0);
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), charset in "[a-z0-9-]{0,12}") {
        let hints = Hints { content_type: Some(format!("text/xml; charset={charset}")), base: None };
        let _ = parse(&bytes, &hints);
        let _ = parse(&[b"<rss><channel><item><title>", bytes.as_slice()].concat(), &hints);
    }
}
