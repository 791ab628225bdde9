//! A directory of scripts, prompts and files as a live source.
//!
//! The way of a save through the folder: `watch` (which paths?) → `stock` (what do the files
//! describe, and which of it is offered?) → `bench` (what of it is not on the shelf yet?) → the
//! hub. `rounds` is the one task that walks it; `describe` reads descriptions, `script` runs
//! programs.

mod answer;
mod bench;
mod call;
mod completion;
mod config;
mod describe;
mod fill;
mod guard;
mod hidden;
mod motion;
mod offer;
mod problem;
mod provider;
mod queue;
mod register;
mod rounds;
mod script;
mod stock;
#[cfg(test)]
mod testing;
mod tree;
mod watch;
mod withheld;
mod workshop;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use tidings_core::ResourceUri;
use tidings_server::model::{
    CallToolRequestParams, CallToolResponse, GetPromptRequestParams, GetPromptResponse,
    GetPromptResult, PromptMessage,
};
use tidings_server::{
    Answer, AnswerError, Completion, Completions, Contents, Context, EditError, Shelf, Source,
};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::bench::{Bench, View};
pub use self::config::{Config, Limits};
pub use self::describe::Introduction;
use self::offer::{Kind, Offered, Origin};
pub use self::problem::{Fix, Problem, Setting, Severity};
use self::rounds::Rounds;
pub use self::script::{Keeper, keep};
use self::stock::{Stock, Touched};
use self::tree::Root;
use self::watch::Watch;
use self::workshop::{Hosts, Workshop};

/// Why a folder cannot be served at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not there, or not a directory.
    #[error("`{path}` cannot be served as a folder")]
    Root {
        /// What was given.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: std::io::Error,
    },
    /// The work was given up.
    #[error("the first look at the folder was given up")]
    Interrupted,
}

/// What one look at the folder found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What is offered now and was not, as `tool echo`, `prompt review`, `resource notes.md`.
    pub added: Vec<String>,
    /// What is offered as something else than before.
    pub changed: Vec<String>,
    /// What is offered no more.
    pub removed: Vec<String>,
    /// What is wrong and was not before.
    pub problems: Vec<Problem>,
    /// What was wrong before and is not any more.
    pub mended: Vec<Problem>,
}

impl Report {
    /// Whether there is nothing to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// A folder that is served.
///
/// Descriptions are read when they change, contents when they are asked for. What cannot be
/// understood is told as a [`Problem`], and what it said before holds.
pub struct Folder(Arc<Inner>);

pub(crate) struct Inner {
    root: Root,
    config: Config,
    watch: Watch,
    view: Arc<RwLock<View>>,
    /// Where programs run; another one when the policy moves.
    workshop: RwLock<Arc<Workshop>>,
    /// Held while files are looked at, on threads that may wait.
    bench: Mutex<Bench>,
    /// Turns of reads of files.
    turns: Semaphore,
}

/// How many files are read as resources at once.
const TURNS: usize = 8;

impl Folder {
    /// Looks at a folder for the first time. Programs that decide what is offered are run, if the
    /// configuration allows it.
    ///
    /// # Errors
    ///
    /// There is no such directory.
    pub async fn open(config: Config) -> Result<Self, OpenError> {
        let path = config.root.clone();
        let root = Root::new(&path).map_err(|error| OpenError::Root { path, error })?;
        let view = Arc::new(RwLock::new(View::default()));
        let search = config.environment.iter().find(|(name, _)| name == "PATH");
        let stock = Stock::new(root.clone(), config.limits, config.checks)
            .searching(search.map(|(_, value)| value.clone()));
        // Listened to before it is read, so that nothing falls in between.
        let watch = Watch::new(&root, config.poll);
        let bench = Mutex::new(Bench::new(stock, view.clone()));
        let workshop = RwLock::new(Arc::new(Workshop::new(&config, &Hosts::default())));
        let turns = Semaphore::new(TURNS);
        let inner = Arc::new(Inner { root, config, watch, view, workshop, bench, turns });
        let first = inner.clone();
        let look = move || {
            call::sweep(&first.workshop().scratch);
            first.look_at_everything();
        };
        tokio::task::spawn_blocking(look).await.map_err(|_| OpenError::Interrupted)?;
        Rounds::new(inner.clone()).first().await;
        inner.judge_environment();
        Ok(Self(inner))
    }

    /// How the folder introduces itself.
    #[must_use]
    pub fn introduction(&self) -> Introduction {
        self.0.bench().stock.introduction().clone()
    }

    /// Everything that is wrong now, in order.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.0.bench().stock.problems().into_iter().collect()
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Folder").field("root", &self.0.root).finish_non_exhaustive()
    }
}

impl Inner {
    fn bench(&self) -> MutexGuard<'_, Bench> {
        self.bench.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workshop(&self) -> Arc<Workshop> {
        self.workshop.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn look_at_everything(&self) -> Touched {
        let mut bench = self.bench();
        self.watch.enter_root();
        let touched = bench.stock.rescan(&mut |directory| self.watch.enter(directory));
        self.enter_consulted(&bench);
        self.refit(&bench);
        touched
    }

    fn look_at(&self, paths: &BTreeSet<PathBuf>) -> Touched {
        let everything = ["", hidden::FILE].iter().any(|path| paths.contains(Path::new(path)));
        if everything {
            return self.look_at_everything();
        }
        let mut bench = self.bench();
        // Before the look, so that what comes into a directory that just came is not missed; and
        // after it, for what it found to be consulted.
        self.enter_consulted(&bench);
        let touched = bench.stock.look(paths, &mut |directory| self.watch.enter(directory));
        self.enter_consulted(&bench);
        self.refit(&bench);
        touched
    }

    /// Follows directories beside the parts in which files lie that descriptions name.
    fn enter_consulted(&self, bench: &Bench) {
        for directory in bench.stock.consulted_directories() {
            // One that is not there is waited for.
            let there = directory.ancestors().find(|it| self.root.absolute(it).is_dir());
            self.watch.enter(there.unwrap_or(Path::new("")));
        }
    }

    /// Gives programs the hosts and roots that the folder allows, if they changed.
    fn refit(&self, bench: &Bench) {
        let (allow, deny) = bench.stock.policy().written_hosts.clone();
        let hosts = Hosts { allow, deny };
        let confines = bench.stock.confines();
        let mut workshop = self.workshop.write().unwrap_or_else(PoisonError::into_inner);
        if workshop.hosts != hosts || workshop.confines != *confines {
            *workshop = Arc::new(workshop.with(&self.config, &hosts, confines.clone()));
        }
    }

    /// Complains of variables that the folder's programs need and do not get.
    fn judge_environment(&self) {
        let mut bench = self.bench();
        for name in bench.stock.introduction().env.clone() {
            if self.config.environment.iter().all(|(known, _)| *known != *name) {
                let reason = format!("programs of the folder need `{name}`, and do not get it");
                let place = PathBuf::from(format!("env {name}"));
                let advice = "set it, and pass it to programs";
                let problem = Problem::warning(describe::SERVER, reason, advice)
                    .for_want_of(Setting::Variable(Some(name)));
                bench.stock.complain(&place, Some(problem));
            }
        }
    }

    fn view(&self) -> RwLockReadGuard<'_, View> {
        self.view.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn offered(&self, kind: Kind, name: &str) -> Option<Arc<Offered>> {
        self.view().offered.get(&(kind, name.into())).cloned()
    }
}

impl Folder {
    /// The folder on this shelf, as a source. What it has is put there when it starts.
    #[must_use]
    pub fn on(self, shelf: Shelf) -> impl Source {
        Shelved { inner: self.0, shelf, is_followed: true }
    }

    /// The folder as it is now, for a command that lists or calls and ends: files are not followed
    /// and problems not logged.
    #[must_use]
    pub fn still_on(self, shelf: Shelf) -> impl Source {
        Shelved { inner: self.0, shelf, is_followed: false }
    }
}

/// A folder that a hub serves.
struct Shelved {
    inner: Arc<Inner>,
    shelf: Shelf,
    is_followed: bool,
}

impl Source for Shelved {
    async fn start(&self) -> Result<(), EditError> {
        let (inner, shelf) = (self.inner.clone(), self.shelf.clone());
        let put = move || {
            let mut bench = inner.bench();
            let keys = bench.stock.keys().cloned().collect();
            let touched = Touched { keys, ..Touched::default() };
            bench.apply(&shelf, &touched, &mut Report::default());
        };
        drop(tokio::task::spawn_blocking(put).await);
        Ok(())
    }

    async fn run(&self, cancel: CancellationToken) {
        if self.is_followed {
            Rounds::new(self.inner.clone()).run(self.shelf.clone(), cancel).await;
        }
    }

    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        match self.inner.origin(uri)? {
            (Origin::File(file), mime_type) => self.inner.read_file(uri, file, mime_type).await,
            (Origin::Provider(scheme), mime_type) => {
                let provider = self.inner.offered(Kind::Provider, &scheme);
                let Some(Offered::Provider(_, program)) = provider.as_deref() else {
                    if scheme == provider::ECHO {
                        return Ok(provider::echo(uri, mime_type.as_deref()));
                    }
                    return Err(AnswerError::not_found(uri.as_ref()));
                };
                provider::read(&self.inner.workshop(), program, uri, mime_type.as_deref()).await
            }
        }
    }

    async fn call(
        &self,
        request: CallToolRequestParams,
        context: &Context,
    ) -> Result<Answer<CallToolResponse>, AnswerError> {
        let offered = self.inner.offered(Kind::Tool, &request.name);
        let Some(Offered::Tool(offer)) = offered.as_deref() else {
            return Err(AnswerError::not_found(request.name));
        };
        let workshop = self.inner.workshop();
        guard::ask(&workshop, &self.inner.root, &offer.script).await?;
        Ok(call::call(&workshop, &offer.script, request, context).await?.into())
    }

    async fn prompt(
        &self,
        request: GetPromptRequestParams,
        _: &Context,
    ) -> Result<Answer<GetPromptResponse>, AnswerError> {
        let offered = self.inner.offered(Kind::Prompt, &request.name);
        let Some(Offered::Prompt(text)) = offered.as_deref() else {
            return Err(AnswerError::not_found(request.name));
        };
        let filled = fill::fill(text, &request.arguments.unwrap_or_default())
            .map_err(|error| AnswerError::invalid(error.argument, error.value, error.details))?;
        let message = PromptMessage::new_text(text.role.clone(), filled);
        let mut result = GetPromptResult::new(vec![message]);
        result.description.clone_from(&text.prompt.description);
        Ok(result.into())
    }

    async fn complete(
        &self,
        completion: Completion,
        _: &Context,
    ) -> Result<Completions, AnswerError> {
        let (inner, asked) = (self.inner.clone(), completion.clone());
        // The names of files are looked through on a thread that may wait.
        let known = tokio::task::spawn_blocking(move || inner.complete_from_values(&asked)).await;
        let (name, mut values, program) =
            known.map_err(|_| AnswerError::Failed("the completion was given up".to_owned()))??;
        if let Some(program) = program {
            let workshop = self.inner.workshop();
            values.extend(completion::complete(&workshop, &program, &name, &completion).await?);
        }
        Ok(values.into())
    }
}
