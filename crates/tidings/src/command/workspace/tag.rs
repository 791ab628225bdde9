//! `tidings workspace tag` and `untag`.

use anyhow::Result;
use serde_json::json;

use super::Desk;
use crate::args::WorkspaceTag;
use crate::present::text::one_line;

pub(super) fn add(desk: &Desk<'_>, args: &WorkspaceTag) -> Result<()> {
    let added =
        desk.workspace.tag(&args.id, &args.tags, desk.by).map_err(|error| desk.explained(error))?;
    said(desk, args, "added", &added, "it has them already")
}

pub(super) fn remove(desk: &Desk<'_>, args: &WorkspaceTag) -> Result<()> {
    let removed = desk
        .workspace
        .untag(&args.id, &args.tags, desk.by)
        .map_err(|error| desk.explained(error))?;
    said(desk, args, "removed", &removed, "it does not have them")
}

fn said(
    desk: &Desk<'_>,
    args: &WorkspaceTag,
    word: &str,
    tags: &[String],
    otherwise: &str,
) -> Result<()> {
    if desk.output.json {
        return desk.output.object(&json!({ "artifact": args.id, word: tags }));
    }
    if tags.is_empty() {
        desk.output.remark(&format!("nothing changed: {otherwise}"));
        return Ok(());
    }
    desk.output.raw(&format!("{word} {}", one_line(&tags.join(", "))))
}
