//! A workspace in one file, and back.
//!
//! The file is a database: the workspace's own as it was at one moment, with one more table that
//! has the bytes of every blob that was known then.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, params};

use crate::workspace::WorkspaceError;
use crate::workspace::config::Config;
use crate::workspace::store::{Blobs, DATABASE, Store, schema};

/// The bytes of blobs, in a backup and nowhere else.
const TABLE: &str = "CREATE TABLE backup_blobs (hash TEXT PRIMARY KEY, bytes BLOB NOT NULL)";

impl Store {
    /// Writes everything into a new file, while others read and write; gives how many blobs. What
    /// is written is that of one moment. The file is whole or not there.
    pub(crate) fn backup(&self, file: &Path) -> Result<u64, WorkspaceError> {
        let failed = |error| WorkspaceError::path(file, error);
        if file.exists() {
            return Err(failed(std::io::ErrorKind::AlreadyExists.into()));
        }
        let directory = file.parent().filter(|it| !it.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        let place = tempfile::tempdir_in(directory).map_err(failed)?;
        let copy = place.path().join("backup");
        let blobs = self.copy(&copy)?;
        std::fs::File::open(&copy).and_then(|file| file.sync_all()).map_err(failed)?;
        // A link replaces nothing, but not every file system has them.
        match std::fs::hard_link(&copy, file) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(error),
            Err(_) => std::fs::rename(&copy, file),
            Ok(()) => Ok(()),
        }
        .map_err(failed)?;
        Ok(blobs)
    }

    /// The database as it is at one moment, then the blobs it names. Those that artifacts have stay
    /// what they are; one nobody has may be collected meanwhile, and is not missed.
    fn copy(&self, copy: &Path) -> Result<u64, WorkspaceError> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let reader = Connection::open_with_flags(&self.file, flags)?;
        let name = copy.to_str().ok_or_else(|| {
            WorkspaceError::path(copy, std::io::ErrorKind::InvalidFilename.into())
        })?;
        reader.execute("VACUUM INTO ?1", [name])?;
        let mut target = Connection::open(copy)?;
        target.execute_batch(TABLE)?;
        let transaction = target.transaction()?;
        let mut count = 0;
        {
            let mut hashes = transaction.prepare("SELECT hash FROM blobs ORDER BY hash")?;
            let mut insert = transaction.prepare("INSERT INTO backup_blobs VALUES (?1, ?2)")?;
            let mut rows = hashes.query([])?;
            while let Some(row) = rows.next()? {
                let hash: String = row.get(0)?;
                let path = self.blobs.path_of(&hash);
                match std::fs::read(&path) {
                    Ok(bytes) => {
                        insert.execute(params![hash, bytes])?;
                        count += 1;
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                    Err(error) => return Err(WorkspaceError::path(path, error)),
                }
            }
        }
        transaction.commit()?;
        Ok(count)
    }
}

/// Makes a workspace of a backup, in a directory that has none; gives how many blobs.
pub(crate) fn restore(config: &Config, file: &Path) -> Result<u64, WorkspaceError> {
    let directory = &config.directory;
    let database = directory.join(DATABASE);
    if database.exists() {
        return Err(WorkspaceError::Occupied(directory.clone()));
    }
    let failed = |error| WorkspaceError::path(directory, error);
    let whole = |error| schema::damaged(file, error);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let backup = Connection::open_with_flags(file, flags).map_err(WorkspaceError::from)?;
    schema::check(&backup).map_err(whole)?;
    std::fs::create_dir_all(directory).map_err(failed)?;
    let blobs = Blobs::open(directory, u64::MAX)?;
    let count = unpack(&backup, &blobs).map_err(whole)?;
    let place = tempfile::tempdir_in(directory).map_err(failed)?;
    let copy = place.path().join(DATABASE);
    std::fs::copy(file, &copy).map_err(failed)?;
    let trimmed = Connection::open(&copy)?;
    trimmed.execute_batch("DROP TABLE backup_blobs; VACUUM")?;
    trimmed.close().map_err(|(_, error)| error)?;
    std::fs::File::open(&copy).and_then(|file| file.sync_all()).map_err(failed)?;
    // The database last: before it is there, there is no workspace.
    std::fs::rename(&copy, &database).map_err(failed)?;
    std::fs::File::open(directory).and_then(|it| it.sync_all()).map_err(failed)?;
    Ok(count)
}

fn unpack(backup: &Connection, blobs: &Blobs) -> Result<u64, WorkspaceError> {
    let mut statement = backup.prepare("SELECT hash, bytes FROM backup_blobs")?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        let (hash, bytes): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let mut incoming = blobs.writer()?;
        incoming.write(&bytes)?;
        let incoming = incoming.finish()?;
        if incoming.hash != hash {
            let details = format!("the bytes of the blob {hash} are not those it was stored with");
            return Err(WorkspaceError::Unreadable(details));
        }
        blobs.keep(&incoming)?;
        count += 1;
    }
    Ok(count)
}
