//! Temporary files and directories that can be told from those of a process that died.
//!
//! Each is locked while it is in use. The system releases the lock when the process ends, however
//! it ends, so whoever can take the lock knows that nobody uses the thing any more.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile, TempDir};

/// How often another name is tried. One that was made and not locked yet looks like one whose owner
/// died, and may be swept away.
const TRIES: usize = 16;

/// A directory for our eyes only, gone when this is dropped.
#[derive(Debug)]
pub struct Directory {
    // Order: it is removed while it is still locked.
    directory: TempDir,
    _lock: File,
}

impl Directory {
    /// Makes a directory whose name begins so.
    ///
    /// # Errors
    ///
    /// It cannot be made there.
    pub fn new(place: &Path, prefix: &str) -> io::Result<Self> {
        let mut builder = Builder::new();
        builder.prefix(prefix).permissions(Permissions::from_mode(0o700));
        for _ in 0..TRIES {
            let directory = builder.tempdir_in(place)?;
            let opened = File::open(directory.path());
            if let Some(lock) = opened.ok().filter(|file| claim(directory.path(), file)) {
                return Ok(Self { directory, _lock: lock });
            }
        }
        Err(io::Error::other("temporary directories go away as soon as they are made"))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Makes a file whose name begins so; it is gone when this is dropped.
///
/// # Errors
///
/// It cannot be made there.
pub fn file(place: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    for _ in 0..TRIES {
        let file = Builder::new().prefix(prefix).tempfile_in(place)?;
        if claim(file.path(), file.as_file()) {
            return Ok(file);
        }
    }
    Err(io::Error::other("temporary files go away as soon as they are made"))
}

/// Locks what was just made. False if somebody swept it away before.
fn claim(path: &Path, file: &File) -> bool {
    match file.try_lock() {
        // Where nothing can be locked, nothing is swept away either.
        Ok(()) | Err(TryLockError::Error(_)) => is_same(path, file),
        Err(TryLockError::WouldBlock) => false,
    }
}

/// Removes what processes that died left under names that begin so, as far as it can be told.
pub fn sweep(place: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
            // What cannot be looked at or removed is somebody else's, or is met again next time.
            drop(remove_unless_used(&entry.path()));
        }
    }
}

fn remove_unless_used(path: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(path)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    // In a place that everybody can write, a directory of that name can be anybody's.
    if !(metadata.is_file() || metadata.is_dir() && is_ours) {
        return Ok(());
    }
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    if file.try_lock().is_err() || !is_same(path, &file) {
        return Ok(());
    }
    if metadata.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) }
}

/// Whether a name is that of an open file.
fn is_same(path: &Path, file: &File) -> bool {
    let number = |it: std::fs::Metadata| (it.dev(), it.ino());
    let there = std::fs::symlink_metadata(path).map(number).ok();
    there.is_some() && there == file.metadata().map(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(place: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(place).unwrap();
        let mut names: Vec<_> =
            entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_in_use_stays_and_what_a_dead_process_left_goes() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        // What a process that was killed leaves has no lock.
        std::fs::create_dir_all(at("part-dead/inner")).unwrap();
        std::fs::write(at("part-dead/inner/file"), "x").unwrap();
        std::fs::write(at("part-half"), "x").unwrap();
        std::fs::write(at("other"), "x").unwrap();
        std::os::unix::fs::symlink(at("other"), at("part-link")).unwrap();
        let (directory, file) =
            (Directory::new(place.path(), "part-").unwrap(), file(place.path(), "part-").unwrap());
        sweep(place.path(), "part-");
        assert!(directory.path().is_dir() && file.path().is_file());
        drop((directory, file));
        assert_eq!(names(place.path()), ["other", "part-link"]);
        sweep(&at("nowhere"), "part-");
    }

    #[test]
    fn a_directory_is_for_its_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let directory = Directory::new(place.path(), "part-").unwrap();
        assert_eq!(directory.path().metadata().unwrap().mode() & 0o777, 0o700);
    }

    /// What is made while somebody else sweeps is there when it is returned, and stays.
    #[test]
    fn making_and_sweeping_at_once_takes_nothing_away() {
        let place = tempfile::tempdir().unwrap();
        let done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    sweep(place.path(), "part-");
                }
            });
            for _ in 0..300 {
                let directory = Directory::new(place.path(), "part-").unwrap();
                let file = file(directory.path(), "part-").unwrap();
                assert!(directory.path().is_dir() && file.path().is_file());
            }
            done.store(true, std::sync::atomic::Ordering::Relaxed);
        });
    }
}
