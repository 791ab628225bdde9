//! Errors of a workspace, and refusals of invalid requests.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_store::database::migration::MigrationError;

/// Why an operation on a workspace failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// The request was invalid; the caller can correct it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database reported an error.
    #[error("the workspace's database cannot be used")]
    Database(#[source] Arc<rusqlite::Error>),
    /// The disk is full.
    #[error("the disk is full; nothing was written. Make room, or remove blobs nobody uses")]
    Full,
    /// A file or directory cannot be used.
    #[error("`{path}` cannot be used")]
    Path {
        /// The file or directory.
        path: PathBuf,
        /// Why it cannot be used.
        #[source]
        error: Arc<std::io::Error>,
    },
    /// Another server has the directory.
    #[error("`{path}` is served already, by {holder}; stop that server or use another directory")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// The process that serves it, as it described itself.
        holder: String,
    },
    /// There is no workspace.
    #[error("there is no workspace in `{0}`")]
    Missing(PathBuf),
    /// There is a workspace where none is expected.
    #[error("there is a workspace in `{0}` already")]
    Occupied(PathBuf),
    /// A later release wrote it.
    #[error(
        "`{path}` has version {version}, which this release of Tidings does not know; update \
         Tidings"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: i64,
    },
    /// The file is not a database, or is damaged.
    #[error(
        "the database `{path}` is damaged ({details}). Move the directory aside and restore a \
         backup in its place"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        details: String,
    },
    /// The bytes of a blob do not have its hash.
    #[error(
        "the bytes of the blob `{0}` are damaged: they are not those it was stored with; \
         verify the workspace to learn what can be done"
    )]
    Changed(String),
    /// The file to restore is not a backup.
    #[error("`{path}` is not a backup of a workspace ({details}); give a file that a backup wrote")]
    NoBackup {
        /// The file.
        path: PathBuf,
        /// The reason.
        details: String,
    },
    /// The file to write exists.
    #[error("`{0}` exists already, and is not overwritten; give another name")]
    Taken(PathBuf),
    /// The database contains an invalid value.
    #[error("the workspace has an invalid value: {0}")]
    Unreadable(String),
    /// The work was cancelled or panicked.
    #[error("the work on the workspace was cancelled")]
    Interrupted,
}

impl WorkspaceError {
    pub(crate) fn path(path: impl Into<PathBuf>, error: std::io::Error) -> Self {
        if matches!(
            error.kind(),
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
        ) {
            return Self::Full;
        }
        Self::Path { path: path.into(), error: Arc::new(error) }
    }

    /// Why a database cannot be migrated.
    pub(crate) fn migration(path: &Path, error: MigrationError) -> Self {
        match error {
            MigrationError::Newer(version) => Self::Newer { path: path.to_owned(), version },
            MigrationError::Database(error) => error.into(),
        }
    }

    /// The refusal, if the error is one.
    #[must_use]
    pub fn refusal(&self) -> Option<&Refusal> {
        if let Self::Refused(refusal) = self { Some(refusal) } else { None }
    }
}

impl From<rusqlite::Error> for WorkspaceError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DiskFull) {
            return Self::Full;
        }
        Self::Database(Arc::new(error))
    }
}

/// Why a request is invalid, and what to do instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such artifact.
    #[error("there is no artifact `{0}`; `search_artifacts` and `artifacts://recent` have the ids")]
    NoArtifact(String),
    /// A parent does not exist.
    #[error("the parent `{0}` does not exist; store parents first")]
    NoParent(String),
    /// There is no such blob.
    #[error("there is no blob `{0}`; store its bytes first, with `put_blob`")]
    NoBlob(String),
    /// Not a hash.
    #[error("`{0}` is not a BLAKE3 hash: those are 64 hexadecimal digits, in lower case")]
    Hash(String),
    /// A blob with too many bytes.
    #[error(
        "a blob may have {limit} bytes at most; store the bytes in parts, or ask for a server with \
         a higher limit"
    )]
    BlobTooLarge {
        /// The limit.
        limit: u64,
    },
    /// A blob that is too large for a resource.
    #[error(
        "this blob has {size} bytes, and a resource {limit} at most; over HTTP, `GET /blob/{hash}` \
         returns it, whole or in parts; on any server, its operator can export it"
    )]
    TooLargeToRead {
        /// Its hash.
        hash: String,
        /// How many bytes it has.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// Not a MIME type.
    #[error(
        "`{0}` is not a MIME type; write it as `text/plain` or `text/html; charset=utf-8`, or leave \
         it out"
    )]
    MimeType(String),
    /// A tag of an identity without a namespace.
    #[error("`{0}` is not a tag of an identity; write it as `namespace:value`, as in `role:synth`")]
    IdentityTag(String),
    /// An empty or blank text.
    #[error("`{what}` is empty; it needs at least one character that is not white space")]
    Empty {
        /// The field.
        what: &'static str,
    },
    /// A text that is too long.
    #[error("`{what}` has {length} bytes; it may have {limit} at most")]
    TooLong {
        /// The field.
        what: &'static str,
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// Too many items.
    #[error("there would be {count} of `{what}`; there may be {limit} at most")]
    TooMany {
        /// The field.
        what: &'static str,
        /// How many there would be.
        count: usize,
        /// The limit.
        limit: usize,
    },
    /// A text with control characters.
    #[error("`{what}` has the control character U+{code:04X}; leave it out")]
    Control {
        /// The field.
        what: &'static str,
        /// The first control character.
        code: u32,
    },
    /// A taken position in a set.
    #[error("the set `{set}` has an artifact at {index} already; leave the index out for the next")]
    PlaceTaken {
        /// The set.
        set: String,
        /// The position.
        index: u64,
    },
    /// An invalid index.
    #[error("`index` needs a `set` and is below 2^53")]
    Index,
    /// An invalid confidence.
    #[error("a confidence is from 0 to 1")]
    Confidence,
    /// There is no such identity.
    #[error("there is no identity `{0}`; `graph://identities` has the ids, `graph_bind` makes one")]
    NoIdentity(String),
    /// A hint of another identity.
    #[error(
        "the hint `{kind}` = `{value}` belongs to the identity `{owner}`; bind that one, leave the \
         hint out, or take it away with `steal`"
    )]
    HintTaken {
        /// The kind of hint.
        kind: String,
        /// Its value.
        value: String,
        /// The identity that has it.
        owner: String,
    },
    /// A connection that exists.
    #[error(
        "this connection exists already, so nothing needs to be done; for another one give \
         another port or transport"
    )]
    Connected,
    /// A connection that does not exist.
    #[error("there is no such connection; `graph://connections` lists them")]
    NotConnected,
    /// A cursor to removed events.
    #[error("the events after {cursor} are gone; the oldest cursor is {oldest}")]
    Expired {
        /// The given cursor.
        cursor: u64,
        /// The oldest usable cursor.
        oldest: u64,
    },
    /// A cursor to events that do not exist yet.
    #[error("there is no event {cursor} yet; the last is {last}")]
    Ahead {
        /// The given cursor.
        cursor: u64,
        /// The number of the last event.
        last: u64,
    },
    /// An `after` that is not in the list.
    #[error("`{0}` is not in this list; give the `next` of a page")]
    After(String),
}
