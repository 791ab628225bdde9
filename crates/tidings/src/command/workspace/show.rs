//! `tidings workspace show`: everything about one artifact.

use std::io::{ErrorKind, Read as _};

use anyhow::{Context as _, Result};
use serde_json::json;
use tidings_workspace::{Artifact, Lineage, Refusal, WorkspaceError};

use super::Desk;
use crate::args::WorkspaceShow;
use crate::present::text::{count, harmless, one_line, size};

/// How much of a text is shown.
const PREVIEW: usize = 4096;
const LINES: usize = 20;
/// Bytes written in one step.
const CHUNK: usize = 1 << 18;

pub(super) fn run(desk: &Desk<'_>, args: &WorkspaceShow) -> Result<()> {
    let explained = |error| desk.explained(error);
    let missing = || explained(WorkspaceError::from(Refusal::NoArtifact(args.id.clone())));
    let artifact = desk.workspace.artifact(&args.id).map_err(explained)?.ok_or_else(missing)?;
    if args.content {
        return content(desk, &artifact);
    }
    let lineage = desk.workspace.lineage(&args.id).map_err(explained)?.ok_or_else(missing)?;
    if desk.output.json {
        let mut object = serde_json::to_value(&artifact)?;
        object["lineage"] = json!(lineage.items);
        object["lineageTruncated"] = json!(lineage.truncated);
        return desk.output.object(&object);
    }
    let mut text = described(desk, &artifact);
    text += &ancestors(desk, &lineage);
    let shown = artifact.annotations.len() as u64;
    if artifact.annotation_count > shown {
        let count = format!("the newest {shown} of {} remarks", artifact.annotation_count);
        text += &["\n", &desk.output.paint.faint(&count), "\n"].concat();
    }
    for remark in &artifact.annotations {
        let who =
            desk.output.paint.faint(&format!("{:.3} {}:", remark.time, one_line(&remark.author)));
        let message = harmless(&remark.message).replace('\n', "\n  ");
        text += &["\n", &who, "\n  ", &message, "\n"].concat();
    }
    text += &preview(desk, &artifact)?;
    desk.output.raw(&text)
}

/// Writes the content. Whether it is undamaged is known at the end.
fn content(desk: &Desk<'_>, artifact: &Artifact) -> Result<()> {
    let (hash, explained) = (&artifact.entry.hash, |error| desk.explained(error));
    let lost = || explained(WorkspaceError::from(Refusal::NoBlob(hash.clone())));
    let file = desk.workspace.open_blob(hash).map_err(explained)?.ok_or_else(lost)?;
    let (mut reader, mut chunk) = (file.into_reader(), vec![0; CHUNK]);
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(read) => desk.output.bytes(&chunk[..read])?,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                return Err(explained(WorkspaceError::Changed(hash.clone())));
            }
            Err(error) => return Err(error).with_context(|| format!("reading the blob `{hash}`")),
        }
    }
}

fn described(desk: &Desk<'_>, artifact: &Artifact) -> String {
    let (entry, paint) = (&artifact.entry, desk.output.paint);
    let mut text = format!("{}\n", paint.bold(&one_line(&entry.title)));
    let size = size(usize::try_from(entry.size).unwrap_or(usize::MAX));
    let place = entry.set.as_ref().zip(entry.index);
    let metadata = (!artifact.metadata.is_empty()).then(|| json!(artifact.metadata).to_string());
    let children = (artifact.child_count > 0).then(|| {
        let count = usize::try_from(artifact.child_count).unwrap_or(usize::MAX);
        format!(
            "{}, the first {}",
            self::count(count, "artifact", "artifacts"),
            artifact.children[0]
        )
    });
    for (name, value) in [
        ("id", Some(entry.id.clone())),
        ("content", Some(format!("{}, {size}", entry.mime_type))),
        ("hash", Some(entry.hash.clone())),
        ("created", Some(format!("{:.3} by {}", entry.created, entry.creator))),
        ("tags", Some(entry.tags.join(", ")).filter(|tags| !tags.is_empty())),
        ("set", place.map(|(set, index)| format!("{set}, at {index}"))),
        ("metadata", metadata),
        ("led to", children),
        ("archived", entry.archived.then(|| "yes".to_owned())),
    ] {
        if let Some(value) = value {
            let name = paint.faint(&format!("{name:8}"));
            text += &["  ", &name, " ", &one_line(&value), "\n"].concat();
        }
    }
    text
}

/// The artifacts it was made from, roots first; empty if there are none.
fn ancestors(desk: &Desk<'_>, lineage: &Lineage) -> String {
    let Some((_, ancestors)) = lineage.items.split_last().filter(|(_, rest)| !rest.is_empty())
    else {
        return String::new();
    };
    let title = if lineage.truncated { "made from, among many others" } else { "made from" };
    let mut text = format!("\n{}\n", desk.output.paint.faint(title));
    for ancestor in ancestors {
        let (title, creator) = (one_line(&ancestor.title), one_line(&ancestor.creator));
        text += &["  ", &ancestor.id, "  ", &title, ", by ", &creator, "\n"].concat();
    }
    text
}

/// The beginning of a text.
fn preview(desk: &Desk<'_>, artifact: &Artifact) -> Result<String> {
    let opened = desk.workspace.open_blob(&artifact.entry.hash);
    let Some(mut file) = opened.map_err(|error| desk.explained(error))? else {
        let gone = "its content is missing; `verify` has details";
        return Ok(format!("\n{}\n", desk.output.paint.red(gone)));
    };
    let bytes = file.read_at(0, PREVIEW)?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()])?
        }
        Err(_) => return Ok(String::new()),
    };
    if text.is_empty() || text.contains('\0') {
        return Ok(String::new());
    }
    let shown: Vec<_> = text.lines().take(LINES).collect();
    let is_all = bytes.len() as u64 == artifact.entry.size && text.lines().count() <= LINES;
    let more = if is_all { "" } else { "…\n" };
    Ok(format!("\n{}\n{more}", harmless(&shown.join("\n"))))
}
