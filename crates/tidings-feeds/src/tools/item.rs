//! Items in answers of tools: as in resources, with an id and marks, within the requested length.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};

use crate::Inner;
use crate::html::{self, TextFormat};
use crate::store::{Enclosure, Kept, Person};
use crate::tools::answer::{NO_INSTRUCTION, of_others, shortened};
use crate::tools::budget::{Budget, LeftOut, Room};
use crate::tools::describe::shape;

/// The longest title and address, in bytes, because feeds may contain anything.
const TITLE: usize = 300;
const ADDRESS: usize = 1_000;
/// How many authors, categories and files of one item are shown.
const EACH: usize = 10;
/// The longest name of one of them.
const NAME: usize = 100;

/// The shown length of an item's texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Texts {
    pub(crate) format: TextFormat,
    /// The maximum number of characters of its description.
    pub(crate) description: usize,
    /// The maximum of its content; `None` for no content.
    pub(crate) content: Option<usize>,
    /// Whether the beginning of its content replaces a missing description.
    pub(crate) stands_in: bool,
}

impl Texts {
    /// A few lines of the description, or of the content if there is none.
    pub(crate) const BRIEF: Self =
        Self { format: TextFormat::Text, description: 300, content: None, stands_in: true };

    /// The same, so that one item does not fill the answer.
    pub(crate) fn within(self, bytes: usize) -> Self {
        let most = bytes / 2;
        let content = self.content.map(|content| content.min(most));
        Self { description: self.description.min(most / 2), content, ..self }
    }
}

/// An item in an answer.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ShownItem {
    pub(crate) id: String,
    pub(crate) feed_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) published: Option<String>,
    /// Without a publication date.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) updated: Option<String>,
    /// Without a date of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) seen: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) authors: Vec<Person>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) categories: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) guid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) image: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) enclosures: Vec<Enclosure>,
    pub(crate) read: bool,
    pub(crate) starred: bool,
    /// Other feeds that have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) also_in: Vec<String>,
    /// The place of the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) snippet: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<String>,
    /// Whether a text was cut.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_cut: bool,
}

/// The ids of feeds by their keys.
pub(crate) type Names = HashMap<i64, String>;

impl Inner {
    pub(crate) fn names(&self) -> Names {
        self.board().rows().map(|row| (row.key, row.id.clone())).collect()
    }
}

impl ShownItem {
    /// An item in an answer; its texts take time.
    pub(crate) fn of(kept: &Kept, names: &Names, texts: Texts) -> Self {
        let mut item = Self::without_texts(kept, names);
        let entry = &kept.entry;
        let mut show = |source: &Option<String>, most: usize| {
            let shown = html::shown(source.as_deref()?, entry.base.as_deref(), texts.format, most);
            item.is_cut |= shown.is_cut;
            Some(shown.text).filter(|text| !text.is_empty())
        };
        let description = show(&entry.description, texts.description);
        let stands_in = texts.stands_in && description.is_none();
        let most = texts.content.or(stands_in.then_some(texts.description));
        let content = most.and_then(|most| show(&entry.content, most));
        if texts.format == TextFormat::Markdown {
            item.title = item.title.as_deref().map(html::as_markdown);
        }
        Self { description, content, ..item }
    }

    pub(crate) fn without_texts(kept: &Kept, names: &Names) -> Self {
        let entry = &kept.entry;
        let short = |text: &Option<String>, most: usize| {
            text.as_deref().map(|text| shortened(text, most).into_owned())
        };
        // A cut address leads nowhere.
        let address = |text: &Option<String>| text.clone().filter(|text| text.len() <= ADDRESS);
        let person = |person: &Person| Person {
            name: short(&person.name, NAME),
            email: short(&person.email, NAME),
        };
        let feed_id = names.get(&kept.feed).cloned().unwrap_or_default();
        let enclosures = entry.enclosures.iter().filter(|it| it.url.len() <= ADDRESS);
        // Shown if it is the only date, as in the resources.
        let updated = entry.updated.filter(|_| entry.published.is_none());
        let has_no_date = entry.published.or(entry.updated).is_none();
        Self {
            id: id(&feed_id, kept.key),
            feed_id,
            title: short(&entry.title, TITLE),
            link: address(&entry.link),
            published: entry.published.map(|moment| moment.to_string()),
            updated: updated.map(|moment| moment.to_string()),
            seen: has_no_date.then(|| kept.moment.to_string()),
            authors: entry.authors.iter().take(EACH).map(person).collect(),
            categories: entry
                .categories
                .iter()
                .take(EACH)
                .map(|name| shortened(name, NAME).into_owned())
                .collect(),
            guid: address(&entry.guid),
            image: address(&entry.image),
            enclosures: enclosures.take(EACH).cloned().collect(),
            read: kept.read,
            starred: kept.starred,
            ..Self::default()
        }
    }

    /// The same in the shortest form, for lack of room.
    fn brief(self) -> Self {
        Self {
            title: self.title.map(|title| shortened(&title, TITLE / 2).into_owned()),
            link: self.link.filter(|link| link.len() <= ADDRESS / 4),
            published: self.published,
            updated: self.updated,
            seen: self.seen,
            read: self.read,
            starred: self.starred,
            id: self.id,
            feed_id: self.feed_id,
            is_cut: true,
            ..Self::default()
        }
    }

    /// The same for people.
    pub(crate) fn write(&self, text: &mut String) {
        let title = self.title.as_deref().unwrap_or("(no title)");
        let seen = || self.seen.as_ref().map(|seen| format!("first seen {seen}"));
        let when = self.published.clone().or_else(|| self.updated.clone()).or_else(seen);
        let _ = writeln!(text, "- {title}");
        let mut line = when.unwrap_or_default();
        for (flag, word) in [(self.read, " · read"), (self.starred, " · starred")] {
            line.push_str(if flag { word } else { "" });
        }
        let _ = writeln!(text, "  {line} · {}", self.id);
        if let Some(link) = &self.link {
            let _ = writeln!(text, "  {link}");
        }
        let texts = [&self.snippet, &self.description, &self.content];
        for line in texts.into_iter().flatten().flat_map(|text| text.lines()) {
            let _ = writeln!(text, "  {line}");
        }
    }
}

/// The items that fit, in order. If the first does not fit, it is shown in the shortest form, so
/// there is always one.
pub(crate) fn fitting(room: &mut Room, items: impl Iterator<Item = ShownItem>) -> Vec<ShownItem> {
    let mut fitting = Vec::new();
    for item in items {
        if room.take(&item) {
            fitting.push(item);
            continue;
        }
        let brief = item.brief();
        if fitting.is_empty() && room.take(&brief) {
            fitting.push(brief);
        }
        break;
    }
    fitting
}

/// A list of items in an answer.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ItemList {
    pub(crate) items: Vec<ShownItem>,
    /// How many match.
    pub(crate) total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) left_out: Option<LeftOut>,
}

impl ItemList {
    /// As many as fit into the budget, of a list that continues after `offset`.
    pub(crate) fn new(
        budget: Budget,
        items: impl Iterator<Item = ShownItem>,
        offset: u64,
        total: u64,
    ) -> Self {
        let items = fitting(&mut budget.room(), items);
        let next = offset.saturating_add(items.len() as u64);
        let left_out = LeftOut::new(total.saturating_sub(next), || {
            if next == offset {
                return "ask again with more `maxTokens`".to_owned();
            }
            format!(
                "ask again with `offset` {next}; with more `maxTokens` or a higher `limit` \
                     more come at once"
            )
        });
        Self { items, total, left_out }
    }

    /// The same for people.
    pub(crate) fn text(&self, head: &str) -> String {
        let mut list = String::new();
        self.items.iter().for_each(|item| item.write(&mut list));
        format!("{head}\n{}{}", of_others(&list), LeftOut::line(self.left_out.as_ref()))
    }

    /// The same below the title of a feed, which others wrote too.
    pub(crate) fn text_below(&self, head: &str, title: &str) -> String {
        let mut list = format!("{title}\n");
        self.items.iter().for_each(|item| item.write(&mut list));
        format!("{head}\n{}{}", of_others(&list), LeftOut::line(self.left_out.as_ref()))
    }
}

/// The id of an item: it names this item for ever, and none of another feed.
pub(crate) fn id(feed: &str, key: i64) -> String {
    format!("{feed}-{key}")
}

/// The feed and the key in an id.
pub(crate) fn parse_id(id: &str) -> Option<(i64, String)> {
    let (feed, key) = id.split_once('-')?;
    let is_number = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_digit());
    Some((is_number.then(|| key.parse().ok())??, feed.to_owned()))
}

/// The shape of a list of items.
pub(crate) fn list_shape(more: &[(&str, Value)], required: &[&str]) -> Value {
    let mut properties = json!({
        "items": { "type": "array", "items": item_shape() },
        "total": {
            "type": "integer", "minimum": 0,
            "description": "How many match; of a search, counted up to 10000, or up to 1000 if the \
                best come first",
        },
        "leftOut": super::describe::left_out(),
    });
    for (name, schema) in more {
        properties[*name] = schema.clone();
    }
    let mut all = vec!["items", "total"];
    all.extend(required);
    shape(&properties, &all)
}

/// The shape of an item.
pub(crate) fn item_shape() -> Value {
    let text = json!({ "type": "string" });
    let others = json!({ "type": "string", "description": NO_INSTRUCTION });
    let texts = json!({ "type": "array", "items": text });
    let moment = json!({ "type": "string", "format": "date-time" });
    let seen = json!({
        "type": "string", "format": "date-time",
        "description": "When it was first seen here; it has no date of its own",
    });
    let flag = json!({ "type": "boolean" });
    let person = shape(&json!({ "name": text, "email": text }), &[]);
    let size = json!({ "type": "integer", "minimum": 0 });
    let file = shape(&json!({ "url": text, "type": text, "length": size }), &["url"]);
    let cut = json!({ "type": "boolean", "description": "Its texts were cut" });
    let properties = json!({
        "id": text, "feedId": text, "title": others, "link": text, "published": moment,
        "updated": moment, "seen": seen, "authors": { "type": "array", "items": person }, "categories": texts,
        "guid": text, "image": text, "enclosures": { "type": "array", "items": file },
        "read": flag, "starred": flag, "alsoIn": texts, "snippet": others, "description": others,
        "content": others, "isCut": cut,
    });
    shape(&properties, &["id", "feedId", "read", "starred"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_back() {
        assert_eq!(parse_id(&id("b799e597", 12)), Some((12, "b799e597".to_owned())));
        for wrong in
            ["", "b799e597", "b799e597-", "b799e597-x", "b799e597--1", "b-99999999999999999999"]
        {
            assert_eq!(parse_id(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn there_is_room_for_the_first_item_whatever_it_is() {
        let long = |most: usize| Some("ä".repeat(most));
        let item = |number| ShownItem {
            id: format!("0123456789abcdef-{number}"),
            feed_id: "0123456789abcdef".to_owned(),
            title: Some("\u{1}".repeat(TITLE)),
            link: long(ADDRESS / 2),
            description: long(9_999),
            ..ShownItem::default()
        };
        let items = fitting(&mut Budget::of_tokens(0).shared(2).room(), (0..3).map(item));
        assert_eq!(items.len(), 1);
        assert!(items[0].is_cut && items[0].description.is_none());
    }
}
