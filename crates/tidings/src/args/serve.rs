//! What `tidings serve` is told.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::args::connection::named;
use crate::args::limits::Limits;
use crate::args::workspace::{BLOB_LIMIT, size};

/// Serve sources to MCP clients of both protocol eras.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  tidings serve --demo                          a space station, on http://127.0.0.1:8484/mcp
  tidings serve --folder my-tools               a directory of scripts, prompts and files
  tidings serve --feed news.xml --in-memory     a news feed, here a file
  tidings serve --feeds                         the feeds that `tidings feeds add` keeps
  tidings serve --workspace notes               artifacts and a graph that many agents share
  tidings serve --demo --stdio                  the same for a client that starts its server
  tidings serve --demo --http 127.0.0.1:0       on any free port

TIDINGS_TOKEN, or the file given with --token-file, holds a bearer token that every client must
send. A token is never taken from the command line, where others could see it.")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Serve {
    /// A space station that changes by itself: something to look at without any set-up.
    #[arg(long)]
    pub(crate) demo: bool,
    /// Seconds between two events of the demo.
    #[arg(long, value_name = "SECONDS", default_value_t = 3.0, requires = "demo", value_parser = seconds)]
    pub(crate) every: f64,
    /// A directory of scripts, prompts and files; may be repeated. `tidings new folder DIR` makes one.
    #[arg(long, value_name = "DIR")]
    pub(crate) folder: Vec<PathBuf>,
    /// A news feed, by its URL, or by the path of a file; may be repeated.
    #[arg(long, value_name = "URL")]
    pub(crate) feed: Vec<String>,
    /// A list of feeds in OPML, a file or a URL; its folders are categories; may be repeated. One
    /// on the web is read while what is kept is served.
    #[arg(long, value_name = "FILE|URL")]
    pub(crate) opml: Vec<String>,
    /// The feeds that are kept already, as by `tidings feeds add`, or that the last server had.
    #[arg(long)]
    pub(crate) feeds: bool,
    /// A file that names feeds and says how they are kept; without it, and if nothing else is
    /// named, `tidings.toml` here.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// A directory where agents share artifacts and a graph; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub(crate) workspace: Option<PathBuf>,
    /// Where to serve Streamable HTTP; `/mcp` is the endpoint, `/livez`, `/readyz` and `/metrics` are
    /// beside it. Anything but a loopback address needs a token.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:8484",
        conflicts_with = "stdio"
    )]
    pub(crate) http: SocketAddr,
    /// Serve one client on standard input and output.
    #[arg(long)]
    pub(crate) stdio: bool,
    /// A Host name to serve besides loopback ones, as `name` or `name:port`; may be repeated.
    #[arg(long, value_name = "HOST")]
    pub(crate) allow_host: Vec<String>,
    /// An Origin whose pages may use the server; may be repeated.
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) allow_origin: Vec<String>,
    /// A file that holds the bearer token, at least 16 characters. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Serve other machines without a token: anybody who reaches this one may use everything.
    #[arg(long)]
    pub(crate) allow_anyone: bool,
    /// Log every HTTP request when it ends, on standard error.
    #[arg(long, conflicts_with = "stdio")]
    pub(crate) access_log: bool,
    /// Milliseconds a change must be quiet before it is told; 0 tells at once.
    #[arg(long, value_name = "MS", default_value_t = 25)]
    pub(crate) quiet: u64,
    /// Milliseconds after which a change is told at the latest.
    #[arg(long, value_name = "MS", default_value_t = 250)]
    pub(crate) max_wait: u64,
    /// Do not tell a fresh legacy session of each list once.
    #[arg(long)]
    pub(crate) silent: bool,
    /// With `--stdio`, print each change and each notice on standard error, not only problems.
    #[arg(long)]
    pub(crate) verbose: bool,
    /// Print one JSON object a line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    // Last: what follows such a group is under its heading.
    #[command(flatten)]
    pub(crate) limits: Limits,
    #[command(flatten)]
    pub(crate) folders: Folders,
    #[command(flatten)]
    pub(crate) keeping: Keeping,
    #[command(flatten)]
    pub(crate) sharing: Sharing,
}

/// How folders are served.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Folders")]
pub(crate) struct Folders {
    /// Run `server.d/register.*` of a folder to learn what it offers, if nobody else can write it.
    #[arg(long, requires = "folder")]
    pub(crate) allow_register: bool,
    /// Seconds between two runs of `server.d/register.*`.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, requires = "allow_register", value_parser = seconds)]
    pub(crate) register_every: f64,
    /// Look at the whole folder every so many seconds, for file systems that tell of no changes.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", requires = "folder", value_parser = seconds)]
    pub(crate) poll: Option<f64>,
    /// Seconds between two looks at a watched resource of a provider.
    #[arg(long, value_name = "SECONDS", default_value_t = 5.0, requires = "folder", value_parser = seconds)]
    pub(crate) provider_every: f64,
    /// A variable for the programs of the folder; may be repeated. NAME passes on the value it has
    /// here. Without it programs see only harmless variables such as PATH and HOME.
    #[arg(long, alias = "pass-env", value_name = "NAME[=VALUE]", requires = "folder", value_parser = named)]
    pub(crate) env: Vec<String>,
    /// Programs of a folder that run at once; more wait their turn.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, requires = "folder", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) runs: u16,
}

/// How feeds are kept and fetched.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Feeds")]
#[expect(clippy::struct_excessive_bools, reason = "a flag of the command line is a bool")]
pub(crate) struct Keeping {
    /// Where feeds are kept; by default `tidings/feeds` below `XDG_DATA_HOME` or `~/.local/share`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Keep feeds in memory only: after a restart every item is new.
    #[arg(long, conflicts_with = "data")]
    pub(crate) in_memory: bool,
    /// Let feeds be on private addresses, such as those of this machine and its network,
    /// and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Serve what is kept, and fetch nothing.
    #[arg(long, conflicts_with = "in_memory")]
    pub(crate) offline: bool,
    /// Offer no tool that changes anything. On a directory that another server has, serve what
    /// that keeps, and fetch when that one is gone.
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// How a workspace is shared.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Workspace")]
pub(crate) struct Sharing {
    /// The largest blob that is taken, as `64MiB` or `1GB`.
    #[arg(long, value_name = "SIZE", default_value = BLOB_LIMIT, requires = "workspace", value_parser = size)]
    pub(crate) blob_limit: u64,
    /// How many events the log keeps; older ones are dropped as new ones come.
    #[arg(long, value_name = "NUMBER", default_value_t = 1_000_000, requires = "workspace", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keep_events: u64,
    /// How many of the newest artifacts are in the list of resources.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, requires = "workspace", value_parser = clap::value_parser!(u32).range(0..=LISTED))]
    pub(crate) listed_artifacts: u32,
    /// How many identities are in the list of resources, the first by id.
    #[arg(long, value_name = "NUMBER", default_value_t = 200, requires = "workspace", value_parser = clap::value_parser!(u32).range(0..=LISTED))]
    pub(crate) listed_identities: u32,
}

/// How many may be listed: each change of the list is compared with all of it.
const LISTED: i64 = 10_000;

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.01..=3600.0).contains(&seconds) => Ok(seconds),
        _ => Err("give a number of seconds from 0.01 to 3600".to_owned()),
    }
}
