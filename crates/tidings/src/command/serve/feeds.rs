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
    config.feeds = args.feed.iter().map(FeedConfig::new).collect();
    for file in &args.opml {
        let bytes = std::fs::read(file)
            .with_context(|| format!("reading the list of feeds `{}`", file.display()))?;
        let outlines = opml::read(&bytes)
            .with_context(|| format!("reading the list of feeds `{}`", file.display()))?;
        config.feeds.extend(outlines.into_iter().map(FeedConfig::from));
    }
    let feeds = Feeds::open(config)
        .await
        .context("opening the feeds")
        .context(Hint("`--data DIR` keeps them elsewhere, `--in-memory` not at all".to_owned()))?;
    Ok(Some(feeds))
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
