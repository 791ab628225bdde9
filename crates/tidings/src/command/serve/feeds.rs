//! The feeds that are served, as the command line and `tidings.toml` say.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tidings_sources::feeds::{Config, Data, FeedConfig, Feeds, Holder, Progress, Tools, opml};
use tokio::sync::watch;

use super::printer::Printer;
use crate::args::Serve;
use crate::feeds::settings::{Settings, USUAL};
use crate::feeds::{directory, document, whole};
use crate::present::Output;
use crate::present::text::count;
use crate::report::{Hint, Usage};

const DAY: Duration = Duration::from_hours(24);

/// Opens what is kept of the feeds; nothing if none is asked for. No feed is waited for.
pub(super) async fn open(args: &Serve) -> Result<Option<Feeds>> {
    let settings = settings(args)?;
    let named =
        args.feeds || !args.feed.is_empty() || !args.opml.is_empty() || args.keeping.data.is_some();
    let Some(settings) = settings.or_else(|| named.then(Settings::default)) else {
        return only_for_feeds(args).map(|()| None);
    };
    let config = config(args, &settings).await?;
    let feeds = Feeds::open(config)
        .await
        .context("opening the feeds")
        .context(Hint("`--data DIR` keeps them elsewhere, `--in-memory` not at all".to_owned()))?;
    Ok(Some(feeds))
}

/// What the file says that is named; or the one that is here, if nothing else is named: whoever
/// starts a server somewhere must not serve by accident what somebody else wrote there.
fn settings(args: &Serve) -> Result<Option<Settings>> {
    if let Some(file) = &args.config {
        return Settings::read(file).map(Some);
    }
    let is_named = args.demo
        || args.feeds
        || args.workspace.is_some()
        || !args.folder.is_empty()
        || !args.feed.is_empty()
        || !args.opml.is_empty();
    if is_named || !Path::new(USUAL).exists() {
        return Ok(None);
    }
    Output::new(args.json).remark(&format!("serving what `{USUAL}` says"));
    Settings::read(Path::new(USUAL)).map(Some)
}

/// Refuses options that have nothing to do without feeds.
fn only_for_feeds(args: &Serve) -> Result<()> {
    let options = [
        ("--in-memory", args.keeping.in_memory),
        ("--allow-private", args.keeping.allow_private),
        ("--offline", args.keeping.offline),
        ("--read-only", args.keeping.read_only),
    ];
    match options.iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => {
            let usage = Usage::new(format!("{option} is about feeds, and none are served"));
            bail!(usage.hint("name them with `--feed URL`, `--opml FILE` or `--feeds`"))
        }
        None => Ok(()),
    }
}

async fn config(args: &Serve, settings: &Settings) -> Result<Config> {
    let (options, serving) = (&args.keeping, &settings.serve);
    // What the command line says of the place goes before the file.
    let data = if options.in_memory || (serving.in_memory && options.data.is_none()) {
        Data::Memory
    } else {
        Data::Directory(directory(options.data.as_deref().or(serving.data.as_deref()))?)
    };
    let mut config = Config::new(data);
    config.allow_private = options.allow_private || serving.allow_private;
    config.offline = options.offline || serving.offline;
    if let Some(items) = serving.keep_items {
        config.retention.count = items;
    }
    if let Some(days) = serving.keep_days {
        let days = u32::try_from(days).unwrap_or(u32::MAX);
        config.retention.age = Some(DAY.saturating_mul(days));
    }
    if options.read_only || serving.read_only {
        config.tools = Tools::Reading;
        if let Data::Directory(path) = config.data.clone()
            && let Some(holder) = Holder::of(&path)?
        {
            follow(&mut config, &path, holder, args);
            return Ok(config);
        }
    }
    config.feeds = args.feed.iter().map(|feed| FeedConfig::new(whole(feed, None))).collect();
    config.feeds.extend(settings.feeds()?);
    for list in args.opml.iter().chain(&serving.opml) {
        config.feeds.extend(of_list(list, config.allow_private, Output::new(args.json)).await?);
    }
    Ok(config)
}

/// Serves what another server keeps.
fn follow(config: &mut Config, path: &Path, holder: Holder, args: &Serve) {
    config.read_only = true;
    Output::new(args.json)
        .remark(&format!("{holder} fetches the feeds in `{}`; following it", path.display()));
}

/// The feeds of a list. It may come from anywhere: it names no files, and what it says wrong is
/// told and left out.
async fn of_list(list: &str, allow_private: bool, output: Output) -> Result<Vec<FeedConfig>> {
    let reading = || format!("reading the list of feeds `{list}`");
    let bytes = document(list, allow_private).await.with_context(reading)?;
    let read = opml::read_list(&bytes).with_context(reading)?;
    for problem in &read.problems {
        output.remark(&format!("{list}: {problem}"));
    }
    Ok(read.outlines.into_iter().map(FeedConfig::from).collect())
}

/// Tells how far the first fetches are, to a person who looks; never ends.
pub(super) async fn tell_progress(progress: Option<watch::Receiver<Progress>>, printer: &Printer) {
    if let Some(mut progress) = progress.filter(|_| printer.has_standing_line()) {
        let mut is_told = true;
        loop {
            let now = *progress.borrow_and_update();
            // One feed alone is nothing to wait for.
            if !now.is_done() && now.total > 1 {
                is_told = false;
                printer.stand(format!("fetching feeds: {}", words(now)));
            } else if now.is_done() && !is_told {
                is_told = true;
                printer.stand(String::new());
                printer.line("fetched", &words(now), None);
            }
            if progress.changed().await.is_err() {
                break;
            }
        }
    }
    std::future::pending::<()>().await;
}

fn words(progress: Progress) -> String {
    let Progress { total, done, failing, items, .. } = progress;
    let items = count(usize::try_from(items).unwrap_or(usize::MAX), "item", "items");
    let failing = if failing > 0 { format!(", {failing} failing") } else { String::new() };
    format!("{done} of {total}, {items}{failing}")
}
