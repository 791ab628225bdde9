//! `tidings feeds import` and `export`: exchange lists of feeds with other programs.

use anyhow::{Context as _, Result};
use serde_json::json;
use tidings_feeds::{Asker, FeedAddress, opml};

use crate::args::{ExportFormat, FeedsExport, FeedsImport};
use crate::feeds::{NamedDocument, Reach, enter, kept, look, named};
use crate::present::Output;
use crate::present::text::count;

pub(super) async fn import(args: &FeedsImport) -> Result<()> {
    let output = Output::new(args.kept.json);
    let reading = || format!("reading the list of feeds `{}`", args.list);
    let kept = kept(&args.kept.place, &output)?;
    let allow_private = args.allow_private || kept.allow_private;
    let document = NamedDocument::parse(&args.list).with_context(reading)?;
    let bytes = document.read(allow_private).await.with_context(reading)?;
    // An invalid list is refused before a directory is created.
    opml::read(&bytes).with_context(reading)?;
    let feeds = enter(&kept.directory, Reach::Nothing).await?;
    // The operator's own file may name files; a list from elsewhere may not.
    let asker = match document {
        NamedDocument::At(FeedAddress::File(_)) => Asker::Operator,
        NamedDocument::At(FeedAddress::Web(_)) | NamedDocument::Input => Asker::Client,
    };
    let imported = feeds.import(&bytes, asker).await.with_context(reading)?;
    if args.kept.json {
        let problems: Vec<_> = imported
            .problems
            .iter()
            .map(|problem| json!({ "line": problem.line, "reason": problem.reason }))
            .collect();
        return output.object(&json!({
            "added": imported.added, "present": imported.known, "problems": problems,
        }));
    }
    for problem in &imported.problems {
        output.remark(&format!("{}: {problem}", args.list));
    }
    let mut said = vec![format!("added {}", count(imported.added.len(), "feed", "feeds"))];
    if !imported.known.is_empty() {
        said.push(format!("{} known already", count(imported.known.len(), "was", "were")));
    }
    if !imported.problems.is_empty() {
        said.push(format!("{} refused", count(imported.problems.len(), "was", "were")));
    }
    output.raw(&said.join("; "))
}

pub(super) async fn export(args: &FeedsExport) -> Result<()> {
    let output = Output::new(false);
    let directory = kept(&args.place, &output)?.directory;
    let kept = look(&directory).await?;
    let kept = kept.with_context(|| format!("no feeds are stored in `{}`", directory.display()))?;
    let format = match args.format {
        ExportFormat::Opml => tidings_feeds::ExportFormat::Opml,
        ExportFormat::Rss => tidings_feeds::ExportFormat::Rss,
        ExportFormat::Atom => tidings_feeds::ExportFormat::Atom,
        ExportFormat::Json => tidings_feeds::ExportFormat::Json,
        ExportFormat::Csv => tidings_feeds::ExportFormat::Csv,
    };
    let ids: Vec<_> =
        named(&kept.statuses(), &args.names)?.into_iter().map(|status| status.id).collect();
    let text = kept.export_as(format, &ids, args.limit).await.context("reading the feeds")?;
    match &args.output {
        None => output.raw(&text),
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("writing `{}`", file.display()))
        }
    }
}
