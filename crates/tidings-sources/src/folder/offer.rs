//! What a folder offers, ready to be listed and used.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidings_server::model::Tool;

/// A tool that is a program.
#[derive(Clone, Debug)]
pub(crate) struct ToolScript {
    /// As clients see it.
    pub(crate) tool: Tool,
    pub(crate) program: Program,
    /// Where it runs: the tool's own directory.
    pub(crate) directory: PathBuf,
    pub(crate) patience: Patience,
    /// What its author says to do when it takes too long.
    pub(crate) hint: Option<String>,
    /// Its description as it was written, for the tool itself.
    pub(crate) metadata: Value,
    /// What arguments must be.
    pub(crate) input: Arc<jsonschema::Validator>,
    /// What structured results must be, if the tool promises that.
    pub(crate) output: Option<Arc<jsonschema::Validator>>,
}

/// A file that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    /// The words of its `#!` line, where the file itself may not be executed.
    pub(crate) interpreter: Vec<OsString>,
}

/// How long a program may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Patience {
    /// From the start; or, where signs of life extend it, from the last one.
    pub(crate) limit: Duration,
    /// Whether a progress or log line begins the limit anew.
    pub(crate) extended: bool,
    /// From the start, whatever the signs.
    pub(crate) at_most: Duration,
}

impl Patience {
    /// This long, whatever happens.
    pub(crate) fn fixed(limit: Duration) -> Self {
        Self { limit, extended: false, at_most: limit }
    }
}
