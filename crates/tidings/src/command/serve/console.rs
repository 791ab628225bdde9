//! `tidings serve --console`: the page of this hub, beside its endpoint.

use std::net::SocketAddr;

use anyhow::{Context as _, Result};
use axum::Router;
use tidings_server::Hub;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::{Place, Serve};
use crate::console::{Console, memory};
use crate::report::Usage;
use crate::session;
use crate::web::{self, BASE, ConsolePage, Guard};

/// The page of a hub.
pub(super) struct HubConsole {
    console: Console,
    /// Serves the hub to the console.
    tasks: JoinSet<()>,
    cancel: CancellationToken,
    /// The link to the page, with its token.
    pub(super) link: String,
}

/// Refuses a page that other machines could reach.
pub(super) fn check(args: &Serve) -> Result<(), Usage> {
    if !args.console || args.http.ip().to_canonical().is_loopback() {
        return Ok(());
    }
    let usage =
        Usage::new(format!("the console is served to this machine only, not on {}", args.http));
    let port = args.http.port();
    Err(usage.hint(format!(
        "serve on 127.0.0.1 and forward the port: `ssh -L {port}:127.0.0.1:{port} HOST`"
    )))
}

impl HubConsole {
    /// The page of a hub that is served at this address, and its routes.
    pub(super) fn open(hub: &Hub, name: &str, address: SocketAddr) -> Result<(Self, Router)> {
        let guard = Guard::new(address.to_string(), BASE).context("creating a token")?;
        let (link, console) = (guard.link(), Console::default());
        let (cancel, mut tasks) = (CancellationToken::new(), JoinSet::new());
        let (target, serving) = memory::target(hub.clone(), cancel.clone());
        tasks.spawn(serving);
        let mut config = session::defaults();
        config.reconnect = Some(tidings_mirror::Backoff::default());
        let place = Place::Named(tidings_server::http::endpoint(address));
        if let Some(id) = console.add(name, place, target, config) {
            console.look_into(id, hub.clone());
        }
        let page = ConsolePage { console: console.clone(), places: None, root: None };
        let routes = web::routes(page, guard, &cancel);
        Ok((Self { console, tasks, cancel, link }, routes))
    }

    /// Ends waiting viewers when the server is to stop, so that they do not hold it up.
    pub(super) async fn end_with(&self, server: CancellationToken) {
        server.cancelled().await;
        self.cancel.cancel();
        std::future::pending::<()>().await;
    }

    /// Ends the connection to the hub.
    pub(super) async fn close(mut self) {
        self.cancel.cancel();
        self.console.close().await;
        self.tasks.shutdown().await;
    }
}
