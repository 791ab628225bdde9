//! `tidings serve`: sources, a hub, a transport, and a line for everything that happens.

use std::io::{IsTerminal as _, Write as _};
use std::net::SocketAddr;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use serde_json::json;
use tidings_server::http::{self, HttpConfig, Token};
use tidings_server::{Config, Event, Greeting, Hub, Merging, stdio};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

use crate::args::Serve;
use crate::demo::Station;
use crate::report::Hint;

/// How many lines may wait to be printed; a terminal that stands still loses the rest.
const LINES: usize = 256;

/// Serves until a signal, or the end of the input.
pub(crate) async fn run(args: Serve) -> Result<()> {
    let mut config = Config::new("tidings", env!("CARGO_PKG_VERSION"));
    config.merging =
        Merging::new(Duration::from_millis(args.quiet), Duration::from_millis(args.max_wait));
    config.greeting = if args.silent { Greeting::Silent } else { Greeting::Announce };
    config.title = Some("Tidings: a space station".to_owned());
    config.instructions = Some(
        "A small space station that changes by itself. Watch station://ports and station://log, \
         or list the resources again when you are told that they changed."
            .to_owned(),
    );
    let hub = Hub::new(config);
    let (story, told) = mpsc::channel(LINES);
    let every = Duration::from_secs_f64(args.every);
    hub.add("station", Station::new(every, story)).await.context("starting the demo")?;
    let printer = Printer { json: args.json, to_stderr: args.stdio };
    let cancel = CancellationToken::new();
    tokio::select! {
        result = transport(&args, &hub, &printer, cancel.clone()) => result?,
        result = stop(&hub, cancel.clone()) => result?,
        () = printer.run(told, hub.events()) => {}
    }
    hub.shutdown().await;
    Ok(())
}

async fn transport(
    args: &Serve,
    hub: &Hub,
    printer: &Printer,
    cancel: CancellationToken,
) -> Result<()> {
    if args.stdio {
        let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
        return stdio::serve(hub, input, output, cancel).await.context("serving stdio");
    }
    let listener = bind(args.http).await?;
    let mut config = HttpConfig::default();
    config.hosts.clone_from(&args.allow_host);
    config.origins.clone_from(&args.allow_origin);
    config.token = token(args)?;
    printer.started(listener.local_addr()?);
    http::serve(hub, listener, config, cancel).await.context("serving HTTP")
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

/// Ends everything properly at the first signal, at once at the second.
async fn stop(hub: &Hub, cancel: CancellationToken) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("waiting for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("waiting for signals")?;
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    hub.shutdown().await;
    cancel.cancel();
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        () = std::future::pending() => {}
    }
    Ok(())
}

/// Prints one line for each change and each notice.
struct Printer {
    json: bool,
    /// Standard output is the protocol's when it serves stdio.
    to_stderr: bool,
}

impl Printer {
    async fn run(&self, mut told: mpsc::Receiver<String>, mut events: broadcast::Receiver<Event>) {
        loop {
            tokio::select! {
                Some(change) = told.recv() => self.line("change", &change, None),
                event = events.recv() => match event {
                    Ok(Event::Announced { what, listeners }) => {
                        self.line("notice", &what, Some(listeners));
                    }
                    Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => std::future::pending().await,
                },
            }
        }
    }

    fn started(&self, address: SocketAddr) {
        let endpoint = http::endpoint(address);
        if self.json {
            self.print(&json!({ "event": "listening", "endpoint": endpoint }).to_string());
            return;
        }
        self.print(&format!("listening on {endpoint}"));
        self.print("connect any MCP client there; Ctrl-C ends it");
    }

    fn line(&self, kind: &str, what: &str, listeners: Option<usize>) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.json {
            let mut line = json!({ "event": kind, "what": what, "unix_ms": now.as_millis() });
            if let Some(listeners) = listeners {
                line["listeners"] = listeners.into();
            }
            self.print(&line.to_string());
            return;
        }
        let seconds = now.as_secs() % 86_400;
        let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let told = match listeners {
            Some(1) => " → 1 listener".to_owned(),
            Some(listeners) => format!(" → {listeners} listeners"),
            None => String::new(),
        };
        let kind = self.coloured(kind);
        self.print(&format!("{hour:02}:{minute:02}:{second:02}Z  {kind}  {what}{told}"));
    }

    fn coloured(&self, kind: &str) -> String {
        let terminal = if self.to_stderr {
            std::io::stderr().is_terminal()
        } else {
            std::io::stdout().is_terminal()
        };
        if !terminal || std::env::var_os("NO_COLOR").is_some() {
            return kind.to_owned();
        }
        let colour = if kind == "notice" { 36 } else { 33 };
        format!("\u{1b}[{colour}m{kind}\u{1b}[0m")
    }

    /// A reader that has gone away is not told; the clients are still served.
    fn print(&self, line: &str) {
        let line = format!("{line}\n");
        drop(if self.to_stderr {
            std::io::stderr().write_all(line.as_bytes())
        } else {
            std::io::stdout().write_all(line.as_bytes())
        });
    }
}
