//! Storage of a workspace: a database for records, files for blobs.
//!
//! Every write is an event and its effect in one transaction. Every method may wait for the disk:
//! call them on threads that may block.

mod apply;
mod artifact;
mod backup;
mod bind;
mod blob;
mod commit;
mod event;
mod gc;
mod graph;
mod lock;
mod read_only;
mod reading;
mod schema;
mod search;
#[cfg(test)]
mod tests;
mod verify;
mod write;

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tidings_store::database::{self, Readers, directory, make_private, migration};
use tokio::sync::watch;

pub use self::artifact::ArtifactList;
pub(crate) use self::artifact::Ids;
pub use self::backup::Carried;
pub(crate) use self::backup::restore;
pub use self::bind::Bind;
pub(crate) use self::blob::{Blobs, Incoming, Whole, is_hash};
use self::commit::WriteQueue;
pub use self::event::Events;
pub use self::gc::Collected;
pub use self::graph::Find;
use self::lock::Lock;
use self::read_only::Access;
pub use self::reading::{BlobFile, BlobReader};
pub use self::search::Search;
pub use self::verify::{IntegrityProblem, Verified};
pub use self::write::{Draft, SetPlace};
use crate::config::{Config, Role};
use crate::record::Blob;
use crate::{Refusal, WorkspaceError};

/// The database in a workspace's directory.
pub(crate) const DATABASE: &str = "workspace.sqlite";
/// How long a connection waits for a writer in another process; no transaction takes that long.
const BUSY: Duration = Duration::from_secs(20);
/// How many reading connections are kept open. Further ones are closed after use.
const READERS: usize = 8;
/// How many prepared statements a connection caches: all of them.
const STATEMENTS: usize = 128;

/// The storage of a workspace.
pub(crate) struct Store {
    pub(super) file: PathBuf,
    pub(super) blobs: Blobs,
    pub(super) config: Config,
    /// How reading connections are opened.
    access: Access,
    // Order: readers are closed before the writer. The last connection empties the log beside the
    // database, and must be able to write.
    readers: Readers,
    write_queue: WriteQueue,
    /// The number of the last durable event.
    last: watch::Sender<u64>,
    _lock: Option<Lock>,
}

impl Store {
    /// Opens a workspace; a server creates a missing one.
    pub(crate) fn open(config: Config) -> Result<Self, WorkspaceError> {
        if config.role != Role::ReadOnly {
            return Self::open_to_write(config);
        }
        match Self::open_to_write(config.clone()) {
            Err(error) if read_only::is_unwritable(&error) => Self::open_read_only(config),
            opened => opened,
        }
    }

    /// Opens a workspace in a read-only directory, without migrating it.
    fn open_read_only(config: Config) -> Result<Self, WorkspaceError> {
        let file = config.directory.join(DATABASE);
        let damaged = |error| schema::damaged(&file, error);
        let access = Access::of(&file);
        let connection = read_only::reader(&file, access).map_err(damaged)?;
        schema::check(&connection, &file, || blob::is_any(&config.directory)).map_err(damaged)?;
        let last = event::last(&connection).map_err(damaged)?;
        let blobs = Blobs::at(&config.directory, config.limits.blob);
        let ((last, _), write_queue) = (watch::channel(last), WriteQueue::new(connection));
        let readers = Readers::new(READERS);
        Ok(Self { file, blobs, config, access, write_queue, readers, last, _lock: None })
    }

    fn open_to_write(config: Config) -> Result<Self, WorkspaceError> {
        let path = config.directory.clone();
        let file = path.join(DATABASE);
        let has_blobs = || blob::is_any(&path);
        let make = || directory::make(&path).map_err(|error| WorkspaceError::path(&path, error));
        let lock = match config.role {
            Role::Server => {
                make()?;
                let lock = Lock::take(&path)?;
                directory::warn_if_open(&path);
                Some(lock)
            }
            Role::Creating => {
                make()?;
                None
            }
            Role::Beside | Role::ReadOnly if file.is_file() || has_blobs()? => None,
            Role::Beside | Role::ReadOnly => return Err(WorkspaceError::Missing(path)),
        };
        // Before it is opened: opening an empty database removes the files beside it, which may
        // help to repair it. Checked twice, because the database may have just been created.
        let is_empty = || std::fs::metadata(&file).map_or(true, |it| it.len() == 0);
        if is_empty() && has_blobs()? && is_empty() {
            let details = schema::LOST.to_owned();
            return Err(WorkspaceError::Damaged { path: file, details });
        }
        make_private(&file)
            .and_then(|()| give_to_owner(&file, &path))
            .map_err(|error| WorkspaceError::path(&file, error))?;
        let writer = writer(&file, has_blobs).map_err(|error| schema::damaged(&file, error))?;
        let blobs = Blobs::open(&path, config.limits.blob)?;
        if lock.is_some() {
            gc::sweep(&path, &blobs);
        }
        let last = event::last(&writer).map_err(|error| schema::damaged(&file, error))?;
        let (last, _) = watch::channel(last);
        let (write_queue, readers) = (WriteQueue::new(writer), Readers::new(READERS));
        let access = Access::Shared;
        Ok(Self { file, blobs, config, access, write_queue, readers, last, _lock: lock })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    /// Starts writing a blob.
    pub(crate) fn incoming(&self) -> Result<Incoming, WorkspaceError> {
        self.blobs.writer()
    }

    /// The number of the last event, now and whenever it grows.
    pub(crate) fn follow(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    /// Checks for events of other processes.
    pub(crate) fn find_new_events(&self) -> Result<(), WorkspaceError> {
        let last = self.read(event::last)?;
        self.reached(last);
        Ok(())
    }

    fn reached(&self, number: u64) {
        self.last.send_if_modified(|last| {
            let is_news = number > *last;
            *last = number.max(*last);
            is_news
        });
    }

    /// Reads a consistent state.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, WorkspaceError>,
    ) -> Result<T, WorkspaceError> {
        let open = || read_only::reader(&self.file, self.access);
        self.readers.read(open, work).map_err(|error| schema::damaged(&self.file, error))
    }

    /// The size and MIME type of a blob, if it exists.
    pub(crate) fn blob(&self, hash: &str) -> Result<Option<Blob>, WorkspaceError> {
        check_hash(hash)?;
        self.read(|connection| artifact::blob(connection, hash))
    }

    /// Whether a blob is known and its file exists.
    pub(crate) fn has_blob(&self, hash: &str) -> Result<bool, WorkspaceError> {
        Ok(self.has_file(hash) && self.blob(hash)?.is_some())
    }

    /// Whether the file of a hash exists.
    pub(crate) fn has_file(&self, hash: &str) -> bool {
        self.blobs.path_of(hash).is_file()
    }

    /// Opens a blob for reading, if it exists.
    pub(crate) fn open_blob(&self, hash: &str) -> Result<Option<BlobFile>, WorkspaceError> {
        let Some(blob) = self.blob(hash)? else { return Ok(None) };
        let file = self.blobs.open_file(hash)?;
        Ok(file.map(|file| BlobFile::new(blob, file)))
    }
}

pub(crate) fn check_hash(hash: &str) -> Result<(), Refusal> {
    if is_hash(hash) {
        return Ok(());
    }
    let shown: String = hash.chars().filter(|it| !it.is_control()).take(80).collect();
    Err(Refusal::Hash(shown))
}

/// Makes the names in a directory durable.
fn sync_directory(directory: &Path) -> std::io::Result<()> {
    std::fs::File::open(directory)?.sync_all()
}

/// If we are root, gives a new file to the owner of the directory.
#[cfg(unix)]
fn give_to_owner(path: &Path, directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let (made, owner) = (std::fs::symlink_metadata(path)?, std::fs::metadata(directory)?);
    if made.uid() != 0 || owner.uid() == 0 {
        return Ok(());
    }
    match std::os::unix::fs::lchown(path, Some(owner.uid()), Some(owner.gid())) {
        // The file was root's before, and we are not root.
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

#[cfg(not(unix))]
fn give_to_owner(_: &Path, _: &Path) -> std::io::Result<()> {
    Ok(())
}

fn writer(
    file: &Path,
    has_blobs: impl FnOnce() -> Result<bool, WorkspaceError>,
) -> Result<Connection, WorkspaceError> {
    let mut connection = Connection::open(file)?;
    prepare(&connection)?;
    schema::check(&connection, file, has_blobs)?;
    // Write-ahead logging, synced before a write is acknowledged: readers and the writer do not
    // wait for each other, and a write survives a kill or a power cut.
    migration::write_ahead(&connection, BUSY)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    schema::migrate(&mut connection, file)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> Result<(), WorkspaceError> {
    Ok(database::prepare(connection, BUSY, STATEMENTS)?)
}
