//! `tidings upstream` as clap types.

use clap::Subcommand;

const EXAMPLE: &str = "\
Examples:
  tidings upstream ls
  tidings upstream health --json
  tidings upstream restart github
  tidings upstream approve github";

/// Look after the upstream servers of a running `tidings serve`.
///
/// The command speaks with the server through a socket that only you can use. If you run several
/// servers with upstreams, choose one with --server.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLE)]
pub(crate) struct Upstream {
    /// Process id of the server, if several are running.
    #[arg(long, global = true, value_name = "PID")]
    pub(crate) server: Option<u32>,
    /// Print one JSON object per line instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: UpstreamCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum UpstreamCommand {
    /// List the upstreams and what they offer.
    #[command(after_help = "Example:\n  tidings upstream ls")]
    Ls,
    /// Show how each upstream is: its state, why, counts, problems. Exits with 1 if one is down.
    #[command(after_help = "Example:\n  tidings upstream health")]
    Health,
    /// Connect to an upstream anew; a program is ended and started again.
    #[command(after_help = "Example:\n  tidings upstream restart github")]
    Restart {
        /// Its name.
        name: String,
    },
    /// Approve the new and changed definitions of an upstream with `pin = true`, and print them.
    #[command(after_help = "Example:\n  tidings upstream approve github")]
    Approve {
        /// Its name.
        name: String,
    },
}
