//! `tidings serve`: sources, a hub, a transport, and a line for everything that happens.

mod feeds;
mod folders;
mod printer;
mod workspace;

use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow, bail};
use tidings_server::http::{self, HttpConfig, Token};
use tidings_server::{Config, Greeting, Hub, Merging, stdio};
use tidings_sources::feeds::Feeds;
use tidings_sources::folder::Introduction;
use tidings_sources::workspace::Workspace;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use self::printer::Printer;
use crate::args::Serve;
use crate::demo::Station;
use crate::report::{Hint, Usage};

/// How many changes and reports may wait to become lines, which takes no time to speak of.
const LINES: usize = 256;

/// Serves until a signal, or the end of the input.
pub(crate) async fn run(args: Serve) -> Result<()> {
    let (opened, lists) = feeds::open(&args).await?.unzip();
    let has_others = args.demo || !args.folder.is_empty() || args.workspace.is_some();
    if !has_others && opened.is_none() {
        let usage = Usage::new("there is nothing to serve");
        bail!(usage.hint(
            "name it with `--demo`, `--folder DIR`, `--feed URL`, `--opml FILE`, `--feeds`, \
             `--workspace DIR`, or in a `tidings.toml` here"
        ));
    }
    let mut config = Config::new("tidings", env!("CARGO_PKG_VERSION"));
    config.merging =
        Merging::new(Duration::from_millis(args.quiet), Duration::from_millis(args.max_wait));
    config.greeting = if args.silent { Greeting::Silent } else { Greeting::Announce };
    let (reports, reported) = mpsc::channel(LINES);
    let folders = folders::open(&args, &reports).await?;
    let workspace = workspace::open(&args).await?;
    if args.demo {
        config.title = Some("Tidings: a space station".to_owned());
        config.instructions = Some(
            "A small space station that changes by itself. Watch station://ports and \
             station://log, or list the resources again when you are told that they changed."
                .to_owned(),
        );
    } else if let [(_, folder)] = folders.as_slice() {
        introduce(&mut config, folder.introduction());
    } else if workspace.is_some() && folders.is_empty() && opened.is_none() {
        workspace::introduce(&mut config, &args);
    }
    let hub = Hub::new(config);
    let (story, told) = mpsc::channel(LINES);
    if args.demo {
        let every = Duration::from_secs_f64(args.every);
        hub.add("station", Station::new(every, story.clone()))
            .await
            .context("starting the demo")?;
    }
    let progress = opened.as_ref().map(Feeds::progress);
    if let Some(feeds) = opened {
        hub.add("feeds", feeds).await.context("starting the feeds")?;
    }
    for (name, folder) in folders {
        hub.add(&name, folder).await.with_context(|| format!("starting {name}"))?;
    }
    if let Some(workspace) = &workspace {
        hub.add("workspace", workspace.clone()).await.context("starting the workspace")?;
    }
    let printer = Printer::new(args.json, args.stdio)?;
    // Order: whoever reads that it listens may end it at once.
    let signals = Signals::new()?;
    let cancel = CancellationToken::new();
    let result = tokio::select! {
        result = transport(&args, &hub, workspace.as_ref(), &printer, cancel.clone()) => result,
        () = stop(&hub, signals, cancel.clone()) => Ok(()),
        () = printer.run(told, reported, hub.events()) => Ok(()),
        () = feeds::tell_progress(progress, &printer) => Ok(()),
        () = feeds::read_lists(lists) => Ok(()),
    };
    if result.is_ok() {
        hub.shutdown().await;
    }
    printer.finish().await;
    result
}

/// One folder alone says who the server is.
fn introduce(config: &mut Config, introduction: Introduction) {
    if let Some(name) = introduction.name {
        config.name = name;
    }
    if let Some(version) = introduction.version {
        config.version = version;
    }
    config.title = introduction.title;
    config.description = introduction.description;
    config.icons = introduction.icons;
    config.website_url = introduction.website_url;
    config.instructions = introduction.instructions;
}

async fn transport(
    args: &Serve,
    hub: &Hub,
    workspace: Option<&Workspace>,
    printer: &Printer,
    cancel: CancellationToken,
) -> Result<()> {
    if args.stdio {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        return stdio::serve(hub, input, output, cancel).await.context("serving stdio");
    }
    check_clock(SystemTime::now())?;
    let listener = bind(args.http).await?;
    let mut config = HttpConfig::default();
    config.hosts.clone_from(&args.allow_host);
    config.origins.clone_from(&args.allow_origin);
    config.token = token(args)?;
    config.beside = workspace.map(Workspace::routes);
    printer.started(listener.local_addr()?, workspace.is_some());
    http::serve(hub, listener, config, cancel).await.context("serving HTTP")
}

/// HTTP answers carry a date, and the HTTP library panics for one before 1970.
fn check_clock(now: SystemTime) -> Result<()> {
    if now < SystemTime::UNIX_EPOCH {
        let hint = Hint("set the clock, or serve with `--stdio`".to_owned());
        return Err(anyhow!("the clock of this machine is before 1970")).context(hint);
    }
    Ok(())
}

async fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("listening on {address}")).context(
        Hint(format!(
            "is something else serving there? `--http {}:0` takes any free port",
            address.ip()
        )),
    )
}

fn token(args: &Serve) -> Result<Option<Token>> {
    let text = match &args.token_file {
        Some(file) => Some(
            std::fs::read_to_string(file)
                .with_context(|| format!("reading the token from {}", file.display()))?,
        ),
        None => std::env::var("TIDINGS_TOKEN").ok(),
    };
    text.map(|text| Token::new(&text).context("reading the token")).transpose()
}

/// The signals that end a server. They are caught from when this is made.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    fn new() -> Result<Self> {
        let caught = |kind| signal(kind).context("waiting for signals");
        let interrupt = caught(SignalKind::interrupt())?;
        Ok(Self { interrupt, terminate: caught(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            Some(()) = self.interrupt.recv() => {}
            Some(()) = self.terminate.recv() => {}
            else => std::future::pending().await,
        }
    }
}

/// Ends everything properly at the first signal, at once at the second.
async fn stop(hub: &Hub, mut signals: Signals, cancel: CancellationToken) {
    signals.next().await;
    hub.shutdown().await;
    cancel.cancel();
    signals.next().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_before_1970_serves_no_http() {
        check_clock(SystemTime::UNIX_EPOCH).unwrap();
        let error = check_clock(SystemTime::UNIX_EPOCH - Duration::from_secs(1)).unwrap_err();
        assert!(format!("{error:#}").contains("before 1970"), "{error:#}");
    }
}
