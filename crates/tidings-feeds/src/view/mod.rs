//! URIs of the feeds: parsing and writing; pure.

mod item;
mod parameters;
mod render;
mod search;
#[cfg(test)]
mod tests;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use tidings_core::ResourceUri;
use tidings_server::AnswerError;

pub(crate) use self::item::ReadableItem;
pub(crate) use self::parameters::Filter;
pub(crate) use self::render::{feed, items, meta, summary};
pub(crate) use self::search::Search;

/// The prefix of every URI of the feeds.
const FEED: &str = "feeds://feed/";
/// Their scheme.
const SCHEME: &str = "feeds:";
/// All feeds.
pub(crate) const ALL: &str = "feeds://all";
/// The filtered views.
pub(crate) const TEMPLATE: &str =
    "feeds://feed/{feedId}/items{?since,until,limit,offset,category,author,search}";

/// The prefix and the suffix of every URI of a folder.
const FOLDER: &str = "feeds://folder/";
const ITEMS: &str = "/items";
/// All of them.
pub(crate) const FOLDERS: &str = "feeds://folder/";
/// The filtered views of folders.
pub(crate) const FOLDER_TEMPLATE: &str =
    "feeds://folder/{folder}/items{?since,until,limit,offset,category,author,search}";

/// The subject of a URI.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum View {
    /// Every feed in short.
    All,
    /// One feed with all its items.
    Feed(String),
    /// Items of one feed.
    Items(String, Filter),
    /// The details of one feed.
    Meta(String),
    /// Items of the feeds in a folder.
    Folder(String, Filter),
}

impl View {
    /// Whether a URI could be one of a feed.
    pub(crate) fn is_ours(uri: &ResourceUri) -> bool {
        uri.as_ref().starts_with(SCHEME)
    }

    /// Its feed, if it has one.
    pub(crate) fn feed_id(&self) -> Option<&str> {
        match self {
            Self::All | Self::Folder(..) => None,
            Self::Feed(id) | Self::Items(id, _) | Self::Meta(id) => Some(id),
        }
    }

    /// Parses a URI.
    pub(crate) fn parse(uri: &ResourceUri) -> Result<Self, AnswerError> {
        let address = uri.without_query();
        let no_such = || {
            let details =
                "URI must follow pattern: feeds://all or feeds://feed/{feedId}[/items|/meta]";
            AnswerError::Malformed(details.to_owned())
        };
        let view = if address == ALL {
            Self::All
        } else if let Some(name) = address.strip_prefix(FOLDER) {
            let name = name.strip_suffix(ITEMS).filter(|name| !name.is_empty());
            let name = percent_decode_str(name.ok_or_else(no_such)?).decode_utf8();
            let name = name.map_err(|_| no_such())?.into_owned();
            let filter = Filter::parse(uri.query().unwrap_or_default())?;
            return Ok(Self::Folder(name, filter));
        } else {
            let rest = address.strip_prefix(FEED).ok_or_else(no_such)?;
            let (id, part) = match rest.split_once('/') {
                Some((id, part)) => (id, Some(part)),
                None => (rest, None),
            };
            if id.is_empty() {
                return Err(no_such());
            }
            match part {
                None => Self::Feed(id.to_owned()),
                Some("meta") => Self::Meta(id.to_owned()),
                Some("items") => {
                    let filter = Filter::parse(uri.query().unwrap_or_default())?;
                    return Ok(Self::Items(id.to_owned(), filter));
                }
                Some(_) => return Err(no_such()),
            }
        };
        match uri.query().filter(|query| !query.is_empty()) {
            Some(query) => Err(parameters::unwanted(query)),
            None => Ok(view),
        }
    }
}

/// The URI of the items of a folder.
pub(crate) fn folder_uri(name: &str) -> String {
    format!("{FOLDER}{}{ITEMS}", utf8_percent_encode(name, OUTSIDE))
}

/// Characters that are not escaped.
const OUTSIDE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The URI of a feed.
pub(crate) fn feed_uri(id: &str) -> String {
    format!("{FEED}{id}")
}

/// The URI of its items.
pub(crate) fn items_uri(id: &str) -> String {
    format!("{FEED}{id}/items")
}

/// The URI of its details.
pub(crate) fn meta_uri(id: &str) -> String {
    format!("{FEED}{id}/meta")
}
