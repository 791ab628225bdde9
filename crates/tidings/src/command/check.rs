//! `tidings check`: judges how a server keeps its clients current.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use tidings_folder::Folder;
use tidings_mirror::{Era, Protocol};
use tidings_server::{Hub, stdio};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args;
use crate::args::duration;
use crate::check::cause::{Act, Cause, Restart};
use crate::check::client::{Meter, Probe};
use crate::check::door::{Door, Pipes, Site};
use crate::check::edits::{Edits, WATCHED};
use crate::check::output::baseline::Baseline;
use crate::check::output::{Judged, files, text};
use crate::check::topic::{Topic, list};
use crate::check::verdict::Trace;
use crate::check::{self, Settings};
use crate::folder::existing;
use crate::folder::inside::{self, Register};
use crate::present::Output;
use crate::present::text::harmless;
use crate::report::Usage;
use crate::session::{self, Interrupted, Stop};
use crate::target;

/// Time to wait for an answer.
const ANSWER: Duration = Duration::from_secs(10);
/// Quiet between two steps, at least; for slow servers it grows with their latency.
const SETTLE: Duration = Duration::from_millis(150);
/// Changes whose latency is measured, in each era.
const ROUNDS: usize = 4;
/// Changes while a client does not read, at most.
const FLOOD: usize = 1500;
/// Bytes between the two ends of a pipe in memory.
const PIPE: usize = 64 << 10;

pub(crate) async fn run(args: &args::CheckServer) -> Result<()> {
    only_possible(args)?;
    let baseline = match &args.reports.baseline {
        Some(file) => Baseline::read(file)?,
        None => Baseline::default(),
    };
    let settings = settings(args)?;
    let mut stop = Stop::new()?;
    tokio::select! {
        result = judge(args, settings, &baseline) => result,
        () = stop.wait() => Err(Interrupted.into()),
    }
}

async fn judge(
    args: &args::CheckServer,
    mut settings: Settings,
    baseline: &Baseline,
) -> Result<()> {
    let output = Output::new(args.connection.json);
    let mut served = None;
    let place = if let Some(folder) = &args.folder {
        if let Some(word) = args.words.first().or(args.connection.command.first()) {
            return Err(Usage::new(format!("`{word}` was not expected"))
                .hint("`--folder` is the server, so there is no TARGET")
                .into());
        }
        let (place, edits, hub) = serve(folder).await?;
        served = Some(hub);
        settings.cause = Some(Cause::new(Act::Edit(edits), None));
        place
    } else {
        let place = args.connection.only_place(&args.words)?;
        let target = target::resolve(&place, &args.connection)?;
        Site::new(target).await.map_err(Usage::new)?
    };
    let time = args.bounds.max_time + args.bounds.long.unwrap_or_default();
    let door = Door {
        place,
        meter: Arc::new(Meter::new(args.bounds.max_requests, time)),
        trace: Trace::new(),
        timeout: args.connection.timeout.unwrap_or(ANSWER),
    };
    if args.folder.is_some() {
        settings.expects = edited(&door).await?;
    }
    let report = check::run(&door, &settings, &progress()).await;
    clear();
    if let Some(hub) = served {
        hub.shutdown().await;
    }
    let report = match report {
        Ok(report) => report,
        Err(why) => return Err(unreachable(args, &why).await),
    };
    let judged = Judged { report: &report, baseline, strict: args.reports.strict };
    write(args, &judged, &output)?;
    let never_worked = settings.cause.as_ref().and_then(Cause::never_worked);
    if let Some(why) = never_worked.filter(|_| !report.is_cut_short) {
        let failed = format!("no change could be made: {}", harmless(&why));
        let hint = "`tidings tools` lists the tools and what they take";
        return Err(Usage::new(failed).hint(hint).into());
    }
    match judged.failure() {
        Some(failure) => Err(anyhow!("the check failed: {failure}")),
        None => Ok(()),
    }
}

fn settings(args: &args::CheckServer) -> Result<Settings> {
    let causes = &args.causes;
    let call = |text: &String| Act::call(text).map_err(Usage::new);
    let change = match (&causes.change, &causes.exec) {
        (Some(text), _) => Some(call(text)?),
        (None, Some(command)) => Some(Act::Exec(command.clone())),
        (None, None) if causes.auto => Some(Act::Auto),
        (None, None) => None,
    };
    let undo = match (&causes.undo, &causes.undo_exec) {
        (Some(text), _) => Some(call(text)?),
        (None, Some(command)) => Some(Act::Exec(command.clone())),
        (None, None) => None,
    };
    let restart = match &causes.restart_exec {
        Some(command) => Some(Restart::Exec(command.clone())),
        None => causes.restart.then_some(Restart::Program),
    };
    let other_token = match &causes.other_token {
        Some(file) => {
            let read = std::fs::read_to_string(file);
            let failed = || Usage::new(format!("cannot read `{}`", file.display()));
            Some(read.with_context(failed)?.trim().to_owned())
        }
        None => None,
    };
    let eras = match &args.connection.protocol {
        Protocol::Auto => vec![Era::Legacy, Era::Modern],
        Protocol::Legacy => vec![Era::Legacy],
        Protocol::Version(version) if version.has_initialize() => vec![Era::Legacy],
        _ => vec![Era::Modern],
    };
    Ok(Settings {
        eras,
        within: args.bounds.within,
        settle: SETTLE,
        quiet: args.bounds.listen,
        rounds: ROUNDS,
        flood: FLOOD,
        idle: args.bounds.long,
        cause: change.map(|change| Cause::new(change, undo)),
        expects: causes.expects.clone(),
        restart,
        other_token,
    })
}

/// Refuses what would fail after the run.
fn only_possible(args: &args::CheckServer) -> Result<()> {
    let is_time = |word: &&String| args.bounds.long.is_some() && duration(word).is_ok();
    if let Some(time) = args.words.iter().find(is_time) {
        let hint = format!("write `--long={time}` to leave a subscriber idle for that time");
        return Err(Usage::new(format!("`{time}` was not expected")).hint(hint).into());
    }
    for file in [&args.reports.junit, &args.reports.report].into_iter().flatten() {
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        if file.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
            let why = if file.is_dir() { "it is a folder" } else { "its folder does not exist" };
            return Err(Usage::new(format!("cannot write `{}`: {why}", file.display())).into());
        }
    }
    Ok(())
}

/// Why the server cannot be checked, as every other command says it.
async fn unreachable(args: &args::CheckServer, why: &str) -> anyhow::Error {
    let refused = || Usage::new("the server could not be checked");
    if let Ok(place) = args.connection.only_place(&args.words)
        && args.folder.is_none()
        && let Err(error) = session::once(&args.connection, place, &[], async |_| Ok(())).await
    {
        return if error.is::<Interrupted>() { error } else { error.context(refused()) };
    }
    anyhow!(harmless(why)).context(refused())
}

/// Serves a copy of a folder in memory.
async fn serve(folder: &Path) -> Result<(Site, Edits, Hub)> {
    let edits = Edits::copy_of(&existing(folder)?)?;
    let config = inside::config(&edits.root(), &[], Register::Refused);
    let opened = Folder::open(config).await;
    let opened = opened.with_context(|| format!("reading `{}`", folder.display()))?;
    let hub = Hub::new("tidings", env!("CARGO_PKG_VERSION"));
    hub.add("folder", |shelf| Ok(opened.on(shelf))).await.context("serving the folder")?;
    Ok((Site::Pipes(pipes(hub.clone())), edits, hub))
}

/// Pipes to a hub. Each serves until its client closes it.
fn pipes(hub: Hub) -> Pipes {
    let tasks = std::sync::Mutex::new(JoinSet::new());
    Arc::new(move || {
        let (near, far) = tokio::io::duplex(PIPE);
        let (input, output) = tokio::io::split(near);
        let (far_input, far_output) = tokio::io::split(far);
        let hub = hub.clone();
        let mut tasks = tasks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        tasks.spawn(async move {
            let cancel = CancellationToken::new();
            if let Err(error) = stdio::serve(&hub, far_input, far_output, cancel).await {
                tracing::warn!(%error, "serving the folder failed");
            }
        });
        (Box::new(input), Box::new(output))
    })
}

/// What edits of a folder move.
async fn edited(door: &Door) -> Result<Vec<Topic>> {
    let reading = |why: String| anyhow!(why).context("reading the folder");
    let connected = Probe::connect(door, Era::Legacy, serde_json::json!({})).await;
    let client = connected.map_err(reading)?;
    let listed = list(&client, &Topic::Resources).await;
    client.end().await;
    let listed = listed.map_err(|reply| reading(reply.to_string()))?;
    let uri = listed.keys(&Topic::Resources).into_iter().find(|uri| uri.ends_with(WATCHED));
    let uri = uri.ok_or_else(|| reading(format!("`resources/{WATCHED}` is not served")))?;
    Ok(vec![Topic::Uri(uri), Topic::Tools, Topic::Prompts, Topic::Resources])
}

/// Shows what is being done, if a person watches.
fn progress() -> impl Fn(&str) {
    let shows = std::io::stderr().is_terminal();
    move |what| {
        if shows {
            drop(write!(std::io::stderr(), "\r\u{1b}[K{what} …"));
        }
    }
}

fn clear() {
    if std::io::stderr().is_terminal() {
        drop(write!(std::io::stderr(), "\r\u{1b}[K"));
    }
}

fn write(args: &args::CheckServer, judged: &Judged<'_>, output: &Output) -> Result<()> {
    if output.json {
        for line in judged.json() {
            output.object(&line)?;
        }
    } else {
        output.raw(&text::report(judged, output))?;
    }
    if std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| !value.is_empty() && value != "false")
    {
        let lines = files::annotations(judged);
        if output.json { output.remark(lines.trim_end()) } else { output.raw(&harmless(&lines))? }
    }
    let save = |file: &Path, text: String| {
        let failed = || Usage::new(format!("cannot write `{}`", file.display()));
        std::fs::write(file, text).with_context(failed)
    };
    if let Some(file) = &args.reports.junit {
        save(file, files::junit(judged))?;
    }
    if let Some(file) = &args.reports.report {
        save(file, files::markdown(judged))?;
    }
    Ok(())
}
