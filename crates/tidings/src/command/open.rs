//! `tidings open`: the console as a page of this machine's browser.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tidings_mirror::Backoff;
use tidings_server::Hub;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::args::{Open, Place, Places};
use crate::console::{Console, memory, short_name};
use crate::demo::Station;
use crate::present::Output;
use crate::report::{Hint, Usage};
use crate::session::{self, Stop};
use crate::target;
use crate::web::{self, ConsolePage, Guard};

/// The time between two events of the demo.
const EVERY: Duration = Duration::from_secs(2);

pub(crate) async fn run(args: &Open) -> Result<()> {
    let mut stop = Stop::new()?;
    let console = Console::default();
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    // Targets are checked before anything is started.
    let mut targets = Vec::new();
    for place in places(args)? {
        targets.push((target::resolve(&place, &args.connection)?, place));
    }
    let address = format!("127.0.0.1:{}", args.port);
    let listener = TcpListener::bind(&address).await;
    let listener = listener.with_context(|| format!("listening on {address}")).context(Hint(
        "is another program listening there? Without `--port`, any free port is used".to_owned(),
    ))?;
    let host = listener.local_addr().context("listening")?.to_string();
    let guard = Guard::new(host, "/").context("creating a token")?;
    let link = guard.link();
    let mut config = session::config(&args.connection);
    config.reconnect = Some(Backoff::default());
    if args.demo {
        let hub = demo().await?;
        let (target, serving) = memory::target(hub.clone(), cancel.clone());
        tasks.spawn(serving);
        let words = ["tidings", "serve", "--demo", "--stdio"].map(str::to_owned);
        let place = Place::Command(words.to_vec());
        if let Some(id) = console.add("station", place, target, config.clone()) {
            console.look_into(id, hub);
        }
    }
    for (target, place) in targets {
        let name = short_name(&place);
        if console.add(&name, place, target, config.clone()).is_none() {
            return Err(Usage::new("there are too many servers").into());
        }
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
    let _redirect = if args.no_browser { None } else { browse(&link) };
    let result = tokio::select! {
        served = web::serve(listener, guard, page, cancel.clone()) => served,
        () = stop.wait() => Ok(()),
    };
    cancel.cancel();
    tokio::select! {
        () = console.close() => {}
        // A second signal means: do not wait.
        () = stop.wait() => {}
    }
    tasks.shutdown().await;
    result
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

/// The space station.
async fn demo() -> Result<Hub> {
    let hub = Hub::new("station", env!("CARGO_PKG_VERSION"));
    // Nobody reads the story: the page shows it.
    let (story, _) = mpsc::channel(1);
    hub.add("station", |shelf| Station::new(shelf, EVERY, story))
        .await
        .context("starting the demo")?;
    Ok(hub)
}

/// Opens the link in a browser by way of a private file, so that the token is in no list of
/// processes. Without a browser, the printed link remains.
fn browse(link: &str) -> Option<tempfile::NamedTempFile> {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let has_screen = cfg!(target_os = "macos")
        || ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| std::env::var_os(name).is_some());
    if !has_screen {
        return None;
    }
    let mut file = tempfile::Builder::new().prefix("tidings-").suffix(".html").tempfile().ok()?;
    let page = format!("<!doctype html><meta http-equiv=refresh content='0;url={link}'>\n");
    file.write_all(page.as_bytes()).ok()?;
    let null = std::process::Stdio::null;
    let command = std::process::Command::new(opener)
        .arg(file.path())
        .stdin(null())
        .stdout(null())
        .stderr(null())
        .spawn();
    match command {
        Ok(_) => Some(file),
        Err(error) => {
            warn!(%error, program = opener, "could not start a browser");
            None
        }
    }
}
