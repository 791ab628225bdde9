//! Blobs as files named by their hash: complete or absent.
//!
//! A blob is written under another name, synced and renamed; then its directory is synced. A file
//! named by a hash has that hash, even after a power cut.

use std::collections::HashSet;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use tempfile::NamedTempFile;
use tidings_store::database::directory;
use tidings_store::temporary;

use crate::store::{give_to_owner, sync_directory};
use crate::{Refusal, WorkspaceError};

/// The directory for incomplete blobs.
const INCOMING: &str = "incoming";
const OBJECTS: &str = "objects";
/// The prefix of incomplete blobs. They are locked while they are written.
pub(super) const PART: &str = "part-";
/// The directories for blobs.
pub(super) const DIRECTORIES: [&str; 2] = [OBJECTS, INCOMING];
/// How many of the first bytes decide about the MIME type.
const HEAD: usize = 8 << 10;

/// The blob files of a workspace.
#[derive(Clone, Debug)]
pub(crate) struct Blobs {
    directory: PathBuf,
    limit: u64,
    /// The directories whose own names are durable. They are never removed.
    shelves: Arc<Mutex<HashSet<PathBuf>>>,
}

impl Blobs {
    /// The files in a directory; missing directories are created.
    pub(super) fn open(root: &Path, limit: u64) -> Result<Self, WorkspaceError> {
        for name in DIRECTORIES {
            let path = root.join(name);
            let failed = |error| WorkspaceError::path(&path, error);
            directory::make(&path).map_err(failed)?;
            give_to_owner(&path, root).map_err(failed)?;
        }
        sync_directory(root).map_err(|error| WorkspaceError::path(root, error))?;
        let parent = root.parent().filter(|it| !it.as_os_str().is_empty());
        // The parent may be unreadable; then somebody else created the directory.
        drop(sync_directory(parent.unwrap_or(Path::new("."))));
        Ok(Self::at(root, limit))
    }

    /// The files in a directory as they are.
    pub(super) fn at(directory: &Path, limit: u64) -> Self {
        Self { directory: directory.to_owned(), limit, shelves: Arc::default() }
    }

    /// Starts writing a blob.
    pub(crate) fn writer(&self) -> Result<Incoming, WorkspaceError> {
        let path = self.incoming();
        let file = self.temporary().map_err(|error| WorkspaceError::path(&path, error))?;
        let (hasher, head) = (blake3::Hasher::new(), Vec::new());
        Ok(Incoming {
            file,
            hasher,
            head,
            size: 0,
            is_text: true,
            tail: Vec::new(),
            limit: self.limit,
        })
    }

    /// Stores complete bytes under their hash. If equal bytes exist, those are kept.
    pub(super) fn keep(&self, incoming: &Whole) -> Result<(), WorkspaceError> {
        let path = self.path_of(&incoming.hash);
        let failed = |error| WorkspaceError::path(&path, error);
        if self.touch(&incoming.hash, incoming.size)? {
            return Ok(());
        }
        let shelf = path.parent().unwrap_or(&self.directory);
        if !shelf.is_dir() {
            directory::make(shelf).map_err(failed)?;
            give_to_owner(shelf, &self.directory).map_err(failed)?;
        }
        // A link, so that the bytes can be stored again if they are collected meanwhile. An
        // existing file has another length here.
        if std::fs::hard_link(incoming.file.path(), &path).is_err() {
            self.replace(incoming, &path).map_err(failed)?;
        }
        self.sync(shelf).map_err(failed)
    }

    /// Makes the name of a blob durable that another process stored: it may not have done so yet.
    pub(super) fn settle(&self, incoming: &Whole) -> Result<(), WorkspaceError> {
        let path = self.path_of(&incoming.hash);
        let failed = |error| WorkspaceError::path(&path, error);
        if is_same(&path, incoming.file.as_file()).map_err(failed)? {
            return Ok(());
        }
        self.sync(path.parent().unwrap_or(&self.directory)).map_err(failed)
    }

    /// Makes the names in a directory durable, and its own.
    fn sync(&self, shelf: &Path) -> std::io::Result<()> {
        sync_directory(shelf)?;
        let known = || self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        if !known().contains(shelf) {
            sync_directory(&self.directory.join(OBJECTS))?;
            known().insert(shelf.to_owned());
        }
        Ok(())
    }

    fn temporary(&self) -> std::io::Result<NamedTempFile> {
        let file = temporary::file(&self.incoming(), PART)?;
        give_to_owner(file.path(), &self.directory)?;
        Ok(file)
    }

    /// Replaces an existing file with a copy, also without links.
    fn replace(&self, incoming: &Whole, path: &Path) -> std::io::Result<()> {
        let copy = self.temporary()?;
        std::fs::copy(incoming.file.path(), copy.path())?;
        copy.as_file().sync_all()?;
        copy.persist(path)?;
        Ok(())
    }

    /// Renews the age of a blob, if it exists with this length.
    pub(super) fn touch(&self, hash: &str, size: u64) -> Result<bool, WorkspaceError> {
        let path = self.path_of(hash);
        let failed = |error| WorkspaceError::path(&path, error);
        let file = match File::options().append(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed(error)),
        };
        if file.metadata().map_err(failed)?.len() != size {
            return Ok(false);
        }
        file.set_modified(SystemTime::now()).map_err(failed)?;
        Ok(true)
    }

    /// Opens the file of a hash, if it exists.
    pub(crate) fn open_file(&self, hash: &str) -> Result<Option<File>, WorkspaceError> {
        let path = self.path_of(hash);
        match File::open(&path) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(WorkspaceError::path(path, error)),
        }
    }

    /// The beginning of a blob as text, if it is text.
    pub(super) fn text(&self, hash: &str, limit: u64) -> Result<Option<String>, WorkspaceError> {
        let Some(file) = self.open_file(hash)? else { return Ok(None) };
        let mut bytes = Vec::new();
        file.take(limit)
            .read_to_end(&mut bytes)
            .map_err(|error| WorkspaceError::path(self.path_of(hash), error))?;
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) => text,
            Err(error) if error.error_len().is_none() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(_) => return Ok(None),
        };
        Ok((!text.contains('\0')).then(|| text.to_owned()))
    }

    /// The path of a blob.
    pub(super) fn path_of(&self, hash: &str) -> PathBuf {
        let shelf = hash.get(..2).unwrap_or_default();
        self.directory.join(OBJECTS).join(shelf).join(hash)
    }

    pub(super) fn incoming(&self) -> PathBuf {
        self.directory.join(INCOMING)
    }

    /// All blobs, sorted by hash.
    pub(super) fn all(&self) -> Result<Vec<(String, std::fs::Metadata)>, WorkspaceError> {
        let mut found = Vec::new();
        let objects = self.directory.join(OBJECTS);
        for shelf in listed(&objects)? {
            if !shelf.is_dir() {
                continue;
            }
            for path in listed(&shelf)? {
                let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                let metadata = match std::fs::symlink_metadata(&path) {
                    Ok(metadata) => metadata,
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(WorkspaceError::path(path, error)),
                };
                if is_hash(name) && metadata.is_file() {
                    found.push((name.to_owned(), metadata));
                }
            }
        }
        found.sort_by(|one, other| one.0.cmp(&other.0));
        Ok(found)
    }
}

/// Whether a directory has any blob.
pub(super) fn is_any(directory: &Path) -> Result<bool, WorkspaceError> {
    let objects = directory.join(OBJECTS);
    if !objects.is_dir() {
        return Ok(false);
    }
    for shelf in listed(&objects)?.iter().filter(|it| it.is_dir()) {
        let name =
            |path: &PathBuf| path.file_name().and_then(|it| it.to_str()).is_some_and(is_hash);
        if listed(shelf)?.iter().any(name) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The entries of a directory.
pub(super) fn listed(directory: &Path) -> Result<Vec<PathBuf>, WorkspaceError> {
    let failed = |error| WorkspaceError::path(directory, error);
    let entries = std::fs::read_dir(directory).map_err(failed)?;
    entries.map(|entry| Ok(entry.map_err(failed)?.path())).collect()
}

/// A blob while it is written. Dropped, it is removed.
#[derive(Debug)]
pub(crate) struct Incoming {
    file: NamedTempFile,
    hasher: blake3::Hasher,
    head: Vec<u8>,
    /// The beginning of an incomplete character.
    tail: Vec<u8>,
    size: u64,
    is_text: bool,
    limit: u64,
}

impl Incoming {
    /// Adds bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), WorkspaceError> {
        self.size += bytes.len() as u64;
        if self.size > self.limit {
            return Err(Refusal::BlobTooLarge { limit: self.limit }.into());
        }
        self.hasher.update(bytes);
        self.look(bytes);
        let room = HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        let path = self.file.path().to_owned();
        self.file.write_all(bytes).map_err(|error| WorkspaceError::path(path, error))
    }

    /// Makes the bytes durable.
    pub(crate) fn finish(mut self) -> Result<Whole, WorkspaceError> {
        let path = self.file.path().to_owned();
        let failed = |error| WorkspaceError::path(&path, error);
        self.file.flush().map_err(failed)?;
        self.file.as_file().sync_all().map_err(failed)?;
        let hash = self.hasher.finalize().to_hex().to_string();
        let is_text = self.is_text && self.tail.is_empty();
        let mime = match infer::get(&self.head) {
            Some(kind) => kind.mime_type(),
            None if is_text => "text/plain",
            None => "application/octet-stream",
        };
        Ok(Whole { hash, size: self.size, mime: mime.to_owned(), file: self.file })
    }

    /// Checks whether the bytes are still text.
    fn look(&mut self, bytes: &[u8]) {
        if !self.is_text {
            return;
        }
        let joined;
        let text = if self.tail.is_empty() {
            bytes
        } else {
            joined = [&self.tail, bytes].concat();
            &joined
        };
        self.is_text = !text.contains(&0);
        match std::str::from_utf8(text) {
            Ok(_) => self.tail = Vec::new(),
            Err(error) if error.error_len().is_none() => {
                self.tail = text[error.valid_up_to()..].to_vec();
            }
            Err(_) => self.is_text = false,
        }
    }
}

/// Durable bytes that are not a blob yet.
#[derive(Debug)]
pub(crate) struct Whole {
    pub(crate) hash: String,
    pub(crate) size: u64,
    /// The guessed MIME type.
    pub(crate) mime: String,
    file: NamedTempFile,
}

/// Whether a text is a hash as we write it.
pub(crate) fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it))
}

/// Whether a path still names an open file, if the system can tell.
#[cfg(unix)]
fn is_same(path: &Path, file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    let (one, other) = (std::fs::metadata(path)?, file.metadata()?);
    Ok((one.dev(), one.ino()) == (other.dev(), other.ino()))
}

#[cfg(not(unix))]
fn is_same(_: &Path, _: &File) -> std::io::Result<bool> {
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;
    use crate::store::Store;

    fn blobs(limit: u64) -> (tempfile::TempDir, Blobs) {
        let directory = tempfile::tempdir().unwrap();
        let blobs = Blobs::open(directory.path(), limit).unwrap();
        (directory, blobs)
    }

    fn whole(blobs: &Blobs, parts: &[&[u8]]) -> Whole {
        let mut writer = blobs.writer().unwrap();
        for part in parts {
            writer.write(part).unwrap();
        }
        writer.finish().unwrap()
    }

    #[test]
    fn bytes_are_found_by_their_hash_and_nothing_else_stays() {
        let (_directory, blobs) = blobs(100);
        let whole = whole(&blobs, &[b"hel", b"lo"]);
        assert_eq!(whole.hash, blake3::hash(b"hello").to_hex().as_str());
        assert!(blobs.open_file(&whole.hash).unwrap().is_none());
        blobs.keep(&whole).unwrap();
        blobs.keep(&whole).unwrap();
        assert_eq!(blobs.text(&whole.hash, 3).unwrap().as_deref(), Some("hel"));
        drop(whole);
        assert_eq!(listed(&blobs.incoming()).unwrap(), Vec::<PathBuf>::new());
        assert_eq!(blobs.all().unwrap().len(), 1);
    }

    #[test]
    fn a_file_that_was_cut_is_replaced() {
        let (_directory, blobs) = blobs(100);
        let whole = whole(&blobs, &[b"hello"]);
        let path = blobs.path_of(&whole.hash);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "hel").unwrap();
        blobs.keep(&whole).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"hello");
    }

    #[test]
    fn bytes_another_put_there_are_made_durable_before_they_are_known() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(Config::new(directory.path())).unwrap();
        let whole = whole(&store.blobs, &[b"hello"]);
        let path = store.blobs.path_of(&whole.hash);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "hello").unwrap();
        store.put(whole, None, "tester").unwrap();
        assert!(store.blobs.shelves.lock().unwrap().contains(path.parent().unwrap()));
    }

    #[test]
    #[cfg(unix)]
    fn what_root_stores_is_the_directorys_owners() {
        use std::os::unix::fs::{MetadataExt as _, chown};
        let (directory, _) = blobs(100);
        // Without root, the owner is ours already.
        drop(chown(directory.path(), Some(4321), Some(4321)));
        std::fs::remove_dir(directory.path().join(INCOMING)).unwrap();
        let blobs = Blobs::open(directory.path(), 100).unwrap();
        let whole = whole(&blobs, &[b"hello"]);
        blobs.keep(&whole).unwrap();
        let owner = |path: &Path| std::fs::metadata(path).unwrap().uid();
        let path = blobs.path_of(&whole.hash);
        for path in [&path, path.parent().unwrap(), &blobs.incoming()] {
            assert_eq!(owner(path), owner(directory.path()), "{}", path.display());
        }
    }

    #[test]
    fn more_than_the_limit_is_refused() {
        let (_directory, blobs) = blobs(4);
        let mut writer = blobs.writer().unwrap();
        writer.write(b"1234").unwrap();
        let error = writer.write(b"5").unwrap_err();
        assert_eq!(error.refusal(), Some(&Refusal::BlobTooLarge { limit: 4 }));
    }

    #[test]
    fn the_kind_is_found_in_the_bytes() {
        #[track_caller]
        fn check(parts: &[&[u8]], expected: &str) {
            let (_directory, blobs) = blobs(100);
            assert_eq!(whole(&blobs, parts).mime, expected);
        }
        check(&["gr\u{fc}n".as_bytes()], "text/plain");
        check(&[b"gr\xc3", b"\xbcn"], "text/plain");
        check(&[b"gr\xc3"], "application/octet-stream");
        check(&[b"a\0b"], "application/octet-stream");
        check(&[b"\x89PNG\r\n\x1a\n0000"], "image/png");
        check(&[], "text/plain");
    }
}
