//! Reading a blob: in parts, or completely and compared with its hash.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek as _, SeekFrom};

use crate::WorkspaceError;
use crate::record::Blob;

/// A blob that is open for reading.
#[derive(Debug)]
pub struct BlobFile {
    blob: Blob,
    file: File,
}

impl BlobFile {
    pub(super) fn new(blob: Blob, file: File) -> Self {
        Self { blob, file }
    }

    /// The size and MIME type.
    #[must_use]
    pub fn blob(&self) -> &Blob {
        &self.blob
    }

    /// Up to `length` bytes from `start`; fewer at the end. They are not compared with the hash,
    /// which covers the whole blob. May wait for the disk.
    ///
    /// # Errors
    ///
    /// The disk reports an error.
    pub fn read_at(&mut self, start: u64, length: usize) -> Result<Vec<u8>, WorkspaceError> {
        let failed = |error| WorkspaceError::path(&self.blob.hash, error);
        self.file.seek(SeekFrom::Start(start)).map_err(failed)?;
        let mut bytes = Vec::new();
        (&self.file).take(length as u64).read_to_end(&mut bytes).map_err(failed)?;
        Ok(bytes)
    }

    /// All bytes.
    ///
    /// # Errors
    ///
    /// The disk reports an error, or the bytes do not have the hash.
    pub fn bytes(&mut self) -> Result<Vec<u8>, WorkspaceError> {
        let length = usize::try_from(self.blob.size).unwrap_or(usize::MAX);
        let bytes = self.read_at(0, length)?;
        if blake3::hash(&bytes).to_hex().as_str() != self.blob.hash {
            return Err(WorkspaceError::Changed(self.blob.hash.clone()));
        }
        Ok(bytes)
    }

    /// All bytes as a stream. The last read fails with [`ErrorKind::InvalidData`] if the bytes do
    /// not have the hash.
    #[must_use]
    pub fn into_reader(self) -> BlobReader {
        let (file, hash) = (self.file, self.blob.hash);
        BlobReader { file, hash, hasher: blake3::Hasher::new() }
    }

    /// The file, at its beginning.
    #[must_use]
    pub fn into_file(self) -> File {
        self.file
    }
}

/// The bytes of a blob as a stream, compared with its hash at the end.
#[derive(Debug)]
pub struct BlobReader {
    file: File,
    hash: String,
    hasher: blake3::Hasher,
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.hasher.update(&buffer[..read]);
        let is_end = read == 0 && !buffer.is_empty();
        if is_end && self.hasher.finalize().to_hex().as_str() != self.hash {
            let error = WorkspaceError::Changed(self.hash.clone());
            return Err(std::io::Error::new(ErrorKind::InvalidData, error));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8], stored: &[u8]) -> (tempfile::TempDir, BlobFile) {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("file");
        std::fs::write(&path, bytes).unwrap();
        let hash = blake3::hash(stored).to_hex().to_string();
        let blob = Blob { hash, mime_type: String::new(), size: stored.len() as u64 };
        (here, BlobFile::new(blob, File::open(path).unwrap()))
    }

    #[test]
    fn bytes_that_were_stored_are_read() {
        let (_here, mut file) = opened(b"hello", b"hello");
        assert_eq!(file.read_at(1, 3).unwrap(), b"ell");
        assert_eq!(file.bytes().unwrap(), b"hello");
        let (_here, file) = opened(b"hello", b"hello");
        let mut bytes = Vec::new();
        file.into_reader().read_to_end(&mut bytes).unwrap();
        assert_eq!(bytes, b"hello");
    }

    #[test]
    fn other_bytes_of_the_same_length_are_refused() {
        let (_here, mut file) = opened(b"hellO", b"hello");
        assert!(matches!(file.bytes(), Err(WorkspaceError::Changed(_))));
        let (_here, file) = opened(b"hellO", b"hello");
        let error = file.into_reader().read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert!(error.to_string().contains("verify"), "{error}");
    }
}
