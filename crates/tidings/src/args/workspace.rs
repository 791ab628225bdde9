//! `tidings workspace` as clap types.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use tidings_workspace::Change;

use crate::args::connection::duration;

/// Inspect and maintain a workspace, whether or not a server has it open.
///
/// If a server has it open, its clients are notified of changes within a second.
#[derive(Debug, clap::Args)]
#[command(
    arg_required_else_help = true,
    after_help = "\
Examples:
  echo 'hello world' | tidings workspace notes import - --title Greeting --tag type:note
  tidings workspace notes ls --tag type:note
  tidings workspace notes log
  tidings workspace notes verify"
)]
pub(crate) struct Workspace {
    /// Directory of the workspace; `tidings serve --workspace DIR` and `import` create one.
    pub(crate) dir: PathBuf,
    #[command(subcommand)]
    pub(crate) command: WorkspaceCommand,
    /// Print one JSON object per line instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Name to record in the log for writes, and as the creator of imported artifacts.
    #[arg(long, global = true, value_name = "NAME", default_value = "cli")]
    pub(crate) by: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List artifacts, newest first, or in the order of a set.
    Ls(WorkspaceList),
    /// Show an artifact with its lineage, annotations and the beginning of its text.
    Show(WorkspaceShow),
    /// Add tags to an artifact.
    Tag(WorkspaceTag),
    /// Remove tags from an artifact.
    Untag(WorkspaceTag),
    /// Show the log of writes, oldest first.
    Log(WorkspaceLog),
    /// Import files and folders as artifacts.
    ///
    /// A file becomes an artifact titled with its name. A folder becomes a set of the same name; its
    /// files are titled with their paths and sorted by them. Hidden files, links and special files are
    /// skipped. The workspace is created if missing, unless no path can be read. Unreadable files are
    /// reported and skipped; the exit code is then 1.
    Import(WorkspaceImport),
    /// Export artifacts as files, with a `manifest.json` that describes them.
    ///
    /// Files are named after titles. Archived artifacts are included. Without a filter, the manifest
    /// also contains the graph.
    Export(WorkspaceExport),
    /// Remove blobs that no artifact refers to.
    Gc(WorkspaceGc),
    /// Check every blob and every reference; the exit code is 1 if something is wrong.
    Verify,
    /// Write the whole workspace to a new file; the exit code is 1 if blobs are damaged or missing.
    Backup(WorkspaceFile),
    /// Create a workspace from a backup.
    Restore(WorkspaceFile),
}

/// Which artifacts.
#[derive(Debug, clap::Args)]
pub(crate) struct Select {
    /// Select artifacts with this tag; may be repeated, and all tags must match.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Select artifacts of this creator.
    #[arg(long, value_name = "NAME")]
    pub(crate) creator: Option<String>,
    /// Select artifacts of this set, in its order.
    #[arg(long, value_name = "NAME")]
    pub(crate) set: Option<String>,
}

/// Options of `workspace ls`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceList {
    #[command(flatten)]
    pub(crate) select: Select,
    /// Include archived artifacts.
    #[arg(long)]
    pub(crate) archived: bool,
    /// List at most this many.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// List the artifacts after the one with this id.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
}

/// Options of `workspace show`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceShow {
    /// The id of an artifact.
    pub(crate) id: String,
    /// Print only the content, byte for byte.
    #[arg(long, conflicts_with = "json")]
    pub(crate) content: bool,
}

/// Tags of an artifact.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceTag {
    /// The id of an artifact.
    pub(crate) id: String,
    /// Tags, plain or as `category:value`.
    #[arg(value_name = "TAG", required = true)]
    pub(crate) tags: Vec<String>,
}

/// Options of `workspace log`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceLog {
    /// Show events after this number [default: the newest events].
    #[arg(long, value_name = "NUMBER")]
    pub(crate) since: Option<u64>,
    /// Show events of this kind; may be repeated.
    #[arg(long = "type", value_name = "KIND", value_parser = PossibleValuesParser::new(Change::KINDS))]
    pub(crate) types: Vec<String>,
    /// Show at most this many events [default: 20, or all with `--since`].
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Keep printing new events until Ctrl-C.
    #[arg(long, short, conflicts_with = "limit")]
    pub(crate) follow: bool,
}

/// Options of `workspace import`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceImport {
    /// Files and folders to import; `-` is standard input.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// Add this tag to each artifact; may be repeated.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Append all artifacts to this set instead of a set per folder.
    #[arg(long, value_name = "NAME")]
    pub(crate) set: Option<String>,
    /// Title of the artifact, if only one file is imported.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// MIME type [default: from the file name and content].
    #[arg(long, value_name = "TYPE")]
    pub(crate) mime_type: Option<String>,
    /// Include hidden files of folders.
    #[arg(long)]
    pub(crate) hidden: bool,
    /// Largest file to accept, such as `64MiB` or `1GB`.
    #[arg(long, value_name = "SIZE", default_value = BLOB_LIMIT, value_parser = size)]
    pub(crate) blob_limit: u64,
}

/// Options of `workspace export`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceExport {
    /// Directory to write to; it must be empty or missing.
    #[arg(value_name = "TARGET")]
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) select: Select,
}

/// Options of `workspace gc`.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceGc {
    /// Remove only blobs not stored again within this time, such as `30m` or `24h`; `0s` removes all.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = grace)]
    pub(crate) older_than: Duration,
    /// Print how much would be removed, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The file of a backup.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceFile {
    /// Path of the backup file.
    pub(crate) file: PathBuf,
}

/// The default limit of a blob.
pub(super) const BLOB_LIMIT: &str = "64MiB";

pub(super) fn grace(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0ms" | "0s" | "0m" | "0h" => Ok(Duration::ZERO),
        _ => duration(text),
    }
}

/// Parses a number of bytes, with a decimal or binary unit.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "write it as 1000, 500kB, 64MiB or 1GB".to_owned();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1_u64 << 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let bytes = number.checked_mul(factor).filter(|bytes| *bytes < 1 << 53).ok_or_else(wrong)?;
    if bytes == 0 { Err("the size must be greater than 0".to_owned()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_both_kinds() {
        assert_eq!(size("1000"), Ok(1000));
        assert_eq!(size("500kB"), Ok(500_000));
        assert_eq!(size("64MiB"), Ok(64 << 20));
        assert_eq!(size("1 GB"), Ok(1_000_000_000));
        for wrong in ["", "MB", "-1", "1.5MB", "0", "9999999999GB", "5 elephants"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_grace_is_a_grace_too() {
        assert_eq!(grace("0s"), Ok(Duration::ZERO));
        assert_eq!(grace("0"), Ok(Duration::ZERO));
        assert_eq!(grace("24h"), Ok(Duration::from_hours(24)));
        assert!(grace("soon").is_err());
    }
}
