//! Private data directories.

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;

use tracing::warn;

/// The permissions of users other than the owner.
const OTHERS: u32 = 0o077;

/// Creates a directory that only its owner can read, and its parents with the usual mode. An
/// existing directory keeps its mode.
///
/// # Errors
///
/// The directory cannot be created.
pub fn make(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(path) {
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made,
    }
}

/// Logs a warning if other users can read a directory; for a server that starts.
pub fn warn_if_open(path: &Path) {
    if let Some(mode) = open_mode(path) {
        let hint = format!("chmod 700 {}", path.display());
        warn!(mode, hint, "others can read the data directory");
    }
}

/// The mode of a directory that other users can read.
fn open_mode(path: &Path) -> Option<String> {
    let mode = path.metadata().ok()?.permissions().mode() & 0o777;
    (mode & OTHERS != 0).then(|| format!("{mode:04o}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_directory_is_for_its_owner_only_and_an_old_one_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("above/data");
        make(&path).unwrap();
        assert_eq!(open_mode(&path), None);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
        make(&path).unwrap();
        assert_eq!(open_mode(&path).as_deref(), Some("0750"));
        std::fs::write(place.path().join("file"), "").unwrap();
        make(&place.path().join("file")).unwrap_err();
        make(&place.path().join("file/data")).unwrap_err();
    }
}
