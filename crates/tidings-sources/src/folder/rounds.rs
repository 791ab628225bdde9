//! The one task of a folder: hears of changes, looks, brings the shelf up to date, and reports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidings_server::Shelf;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::folder::offer::{Check, Kind, Patience, Program};
use crate::folder::script::{self, Ending};
use crate::folder::stock::Touched;
use crate::folder::watch::{Heard, POLL};
use crate::folder::workshop::Workshop;
use crate::folder::{Inner, Problem, Report, register};

/// A save in several steps may be wrong in between: what is wrong is told when nothing moved for
/// this long.
const REPORT_AFTER: Duration = Duration::from_millis(150);
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
    /// Tools whose command is being asked, and whether it is to be asked once more.
    asking: BTreeMap<String, bool>,
    registering: bool,
    /// When each tool's command is asked again.
    checks_at: BTreeMap<String, Instant>,
    register_at: Option<Instant>,
    providers_at: Instant,
    report_at: Option<Instant>,
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
            inner,
            running: JoinSet::new(),
            asking: BTreeMap::new(),
            registering: false,
            checks_at: BTreeMap::new(),
            report_at: None,
            report: Report::default(),
            told: BTreeSet::new(),
        }
    }

    /// Before anything is offered: asks every program that decides what is.
    pub(crate) async fn first(mut self) {
        self.begin_register();
        while let Some(said) = self.running.join_next().await {
            self.hear_first(said);
        }
        let checks = self.inner.bench().stock.checks();
        for (name, check) in checks {
            self.ask(name, check);
        }
        while let Some(said) = self.running.join_next().await {
            self.hear_first(said);
        }
    }

    fn hear_first(&mut self, said: Result<Said, tokio::task::JoinError>) {
        if let Ok(said) = said {
            let inner = self.inner.clone();
            drop(self.take(&inner, said));
        }
    }

    /// Until the token is cancelled.
    pub(crate) async fn run(mut self, shelf: Shelf, cancel: CancellationToken) {
        let begun = Instant::now();
        let checks = self.inner.bench().stock.checks();
        self.checks_at = checks.into_iter().map(|(name, it)| (name, begun + it.every)).collect();
        if let Some(every) = self.inner.config.register {
            self.register_at = Some(begun + every);
        }
        self.report_at = Some(begun);
        let inner = self.inner.clone();
        loop {
            let next = self.next_time();
            tokio::select! {
                () = cancel.cancelled() => break,
                heard = inner.watch.heard() => self.look(&shelf, heard).await,
                Some(said) = self.running.join_next() => self.hear(&shelf, said).await,
                () = sleep_until(next) => self.on_time(&shelf),
            }
        }
        self.running.shutdown().await;
    }

    fn next_time(&self) -> Instant {
        let times = self.checks_at.values().copied();
        let times = times.chain(self.register_at).chain(self.report_at).chain([self.providers_at]);
        times.min().unwrap_or_else(|| Instant::now() + FAR)
    }

    fn on_time(&mut self, shelf: &Shelf) {
        let now = Instant::now();
        if self.providers_at <= now {
            self.providers_at = now + self.inner.config.providers_every;
            for scheme in self.inner.bench().schemes() {
                shelf.notify_matching(&format!("{scheme}:*"));
            }
        }
        if self.register_at.is_some_and(|at| at <= now) {
            self.begin_register();
        }
        if self.report_at.is_some_and(|at| at <= now) {
            self.tell();
        }
        let due: BTreeSet<_> =
            self.checks_at.iter().filter(|(_, at)| **at <= now).map(|(it, _)| it.clone()).collect();
        if !due.is_empty() {
            self.check(|name| due.contains(name));
        }
    }

    /// Looks at what was heard of.
    async fn look(&mut self, shelf: &Shelf, heard: Heard) {
        let registers = heard.paths.iter().any(|path| path.starts_with("server.d"));
        let (inner, shelf) = (self.inner.clone(), shelf.clone());
        let look = move || {
            let mut touched = if heard.everything {
                inner.look_at_everything()
            } else {
                inner.look_at(&heard.paths)
            };
            touched.complete = heard.complete;
            let mut bench = inner.bench();
            let mut report = Report::default();
            bench.apply(&shelf, &touched, &mut report);
            let failed = inner.watch.failed().map(|reason| blind(&reason));
            bench.stock.complain("watch".as_ref(), failed);
            (touched, report)
        };
        let Ok((touched, report)) = tokio::task::spawn_blocking(look).await else { return };
        self.merge(report);
        let tools: BTreeSet<_> = touched
            .keys
            .into_iter()
            .filter(|(kind, _)| *kind == Kind::Tool)
            .map(|(_, name)| name)
            .collect();
        self.check(|name| tools.contains(name));
        if registers {
            self.begin_register();
        }
    }

    /// Takes what a program said.
    async fn hear(&mut self, shelf: &Shelf, said: Result<Said, tokio::task::JoinError>) {
        let Ok(said) = said else { return };
        let inner = self.inner.clone();
        let touched = self.take(&inner, said);
        let shelf = shelf.clone();
        let apply = move || {
            let mut report = Report::default();
            inner.bench().apply(&shelf, &touched, &mut report);
            report
        };
        if let Ok(report) = tokio::task::spawn_blocking(apply).await {
            self.merge(report);
        }
    }

    fn take(&mut self, inner: &Inner, said: Said) -> Touched {
        let mut bench = inner.bench();
        match said {
            Said::Check(name, outcome) => {
                let again = self.asking.remove(&name) == Some(true);
                let Some(check) = bench.stock.checks().remove(&name) else {
                    return Touched::default();
                };
                self.checks_at.insert(name.clone(), Instant::now() + check.every);
                let about = PathBuf::from(format!("tools/{name}#enabled"));
                let problem = outcome.as_ref().err().map(|reason| {
                    let reason = format!("the command that decides over `{name}` failed: {reason}");
                    let advice = "correct `enabled` of the tool; it is not offered";
                    Problem::error("tools", reason, advice)
                });
                bench.stock.complain(&about, problem);
                let touched = bench.stock.judge(&name, outcome.unwrap_or(false));
                drop(bench);
                if again {
                    self.ask(name, check);
                }
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
                match printed {
                    Some(text) => bench.stock.print(Some((file, text))),
                    // What it said before holds.
                    None => Touched::default(),
                }
            }
        }
    }

    /// Asks the commands of some tools.
    fn check(&mut self, which: impl Fn(&str) -> bool) {
        let checks = self.inner.bench().stock.checks();
        self.checks_at.retain(|name, _| checks.contains_key(name));
        for (name, check) in checks {
            if which(&name) {
                self.checks_at.insert(name.clone(), Instant::now() + FAR);
                self.ask(name, check);
            }
        }
    }

    fn ask(&mut self, name: String, check: Check) {
        if let Some(again) = self.asking.get_mut(&name) {
            *again = true;
            return;
        }
        self.asking.insert(name.clone(), false);
        let workshop = self.inner.workshop();
        self.running.spawn(async move {
            let outcome = decide(check, &workshop).await;
            Said::Check(name, outcome)
        });
    }

    /// Runs the registration that is a program, unless it is running or must not be.
    fn begin_register(&mut self) {
        let Some(every) = self.inner.config.register else { return };
        if self.registering {
            return;
        }
        self.register_at = Some(Instant::now() + every);
        let mut bench = self.inner.bench();
        let Some(file) = register::executable(&bench.stock) else {
            bench.stock.print(None);
            return;
        };
        if let Some(problem) = register::distrust(&self.inner.root, &file) {
            bench.stock.complain(&file, Some(problem));
            return;
        }
        drop(bench);
        self.registering = true;
        let workshop = self.inner.workshop();
        self.running.spawn(async move {
            let printed = register::print(&workshop, &file).await;
            Said::Register(file, printed)
        });
    }

    fn merge(&mut self, report: Report) {
        self.report.added.extend(report.added);
        self.report.changed.extend(report.changed);
        self.report.removed.extend(report.removed);
        self.report_at = Some(Instant::now() + REPORT_AFTER);
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
    let mut words = check.command.into_iter();
    let Some(program) = words.next() else { return Ok(false) };
    // A name alone is looked for beside the tool first.
    let beside = check.directory.join(&program);
    let path = if beside.is_file() { beside } else { program.into() };
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

fn blind(reason: &str) -> Problem {
    let reason = format!(
        "the system does not tell of every change ({reason}); the folder is looked at every {} s",
        POLL.as_secs()
    );
    let advice =
        "allow more watches (`sysctl fs.inotify.max_user_watches`), or serve it with `--poll`";
    Problem::warning("", reason, advice)
}
