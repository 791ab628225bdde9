//! The command line of `tidings open`.

use std::path::PathBuf;

use super::Connection;

/// Show servers in a page: lists, contents, calls and every message, live.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "tidings open [OPTIONS] [TARGET]...\n       tidings open [OPTIONS] -- COMMAND [ARGUMENT]...",
    after_help = "\
If a console is running, it takes the servers, and this command prints its link and ends. Otherwise
this command is the console: Ctrl-C ends the page, the connections and the programs it started.
Client commands use a server of the console with `@NAME` as TARGET.

The page is served on 127.0.0.1 only. The printed link contains a token: whoever has the link can use
the servers as you can. From another machine, forward the port with `ssh -L`.

Example:
  tidings open --demo --no-browser"
)]
pub(crate) struct Open {
    /// Servers: URLs, names from an mcp.json, or saved sessions as FILE.tidings.
    #[arg(value_name = "TARGET")]
    pub(crate) words: Vec<String>,
    /// Add a space station that changes by itself, to try the page.
    #[arg(long)]
    pub(crate) demo: bool,
    /// Start another console, even if one is running. `@NAME` does not reach it.
    #[arg(long)]
    pub(crate) new: bool,
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
