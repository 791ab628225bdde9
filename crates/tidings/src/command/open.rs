//! `tidings open`: the console as a page of this machine's browser, or servers for the console that
//! is running.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::args::{Open, Place, Places};
use crate::console::Console;
use crate::console::socket::{
    self, ConsoleSocket, HandedServer, Handover, Holder, Opened, ServerOpener,
};
use crate::console::state::{self, StateKeeper};
use crate::present::Output;
use crate::report::{Hint, Usage};
use crate::session::Stop;
use crate::web::{self, ConsolePage, Guard};

/// How long a console that begins or ends is waited for, and how often it is asked.
const TURN: Duration = Duration::from_secs(3);
const AGAIN: Duration = Duration::from_millis(20);

pub(crate) async fn run(args: &Open) -> Result<()> {
    let stop = Stop::new()?;
    // Targets are checked before anything is started.
    let handed = |place| HandedServer::of(place, &args.connection);
    let servers = places(args)?.into_iter().map(handed).collect::<Result<Vec<_>>>()?;
    if args.new || args.web_root.is_some() {
        return serve(args, &servers, None, stop).await;
    }
    let deadline = tokio::time::Instant::now() + TURN;
    let socket = loop {
        match ConsoleSocket::take() {
            Ok(Holder::Us(socket)) => break Some(socket),
            Ok(Holder::Other(process)) => {
                let is_over = tokio::time::Instant::now() >= deadline;
                if let Some(done) = hand_over(args, &servers, &process, is_over).await {
                    return done;
                }
                tokio::time::sleep(AGAIN).await;
            }
            Err(error) => {
                warn!(error = format!("{error:#}"), "other commands cannot reach this console");
                break None;
            }
        }
    };
    serve(args, &servers, socket, stop).await
}

/// This process is the console.
async fn serve(
    args: &Open,
    servers: &[HandedServer],
    socket: Option<ConsoleSocket>,
    mut stop: Stop,
) -> Result<()> {
    let console = Console::default();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    // Only the one console of a user has a state.
    let file = socket.as_ref().and_then(|_| state::path());
    let last = file.as_deref().map(state::read).unwrap_or_default();
    let listener = listen(args.port, last.port).await?;
    let bound = listener.local_addr().context("listening")?;
    let guard = Guard::new(bound.to_string(), "/").context("creating a token")?;
    let link = guard.link();
    let opener = ServerOpener::new(console.clone(), link.clone(), cancel.clone());
    opener.open(servers, args.demo).await?;
    for failed in opener.restore(last.servers).await {
        warn!("{failed}");
    }
    let mut keeper = file.map(|file| StateKeeper::new(console.clone(), file, bound.port()));
    if let Some(socket) = socket {
        socket.record(bound.port());
        tasks.spawn(socket.serve(opener.clone()));
    }
    let places = Places { mcp_file: args.connection.places.mcp_file.clone() };
    let root = args.web_root.clone().map(Arc::new);
    let page = ConsolePage { console: console.clone(), places: Some(Arc::new(places)), root };
    let output = Output::new(args.connection.json);
    if output.json {
        output.object(&json!({ "link": link }))?;
    } else {
        output.raw(&format!("{link}\n"))?;
        output.remark("the page is open until Ctrl-C");
    }
    if let Some(page) = wants_browser(args).then(|| opener.redirect()).flatten() {
        browse(&page);
    }
    let result = tokio::select! {
        served = web::serve(listener, guard, page, cancel.clone()) => served,
        () = stop.wait() => Ok(()),
        () = keep(keeper.as_mut()) => Ok(()),
    };
    if let Some(keeper) = &mut keeper {
        keeper.keep();
    }
    cancel.cancel();
    tokio::select! {
        () = console.close() => {}
        // A second signal means: do not wait.
        () = stop.wait() => {}
    }
    tasks.shutdown().await;
    result
}

/// The console is another process: it takes the servers, and this one ends. `None` if that console
/// is just beginning or ending.
async fn hand_over(
    args: &Open,
    servers: &[HandedServer],
    process: &str,
    is_last: bool,
) -> Option<Result<()>> {
    if args.port != 0 {
        let words = format!("a console is running already, in process {process}");
        let usage = Usage::new(words).hint("`--new` starts another, with a port of its own");
        return Some(Err(usage.into()));
    }
    let servers = servers.iter().cloned().map(HandedServer::started_here).collect();
    let handover = Handover { servers, demo: args.demo, browse: wants_browser(args) };
    let opened = match socket::hand_over(handover).await {
        Ok(Some(opened)) => opened,
        Ok(None) if !is_last => return None,
        Ok(None) => {
            let words = format!("the console in process {process} cannot be reached");
            return Some(Err(Usage::new(words).hint("`--new` starts another").into()));
        }
        Err(error) => return Some(Err(error)),
    };
    if let Some(page) = &opened.redirect {
        browse(page);
    }
    Some(say(args, &opened))
}

/// Prints what was opened in another process.
fn say(args: &Open, opened: &Opened) -> Result<()> {
    let output = Output::new(args.connection.json);
    let (link, names) = (&opened.link, &opened.names);
    if output.json {
        return output.object(&json!({ "link": link, "pid": opened.pid, "names": names }));
    }
    output.raw(&format!("{link}\n"))?;
    let named: Vec<_> = names.iter().map(|name| format!("`@{name}`")).collect();
    let (what, are) = match named.as_slice() {
        [] => ("the page".to_owned(), "is"),
        [one] => (one.clone(), "is"),
        _ => (named.join(", "), "are"),
    };
    output.remark(&format!("{what} {are} open in the console of process {}", opened.pid));
    Ok(())
}

/// The port of the page: the given one, or that of the last time if it is free, so that what the
/// browser keeps for the page is still there.
async fn listen(given: u16, last: u16) -> Result<TcpListener> {
    if given == 0
        && last != 0
        && let Ok(listener) = TcpListener::bind(("127.0.0.1", last)).await
    {
        return Ok(listener);
    }
    let address = format!("127.0.0.1:{given}");
    let listener = TcpListener::bind(&address).await;
    listener.with_context(|| format!("listening on {address}")).context(Hint(
        "is another program listening there? Without `--port`, any free port is used".to_owned(),
    ))
}

/// Keeps the state, if there is one. It never ends by itself.
async fn keep(keeper: Option<&mut StateKeeper>) {
    match keeper {
        Some(keeper) => keeper.run().await,
        None => std::future::pending().await,
    }
}

/// The servers of the command line.
fn places(args: &Open) -> Result<Vec<Place>> {
    let connection = &args.connection;
    if let (false, Some(word)) = (connection.command.is_empty(), args.words.first()) {
        return Err(connection.unexpected(word).into());
    }
    let command = (!connection.command.is_empty()).then(|| connection.command.clone());
    let named = args.words.iter().cloned().map(Place::Named);
    Ok(named.chain(command.map(Place::Command)).collect())
}

/// Whether a browser is wanted, and there is a screen for it.
fn wants_browser(args: &Open) -> bool {
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    has_screen && !args.no_browser
}

/// Opens a private page that leads to the link, so that the token is in no list of processes.
/// Without a browser, the printed link remains.
fn browse(page: &Path) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let null = std::process::Stdio::null;
    let mut command = std::process::Command::new(opener);
    let started = command.arg(page).stdin(null()).stdout(null()).stderr(null()).spawn();
    if let Err(error) = started {
        warn!(%error, program = opener, "could not start a browser");
    }
}
