//! `tidings workspace`: on the directory itself, beside a server or without one.

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

/// What the subcommands share.
struct Desk<'a> {
    workspace: Workspace,
    /// The directory as it was given, for words to a person.
    dir: &'a Path,
    /// Who is in the log.
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
        // Who follows must see what comes.
        Command::Log(args) if !args.follow => Config::read_only(dir),
        Command::Import(_) => Config::creating(dir),
        _ => Config::beside(dir),
    };
    let mut files = None;
    if let Command::Import(args) = &args.command {
        config.limits.blob = args.blob_limit;
        // Order: nothing is made for files that are not there.
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
    /// An error with what can be done about it.
    fn explained(&self, error: WorkspaceError) -> Error {
        explained(error, self.dir)
    }
}

/// Why a workspace cannot be opened, with which and with what can be done about it.
pub(crate) fn unopened(error: WorkspaceError, dir: &Path) -> Error {
    let is_ours = matches!(error, WorkspaceError::Database(_) | WorkspaceError::Path { .. });
    let error = explained(error, dir);
    if !is_ours {
        return error;
    }
    let hint = "the directory and what is in it must be yours to write, on a disk of this machine";
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
            format!("`{serve}` makes one, and so does `{}`", command("import PATH"))
        }
        WorkspaceError::Full => format!("`{}` says how much could go", command("gc --dry-run")),
        WorkspaceError::Damaged { .. } => {
            "`tidings workspace DIR restore FILE` restores a backup".to_owned()
        }
        WorkspaceError::NoBackup { .. } => {
            "`tidings workspace DIR backup FILE` writes one".to_owned()
        }
        WorkspaceError::Occupied(_) => "move it aside, or restore into another one".to_owned(),
        WorkspaceError::Refused(Refusal::NoArtifact(_) | Refusal::After(_)) => {
            format!("`{}` has the ids", command("ls"))
        }
        WorkspaceError::Refused(Refusal::Expired { oldest, .. }) => {
            format!("`{}` is all there is", command(&format!("log --since {oldest}")))
        }
        WorkspaceError::Refused(Refusal::BlobTooLarge { .. }) => {
            "`--blob-limit SIZE` takes more".to_owned()
        }
        WorkspaceError::Refused(Refusal::NoBlob(_)) | WorkspaceError::Changed(_) => {
            format!(
                "`{}` says which blobs are concerned; a backup may have them",
                command("verify")
            )
        }
        _ => return words.map_or_else(|| Error::new(error), Error::msg),
    };
    words.map_or_else(|| Error::new(error), Error::msg).context(Hint(hint))
}

/// What an error says to a person. What the library says of tools and resources is for agents.
fn words(error: &WorkspaceError) -> Option<String> {
    Some(match error {
        WorkspaceError::Refused(Refusal::NoArtifact(id)) => format!("there is no artifact `{id}`"),
        WorkspaceError::Refused(Refusal::After(id)) => {
            format!("`{id}` is no artifact of this list")
        }
        WorkspaceError::Refused(Refusal::NoBlob(hash)) => {
            format!("the bytes of the blob `{hash}` are gone")
        }
        WorkspaceError::Changed(hash) => {
            format!("the bytes of the blob `{hash}` are not those it was stored with")
        }
        WorkspaceError::Refused(Refusal::BlobTooLarge { limit }) => {
            format!("a blob may have {limit} bytes at most")
        }
        _ => return None,
    })
}

/// An error in one line, with what caused it.
fn line(error: &WorkspaceError) -> String {
    let mut text = words(error).unwrap_or_else(|| error.to_string());
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
