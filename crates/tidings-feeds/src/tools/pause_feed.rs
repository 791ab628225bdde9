//! `pause_feed`: pauses a feed until it is resumed.

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::tools::answer::{Answer, Refusal, of_others, shortened};
use crate::tools::describe::{Effect, Words, shape, tool as describe};
use crate::tools::{Call, Need};
use crate::{Feeds, FeedsError, StoreError};

pub(super) const NAME: &str = "pause_feed";
pub(super) const NEEDS: &[Need] = &[Need::Change];
const TITLE: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(rename = "ID")]
    id: String,
    #[serde(default)]
    resume: bool,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Pause or resume a feed",
        description: "Pauses a feed, also after a restart; its stored items can still be read. \
            With `resume` it is fetched again, soon",
    };
    let text = json!({ "type": "string" });
    let output = shape(
        &json!({
            "id": text, "title": text,
            "paused": { "type": "boolean", "description": "Whether it is paused now" },
            "changed": { "type": "boolean", "description": "Whether that is new" },
            "state": { "type": "string", "description": "Its condition and the time of the next \
                fetch" },
        }),
        &["id", "title", "paused", "changed", "state"],
    );
    let properties = json!({
        "ID": { "type": "string", "minLength": 1, "description": "The feed's id" },
        "resume": {
            "type": "boolean", "default": false, "description": "Resume it instead",
        },
    });
    describe(&words, Effect::Repeatable, &properties, &["ID"], output)
}

#[derive(Serialize)]
struct PausedFeed {
    id: String,
    title: String,
    paused: bool,
    changed: bool,
    state: String,
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments { id, resume } = arguments;
    let feeds = Feeds(call.inner.clone());
    let changed = if resume { feeds.resume(&id).await } else { feeds.pause(&id).await };
    let changed = changed.map_err(|error| match error {
        FeedsError::Store(StoreError::NoFeed(id)) => Refusal::no_feed("ID", &id),
        error => error.into(),
    })?;
    let row = call.inner.board().get(&id).cloned();
    let row = row.ok_or_else(|| Refusal::no_feed("ID", &id))?;
    let now = call.inner.clock.time();
    let state = row.plan.as_ref().map_or_else(|| "next now".to_owned(), |plan| plan.explain(now));
    let title = shortened(row.shown_title(), TITLE).into_owned();
    let text = format!("{id}: {state}\n{}", of_others(&title));
    Ok(Answer::new(&PausedFeed { id, title, paused: row.is_paused(), changed, state }, text))
}
