//! `tidings workspace`: works on the directory itself, with or without a running server.

mod change;
mod export;
mod files;
mod import;
mod list;
mod log;
mod names;
mod progress;
mod show;
mod tag;
mod upkeep;

use std::path::Path;

use anyhow::{Error, Result};
use tidings_workspace::{Config, Refusal, Workspace, WorkspaceError};

use crate::args::{Workspace as Args, WorkspaceCommand as Command, quoted};
use crate::present::Output;
use crate::report::Hint;

/// Shared by the subcommands.
struct Desk<'a> {
    workspace: Workspace,
    /// The directory as given, for messages.
    dir: &'a Path,
    /// The name for the log.
    by: &'a str,
    output: Output,
}

pub(crate) async fn run(args: &Args) -> Result<()> {
    let (dir, output) = (args.dir.as_path(), Output::new(args.json));
    if let Command::Restore(file) = &args.command {
        return upkeep::restore(dir, file, &output);
    }
    let mut config = match &args.command {
        Command::Ls(_) | Command::Show(_) | Command::Export(_) | Command::Verify => {
            Config::read_only(dir)
        }
        // A reader of `--follow` must see each line at once.
        Command::Log(args) if !args.follow => Config::read_only(dir),
        Command::Import(_) => Config::creating(dir),
        _ => Config::beside(dir),
    };
    let mut files = None;
    if let Command::Import(args) = &args.command {
        config.limits.blob = args.blob_limit;
        // Order: missing files are reported before a workspace is created for them.
        files = Some(import::find(dir, args, &output)?);
    }
    let workspace = Workspace::open(config).map_err(|error| unopened(error, dir))?;
    let desk = Desk { workspace, dir, by: &args.by, output };
    if let (Command::Import(args), Some(files)) = (&args.command, files) {
        return import::run(&desk, args, &files);
    }
    match &args.command {
        Command::Ls(args) => list::run(&desk, args),
        Command::Show(args) => show::run(&desk, args),
        Command::Tag(args) => tag::add(&desk, args),
        Command::Untag(args) => tag::remove(&desk, args),
        Command::Log(args) => log::run(&desk, args).await,
        Command::Export(args) => export::run(&desk, args),
        Command::Gc(args) => upkeep::gc(&desk, args),
        Command::Verify => upkeep::verify(&desk),
        Command::Backup(args) => upkeep::backup(&desk, args),
        Command::Import(_) | Command::Restore(_) => unreachable!("it was done before"),
    }
}

impl Desk<'_> {
    /// An error with a hint.
    fn explained(&self, error: WorkspaceError) -> Error {
        explained(error, self.dir)
    }
}

/// The error of a workspace that cannot be opened, with a hint.
pub(crate) fn unopened(error: WorkspaceError, dir: &Path) -> Error {
    let is_ours = matches!(error, WorkspaceError::Database(_) | WorkspaceError::Path { .. });
    let error = explained(error, dir);
    if !is_ours {
        return error;
    }
    let hint = "the directory and its files must be writable by you and on a local disk";
    error
        .context(format!("opening the workspace `{}`", dir.display()))
        .context(Hint(hint.to_owned()))
}

fn explained(error: WorkspaceError, dir: &Path) -> Error {
    let command =
        |rest: &str| format!("tidings workspace {} {rest}", quoted(&dir.to_string_lossy()));
    let words = words(&error);
    let hint = match &error {
        WorkspaceError::Missing(_) => {
            let serve = format!("tidings serve --workspace {}", quoted(&dir.to_string_lossy()));
            format!("create one with `{serve}` or `{}`", command("import PATH"))
        }
        WorkspaceError::Full => {
            format!("`{}` prints how much can be removed", command("gc --dry-run"))
        }
        WorkspaceError::Damaged { .. } => {
            "`tidings workspace DIR restore FILE` restores a backup".to_owned()
        }
        WorkspaceError::NoBackup { .. } => {
            "`tidings workspace DIR backup FILE` writes one".to_owned()
        }
        WorkspaceError::Occupied(_) => "move it aside, or restore to another directory".to_owned(),
        WorkspaceError::Refused(Refusal::NoArtifact(_) | Refusal::After(_)) => {
            format!("`{}` lists the ids", command("ls"))
        }
        WorkspaceError::Refused(Refusal::Expired { oldest, .. }) => {
            format!("`{}` prints all remaining events", command(&format!("log --since {oldest}")))
        }
        WorkspaceError::Refused(Refusal::BlobTooLarge { .. }) => {
            "raise the limit with `--blob-limit SIZE`".to_owned()
        }
        WorkspaceError::Refused(Refusal::NoBlob(_)) | WorkspaceError::Changed(_) => {
            format!("`{}` lists the affected blobs; a backup may have them", command("verify"))
        }
        _ => return words.map_or_else(|| Error::new(error), Error::msg),
    };
    words.map_or_else(|| Error::new(error), Error::msg).context(Hint(hint))
}

/// The text of an error for people. The library's texts about tools and resources are for agents.
fn words(error: &WorkspaceError) -> Option<String> {
    Some(match error {
        WorkspaceError::Refused(Refusal::NoArtifact(id)) => {
            format!("no artifact has the id `{id}`")
        }
        WorkspaceError::Refused(Refusal::After(id)) => {
            format!("`{id}` is not in this list")
        }
        WorkspaceError::Refused(Refusal::NoBlob(hash)) => {
            format!("the content of blob `{hash}` is missing")
        }
        WorkspaceError::Changed(hash) => {
            format!("the content of blob `{hash}` is damaged")
        }
        WorkspaceError::Refused(Refusal::BlobTooLarge { limit }) => {
            format!("the blob is larger than {limit} bytes")
        }
        _ => return None,
    })
}

/// An error and its causes in one line.
fn line(error: &WorkspaceError) -> String {
    let mut text = words(error).unwrap_or_else(|| error.to_string());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
