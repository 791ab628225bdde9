//! `tidings workspace` as clap types.

use std::path::PathBuf;
use std::time::Duration;

use clap::Subcommand;
use clap::builder::PossibleValuesParser;
use tidings_workspace::Change;

use crate::args::connection::duration;

/// Look at a workspace and care for it, whether a server has it open or not.
///
/// A server that has the directory open tells its clients of what is written here within a second.
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
    /// The directory of the workspace; `tidings serve --workspace DIR` and `import` make one.
    pub(crate) dir: PathBuf,
    #[command(subcommand)]
    pub(crate) command: WorkspaceCommand,
    /// Print one JSON object a line instead of text.
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Who is in the log for what is written, and the creator of what is imported.
    #[arg(long, global = true, value_name = "NAME", default_value = "cli")]
    pub(crate) by: String,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// List artifacts, newest first; those of a set in its order.
    Ls(WorkspaceList),
    /// Show an artifact with its lineage, its annotations and the beginning of its text.
    Show(WorkspaceShow),
    /// Add tags to an artifact.
    Tag(WorkspaceTag),
    /// Remove tags of an artifact.
    Untag(WorkspaceTag),
    /// Show what was done, oldest first.
    Log(WorkspaceLog),
    /// Make artifacts of files and folders.
    ///
    /// A file becomes an artifact with its name as the title. A folder becomes a set of its name:
    /// its files, in order of their paths, which are their titles. Hidden files, links and what is
    /// no file are left out. The workspace is made if there is none.
    Import(WorkspaceImport),
    /// Write artifacts as files, with a `manifest.json` of all that is known of them.
    ///
    /// Files are named for titles. Those that were put away are among them; without a filter the
    /// graph is in the manifest too.
    Export(WorkspaceExport),
    /// Remove bytes that no artifact has.
    Gc(WorkspaceGc),
    /// Read every blob again and check every reference; the exit code is 1 if something is wrong.
    Verify,
    /// Write everything as it is now into one new file; the exit code is 1 if some bytes are
    /// damaged or gone.
    Backup(WorkspaceFile),
    /// Make a workspace of a backup, where there is none.
    Restore(WorkspaceFile),
}

/// Which artifacts.
#[derive(Debug, clap::Args)]
pub(crate) struct Select {
    /// With this tag; may be repeated, and all of them must be there.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Made by this one.
    #[arg(long, value_name = "NAME")]
    pub(crate) creator: Option<String>,
    /// Of this set, in its order.
    #[arg(long, value_name = "NAME")]
    pub(crate) set: Option<String>,
}

/// What is listed.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceList {
    #[command(flatten)]
    pub(crate) select: Select,
    /// Those that were put away too.
    #[arg(long)]
    pub(crate) archived: bool,
    /// At most so many.
    #[arg(long, value_name = "NUMBER", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Those that follow the artifact of this id.
    #[arg(long, value_name = "ID")]
    pub(crate) after: Option<String>,
}

/// What is shown.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceShow {
    /// The id of an artifact.
    pub(crate) id: String,
    /// Write its bytes as they are, and nothing else.
    #[arg(long, conflicts_with = "json")]
    pub(crate) content: bool,
}

/// Tags of an artifact.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceTag {
    /// The id of an artifact.
    pub(crate) id: String,
    /// Tags, as `category:value` or plain.
    #[arg(value_name = "TAG", required = true)]
    pub(crate) tags: Vec<String>,
}

/// Which part of the log.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceLog {
    /// Those after this number; without it the newest.
    #[arg(long, value_name = "NUMBER")]
    pub(crate) since: Option<u64>,
    /// Of this kind; may be repeated.
    #[arg(long = "type", value_name = "KIND", value_parser = PossibleValuesParser::new(Change::KINDS))]
    pub(crate) types: Vec<String>,
    /// At most so many; 20 without `--since`, all with it.
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Go on with what is done from now on, until Ctrl-C.
    #[arg(long, short, conflicts_with = "limit")]
    pub(crate) follow: bool,
}

/// What is imported, and as what.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceImport {
    /// Files and folders; `-` is standard input.
    #[arg(value_name = "PATH", required = true)]
    pub(crate) paths: Vec<PathBuf>,
    /// A tag for each; may be repeated.
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// The set all of them go into, after what is in it; a folder's files go into one of its name.
    #[arg(long, value_name = "NAME")]
    pub(crate) set: Option<String>,
    /// The title, of one file.
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// The MIME type, if not what the ending and the bytes say.
    #[arg(long, value_name = "TYPE")]
    pub(crate) mime_type: Option<String>,
    /// Hidden files of folders too.
    #[arg(long)]
    pub(crate) hidden: bool,
    /// The largest file that is taken, as `64MiB` or `1GB`.
    #[arg(long, value_name = "SIZE", default_value = BLOB_LIMIT, value_parser = size)]
    pub(crate) blob_limit: u64,
}

/// What is exported, and where to.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceExport {
    /// A directory that is empty or not there.
    #[arg(value_name = "TARGET")]
    pub(crate) target: PathBuf,
    #[command(flatten)]
    pub(crate) select: Select,
}

/// What is removed.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceGc {
    /// Only bytes that nobody stored within this time, as `30m` or `24h`; `0s` is all.
    #[arg(long, value_name = "DURATION", default_value = "24h", value_parser = grace)]
    pub(crate) older_than: Duration,
    /// Say how much it would be, and remove nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A backup.
#[derive(Debug, clap::Args)]
pub(crate) struct WorkspaceFile {
    /// The file.
    pub(crate) file: PathBuf,
}

/// The largest blob unless told otherwise.
pub(super) const BLOB_LIMIT: &str = "64MiB";

pub(super) fn grace(text: &str) -> Result<Duration, String> {
    match text {
        "0" | "0ms" | "0s" | "0m" | "0h" => Ok(Duration::ZERO),
        _ => duration(text),
    }
}

/// A number of bytes, with a unit of thousands or of 1,024.
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
    if bytes == 0 { Err("it must be more than nothing".to_owned()) } else { Ok(bytes) }
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
