//! Documents on this machine, which only the operator can name.

use std::path::Path;

use tokio::io::AsyncReadExt as _;

/// Why a local document could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadLocalError {
    /// A directory, a pipe, a device.
    #[error("this is not a file")]
    NotAFile,
    /// The operating system refuses.
    #[error("could not read the file")]
    Read(#[from] std::io::Error),
}

/// Identifies a file's version without reading it; a new one must be read.
pub(crate) async fn local_stamp(path: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = tokio::fs::metadata(path).await.ok()?;
    let (size, inode) = (metadata.len(), metadata.ino());
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    Some(format!("{size}-{inode}-{seconds}.{nanoseconds}"))
}

/// Reads a file, or its first `limit` bytes: their items are as good as those of a document that
/// was cut off.
pub(crate) async fn read_beginning(path: &Path, limit: u64) -> Result<Vec<u8>, ReadLocalError> {
    // Opening a pipe would wait for a writer.
    if !tokio::fs::metadata(path).await?.is_file() {
        return Err(ReadLocalError::NotAFile);
    }
    let file = tokio::fs::File::open(path).await?;
    let mut bytes = Vec::new();
    // The file may grow meanwhile, so its size is no limit.
    file.take(limit).read_to_end(&mut bytes).await?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_file_is_read_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("feed.xml");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_beginning(&path, 5).await.unwrap(), b"12345");
        assert_eq!(read_beginning(&path, 4).await.unwrap(), b"1234");
        assert!(matches!(read_beginning(folder.path(), 4).await, Err(ReadLocalError::NotAFile)));
        let missing = read_beginning(&folder.path().join("none"), 4).await;
        assert!(matches!(missing, Err(ReadLocalError::Read(_))));
    }
}
