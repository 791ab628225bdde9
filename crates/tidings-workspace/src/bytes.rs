//! Storing and reading blobs.

use std::io::Read;

use crate::store::Incoming;
use crate::{Blob, BlobFile, Draft, Workspace, WorkspaceError};

/// How much of an import is read at once.
const CHUNK: usize = 1 << 16;

/// Bytes on their way into a workspace. Dropped before [`BlobWriter::finish`], they are removed.
#[derive(Debug)]
pub struct BlobWriter {
    workspace: Workspace,
    incoming: Incoming,
}

impl Workspace {
    /// Starts writing a blob.
    ///
    /// # Errors
    ///
    /// The disk is full.
    pub fn blob_writer(&self) -> Result<BlobWriter, WorkspaceError> {
        Ok(BlobWriter { workspace: self.clone(), incoming: self.0.store.incoming()? })
    }

    /// Stores bytes; equal bytes are one blob. Without a MIME type, it is guessed from the bytes.
    ///
    /// # Errors
    ///
    /// There are too many bytes, or the disk is full.
    pub fn put_blob(
        &self,
        bytes: &[u8],
        mime_type: Option<&str>,
        actor: &str,
    ) -> Result<Blob, WorkspaceError> {
        let mut writer = self.blob_writer()?;
        writer.write(bytes)?;
        writer.finish(mime_type, actor)
    }

    /// The size and MIME type of a blob, if it exists.
    ///
    /// # Errors
    ///
    /// `hash` is not a hash.
    pub fn blob(&self, hash: &str) -> Result<Option<Blob>, WorkspaceError> {
        self.0.store.blob(hash)
    }

    /// Opens a blob for reading, if it exists.
    ///
    /// # Errors
    ///
    /// `hash` is not a hash, or the bytes cannot be read.
    pub fn open_blob(&self, hash: &str) -> Result<Option<BlobFile>, WorkspaceError> {
        self.0.store.open_blob(hash)
    }

    /// Stores bytes as they are read and creates an artifact from them, in one step; returns its
    /// id. The draft's hash is ignored.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read, there are too many, or the draft is invalid.
    pub fn import(
        &self,
        bytes: &mut impl Read,
        draft: Draft,
        actor: &str,
    ) -> Result<String, WorkspaceError> {
        let mut incoming = self.0.store.incoming()?;
        let mut chunk = vec![0; CHUNK];
        loop {
            match bytes.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => incoming.write(&chunk[..read])?,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(WorkspaceError::path(&draft.title, error)),
            }
        }
        self.0.store.create_of(incoming.finish()?, draft, actor)
    }
}

impl BlobWriter {
    /// Adds bytes. May wait for the disk.
    ///
    /// # Errors
    ///
    /// The blob would be too large, or the disk is full.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WorkspaceError> {
        self.incoming.write(bytes)
    }

    /// Makes the bytes a blob, durable when this returns. Without a MIME type, it is guessed.
    ///
    /// # Errors
    ///
    /// The disk is full.
    pub fn finish(self, mime_type: Option<&str>, actor: &str) -> Result<Blob, WorkspaceError> {
        let Self { workspace, incoming } = self;
        workspace.0.store.put(incoming.finish()?, mime_type.map(str::to_owned), actor)
    }
}
