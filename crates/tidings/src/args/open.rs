//! The command line of `tidings open`.

use std::path::PathBuf;

use super::Connection;

/// Show servers in a page: lists, contents, calls and every message, live.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings open [OPTIONS] [TARGET]...\n       tidings open [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "\
The page is served on 127.0.0.1 only. The printed link contains a token: whoever has the link can use
the servers as you can. From another machine, forward the port with `ssh -L`. Ctrl-C ends the page,
the connections and the programs it started.

Example:
  tidings open --demo --no-browser"
)]
pub(crate) struct Open {
    /// Servers: URLs, or names from an mcp.json.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    /// Add a space station that changes by itself, to try the page.
    #[arg(long)]
    pub(crate) demo: bool,
    /// Print the link, and do not start a browser.
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Port of the page [default: any free port].
    #[arg(long, default_value_t = 0, hide_default_value = true)]
    pub(crate) port: u16,
    /// Read the files of the page from this folder, to edit them.
    #[arg(long, value_name = "FOLDER", hide = true)]
    pub(crate) web_root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}
