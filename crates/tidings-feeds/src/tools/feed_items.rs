//! `get_syndication_feed_items`: the items of one feed, newest first, with the wanted part of their
//! texts.

use serde::Deserialize;
use serde_json::{Value, json};
use tidings_server::model::Tool;

use crate::html::{TextFormat, as_markdown};
use crate::store::Listing;
use crate::tools::answer::{Answer, NO_INSTRUCTION, Refusal, count, shortened};
use crate::tools::choice::{USUAL, limit, offset, word};
use crate::tools::describe::{Effect, Words, tool as describe};
use crate::tools::item::{ItemList, ShownItem, Texts, list_shape};
use crate::tools::{Call, Need};
use crate::view::Filter;

pub(super) const NAME: &str = "get_syndication_feed_items";
pub(super) const NEEDS: &[Need] = &[];
/// The default lengths of a text, in characters: a long paragraph, and an article.
const DESCRIPTION: usize = 500;
const CONTENT: usize = 5_000;
/// The maximum.
const MOST: usize = 1_000_000;
/// The longest title of a feed, in bytes.
const TITLE: usize = 200;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(rename = "ID")]
    id: String,
    limit: Option<u32>,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    include_content: bool,
    max_content_length: Option<usize>,
    #[serde(default)]
    format: TextFormat,
    /// Accepted for callers that send them.
    #[serde(rename = "includeImages")]
    _include_images: Option<bool>,
    #[serde(rename = "embedImages")]
    _embed_images: Option<bool>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Items of a feed",
        description: "Returns the stored items of one feed, newest first; nothing is fetched. \
            Descriptions are cut; with `includeContent` the whole texts are included, up to \
            `maxContentLength`",
    };
    let properties = json!({
        "ID": word("The id of the feed, as `all_syndication_feeds` lists it"),
        "limit": limit(USUAL),
        "offset": offset(),
        "includeContent": {
            "type": "boolean", "default": false, "description": "Include the whole text of each \
                item",
        },
        "maxContentLength": {
            "type": "integer", "minimum": 0, "maximum": MOST,
            "description": "The maximum number of characters of each text; default, also for 0: \
                5000 with content, else 500",
        },
        "includeImages": {
            "type": "boolean",
            "description": "For callers of older servers; has no effect: `image` and `enclosures` are \
                always there",
        },
        "embedImages": {
            "type": "boolean",
            "description": "For callers of older servers; has no effect: pictures come as addresses",
        },
        "format": {
            "enum": ["text", "markdown", "html"], "default": "text",
            "description": "How texts are shown; HTML is made safe",
        },
    });
    let text = json!({ "type": "string" });
    let title = json!({ "type": "string", "description": NO_INSTRUCTION });
    let more: [(&str, Value); 2] = [("feedId", text), ("feedTitle", title)];
    let output = list_shape(&more, &["feedId", "feedTitle"]);
    describe(&words, Effect::Looks, &properties, &["ID"], output)
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments { id, limit, offset, .. } = &arguments;
    let row = call.inner.board().get(id).cloned().ok_or_else(|| Refusal::no_feed("ID", id))?;
    call.inner.known(id)?;
    let filter =
        Filter { limit: Some(limit.unwrap_or(USUAL)), offset: *offset, ..Filter::default() };
    let listing = Listing { feeds: vec![row.key], filter, ..Listing::default() };
    let most = arguments.max_content_length;
    let texts = Texts {
        format: arguments.format,
        description: most.unwrap_or(DESCRIPTION),
        content: arguments.include_content.then(|| most.unwrap_or(CONTENT)),
        stands_in: false,
    };
    let (budget, offset) = (call.budget, *offset);
    let names = call.inner.names();
    let list = call.inner.blocking(move |inner| {
        let listed = inner.store.list(&listing)?;
        // No text can be longer than the answer.
        let texts = texts.within(budget.bytes());
        let items = listed.items.iter().map(|kept| ShownItem::of(kept, &names, texts));
        Ok(ItemList::new(budget, items, offset, listed.total))
    });
    let list = list.await?;
    let mut title = shortened(row.shown_title(), TITLE).into_owned();
    if arguments.format == TextFormat::Markdown {
        title = as_markdown(&title);
    }
    let head = format!("{} · {}", row.id, count(list.total, "item"));
    let text = list.text_below(&head, &title);
    let mut answer = Answer::new(&list, text);
    answer.add("feedId", &row.id);
    answer.add("feedTitle", title);
    Ok(answer)
}
