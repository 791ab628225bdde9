//! Following `tidings.toml`: every edit changes what it touches, while the server runs.

use std::path::Path;

use anyhow::{Context as _, Result};
use tidings_folder::{Folder, Report};
use tidings_server::Hub;
use tokio::sync::{Notify, mpsc};
use tracing::{error, warn};

use super::folders;
use super::origins::Origins;
use super::plan::{Plan, PlannedFolder, Step};
use super::printer::Printer;
use super::served_feeds::ServedFeeds;
use super::upstreams::Upstreams;
use crate::args::Serve;
use crate::follow::FollowedFile;
use crate::report;
use crate::settings::Settings;

/// A running server and the configuration it has.
pub(super) struct Reload<'a> {
    pub(super) args: &'a Serve,
    pub(super) hub: &'a Hub,
    pub(super) printer: &'a Printer,
    /// Where folders report what they find.
    pub(super) reports: mpsc::Sender<Report>,
    pub(super) feeds: ServedFeeds,
    pub(super) upstreams: Upstreams,
    /// What is served now. A step that failed is not part of it, so the next edit tries it again.
    pub(super) served: Plan,
}

/// The files that are followed.
pub(super) struct FollowedFiles {
    /// `tidings.toml`.
    pub(super) settings: Option<FollowedFile>,
    /// The `mcp.json` of `--mcp-file`.
    pub(super) servers: Option<FollowedFile>,
}

impl FollowedFiles {
    /// Follows these files from now on.
    pub(super) fn new(settings: Option<&Path>, servers: Option<&Path>) -> Self {
        Self { settings: settings.map(FollowedFile::new), servers: servers.map(FollowedFile::new) }
    }
}

async fn changed(file: Option<&mut FollowedFile>) {
    match file {
        Some(file) => file.changed().await,
        None => std::future::pending().await,
    }
}

impl Reload<'_> {
    /// Follows the file; never ends. `again` reads it now.
    pub(super) async fn follow(mut self, mut files: FollowedFiles, again: &Notify) {
        loop {
            tokio::select! {
                () = changed(files.settings.as_mut()) => {}
                () = changed(files.servers.as_mut()) => {}
                () = again.notified() => {}
            }
            self.reload(files.settings.as_ref().map(FollowedFile::path)).await;
        }
    }

    /// Brings what is served in line with the file. If the file is invalid, everything stays.
    async fn reload(&mut self, file: Option<&Path>) {
        let read = file.map_or_else(|| Ok(Settings::default()), Settings::read);
        let settings = match read {
            // A save may begin with an empty file. Nobody empties a file to stop serving.
            Ok(settings) if settings.is_empty() && file.is_some() => {
                warn!("the configuration is empty: keeping the last one");
                return;
            }
            Ok(settings) => settings,
            Err(error) => {
                let error = report::line(&error);
                error!(%error, "the configuration is invalid: keeping the last one");
                return;
            }
        };
        let next = self.plan(&settings);
        for step in self.served.steps(&next) {
            match self.take(&step, &settings, &next).await {
                Ok(Some(words)) => self.printer.change("config", &words),
                Ok(None) => {}
                Err(error) => {
                    let error = report::line(&error);
                    error!(%error, "a part of the configuration could not be applied");
                }
            }
        }
    }

    /// The plan of a file. An upstream that cannot be found is logged, and stays as it is served.
    fn plan(&self, settings: &Settings) -> Plan {
        let mut next = Plan::new(settings, self.args, self.feeds.always);
        let origins = Origins::find(self.args, settings);
        next.upstreams = origins.upstreams;
        for (name, error) in origins.problems {
            let error = report::line(&error);
            error!(%error, "an upstream could not be configured");
            let served = self.served.upstreams.iter().find(|it| Some(&it.name) == name.as_ref());
            next.upstreams.extend(served.cloned());
        }
        next.rank(&self.served);
        next
    }

    /// Takes one step, and says what was done.
    async fn take(
        &mut self,
        step: &Step,
        settings: &Settings,
        next: &Plan,
    ) -> Result<Option<String>> {
        let words = match step {
            Step::AddFolder(planned) => {
                let folder = folders::open(self.args, planned, &self.reports).await?;
                self.add(planned, folder).await?;
                Some(format!("serving the folder `{}`", planned.path.display()))
            }
            Step::ReplaceFolder(planned) => {
                // Order: the new one is ready before the old one leaves, so that both changes are
                // announced as one, or not at all if the items are equal.
                let folder = folders::open(self.args, planned, &self.reports).await?;
                self.remove(&planned.path);
                self.add(planned, folder).await?;
                Some(format!("restarted the folder `{}`", planned.path.display()))
            }
            Step::RemoveFolder(path) => {
                self.remove(path);
                Some(format!("no longer serving the folder `{}`", path.display()))
            }
            Step::AddUpstream(_)
            | Step::ReplaceUpstream(_)
            | Step::AdjustUpstream(_)
            | Step::RemoveUpstream(_) => self.take_upstream(step).await?,
            Step::OpenFeeds => {
                self.feeds.open(self.args, settings, self.hub).await?;
                self.served.take_feeds(next);
                Some("serving feeds".to_owned())
            }
            Step::ConfigureFeeds => {
                self.feeds.configure(self.args, settings).await?;
                let (old, new) = (self.served.feeds.as_ref(), next.feeds.as_ref());
                let words = old.zip(new).map(|(old, new)| old.difference(new));
                self.served.take_feeds(next);
                words
            }
            Step::CloseFeeds => {
                self.feeds.close(self.hub);
                self.served.take_feeds(next);
                Some("no longer serving feeds".to_owned())
            }
            Step::Restart(key) => {
                warn!(key, "this setting changed: it takes effect after a restart");
                None
            }
        };
        Ok(words)
    }

    /// Takes one step of an upstream, and says what was done.
    async fn take_upstream(&mut self, step: &Step) -> Result<Option<String>> {
        Ok(Some(match step {
            Step::AddUpstream(planned) => {
                self.upstreams.add(planned).await?;
                self.served.serve_upstream(planned);
                format!("connecting to the upstream `{}`", planned.name)
            }
            Step::ReplaceUpstream(planned) => {
                self.upstreams.remove(&planned.name);
                self.served.leave_upstream(&planned.name);
                self.upstreams.add(planned).await?;
                self.served.serve_upstream(planned);
                format!("restarting the upstream `{}`", planned.name)
            }
            Step::AdjustUpstream(planned) => {
                self.upstreams.adjust(planned)?;
                self.served.serve_upstream(planned);
                format!("adjusted the upstream `{}`, without a restart", planned.name)
            }
            Step::RemoveUpstream(name) => {
                self.upstreams.remove(name);
                self.served.leave_upstream(name);
                format!("no longer serving the upstream `{name}`")
            }
            _ => return Ok(None),
        }))
    }

    async fn add(&mut self, planned: &PlannedFolder, folder: Folder) -> Result<()> {
        let name = folders::name(&planned.path);
        let added = self.hub.add(&name, |shelf| Ok(folder.on(shelf))).await;
        added.with_context(|| format!("starting {name}"))?;
        self.served.serve_folder(planned);
        Ok(())
    }

    fn remove(&mut self, path: &Path) {
        self.hub.remove(&folders::name(path));
        self.served.leave_folder(path);
    }
}
