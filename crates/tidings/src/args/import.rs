//! `tidings import` as clap types.

use std::path::PathBuf;

use crate::hosts::CLIENTS;

/// Write the servers of a host's mcp.json into `tidings.toml`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidings import claude-desktop
  tidings import vscode --project --replace
  tidings import cursor --config ~/tidings.toml --replace

With --replace, the host starts `tidings serve` with that configuration in place of its servers. The
old files are kept beside the new ones.")]
pub(crate) struct Import {
    /// The host.
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(CLIENTS.map(|client| client.name)))]
    pub(crate) host: String,
    /// Use the project's file in the current directory instead of the user's.
    #[arg(long)]
    pub(crate) project: bool,
    /// Configuration file to add the servers to; it is created if missing.
    #[arg(long, value_name = "FILE", default_value = "tidings.toml")]
    pub(crate) config: PathBuf,
    /// Replace the servers in the host's file by one entry that starts `tidings serve`.
    #[arg(long)]
    pub(crate) replace: bool,
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
