//! The input of a tool call: arguments, variables, and files for values that are too long.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tidings_store::temporary::{self, Directory};

use super::roots::ToolRoot;
use crate::offer::ToolScript;
use crate::script::Job;
use crate::workshop::{Environment, Workshop};

/// The longest value of a variable. Systems refuse to start a program with one of 128 KiB.
const VARIABLE: usize = 64 << 10;

/// A call as the client sent it.
#[derive(Clone, Debug)]
pub(super) struct CallRequest {
    /// As compact JSON.
    pub(super) arguments: String,
    /// As compact JSON.
    pub(super) meta: String,
    pub(super) progress_token: Option<String>,
    pub(super) roots: Vec<ToolRoot>,
}

/// A failure as the SDK of `mcp-bash` reports it: a JSON-RPC code and a message.
#[derive(Debug, Deserialize)]
pub(super) struct ReportedFailure {
    pub(super) code: i64,
    pub(super) message: String,
}

/// The file in which a tool reports its failure.
const FAILURE: &str = "failure";
/// The prefix of private directories.
const PREFIX: &str = "tidings-call-";

/// The private directory of one call, removed when it is dropped.
#[derive(Debug)]
pub(super) struct CallFiles(Directory);

impl CallFiles {
    pub(super) fn new(workshop: &Workshop) -> io::Result<Self> {
        Ok(Self(Directory::new(&workshop.scratch, PREFIX)?))
    }

    /// Removes private directories of killed processes.
    pub(super) fn sweep(scratch: &Path) {
        temporary::sweep(scratch, PREFIX);
    }

    /// The file in which the tool lists files to embed.
    pub(super) fn resources(&self) -> PathBuf {
        self.0.path().join("resources")
    }

    pub(super) fn has_resources(&self) -> bool {
        std::fs::metadata(self.resources()).is_ok_and(|found| found.len() > 0)
    }

    /// The failure that the tool reported, as the SDK of `mcp-bash` does.
    pub(super) fn failure(&self) -> Option<ReportedFailure> {
        let text = std::fs::read(self.0.path().join(FAILURE)).ok()?;
        serde_json::from_slice(&text).ok()
    }

    fn write(&self, name: &str, content: &str) -> io::Result<PathBuf> {
        let path = self.0.path().join(name);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(content.as_bytes())?;
        Ok(path)
    }
}

/// The run that answers a call.
pub(super) fn job(
    workshop: &Workshop,
    script: &ToolScript,
    request: CallRequest,
    files: &CallFiles,
) -> io::Result<Job> {
    let mut job = workshop.job(&script.program, &script.directory, script.patience);
    let environment = &mut job.environment;
    set(environment, "MCP_TOOL_NAME", script.tool.name.as_ref());
    set(environment, "MCP_TOOL_PATH", script.program.path.clone());
    set(environment, "MCP_TOOL_RESOURCES_FILE", files.write("resources", "")?);
    set(environment, "MCP_TOOL_ERROR_FILE", files.write(FAILURE, "")?);
    set(environment, "MCP_ELICIT_SUPPORTED", "0");
    // The SDK of `mcp-bash` writes progress and log lines there, where we read them.
    let stream = files.0.path().join("signs");
    symlink("/dev/stderr", &stream)?;
    set(environment, "MCP_PROGRESS_STREAM", stream.clone());
    set(environment, "MCP_LOG_STREAM", stream.clone());
    job.stream = Some(stream);
    if let Some(token) = request.progress_token.filter(|token| !token.contains('\0')) {
        set(environment, "MCP_PROGRESS_TOKEN", token);
    }
    let roots = serde_json::to_string(&request.roots).map_err(io::Error::other)?;
    let mut paths =
        request.roots.iter().map(|root| root.path.as_str()).collect::<Vec<_>>().join("\n");
    if paths.len() > VARIABLE {
        paths.clear();
    }
    set(environment, "MCP_ROOTS_PATHS", paths);
    set(environment, "MCP_ROOTS_COUNT", request.roots.len().to_string());
    for (name, json) in [
        ("MCP_TOOL_ARGS", request.arguments.as_str()),
        ("MCP_TOOL_META", &request.meta),
        ("MCP_TOOL_METADATA", &script.metadata.to_string()),
        ("MCP_ROOTS", &roots),
    ] {
        let in_variable = if json.len() <= VARIABLE { json } else { "" };
        set(environment, &format!("{name}_JSON"), in_variable);
        if json.len() > VARIABLE {
            set(environment, &format!("{name}_FILE"), files.write(name, json)?);
        }
    }
    job.input = request.arguments.into_bytes();
    Ok(job)
}

fn set(environment: &mut Environment, name: &str, value: impl Into<OsString>) {
    environment.push((name.into(), value.into()));
}
