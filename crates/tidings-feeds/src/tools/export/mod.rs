//! `export_feeds`: the list of feeds, or items, for other programs.

mod csv;
mod json;
#[cfg(test)]
mod tests;
mod xml;

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::opml;
use crate::store::{Entry, FeedRow, Kept};
use crate::tools::answer::{Answer, Refusal, shortened};
use crate::tools::budget::{LeftOut, Room};
use crate::tools::choice::{Choice, Only, properties, word};
use crate::tools::describe::{Effect, Words, left_out, shape, tool as describe};
use crate::tools::unavailable::{FIELD, Named, unavailable};
use crate::tools::{Call, Need};
use crate::view;

pub(super) const NAME: &str = "export_feeds";
pub(super) const NEEDS: &[Need] = &[];
/// How much is written if not everything fits, in bytes.
const BRIEF: usize = 150;
/// The longest address that is written then.
const ADDRESS: usize = 250;
/// The default number of items: as many as fit, in most cases.
const LIMIT: u32 = 100;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    format: Format,
    #[serde(default)]
    feeds: Vec<String>,
    folder: Option<String>,
    since: Option<String>,
    until: Option<String>,
    category: Option<String>,
    author: Option<String>,
    search: Option<String>,
    #[serde(default)]
    only: Only,
    limit: Option<u32>,
    #[serde(default)]
    offset: u64,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Format {
    /// The list of feeds, without items.
    Opml,
    /// Items as RSS 2.0.
    Rss,
    /// Items as Atom 1.0.
    Atom,
    /// Items as JSON Feed 1.1.
    Json,
    /// Items as a table.
    Csv,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Export feeds",
        description: "Writes the list of feeds (`opml`, with folders), or items of them, newest \
            first, as one feed (`rss` 2.0, `atom` 1.0, `json` for JSON Feed 1.1) or as a table \
            (`csv`). Items are never cut: those that do not fit are left out, and the answer says \
            how to get them",
    };
    let mut properties = properties();
    properties["search"] = word("Only items with all of these words and \"phrases\"");
    properties["limit"]["default"] = json!(LIMIT);
    properties["format"] = json!({
        "enum": ["opml", "rss", "atom", "json", "csv"],
        "description": "`opml` is the list of feeds, without items: of the other arguments only \
            `feeds`, `folder`, `limit` and `offset` go with it. The others are items",
    });
    let count = json!({ "type": "integer", "minimum": 0 });
    let output = shape(
        &json!({
            "format": { "enum": ["opml", "rss", "atom", "json", "csv"] },
            "mediaType": { "type": "string" },
            "document": { "type": "string", "description": "The whole document, to be saved as a \
                file" },
            "count": count,
            "total": count,
            "leftOut": left_out(),
            (FIELD): unavailable(),
        }),
        &["format", "mediaType", "document", "count", "total"],
    );
    describe(&words, Effect::Looks, &properties, &["format"], output)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Exported {
    format: Format,
    media_type: &'static str,
    document: String,
    count: usize,
    total: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments {
        format,
        feeds,
        folder,
        since,
        until,
        category,
        author,
        search,
        only,
        limit,
        offset,
    } = arguments;
    let most = limit;
    let limit = Some(limit.unwrap_or(LIMIT));
    let choice =
        Choice { feeds, folder, since, until, category, author, search, only, limit, offset };
    let listing = choice.listing(&call.inner)?;
    let rows: Vec<_> = call.inner.board().rows().cloned().collect();
    let chosen = |row: &Arc<FeedRow>| listing.feeds.is_empty() || listing.feeds.contains(&row.key);
    let rows: Vec<_> = rows.into_iter().filter(chosen).collect();
    if format == Format::Opml {
        choice.refuse_for_feeds()?;
        let exported = list_of(&rows, choice.offset, most, &mut call.budget.room());
        return Ok(exported.answer());
    }
    let named = Named::look(call, &listing.feeds)?;
    let budget = named.rest_of(call.budget);
    let exported = call.inner.blocking(move |inner| {
        let listed = inner.store.list(&listing)?;
        let mut room = budget.room();
        let (document, count) = written(format, &rows, &listed.items, &mut room);
        let next = listing.filter.offset.saturating_add(count as u64);
        let left_out = LeftOut::new(listed.total.saturating_sub(next), || how(next, count));
        let media_type = format.media_type();
        Ok(Exported { format, media_type, document, count, total: listed.total, left_out })
    });
    let exported = exported.await?;
    let total = exported.total;
    let mut answer = exported.answer();
    named.tell(call, total, &mut answer);
    Ok(answer)
}

impl Exported {
    fn answer(self) -> Answer {
        let text = self.document.clone() + &LeftOut::line(self.left_out.as_ref());
        Answer::new(&self, text)
    }
}

/// All of these items as one document of any length.
pub(crate) fn whole(format: Format, rows: &[Arc<FeedRow>], items: &[Kept]) -> String {
    written(format, rows, items, &mut Room::boundless()).0
}

fn how(next: u64, count: usize) -> String {
    if count == 0 {
        return "ask again with more `maxTokens`".to_owned();
    }
    format!("ask again with `offset` {next}, or with more `maxTokens` and a higher `limit`")
}

/// The feeds as a list, as many as fit.
fn list_of(rows: &[Arc<FeedRow>], offset: u64, most: Option<u32>, room: &mut Room) -> Exported {
    let most = most.map_or(usize::MAX, |most| most as usize);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    let outlines = rows.iter().skip(offset).take(most).map(|row| opml::Outline {
        url: row.public_url(),
        title: Some(row.shown_title().to_owned()),
        page: row.metadata.link.clone(),
        category: row.category.clone(),
    });
    // Each is measured as a list of its own, with its folders.
    let outlines: Vec<_> =
        outlines.take_while(|it| room.take(&opml::write(std::slice::from_ref(it)))).collect();
    let next = offset.saturating_add(outlines.len());
    Exported {
        format: Format::Opml,
        media_type: Format::Opml.media_type(),
        document: opml::write(&outlines),
        count: outlines.len(),
        total: rows.len() as u64,
        left_out: LeftOut::new(rows.len().saturating_sub(next) as u64, || {
            how(next as u64, outlines.len())
        }),
    }
}

/// The items that fit as one document, and their number.
fn written(
    format: Format,
    rows: &[Arc<FeedRow>],
    items: &[Kept],
    room: &mut Room,
) -> (String, usize) {
    let framed = |head: &Head| match format {
        Format::Atom => xml::atom_frame(head, items),
        Format::Json => json::frame(head),
        Format::Csv => csv::frame(),
        Format::Rss | Format::Opml => xml::rss_frame(head),
    };
    let head = Head::of(rows);
    let mut frame = framed(&head);
    if !room.take_half(&frame) {
        frame = framed(&head.brief());
        room.take(&frame);
    }
    let [begin, between, end] = frame;
    let owners = owners(items);
    let write = |item: &Kept, entry: &Entry| {
        let row = rows.iter().find(|row| row.key == item.feed);
        let feed = row.map(|row| &**row);
        let guid = entry.guid.as_deref().filter(|it| owners.get(it) == Some(&item.key));
        let texts = view::ReadableItem::of(entry);
        let item = ExportedItem { key: item.key, moment: item.moment, entry, texts, guid, feed };
        match format {
            Format::Atom => xml::atom_item(&item),
            Format::Json => json::item(&item),
            Format::Csv => csv::item(&item),
            Format::Rss | Format::Opml => xml::rss_item(&item),
        }
    };
    let mut document = begin;
    let mut count = 0;
    for item in items {
        let mut piece = write(item, &item.entry);
        let mut fits = room.take(&piece);
        // At least one item is included, because otherwise nobody would get past it.
        if !fits && count == 0 {
            let bare = Entry { published: item.entry.published, ..Entry::default() };
            for entry in [brief(&item.entry), bare] {
                piece = write(item, &entry);
                fits = room.take(&piece);
                if fits {
                    break;
                }
            }
        }
        if !fits {
            break;
        }
        if count > 0 {
            document.push_str(&between);
        }
        document.push_str(&piece);
        count += 1;
    }
    (document + &end, count)
}

/// The same in the shortest form.
fn brief(entry: &Entry) -> Entry {
    let address = |text: &Option<String>| text.clone().filter(|text| text.len() <= ADDRESS);
    Entry {
        title: entry.title.as_deref().map(|title| shortened(title, BRIEF).into_owned()),
        link: address(&entry.link),
        guid: address(&entry.guid),
        published: entry.published,
        ..Entry::default()
    }
}

/// An item to export.
struct ExportedItem<'a> {
    key: i64,
    moment: tidings_store::date::Moment,
    entry: &'a Entry,
    /// Its readable form: its texts are safe, because readers elsewhere know neither their content
    /// nor the base of their addresses.
    texts: view::ReadableItem<'a>,
    /// Its id in its feed, if no other item of the document has the same.
    guid: Option<&'a str>,
    feed: Option<&'a FeedRow>,
}

/// The item that keeps its feed's id if several feeds use the same: the oldest, so that it stays so
/// when others come.
fn owners(items: &[Kept]) -> HashMap<&str, i64> {
    let mut owners = HashMap::new();
    for item in items {
        if let Some(guid) = item.entry.guid.as_deref() {
            let owner = owners.entry(guid).or_insert(item.key);
            *owner = item.key.min(*owner);
        }
    }
    owners
}

impl ExportedItem<'_> {
    fn id(&self) -> String {
        super::item::id(self.feed.map_or("", |row| &row.id), self.key)
    }

    fn description(&self) -> Option<&str> {
        self.texts.description.as_deref()
    }

    fn content(&self) -> Option<&str> {
        self.texts.content.as_deref()
    }
}

/// The details of a document.
struct Head {
    title: String,
    link: String,
    description: String,
}

impl Head {
    fn of(rows: &[Arc<FeedRow>]) -> Self {
        match rows {
            [row] => Self {
                title: row.shown_title().to_owned(),
                link: row.metadata.link.clone().unwrap_or_else(|| row.public_url()),
                description: row.metadata.description.clone().unwrap_or_default(),
            },
            _ => Self {
                title: "Feeds".to_owned(),
                link: crate::view::ALL.to_owned(),
                description: format!("Items of {} feeds", rows.len()),
            },
        }
    }
}

impl Head {
    /// The same in the shortest form.
    fn brief(&self) -> Self {
        let link = if self.link.len() <= ADDRESS { &self.link } else { crate::view::ALL };
        Self {
            title: shortened(&self.title, BRIEF).into_owned(),
            link: link.to_owned(),
            description: String::new(),
        }
    }
}

impl Format {
    fn media_type(self) -> &'static str {
        match self {
            Self::Opml => "text/x-opml",
            Self::Rss => "application/rss+xml",
            Self::Atom => "application/atom+xml",
            Self::Json => "application/feed+json",
            Self::Csv => "text/csv",
        }
    }
}
