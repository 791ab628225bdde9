//! `tag` and `untag`: add and remove tags of an artifact.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::tools::schema::{Effect, object, text, texts, tool as described};
use crate::tools::{ToolAnswer, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    tags: Vec<String>,
}

fn schemas(changed: &str) -> (Value, Value) {
    let input = object(
        &json!({ "id": text("the id of an artifact"), "tags": texts("tags") }),
        &["id", "tags"],
    );
    let output = object(
        &json!({ "id": text("the id of the artifact"), "changed": texts(changed) }),
        &["id", "changed"],
    );
    (input, output)
}

pub(super) fn tag() -> Tool {
    described(
        "tag",
        "Tag an artifact",
        "Adds tags, as `category:value` or plain, to an artifact. Tags it has already are ignored.",
        Effect::Sets,
        schemas("the tags it did not have"),
    )
}

pub(super) fn untag() -> Tool {
    described(
        "untag",
        "Untag an artifact",
        "Removes tags of an artifact. Tags it does not have are ignored.",
        Effect::Removes,
        schemas("the tags it had"),
    )
}

pub(super) fn run_tag(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let Arguments { id, tags } = arguments(given)?;
    let changed = workspace.tag(&id, &tags, actor)?;
    Ok(json!({ "id": id, "changed": changed }))
}

pub(super) fn run_untag(
    workspace: &Workspace,
    given: Map<String, Value>,
    actor: &str,
) -> ToolAnswer {
    let Arguments { id, tags } = arguments(given)?;
    let changed = workspace.untag(&id, &tags, actor)?;
    Ok(json!({ "id": id, "changed": changed }))
}
