//! `tidings feeds` as clap types.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Subcommand, ValueEnum};

use super::connection::{Header, duration};

const EXAMPLE: &str = "\
Examples:
  tidings feeds health
  echo '<rss><channel><title>News</title></channel></rss>' | tidings feeds parse -";

/// Keep news feeds: which there are, how they do, and what is in them.
///
/// The feeds are those that `tidings serve` keeps in the same directory. A server that runs there
/// sees what is changed within a second.
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
    /// Leave feeds alone until they are resumed; what is kept of them is served on.
    #[command(after_help = "Example:\n  tidings feeds pause news.xml")]
    Pause(FeedsNamed),
    /// Ask feeds again that were paused.
    #[command(after_help = "Example:\n  tidings feeds resume news.xml")]
    Resume(FeedsNamed),
    Import(FeedsImport),
    Export(FeedsExport),
    Parse(FeedsParse),
}

/// Where feeds are kept.
#[derive(Debug, clap::Args)]
pub(crate) struct FeedsPlace {
    /// Where feeds are kept; by default where the configuration says, else `tidings/feeds` below
    /// `XDG_DATA_HOME` or `~/.local/share`.
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
    /// The configuration that `tidings serve` was given; without it and `--data`, `tidings.toml`
    /// here.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// Which feeds, and how they are shown.
#[derive(Debug, clap::Args)]
pub(crate) struct ShownFeeds {
    #[command(flatten)]
    pub(crate) place: FeedsPlace,
    /// Print one JSON object a line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// List the feeds: how each does, when it is fetched next, how many items it has.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds ls")]
pub(crate) struct FeedsLs {
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Show how the feeds do: how many of each state, which fail and why, what is due.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds health")]
pub(crate) struct FeedsHealth {
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Add feeds, by their URLs, those of pages that have one, or the paths of files.
///
/// Each is read first, so that its items are there at once. One that is there already gets the
/// title, category, interval and headers that are given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds add news.xml --category World --interval 30m")]
pub(crate) struct FeedsAdd {
    /// Feeds, pages that have one, or files.
    #[arg(value_name = "URL", required = true)]
    pub(crate) urls: Vec<String>,
    /// A title in place of its own.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// The folder it is in; `/` is between folders.
    #[arg(long, visible_alias = "folder")]
    pub(crate) category: Option<String>,
    /// How often it is fetched, as `30m` or `2h`; by default that depends on how often it changes.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) interval: Option<Duration>,
    /// A header for its requests; may be repeated. It is kept with the feed. `NAME:@FILE` takes
    /// the value from a file, and `${VARIABLE}` in a value is replaced from the environment.
    #[arg(long, value_name = "NAME:VALUE")]
    pub(crate) header: Vec<Header>,
    /// Add it without looking what is there.
    #[arg(long)]
    pub(crate) unseen: bool,
    /// Let it be on a private address, such as those of this machine and its network,
    /// and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Remove feeds and all that is kept of them.
///
/// One that the server was told of when it was started is there again when it is started again.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds rm news.xml")]
pub(crate) struct FeedsRm {
    #[command(flatten)]
    pub(crate) named: FeedsNamed,
}

/// Feeds by their names.
#[derive(Debug, clap::Args)]
pub(crate) struct FeedsNamed {
    /// Feeds, by their ids or URLs.
    #[arg(value_name = "ID|URL", required = true)]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Fetch feeds now, and show what is really new in them.
///
/// If a server runs on the directory it fetches them, else this program does. A host that wants to
/// be left alone is.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds refresh")]
pub(crate) struct FeedsRefresh {
    /// Feeds, by their ids or URLs; without any, all.
    #[arg(value_name = "ID|URL")]
    pub(crate) names: Vec<String>,
    /// How long to wait for a server that runs on the directory, or for another that refreshes.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) timeout: Duration,
    /// Let them be on private addresses, such as those of this machine and its network,
    /// and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Add the feeds of a list in OPML; its folders are categories.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds import subscriptions.opml")]
pub(crate) struct FeedsImport {
    /// The list: a file, a URL, or `-` for standard input.
    #[arg(value_name = "FILE|URL")]
    pub(crate) list: String,
    /// Let the list be on a private address, and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    #[command(flatten)]
    pub(crate) kept: ShownFeeds,
}

/// Write the feeds as a list for other programs, or their items as one document.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  tidings feeds export -o subscriptions.opml")]
pub(crate) struct FeedsExport {
    /// Feeds, by their ids or URLs; without any, all.
    #[arg(value_name = "ID|URL")]
    pub(crate) names: Vec<String>,
    /// What is written.
    #[arg(long, value_enum, default_value_t = ExportFormat::Opml)]
    pub(crate) format: ExportFormat,
    /// How many items are written, the newest.
    #[arg(long, value_name = "NUMBER", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Where it is written to; without it, standard output.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) place: FeedsPlace,
}

/// How feeds are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The list of feeds, with categories as folders.
    Opml,
    /// Items as RSS 2.0.
    Rss,
    /// Items as Atom 1.0.
    Atom,
    /// Items as JSON Feed 1.1.
    Json,
    /// Items as a table.
    Csv,
}

/// Show what is read of feed documents, without serving them.
///
/// RSS of any version, Atom, JSON Feed and CDF are read, also where they are not well formed; what
/// was wrong is shown below the items. The exit code is 0 if every document could be had, whatever
/// it holds.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  echo '<rss><channel><title>News</title></channel></rss>' | tidings feeds parse -"
)]
pub(crate) struct FeedsParse {
    /// Files or URLs of one document each; `-` is standard input.
    #[arg(value_name = "FILE|URL", required = true)]
    pub(crate) documents: Vec<String>,
    /// Let URLs be on private addresses, such as those of this machine and its network,
    /// and on any port.
    #[arg(long)]
    pub(crate) allow_private: bool,
    /// Print one JSON object a line instead of text, one for each document.
    #[arg(long)]
    pub(crate) json: bool,
}
