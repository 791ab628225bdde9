//! `tidings feeds add`: adds feeds by URL, page or file.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde_json::json;
use tidings_feeds::{DiscoverError, FeedConfig, Feeds, Obstacle, Status};

use crate::args::FeedsAdd;
use crate::feeds::{ALLOW_PRIVATE, IMPORT, Reach, address, enter, headers, kept, looks_like_host};
use crate::present::Output;
use crate::present::text::{count, one_line};
use crate::report::{self, Hint, Usage};

pub(crate) async fn run(args: &FeedsAdd) -> Result<()> {
    if args.urls.len() > 1 && args.title.is_some() {
        bail!(
            Usage::new("--title applies to one feed only").hint("add the feeds one after another")
        );
    }
    let output = Output::new(args.kept.json);
    let headers = headers(&args.header)?;
    let kept = kept(&args.kept.place, &output)?;
    let allowed = Reach::when(args.allow_private || kept.allow_private);
    let reach = if args.unseen { Reach::Nothing } else { allowed };
    let feeds = enter(&kept.directory, reach).await?;
    let mut failed = 0;
    for url in &args.urls {
        let mut added = match address(url, None) {
            Ok(address) => {
                let mut config = FeedConfig::new(address);
                config.title.clone_from(&args.title);
                config.category.clone_from(&args.category);
                config.interval = args.interval;
                config.headers.clone_from(&headers);
                add(&feeds, config, args, &output).await
            }
            Err(error) => Err(error.into()),
        };
        if looks_like_host(url) && !Path::new(url).exists() {
            added = added.context(Hint(format!("did you mean `https://{url}`?")));
        }
        if let Err(error) = added {
            if args.urls.len() == 1 {
                return Err(error);
            }
            failed += 1;
            output.remark(&report::lines(&error));
        }
    }
    if failed > 0 {
        bail!("{} could not be added", count(failed, "feed", "feeds"));
    }
    Ok(())
}

async fn add(feeds: &Feeds, config: FeedConfig, args: &FeedsAdd, output: &Output) -> Result<()> {
    let is_it = |it: &Status| [&*it.asked_url, &*it.url].contains(&config.address.as_str());
    let known = feeds.statuses().into_iter().find(is_it);
    let is_set = config != FeedConfig::new(config.address.clone());
    let (id, state, page) = match known {
        Some(known) if !is_set => (known.id, "present", None),
        // Settings that were not given stay.
        Some(known) => {
            let mut config = config;
            config.address = address(&known.asked_url, None)?;
            (feeds.add(config).await?, "changed", None)
        }
        None if args.unseen => (feeds.add(config).await?, "added", None),
        None => {
            let found = feeds.discover(config).await.map_err(|error| {
                let hint = hint(&error);
                let error = anyhow::Error::new(error);
                match hint {
                    Some(hint) => error.context(Hint(hint.to_owned())),
                    None => error,
                }
            })?;
            let page = found.page().map(str::to_owned);
            // The page or a redirect may lead to a feed that exists.
            let state = match feeds.id_at(found.url()) {
                Some(_) if is_set => "changed",
                Some(_) => "present",
                None => "added",
            };
            (feeds.add_found(found).await?, state, page)
        }
    };
    let status = feeds.status(&id).context("the feed was removed meanwhile")?;
    if args.kept.json {
        return output.object(&json!({
            "state": state, "id": id, "url": status.url, "title": status.title,
            "items": status.items, "page": page,
        }));
    }
    let word = match state {
        "present" => "exists:",
        state => state,
    };
    let items = match (status.last_success, status.items) {
        (None, _) => "not fetched yet".to_owned(),
        (Some(_), items) => count(usize::try_from(items).unwrap_or(usize::MAX), "item", "items"),
    };
    let title = one_line(&status.title);
    let found =
        if page.is_some() { format!(", at {}", one_line(&status.url)) } else { String::new() };
    output.raw(&format!("{word} {id}  {title}, {items}{found}"))
}

/// A hint, if there is one.
fn hint(error: &DiscoverError) -> Option<&'static str> {
    match error {
        DiscoverError::Fetch { obstacle: Obstacle::Private, .. } => Some(ALLOW_PRIVATE),
        DiscoverError::Fetch { obstacle: Obstacle::Passing, .. } => {
            Some("`--unseen` adds it without fetching it first")
        }
        DiscoverError::List { .. } => Some(IMPORT),
        _ => None,
    }
}
