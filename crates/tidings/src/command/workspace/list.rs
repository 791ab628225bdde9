//! `tidings workspace ls`, and selecting artifacts.

use anyhow::Result;
use tidings_workspace::{ArtifactEntry, ArtifactList, Search, Workspace, WorkspaceError};

use super::Desk;
use crate::args::{Select, WorkspaceList};
use crate::present::table::Table;
use crate::present::text::size;

/// Members of a set looked up in one step.
const STEP: usize = 500;

pub(super) fn run(desk: &Desk<'_>, args: &WorkspaceList) -> Result<()> {
    let limit = args.limit as usize;
    let (entries, has_more) =
        page(&desk.workspace, &args.select, args.archived, args.after.as_deref(), limit)
            .map_err(|error| desk.explained(error))?;
    let output = &desk.output;
    if output.json {
        entries.iter().try_for_each(|entry| output.object(entry))?;
    } else if entries.is_empty() {
        output.remark("no artifacts");
    } else {
        output.raw(&table(&entries).render(output.width, output.paint))?;
    }
    if let Some(last) = entries.last().filter(|_| has_more) {
        output.remark(&format!("there are more: continue with `--after {}`", last.id));
    }
    Ok(())
}

fn table(entries: &[ArtifactEntry]) -> Table {
    let mut table =
        Table::new(["ID", "CREATED", "SIZE", "TYPE", "CREATOR", "SET", "TITLE", "TAGS"]);
    for entry in entries {
        let place = entry.set.as_ref().zip(entry.index);
        let mut tags = entry.tags.join(", ");
        if entry.archived {
            tags = format!("[archived] {tags}");
        }
        table.row([
            entry.id.clone(),
            format!("{:.3}", entry.created),
            size(usize::try_from(entry.size).unwrap_or(usize::MAX)),
            entry.mime_type.clone(),
            entry.creator.clone(),
            place.map(|(set, index)| format!("{set}#{index}")).unwrap_or_default(),
            entry.title.clone(),
            tags,
        ]);
    }
    table
}

/// The matching artifacts, and whether there are more; newest first, or in the order of the set.
pub(super) fn page(
    workspace: &Workspace,
    select: &Select,
    archived: bool,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<ArtifactEntry>, bool), WorkspaceError> {
    let fits = |entry: &ArtifactEntry| {
        select.tag.iter().all(|tag| entry.tags.contains(tag))
            && select.creator.as_ref().is_none_or(|creator| *creator == entry.creator)
            && (archived || !entry.archived)
    };
    if let Some(set) = &select.set {
        return of_set(workspace, set, fits, after, limit);
    }
    let mut search = Search::default();
    search.tags.clone_from(&select.tag);
    search.creator.clone_from(&select.creator);
    search.archived = archived;
    if let Some(after) = after {
        // An unknown id would silently return nothing.
        workspace.list(&ArtifactList::Recent, Some(after), 1)?;
        search.after = Some(after.to_owned());
    }
    workspace.search(&search, limit)
}

fn of_set(
    workspace: &Workspace,
    set: &str,
    fits: impl Fn(&ArtifactEntry) -> bool,
    after: Option<&str>,
    limit: usize,
) -> Result<(Vec<ArtifactEntry>, bool), WorkspaceError> {
    let list = ArtifactList::Set(set.to_owned());
    let (mut found, mut after) = (Vec::new(), after.map(str::to_owned));
    loop {
        let page = workspace.list(&list, after.as_deref(), STEP)?;
        for entry in page.items.into_iter().filter(&fits) {
            if found.len() == limit {
                return Ok((found, true));
            }
            found.push(entry);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok((found, false)),
        }
    }
}
