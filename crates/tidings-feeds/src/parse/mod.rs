//! Bytes to a feed: RSS, Atom, JSON Feed and CDF, valid and real ones.
//!
//! Bytes become text (`decode`), text becomes nearly XML (`clean`), and that is read as events
//! (`reader`) into one model, the [`Document`], for all formats. Nothing outside the model is
//! built, and every step takes time in proportion to the document. A fault affects only its own
//! place; the important ones are reported as a [`Problem`].

mod address;
mod attributes;
mod build;
mod clean;
mod decode;
mod document;
mod element;
mod entity;
mod json;
mod page;
mod problem;
mod reader;
mod rich;
mod space;
mod stack;

#[cfg(test)]
mod tests;

pub use self::document::{
    Category, Document, Enclosure, Episode, Feed, Format, Item, Link, Media, Origin, Person, Place,
    Reply, Text, TextKind,
};
pub use self::problem::Problem;

/// Facts about a document beside its bytes.
#[derive(Clone, Debug, Default)]
pub struct Hints {
    /// Its header `Content-Type`; its charset takes precedence over the document's own.
    pub content_type: Option<String>,
    /// Its URL, against which relative links are resolved.
    pub base: Option<String>,
}

/// Why a document is not a feed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseError {
    /// No bytes, or only spaces.
    #[error("the document is empty")]
    Empty,
    /// A web page, with the feeds that it names.
    #[error("the document is a web page, not a feed{}", names(feeds))]
    Page {
        /// Its feeds.
        feeds: Vec<Found>,
    },
    /// A list of feeds, which can be imported.
    #[error("the document is a list of feeds in OPML, not a feed")]
    List,
    /// Another document.
    #[error("the document is not a feed: {reason}")]
    NotAFeed {
        /// What it is instead, or what it lacks.
        reason: String,
    },
}

impl ParseError {
    fn without_feed(first: Option<&str>) -> Self {
        let reason = match first {
            Some(name) => {
                let name: String = name.chars().take(60).collect();
                format!("it begins with the element `{name}`, which no feed has")
            }
            None => "it has no elements and is not JSON".to_owned(),
        };
        Self::NotAFeed { reason }
    }
}

/// A feed that a page names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its address.
    pub url: String,
    /// Its title.
    pub title: Option<String>,
    /// Its media type.
    pub kind: String,
}

fn names(feeds: &[Found]) -> String {
    let urls: Vec<&str> = feeds.iter().take(5).map(|feed| feed.url.as_str()).collect();
    match (urls.is_empty(), feeds.len() > urls.len()) {
        (true, _) => ", and it names none".to_owned(),
        (false, false) => format!("; it names {}", urls.join(", ")),
        (false, true) => format!("; it names {} and others", urls.join(", ")),
    }
}

/// The text of any document, in any encoding.
pub(crate) fn text(bytes: &[u8], content_type: Option<&str>) -> String {
    let text = decode::decode(bytes, content_type, &mut problem::Problems::default());
    text.trim_start_matches('\u{feff}').to_owned()
}

/// A text with the references of HTML resolved.
pub(crate) fn unescaped(text: &str) -> std::borrow::Cow<'_, str> {
    entity::Entities::of_html().unescape(text)
}

/// Whether an address is relative.
pub(crate) fn is_relative(address: &str) -> bool {
    !address::is_absolute(address)
}

/// Resolves an address against a base.
pub(crate) fn joined(base: &str, address: &str) -> String {
    address::join(Some(base), address)
}

/// Reads a feed.
///
/// ```
/// use tidings_feeds::parse::{Hints, parse};
///
/// let bytes = b"<rss version=2.0><channel><title>R&D<item><title>caf&eacute;</title>";
/// let document = parse(bytes, &Hints::default())?;
/// assert_eq!(document.format.to_string(), "rss 2.0");
/// assert_eq!(document.feed.title.expect("a title").value, "R&D");
/// // The item had not ended when the document did.
/// assert!(document.truncated && document.items.is_empty());
/// # Ok::<(), tidings_feeds::parse::ParseError>(())
/// ```
///
/// # Errors
///
/// The bytes are not a feed. Problems of a feed are in [`Document::problems`].
pub fn parse(bytes: &[u8], hints: &Hints) -> Result<Document, ParseError> {
    let mut problems = problem::Problems::default();
    let text = decode::decode(bytes, hints.content_type.as_deref(), &mut problems);
    let text = text.trim_start_matches(['\u{feff}', '\0']).trim();
    if text.is_empty() {
        return Err(ParseError::Empty);
    }
    if text.starts_with('{') {
        return json::read(text, hints, problems);
    }
    let cleaned = clean::clean(text, &mut problems);
    reader::read(cleaned, hints, problems)
}
