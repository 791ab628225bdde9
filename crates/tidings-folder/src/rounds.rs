//! The one task of a folder: hears of changes, looks, brings the shelf up to date, and reports.

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
use crate::stock::Touched;
use crate::watch::{Heard, POLL};
use crate::workshop::Workshop;
use crate::{Inner, Problem, Report, Setting, register};

/// A save in several steps may be wrong in between: what is wrong is told when nothing moved for
/// this long.
const REPORT_AFTER: Duration = Duration::from_millis(150);
/// But what never rests is told of after this long all the same.
const REPORT_AT_MOST: Duration = Duration::from_secs(1);
/// How many names a report holds; a checkout of more is told of by its beginning.
const REPORT_NAMES: usize = 1000;
/// A command that decides over a tool is not asked again sooner, whatever changes: it may itself be
/// what changes the files it names.
const CHECK_APART: Duration = Duration::from_secs(1);
/// How often a name that another source has is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(2);
/// How long a command that decides over a tool may take.
const CHECK_LIMIT: Duration = Duration::from_secs(5);
const CHECK_OUTPUT: usize = 64 * 1024;
/// A time that does not come.
const FAR: Duration = Duration::from_hours(365 * 24);

/// What a program that was run said.
enum Said {
    Check(String, Result<bool, String>),
    Register(PathBuf, Result<String, Problem>),
}

/// The rounds of one folder.
pub(crate) struct Rounds {
    inner: Arc<Inner>,
    running: JoinSet<Said>,
    /// Tools whose command is being asked.
    asking: BTreeSet<String>,
    /// What each tool's command was when it was last asked, and when.
    asked: BTreeMap<String, (Check, Instant)>,
    /// Changes of what is offered that wait for the tree to come to rest.
    motion: Motion,
    registering: bool,
    /// The registration that was run, or not trusted, last.
    register_file: Option<PathBuf>,
    /// When each tool's command is asked again.
    checks_at: BTreeMap<String, Instant>,
    register_at: Option<Instant>,
    providers_at: Instant,
    /// When something is told, and when it is told at the latest.
    report_at: Option<(Instant, Instant)>,
    /// When names that another source has are tried again, if there are any.
    retry_at: Option<Instant>,
    report: Report,
    /// What was told to be wrong.
    told: BTreeSet<Problem>,
}

impl Rounds {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
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
            told: BTreeSet::new(),
        }
    }

    /// Before anything is offered: asks every program that decides what is.
    pub(crate) async fn first(mut self) {
        self.begin_register();
        self.hear_all().await;
        self.check(&BTreeSet::new());
        self.hear_all().await;
    }

    async fn hear_all(&mut self) {
        while let Some(said) = self.running.join_next().await {
            if let Ok(said) = said {
                self.take(said);
            }
        }
    }

    /// Until the token is cancelled.
    pub(crate) async fn run(mut self, shelf: Shelf, cancel: CancellationToken) {
        let begun = Instant::now();
        for (name, check) in self.inner.bench().stock.checks() {
            self.checks_at.insert(name.clone(), begun + check.every);
            self.asked.insert(name, (check, begun));
        }
        if let Some(every) = self.inner.config.register {
            self.register_at = Some(begun + every);
        }
        self.report_at = Some((begun, begun));
        let inner = self.inner.clone();
        loop {
            if self.retry_at.is_none() && inner.bench().is_refused() {
                self.retry_at = Some(Instant::now() + RETRY_EVERY);
            }
            let next = self.next_time();
            tokio::select! {
                () = cancel.cancelled() => break,
                heard = inner.watch.heard() => self.look(&shelf, heard).await,
                Some(said) = self.running.join_next() => self.hear(&shelf, said).await,
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
            for scheme in self.inner.bench().schemes() {
                let Ok(()) = shelf.changed(Change::below(format!("{scheme}:")));
            }
        }
        if let Some(touched) = self.motion.take(now, self.inner.watch.is_silent()) {
            self.apply(shelf, touched).await;
        }
        if self.report_at.is_some_and(|(at, _)| at <= now) {
            self.tell();
        }
        let due: Vec<_> = self.checks_at.iter().filter(|(_, at)| **at <= now).collect();
        for name in due.into_iter().map(|(name, _)| name.clone()).collect::<Vec<_>>() {
            self.ask(name);
        }
        let mut touched = Touched::default();
        if self.register_at.is_some_and(|at| at <= now) {
            touched = self.begin_register();
        }
        let retries = self.retry_at.take_if(|at| *at <= now).is_some();
        if retries || !touched.keys.is_empty() {
            self.apply(shelf, touched).await;
        }
    }

    /// Looks at what was heard of.
    async fn look(&mut self, shelf: &Shelf, heard: Heard) {
        let (inner, shelf) = (self.inner.clone(), shelf.clone());
        let look = move || {
            let mut touched = if heard.everything {
                inner.look_at_everything()
            } else {
                inner.look_at(&heard.paths)
            };
            touched.complete = heard.complete;
            let mut report = Report::default();
            let mut bench = inner.bench();
            let moved = bench.take_moved(&mut touched);
            bench.apply(&shelf, &touched, &mut report);
            let unaddressed = bench.unaddressed(&touched);
            let failed = inner.watch.failed().map(|reason| blind(&reason));
            bench.stock.complain("watch".as_ref(), failed);
            drop(bench);
            (touched, report, moved, unaddressed, shelf)
        };
        let looked = tokio::task::spawn_blocking(look).await;
        let Ok((touched, report, moved, unaddressed, shelf)) = looked else { return };
        self.merge(report);
        let now = Instant::now();
        self.motion.moved(now);
        if !moved.is_empty() {
            self.motion.note(moved, unaddressed, now);
        }
        // What the operator settles holds at once.
        if touched.files.iter().any(|file| file.starts_with("server.d")) {
            let waiting = self.motion.take_all();
            self.apply(&shelf, waiting).await;
        }
        self.check(&touched.files);
        let is_register = |path: &PathBuf| {
            path.parent() == Some("server.d".as_ref())
                && path.file_stem().is_some_and(|stem| stem == "register")
        };
        if touched.files.iter().any(is_register) {
            let touched = self.begin_register();
            self.apply(&shelf, touched).await;
        }
    }

    /// Takes what a program said.
    async fn hear(&mut self, shelf: &Shelf, said: Result<Said, tokio::task::JoinError>) {
        let Ok(said) = said else { return };
        let touched = self.take(said);
        self.apply(shelf, touched).await;
    }

    /// Brings the shelf up to date on a thread that may wait.
    async fn apply(&mut self, shelf: &Shelf, touched: Touched) {
        let (inner, shelf) = (self.inner.clone(), shelf.clone());
        let apply = move || {
            let mut report = Report::default();
            inner.bench().apply(&shelf, &touched, &mut report);
            report
        };
        if let Ok(report) = tokio::task::spawn_blocking(apply).await
            && !report.is_empty()
        {
            self.merge(report);
        }
    }

    fn take(&mut self, said: Said) -> Touched {
        let inner = self.inner.clone();
        let mut bench = inner.bench();
        match said {
            Said::Check(name, outcome) => {
                self.asking.remove(&name);
                let Some(check) = bench.stock.checks().remove(&name) else {
                    return Touched::default();
                };
                self.checks_at.insert(name.clone(), Instant::now() + check.every);
                let problem = outcome.as_ref().err().map(|reason| {
                    let reason = format!("the command that decides over `{name}` failed: {reason}");
                    let advice = "correct `enabled` of the tool; it is not offered";
                    Problem::error("tools", reason, advice)
                });
                bench.stock.complain(&complaint(&name), problem);
                let touched = bench.stock.judge(&name, outcome.unwrap_or(false));
                drop(bench);
                // It may have become another while it was asked.
                self.check(&BTreeSet::new());
                self.report_soon();
                touched
            }
            Said::Register(file, outcome) => {
                self.registering = false;
                self.register_at = inner.config.register.map(|every| Instant::now() + every);
                let (printed, problem) = match outcome {
                    Ok(text) => (Some(text), None),
                    Err(problem) => (None, Some(problem)),
                };
                bench.stock.complain(&file, problem);
                drop(bench);
                self.report_soon();
                match printed {
                    Some(text) => inner.bench().stock.print(Some((file, text))),
                    // What it said before holds.
                    None => Touched::default(),
                }
            }
        }
    }

    /// Asks the commands that are new, others, or name a file that changed; forgets those that are
    /// gone.
    fn check(&mut self, changed: &BTreeSet<PathBuf>) {
        let checks = self.inner.bench().stock.checks();
        let gone: Vec<_> =
            self.asked.keys().filter(|name| !checks.contains_key(*name)).cloned().collect();
        for name in gone {
            self.asked.remove(&name);
            self.checks_at.remove(&name);
            let mut bench = self.inner.bench();
            bench.stock.forget(&name);
            bench.stock.complain(&complaint(&name), None);
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

    /// Asks the command of a tool, unless it is being asked.
    fn ask(&mut self, name: String) {
        let now = Instant::now();
        let Some(check) = self.inner.bench().stock.checks().remove(&name) else {
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
            Said::Check(name, outcome)
        });
    }

    /// Runs the registration that is a program, unless it is running or must not be.
    fn begin_register(&mut self) -> Touched {
        self.register_at = self.inner.config.register.map(|every| Instant::now() + every);
        if self.registering {
            return Touched::default();
        }
        let mut bench = self.inner.bench();
        let file = register::executable(&bench.stock);
        if let Some(before) = std::mem::replace(&mut self.register_file, file.clone())
            && Some(&before) != file.as_ref()
        {
            bench.stock.complain(&before, None);
        }
        if self.register_at.is_none() {
            if let Some(file) = file {
                bench.stock.complain(&file, Some(register::unasked(&file)));
            }
            return Touched::default();
        }
        let Some(file) = file else { return bench.stock.print(None) };
        if let Some(problem) = register::distrust(&self.inner.root, &file) {
            bench.stock.complain(&file, Some(problem));
            return bench.stock.print(None);
        }
        drop(bench);
        self.registering = true;
        let workshop = self.inner.workshop();
        self.running.spawn(async move {
            let printed = register::print(&workshop, &file).await;
            Said::Register(file, printed)
        });
        Touched::default()
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

    /// Something is told when it has settled, or at the latest some time after it began.
    fn report_soon(&mut self) {
        let now = Instant::now();
        let latest = self.report_at.map_or(now + REPORT_AT_MOST, |(_, latest)| latest);
        self.report_at = Some(((now + REPORT_AFTER).min(latest), latest));
    }

    /// Tells what happened since the last time, now that it has settled.
    fn tell(&mut self) {
        self.report_at = None;
        let wrong = self.inner.bench().stock.problems();
        let mut report = std::mem::take(&mut self.report);
        report.problems = wrong.difference(&self.told).cloned().collect();
        report.mended = self.told.difference(&wrong).cloned().collect();
        self.told = wrong;
        match &self.inner.config.reports {
            // Whoever reads them slowly misses some, and delays nobody.
            Some(reports) if !report.is_empty() => drop(reports.try_send(report)),
            Some(_) => {}
            None => {
                for problem in &report.problems {
                    tracing::warn!(%problem, "something is wrong in the folder");
                }
            }
        }
    }
}

/// Whether a command says yes.
async fn decide(check: Check, workshop: &Workshop) -> Result<bool, String> {
    // A folder of many tools does not start them all at once.
    let turn = workshop.queue.enter("checks").await;
    let _permit = turn.map_err(|full| full.to_string())?;
    let mut words = check.command.into_iter();
    let Some(program) = words.next() else { return Ok(false) };
    // A name alone is looked for beside the tool first, then along the path.
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

/// Under which name it is kept what is wrong with the command of a tool.
fn complaint(tool: &str) -> PathBuf {
    PathBuf::from(format!("tools/{tool}#enabled"))
}

fn blind(reason: &str) -> Problem {
    let reason = format!(
        "the system does not tell of every change ({reason}); the folder is looked at every {} s",
        POLL.as_secs()
    );
    let advice = "allow more watches (`sysctl fs.inotify.max_user_watches`), or have it polled";
    Problem::warning("", reason, advice).for_want_of(Setting::Poll)
}
