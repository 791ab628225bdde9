//! Tools of a workspace. A failed call explains what to do instead.

mod annotate;
mod archive;
mod bind;
mod connect;
mod create;
mod find;
mod graph_tag;
mod poll;
mod put;
mod schema;
mod search;
mod tag;
mod unbind;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tidings_server::model::{CallToolResult, ContentBlock, JsonObject, Tool};
use tidings_server::{Context, Offer};

use crate::{Workspace, WorkspaceError};

/// The actor if the client has no name.
const NOBODY: &str = "anonymous";

/// The content that a tool needs to be usable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Artifacts,
    Identities,
    Connections,
}

/// Why a tool call failed.
#[derive(Debug)]
struct ToolFailure(String);

impl From<WorkspaceError> for ToolFailure {
    fn from(error: WorkspaceError) -> Self {
        Self(outside(&error))
    }
}

type ToolAnswer = Result<Value, ToolFailure>;
/// A tool that waits for nothing but the disk.
type Run = fn(&Workspace, Map<String, Value>, &str) -> ToolAnswer;

/// Every tool with the content it needs.
pub(crate) fn all(workspace: &Workspace) -> Vec<(Needs, Offer<Tool>)> {
    use Needs::{Artifacts, Connections, Identities, Nothing};
    let offer = |needs, tool, run| (needs, offered(workspace, tool, run));
    vec![
        offer(Nothing, put::tool(), put::run),
        offer(Nothing, create::tool(), create::run),
        offer(Artifacts, tag::tag(), tag::run_tag),
        offer(Artifacts, tag::untag(), tag::run_untag),
        offer(Artifacts, annotate::tool(), annotate::run),
        offer(Artifacts, archive::tool(), archive::run),
        offer(Artifacts, search::tool(), search::run),
        offer(Nothing, bind::tool(), bind::run),
        offer(Identities, graph_tag::tool(), graph_tag::run),
        offer(Identities, unbind::tool(), unbind::run),
        offer(Identities, connect::connect(), connect::run_connect),
        offer(Connections, connect::disconnect(), connect::run_disconnect),
        offer(Identities, find::tool(), find::run),
        (Nothing, poll(workspace)),
    ]
}

/// A tool that runs on a thread that may block. Its changes are announced before it answers.
fn offered(workspace: &Workspace, tool: Tool, run: Run) -> Offer<Tool> {
    let workspace = workspace.clone();
    let annotations = tool.annotations.as_ref();
    let changes = annotations.and_then(|it| it.read_only_hint) != Some(true);
    let writers = workspace.config().writers.clone();
    let offer = Offer::described(tool, move |mut arguments: JsonObject, context: Context| {
        let actor = actor(&workspace, &context);
        if changes && context.who().name.is_some() {
            sign(&mut arguments, &actor);
        }
        let workspace = workspace.clone();
        let work = move || {
            let answer = run(&workspace, arguments, &actor);
            // The change is durable; following the log announces it later.
            if let Err(error) = workspace.0.publish() {
                tracing::warn!(%error, "changes of the workspace could not be published");
            }
            answer
        };
        async move {
            let done = tokio::task::spawn_blocking(work).await;
            result(done.unwrap_or_else(|_| Err(WorkspaceError::Interrupted.into())))
        }
    });
    if changes && !writers.is_empty() { offer.audience(writers) } else { offer }
}

/// The holder of a token cannot write in the name of another.
fn sign(arguments: &mut JsonObject, actor: &str) {
    for key in ["creator", "author"] {
        if let Some(given) = arguments.get_mut(key) {
            *given = actor.into();
        }
    }
}

/// The tool that waits for events.
fn poll(workspace: &Workspace) -> Offer<Tool> {
    let workspace = workspace.clone();
    Offer::described(poll::tool(), move |arguments: JsonObject, context: Context| {
        let workspace = workspace.clone();
        async move {
            tokio::select! {
                () = context.cancelled() => result(Err(WorkspaceError::Interrupted.into())),
                answer = poll::run(&workspace, arguments) => result(answer),
            }
        }
    })
}

fn result(answer: ToolAnswer) -> CallToolResult {
    match answer {
        Ok(value) => CallToolResult::structured(value),
        Err(ToolFailure(words)) => CallToolResult::error(vec![ContentBlock::text(words)]),
    }
}

/// The name of the client's token, or else the name that the client gives itself, as far as it can
/// be shown.
fn actor(workspace: &Workspace, context: &Context) -> String {
    if let Some(name) = context.who().name {
        return name.to_string();
    }
    let Some(client) = context.client() else { return NOBODY.to_owned() };
    let mut name: String = client.name.chars().filter(|it| !it.is_control()).collect();
    name.truncate(name.floor_char_boundary(workspace.config().limits.name));
    if name.trim().is_empty() { NOBODY.to_owned() } else { name }
}

/// The error in words for clients, who must not see where the workspace is.
pub(crate) fn outside(error: &WorkspaceError) -> String {
    let words = match error {
        WorkspaceError::Damaged { .. } => {
            "the workspace is damaged; its operator must restore a backup".to_owned()
        }
        // The message may contain the path.
        WorkspaceError::Path { error, .. } => {
            format!("a file of the workspace cannot be used: {}", error.kind())
        }
        WorkspaceError::Database(error) => {
            let code = error.sqlite_error().map(|code| format!(": {code}"));
            format!("the workspace's database cannot be used{}", code.unwrap_or_default())
        }
        WorkspaceError::Refused(_)
        | WorkspaceError::Full
        | WorkspaceError::Changed(_)
        | WorkspaceError::Unreadable(_)
        | WorkspaceError::Interrupted => return chain(error),
        _ => "the workspace cannot be used now".to_owned(),
    };
    tracing::error!(error = chain(error), "a request failed because the workspace cannot be used");
    words
}

/// An error with its causes.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// Parses the arguments of a tool.
fn arguments<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, ToolFailure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        ToolFailure(format!("nothing was done, the arguments are invalid: {error}"))
    })
}

/// A record as JSON.
fn shown(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("what a workspace shows is plain JSON")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use tidings_store::temporary;

    #[test]
    fn clients_do_not_learn_where_the_workspace_is() {
        let place = Path::new("/srv/secret/workspace");
        let io = || temporary::file(place, "part-").map(drop).unwrap_err();
        assert!(io().to_string().contains("secret"), "what the library says names the path");
        let database = rusqlite::Connection::open(place.join("none.sqlite")).unwrap_err();
        assert!(database.to_string().contains("secret"), "so does what the database says");
        for error in [
            WorkspaceError::path(place, io()),
            WorkspaceError::from(database),
            WorkspaceError::Missing(place.to_owned()),
            WorkspaceError::Newer { path: place.to_owned(), version: 9 },
            WorkspaceError::Locked { path: place.to_owned(), holder: "process 1".to_owned() },
        ] {
            let said = outside(&error);
            assert!(!said.contains("secret") && said.contains("cannot be used"), "{said}");
        }
    }
}
