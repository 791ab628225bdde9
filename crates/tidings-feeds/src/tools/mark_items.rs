//! `mark_items`: marks items as read or starred. Feeds and resources do not know the marks.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::store::Mark;
use crate::tools::answer::{Answer, Refusal, count};
use crate::tools::describe::{Effect, Words, shape, tool as describe};
use crate::tools::item::parse_id;
use crate::tools::unavailable::Named;
use crate::tools::{Call, Need};

pub(super) const NAME: &str = "mark_items";
pub(super) const NEEDS: &[Need] = &[Need::Change];
/// How many items may be marked at once.
const MOST: usize = 1_000;
/// How many unknown ids are reported.
const TOLD: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    ids: Vec<String>,
    read: Option<bool>,
    starred: Option<bool>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Mark items",
        description: "Marks items as read or starred, or removes the mark. Starred items are kept \
            however many newer ones arrive, until their feed is removed or withdraws them",
    };
    let properties = json!({
        "ids": {
            "type": "array", "items": { "type": "string", "maxLength": 100 }, "minItems": 1,
            "maxItems": MOST, "description": "Ids of items, as other tools return them",
        },
        "read": { "type": "boolean", "description": "Whether they are read; default: unchanged" },
        "starred": { "type": "boolean", "description": "Whether they are starred; default: \
            unchanged" },
    });
    let output = shape(
        &json!({
            "marked": { "type": "integer", "minimum": 0, "description": "How many were marked" },
            "missing": {
                "type": "integer", "minimum": 0,
                "description": "How many do not exist, or not any more",
            },
            "missingIds": {
                "type": "array", "items": { "type": "string" },
                "description": "The first of those",
            },
        }),
        &["marked", "missing", "missingIds"],
    );
    describe(&words, Effect::Repeatable, &properties, &["ids"], output)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Done {
    marked: usize,
    missing: usize,
    missing_ids: Vec<String>,
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments { ids, read, starred } = arguments;
    if read.is_none() && starred.is_none() {
        return Err(Refusal::new("one of the arguments `read` and `starred` must be given"));
    }
    let named: Vec<_> = ids.iter().map(|id| (id.clone(), parse_id(id))).collect();
    let items: Vec<_> = named.iter().filter_map(|(_, item)| item.clone()).collect();
    let mark = Mark { read, starred };
    let marked = call.inner.blocking(move |inner| inner.store.mark(&items, mark)).await?;
    let is_missing =
        |item: &Option<(i64, String)>| item.as_ref().is_none_or(|(key, _)| !marked.contains(key));
    let missing: Vec<_> =
        named.iter().filter(|(_, item)| is_missing(item)).map(|(id, _)| id.clone()).collect();
    if marked.is_empty() {
        let key =
            |item: &Option<(i64, String)>| Some(call.inner.board().get(&item.as_ref()?.1)?.key);
        let keys: Vec<_> = named.iter().filter_map(|(_, item)| key(item)).collect();
        Named::look(call, &keys)?;
        let details = "there is no such item, or it was removed; ids are in the answers of \
            `get_syndication_feed_items`, `search_items`, `merge_feeds` and `new_since`";
        return Err(Refusal::argument("ids", ids.join(", "), details));
    }
    let answer = Done {
        marked: marked.len(),
        missing: missing.len(),
        missing_ids: missing.into_iter().take(TOLD).collect(),
    };
    let mut text = format!("{} marked\n", count(answer.marked as u64, "item"));
    if answer.missing > 0 {
        let _ = writeln!(text, "{} not there: {}", answer.missing, answer.missing_ids.join(", "));
    }
    Ok(Answer::new(&answer, text))
}
