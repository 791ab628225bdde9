//! `remove_feed`: removes a feed and its stored items.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::Feeds;
use crate::tools::answer::{Answer, Refusal, count, of_others, shortened};
use crate::tools::describe::{Effect, Words, shape, tool as describe};
use crate::tools::{Call, Need};

pub(super) const NAME: &str = "remove_feed";
pub(super) const NEEDS: &[Need] = &[Need::Change];
const TITLE: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(rename = "ID")]
    id: String,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Remove a feed",
        description: "Removes a feed and all its stored items. A feed of the configuration is \
            back, empty, when the server starts again. `pause_feed` only stops the fetches",
    };
    let text = json!({ "type": "string" });
    let output = shape(
        &json!({
            "id": text, "title": text,
            "itemCount": {
                "type": "integer", "minimum": 0, "description": "How many items were removed with \
                    it",
            },
        }),
        &["id", "title", "itemCount"],
    );
    let id = json!({ "type": "string", "minLength": 1, "description": "The feed's id" });
    describe(&words, Effect::Destroys, &json!({ "ID": id }), &["ID"], output)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RemovedFeed {
    id: String,
    title: String,
    item_count: u64,
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let id = arguments.id;
    let row = call.inner.board().get(&id).cloned();
    let no_feed = || Refusal::no_feed("ID", &id);
    let row = row.ok_or_else(no_feed)?;
    if !Feeds(call.inner.clone()).remove(&id).await? {
        return Err(no_feed());
    }
    let title = shortened(row.shown_title(), TITLE).into_owned();
    let items = count(row.item_count, "item");
    let text = format!("Removed {id} and its {items}\n{}", of_others(&title));
    Ok(Answer::new(&RemovedFeed { id, title, item_count: row.item_count }, text))
}
