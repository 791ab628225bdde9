//! `tidings feeds rm`, `pause` and `resume`: change stored feeds by name.

use anyhow::{Result, bail};
use serde_json::json;

use crate::args::FeedsNamed;
use crate::feeds::{Reach, all, kept, named, visit};
use crate::present::Output;
use crate::present::text::one_line;
use crate::report::Usage;

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Act {
    Remove,
    Pause,
    Resume,
}

pub(super) async fn run(args: &FeedsNamed, act: Act) -> Result<()> {
    let output = Output::new(args.kept.json);
    let directory = kept(&args.kept.place, &output)?.directory;
    let Some(feeds) = visit(&directory, Reach::Nothing).await? else {
        bail!(Usage::new(format!("no feeds are stored in `{}`", directory.display())));
    };
    let statuses = if act == Act::Remove { all(&feeds).await? } else { feeds.statuses() };
    for status in named(&statuses, &args.names)? {
        let has_moved = match act {
            Act::Remove => feeds.remove(&status.id).await?,
            Act::Pause => feeds.pause(&status.id).await?,
            Act::Resume => feeds.resume(&status.id).await?,
        };
        let state = match act {
            Act::Remove => "removed",
            Act::Pause => "paused",
            Act::Resume => "resumed",
        };
        if args.kept.json {
            output.object(&json!({
                "state": state, "changed": has_moved, "id": status.id, "url": status.url,
                "title": status.title,
            }))?;
            continue;
        }
        let word = match (act, has_moved) {
            (Act::Pause, false) => "is paused already:",
            (Act::Resume, false) => "was not paused:",
            (Act::Remove, false) => "was removed already:",
            (_, true) => state,
        };
        output.raw(&format!("{word} {}  {}", status.id, one_line(&status.title)))?;
    }
    Ok(())
}
