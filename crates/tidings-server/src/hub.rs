//! The hub: the cheap-to-clone handle to add a source, announce, and shut down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidings_core::ListKinds;
use tokio::sync::broadcast;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::catalog::{EditError, Shelf};
use crate::config::Config;
use crate::path::{Core, Event};
use crate::source::Source;

/// How long a source may take to end by itself before it is ended.
const GRACE: Duration = Duration::from_secs(2);

/// One catalog of any number of sources, and everyone who listens to it.
///
/// Cloning is cheap and every clone is the same hub. It must be made within a tokio runtime; its
/// tasks end with [`Hub::shutdown`] or when the last clone is dropped.
#[derive(Clone)]
pub struct Hub {
    owner: Arc<Owner>,
}

/// Owns the tasks. The tasks know the core and not the owner, so the last hub that is dropped
/// ends them.
struct Owner {
    core: Arc<Core>,
    state: Mutex<State>,
}

struct State {
    tasks: JoinSet<()>,
    sources: HashMap<u64, (CancellationToken, AbortHandle)>,
}

/// Why a source was not added.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AddError {
    /// The hub has a source of that name.
    #[error("a source named `{0}` is part of this hub already")]
    Name(String),
    /// An item of the source cannot be offered.
    #[error("the source `{name}` was not added")]
    Start {
        /// The source.
        name: String,
        /// What is wrong.
        #[source]
        error: EditError,
    },
}

impl Hub {
    /// A hub without sources.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let core = Core::new(config);
        let mut tasks = JoinSet::new();
        tasks.spawn(core.clone().announce());
        let state = Mutex::new(State { tasks, sources: HashMap::new() });
        Self { owner: Arc::new(Owner { core, state }) }
    }

    /// Adds a source, which starts at once; its items are offered as it puts them on its shelf.
    ///
    /// # Errors
    ///
    /// The name is taken, or one of its first items cannot be offered; then nothing of it stays.
    pub async fn add(&self, name: &str, source: impl Source) -> Result<Shelf, AddError> {
        let core = &self.owner.core;
        let (id, member) = core
            .catalog
            .join(name, Arc::new(source))
            .ok_or_else(|| AddError::Name(name.to_owned()))?;
        // Cancel-safe: a source whose start was given up leaves with everything it put there.
        let mut joining = Joining { core, id: Some(id) };
        let shelf = Shelf::new(core.clone(), id);
        member
            .source
            .start(&shelf)
            .await
            .map_err(|error| AddError::Start { name: name.to_owned(), error })?;
        if core.catalog.member_id(name) != Some(id) {
            let name = name.to_owned();
            return Err(AddError::Start { name, error: EditError::Removed });
        }
        joining.id = None;
        let cancel = core.stopped.child_token();
        let run = {
            let (shelf, cancel) = (shelf.clone(), cancel.clone());
            async move { member.source.run(shelf, cancel).await }
        };
        let task = self.own(run);
        self.lock().sources.insert(id, (cancel, task));
        info!(source = name, "source added");
        Ok(shelf)
    }

    /// Removes a source with all its items; false if there is none of that name.
    pub fn remove(&self, name: &str) -> bool {
        let core = &self.owner.core;
        let Some(id) = core.catalog.member_id(name) else { return false };
        let running = self.lock().sources.remove(&id);
        if let Some((cancel, task)) = running {
            cancel.cancel();
            self.own(async move {
                tokio::time::sleep(GRACE).await;
                task.abort();
            });
        }
        let touched = core.catalog.leave(id);
        core.touch(&touched);
        info!(source = name, "source removed");
        true
    }

    /// Says that a read of this URI may return something else now.
    pub fn notify_updated(&self, uri: &str) {
        self.owner.core.notify_updated(uri);
    }

    /// As [`Self::notify_updated`], for every watched URI that begins with the text before the `*` at the
    /// end of the pattern; a pattern without one is a URI.
    pub fn notify_matching(&self, pattern: &str) {
        self.owner.core.notify_matching(pattern);
    }

    /// Says that lists may have moved.
    pub fn lists_changed(&self, kinds: ListKinds) {
        self.owner.core.lists_changed(kinds);
    }

    /// What happens in the hub, for people who watch it. A receiver that falls behind misses
    /// events.
    #[must_use]
    pub fn events(&self) -> broadcast::Receiver<Event> {
        self.owner.core.events.subscribe()
    }

    /// The counters as a Prometheus server reads them.
    #[must_use]
    pub fn metrics(&self) -> String {
        self.owner.core.metrics_text()
    }

    /// Ends every listener gracefully and every source; transports that serve this hub end too.
    pub async fn shutdown(&self) {
        let core = &self.owner.core;
        core.stopped.cancel();
        core.index.close_all();
        let mut tasks = std::mem::take(&mut self.lock().tasks);
        let ended = async { while tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, ended).await.is_err() {
            tasks.shutdown().await;
        }
    }

    /// Takes a task over, so that it ends with the hub. The task must not hold the hub.
    pub(crate) fn own(&self, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let mut state = self.lock();
        while state.tasks.try_join_next().is_some() {}
        state.tasks.spawn(task)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.owner.core
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.owner.state.lock().expect("no code panics while it holds the hub's tasks")
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.core.stopped.cancel();
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Hub")
            .field("name", &self.owner.core.config.name)
            .finish_non_exhaustive()
    }
}

struct Joining<'a> {
    core: &'a Core,
    id: Option<u64>,
}

impl Drop for Joining<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let touched = self.core.catalog.leave(id);
            self.core.touch(&touched);
        }
    }
}
