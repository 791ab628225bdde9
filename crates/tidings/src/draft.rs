//! A file that is written completely before it replaces another.

use std::fs::{Metadata, Permissions};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::NamedTempFile;

/// Permissions of a new file, before the user's mask.
const NEW: u32 = 0o666;

/// Writes a temporary file beside `path`, with the permissions of the file there, if any.
/// Persisting it replaces that file in one step; dropping it removes it.
pub(crate) fn draft(
    path: &Path,
    old: Option<&Metadata>,
    bytes: &[u8],
) -> std::io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mode = old.map_or(NEW, |old| old.permissions().mode() & 0o7777);
    let mut file = tempfile::Builder::new()
        .prefix(".tidings-")
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder.unwrap_or(Path::new(".")))?;
    file.write_all(bytes)?;
    if let Some(old) = old {
        // The mask may have removed permissions.
        file.as_file().set_permissions(old.permissions())?;
    }
    file.as_file().sync_all()?;
    Ok(file)
}
