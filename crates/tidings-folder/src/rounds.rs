//! The one task of a folder: wait for changes, rescan, publish and report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidings_server::{Change, Shelf};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::motion::Motion;
use crate::offer::{Check, Patience, Program};
use crate::script::{self, Ending};
use crate::stock::Affected;
use crate::watch::{ChangedPaths, POLL};
use crate::workshop::Workshop;
use crate::{FolderInner, Problem, Report, Setting, register};

/// Problems are reported after this much quiet, because a save in several steps may be wrong in
/// between.
const REPORT_AFTER: Duration = Duration::from_millis(150);
/// Without quiet, problems are reported after this long.
const REPORT_AT_MOST: Duration = Duration::from_secs(1);
/// How many names a report holds; the rest of a large checkout is left out.
const REPORT_NAMES: usize = 1000;
/// The least time between two runs of a check: the command may itself change the files it names.
const CHECK_APART: Duration = Duration::from_secs(1);
/// How often to retry a name that another source has taken.
const RETRY_EVERY: Duration = Duration::from_secs(2);
/// Time limit of a check.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
const CHECK_OUTPUT: usize = 64 * 1024;
/// Practically never.
const FAR: Duration = Duration::from_hours(365 * 24);

/// The result of a program.
enum ProgramResult {
    Check(String, Result<bool, String>),
    Register(PathBuf, Result<String, Problem>),
}

/// The state of the task.
pub(crate) struct Rounds {
    inner: Arc<FolderInner>,
    running: JoinSet<ProgramResult>,
    /// Tools whose check is running.
    asking: BTreeSet<String>,
    /// Each tool's check as it was last run, and when.
    asked: BTreeMap<String, (Check, Instant)>,
    /// Changed offers that wait for the tree to come to rest.
    motion: Motion,
    registering: bool,
    /// The registration that was last run or refused.
    register_file: Option<PathBuf>,
    /// When each tool's check runs again.
    checks_at: BTreeMap<String, Instant>,
    register_at: Option<Instant>,
    providers_at: Instant,
    /// When to send the next report, and the latest time for it.
    report_at: Option<(Instant, Instant)>,
    /// When to retry names that another source has taken, if there are any.
    retry_at: Option<Instant>,
    report: Report,
    /// The problems of the last report.
    reported: BTreeSet<Problem>,
}

impl Rounds {
    pub(crate) fn new(inner: Arc<FolderInner>) -> Self {
        let now = Instant::now();
        Self {
            providers_at: now + inner.config.providers_every,
            register_at: inner.config.register.map(|_| now),
            motion: Motion::new(inner.config.quiet, inner.config.max_wait),
            inner,
            running: JoinSet::new(),
            asking: BTreeSet::new(),
            asked: BTreeMap::new(),
            registering: false,
            register_file: None,
            checks_at: BTreeMap::new(),
            report_at: None,
            retry_at: None,
            report: Report::default(),
            reported: BTreeSet::new(),
        }
    }

    /// Runs every program that decides what is offered, before anything is.
    pub(crate) async fn first(mut self) {
        self.begin_register();
        self.handle_all_results().await;
        self.check(&BTreeSet::new());
        self.handle_all_results().await;
    }

    async fn handle_all_results(&mut self) {
        while let Some(result) = self.running.join_next().await {
            if let Ok(result) = result {
                self.take_result(result);
            }
        }
    }

    /// Runs until the token is cancelled.
    pub(crate) async fn run(mut self, shelf: Shelf, cancel: CancellationToken) {
        let begun = Instant::now();
        for (name, check) in self.inner.publisher().stock.checks() {
            self.checks_at.insert(name.clone(), begun + check.every);
            self.asked.insert(name, (check, begun));
        }
        if let Some(every) = self.inner.config.register {
            self.register_at = Some(begun + every);
        }
        self.report_at = Some((begun, begun));
        let inner = self.inner.clone();
        loop {
            if self.retry_at.is_none() && inner.publisher().is_refused() {
                self.retry_at = Some(Instant::now() + RETRY_EVERY);
            }
            let next = self.next_time();
            tokio::select! {
                () = cancel.cancelled() => break,
                changes = inner.watch.changes() => self.handle_changes(&shelf, changes).await,
                Some(result) = self.running.join_next() => self.handle_result(&shelf, result).await,
                () = sleep_until(next) => self.on_time(&shelf).await,
            }
        }
        self.running.shutdown().await;
    }

    fn next_time(&self) -> Instant {
        let times = self.checks_at.values().copied();
        let times = times.chain(self.register_at).chain(self.retry_at).chain(self.motion.due());
        let times = times.chain(self.report_at.map(|(at, _)| at)).chain([self.providers_at]);
        times.min().unwrap_or_else(|| Instant::now() + FAR)
    }

    async fn on_time(&mut self, shelf: &Shelf) {
        let now = Instant::now();
        if self.providers_at <= now {
            self.providers_at = now + self.inner.config.providers_every;
            for scheme in self.inner.publisher().schemes() {
                let Ok(()) = shelf.changed(Change::below(format!("{scheme}:")));
            }
        }
        if let Some(affected) = self.motion.take(now, self.inner.watch.is_silent()) {
            self.publish(shelf, affected).await;
        }
        if self.report_at.is_some_and(|(at, _)| at <= now) {
            self.send_report();
        }
        let due: Vec<_> = self.checks_at.iter().filter(|(_, at)| **at <= now).collect();
        for name in due.into_iter().map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.ask(name);
        }
        let mut affected = Affected::default();
        if self.register_at.is_some_and(|at| at <= now) {
            affected = self.begin_register();
        }
        let retries = self.retry_at.take_if(|at| *at <= now).is_some();
        if retries || !affected.keys.is_empty() {
            self.publish(shelf, affected).await;
        }
    }

    /// Rescans the changed paths, and publishes what does not have to wait.
    async fn handle_changes(&mut self, shelf: &Shelf, changes: ChangedPaths) {
        let (inner, shelf) = (self.inner.clone(), shelf.clone());
        let rescan = move || {
            let mut affected = if changes.everything {
                inner.update_whole_stock()
            } else {
                inner.update_stock(&changes.paths)
            };
            affected.complete = changes.complete;
            let mut report = Report::default();
            let mut publisher = inner.publisher();
            let moved = publisher.take_moved(&mut affected);
            publisher.update_shelf(&shelf, &affected, &mut report);
            let unaddressed = publisher.unaddressed(&affected);
            let failed = inner.watch.failed().map(|reason| blind(&reason));
            publisher.stock.set_problem("watch".as_ref(), failed);
            drop(publisher);
            (affected, report, moved, unaddressed, shelf)
        };
        let scanned = tokio::task::spawn_blocking(rescan).await;
        let Ok((affected, report, moved, unaddressed, shelf)) = scanned else { return };
        self.merge(report);
        let now = Instant::now();
        self.motion.moved(now);
        if !moved.is_empty() {
            self.motion.note(moved, unaddressed, now);
        }
        // Changes of the operator's settings apply at once.
        if affected.files.iter().any(|file| file.starts_with("server.d")) {
            let waiting = self.motion.take_all();
            self.publish(&shelf, waiting).await;
        }
        self.check(&affected.files);
        let is_register = |path: &PathBuf| {
            path.parent() == Some("server.d".as_ref())
                && path.file_stem().is_some_and(|stem| stem == "register")
        };
        if affected.files.iter().any(is_register) {
            let affected = self.begin_register();
            self.publish(&shelf, affected).await;
        }
    }

    /// Handles the result of a program.
    async fn handle_result(
        &mut self,
        shelf: &Shelf,
        result: Result<ProgramResult, tokio::task::JoinError>,
    ) {
        let Ok(result) = result else { return };
        let affected = self.take_result(result);
        self.publish(shelf, affected).await;
    }

    /// Updates the shelf on a thread that may block.
    async fn publish(&mut self, shelf: &Shelf, affected: Affected) {
        let (inner, shelf) = (self.inner.clone(), shelf.clone());
        let update = move || {
            let mut report = Report::default();
            inner.publisher().update_shelf(&shelf, &affected, &mut report);
            report
        };
        if let Ok(report) = tokio::task::spawn_blocking(update).await
            && !report.is_empty()
        {
            self.merge(report);
        }
    }

    fn take_result(&mut self, result: ProgramResult) -> Affected {
        let inner = self.inner.clone();
        let mut publisher = inner.publisher();
        match result {
            ProgramResult::Check(name, outcome) => {
                self.asking.remove(&name);
                let Some(check) = publisher.stock.checks().remove(&name) else {
                    return Affected::default();
                };
                self.checks_at.insert(name.clone(), Instant::now() + check.every);
                let problem = outcome.as_ref().err().map(|reason| {
                    let reason = format!("the check of `{name}` failed: {reason}");
                    let advice = "correct `enabled` of the tool; it is not offered";
                    Problem::error("tools", reason, advice)
                });
                publisher.stock.set_problem(&check_problem(&name), problem);
                let affected = publisher.stock.judge(&name, outcome.unwrap_or(false));
                drop(publisher);
                // The check may have changed while it ran.
                self.check(&BTreeSet::new());
                self.report_soon();
                affected
            }
            ProgramResult::Register(file, outcome) => {
                self.registering = false;
                self.register_at = inner.config.register.map(|every| Instant::now() + every);
                let (printed, problem) = match outcome {
                    Ok(text) => (Some(text), None),
                    Err(problem) => (None, Some(problem)),
                };
                publisher.stock.set_problem(&file, problem);
                drop(publisher);
                self.report_soon();
                match printed {
                    Some(text) => inner.publisher().stock.print(Some((file, text))),
                    // The last valid registration stays in use.
                    None => Affected::default(),
                }
            }
        }
    }

    /// Runs checks that are new, different, or name a changed file. Forgets those of removed tools.
    fn check(&mut self, changed: &BTreeSet<PathBuf>) {
        let checks = self.inner.publisher().stock.checks();
        let gone: Vec<_> =
            self.asked.keys().filter(|name| !checks.contains_key(*name)).cloned().collect();
        for name in gone {
            self.asked.remove(&name);
            self.checks_at.remove(&name);
            let mut publisher = self.inner.publisher();
            publisher.stock.forget(&name);
            publisher.stock.set_problem(&check_problem(&name), None);
        }
        let now = Instant::now();
        for (name, check) in checks {
            let due = match self.asked.get(&name) {
                Some((asked, at)) if *asked == check => {
                    if check.files.is_disjoint(changed) {
                        continue;
                    }
                    *at + CHECK_APART
                }
                _ => now,
            };
            if due <= now {
                self.ask(name);
            } else {
                let at = self.checks_at.entry(name).or_insert(due);
                *at = due.min(*at);
            }
        }
    }

    /// Runs the check of a tool, unless it is running.
    fn ask(&mut self, name: String) {
        let now = Instant::now();
        let Some(check) = self.inner.publisher().stock.checks().remove(&name) else {
            self.checks_at.remove(&name);
            return;
        };
        if !self.asking.insert(name.clone()) {
            self.checks_at.insert(name, now + CHECK_APART);
            return;
        }
        self.checks_at.insert(name.clone(), now + FAR);
        self.asked.insert(name.clone(), (check.clone(), now));
        let workshop = self.inner.workshop();
        self.running.spawn(async move {
            let outcome = decide(check, &workshop).await;
            ProgramResult::Check(name, outcome)
        });
    }

    /// Runs the registration, unless it is running or may not be run.
    fn begin_register(&mut self) -> Affected {
        self.register_at = self.inner.config.register.map(|every| Instant::now() + every);
        if self.registering {
            return Affected::default();
        }
        let mut publisher = self.inner.publisher();
        let file = register::executable(&publisher.stock);
        if let Some(before) = std::mem::replace(&mut self.register_file, file.clone())
            && Some(&before) != file.as_ref()
        {
            publisher.stock.set_problem(&before, None);
        }
        if self.register_at.is_none() {
            if let Some(file) = file {
                publisher.stock.set_problem(&file, Some(register::unasked(&file)));
            }
            return Affected::default();
        }
        let Some(file) = file else { return publisher.stock.print(None) };
        if let Some(problem) = register::distrust(&self.inner.root, &file) {
            publisher.stock.set_problem(&file, Some(problem));
            return publisher.stock.print(None);
        }
        drop(publisher);
        self.registering = true;
        let workshop = self.inner.workshop();
        self.running.spawn(async move {
            let printed = register::print(&workshop, &file).await;
            ProgramResult::Register(file, printed)
        });
        Affected::default()
    }

    fn merge(&mut self, report: Report) {
        let lists = [
            (&mut self.report.added, report.added),
            (&mut self.report.changed, report.changed),
            (&mut self.report.removed, report.removed),
        ];
        for (kept, more) in lists {
            let room = REPORT_NAMES.saturating_sub(kept.len());
            kept.extend(more.into_iter().take(room));
        }
        self.report_soon();
    }

    /// Schedules a report for when the folder is quiet, or some time after the first change.
    fn report_soon(&mut self) {
        let now = Instant::now();
        let latest = self.report_at.map_or(now + REPORT_AT_MOST, |(_, latest)| latest);
        self.report_at = Some(((now + REPORT_AFTER).min(latest), latest));
    }

    /// Sends or logs what changed since the last report.
    fn send_report(&mut self) {
        self.report_at = None;
        let wrong = self.inner.publisher().stock.problems();
        let mut report = std::mem::take(&mut self.report);
        report.problems = wrong.difference(&self.reported).cloned().collect();
        report.mended = self.reported.difference(&wrong).cloned().collect();
        self.reported = wrong;
        match &self.inner.config.reports {
            // A slow reader misses reports and delays nobody.
            Some(reports) if !report.is_empty() => drop(reports.try_send(report)),
            Some(_) => {}
            None => {
                for problem in &report.problems {
                    tracing::warn!(%problem, "problem in the folder");
                }
            }
        }
    }
}

/// Whether a check succeeds.
async fn decide(check: Check, workshop: &Workshop) -> Result<bool, String> {
    // In turns, so that a folder with many tools does not start all checks at once.
    let turn = workshop.queue.enter("checks").await;
    let _permit = turn.map_err(|full| full.to_string())?;
    let mut words = check.command.into_iter();
    let Some(program) = words.next() else { return Ok(false) };
    // A plain name is searched beside the tool first, then in `PATH`.
    let beside = check.directory.join(&program);
    let path = if beside.is_file() {
        beside
    } else {
        workshop.along_path(&program).unwrap_or_else(|| program.into())
    };
    let program = Program { path, interpreter: Vec::new() };
    let mut job = workshop.job(&program, &check.directory, Patience::fixed(CHECK_LIMIT));
    job.arguments = words.collect();
    job.output_limit = CHECK_OUTPUT;
    match script::run(job, |_| std::future::ready(())).await {
        Ok(run) => match run.ending {
            Ending::Code(code) => Ok(code == 0),
            Ending::Signal(signal) => Err(format!("it was ended by signal {signal}")),
            Ending::TimedOut(_) => Err(format!("it took longer than {} s", CHECK_LIMIT.as_secs())),
            Ending::TooMuchOutput => Err("it printed too much".to_owned()),
        },
        Err(error) => Err(error.to_string()),
    }
}

/// The key under which the problem of a tool's check is stored.
fn check_problem(tool: &str) -> PathBuf {
    PathBuf::from(format!("tools/{tool}#enabled"))
}

fn blind(reason: &str) -> Problem {
    let reason = format!(
        "the system does not report every change ({reason}); the folder is rescanned every {} s",
        POLL.as_secs()
    );
    let advice = "allow more watches (`sysctl fs.inotify.max_user_watches`), or have it polled";
    Problem::warning("", reason, advice).for_want_of(Setting::Poll)
}
