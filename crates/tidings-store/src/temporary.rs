//! Temporary files and directories that can be told apart from leftovers of killed processes.
//!
//! Each is locked while it is in use. The system releases the lock when the process ends, for
//! whatever reason; so a file that can be locked is not in use any more.

use std::fs::{File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::{Builder, NamedTempFile, TempDir};

/// How often another name is tried. A file that is not locked yet looks like a leftover, and may be
/// removed.
const TRIES: usize = 16;

/// A private directory, removed when it is dropped.
#[derive(Debug)]
pub struct Directory {
    // Order: removed while it is still locked.
    directory: TempDir,
    _lock: File,
}

impl Directory {
    /// Creates a directory whose name has this prefix.
    ///
    /// # Errors
    ///
    /// The directory cannot be created.
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

    /// Its path.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// Creates a file whose name has this prefix; it is removed when it is dropped.
///
/// # Errors
///
/// The file cannot be created.
pub fn file(place: &Path, prefix: &str) -> io::Result<NamedTempFile> {
    for _ in 0..TRIES {
        let file = Builder::new().prefix(prefix).tempfile_in(place)?;
        if claim(file.path(), file.as_file()) {
            return Ok(file);
        }
    }
    Err(io::Error::other("temporary files go away as soon as they are made"))
}

/// Locks a new file; false if another process removed it before.
fn claim(path: &Path, file: &File) -> bool {
    match file.try_lock() {
        // If nothing can be locked, nothing is removed either.
        Ok(()) | Err(TryLockError::Error(_)) => is_same(path, file),
        Err(TryLockError::WouldBlock) => false,
    }
}

/// Removes leftovers of killed processes whose names have this prefix.
pub fn sweep(place: &Path, prefix: &str) {
    let Ok(entries) = std::fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix)) {
            // A file that cannot be opened or removed is somebody else's, or is removed next time.
            drop(remove_unless_used(&entry.path()));
        }
    }
}

fn remove_unless_used(path: &Path) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(path)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    // In a directory that everybody can write, a directory of that name may be anybody's.
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

/// Whether a path still names an open file.
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
        // A leftover of a killed process has no lock.
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

    /// Files created while another process removes leftovers exist when they are returned, and
    /// stay.
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
