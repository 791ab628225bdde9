//! The feeds of a running server: named again when the configuration changes, and completed by lists
//! on the web.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tidings_feeds::{Asker, Earlier, FeedConfig, Feeds, Progress, WebAddress, opml};
use tidings_server::Hub;
use tokio::sync::watch;

use super::feeds::{self, NamedFeeds, OpenedFeeds, of_list};
use crate::args::Serve;
use crate::present::Output;
use crate::settings::Settings;

/// The name of the source.
const NAME: &str = "feeds";
/// Time before a list that could not be loaded is tried again.
const LIST_AGAIN: Duration = Duration::from_mins(15);

/// The feeds that are served, and how they become others.
pub(super) struct ServedFeeds {
    /// Whether feeds are served whatever the file says.
    pub(super) always: bool,
    /// Stays open while no feeds are served: the directory is locked until the process ends.
    opened: Option<OpenedFeeds>,
    /// The lists to load, for [`load_lists`].
    lists: watch::Sender<Option<WebLists>>,
}

/// Lists on the web, to be loaded in the background.
#[derive(Clone)]
pub(super) struct WebLists {
    feeds: Feeds,
    /// The feeds named elsewhere.
    named: Vec<FeedConfig>,
    urls: Vec<WebAddress>,
    output: Output,
}

impl ServedFeeds {
    /// The feeds as they were opened at the start.
    pub(super) fn new(
        args: &Serve,
        settings: Option<&Settings>,
        opened: Option<OpenedFeeds>,
    ) -> Self {
        let is_in_file = settings.is_some_and(Settings::names_feeds);
        let always = opened.is_some() && (feeds::are_named(args) || !is_in_file);
        let lists = opened.as_ref().map(|opened| opened.lists(args));
        Self { always, opened, lists: watch::Sender::new(lists) }
    }

    /// Adds the feeds to the hub, if there are any.
    pub(super) async fn start(&self, hub: &Hub) -> Result<()> {
        if let Some(OpenedFeeds { feeds, .. }) = self.opened.clone() {
            hub.add(NAME, |shelf| feeds.on(shelf)).await.context("starting the feeds")?;
        }
        Ok(())
    }

    /// Whether feeds are served at the start.
    pub(super) fn are_served(&self) -> bool {
        self.opened.is_some()
    }

    /// The directory of the stored feeds.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        self.opened.as_ref()?.directory()
    }

    /// The progress of the first fetches.
    pub(super) fn progress(&self) -> Option<watch::Receiver<Progress>> {
        self.opened.as_ref().map(|opened| opened.feeds.progress())
    }

    /// The lists to load, for [`load_lists`].
    pub(super) fn lists(&self) -> watch::Receiver<Option<WebLists>> {
        self.lists.subscribe()
    }

    /// Begins to serve feeds.
    pub(super) async fn open(
        &mut self,
        args: &Serve,
        settings: &Settings,
        hub: &Hub,
    ) -> Result<()> {
        if self.opened.is_some() {
            self.configure(args, settings).await?;
        } else {
            self.opened = feeds::open(args, Some(settings)).await?;
            self.lists.send_replace(self.opened.as_ref().map(|opened| opened.lists(args)));
        }
        self.start(hub).await
    }

    /// Serves the feeds that the file names now.
    pub(super) async fn configure(&mut self, args: &Serve, settings: &Settings) -> Result<()> {
        let Some(opened) = &mut self.opened else { return Ok(()) };
        if opened.is_follower {
            bail!("the feeds are those of another server: change its configuration instead");
        }
        opened.named = opened.name(args, settings).await?;
        let NamedFeeds { feeds, earlier, .. } = opened.named.clone();
        opened.feeds.configure(feeds, earlier).await.context("storing the feeds")?;
        self.lists.send_replace(Some(opened.lists(args)));
        Ok(())
    }

    /// Serves no feeds any more. They stay stored.
    pub(super) fn close(&mut self, hub: &Hub) {
        self.lists.send_replace(None);
        hub.remove(NAME);
    }
}

impl OpenedFeeds {
    fn lists(&self, args: &Serve) -> WebLists {
        let NamedFeeds { feeds: named, lists: urls, .. } = self.named.clone();
        WebLists { feeds: self.feeds.clone(), named, urls, output: Output::new(args.json) }
    }
}

/// Loads the lists on the web, and retries failed ones; never ends. Other lists replace those that
/// were not loaded yet.
pub(super) async fn load_lists(mut wanted: watch::Receiver<Option<WebLists>>) {
    loop {
        let lists = wanted.borrow_and_update().clone();
        tokio::select! {
            changed = wanted.changed() => if changed.is_err() {
                return std::future::pending().await;
            },
            () = load(lists) => {}
        }
    }
}

/// Loads these lists; never ends.
async fn load(lists: Option<WebLists>) {
    if let Some(mut lists) = lists {
        while !lists.urls.is_empty() {
            lists.load().await;
            tokio::time::sleep(LIST_AGAIN).await;
        }
    }
    std::future::pending::<()>().await;
}

impl WebLists {
    /// Loads the missing lists, and serves their feeds.
    async fn load(&mut self) {
        for url in std::mem::take(&mut self.urls) {
            match self.fetched(&url).await {
                Ok(feeds) => self.named.extend(feeds),
                Err(error) => {
                    let again = LIST_AGAIN.as_secs() / 60;
                    self.output.remark(&format!(
                        "the list of feeds `{url}` could not be loaded; next try in {again} min: \
                         {error:#}"
                    ));
                    self.urls.push(url);
                }
            }
        }
        let earlier = if self.urls.is_empty() { Earlier::Dropped } else { Earlier::Served };
        if let Err(error) = self.feeds.configure(self.named.clone(), earlier).await {
            let error = anyhow::Error::new(error);
            self.output.remark(&format!("the feeds of a list could not be stored: {error:#}"));
        }
    }

    async fn fetched(&self, url: &WebAddress) -> Result<Vec<FeedConfig>> {
        let read = opml::read_list(&self.feeds.fetch_list(url).await?, Asker::Client)?;
        Ok(of_list(url.as_str(), read, self.output))
    }
}
