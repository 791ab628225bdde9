//! Arguments of several tools: the choice of feeds and items.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::Inner;
use crate::store::{Listing, Marked};
use crate::tools::answer::{Answer, Refusal};
use crate::view::Filter;

/// The default number of items.
pub(crate) const USUAL: u32 = 20;
/// The highest number that every program reads exactly.
pub(crate) const HIGHEST: u64 = (1 << 53) - 1;
/// The maximum number of named feeds.
const FEEDS: usize = 100;

/// The chosen items.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Choice {
    #[serde(default)]
    pub(crate) feeds: Vec<String>,
    pub(crate) folder: Option<String>,
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
    pub(crate) category: Option<String>,
    pub(crate) author: Option<String>,
    pub(crate) search: Option<String>,
    #[serde(default)]
    pub(crate) only: Only,
    pub(crate) limit: Option<u32>,
    #[serde(default)]
    pub(crate) offset: u64,
}

/// The choice by marks.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Only {
    #[default]
    All,
    Unread,
    Starred,
}

impl Choice {
    /// Refuses arguments that choose items, for an answer without items.
    pub(crate) fn refuse_for_feeds(&self) -> Result<(), Refusal> {
        let only = match self.only {
            Only::All => None,
            Only::Unread => Some("unread"),
            Only::Starred => Some("starred"),
        };
        let given = [
            ("since", self.since.as_deref()),
            ("until", self.until.as_deref()),
            ("category", self.category.as_deref()),
            ("author", self.author.as_deref()),
            ("search", self.search.as_deref()),
            ("only", only),
        ];
        let first = given.into_iter().find_map(|(name, value)| Some((name, value?)));
        let details = "a list of feeds has no items to choose; leave it out, or choose another \
            `format`";
        first.map_or(Ok(()), |(name, value)| Err(Refusal::argument(name, value, details)))
    }

    /// The hint if nothing has the requested category, and it is the name of a folder.
    pub(crate) fn tell_folder(&self, inner: &Inner, total: u64, answer: &mut Answer) {
        let category = self.category.as_deref().filter(|_| total == 0 && self.folder.is_none());
        if let Some(category) = category.filter(|category| inner.keys_in(category).is_ok()) {
            answer.say(&format!(
                "No item has the category `{category}`, which is a folder of feeds: use `folder` \
                 for the items in it\n"
            ));
        }
    }

    /// The same for the store.
    pub(crate) fn listing(&self, inner: &Inner) -> Result<Listing, Refusal> {
        let named = [
            ("since", &self.since),
            ("until", &self.until),
            ("category", &self.category),
            ("author", &self.author),
            ("search", &self.search),
        ];
        let pairs = named.iter().filter_map(|(name, value)| Some((*name, value.as_deref()?)));
        let mut filter = Filter::of(pairs)?;
        filter.limit = Some(self.limit.unwrap_or(USUAL));
        filter.offset = self.offset;
        let marked = match self.only {
            Only::All => Marked::Any,
            Only::Unread => Marked::Unread,
            Only::Starred => Marked::Starred,
        };
        let feeds = keys_of(inner, &self.feeds, self.folder.as_deref())?;
        Ok(Listing { feeds, filter, marked, ..Listing::default() })
    }
}

/// The keys of feeds by their ids.
pub(crate) fn keys(inner: &Inner, argument: &str, ids: &[String]) -> Result<Vec<i64>, Refusal> {
    let board = inner.board();
    let key = |id: &String| {
        board.get(id).map(|row| row.key).ok_or_else(|| Refusal::no_feed(argument, id))
    };
    ids.iter().map(key).collect()
}

/// The keys of feeds by their ids, and of those in a folder; with both, the named feeds in the
/// folder.
pub(crate) fn keys_of(
    inner: &Inner,
    ids: &[String],
    folder: Option<&str>,
) -> Result<Vec<i64>, Refusal> {
    let named = keys(inner, "feeds", ids)?;
    let Some(folder) = folder else { return Ok(named) };
    let mut inside =
        inner.keys_in(folder).map_err(|why| Refusal::argument("folder", folder, &why))?;
    if !named.is_empty() {
        inside.retain(|key| named.contains(key));
    }
    if inside.is_empty() {
        return Err(Refusal::argument("folder", folder, "none of `feeds` is in it"));
    }
    Ok(inside)
}

/// The properties of a choice.
pub(crate) fn properties() -> Value {
    json!({
        "feeds": {
            "type": "array", "items": { "type": "string" }, "maxItems": FEEDS,
            "description": "Ids of feeds; default: all feeds",
        },
        "folder": folder(),
        "since": date("From this day or moment on, as 2026-01-31 or 2026-01-31T09:30:00Z"),
        "until": date("Up to and including this day or moment"),
        "category": word("Only items with this category; case and spaces do not matter"),
        "author": word("Only items by an author with this name or mail address"),
        "only": {
            "enum": ["all", "unread", "starred"], "default": "all",
            "description": "Only items that are not marked as read, or that are starred",
        },
        "limit": limit(USUAL),
        "offset": offset(),
    })
}

/// Which folder.
pub(crate) fn folder() -> Value {
    word("Only feeds in this folder, or in one inside it, as `all_syndication_feeds` says")
}

pub(crate) fn limit(usual: u32) -> Value {
    json!({
        "type": "integer", "minimum": 0, "maximum": 1000, "default": usual,
        "description": "At most this many items; 0 is the default",
    })
}

pub(crate) fn offset() -> Value {
    json!({
        "type": "integer", "minimum": 0, "maximum": HIGHEST, "default": 0,
        "description": "Skip this many items",
    })
}

/// A text that is not empty.
pub(crate) fn word(description: &str) -> Value {
    json!({ "type": "string", "minLength": 1, "maxLength": 1000, "description": description })
}

fn date(description: &str) -> Value {
    word(description)
}
