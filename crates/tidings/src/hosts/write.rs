//! Replaces a file completely or not at all, and keeps the old one as a backup.

use std::ffi::OsString;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};

use crate::draft::draft;
use crate::report::Hint;

/// A file as it was read, so that concurrent changes are not overwritten.
pub(crate) struct Original {
    /// The path as given.
    path: PathBuf,
    /// The path behind links: a link to a file stays a link.
    real: PathBuf,
    /// Its content; `None` if there is no file.
    text: Option<String>,
}

impl Original {
    /// Reads the file, if there is one.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let real = match std::fs::canonicalize(path) {
            Ok(real) => real,
            Err(error) if error.kind() == ErrorKind::NotFound => path.to_owned(),
            Err(error) => return Err(error).with_context(|| reading(path)),
        };
        Ok(Self { text: text(&real)?, path: path.to_owned(), real })
    }

    /// Its content; `None` if there is no file.
    pub(crate) fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Backs up the old file and writes the new text. Returns the path of the backup.
    pub(crate) fn replace(&self, new: &str) -> Result<Option<PathBuf>> {
        let writing = || format!("writing `{}`", self.path.display());
        let metadata = self.text.as_ref().map(|_| std::fs::metadata(&self.real));
        let metadata = metadata.transpose().with_context(writing)?;
        let file = draft(&self.real, metadata.as_ref(), new.as_bytes()).with_context(writing)?;
        if text(&self.real)? != self.text {
            return Err(anyhow!(
                "`{}` was changed by another program meanwhile",
                self.path.display()
            )
            .context(Hint("run the command again".to_owned())));
        }
        let backup = match (&self.text, &metadata) {
            (Some(text), Some(metadata)) => Some(back_up(&self.path, text, metadata)?),
            _ => None,
        };
        if metadata.is_some() {
            file.persist(&self.real).map(drop).map_err(|error| error.error)
        } else {
            // A file that was created since then is not replaced.
            file.persist_noclobber(&self.real).map(drop).map_err(|error| error.error)
        }
        .with_context(writing)?;
        Ok(backup)
    }
}

fn reading(path: &Path) -> String {
    format!("reading `{}`", path.display())
}

fn text(path: &Path) -> Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| reading(path)),
    }
}

/// Copies the old content to `FILE.bak`, or to the first free name of `FILE.bak.1` and so on.
fn back_up(path: &Path, text: &str, metadata: &Metadata) -> Result<PathBuf> {
    for number in 0.. {
        let mut name: OsString = path.into();
        name.push(if number == 0 { ".bak".to_owned() } else { format!(".bak.{number}") });
        let backup = PathBuf::from(name);
        let writing = || format!("writing the backup `{}`", backup.display());
        // Readers of the copy must be readers of the file.
        let mode = metadata.mode() & 0o777;
        let opened: std::io::Result<File> =
            OpenOptions::new().write(true).create_new(true).mode(mode).open(&backup);
        match opened {
            Ok(mut file) => {
                file.write_all(text.as_bytes()).with_context(writing)?;
                file.sync_all().with_context(writing)?;
                return Ok(backup);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error).with_context(writing),
        }
    }
    unreachable!("one of all numbers is free")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn the_old_file_is_kept_each_time_under_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        assert_eq!(Original::read(&file).unwrap().replace("0").unwrap(), None);
        for (new, backup) in [("1", "mcp.json.bak"), ("2", "mcp.json.bak.1")] {
            let kept = Original::read(&file).unwrap().replace(new).unwrap().unwrap();
            assert_eq!(kept, folder.path().join(backup));
        }
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("mcp.json.bak"), read("mcp.json.bak.1")), ("0".into(), "1".into()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn permissions_and_links_stay() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("real.json"), folder.path().join("link.json"));
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let backup = Original::read(&link).unwrap().replace("new").unwrap().unwrap();
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
        assert_eq!((mode(&file), mode(&backup)), (0o600, 0o600));
    }

    #[test]
    fn what_others_write_meanwhile_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mcp.json");
        std::fs::write(&file, "old").unwrap();
        let original = Original::read(&file).unwrap();
        std::fs::write(&file, "theirs").unwrap();
        let error = original.replace("ours").unwrap_err();
        assert!(format!("{error:#}").contains("changed by another program"), "{error:#}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
