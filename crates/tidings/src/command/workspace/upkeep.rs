//! `tidings workspace gc`, `verify`, `backup` and `restore`.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde_json::json;
use tidings_sources::workspace::{Config, Workspace};

use super::progress::Progress;
use super::{Desk, change, explained};
use crate::args::{WorkspaceFile, WorkspaceGc};
use crate::present::Output;
use crate::present::text::{count, one_line};
use crate::report::Hint;

pub(super) fn gc(desk: &Desk<'_>, args: &WorkspaceGc) -> Result<()> {
    let found = if args.dry_run {
        desk.workspace.would_gc(args.older_than)
    } else {
        desk.workspace.gc(args.older_than, desk.by)
    };
    let found = found.map_err(|error| desk.explained(error))?;
    if desk.output.json {
        let (blobs, bytes) = (found.blobs, found.bytes);
        let line = json!({ "blobs": blobs, "bytes": bytes, "removed": !args.dry_run });
        return desk.output.object(&line);
    }
    let word = if args.dry_run { "would remove" } else { "removed" };
    let blobs = many(found.blobs, "blob", "blobs");
    desk.output.raw(&format!("{word} {blobs}, {}", change::bytes(found.bytes)))
}

pub(super) fn verify(desk: &Desk<'_>) -> Result<()> {
    let mut progress = Progress::new(desk.output.json);
    let verified = desk
        .workspace
        .verify(|read, all| progress.tell(|| format!("{read} of {}", many(all, "blob", "blobs"))))
        .map_err(|error| desk.explained(error))?;
    drop(progress);
    let problems: Vec<_> = verified.problems.iter().map(ToString::to_string).collect();
    if desk.output.json {
        desk.output.object(&json!({
            "blobs": verified.blobs, "bytes": verified.bytes, "artifacts": verified.artifacts,
            "events": verified.events, "problems": problems,
        }))?;
    } else {
        let (blobs, bytes) = (many(verified.blobs, "blob", "blobs"), change::bytes(verified.bytes));
        let artifacts = many(verified.artifacts, "artifact", "artifacts");
        let events = many(verified.events, "event", "events");
        let mut text = format!("{blobs} of {bytes}, {artifacts}, {events}\n");
        for problem in &problems {
            let word = desk.output.paint.red("problem:");
            text += &[&word, " ", &one_line(problem), "\n"].concat();
        }
        desk.output.raw(&text)?;
    }
    if problems.is_empty() {
        return Ok(());
    }
    let hint = "`restore` a backup into another directory; or, where you have the bytes, remove the \
                damaged file below `objects` and `import` them again";
    let found = count(problems.len(), "problem was", "problems were");
    Err(anyhow!("{found} found").context(Hint(hint.to_owned())))
}

pub(super) fn backup(desk: &Desk<'_>, args: &WorkspaceFile) -> Result<()> {
    let blobs = desk.workspace.backup(&args.file).map_err(|error| desk.explained(error))?;
    written(&desk.output, &args.file, blobs)
}

pub(super) fn restore(dir: &Path, args: &WorkspaceFile, output: &Output) -> Result<()> {
    let blobs =
        Workspace::restore(&Config::new(dir), &args.file).map_err(|error| explained(error, dir))?;
    written(output, dir, blobs)
}

fn written(output: &Output, to: &Path, blobs: u64) -> Result<()> {
    if output.json {
        return output.object(&json!({ "path": to.to_string_lossy(), "blobs": blobs }));
    }
    let to = one_line(&to.to_string_lossy());
    output.raw(&format!("{to}: everything, with {}", many(blobs, "blob", "blobs")))
}

fn many(number: u64, one: &str, more: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), one, more)
}
