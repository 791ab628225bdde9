//! Opens servers in a console: those of its own command line, and those that others hand over.

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, Result};
use tempfile::NamedTempFile;
use tidings_server::Hub;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::listen::refused;
use super::{FromConsole, HandedServer, Handover, Opened, directory};
use crate::args::{Place, Places};
use crate::console::archive::{self, Archive};
use crate::console::server::Server;
use crate::console::state::KeptServer;
use crate::console::{Console, memory, short_name};
use crate::demo::Station;
use crate::report::Usage;

/// The time between two events of the demo.
const EVERY: Duration = Duration::from_secs(2);

/// Opens servers in one console. Cloning is cheap.
#[derive(Clone)]
pub(crate) struct ServerOpener {
    console: Console,
    /// The link to the page.
    link: Arc<str>,
    cancel: CancellationToken,
    /// Pages that lead browsers to the link; they are removed with this.
    redirects: Arc<Mutex<Vec<NamedTempFile>>>,
}

impl ServerOpener {
    pub(crate) fn new(console: Console, link: String, cancel: CancellationToken) -> Self {
        Self { console, link: link.into(), cancel, redirects: Arc::default() }
    }

    /// Waits for the end of the console.
    pub(super) async fn ended(&self) {
        self.cancel.cancelled().await;
    }

    pub(crate) fn console(&self) -> &Console {
        &self.console
    }

    /// Opens servers, and returns their names. A plain URL that is open already is not opened again.
    ///
    /// # Errors
    ///
    /// If there are too many.
    pub(crate) async fn open(&self, servers: &[HandedServer], demo: bool) -> Result<Vec<String>> {
        let mut names = Vec::new();
        if demo {
            names.push(self.demo().await?);
        }
        for server in servers {
            let open = self.console.at(&server.place).filter(|_| server.is_plain());
            let added = match open {
                Some(open) => open,
                None => self.add(server).await?,
            };
            names.push(added.name.clone());
        }
        Ok(names)
    }

    /// Opens one server.
    async fn add(&self, server: &HandedServer) -> Result<Arc<Server>> {
        let place = &server.place;
        let id = match server.target() {
            Ok(target) => {
                self.console.add(&short_name(place), place.clone(), target, server.config())
            }
            Err(file) => self.console.add_saved(saved(file).await?),
        };
        let added = id.and_then(|id| self.console.server(id));
        let added = added.ok_or_else(|| Usage::new("there are too many servers"))?;
        let mut facts = added.facts();
        facts.kept = server.kept(&added.place);
        if let Some(token) = server.token() {
            facts.secrets.add(&token);
        }
        drop(facts);
        Ok(added)
    }

    /// Opens what was open last time and is not open now: URLs and names, with what was watched.
    /// Programs are offered. Returns what could not be opened; it is tried again next time.
    pub(crate) async fn restore(&self, kept: Vec<KeptServer>) -> Vec<String> {
        let (mut offered, mut failed) = (Vec::new(), Vec::new());
        for kept in kept {
            if kept.offer().is_some() {
                offered.push(kept);
                continue;
            }
            let server = match self.console.at(&kept.place) {
                Some(open) => Ok(open),
                None => self.reopen(&kept).await,
            };
            match server {
                Ok(server) => {
                    server.facts().to_watch.extend(kept.watched);
                    self.console.spawn(server.watch_again());
                }
                Err(error) => {
                    failed.push(format!("`{}` was open last time: {error:#}", kept.place));
                    offered.push(kept);
                }
            }
        }
        self.console.offer(offered);
        failed
    }

    async fn reopen(&self, kept: &KeptServer) -> Result<Arc<Server>> {
        let places = Places { mcp_file: kept.path.clone() };
        self.add(&HandedServer::plain(kept.place.clone(), &places)?).await
    }

    /// What another command wants.
    pub(super) async fn hand_over(&self, handover: Handover) -> FromConsole {
        let names = match self.open(&handover.servers, handover.demo).await {
            Ok(names) => names,
            Err(error) => return refused(format!("{error:#}"), None),
        };
        let redirect = if handover.browse { self.redirect() } else { None };
        let (pid, link) = (std::process::id(), self.link.to_string());
        FromConsole::Opened(Opened { pid, link, names, redirect })
    }

    /// Writes a page that leads to the link. Only its owner may read it, so that the token is in no
    /// list of processes.
    pub(crate) fn redirect(&self) -> Option<PathBuf> {
        let mut builder = tempfile::Builder::new();
        let builder = builder.prefix("tidings-").suffix(".html");
        let mut file = match directory() {
            Ok(directory) if directory.is_dir() => builder.tempfile_in(directory).ok()?,
            _ => builder.tempfile().ok()?,
        };
        let page =
            format!("<!doctype html><meta http-equiv=refresh content='0;url={}'>\n", self.link);
        file.write_all(page.as_bytes()).ok()?;
        let path = file.path().to_owned();
        let mut redirects = self.redirects.lock().unwrap_or_else(PoisonError::into_inner);
        redirects.push(file);
        Some(path)
    }

    /// Adds the space station, and returns its name.
    async fn demo(&self) -> Result<String> {
        let hub = Hub::new("station", env!("CARGO_PKG_VERSION"));
        // Nobody reads the story: the page shows it.
        let (story, _) = mpsc::channel(1);
        hub.add("station", |shelf| Station::new(shelf, EVERY, story))
            .await
            .context("starting the demo")?;
        let (target, serving) = memory::target(hub.clone(), self.cancel.clone());
        self.console.spawn(serving);
        let words = ["tidings", "serve", "--demo", "--stdio"].map(str::to_owned);
        let place = Place::Command(words.to_vec());
        let mut config = crate::session::defaults();
        config.reconnect = Some(tidings_mirror::Backoff::default());
        let id = self.console.add("station", place, target, config);
        let id = id.ok_or_else(|| Usage::new("there are too many servers"))?;
        self.console.look_into(id, hub);
        let added = self.console.server(id);
        Ok(added.map(|server| server.name.clone()).unwrap_or_default())
    }
}

/// Reads a saved session, which may be large.
async fn saved(file: PathBuf) -> Result<Archive> {
    let read = tokio::task::spawn_blocking(move || archive::read(&file));
    read.await.context("reading the saved session")?
}
