//! `tidings feeds` as clap types.

use clap::Subcommand;

const EXAMPLE: &str = "\
Example:
  echo '<rss><channel><title>News</title></channel></rss>' | tidings feeds parse -";

/// Look at news feeds.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true, after_help = EXAMPLE)]
pub(crate) struct Feeds {
    #[command(subcommand)]
    pub(crate) command: FeedsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum FeedsCommand {
    Parse(FeedsParse),
}

/// Show what is read of feed documents, without serving them.
///
/// RSS of any version, Atom, JSON Feed and CDF are read, also where they are not well formed; what
/// was wrong is shown below the items. The exit code is 0 if every file could be opened, whatever
/// it holds.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub(crate) struct FeedsParse {
    /// Files with one document each; `-` is standard input.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<String>,
    /// Print one JSON object a line instead of text, one for each file.
    #[arg(long)]
    pub(crate) json: bool,
}
