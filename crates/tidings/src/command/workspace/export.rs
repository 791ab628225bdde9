//! `tidings workspace export`: artifacts as files, with a manifest.

use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use serde_json::json;
use tidings_workspace::{ArtifactEntry, WorkspaceError};

use super::names::Names;
use super::progress::Progress;
use super::{Desk, change, list};
use crate::args::{Select, WorkspaceExport};
use crate::present::text::count;
use crate::report::{Hint, Usage};

const MANIFEST: &str = "manifest.json";
/// Artifacts looked up in one step.
const STEP: usize = 500;

pub(super) fn run(desk: &Desk<'_>, args: &WorkspaceExport) -> Result<()> {
    let target = args.target.as_path();
    let writing = || format!("writing to `{}`", target.display());
    std::fs::create_dir_all(target).with_context(writing)?;
    if std::fs::read_dir(target).with_context(writing)?.next().is_some() {
        let usage = Usage::new(format!("`{}` is not empty", target.display()));
        bail!(usage.hint("give an empty or missing directory"));
    }
    let mut manifest =
        BufWriter::new(File::create_new(target.join(MANIFEST)).with_context(writing)?);
    manifest.write_all(b"{\"artifacts\":[").with_context(writing)?;
    let mut export = Export {
        desk,
        target,
        names: Names::new(MANIFEST),
        progress: Progress::new(desk.output.json),
        written: 0,
        bytes: 0,
        lost: 0,
        damaged: 0,
    };
    let mut after: Option<String> = None;
    loop {
        let (entries, has_more) =
            list::page(&desk.workspace, &args.select, true, after.as_deref(), STEP)
                .map_err(|error| desk.explained(error))?;
        for entry in &entries {
            export.artifact(entry, &mut manifest)?;
        }
        match entries.last().filter(|_| has_more) {
            Some(last) => after = Some(last.id.clone()),
            None => break,
        }
    }
    manifest.write_all(b"\n]").with_context(writing)?;
    if is_all(&args.select) {
        graph(desk, &mut manifest)?;
    }
    manifest.write_all(b"}\n").and_then(|()| manifest.flush()).with_context(writing)?;
    export.finish()
}

/// An export under way.
struct Export<'a> {
    desk: &'a Desk<'a>,
    target: &'a Path,
    names: Names,
    progress: Progress,
    written: usize,
    bytes: u64,
    lost: usize,
    damaged: usize,
}

impl Export<'_> {
    /// Writes an artifact to its file and to the manifest, unless its content cannot be read.
    fn artifact(&mut self, entry: &ArtifactEntry, manifest: &mut impl Write) -> Result<()> {
        let (desk, written, bytes) = (self.desk, self.written, self.bytes);
        self.progress.tell(|| format!("{written} written, {}", change::bytes(bytes)));
        let artifact = desk.workspace.artifact(&entry.id).map_err(|error| desk.explained(error))?;
        let Some(artifact) = artifact else { return Ok(()) };
        let name = self.names.take(&entry.title, &entry.mime_type);
        let (count, trouble) = match content(desk, entry, &self.target.join(&name))? {
            Content::Written => {
                let mut known = serde_json::to_value(&artifact)?;
                known["file"] = name.into();
                let comma = if written == 0 { "\n" } else { ",\n" };
                write!(manifest, "{comma}{known}")
                    .with_context(|| format!("writing to `{}`", self.target.display()))?;
                self.written += 1;
                self.bytes += entry.size;
                return Ok(());
            }
            Content::Lost => (&mut self.lost, "missing"),
            Content::Damaged => (&mut self.damaged, "damaged"),
        };
        *count += 1;
        self.progress.clear();
        desk.output.remark(&format!("error: the content of `{}` is {trouble}", entry.id));
        Ok(())
    }

    /// Prints the totals. Skipped artifacts are an error.
    fn finish(self) -> Result<()> {
        let Self { desk, progress, written, bytes, lost, damaged, .. } = self;
        drop(progress);
        if desk.output.json {
            desk.output.object(&json!({
                "artifacts": written, "bytes": bytes, "lost": lost, "damaged": damaged,
            }))?;
        } else {
            let artifacts = count(written, "artifact", "artifacts");
            desk.output.raw(&format!("{artifacts}, {}", change::bytes(bytes)))?;
        }
        if lost + damaged > 0 {
            let left_out = count(lost + damaged, "artifact was", "artifacts were");
            let failed = anyhow::anyhow!("{left_out} skipped: their content is missing or damaged");
            return Err(failed
                .context(Hint("`verify` lists them; a backup may have their content".to_owned())));
        }
        Ok(())
    }
}

fn is_all(select: &Select) -> bool {
    select.tag.is_empty() && select.creator.is_none() && select.set.is_none()
}

/// Writes the identities and the connections.
fn graph(desk: &Desk<'_>, manifest: &mut impl Write) -> Result<()> {
    let workspace = &desk.workspace;
    list_of(manifest, "identities", |after| {
        let page = workspace.identities(after, STEP)?;
        let items = page.items.iter().map(|it| workspace.identity(&it.id));
        Ok((items.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect(), page.next))
    })?;
    list_of(manifest, "connections", |after| {
        let page = workspace.connections(after, STEP)?;
        Ok((page.items, page.next))
    })
}

/// Writes a list page by page.
fn list_of<T: Serialize>(
    manifest: &mut impl Write,
    name: &str,
    page: impl Fn(Option<&str>) -> Result<(Vec<T>, Option<String>), WorkspaceError>,
) -> Result<()> {
    write!(manifest, ",\n\"{name}\":[")?;
    let (mut comma, mut after) = ("\n", None);
    loop {
        let (items, next) = page(after.as_deref())?;
        for item in items {
            write!(manifest, "{comma}{}", serde_json::to_string(&item)?)?;
            comma = ",\n";
        }
        after = next;
        if after.is_none() {
            break;
        }
    }
    Ok(write!(manifest, "\n]")?)
}

/// The outcome of writing an artifact's content.
enum Content {
    Written,
    /// It is missing.
    Lost,
    /// It is damaged, and is not written.
    Damaged,
}

/// Writes the content of an artifact, if it is there and undamaged.
fn content(desk: &Desk<'_>, entry: &ArtifactEntry, path: &Path) -> Result<Content> {
    let opened = desk.workspace.open_blob(&entry.hash).map_err(|error| desk.explained(error))?;
    let Some(blob) = opened else { return Ok(Content::Lost) };
    let writing = || format!("writing `{}`", path.display());
    let mut file = File::create_new(path).with_context(writing)?;
    match std::io::copy(&mut blob.into_reader(), &mut file) {
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            drop(file);
            std::fs::remove_file(path).with_context(writing)?;
            Ok(Content::Damaged)
        }
        copied => copied.map(|_| Content::Written).with_context(writing),
    }
}
