//! Options of the commands about a folder.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};

use crate::args::connection::{duration, named};
use crate::hosts::CLIENTS;

/// The word that lists the hosts instead of naming one.
pub(crate) const LIST: &str = "list";

/// Create a folder to serve, or add a tool, prompt or resource to one.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidings new folder hello
  tidings new tool weather --folder hello
  tidings new prompt review --folder hello
  tidings new resource notes/today.md --folder hello")]
pub(crate) struct New {
    #[command(subcommand)]
    pub(crate) what: NewItem,
    /// Print one JSON object with the created files.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NewItem {
    /// Create a small working folder with an item of each kind.
    #[command(after_help = "Example:\n  tidings new folder hello")]
    Folder {
        /// Folder to create; it may exist if it is empty.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Add a tool.
    #[command(after_help = "Example:\n  tidings new tool weather --folder hello")]
    Tool {
        /// Name of the tool.
        name: String,
        #[command(flatten)]
        into: Into,
        /// Create one file, described by the comments at its top, instead of a directory.
        #[arg(long)]
        single: bool,
        /// Language of the tool.
        #[arg(long, value_enum, default_value_t = Language::Sh)]
        language: Language,
    },
    /// Add a prompt.
    #[command(after_help = "Example:\n  tidings new prompt review --folder hello")]
    Prompt {
        /// Name of the prompt.
        name: String,
        #[command(flatten)]
        into: Into,
    },
    /// Add a resource.
    #[command(after_help = "Example:\n  tidings new resource notes/today.md --folder hello")]
    Resource {
        /// File to create, relative to `resources`.
        #[arg(value_name = "NAME")]
        name: PathBuf,
        #[command(flatten)]
        into: Into,
    },
}

/// The folder that an item is added to.
#[derive(Debug, clap::Args)]
pub(crate) struct Into {
    /// Folder to add it to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
}

/// The language of a new tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Language {
    Sh,
    Python,
}

/// Whether a new tool is a directory or one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Directory,
    Single,
}

/// Print or write the configuration with which a well-known host starts a server.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --client, the supported hosts and their files are listed. --write changes nothing else in
the file, and keeps the old one as FILE.bak. To serve feeds, a workspace or several folders, put
options of `tidings serve` after two dashes.

Examples:
  tidings config --client list
  tidings config hello --client claude-desktop
  tidings config --client cursor -- --feeds --read-only")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Config {
    /// Folder to serve.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Further options of `tidings serve`.
    #[arg(last = true, value_name = "OPTION")]
    pub(crate) serve: Vec<String>,
    /// Set an environment variable for the folder's programs; may be repeated. A value is written
    /// to the host's file; without a value, the host must have the variable.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = named)]
    pub(crate) env: Vec<String>,
    /// Host to configure, or `list`.
    #[arg(long, value_name = "NAME", value_parser = clients())]
    pub(crate) client: Option<String>,
    /// Name of the server in the host's file [default: the name of the folder].
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write the configuration to the host's file.
    #[arg(long, requires = "client")]
    pub(crate) write: bool,
    /// Use the project's file in the current directory instead of the user's.
    #[arg(long, requires = "client")]
    pub(crate) project: bool,
    /// Replace a different server of that name.
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

fn clients() -> PossibleValuesParser {
    CLIENTS.iter().map(|client| client.name).chain([LIST]).collect::<Vec<_>>().into()
}

/// Report every problem of a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The exit code is 0 if there are no errors, 1 if there are, and 2 if the folder does not exist.

Example:
  tidings lint hello")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Lint {
    /// Folder to check.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Repair problems that can be repaired without changing any meaning, then check again.
    #[arg(long)]
    pub(crate) fix: bool,
    /// Exit with 1 for warnings too.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run `server.d/register.*` to register items, as `serve` does with this option.
    #[arg(long)]
    pub(crate) allow_register: bool,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a tool of a folder as a server would, and print its result.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Values are converted to the types of the tool's schema, as in `tidings call`. Log messages of the
tool are printed on standard error.

Example:
  tidings run hello greet name=Ada")]
pub(crate) struct Run {
    /// Folder of the tool.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Tool to run.
    pub(crate) tool: String,
    /// Arguments of the tool.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Arguments as a JSON object: the JSON itself, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) args: Option<String>,
    /// Save images, audio and embedded resources to this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    /// Set an environment variable for the tool; may be repeated. `NAME` alone passes on its
    /// current value. Without this option, the tool sees only harmless variables such as PATH and
    /// HOME.
    #[arg(long, alias = "pass-env", value_name = "NAME[=VALUE]", value_parser = named)]
    pub(crate) env: Vec<String>,
    /// Run `server.d/register.*` to register items, as `serve` does with this option.
    #[arg(long)]
    pub(crate) allow_register: bool,
    /// Time to wait for the result, such as `30s` or `5m` [default: the tool's own limit].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
