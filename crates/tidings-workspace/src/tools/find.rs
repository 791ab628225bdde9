//! `graph_find`: find identities.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::store::Find;
use crate::tools::schema::{Effect, flag, identity, number, object, text, tool as described};
use crate::tools::{ToolAnswer, ToolFailure, arguments};

const USUAL: usize = 20;
const MOST: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    name: Option<String>,
    tag: Option<String>,
    hint_kind: Option<String>,
    hint_value: Option<String>,
    limit: Option<usize>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "name": text("a part of its name or id, ignoring case"),
            "tag": text("a tag it must have"),
            "hint_kind": text("the kind of a hint it must have"),
            "hint_value": text("the value of that hint"),
            "limit": number(1, 200, "the most results; default: 20"),
        }),
        &[],
    );
    let output = object(
        &json!({
            "identities": { "type": "array", "items": identity() },
            "has_more": flag("whether there are more: narrow the search, or raise `limit`"),
        }),
        &["identities", "has_more"],
    );
    described(
        "graph_find",
        "Find identities",
        "Finds identities by name, tag and hints, sorted by id. If there are more results, \
         `has_more` is true: narrow the search, or page through `graph://identities`.",
        Effect::Reads,
        (input, output),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, _actor: &str) -> ToolAnswer {
    let Arguments { name, tag, hint_kind, hint_value, limit } = arguments(given)?;
    let limit = limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        return Err(ToolFailure("`limit` must be from 1 to 200".to_owned()));
    }
    let (found, has_more) = workspace.find(&Find { name, tag, hint_kind, hint_value }, limit)?;
    Ok(json!({ "identities": found, "has_more": has_more }))
}
