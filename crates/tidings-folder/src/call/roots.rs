//! The roots of a call: the client's, those of the folder's author, or the folder itself.

#![expect(deprecated, reason = "legacy revisions have what the newest one deprecates")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::Serialize;
use tidings_server::Context;
use tracing::debug;

use crate::describe::{Confine, Confines, ROOTS};
use crate::workshop::Workshop;

/// How long a client may take to list its roots; after that the folder's are used.
const ANSWER: Duration = Duration::from_secs(2);
/// Characters that are percent-encoded in the path of a URI.
const NOT_IN_PATHS: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'#').add(b'%').add(b'<').add(b'>').add(b'?').add(b'`');

/// A directory that a tool may work in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct ToolRoot {
    pub(super) uri: String,
    pub(super) name: String,
    /// Invariant: a single line, so that one variable can hold several.
    pub(super) path: String,
}

/// The client's roots if it supports them, otherwise the folder's.
pub(super) async fn of(workshop: &Workshop, context: &Context) -> Result<Vec<ToolRoot>, String> {
    if context.asks_by_answer() || context.client_capabilities().roots.is_none() {
        return own(workshop).await;
    }
    match tokio::time::timeout(ANSWER, context.roots()).await {
        Ok(Ok(answer)) => {
            let mut roots = Vec::new();
            for root in answer.roots {
                roots.extend(local(root.uri, root.name).await);
            }
            Ok(roots)
        }
        Ok(Err(error)) => {
            debug!(%error, "the client did not list its roots");
            own(workshop).await
        }
        Err(error) => {
            debug!(%error, "the client did not list its roots in time");
            own(workshop).await
        }
    }
}

/// The directories that the folder's author allows. If none of them exists, the tool is not run, so
/// it never gets more than that.
async fn own(workshop: &Workshop) -> Result<Vec<ToolRoot>, String> {
    let confines = match &workshop.confines {
        Confines::Folder => return Ok(default(&workshop.root)),
        Confines::Only(confines) => confines.as_slice(),
        Confines::Nowhere => &[],
    };
    let mut roots = Vec::new();
    for Confine { path, name } in confines {
        if let Ok(path) = tokio::fs::canonicalize(path).await
            && path.is_dir()
        {
            roots.extend(root(file_uri(&path), name.clone(), &path));
        }
    }
    if roots.is_empty() {
        return Err(format!(
            "it was not run: no directory of `{ROOTS}` exists; create one, or correct the file"
        ));
    }
    Ok(roots)
}

/// The folder as the only root.
pub(super) fn default(folder: &Path) -> Vec<ToolRoot> {
    root(file_uri(folder), None, folder).into_iter().collect()
}

/// The URI of a file.
pub(super) fn file_uri(path: &Path) -> String {
    format!("file://{}", utf8_percent_encode(&path.to_string_lossy(), NOT_IN_PATHS))
}

/// A client's root, if it is on this machine.
async fn local(uri: String, name: Option<String>) -> Option<ToolRoot> {
    let path = path_of(&uri)?;
    // Tools compare real paths.
    let path = tokio::fs::canonicalize(&path).await.unwrap_or(path);
    root(uri, name, &path)
}

fn root(uri: String, name: Option<String>, path: &Path) -> Option<ToolRoot> {
    let name = name
        .or_else(|| path.file_name().map(|name| name.to_string_lossy().into_owned()))
        .unwrap_or_default();
    let path = path.to_str().filter(|path| !path.contains(['\n', '\0']))?.to_owned();
    Some(ToolRoot { uri, name, path })
}

fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path: Vec<u8> = percent_decode_str(path).collect();
    path.starts_with(b"/").then(|| OsString::from_vec(path).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_places_on_this_machine_count() {
        let path = async |uri: &str| local(uri.to_owned(), None).await.map(|root| root.path);
        assert_eq!(path("file:///no%20where/x").await.as_deref(), Some("/no where/x"));
        assert_eq!(path("file://localhost/nowhere").await.as_deref(), Some("/nowhere"));
        for uri in ["file://elsewhere/x", "https://example.org/", "file:///a%0Ab", "file:///%00"] {
            assert_eq!(path(uri).await, None, "{uri}");
        }
    }

    #[test]
    fn the_folder_is_the_root_if_there_is_no_other() {
        let roots = default(Path::new("/some where/here"));
        let json = serde_json::to_string(&roots).unwrap();
        assert_eq!(
            json,
            r#"[{"uri":"file:///some%20where/here","name":"here","path":"/some where/here"}]"#
        );
    }
}
