//! `graph_tag`: add and remove tags of an identity.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::tools::bind::details;
use crate::tools::schema::{Effect, identity, object, text, texts, tool as described};
use crate::tools::{ToolAnswer, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    add: Vec<String>,
    #[serde(default)]
    remove: Vec<String>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "id": text("the id of an identity"),
            "add": texts("tags to add, as `namespace:value`"),
            "remove": texts("tags to remove"),
        }),
        &["id"],
    );
    described(
        "graph_tag",
        "Tag an identity",
        "Adds and removes tags of an identity.",
        Effect::Removes,
        (input, identity()),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let Arguments { id, add, remove } = arguments(given)?;
    workspace.tag_identity(&id, &add, &remove, actor)?;
    details(workspace, id)
}
