//! The files to import: given paths, and the files in given folders.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// How deep folders may be nested.
const DEPTH: usize = 64;

/// A file to import.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileToImport {
    pub(super) path: PathBuf,
    pub(super) title: String,
    /// The folder it was found in.
    pub(super) set: Option<String>,
}

/// The files that were found, and the number of skipped ones.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub(super) found: Vec<FileToImport>,
    /// Links, pipes, devices, and folders beyond the depth.
    pub(super) others: usize,
    /// Paths that could not be read.
    pub(super) failed: usize,
    hidden: bool,
    /// A folder that is never entered: the workspace itself.
    except: Option<PathBuf>,
}

impl Files {
    pub(super) fn new(hidden: bool, except: &Path) -> Self {
        Self { hidden, except: except.canonicalize().ok(), ..Self::default() }
    }

    /// Adds a file, or the files of a folder in order of their paths.
    pub(super) fn add(&mut self, path: &Path) -> Result<()> {
        let reading = || format!("reading `{}`", path.display());
        let whole = path.canonicalize().with_context(reading)?;
        // The name as given; `.` has one only as an absolute path.
        let name = path.file_name().or(whole.file_name()).unwrap_or(whole.as_os_str());
        let name = name.to_string_lossy().into_owned();
        if !whole.is_dir() {
            self.found.push(FileToImport { path: path.to_owned(), title: name, set: None });
            return Ok(());
        }
        self.walk(path, "", &name, 0).with_context(reading)
    }

    fn walk(
        &mut self,
        folder: &Path,
        prefix: &str,
        set: &str,
        depth: usize,
    ) -> std::io::Result<()> {
        let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name.starts_with('.') && !self.hidden {
                continue;
            }
            let (path, kind) = (entry.path(), entry.file_type()?);
            let title = format!("{prefix}{name}");
            if kind.is_file() {
                self.found.push(FileToImport { path, title, set: Some(set.to_owned()) });
            } else if kind.is_dir() && depth < DEPTH {
                if self.except.is_none() || path.canonicalize().ok() != self.except {
                    self.walk(&path, &format!("{title}/"), set, depth + 1)?;
                }
            } else {
                self.others += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_a_set_of_its_files_in_order() {
        let here = tempfile::tempdir().unwrap();
        let folder = here.path().join("songs");
        for name in ["b.txt", "a/2.txt", "a/1.txt", ".hidden", "w/stored"] {
            let path = folder.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, name).unwrap();
        }
        std::os::unix::fs::symlink("/etc/passwd", folder.join("link")).unwrap();
        let mut files = Files::new(false, &folder.join("w"));
        files.add(&folder).unwrap();
        files.add(&folder.join("b.txt")).unwrap();
        let found: Vec<_> =
            files.found.iter().map(|it| (it.title.as_str(), it.set.as_deref())).collect();
        let of_songs = |title| (title, Some("songs"));
        let expected =
            [of_songs("a/1.txt"), of_songs("a/2.txt"), of_songs("b.txt"), ("b.txt", None)];
        assert_eq!(found, expected);
        assert_eq!(files.others, 1);
        assert!(files.add(&here.path().join("none")).is_err());
        let mut files = Files::new(true, here.path());
        files.add(&folder).unwrap();
        assert_eq!(files.found[0].title, ".hidden");
    }
}
