//! Options of `tidings serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use tidings_server::Labels;

use crate::args::connection::named;
use crate::args::limits::Limits;
use crate::args::token::label;
use crate::args::workspace::{BLOB_LIMIT, size};
use crate::report::Usage;

/// Serve tools, resources and prompts to MCP clients of every protocol revision.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidings serve --demo                          a space station, on http://127.0.0.1:8484/mcp
  tidings serve --folder my-tools               a directory of scripts, prompts and files
  tidings serve --feed news.xml --in-memory     a news feed, here a file
  tidings serve --feeds                         feeds added with `tidings feeds add`
  tidings serve --workspace notes               artifacts and a graph shared by agents
  tidings serve --upstream 'demo=tidings serve --demo --stdio'
                                                another MCP server, made live
  tidings serve --mcp-file .mcp.json            all servers of a host
  tidings serve --demo --stdio                  for a client that starts its server itself
  tidings serve --demo --http 127.0.0.1:0       on any free port
  tidings serve --demo --console                with a page that shows listeners and changes

Clients must send the bearer token in TIDINGS_TOKEN or in the file given with --token-file, if there
is one. With --tokens, each client has a token of its own, made by `tidings token new`. The command
line takes no token, because other users could see it.")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Serve {
    /// Serve a space station that changes by itself, to try Tidings without any setup.
    #[arg(long)]
    pub(crate) demo: bool,
    /// Seconds between events of the demo.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, requires = "demo", value_parser = seconds)]
    pub(crate) every: f64,
    /// Serve a directory of scripts, prompts and files; may be repeated. `tidings new folder DIR`
    /// creates one.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Vec<PathBuf>,
    /// Serve a news feed, by URL or file path; may be repeated.
    #[arg(long, value_name = "URL")]
    pub(crate) feed: Vec<String>,
    /// Serve the feeds of an OPML list, by file or URL; may be repeated. Its folders become
    /// categories. A list on the web is loaded in the background.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) opml: Vec<String>,
    /// Serve the feeds already stored: those added with `tidings feeds add` and those served last
    /// time.
    #[arg(long)]
    pub(crate) feeds: bool,
    /// Configuration file for folders, feeds and limits; its edits are followed [default: `tidings.toml` in the current directory,
    /// if nothing else is given].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Serve a directory where agents share artifacts and a graph; it is created if missing.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Serve another MCP server, and notify clients of its changes; may be repeated. TARGET is a
    /// URL, the name of a server in an mcp.json, or a command. Its tools are named `NAME__tool`.
    #[arg(long, value_name = "NAME=TARGET")]
    pub(crate) upstream: Vec<String>,
    /// Serve all servers of an mcp.json, except disabled ones. Names in TARGET are looked up there
    /// too.
    #[arg(long, value_name = "FILE")]
    pub(crate) mcp_file: Option<PathBuf>,
    /// Address to listen on for Streamable HTTP. The endpoint is `/mcp`; `/livez`, `/readyz` and
    /// `/metrics` are beside it. Addresses other than loopback need a token.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8484",
        conflicts_with = "stdio"
    )]
    pub(crate) http: SocketAddr,
    /// Serve one client over standard input and output.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// Show who listens and what became of every change in a page at `/console` beside `/mcp`. The
    /// printed link contains its token. Loopback addresses only.
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) console: bool,
    /// Accept this Host besides loopback names, as `name` or `name:port`; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// Accept requests from web pages of this Origin; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// Read the bearer token, at least 16 characters, from this file. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve clients with a token of this file [default: the file of `tidings token`]. Each has a
    /// name and labels, which decide what it sees. Changes of the file take effect at once.
    #[arg(long, value_name = "FILE", num_args = 0..=1, conflicts_with = "stdio")]
    #[expect(clippy::option_option, reason = "the option may be given without a value")]
    pub(crate) tokens: Option<Option<PathBuf>>,
    /// Serve other machines without a token. Anyone who can connect may use everything; with
    /// `--tokens`, everything that is not for a label.
    #[arg(long)]
    pub(crate) allow_anyone: bool,
    /// Offer tools that change feeds or the workspace only to clients with this label; may be
    /// repeated. Other clients read.
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub(crate) writers: Vec<String>,
    /// Give the client of `--stdio` a label, as a token does over HTTP; may be repeated.
    #[arg(long = "label", value_name = "LABEL", requires = "stdio", value_parser = label)]
    pub(crate) labels: Vec<String>,
    /// Log every HTTP request on standard error when it ends.
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) access_log: bool,
    /// Milliseconds without further changes before clients are notified; 0 notifies at once.
    #[arg(long, value_name = "MS", default_value_t = 25)]
    pub(crate) quiet: u64,
    /// Longest time in milliseconds that a notice is delayed while changes continue.
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pub(crate) max_wait: u64,
    /// Do not notify new legacy sessions of each list once.
    #[arg(long)]
    pub(crate) silent: bool,
    /// With `--stdio`, print changes and notices on standard error, not only problems.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    // Last: options after a flattened group appear under its heading.
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) folders: Folders,
    #[command(flatten)]
    pub(crate) keeping: Keeping,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
}

impl Serve {
    /// The labels of clients that may change feeds and the workspace: those of the command line, or
    /// else of the file; none if everyone may.
    pub(crate) fn writers(&self, in_file: &[String]) -> Result<Labels, Usage> {
        let labels = if self.writers.is_empty() { in_file } else { &self.writers };
        Labels::new(labels).map_err(|error| Usage::new(format!("`--writers`: {error}")))
    }

    /// The labels of the client of `--stdio`.
    pub(crate) fn labels(&self) -> Result<Labels, Usage> {
        Labels::new(&self.labels).map_err(|error| Usage::new(format!("`--label`: {error}")))
    }
}

/// How folders are served.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Folders")]
pub(crate) struct Folders {
    /// Run `server.d/register.*` of a folder to register its items. Refused if other users can
    /// write it.
    #[arg(long, requires = "folder")]
    pub(crate) allow_register: bool,
    /// Seconds between runs of `server.d/register.*`.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, requires = "allow_register", value_parser = seconds)]
    pub(crate) register_every: f64,
    /// Seconds between scans of the whole folder, for file systems that do not report changes.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", requires = "folder", value_parser = seconds)]
    pub(crate) poll: Option<f64>,
    /// Seconds between checks of a watched provider resource.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, requires = "folder", value_parser = seconds)]
    pub(crate) provider_every: f64,
    /// Set an environment variable for the folder's programs; may be repeated. `NAME` alone passes
    /// on its current value. Without this option, programs see only harmless variables such as PATH
    /// and HOME.
    #[arg(long, alias = "pass-env", value_name = "NAME[=VALUE]", requires = "folder", value_parser = named)]
    pub(crate) env: Vec<String>,
    /// Programs of a folder that may run at once; further ones wait.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, requires = "folder", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) runs: u16,
}

/// How feeds are stored and fetched.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Feeds")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Keeping {
    /// Directory for stored feeds [default: `tidings/feeds` below `XDG_DATA_HOME` or
    /// `~/.local/share`].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Keep feeds in memory only. After a restart, every item is new.
    #[arg(long, conflicts_with = "data")]
    pub(crate) in_memory: bool,
    /// Allow feeds on private addresses, such as this machine and its network, and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Serve the stored feeds and fetch nothing.
    #[arg(long, conflicts_with = "in_memory")]
    pub(crate) offline: bool,
    /// Offer no tools that change anything. If another server uses the directory, serve its feeds,
    /// and start fetching when it ends.
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// How a workspace is shared.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Workspace")]
pub(crate) struct Sharing {
    /// Largest blob to accept, such as `64MiB` or `1GB`.
    #[arg(long, value_name = "SIZE", default_value = BLOB_LIMIT, requires = "workspace", value_parser = size)]
    pub(crate) blob_limit: u64,
    /// Events to keep in the log. The oldest are dropped as new ones are added.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000, requires = "workspace", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_events: u64,
    /// How many of the newest artifacts to list as resources.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, requires = "workspace", value_parser = clap::value_parser!(u32).range(0..=LISTED))]
    pub(crate) listed_artifacts: u32,
    /// How many identities to list as resources, in order of their ids.
    #[arg(long, value_name = "NUMBER", default_value_t = 200, requires = "workspace", value_parser = clap::value_parser!(u32).range(0..=LISTED))]
    pub(crate) listed_identities: u32,
}

/// The longest list: each change is compared with all of it.
const LISTED: i64 = 10_000;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.01 to 3600".to_owned()),
    }
}
