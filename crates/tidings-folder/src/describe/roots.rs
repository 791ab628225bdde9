//! Roots: `config/roots.json` of an `mcp-bash` project lists the directories tools may work in.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::document::line_of;
use super::{Describer, Surroundings};
use crate::Problem;

pub(crate) const ROOTS: &str = "config/roots.json";

/// The directories that a folder's tools may work in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Confines {
    /// Not configured: the whole folder.
    #[default]
    Folder,
    /// In these directories only.
    Only(Vec<Confine>),
    /// There was never a valid file: no directory, so no tool is offered.
    Nowhere,
}

/// One directory that tools may work in. It may not exist yet, so each call checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Confine {
    pub(crate) path: PathBuf,
    pub(crate) name: Option<String>,
}

#[derive(Deserialize)]
struct RootsDocument {
    #[serde(default)]
    roots: Vec<RootEntry>,
    #[serde(flatten)]
    unknown: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct RootEntry {
    path: String,
    name: Option<String>,
}

/// Reads the roots; `None` if they are invalid.
pub(crate) fn confines(surroundings: Surroundings<'_>) -> (Option<Confines>, Vec<Problem>) {
    let file = Path::new(ROOTS);
    let looked = surroundings.root.absolute(file).symlink_metadata();
    let missing = |error: &std::io::Error| {
        matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
    };
    // A file that cannot be inspected may well confine the tools.
    if looked.is_err_and(|error| missing(&error)) {
        return (Some(Confines::Folder), Vec::new());
    }
    let mut describer = Describer::new(surroundings);
    let Some((document, text)) = describer.document::<RootsDocument>(file) else {
        let problems = describer.result.problems.into_iter();
        let advice = "correct it; until then the last valid roots are used, or no tool is offered";
        let problems = problems.map(|it| Problem { advice: advice.to_owned(), ..it }).collect();
        return (None, problems);
    };
    describer.unknown_keys(file, &text, document.unknown.keys(), "roots");
    let mut confines = Vec::new();
    for RootEntry { path, name } in document.roots.into_iter().filter(|it| !it.path.is_empty()) {
        let absolute = surroundings.root.absolute(Path::new(&path));
        if !absolute.is_dir() {
            let reason = format!("there is no directory `{path}`: tools cannot work in it");
            let problem = Problem::warning(file, reason, "create it, or take it off the list");
            describer.report(Problem { line: line_of(&text, "path"), ..problem });
        }
        confines.push(Confine { path: absolute, name });
    }
    if !confines.is_empty() {
        let reason = "tools are confined to these directories, unless a client names its own roots";
        let advice = "the tools themselves must keep to `MCP_ROOTS_PATHS`";
        describer.report(Problem::note(file, reason, advice));
    }
    let confines = if confines.is_empty() { Confines::Folder } else { Confines::Only(confines) };
    (Some(confines), describer.result.problems)
}
