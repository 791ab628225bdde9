//! `annotate`: add an annotation to an artifact.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::Workspace;
use crate::tools::schema::{Effect, number, object, text, tool as described};
use crate::tools::{ToolAnswer, arguments};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    message: String,
    author: Option<String>,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "id": text("the id of an artifact"),
            "message": text("the text; may have several lines"),
            "author": text("its author; default: the name of the client"),
        }),
        &["id", "message"],
    );
    let output = object(
        &json!({
            "id": text("the id of the artifact"),
            "annotations": number(1, u64::MAX >> 11, "the number of annotations now"),
        }),
        &["id", "annotations"],
    );
    described(
        "annotate",
        "Annotate an artifact",
        "Adds an annotation to an artifact. `artifacts://artifact/{id}` shows the newest hundred.",
        Effect::Adds,
        (input, output),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let Arguments { id, message, author } = arguments(given)?;
    let author = author.as_deref().unwrap_or(actor);
    let count = workspace.annotate(&id, &message, author, actor)?;
    Ok(json!({ "id": id, "annotations": count }))
}
