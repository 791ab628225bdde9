//! Bytes into a workspace and out of it.

use std::io::Read;

use crate::store::Incoming;
use crate::{Blob, BlobFile, Draft, Workspace, WorkspaceError};

/// How much is read at once of bytes that are imported.
const CHUNK: usize = 1 << 16;

/// Bytes on their way into a workspace. Dropped before [`BlobWriter::finish`], nothing of them
/// stays.
#[derive(Debug)]
pub struct BlobWriter {
    workspace: Workspace,
    incoming: Incoming,
}

impl Workspace {
    /// A place for new bytes.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub fn blob_writer(&self) -> Result<BlobWriter, WorkspaceError> {
        Ok(BlobWriter { workspace: self.clone(), incoming: self.0.store.incoming()? })
    }

    /// Stores bytes; equal ones are one blob. Without a MIME type, the bytes are looked at.
    ///
    /// # Errors
    ///
    /// They are too many, or there is no room.
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

    /// What is known of a blob, if it is there.
    ///
    /// # Errors
    ///
    /// That is not a hash.
    pub fn blob(&self, hash: &str) -> Result<Option<Blob>, WorkspaceError> {
        self.0.store.blob(hash)
    }

    /// A blob to be read, if it is there.
    ///
    /// # Errors
    ///
    /// That is not a hash, or the bytes cannot be read.
    pub fn open_blob(&self, hash: &str) -> Result<Option<BlobFile>, WorkspaceError> {
        self.0.store.open_blob(hash)
    }

    /// Stores bytes as they come and makes an artifact of them, in one step; gives its id. What the
    /// draft says of a hash does not matter.
    ///
    /// # Errors
    ///
    /// The bytes cannot be read or are too many, or a part of the draft cannot be.
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
    /// Takes some more bytes. It may wait for the disk.
    ///
    /// # Errors
    ///
    /// They are more than a blob may have, or there is no room.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), WorkspaceError> {
        self.incoming.write(bytes)
    }

    /// Makes the bytes a blob, durable when this returns. Without a MIME type, they are looked at.
    ///
    /// # Errors
    ///
    /// There is no room.
    pub fn finish(self, mime_type: Option<&str>, actor: &str) -> Result<Blob, WorkspaceError> {
        let Self { workspace, incoming } = self;
        workspace.0.store.put(incoming.finish()?, mime_type.map(str::to_owned), actor)
    }
}
