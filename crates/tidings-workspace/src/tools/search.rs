//! `search_artifacts`: find artifacts by words, tags, creator and time.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;
use tidings_store::date::Moment;

use crate::tools::schema::{Effect, entry, flag, number, object, text, texts, tool as described};
use crate::tools::{ToolAnswer, ToolFailure, arguments};
use crate::{Search, Workspace};

const USUAL: usize = 20;
const MOST: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    creator: Option<String>,
    since: Option<String>,
    until: Option<String>,
    #[serde(default)]
    archived: bool,
    after: Option<String>,
    limit: Option<usize>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "query": text("words of titles, annotations and text, which must all occur; \
                \"two words\" is a phrase, `begin*` a prefix"),
            "tags": texts("tags it must have"),
            "creator": text("its creator"),
            "since": text("created at this time or later, as 2026-01-31T09:30:00Z"),
            "until": text("created at this time or before"),
            "archived": flag("whether to include archived artifacts"),
            "after": text("only artifacts older than the one with this id: the `next` of an answer"),
            "limit": number(1, 200, "the most results; default: 20"),
        }),
        &[],
    );
    let output = object(
        &json!({
            "artifacts": { "type": "array", "items": entry() },
            "next": text("the `after` of the next page; missing at the end"),
        }),
        &["artifacts"],
    );
    described(
        "search_artifacts",
        "Search artifacts",
        "Finds artifacts by words, tags, creator and time, newest first.",
        Effect::Reads,
        (input, output),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, _actor: &str) -> ToolAnswer {
    let given: Arguments = arguments(given)?;
    let limit = given.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(ToolFailure("`limit` must be from 1 to 200".to_owned()));
    }
    let search = Search {
        words: given.query,
        tags: given.tags,
        creator: given.creator,
        since: moment("since", given.since.as_deref(), Duration::ZERO)?,
        until: moment("until", given.until.as_deref(), Duration::from_millis(999))?,
        archived: given.archived,
        after: given.after,
    };
    let (artifacts, has_more) = workspace.search(&search, limit)?;
    let next = if has_more { artifacts.last().map(|entry| entry.id.clone()) } else { None };
    let mut answer = json!({ "artifacts": artifacts });
    if let Some(next) = next {
        answer["next"] = json!(next);
    }
    Ok(answer)
}

/// A moment to the second; artifacts are made within one.
fn moment(name: &str, text: Option<&str>, within: Duration) -> Result<Option<Moment>, ToolFailure> {
    let Some(text) = text else { return Ok(None) };
    let moment = Moment::parse(text).ok_or_else(|| {
        ToolFailure(format!("`{name}` must be a moment as in 2026-01-31T09:30:00Z, not `{text}`"))
    })?;
    Ok(Some(moment.after(within)))
}
