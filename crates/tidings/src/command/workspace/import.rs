//! `tidings workspace import`: imports files as artifacts.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tidings_workspace::{Draft, SetPlace, WorkspaceError};

use super::files::{FileToImport, Files};
use super::progress::Progress;
use super::{Desk, change, line};
use crate::args::WorkspaceImport;
use crate::present::Output;
use crate::present::text::{count, one_line};
use crate::report::Usage;

/// The title of standard input.
const INPUT: &str = "standard input";

/// Finds the files to import. Missing files are reported; if all are missing, it fails.
pub(super) fn find(dir: &Path, args: &WorkspaceImport, output: &Output) -> Result<Files> {
    let mut files = Files::new(args.hidden, dir);
    let mut failures = Vec::new();
    for path in &args.paths {
        if path == Path::new("-") {
            files.found.push(FileToImport {
                path: path.clone(),
                title: INPUT.to_owned(),
                set: None,
            });
            continue;
        }
        if let Err(error) = files.add(path) {
            failures.push(error);
        }
    }
    files.found.retain(|file| match readable(&file.path) {
        Ok(()) => true,
        Err(error) => {
            failures.push(error);
            false
        }
    });
    files.failed = failures.len();
    let all = files.found.len() + files.failed;
    if all != 1 && args.title.is_some() {
        let usage = format!("`--title` applies to one file; {all} are given");
        bail!(Usage::new(usage).hint("leave it out to use the file names as titles"));
    }
    if let ([], 1) = (files.found.as_slice(), failures.len()) {
        return Err(failures.remove(0));
    }
    for error in &failures {
        output.remark(&format!("error: {error:#}"));
    }
    if files.found.is_empty() && !failures.is_empty() {
        bail!("no file could be imported");
    }
    Ok(files)
}

/// Checks that a file can be opened. A pipe can be opened only once, when it is imported.
fn readable(path: &Path) -> Result<()> {
    let reading = || format!("reading `{}`", path.display());
    if path != Path::new("-") && path.is_file() {
        std::fs::File::open(path).with_context(reading)?;
    }
    Ok(())
}

pub(super) fn run(desk: &Desk<'_>, args: &WorkspaceImport, files: &Files) -> Result<()> {
    let mut progress = Progress::new(desk.output.json);
    let (mut bytes, mut failed) = (0, files.failed);
    let mut imported = 0;
    let all = files.found.len();
    for (number, file) in files.found.iter().enumerate() {
        progress.tell(|| {
            let size = change::bytes(bytes);
            format!("{number} of {}, {size}: {}", count(all, "file", "files"), file.title)
        });
        let size = std::fs::metadata(&file.path).map_or(0, |it| it.len());
        match import(desk, args, file) {
            Ok(id) => {
                bytes += size;
                imported += 1;
                progress.clear();
                said(desk, &id, file, args)?;
            }
            // An error in one file does not affect the others.
            Err(error @ (WorkspaceError::Refused(_) | WorkspaceError::Path { .. }))
                if args.paths.len() > 1 || all > 1 =>
            {
                failed += 1;
                progress.clear();
                let details = line(&error);
                desk.output
                    .remark(&format!("error: importing `{}`: {details}", file.path.display()));
            }
            Err(error) => {
                drop(progress);
                let done = count(imported, "file was", "files were");
                let importing = format!("importing `{}`; {done} imported", file.path.display());
                return Err(desk.explained(error).context(importing));
            }
        }
    }
    drop(progress);
    if files.others > 0 {
        let others = count(files.others, "link or special file", "links or special files");
        desk.output.remark(&format!("{others} skipped"));
    }
    if failed > 0 {
        bail!("{} could not be imported", count(failed, "file", "files"));
    }
    Ok(())
}

fn import(
    desk: &Desk<'_>,
    args: &WorkspaceImport,
    file: &FileToImport,
) -> Result<String, WorkspaceError> {
    let mut draft = Draft::new(title(args, file), "", desk.by);
    draft.tags.clone_from(&args.tag);
    draft.mime_type.clone_from(&args.mime_type);
    let set = args.set.as_ref().or(file.set.as_ref());
    draft.place = set.map(|set| SetPlace { set: set.clone(), index: None });
    if file.path == Path::new("-") {
        return desk.workspace.import(&mut std::io::stdin().lock(), draft, desk.by);
    }
    desk.workspace.import_file(&file.path, draft, desk.by)
}

fn title(args: &WorkspaceImport, file: &FileToImport) -> String {
    args.title.clone().unwrap_or_else(|| file.title.clone())
}

fn said(desk: &Desk<'_>, id: &str, file: &FileToImport, args: &WorkspaceImport) -> Result<()> {
    let title = title(args, file);
    if desk.output.json {
        let path = file.path.to_string_lossy();
        return desk.output.object(&json!({ "id": id, "title": title, "path": path }));
    }
    desk.output.raw(&format!("{id}  {}", one_line(&title)))
}
