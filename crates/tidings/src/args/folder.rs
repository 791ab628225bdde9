//! What the commands about a folder are told.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Subcommand, ValueEnum};

use crate::args::connection::{duration, named};
use crate::hosts::CLIENTS;

/// The word that asks for the list of hosts instead of naming one.
pub(crate) const LIST: &str = "list";

/// Make a folder to serve, or add a tool, a prompt or a resource to one.
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
    /// Print one JSON object with the files that were made.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum NewItem {
    /// Make a small folder that shows each kind of thing, and works at once.
    #[command(after_help = "Example:\n  tidings new folder hello")]
    Folder {
        /// The folder to make; it may be there if nothing is in it.
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// Add a tool.
    #[command(after_help = "Example:\n  tidings new tool weather --folder hello")]
    Tool {
        /// What it is called.
        name: String,
        #[command(flatten)]
        into: Into,
        /// One file, described by the comments at its head, instead of a directory.
        #[arg(long)]
        single: bool,
        /// What it is written in.
        #[arg(long, value_enum, default_value_t = Language::Sh)]
        language: Language,
    },
    /// Add a prompt.
    #[command(after_help = "Example:\n  tidings new prompt review --folder hello")]
    Prompt {
        /// What it is called.
        name: String,
        #[command(flatten)]
        into: Into,
    },
    /// Add a resource.
    #[command(after_help = "Example:\n  tidings new resource notes/today.md --folder hello")]
    Resource {
        /// Its file, inside of `resources`.
        #[arg(value_name = "NAME")]
        name: PathBuf,
        #[command(flatten)]
        into: Into,
    },
}

/// Which folder something is added to.
#[derive(Debug, clap::Args)]
pub(crate) struct Into {
    /// The folder to add it to.
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub(crate) folder: PathBuf,
}

/// What a new tool is written in.
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

/// Print how a well-known host starts a server, or write that into the host's file.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Without --client the hosts are listed, with their files. With --write everything else in the file
stays as it is, and the old file is kept beside it as FILE.bak. After two dashes, options of
`tidings serve` say what is served: feeds, a workspace, or more than one folder.

Examples:
  tidings config --client list
  tidings config hello --client claude-desktop
  tidings config --client cursor -- --feeds --read-only")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Config {
    /// The folder to serve.
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Further options of `tidings serve`.
    #[arg(last = true, value_name = "OPTION")]
    pub(crate) serve: Vec<String>,
    /// A variable for the programs of the folder; may be repeated. A value is written into the
    /// host's file; without one the host must have the variable itself.
    #[arg(long, value_name = "NAME[=VALUE]", value_parser = named)]
    pub(crate) env: Vec<String>,
    /// The host, or `list`.
    #[arg(long, value_name = "NAME", value_parser = clients())]
    pub(crate) client: Option<String>,
    /// What the server is called there; without it, as the folder.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Write it into the host's file.
    #[arg(long, requires = "client")]
    pub(crate) write: bool,
    /// The file of the project in the current folder, instead of the user's.
    #[arg(long, requires = "client")]
    pub(crate) project: bool,
    /// Replace another server of that name.
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Print one JSON object a line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

fn clients() -> PossibleValuesParser {
    CLIENTS.iter().map(|client| client.name).chain([LIST]).collect::<Vec<_>>().into()
}

/// Tell everything that is wrong in a folder.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
It ends with 0 if there are no errors, 1 if there are, and 2 if there is no such folder.

Example:
  tidings lint hello")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Lint {
    /// The folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// Mend what can be mended without changing what anything means, and look again.
    #[arg(long)]
    pub(crate) fix: bool,
    /// End with 1 for warnings too.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Run `server.d/register.*` to learn what the folder offers, as `serve` does with this option.
    #[arg(long)]
    pub(crate) allow_register: bool,
    /// Print one JSON object a line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Run a tool of a folder as a server would, and show what it would answer.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A value is read as the type that the tool's schema declares, as `tidings call` does. What the tool
logs is on standard error.

Example:
  tidings run hello greet name=Ada")]
pub(crate) struct Run {
    /// The folder.
    #[arg(value_name = "DIR")]
    pub(crate) folder: PathBuf,
    /// The tool.
    pub(crate) tool: String,
    /// Its arguments.
    #[arg(value_name = "KEY=VALUE")]
    pub(crate) words: Vec<String>,
    /// Arguments as a JSON object: the text itself, `@FILE`, or `-` for standard input.
    #[arg(long, value_name = "JSON|@FILE|-")]
    pub(crate) args: Option<String>,
    /// Save images, audio and embedded resources in this folder.
    #[arg(long, value_name = "FOLDER")]
    pub(crate) save: Option<PathBuf>,
    /// A variable for the tool; may be repeated. NAME passes on the value it has here. Without it
    /// a tool sees only harmless variables such as PATH and HOME.
    #[arg(long, alias = "pass-env", value_name = "NAME[=VALUE]", value_parser = named)]
    pub(crate) env: Vec<String>,
    /// Run `server.d/register.*` to learn what the folder offers, as `serve` does with this option.
    #[arg(long)]
    pub(crate) allow_register: bool,
    /// How long to wait for the answer, as `30s` or `5m`; without it as long as the tool may take.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print one JSON object a line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
