//! Options of `tidings check`.

use std::path::PathBuf;
use std::time::Duration;

use crate::args::connection::{Connection, duration};
use crate::check::topic::Topic;

/// Judge how a server keeps its clients current.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings check [OPTIONS] TARGET\n       tidings check [OPTIONS] --folder FOLDER\n       tidings check [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "\
Several clients connect in both protocol eras. Without a change they can only list, read and
listen, so give one: a tool call, or a command. `{n}` in it is replaced by a number that grows.

Exit code: 0 if no check failed with an error, 1 if one did, 2 if the server could not be checked.
docs/check.md describes every check.

Examples:
  tidings check -- tidings serve --demo --stdio
  tidings check --change 'dock_module module=iris' -- tidings serve --demo --stdio --every 3600"
)]
pub(crate) struct CheckServer {
    /// Server: a URL, or a name from an mcp.json.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    /// Serve a copy of this folder in memory, and edit the copy.
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["change", "exec", "auto", "restart", "restart_exec"])]
    pub(crate) folder: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) causes: Causes,
    #[command(flatten)]
    pub(crate) bounds: Bounds,
    #[command(flatten)]
    pub(crate) reports: Reports,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// What is changed, and how.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Changes")]
pub(crate) struct Causes {
    /// Cause changes with this tool call.
    #[arg(long, value_name = "TOOL KEY=VALUE", group = "made", conflicts_with = "auto")]
    pub(crate) change: Option<String>,
    /// Cause changes with this command, run with `sh -c`.
    #[arg(long, value_name = "COMMAND", group = "made", conflicts_with = "auto")]
    pub(crate) exec: Option<String>,
    /// Undo a change with this tool call. Change and undo then take turns.
    #[arg(long, value_name = "TOOL KEY=VALUE", requires = "made", conflicts_with = "undo_exec")]
    pub(crate) undo: Option<String>,
    /// Undo a change with this command.
    #[arg(long, value_name = "COMMAND", requires = "made")]
    pub(crate) undo_exec: Option<String>,
    /// What the change moves: tools, prompts, resources, templates, or a URI; may be repeated. Without
    /// it, lists and resources are compared to find out.
    #[arg(long, value_name = "LIST|URI")]
    pub(crate) expects: Vec<Topic>,
    /// Try tools that say they neither destroy anything nor reach other systems.
    #[arg(long)]
    pub(crate) auto: bool,
    /// Restart the server, if it is a program that this command started.
    #[arg(long, conflicts_with = "restart_exec")]
    pub(crate) restart: bool,
    /// Restart a server behind a URL with this command.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) restart_exec: Option<String>,
    /// Read the bearer token of another user from this file, to compare what it gets.
    #[arg(long, value_name = "FILE")]
    pub(crate) other_token: Option<PathBuf>,
}

/// How long and how much.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct Bounds {
    /// The longest a notice may take.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) within: Duration,
    /// How long to listen while nothing is changed.
    #[arg(long, value_name = "DURATION", default_value = "1500ms", value_parser = duration)]
    pub(crate) listen: Duration,
    /// Also check a subscriber that is idle for six minutes, or for this time.
    #[arg(long, value_name = "DURATION", value_parser = duration, num_args = 0..=1, require_equals = true, default_missing_value = "6m")]
    pub(crate) long: Option<Duration>,
    /// Stop after this many requests.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    pub(crate) max_requests: usize,
    /// Stop after this time; `--long` adds its own.
    #[arg(long, value_name = "DURATION", default_value = "3m", value_parser = duration)]
    pub(crate) max_time: Duration,
}

/// What is written where.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Reports")]
pub(crate) struct Reports {
    /// Count warnings and checks that were not tried as failures.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Failures that are known: one check a line, such as `notice.once legacy`. An entry whose check
    /// passes is a failure.
    #[arg(long, value_name = "FILE")]
    pub(crate) baseline: Option<PathBuf>,
    /// Write a report in Markdown.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Write a report in the XML of `JUnit`.
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}
