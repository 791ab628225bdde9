//! `tidings serve`: sources, a hub, a transport, and a line for each change.

mod access;
mod console;
mod control;
mod endpoint;
mod feeds;
mod folders;
mod origins;
mod pipe;
mod plan;
mod printer;
mod reload;
mod served_feeds;
mod upstreams;
mod workspace;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result, anyhow};
use tidings_folder::{Folder, Introduction, Report};
use tidings_server::{Config, Greeting, Hub, Identity, Merging, http, stdio};
use tidings_workspace::Workspace;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use self::access::Access;
use self::console::HubConsole;
use self::control::Control;
use self::origins::Origins;
use self::plan::{Plan, PlannedFolder};
use self::printer::Printer;
use self::reload::{FollowedFiles, Reload};
use self::served_feeds::ServedFeeds;
use self::upstreams::Upstreams;
use crate::args::{Limits, Serve};
use crate::demo::Station;
use crate::folder::{existing, server_name};
use crate::report::{Hint, Usage};
use crate::settings::Settings;

/// Changes and reports that may wait to be printed.
const LINES: usize = 256;

/// Serves until a signal, or until the stdio client ends.
pub(crate) async fn run(args: Serve) -> Result<()> {
    let file = feeds::file(&args);
    let files = FollowedFiles::new(file.as_deref(), args.mcp_file.as_deref());
    let settings = file.as_deref().map(Settings::read).transpose()?;
    let opened = feeds::open(&args, settings.as_ref()).await?;
    let feeds = ServedFeeds::new(&args, settings.as_ref(), opened);
    let settings = settings.unwrap_or_default();
    let limits = args.limits.clone().or(&settings.limits.clone().unwrap_or_default());
    let served = plan(&args, &settings, feeds.always)?;
    let (reports, reported) = mpsc::channel(LINES);
    let folders = open_folders(&args, &settings, &served, &reports).await?;
    let workspace = workspace::open(&args, &settings).await?;
    let has_sources = args.demo || !folders.is_empty() || workspace.is_some();
    if !has_sources && !feeds.are_served() && served.upstreams.is_empty() {
        return Err(nothing());
    }
    let hub = Hub::with_config(config(&args, &limits, &folders, feeds.are_served()));
    let (story, stories) = mpsc::channel(LINES);
    if args.demo {
        add_demo(&hub, &args, story.clone()).await?;
    }
    feeds.start(&hub).await?;
    add(&hub, folders, workspace.as_ref()).await?;
    let upstreams = Upstreams::of(&served, &hub).await?;
    let printer = Printer::new(args.json, args.stdio, args.verbose)?;
    // Order: a reader of `listening` may end the server at once, so signals are caught before.
    let signals = Signals::new()?;
    let (cancel, again) = (CancellationToken::new(), Notify::new());
    let (access, tokens) = Access::open(&args, settings.http.tokens.as_deref())?;
    let data = feeds.directory().into_iter().chain(args.workspace.clone()).collect();
    let transport_of =
        Served { limits, access: &access, data, workspace, upstreams: upstreams.clone() };
    let (progress, lists) = (feeds.progress(), feeds.lists());
    let control = Control::open(&served, &files);
    let reload = Reload {
        args: &args,
        hub: &hub,
        printer: &printer,
        reports,
        feeds,
        upstreams: upstreams.clone(),
        served,
    };
    let result = tokio::select! {
        result = transport(&args, &hub, transport_of, &printer, cancel.clone()) => result,
        () = stop(signals, &access, &again, cancel.clone()) => Ok(()),
        () = access.follow(tokens) => Ok(()),
        () = printer.run(stories, reported, hub.events()) => Ok(()),
        () = feeds::tell_progress(progress, &printer) => Ok(()),
        () = served_feeds::load_lists(lists) => Ok(()),
        () = reload.follow(files, &again) => Ok(()),
        () = upstreams.report(&printer) => Ok(()),
        () = Control::serve(control, &upstreams) => Ok(()),
    };
    if result.is_ok() {
        hub.shutdown().await;
    }
    printer.finish().await;
    result
}

/// What the file and the command line want to be served. At the start, every upstream must be known.
fn plan(args: &Serve, settings: &Settings, always: bool) -> Result<Plan> {
    let mut plan = Plan::new(settings, args, always);
    let mut origins = Origins::find(args, settings);
    if !origins.problems.is_empty() {
        return Err(origins.problems.swap_remove(0).1);
    }
    plan.upstreams = origins.upstreams;
    plan.rank(&Plan::default());
    Ok(plan)
}

fn nothing() -> anyhow::Error {
    let usage = Usage::new("nothing to serve");
    let usage = usage.hint(
        "give `--demo`, `--folder DIR`, `--feed URL`, `--opml FILE`, `--feeds`, `--workspace DIR`, \
         `--upstream NAME=TARGET`, `--mcp-file FILE`, or a `tidings.toml` in the current directory",
    );
    usage.into()
}

/// Reads the folders of the command line and of the file for the first time.
async fn open_folders(
    args: &Serve,
    settings: &Settings,
    plan: &Plan,
    reports: &mpsc::Sender<Report>,
) -> Result<Vec<(PathBuf, Folder)>> {
    let variables = settings.variables();
    let named = args.folder.iter();
    let named = named.map(|path| PlannedFolder::new(path.clone(), variables));
    let mut folders = Vec::new();
    for planned in named.chain(plan.folders.iter().cloned()) {
        let folder = folders::open(args, &planned, reports).await?;
        folders.push((planned.path, folder));
    }
    Ok(folders)
}

async fn add_demo(hub: &Hub, args: &Serve, story: mpsc::Sender<String>) -> Result<()> {
    let every = Duration::from_secs_f64(args.every);
    let added = hub.add("station", |shelf| Station::new(shelf, every, story)).await;
    added.context("starting the demo")
}

/// Adds the folders and the workspace to the hub.
async fn add(
    hub: &Hub,
    folders: Vec<(PathBuf, Folder)>,
    workspace: Option<&Workspace>,
) -> Result<()> {
    for (path, folder) in folders {
        let name = folders::name(&path);
        let added = hub.add(&name, |shelf| Ok(folder.on(shelf))).await;
        added.with_context(|| format!("starting {name}"))?;
    }
    if let Some(workspace) = workspace {
        hub.add("workspace", |shelf| Ok(workspace.clone().on(shelf)))
            .await
            .context("starting the workspace")?;
    }
    Ok(())
}

/// The settings of the hub. A single source introduces the server.
fn config(args: &Serve, limits: &Limits, folders: &[(PathBuf, Folder)], has_feeds: bool) -> Config {
    let mut config = Config::new("tidings", env!("CARGO_PKG_VERSION"));
    config.merging =
        Merging::new(Duration::from_millis(args.quiet), Duration::from_millis(args.max_wait));
    if let Some(subscriptions) = limits.subscriptions {
        config.limits.subscriptions_per_listener = subscriptions;
    }
    config.greeting = if args.silent { Greeting::Silent } else { Greeting::Announce };
    if args.demo {
        config.title = Some("Tidings: a space station".to_owned());
        config.instructions = Some(
            "A small space station that changes by itself. Watch station://ports and \
             station://log, or list the resources again when you are notified that they changed."
                .to_owned(),
        );
    } else if let [(path, folder)] = folders {
        if let Ok(name) = existing(path) {
            config.name = server_name(&name).unwrap_or(config.name);
        }
        introduce(&mut config, folder.introduction());
    } else if args.workspace.is_some() && folders.is_empty() && !has_feeds {
        workspace::introduce(&mut config, args);
    }
    if has_feeds {
        feeds::introduce(&mut config);
    }
    config
}

/// A single folder names the server.
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

/// The parameters of the transport.
struct Served<'a> {
    limits: Limits,
    access: &'a Access,
    /// The directories of sources with durable state.
    data: Vec<PathBuf>,
    workspace: Option<Workspace>,
    upstreams: Upstreams,
}

async fn transport(
    args: &Serve,
    hub: &Hub,
    served: Served<'_>,
    printer: &Printer,
    cancel: CancellationToken,
) -> Result<()> {
    if args.stdio {
        let mut identity = Identity::anonymous();
        identity.labels = args.labels()?;
        // Over HTTP nobody waits: clients come at any time, and are notified of lists.
        tokio::select! {
            () = served.upstreams.settled() => {}
            () = cancel.cancelled() => return Ok(()),
        }
        return over_stdio(hub, identity, cancel).await.context("serving stdio");
    }
    check_clock(SystemTime::now())?;
    console::check(args)?;
    let listener = endpoint::bind(args, served.access, &offers(args)).await?;
    let address = listener.local_addr()?;
    let mut config = endpoint::config(args, &served.limits, served.access, served.data);
    config.beside = served.workspace.as_ref().map(Workspace::routes);
    let page = args.console.then(|| HubConsole::open(hub, "hub", address)).transpose()?;
    let (page, routes) = page.unzip();
    config.apart = routes;
    let link = page.as_ref().map(|page| page.link.as_str());
    printer.started(address, served.workspace.is_some(), link);
    let serving = http::serve(hub, listener, config, cancel.clone());
    let result = match &page {
        Some(page) => tokio::select! {
            result = serving => result,
            () = page.end_with(cancel) => Ok(()),
        },
        None => serving.await,
    };
    if let Some(page) = page {
        page.close().await;
    }
    result.context("serving HTTP")
}

/// What a client could use, for the warning about a missing token.
fn offers(args: &Serve) -> String {
    let folders =
        args.folder.iter().map(|folder| format!("the programs in `{}`", folder.display()));
    let workspace =
        args.workspace.iter().map(|place| format!("the workspace `{}`", place.display()));
    let all: Vec<_> = folders.chain(workspace).collect();
    if all.is_empty() { "everything served".to_owned() } else { all.join(" and ") }
}

/// HTTP answers carry a date, and the HTTP library panics for dates before 1970.
fn check_clock(now: SystemTime) -> Result<()> {
    if now < SystemTime::UNIX_EPOCH {
        let hint = Hint("set the clock, or serve with `--stdio`".to_owned());
        return Err(anyhow!("the clock of this machine is set before 1970")).context(hint);
    }
    Ok(())
}

/// Serves one client over standard input and output, until it ends.
async fn over_stdio(
    hub: &Hub,
    identity: Identity,
    cancel: CancellationToken,
) -> Result<(), stdio::ServeError> {
    let pipes = (tokio::io::stdin(), tokio::io::stdout());
    tokio::select! {
        result = stdio::serve_as(hub, identity, pipes, cancel) => result,
        // Nobody waits for an answer any more.
        () = pipe::reader_gone() => Ok(()),
    }
}

/// The signals of a server, caught from the moment this is created.
struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
    /// Whether the output goes to a terminal. Hanging up then means that it was closed.
    is_shown: bool,
}

/// The meaning of a signal.
enum SignalAction {
    End,
    Reload,
}

impl Signals {
    fn new() -> Result<Self> {
        let caught = |kind| signal(kind).context("waiting for signals");
        Ok(Self {
            interrupt: caught(SignalKind::interrupt())?,
            terminate: caught(SignalKind::terminate())?,
            hang_up: caught(SignalKind::hangup())?,
            is_shown: std::io::stdout().is_terminal(),
        })
    }

    async fn next(&mut self) -> SignalAction {
        tokio::select! {
            Some(()) = self.interrupt.recv() => SignalAction::End,
            Some(()) = self.terminate.recv() => SignalAction::End,
            Some(()) = self.hang_up.recv() => {
                if self.is_shown { SignalAction::End } else { SignalAction::Reload }
            }
            else => std::future::pending().await,
        }
    }
}

/// The first signal shuts down cleanly, the second ends at once. Hanging up reads tokens and the
/// configuration again.
async fn stop(mut signals: Signals, access: &Access, again: &Notify, cancel: CancellationToken) {
    loop {
        match signals.next().await {
            SignalAction::End if cancel.is_cancelled() => return,
            SignalAction::End => cancel.cancel(),
            SignalAction::Reload => {
                access.reload();
                again.notify_one();
            }
        }
    }
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
