//! Lock files: one process at a time uses a directory, and others can read which.

use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

/// More bytes than any description of a holder.
const DESCRIPTION: u64 = 1024;

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds it. This is the description it wrote, which may be empty.
    #[error("another process holds the lock")]
    Held(String),
    /// The file cannot be opened, locked or written.
    #[error("the lock file cannot be used")]
    File(#[source] io::Error),
}

/// A locked file. The lock ends when this is dropped, or when the process is killed.
///
/// ```
/// use tidings_store::lock::{self, LockError, LockFile};
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("server.lock");
/// let lock = LockFile::open(&path)?.lock("process 7")?;
/// let second = LockFile::open(&path)?.lock("process 8");
/// assert!(matches!(second, Err(LockError::Held(holder)) if holder == "process 7"));
/// drop(lock);
/// assert_eq!(lock::holder(&path)?, None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct LockFile {
    file: File,
}

impl LockFile {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        Ok(Self { file: options.open(path)? })
    }

    /// Locks the file and writes a description of this process into it.
    ///
    /// # Errors
    ///
    /// Another process holds the lock, or the file cannot be locked or written.
    pub fn lock(mut self, description: &str) -> Result<Self, LockError> {
        match self.file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(LockError::Held(read(&self.file))),
            Err(TryLockError::Error(error)) => return Err(LockError::File(error)),
        }
        self.file
            .set_len(0)
            .and_then(|()| self.file.rewind())
            .and_then(|()| writeln!(self.file, "{description}"))
            .map_err(LockError::File)?;
        Ok(self)
    }
}

/// The description of the process that holds a lock, if one does. A missing file is not locked.
///
/// # Errors
///
/// The file cannot be opened or locked.
pub fn holder(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(read(&file))),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The written description. If it cannot be read, it is empty: the lock is held all the same.
fn read(file: &File) -> String {
    let mut text = Vec::new();
    drop(file.take(DESCRIPTION).read_to_end(&mut text));
    String::from_utf8_lossy(&text).trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_described_and_its_predecessor_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert_eq!(holder(&path).unwrap(), None);
        drop(LockFile::open(&path).unwrap().lock("a long description").unwrap());
        assert_eq!(holder(&path).unwrap(), None);
        let lock = LockFile::open(&path).unwrap().lock("short").unwrap();
        assert_eq!(holder(&path).unwrap().as_deref(), Some("short"));
        let refused = LockFile::open(&path).unwrap().lock("second").unwrap_err();
        assert!(matches!(refused, LockError::Held(by) if by == "short"));
        drop(lock);
        LockFile::open(&path).unwrap().lock("third").unwrap();
    }

    #[test]
    fn a_foreign_description_is_cut_and_repaired() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = LockFile::open(&path).unwrap().lock("").unwrap();
        std::fs::write(&path, [b"\xff".as_slice(), &[b'x'; 5000]].concat()).unwrap();
        let described = holder(&path).unwrap().unwrap();
        assert_eq!(described.chars().count(), 1024);
        assert!(described.starts_with('\u{fffd}'));
        drop(lock);
    }
}
