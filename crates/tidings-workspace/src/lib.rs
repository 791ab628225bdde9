//! Artifacts and a graph that many agents share, as a live source.
//!
//! The way of a write: `store` (checked, recorded and applied in one transaction) → the log →
//! `publish` (which views may have moved?) → the hub. `view` says what a URI asks for.

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
mod stamp;
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
pub use self::config::{Config, Limits, Role};
use self::offer::WorkspaceOffer;
pub use self::record::{
    Ancestor, Annotation, Artifact, ArtifactEntry, Blob, Category, Connection, Count, Hint,
    Identity, IdentityDetails, Lineage, ListPage, Summary,
};
pub use self::refusal::{Refusal, WorkspaceError};
pub use self::stamp::Stamp;
use self::store::Store;
pub use self::store::{
    ArtifactList, Bind, BlobFile, BlobReader, Carried, Collected, Draft, Events, Find,
    IntegrityProblem, Search, SetPlace, Verified,
};

/// A workspace.
///
/// Cloning is cheap and every clone is the same workspace. It is a source of a hub, and can be
/// used without one. Every method may wait for the disk: call them on a thread that may. What a
/// write returned is durable.
///
/// ```
/// use tidings_workspace::{Config, Draft, ArtifactList, Workspace};
///
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path();
/// let workspace = Workspace::open(Config::new(path))?;
/// let mut draft = Draft::new("A song", "", "composer");
/// draft.tags = vec!["type:midi".to_owned()];
/// let id = workspace.import(&mut b"some bytes".as_slice(), draft, "composer")?;
/// let page = workspace.list(&ArtifactList::Tag("type:midi".to_owned()), None, 10)?;
/// assert_eq!(page.items[0].id, id);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Workspace(Arc<WorkspaceInner>);

pub(crate) struct WorkspaceInner {
    store: Store,
    /// What is on the shelf, while a hub serves it. Held while it is told what was written, so
    /// that two that publish do so in turns.
    offer: Mutex<Option<WorkspaceOffer>>,
    /// One for each blob that may be in memory at once, to be read as a resource.
    turns: Semaphore,
    /// One for each resource that may be read at once.
    places: Semaphore,
}

/// How many blobs are read as resources at once.
const TURNS: usize = 4;
/// How many resources are read at once. The hub compares many that are watched whenever something
/// was written; they must not take the processor from who writes, nor every connection there is.
const PLACES: usize = 4;

impl Workspace {
    /// Opens a workspace. It may wait for the disk, but not longer the more there is in it.
    ///
    /// # Errors
    ///
    /// The directory cannot be used, is served already, or its database is damaged or of a later
    /// release.
    pub fn open(config: Config) -> Result<Self, WorkspaceError> {
        let (store, turns) = (Store::open(config)?, Semaphore::new(TURNS));
        let places = Semaphore::new(PLACES);
        Ok(Self(Arc::new(WorkspaceInner { store, offer: Mutex::default(), turns, places })))
    }

    /// Makes a workspace of a backup, in a directory that has none. Blobs whose bytes the backup
    /// does not have as they were are left out and told of.
    ///
    /// # Errors
    ///
    /// There is a workspace or a server, or the file is no backup.
    pub fn restore(config: &Config, file: &Path) -> Result<Carried, WorkspaceError> {
        store::restore(config, file)
    }

    /// What is set.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.0.store.config()
    }

    /// Makes an artifact of bytes that are stored; gives its id. The actor is who is in the log.
    ///
    /// # Errors
    ///
    /// A part of it cannot be.
    pub fn create(&self, draft: Draft, actor: &str) -> Result<String, WorkspaceError> {
        self.0.store.create(draft, actor)
    }

    /// Part of a list: at most `limit`, after the artifact of that id.
    ///
    /// # Errors
    ///
    /// There is no artifact of that id in the list.
    pub fn list(
        &self,
        list: &ArtifactList,
        after: Option<&str>,
        limit: usize,
    ) -> Result<ListPage<ArtifactEntry>, WorkspaceError> {
        self.0.store.list(list, after, limit)
    }

    /// One artifact with all that is known of it, if there is one of this id.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn artifact(&self, id: &str) -> Result<Option<Artifact>, WorkspaceError> {
        self.0.store.artifact(id)
    }

    /// An artifact and what it was made from, if there is one of this id.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn lineage(&self, id: &str) -> Result<Option<Lineage>, WorkspaceError> {
        self.0.store.lineage(id)
    }

    /// How much there is.
    ///
    /// # Errors
    ///
    /// The database cannot be read.
    pub fn summary(&self) -> Result<Summary, WorkspaceError> {
        self.0.store.summary()
    }

    /// The artifacts that fit, newest first, and whether there are more.
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

    /// Adds tags to an artifact; gives those it did not have.
    ///
    /// # Errors
    ///
    /// There is no such artifact, or a tag cannot be.
    pub fn tag(
        &self,
        artifact: &str,
        tags: &[String],
        actor: &str,
    ) -> Result<Vec<String>, WorkspaceError> {
        self.0.store.tag(artifact, tags, actor)
    }

    /// Removes tags of an artifact; gives those it had.
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

    /// Remarks something on an artifact; gives how many remarks there are now. The author is who
    /// says it, the actor who is in the log.
    ///
    /// # Errors
    ///
    /// There is no such artifact, it has as many as it may have, or the message cannot be.
    pub fn annotate(
        &self,
        artifact: &str,
        message: &str,
        author: &str,
        actor: &str,
    ) -> Result<u64, WorkspaceError> {
        self.0.store.annotate(artifact, message, author, actor)
    }

    /// Puts an artifact away, or takes it out again; says whether that changed anything.
    ///
    /// # Errors
    ///
    /// There is no such artifact.
    pub fn archive(&self, artifact: &str, away: bool, actor: &str) -> Result<bool, WorkspaceError> {
        self.0.store.archive(artifact, away, actor)
    }

    /// The events after a number, of some kinds or, without any, of all.
    ///
    /// # Errors
    ///
    /// Some of those events are gone, or not there yet.
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

    /// Removes blobs that no artifact has and that nobody stored within the grace time.
    ///
    /// # Errors
    ///
    /// A file cannot be removed.
    pub fn gc(&self, grace: Duration, actor: &str) -> Result<Collected, WorkspaceError> {
        self.0.store.collect(grace, actor)
    }

    /// Reads every blob again and checks every reference. Hears how many blobs were read of how
    /// many.
    ///
    /// # Errors
    ///
    /// Something cannot be read at all.
    pub fn verify(&self, progress: impl FnMut(u64, u64)) -> Result<Verified, WorkspaceError> {
        self.0.store.verify(progress)
    }

    /// Writes everything as it is at one moment into a new file. Blobs that are damaged or gone are
    /// left out and told of.
    ///
    /// # Errors
    ///
    /// The file is there, or there is no room.
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
