//! `all_syndication_feeds`: every feed in short, as in `feeds://all`.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::html;
use crate::store::FeedRow;
use crate::tools::answer::{Answer, NO_INSTRUCTION, Refusal, count, of_others, shortened};
use crate::tools::budget::LeftOut;
use crate::tools::choice::{folder, keys_of, offset};
use crate::tools::describe::{Effect, Words, left_out, shape, tool as describe};
use crate::tools::{Call, Need};

pub(super) const NAME: &str = "all_syndication_feeds";
pub(super) const NEEDS: &[Need] = &[];
/// The longest title, address and description, because feeds may contain anything.
const TITLE: usize = 200;
const ADDRESS: usize = 500;
const DESCRIPTION: usize = 300;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default)]
    offset: usize,
    folder: Option<String>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "All feeds",
        description: "Lists every feed with its id, title, address and number of items. Other \
            tools and the resources `feeds://feed/{id}` take the id",
    };
    let text = json!({ "type": "string" });
    let others = json!({ "type": "string", "description": NO_INSTRUCTION });
    let feed = shape(
        &json!({
            "id": text, "title": others, "publicUrl": text, "folder": text, "description": others, "language": text,
            "lastUpdated": { "type": "string", "format": "date-time" },
            "itemCount": { "type": "integer", "minimum": 0 },
        }),
        &["id", "title", "publicUrl", "itemCount"],
    );
    let output = shape(
        &json!({
            "feeds": { "type": "array", "items": feed },
            "total": { "type": "integer", "minimum": 0, "description": "How many feeds there are" },
            "leftOut": left_out(),
        }),
        &["feeds", "total"],
    );
    let properties = json!({
        "offset": offset(),
        "folder": folder(),
    });
    describe(&words, Effect::Looks, &properties, &[], output)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedFeeds {
    feeds: Vec<ListedFeed>,
    total: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedFeed {
    id: String,
    title: String,
    public_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_updated: Option<String>,
    item_count: u64,
}

impl ListedFeed {
    fn of(row: &FeedRow) -> Self {
        let description = row.metadata.description.as_deref().map(html::plain);
        Self {
            id: row.id.clone(),
            title: shortened(row.shown_title(), TITLE).into_owned(),
            public_url: shortened(&row.public_url(), ADDRESS).into_owned(),
            folder: row.category.as_deref().map(|it| shortened(it, TITLE).into_owned()),
            description: description.map(|text| shortened(&text, DESCRIPTION).into_owned()),
            language: row.metadata.language.as_deref().map(|it| shortened(it, 40).into_owned()),
            last_updated: row.last_updated().map(|moment| moment.to_string()),
            item_count: row.item_count,
        }
    }
}

#[expect(clippy::unused_async, reason = "the shape of every tool")]
pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let keys = keys_of(&call.inner, &[], arguments.folder.as_deref())?;
    let rows = call.inner.board().rows().cloned().collect::<Vec<_>>();
    let is_wanted = |row: &Arc<FeedRow>| keys.is_empty() || keys.contains(&row.key);
    let rows: Vec<_> = rows.into_iter().filter(is_wanted).collect();
    let mut room = call.budget.room();
    let rest = rows.iter().skip(arguments.offset).map(|row| ListedFeed::of(row));
    let feeds: Vec<_> = rest.take_while(|feed| room.take(feed)).collect();
    let next = arguments.offset.saturating_add(feeds.len());
    let left_out = LeftOut::new(rows.len().saturating_sub(next) as u64, || {
        format!("ask again with `offset` {next}, or with more `maxTokens`")
    });
    let mut text = format!("Feeds: {}\n", rows.len());
    let mut list = String::new();
    for ListedFeed { id, title, item_count, .. } in &feeds {
        let items = count(*item_count, "item");
        let _ = writeln!(list, "- {id} · {title} · {items}");
    }
    if !list.is_empty() {
        text.push_str(&of_others(&list));
    }
    text.push_str(&LeftOut::line(left_out.as_ref()));
    Ok(Answer::new(&ListedFeeds { feeds, total: rows.len(), left_out }, text))
}
