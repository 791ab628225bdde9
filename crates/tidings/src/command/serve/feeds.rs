//! The feeds that are served, as the command line says.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use tidings_sources::feeds::{Config, Data, FeedConfig, Feeds, opml};

use crate::args::Serve;
use crate::report::Hint;

/// Opens what is kept of the feeds; nothing if none is asked for. No feed is waited for.
pub(super) async fn open(args: &Serve) -> Result<Option<Feeds>> {
    if args.feed.is_empty() && args.opml.is_empty() {
        return Ok(None);
    }
    let options = &args.keeping;
    let data = if options.in_memory {
        Data::Memory
    } else {
        Data::Directory(match &options.data {
            Some(directory) => directory.clone(),
            None => usual_place()?,
        })
    };
    let mut config = Config::new(data);
    config.allow_private = options.allow_private;
    config.offline = options.offline;
    config.feeds = args.feed.iter().map(|feed| FeedConfig::new(whole(feed))).collect();
    for file in &args.opml {
        let bytes = std::fs::read(file)
            .with_context(|| format!("reading the list of feeds `{}`", file.display()))?;
        let outlines = opml::read(&bytes)
            .with_context(|| format!("reading the list of feeds `{}`", file.display()))?;
        // A list may come from anywhere: it names no files, and what it says wrong is left out.
        let (web, others): (Vec<_>, Vec<_>) =
            outlines.into_iter().partition(|outline| is_web(&outline.url));
        for outline in others {
            tracing::warn!(url = outline.url, "a list of feeds names what is not on the web");
        }
        config.feeds.extend(web.into_iter().map(FeedConfig::from));
    }
    let feeds = Feeds::open(config)
        .await
        .context("opening the feeds")
        .context(Hint("`--data DIR` keeps them elsewhere, `--in-memory` not at all".to_owned()))?;
    Ok(Some(feeds))
}

fn is_web(url: &str) -> bool {
    let scheme = url.trim().split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    matches!(scheme.as_deref(), Some("http" | "https"))
}

/// A path as it is from everywhere: what is kept is found again from another directory.
fn whole(feed: &str) -> String {
    if feed.contains("://") || feed.starts_with("file:") {
        return feed.to_owned();
    }
    std::path::absolute(feed).map_or_else(|_| feed.to_owned(), |path| path.display().to_string())
}

/// Where a program keeps its data on this system.
fn usual_place() -> Result<PathBuf> {
    let folder =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = folder("XDG_DATA_HOME")
        .or_else(|| folder("HOME").map(|home| home.join(".local/share")))
        .context("there is no home to keep feeds in")
        .context(Hint("`--data DIR` says where, `--in-memory` keeps nothing".to_owned()))?;
    Ok(data.join("tidings/feeds"))
}
