//! `graph_bind`: makes an identity, renames it, or adds hints.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidings_server::model::Tool;

use crate::tools::schema::{Effect, flag, hint, identity, object, text, tool as described};
use crate::tools::{ToolAnswer, arguments, shown};
use crate::{Bind, Hint, Refusal, Workspace, WorkspaceError};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    name: String,
    #[serde(default)]
    hints: Vec<Hint>,
    #[serde(default)]
    steal: bool,
}

pub(super) fn tool() -> Tool {
    let input = object(
        &json!({
            "id": text("the identity's id: a new one makes a new identity"),
            "name": text("its name from now on"),
            "hints": {
                "type": "array", "items": hint(),
                "description": "by what it is recognised, besides what is known",
            },
            "steal": flag("take hints from identities that have them"),
        }),
        &["id", "name"],
    );
    described(
        "graph_bind",
        "Bind an identity",
        "Makes an identity, renames it, or adds hints to it. A hint that another identity has is \
         refused, unless it is to be taken from it.",
        Effect::Removes,
        (input, identity()),
    )
}

pub(super) fn run(workspace: &Workspace, given: Map<String, Value>, actor: &str) -> ToolAnswer {
    let Arguments { id, name, hints, steal } = arguments(given)?;
    let mut bind = Bind::new(id.clone(), name);
    bind.hints = hints;
    bind.steal = steal;
    workspace.bind(bind, actor)?;
    details(workspace, id)
}

/// An identity as it is now.
pub(super) fn details(workspace: &Workspace, id: String) -> ToolAnswer {
    let identity = workspace.identity(&id)?;
    Ok(shown(&identity.ok_or(WorkspaceError::from(Refusal::NoIdentity(id)))?))
}
