//! Web pages in place of a feed: the feeds that they name.

use std::collections::HashMap;

use quick_xml::Reader as Events;
use quick_xml::events::Event;

use super::attributes::Attributes;
use super::entity::Entities;
use super::problem::Problems;
use super::{Found, Hints, ParseError, address};

/// How many feeds of one page are reported.
const FEEDS: usize = 100;

/// Media types of feeds.
const TYPES: &[&str] = &[
    "application/rss+xml",
    "application/atom+xml",
    "application/rdf+xml",
    "application/feed+json",
    "application/json",
    "application/x-rss+xml",
    "application/xml",
    "text/xml",
    "text/rss+xml",
    "text/atom+xml",
];

/// Whether a document that is not a feed is a page.
pub(super) fn looks_like_one(text: &str, doctype: &str) -> bool {
    let tags = ["<html", "<head", "<body", "<HTML", "<HEAD", "<BODY"];
    doctype.contains("html") || tags.iter().any(|tag| text.contains(tag))
}

/// Whether a document that begins like a page may contain a feed: some servers put error messages
/// before it.
pub(super) fn may_hold_feed(text: &str) -> bool {
    ["<rss", "<feed", "<rdf:RDF"].iter().any(|tag| text.contains(tag))
}

/// The error for a page: with its feeds, their addresses resolved.
pub(super) fn error(text: &str, hints: &Hints) -> ParseError {
    let (mut entities, mut problems) = (Entities::new(HashMap::new()), Problems::default());
    let mut base = hints.base.clone();
    let mut feeds = Vec::new();
    let mut events = Events::from_str(text);
    events.config_mut().check_end_names = false;
    events.config_mut().allow_unmatched_ends = true;
    events.config_mut().allow_dangling_amp = true;
    while let Ok(event) = events.read_event() {
        let (Event::Start(tag) | Event::Empty(tag)) = event else {
            if event == Event::Eof {
                break;
            }
            continue;
        };
        let name = tag.name();
        let name = name.as_ref();
        if feeds.len() == FEEDS || name.eq_ignore_ascii_case("body") && !feeds.is_empty() {
            break;
        }
        let is_base = name.eq_ignore_ascii_case("base");
        if !is_base && !name.eq_ignore_ascii_case("link") {
            continue;
        }
        let attributes = Attributes::new(&tag, name.len(), &mut entities, &mut problems);
        let Some(href) = attributes.text("href") else { continue };
        let url = address::join(base.as_deref(), &href);
        if is_base {
            base = Some(url);
            continue;
        }
        let kind = attributes.text("type").unwrap_or_default().to_ascii_lowercase();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        let rel = attributes.text("rel").unwrap_or_default().to_ascii_lowercase();
        let is = |word: &str| rel.split_whitespace().any(|part| part == word);
        if (is("alternate") || is("feed")) && TYPES.contains(&kind) || is("feed") && kind.is_empty()
        {
            feeds.push(Found { url, title: attributes.text("title"), kind: kind.to_owned() });
        }
    }
    ParseError::Page { feeds }
}
