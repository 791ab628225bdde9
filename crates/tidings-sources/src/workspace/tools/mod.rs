//! What clients can do to a workspace. A tool that ran and failed says what to do.

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
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Tool,
};
use tidings_server::{AnswerError, Exchange};

use crate::workspace::{Workspace, WorkspaceError};

/// Who did something, if nobody says.
const NOBODY: &str = "anonymous";

/// What a tool needs to be of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Artifacts,
    Identities,
    Connections,
}

/// Why a tool did not do what it was asked for.
#[derive(Debug)]
struct Failure(String);

impl From<WorkspaceError> for Failure {
    fn from(error: WorkspaceError) -> Self {
        Self(outside(&error))
    }
}

type Answer = Result<Value, Failure>;
/// A tool that answers without waiting for anything but the disk.
type Run = fn(&Workspace, Map<String, Value>, &str) -> Answer;

/// Every tool with its name and what it needs.
pub(crate) fn all() -> Vec<(&'static str, Needs, Tool)> {
    use Needs::{Artifacts, Connections, Identities, Nothing};
    vec![
        ("put_blob", Nothing, put::tool()),
        ("create_artifact", Nothing, create::tool()),
        ("tag", Artifacts, tag::tag()),
        ("untag", Artifacts, tag::untag()),
        ("annotate", Artifacts, annotate::tool()),
        ("archive_artifact", Artifacts, archive::tool()),
        ("search_artifacts", Artifacts, search::tool()),
        ("graph_bind", Nothing, bind::tool()),
        ("graph_tag", Identities, graph_tag::tool()),
        ("graph_unbind", Identities, unbind::tool()),
        ("graph_connect", Identities, connect::connect()),
        ("graph_disconnect", Connections, connect::disconnect()),
        ("graph_find", Identities, find::tool()),
        ("poll_events", Nothing, poll::tool()),
    ]
}

fn run_of(name: &str) -> Option<Run> {
    Some(match name {
        "put_blob" => put::run,
        "create_artifact" => create::run,
        "tag" => tag::run_tag,
        "untag" => tag::run_untag,
        "annotate" => annotate::run,
        "archive_artifact" => archive::run,
        "search_artifacts" => search::run,
        "graph_bind" => bind::run,
        "graph_tag" => graph_tag::run,
        "graph_unbind" => unbind::run,
        "graph_connect" => connect::run_connect,
        "graph_disconnect" => connect::run_disconnect,
        "graph_find" => find::run,
        _ => return None,
    })
}

/// Runs a tool. What it wrote is told of before it answers.
pub(crate) async fn call(
    workspace: &Workspace,
    request: CallToolRequestParams,
    exchange: &Exchange,
) -> Result<CallToolResponse, AnswerError> {
    let arguments = request.arguments.unwrap_or_default();
    let actor = actor(workspace, exchange);
    let answer = if request.name == "poll_events" {
        tokio::select! {
            () = exchange.cancelled() => Err(WorkspaceError::Interrupted.into()),
            answer = poll::run(workspace, arguments) => answer,
        }
    } else {
        let run = run_of(&request.name).ok_or_else(|| AnswerError::not_found(request.name))?;
        let workspace = workspace.clone();
        let work = move || {
            let answer = run(&workspace, arguments, &actor);
            // What was written is written; the log is followed again by and by.
            if let Err(error) = workspace.0.publish() {
                tracing::warn!(%error, "the log of the workspace cannot be followed");
            }
            answer
        };
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|_| Err(WorkspaceError::Interrupted.into()))
    };
    Ok(match answer {
        Ok(value) => CallToolResult::structured(value).into(),
        Err(Failure(words)) => CallToolResult::error(vec![ContentBlock::text(words)]).into(),
    })
}

/// The name the client declares, as far as it can be shown.
fn actor(workspace: &Workspace, exchange: &Exchange) -> String {
    let Some(client) = exchange.client() else { return NOBODY.to_owned() };
    let mut name: String = client.name.chars().filter(|it| !it.is_control()).collect();
    name.truncate(name.floor_char_boundary(workspace.config().limits.name));
    if name.trim().is_empty() { NOBODY.to_owned() } else { name }
}

/// What went wrong, in words for clients: where the workspace is concerns none of them.
pub(crate) fn outside(error: &WorkspaceError) -> String {
    let words = match error {
        WorkspaceError::Damaged { .. } => {
            "the workspace is damaged; who runs the server must restore a backup".to_owned()
        }
        // The words of the error may have the path again.
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
    tracing::error!(error = chain(error), "the workspace cannot be used as it should be");
    words
}

/// An error with what caused it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}

/// Arguments as a tool takes them.
fn arguments<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Failure> {
    serde_json::from_value(Value::Object(arguments))
        .map_err(|error| Failure(format!("nothing was done, the arguments do not fit: {error}")))
}

/// What is shown, as a value.
fn shown(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("what a workspace shows is plain JSON")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::temporary;

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
