//! Backup into one file, and restoring it.
//!
//! The file is a database: a consistent copy of the workspace's own, with one more table for the
//! bytes of all blobs, in parts. A damaged or lost blob is reported, and the rest is copied.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, params};
use tidings_store::database::directory;
use tidings_store::temporary;

use crate::WorkspaceError;
use crate::config::Config;
use crate::store::{
    Blobs, DATABASE, IntegrityProblem, Lock, Store, blob, gc, give_to_owner, lock, make_private,
    schema, sync_directory, verify,
};

/// The bytes of blobs, only in backups. Every blob has a part, even the empty one.
const TABLE: &str = "CREATE TABLE backup_parts (
    hash TEXT NOT NULL,
    part INTEGER NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (hash, part)
)";
/// The prefix of directories for unfinished copies.
pub(super) const UNFINISHED: &str = ".tidings-copy-";
/// The length of a part: far below the database's limit, and small in memory.
const PART: u64 = 1 << 20;
/// Suffixes of files beside a database. Leftovers would be taken for those of a restored database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// The result of a backup or a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Carried {
    /// Blobs that were copied completely.
    pub blobs: u64,
    /// Blobs that were not; empty if all is well.
    pub problems: Vec<IntegrityProblem>,
}

impl Carried {
    fn add(&mut self, hash: String, is_used: bool, arrival: Arrival) {
        match arrival {
            Arrival::Whole => self.blobs += 1,
            Arrival::Changed => self.problems.push(IntegrityProblem::Changed { hash }),
            Arrival::Unreadable(details) => {
                self.problems.push(IntegrityProblem::Unreadable { hash, details });
            }
            Arrival::Lost if is_used => self.problems.push(IntegrityProblem::Lost { hash }),
            // An unused blob may be collected at any time.
            Arrival::Lost => {}
        }
    }
}

/// How a blob was copied.
enum Arrival {
    Whole,
    Changed,
    Unreadable(String),
    Lost,
}

impl Store {
    /// Writes a consistent copy of everything into a new file, while others read and write. The
    /// file appears complete or not at all.
    pub(crate) fn backup(&self, file: &Path) -> Result<Carried, WorkspaceError> {
        let failed = |error| WorkspaceError::path(file, error);
        if file.symlink_metadata().is_ok() {
            return Err(WorkspaceError::Taken(file.to_owned()));
        }
        let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        // Remove copies of killed processes.
        temporary::sweep(directory, UNFINISHED);
        let place = temporary::Directory::new(directory, UNFINISHED).map_err(failed)?;
        let copy = place.path().join("backup");
        let carried = self.copy(&copy).map_err(|error| schema::damaged(&self.file, error))?;
        File::open(&copy).and_then(|file| file.sync_all()).map_err(failed)?;
        match put_in_place(&copy, file) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                return Err(WorkspaceError::Taken(file.to_owned()));
            }
            done => done.map_err(failed)?,
        }
        sync_directory(directory).map_err(failed)?;
        Ok(carried)
    }

    /// Copies the database, then the blobs it names. Used blobs stay as they are; an unused one may
    /// be collected meanwhile and is not missed.
    fn copy(&self, copy: &Path) -> Result<Carried, WorkspaceError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&self.file, flags)?;
        let name = copy
            .to_str()
            .ok_or_else(|| WorkspaceError::path(copy, ErrorKind::InvalidFilename.into()))?;
        make_private(copy).map_err(|error| WorkspaceError::path(copy, error))?;
        reader.execute("VACUUM INTO ?1", [name])?;
        let mut target = Connection::open(copy)?;
        target.execute_batch(TABLE)?;
        let transaction = target.transaction()?;
        let mut carried = Carried::default();
        for known in verify::known(&transaction)? {
            let arrival = self.pack(&transaction, &known.hash)?;
            if !matches!(arrival, Arrival::Whole) {
                let rest = "DELETE FROM backup_parts WHERE hash = ?1";
                transaction.prepare_cached(rest)?.execute([&known.hash])?;
            }
            carried.add(known.hash, known.is_used, arrival);
        }
        transaction.commit()?;
        Ok(carried)
    }

    /// Writes the parts of one blob. Unless it arrives whole, the caller removes them.
    fn pack(&self, target: &Connection, hash: &str) -> Result<Arrival, WorkspaceError> {
        let mut file = match self.blobs.open_file(hash) {
            Ok(Some(file)) => file,
            Ok(None) => return Ok(Arrival::Lost),
            Err(error) => return Ok(Arrival::Unreadable(verify::details(&error))),
        };
        let mut insert = target.prepare_cached("INSERT INTO backup_parts VALUES (?1, ?2, ?3)")?;
        let (mut hasher, mut bytes) = (blake3::Hasher::new(), Vec::new());
        for part in 0_i64.. {
            bytes.clear();
            if let Err(error) = (&mut file).take(PART).read_to_end(&mut bytes) {
                return Ok(Arrival::Unreadable(error.to_string()));
            }
            hasher.update(&bytes);
            insert.execute(params![hash, part, bytes])?;
            if (bytes.len() as u64) < PART {
                break;
            }
        }
        let is_whole = hasher.finalize().to_hex().as_str() == hash;
        Ok(if is_whole { Arrival::Whole } else { Arrival::Changed })
    }
}

/// Creates a workspace from a backup, in a directory without one that nobody serves meanwhile.
pub(crate) fn restore(config: &Config, file: &Path) -> Result<Carried, WorkspaceError> {
    let directory = &config.directory;
    // Checked first, so that an invalid file leaves nothing behind.
    let backup = open(file).map_err(|error| no_backup(file, error))?;
    let known = verify::known(&backup).map_err(|error| no_backup(file, error))?;
    restore_into(directory, file, &backup, known)
}

/// Opens a backup for reading.
fn open(file: &Path) -> Result<Connection, WorkspaceError> {
    let failed = |error| WorkspaceError::path(file, error);
    if !File::open(file).and_then(|it| it.metadata()).map_err(failed)?.is_file() {
        let details = "it is not a file".to_owned();
        return Err(WorkspaceError::NoBackup { path: file.to_owned(), details });
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let backup = Connection::open_with_flags(file, flags)?;
    let is_workspace = schema::kind(&backup, file)? == schema::Kind::Workspace;
    let parts = "SELECT 1 FROM sqlite_master WHERE name = 'backup_parts'";
    if is_workspace && backup.prepare(parts)?.exists([])? {
        return Ok(backup);
    }
    let details = if is_workspace {
        "it is the database of a workspace, without the bytes of its blobs"
    } else {
        "it is not the database of a workspace"
    };
    Err(WorkspaceError::NoBackup { path: file.to_owned(), details: details.to_owned() })
}

/// Turns an error about a damaged or foreign database into one about the backup.
fn no_backup(file: &Path, error: WorkspaceError) -> WorkspaceError {
    match schema::damaged(file, error) {
        WorkspaceError::Damaged { path, details } => WorkspaceError::NoBackup { path, details },
        error => error,
    }
}

/// Directories created for a restore. Unless they are kept, they are removed again, while the
/// directory is still locked.
struct RestoredFiles {
    directories: Vec<PathBuf>,
    /// The directory itself, if it is new too.
    around: Option<PathBuf>,
}

impl RestoredFiles {
    fn keep(mut self) {
        self.directories.clear();
        self.around = None;
    }
}

impl Drop for RestoredFiles {
    fn drop(&mut self) {
        for path in &self.directories {
            drop(std::fs::remove_dir_all(path));
        }
        if let Some(path) = &self.around {
            drop(std::fs::remove_file(path.join(lock::FILE)));
            drop(std::fs::remove_dir(path));
        }
    }
}

fn restore_into(
    directory: &Path,
    file: &Path,
    backup: &Connection,
    known: Vec<verify::KnownBlob>,
) -> Result<Carried, WorkspaceError> {
    let database = directory.join(DATABASE);
    let failed = |error| WorkspaceError::path(directory, error);
    let around = (!directory.exists()).then(|| directory.to_owned());
    directory::make(directory).map_err(failed)?;
    let _lock = Lock::take(directory)?;
    let mut directories = blob::DIRECTORIES.map(|name| directory.join(name)).to_vec();
    directories.retain(|path| !path.exists());
    // Order: dropped before the lock.
    let made = RestoredFiles { directories, around };
    let taken = BESIDE.iter().map(|ending| beside(&database, ending)).any(|it| it.exists());
    if taken || database.exists() {
        return Err(WorkspaceError::Occupied(directory.to_owned()));
    }
    let blobs = Blobs::open(directory, u64::MAX)?;
    gc::sweep(directory, &blobs);
    let carried = unpack(backup, known, &blobs)?;
    let place = temporary::Directory::new(directory, UNFINISHED).map_err(failed)?;
    let copy = place.path().join(DATABASE);
    make_private(&copy).map_err(failed)?;
    let mut source = File::open(file).map_err(|error| WorkspaceError::path(file, error))?;
    let mut target = File::options().write(true).open(&copy).map_err(failed)?;
    std::io::copy(&mut source, &mut target).map_err(failed)?;
    drop(target);
    trim(&copy).map_err(|error| no_backup(file, error))?;
    give_to_owner(&copy, directory).map_err(failed)?;
    File::open(&copy).and_then(|file| file.sync_all()).map_err(failed)?;
    // The database comes last: without it there is no workspace.
    match put_in_place(&copy, &database) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(WorkspaceError::Occupied(directory.to_owned()));
        }
        done => done.map_err(failed)?,
    }
    sync_directory(directory).map_err(failed)?;
    made.keep();
    Ok(carried)
}

/// Makes a copy of a backup the database of a workspace.
fn trim(copy: &Path) -> Result<(), WorkspaceError> {
    let trimmed = Connection::open(copy)?;
    trimmed.execute_batch("DROP TABLE backup_parts; VACUUM")?;
    trimmed.close().map_err(|(_, error)| error)?;
    Ok(())
}

fn unpack(
    backup: &Connection,
    all: Vec<verify::KnownBlob>,
    blobs: &Blobs,
) -> Result<Carried, WorkspaceError> {
    let mut carried = Carried::default();
    for known in all {
        // From here on, an error concerns a single blob.
        let arrival = match unpack_one(backup, blobs, &known.hash) {
            Err(error @ WorkspaceError::Database(_)) => {
                Arrival::Unreadable(verify::details(&error))
            }
            arrival => arrival?,
        };
        carried.add(known.hash, known.is_used, arrival);
    }
    Ok(carried)
}

fn unpack_one(backup: &Connection, blobs: &Blobs, hash: &str) -> Result<Arrival, WorkspaceError> {
    let mut statement =
        backup.prepare_cached("SELECT bytes FROM backup_parts WHERE hash = ?1 ORDER BY part")?;
    let mut rows = statement.query([hash])?;
    let mut incoming = None;
    while let Some(row) = rows.next()? {
        let mut writer = incoming.map_or_else(|| blobs.writer(), Ok)?;
        writer.write(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?;
        incoming = Some(writer);
    }
    let Some(incoming) = incoming else { return Ok(Arrival::Lost) };
    let incoming = incoming.finish()?;
    if incoming.hash != hash {
        return Ok(Arrival::Changed);
    }
    blobs.keep(&incoming)?;
    Ok(Arrival::Whole)
}

/// Renames a file without replacing another.
fn put_in_place(file: &Path, name: &Path) -> std::io::Result<()> {
    // A link never replaces a file, but some file systems have none.
    match std::fs::hard_link(file, name) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Err(error),
        Err(_) => std::fs::rename(file, name),
        Ok(()) => Ok(()),
    }
}

fn beside(database: &Path, ending: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(ending);
    name.into()
}
