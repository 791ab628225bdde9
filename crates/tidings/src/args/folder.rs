//! What the commands about a folder are told.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

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
