//! `archive_artifact`: puts an artifact away, or takes it out again.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::tools::schema::{Effect, flag, object, text, tool as described};
use crate::tools::{ToolAnswer, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    archived: Option<bool>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "id": text("the id of an artifact"),
            "archived": flag("false takes it out again"),
        }),
        &["id"],
    );
    let output = object(
        &json!({
            "id": text("the id of the artifact"),
            "archived": flag("whether it is put away now"),
            "changed": flag("whether it was not before"),
        }),
        &["id", "archived", "changed"],
    );
    described(
        "archive_artifact",
        "Archive an artifact",
        "Takes an artifact out of the lists of the newest, of tags and of creators. It can still \
         be read, stays in its set and in lineages, and can be taken out again.",
        Effect::Removes,
        (input, output),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let Arguments { id, archived } = arguments(given)?;
    let archived = archived.unwrap_or(true);
    let changed = workspace.archive(&id, archived, actor)?;
    Ok(json!({ "id": id, "archived": archived, "changed": changed }))
}
