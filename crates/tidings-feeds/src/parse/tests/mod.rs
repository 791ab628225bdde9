//! Whole documents: what is read of them.

mod faults;
mod formats;
mod laws;
mod limits;

use super::*;

#[track_caller]
fn read(text: &str) -> Document {
    parse(text.as_bytes(), &Hints::default()).unwrap()
}

/// An RSS 2.0 feed around some elements of a channel.
fn rss(inner: &str) -> String {
    format!("<rss version=\"2.0\"><channel><title>T</title>{inner}</channel></rss>")
}

/// The only item of an RSS 2.0 feed.
#[track_caller]
fn item(inner: &str) -> Item {
    let mut document = read(&rss(&format!("<item>{inner}</item>")));
    assert_eq!(document.items.len(), 1);
    document.items.remove(0)
}

/// The titles of the items.
fn titles(document: &Document) -> Vec<&str> {
    document
        .items
        .iter()
        .map(|item| item.title.as_ref().map_or("", |title| title.value.as_str()))
        .collect()
}

fn value(text: Option<&Text>) -> &str {
    text.map_or("", |text| text.value.as_str())
}
