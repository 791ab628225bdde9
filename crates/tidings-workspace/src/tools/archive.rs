//! `archive_artifact`: archive or restore an artifact.

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
            "archived": flag("false restores it; default: true"),
        }),
        &["id"],
    );
    let output = object(
        &json!({
            "id": text("the id of the artifact"),
            "archived": flag("whether it is archived now"),
            "changed": flag("whether that changed anything"),
        }),
        &["id", "archived", "changed"],
    );
    described(
        "archive_artifact",
        "Archive an artifact",
        "Removes an artifact from the lists of newest artifacts, tags and creators. It can still \
         be read, stays in its set and in lineages, and can be restored.",
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
