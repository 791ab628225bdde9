//! `graph_connect` and `graph_disconnect`: add and remove a connection.

use serde_json::{Map, Value};
use tidings_server::model::Tool;

use crate::tools::schema::{Effect, connection, tool as described};
use crate::tools::{ToolAnswer, arguments, shown};
use crate::{Connection, Workspace};

pub(super) fn connect() -> Tool {
    described(
        "graph_connect",
        "Connect identities",
        "Connects a port of an identity with a port of another. A connection that exists is refused.",
        Effect::Adds,
        (connection(), connection()),
    )
}

pub(super) fn disconnect() -> Tool {
    described(
        "graph_disconnect",
        "Disconnect identities",
        "Removes a connection, named by both ends and its transport.",
        Effect::Removes,
        (connection(), connection()),
    )
}

pub(super) fn run_connect(
    workspace: &Workspace,
    given: Map<String, Value>,
    actor: &str,
) -> ToolAnswer {
    let connection: Connection = arguments(given)?;
    workspace.connect(connection.clone(), actor)?;
    Ok(shown(&connection))
}

pub(super) fn run_disconnect(
    workspace: &Workspace,
    given: Map<String, Value>,
    actor: &str,
) -> ToolAnswer {
    let connection: Connection = arguments(given)?;
    workspace.disconnect(connection.clone(), actor)?;
    Ok(shown(&connection))
}
