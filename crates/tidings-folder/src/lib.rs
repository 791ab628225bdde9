//! Source that serves a directory of scripts, prompts and files, and follows its changes.
//!
//! Executables below `tools/` are tools, texts below `prompts/` are prompts, files below
//! `resources/` are resources. [`Folder::open`] reads the directory; [`Folder::on`] makes it a
//! source of a hub.
//!
//! ```
//! use tidings_folder::{Config, Folder};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! std::fs::create_dir(path.join("prompts"))?;
//! std::fs::write(path.join("prompts/review.md"), "Review this change: {{change}}")?;
//!
//! let folder = Folder::open(Config::new(path.into())).await?;
//! assert!(folder.problems().is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The path of a saved file: `watch` (which paths changed?) → `stock` (what do the files describe,
//! and which of it is offered?) → `publish` (what is not on the shelf yet?) → the hub. `rounds` is
//! the one task that drives it; `describe` reads descriptions, `script` runs programs.

mod answer;
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
mod publish;
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

pub use self::config::{Config, FolderLimits};
pub use self::describe::Introduction;
use self::offer::{ContentOrigin, Kind, Offered};
pub use self::problem::{Fix, Problem, Setting, Severity};
use self::publish::{Publisher, View};
use self::rounds::Rounds;
pub use self::script::{Keeper, keep};
use self::stock::{Affected, Stock};
use self::tree::Root;
use self::watch::FolderWatch;
use self::workshop::{Hosts, Workshop};

/// Why a folder cannot be served at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The path does not exist or is not a directory.
    #[error("`{path}` cannot be served as a folder")]
    Root {
        /// The path from the configuration.
        path: PathBuf,
        /// Why it cannot be opened.
        #[source]
        error: std::io::Error,
    },
    /// The first scan was cancelled.
    #[error("the first scan of the folder was cancelled")]
    Interrupted,
}

/// Changes and problems that one rescan found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// Newly offered items, as `tool echo`, `prompt review`, `resource notes.md`.
    pub added: Vec<String>,
    /// Items whose description changed.
    pub changed: Vec<String>,
    /// Items that are no longer offered.
    pub removed: Vec<String>,
    /// New problems.
    pub problems: Vec<Problem>,
    /// Problems that are solved.
    pub mended: Vec<Problem>,
}

impl Report {
    /// Whether the report is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self == &Self::default()
    }
}

/// A folder to serve.
///
/// Descriptions are read when they change, contents when they are requested. An invalid description
/// is reported as a [`Problem`]; its last valid version stays in use.
pub struct Folder(Arc<FolderInner>);

pub(crate) struct FolderInner {
    root: Root,
    config: Config,
    watch: FolderWatch,
    view: Arc<RwLock<View>>,
    /// The environment that programs run in; replaced when the policy or the roots change.
    workshop: RwLock<Arc<Workshop>>,
    /// Locked while files are scanned, on threads that may block.
    publisher: Mutex<Publisher>,
    /// One permit for each file that may be read as a resource at once.
    turns: Semaphore,
}

/// How many files are read as resources at once.
const TURNS: usize = 8;

impl Folder {
    /// Scans a folder for the first time. If the configuration allows it, programs that decide what
    /// is offered are run.
    ///
    /// # Errors
    ///
    /// The path is not a directory that can be read.
    pub async fn open(config: Config) -> Result<Self, OpenError> {
        let path = config.root.clone();
        let root = Root::new(&path).map_err(|error| OpenError::Root { path, error })?;
        let view = Arc::new(RwLock::new(View::default()));
        let search = config.environment.iter().find(|(name, _)| name == "PATH");
        let stock = Stock::new(root.clone(), config.limits, config.checks)
            .searching(search.map(|(_, value)| value.clone()));
        // Watched before it is read, so that no change is missed in between.
        let watch = FolderWatch::new(&root, config.poll);
        let publisher = Mutex::new(Publisher::new(stock, view.clone()));
        let workshop = RwLock::new(Arc::new(Workshop::new(&config, &Hosts::default())));
        let turns = Semaphore::new(TURNS);
        let inner = Arc::new(FolderInner { root, config, watch, view, workshop, publisher, turns });
        let first = inner.clone();
        let scan = move || {
            call::sweep(&first.workshop().scratch);
            first.update_whole_stock();
        };
        tokio::task::spawn_blocking(scan).await.map_err(|_| OpenError::Interrupted)?;
        Rounds::new(inner.clone()).first().await;
        inner.judge_environment();
        Ok(Self(inner))
    }

    /// The folder's name, version and instructions.
    #[must_use]
    pub fn introduction(&self) -> Introduction {
        self.0.publisher().stock.introduction().clone()
    }

    /// All current problems, sorted.
    #[must_use]
    pub fn problems(&self) -> Vec<Problem> {
        self.0.publisher().stock.problems().into_iter().collect()
    }
}

impl std::fmt::Debug for Folder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Folder").field("root", &self.0.root).finish_non_exhaustive()
    }
}

impl FolderInner {
    fn publisher(&self) -> MutexGuard<'_, Publisher> {
        self.publisher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn workshop(&self) -> Arc<Workshop> {
        self.workshop.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn update_whole_stock(&self) -> Affected {
        let mut publisher = self.publisher();
        self.watch.enter_root();
        let affected = publisher.stock.rescan(&mut |directory| self.watch.enter(directory));
        self.enter_consulted(&publisher);
        self.refit(&publisher);
        affected
    }

    fn update_stock(&self, paths: &BTreeSet<PathBuf>) -> Affected {
        let everything = ["", hidden::FILE].iter().any(|path| paths.contains(Path::new(path)));
        if everything {
            return self.update_whole_stock();
        }
        let mut publisher = self.publisher();
        // Before the scan, to catch files that arrive in a new directory; after it, because the
        // scan may have found more files to consult.
        self.enter_consulted(&publisher);
        let affected =
            publisher.stock.rescan_paths(paths, &mut |directory| self.watch.enter(directory));
        self.enter_consulted(&publisher);
        self.refit(&publisher);
        affected
    }

    /// Watches the directories of files that descriptions name outside the parts of the folder.
    fn enter_consulted(&self, publisher: &Publisher) {
        for directory in publisher.stock.consulted_directories() {
            // If the directory does not exist, watch where it would appear.
            let there = directory.ancestors().find(|it| self.root.absolute(it).is_dir());
            self.watch.enter(there.unwrap_or(Path::new("")));
        }
    }

    /// Updates the hosts and roots that programs get, if the folder changed them.
    fn refit(&self, publisher: &Publisher) {
        let (allow, deny) = publisher.stock.policy().written_hosts.clone();
        let hosts = Hosts { allow, deny };
        let confines = publisher.stock.confines();
        let mut workshop = self.workshop.write().unwrap_or_else(PoisonError::into_inner);
        if workshop.hosts != hosts || workshop.confines != *confines {
            *workshop = Arc::new(workshop.with(&self.config, &hosts, confines.clone()));
        }
    }

    /// Reports variables that the folder's programs need but do not get.
    fn judge_environment(&self) {
        let mut publisher = self.publisher();
        for name in publisher.stock.introduction().env.clone() {
            if self.config.environment.iter().all(|(known, _)| *known != *name) {
                let reason =
                    format!("programs of the folder need `{name}`, which is not passed to them");
                let about = PathBuf::from(format!("env {name}"));
                let advice = "set it, and pass it to programs";
                let problem = Problem::warning(describe::SERVER, reason, advice)
                    .for_want_of(Setting::Variable(Some(name)));
                publisher.stock.set_problem(&about, Some(problem));
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
    /// The folder as a source of this shelf. Its items are added when the source starts.
    #[must_use]
    pub fn on(self, shelf: Shelf) -> impl Source {
        Shelved { inner: self.0, shelf, is_followed: true }
    }

    /// The folder as it is now, for a command of its owner that lists or calls once: files are not
    /// watched, problems not logged, and every item is for everyone.
    #[must_use]
    pub fn still_on(self, shelf: Shelf) -> impl Source {
        Shelved { inner: self.0, shelf, is_followed: false }
    }
}

/// The folder and the shelf that a hub gave it.
struct Shelved {
    inner: Arc<FolderInner>,
    shelf: Shelf,
    is_followed: bool,
}

impl Source for Shelved {
    async fn start(&self) -> Result<(), EditError> {
        let (inner, shelf) = (self.inner.clone(), self.shelf.clone());
        let audiences = self.is_followed;
        let put = move || {
            let mut publisher = inner.publisher();
            publisher.audiences = audiences;
            let keys = publisher.stock.keys().cloned().collect();
            let affected = Affected { keys, ..Affected::default() };
            publisher.update_shelf(&shelf, &affected, &mut Report::default());
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
            (ContentOrigin::File(file), mime_type) => {
                self.inner.read_file(uri, file, mime_type).await
            }
            (ContentOrigin::Provider(scheme), mime_type) => {
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
        // File names are searched on a thread that may block.
        let known = tokio::task::spawn_blocking(move || inner.complete_from_values(&asked)).await;
        let (name, mut values, program) =
            known.map_err(|_| AnswerError::Failed("the completion was cancelled".to_owned()))??;
        if let Some(program) = program {
            let workshop = self.inner.workshop();
            values.extend(completion::complete(&workshop, &program, &name, &completion).await?);
        }
        Ok(values.into())
    }
}
