//! Source of artifacts and a graph that many agents share, with a log of every change.
//!
//! [`Workspace::open`] opens a directory; [`Workspace::on`] makes it a source of a hub. It can be
//! used without a hub as well:
//!
//! ```
//! use tidings_workspace::{ArtifactList, Config, Draft, Workspace};
//!
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let workspace = Workspace::open(Config::new(path))?;
//! let mut draft = Draft::new("A song", "", "composer");
//! draft.tags = vec!["type:midi".to_owned()];
//! let id = workspace.import(&mut b"some bytes".as_slice(), draft, "composer")?;
//! let page = workspace.list(&ArtifactList::Tag("type:midi".to_owned()), None, 10)?;
//! assert_eq!(page.items[0].id, id);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The path of a write: `store` (checked, logged and applied in one transaction) → the log →
//! `publish` (which views may have changed?) → the hub. `view` parses URIs.

mod bytes;
mod change;
mod config;
mod graph;
mod id;
mod import;
mod offer;
mod publish;
mod record;
mod refusal;
mod source;
mod store;
#[cfg(test)]
mod tests;
mod text;
mod tools;
mod touched;
mod view;
mod web;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::Semaphore;

pub use self::bytes::BlobWriter;
pub use self::change::{Change, Created, Event};
pub use self::config::{Config, Role, WorkspaceLimits};
use self::offer::WorkspaceOffer;
pub use self::record::{
    Ancestor, Annotation, Artifact, ArtifactEntry, Blob, Category, Connection, Count, Hint,
    Identity, IdentityDetails, Lineage, ListPage, Summary,
};
pub use self::refusal::{Refusal, WorkspaceError};
use self::store::Store;
pub use self::store::{
    ArtifactList, Bind, BlobFile, BlobReader, Carried, Collected, Draft, Events, Find,
    IntegrityProblem, Search, SetPlace, Verified,
};

/// A workspace.
///
/// Clones are the same workspace. Every method may wait for the disk: call them on a thread that
/// may block. When a write returns, it is durable.
#[derive(Clone)]
pub struct Workspace(Arc<WorkspaceInner>);

pub(crate) struct WorkspaceInner {
    store: Store,
    /// The items on the shelf while a hub serves the workspace. Locked while events are published,
    /// so that two publishers take turns.
    offer: Mutex<Option<WorkspaceOffer>>,
    /// One permit for each blob that may be in memory to be read as a resource.
    turns: Semaphore,
    /// One permit for each resource that may be read at once.
    places: Semaphore,
}

/// How many blobs are read as resources at once.
const TURNS: usize = 4;
/// How many resources are read at once. After each write the hub compares many watched resources;
/// they must not take the processor or all connections from writers.
const PLACES: usize = 4;

impl Workspace {
    /// Opens a workspace. The time it takes does not depend on its size.
    ///
    /// # Errors
    ///
    /// The directory cannot be used or is served already, or its database is damaged or from a
    /// later release.
    pub fn open(config: Config) -> Result<Self, WorkspaceError> {
        let (store, turns) = (Store::open(config)?, Semaphore::new(TURNS));
        let places = Semaphore::new(PLACES);
        Ok(Self(Arc::new(WorkspaceInner { store, offer: Mutex::default(), turns, places })))
    }

    /// Creates a workspace from a backup, in a directory without one. Blobs that the backup does
    /// not have intact are reported and left out.
    ///
    /// # Errors
    ///
    /// The directory has a workspace or a server, or the file is not a backup.
    pub fn restore(config: &Config, file: &Path) -> Result<Carried, WorkspaceError> {
        store::restore(config, file)
    }

    /// The settings.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.0.store.config()
    }

    /// Creates an artifact from stored bytes; returns its id. The log names the actor.
    ///
    /// # Errors
    ///
    /// The draft is invalid.
    pub fn create(&self, draft: Draft, actor: &str) -> Result<String, WorkspaceError> {
        self.0.store.create(draft, actor)
    }

    /// A page of a list: at most `limit` artifacts, after the one with the id `after`.
    ///
    /// # Errors
    ///
    /// The list has no artifact with that id.
    pub fn list(
        &self,
        list: &ArtifactList,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<ArtifactEntry>, WorkspaceError> {
        self.0.store.list(list, after, limit)
    }

    /// One artifact with its details, if it exists.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn artifact(&self, id: &str) -> Result<Option<Artifact>, WorkspaceError> {
        self.0.store.artifact(id)
    }

    /// An artifact and all artifacts it was made from, if it exists.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn lineage(&self, id: &str) -> Result<Option<Lineage>, WorkspaceError> {
        self.0.store.lineage(id)
    }

    /// The number of artifacts, by tag, creator and set.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn summary(&self) -> Result<Summary, WorkspaceError> {
        self.0.store.summary()
    }

    /// The matching artifacts, newest first, and whether there are more.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn search(
        &self,
        search: &Search,
        limit: usize,
    ) -> Result<(Vec<ArtifactEntry>, bool), WorkspaceError> {
        self.0.store.search(search, limit)
    }

    /// Adds tags to an artifact; returns the new ones.
    ///
    /// # Errors
    ///
    /// There is no such artifact, or a tag is invalid.
    pub fn tag(
        &self,
        artifact: &str,
        tags: &[String],
        actor: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.0.store.tag(artifact, tags, actor)
    }

    /// Removes tags of an artifact; returns those it had.
    ///
    /// # Errors
    ///
    /// There is no such artifact.
    pub fn untag(
        &self,
        artifact: &str,
        tags: &[String],
        actor: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.0.store.untag(artifact, tags, actor)
    }

    /// Adds an annotation to an artifact; returns how many it has now. The author is shown with it,
    /// the actor in the log.
    ///
    /// # Errors
    ///
    /// There is no such artifact, it has too many annotations, or the message is invalid.
    pub fn annotate(
        &self,
        artifact: &str,
        message: &str,
        author: &str,
        actor: &str,
    ) -> Result<u64, WorkspaceError> {
        self.0.store.annotate(artifact, message, author, actor)
    }

    /// Archives or restores an artifact; returns whether that changed anything.
    ///
    /// # Errors
    ///
    /// There is no such artifact.
    pub fn archive(&self, artifact: &str, away: bool, actor: &str) -> Result<bool, WorkspaceError> {
        self.0.store.archive(artifact, away, actor)
    }

    /// The events after a number, of the given kinds, or of all kinds if none is given.
    ///
    /// # Errors
    ///
    /// Some of these events were removed, or do not exist yet.
    pub fn events(
        &self,
        cursor: u64,
        kinds: &[String],
        limit: usize,
    ) -> Result<Events, WorkspaceError> {
        self.0.store.events(cursor, kinds, limit)
    }

    /// The newest events, newest first.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn newest_events(&self, limit: usize) -> Result<Vec<Event>, WorkspaceError> {
        self.0.store.newest_events(limit)
    }

    /// Removes blobs that no artifact uses and that were stored before the grace time.
    ///
    /// # Errors
    ///
    /// A file cannot be removed.
    pub fn gc(&self, grace: Duration, actor: &str) -> Result<Collected, WorkspaceError> {
        self.0.store.collect(grace, actor)
    }

    /// Reads every blob and checks every reference. Calls `progress` with the number of blobs read
    /// and the total.
    ///
    /// # Errors
    ///
    /// The database or a directory cannot be read.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<Verified, WorkspaceError> {
        self.0.store.verify(progress)
    }

    /// Writes a consistent copy of everything into a new file. Damaged and lost blobs are reported
    /// and left out.
    ///
    /// # Errors
    ///
    /// The file exists, or the disk is full.
    pub fn backup(&self, file: &Path) -> Result<Carried, WorkspaceError> {
        self.0.store.backup(file)
    }
}

impl std::fmt::Debug for Workspace {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let directory = &self.config().directory;
        formatter.debug_struct("Workspace").field("directory", directory).finish_non_exhaustive()
    }
}
