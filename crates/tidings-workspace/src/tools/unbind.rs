//! `graph_unbind`: remove an identity.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::tools::schema::{Effect, object, text, tool as described};
use crate::tools::{ToolAnswer, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
}

pub(super) fn tool() -> Tool {
    let input = object(&json!({ "id": text("the id of an identity") }), &["id"]);
    let output = object(&json!({ "id": text("the id of the removed identity") }), &["id"]);
    described(
        "graph_unbind",
        "Unbind an identity",
        "Removes an identity with its hints, tags and connections.",
        Effect::Removes,
        (input, output),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let Arguments { id } = arguments(given)?;
    workspace.unbind(&id, actor)?;
    Ok(json!({ "id": id }))
}
