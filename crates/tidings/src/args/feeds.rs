//! `tidings feeds` as clap types.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::connection::{Header, duration};

const EXAMPLE: &str = "\
Examples:
  tidings feeds health
  echo '<rss><channel><title>News</title></channel></rss>' | tidings feeds parse -";

/// Manage the stored feeds: add, remove, refresh, check, import and export.
///
/// These are the feeds that `tidings serve` stores in the same directory. A running server applies
/// changes within a second.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLE)]
pub(crate) struct Feeds {
    #[command(subcommand)]
    pub(crate) command: FeedsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedsCommand {
    Ls(FeedsLs),
    Health(FeedsHealth),
    Add(FeedsAdd),
    Rm(FeedsRm),
    Refresh(FeedsRefresh),
    /// Stop fetching feeds until they are resumed. Their stored items are still served.
    #[command(after_help = "Example:\n  tidings feeds pause news.xml")]
    Pause(FeedsNamed),
    /// Fetch paused feeds again.
    #[command(after_help = "Example:\n  tidings feeds resume news.xml")]
    Resume(FeedsNamed),
    Import(FeedsImport),
    Export(FeedsExport),
    Parse(FeedsParse),
}

/// The directory of the stored feeds.
#[derive(Debug, clap::Args)]
pub(crate) struct FeedsPlace {
    /// Directory of the stored feeds [default: as configured, else `tidings/feeds` below
    /// `XDG_DATA_HOME` or `~/.local/share`].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// Configuration file of `tidings serve` [default: `tidings.toml` in the current directory,
    /// unless `--data` is given].
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// The stored feeds, and the format of the output.
#[derive(Debug, clap::Args)]
pub(crate) struct ShownFeeds {
    #[command(flatten)]
    pub(crate) place: FeedsPlace,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the feeds with their state, next fetch and number of items.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds ls")]
pub(crate) struct FeedsLs {
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Summarize the state of all feeds: failures and their causes, and due fetches.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds health")]
pub(crate) struct FeedsHealth {
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Add feeds by URL, by the URL of a page that links to one, or by file path.
///
/// Each feed is fetched first, so its items are available at once. A feed that exists already gets
/// the given title, category, interval and headers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds add news.xml --category World --interval 30m")]
pub(crate) struct FeedsAdd {
    /// Feeds, pages that link to one, or files.
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// Title to use instead of the feed's own.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Category of the feed; `/` separates levels.
    #[arg(long, visible_alias = "folder")]
    pub(crate) category: Option<String>,
    /// Time between fetches, such as `30m` or `2h` [default: depends on how often the feed
    /// changes].
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) interval: Option<Duration>,
    /// Add a header to the feed's requests; may be repeated. It is stored with the feed.
    /// `NAME:@FILE` reads the value from a file. `${VARIABLE}` in a value is replaced from the
    /// environment.
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) header: Vec<Header>,
    /// Add it without fetching it first.
    #[arg(long)]
    pub(crate) unseen: bool,
    /// Allow private addresses, such as this machine and its network, and any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Remove feeds and their stored items.
///
/// A feed that is named in the options or the configuration of `tidings serve` is added again when
/// the server restarts.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds rm news.xml")]
pub(crate) struct FeedsRm {
    #[command(flatten)]
    pub(crate) named: FeedsNamed,
}

/// Stored feeds, by id or URL.
#[derive(Debug, clap::Args)]
pub(crate) struct FeedsNamed {
    /// Ids or URLs of feeds.
    #[arg(value_name = "ID|URL", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Fetch feeds now, and show new and changed items.
///
/// If a server uses the directory, it fetches the feeds; otherwise this command does. Hosts that
/// sent `Retry-After` are skipped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds refresh")]
pub(crate) struct FeedsRefresh {
    /// Ids or URLs of feeds [default: all].
    #[arg(value_name = "ID|URL")]
    pub(crate) names: Vec<String>,
    /// Time to wait for the server that uses the directory, or for another refresh.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Allow private addresses, such as this machine and its network, and any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Add the feeds of an OPML list; its folders become categories.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds import subscriptions.opml")]
pub(crate) struct FeedsImport {
    /// List to import: a file, a URL, or `-` for standard input.
    #[arg(value_name = "FILE|URL")]
    pub(crate) list: String,
    /// Allow the list to be on a private address and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Export the feeds as an OPML list, or their items as one document.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds export -o subscriptions.opml")]
pub(crate) struct FeedsExport {
    /// Ids or URLs of feeds [default: all].
    #[arg(value_name = "ID|URL")]
    pub(crate) names: Vec<String>,
    /// Format of the output.
    #[arg(long, value_enum, default_value_t = ExportFormat::Opml)]
    pub(crate) format: ExportFormat,
    /// Number of items to write, newest first.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// File to write [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: FeedsPlace,
}

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// List of feeds, with categories as folders.
    Opml,
    /// Items as RSS 2.0.
    Rss,
    /// Items as Atom 1.0.
    Atom,
    /// Items as JSON Feed 1.1.
    Json,
    /// Items as CSV.
    Csv,
}

/// Parse feed documents and print their items, without storing them.
///
/// All versions of RSS, Atom, JSON Feed and CDF are parsed, even if malformed; problems are printed
/// below the items. The exit code is 0 if every document could be loaded, whatever it contains.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  echo '<rss><channel><title>News</title></channel></rss>' | tidings feeds parse -"
)]
pub(crate) struct FeedsParse {
    /// Files or URLs of one document each; `-` is standard input.
    #[arg(value_name = "FILE|URL", required = true)]
    pub(crate) documents: Vec<String>,
    /// Allow private addresses, such as this machine and its network, and any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Print one JSON object per line and document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}
