//! `tidings workspace gc`, `verify`, `backup` and `restore`.

use std::path::Path;

use anyhow::{Result, anyhow};
use serde_json::json;
use tidings_workspace::{Carried, Config, IntegrityProblem, Workspace};

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
    let problems = told(&verified.problems);
    if desk.output.json {
        desk.output.object(&json!({
            "blobs": verified.blobs, "bytes": verified.bytes, "artifacts": verified.artifacts,
            "events": verified.events, "strays": verified.strays.blobs, "problems": problems,
        }))?;
    } else {
        let (blobs, bytes) = (many(verified.blobs, "blob", "blobs"), change::bytes(verified.bytes));
        let artifacts = many(verified.artifacts, "artifact", "artifacts");
        let events = many(verified.events, "event", "events");
        let text = format!("{blobs} of {bytes}, {artifacts}, {events}");
        desk.output.raw(&with(text, &problems, &desk.output))?;
        if verified.strays.blobs > 0 {
            let strays = many(verified.strays.blobs, "file", "files");
            let bytes = change::bytes(verified.strays.bytes);
            desk.output.remark(&format!(
                "{strays} of {bytes} below `objects` that are not in the database; `gc` removes them"
            ));
        }
    }
    let hint = "`restore` a backup to another directory; or, if you have the content, remove the \
                damaged file below `objects` and `import` it again";
    found(&problems, hint)
}

pub(super) fn backup(desk: &Desk<'_>, args: &WorkspaceFile) -> Result<()> {
    let carried = desk.workspace.backup(&args.file).map_err(|error| desk.explained(error))?;
    let hint = "the backup has everything else; an older one may have these";
    written(&desk.output, &args.file, &carried, hint)
}

pub(super) fn restore(dir: &Path, args: &WorkspaceFile, output: &Output) -> Result<()> {
    let carried =
        Workspace::restore(&Config::new(dir), &args.file).map_err(|error| explained(error, dir))?;
    let hint = "everything else was restored; if you have the missing content, `import` it again";
    written(output, dir, &carried, hint)
}

/// Reports the result, and fails if it is incomplete.
fn written(output: &Output, to: &Path, carried: &Carried, hint: &str) -> Result<()> {
    let problems = told(&carried.problems);
    if output.json {
        let (path, blobs) = (to.to_string_lossy(), carried.blobs);
        output.object(&json!({ "path": path, "blobs": blobs, "problems": problems }))?;
    } else {
        let to = one_line(&to.to_string_lossy());
        let what = if problems.is_empty() { "everything" } else { "the readable part" };
        let text = format!("{to}: {what}, with {}", many(carried.blobs, "blob", "blobs"));
        output.raw(&with(text, &problems, output))?;
    }
    found(&problems, hint)
}

fn told(problems: &[IntegrityProblem]) -> Vec<String> {
    problems.iter().map(ToString::to_string).collect()
}

/// A line, and one for each problem.
fn with(line: String, problems: &[String], output: &Output) -> String {
    let mut text = line + "\n";
    for problem in problems {
        let word = output.paint.red("problem:");
        text += &[&word, " ", &one_line(problem), "\n"].concat();
    }
    text
}

fn found(problems: &[String], hint: &str) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    let found = count(problems.len(), "problem was", "problems were");
    Err(anyhow!("{found} found").context(Hint(hint.to_owned())))
}

fn many(number: u64, one: &str, more: &str) -> String {
    count(usize::try_from(number).unwrap_or(usize::MAX), one, more)
}
