//! `graph_bind`: create or rename an identity, or add hints.

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
            "id": text("the identity's id: a new id creates an identity"),
            "name": text("its new name"),
            "hints": {
                "type": "array", "items": hint(),
                "description": "hints to add, by which it is recognised",
            },
            "steal": flag("take hints away from other identities; default: false"),
        }),
        &["id", "name"],
    );
    described(
        "graph_bind",
        "Bind an identity",
        "Creates an identity, renames it, or adds hints to it. A hint of another identity is \
         refused, unless `steal` is true.",
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

/// An identity with its details.
pub(super) fn details(workspace: &Workspace, id: String) -> ToolAnswer {
    let identity = workspace.identity(&id)?;
    Ok(shown(&identity.ok_or(WorkspaceError::from(Refusal::NoIdentity(id)))?))
}
