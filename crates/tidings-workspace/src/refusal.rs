//! Why a workspace cannot be used, and why something that was asked of it is not done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidings_store::database::migration::MigrationError;

/// Why a workspace has no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// What was asked for cannot be done; whoever asked can do something about it.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The database said no.
    #[error("the workspace's database cannot be used")]
    Database(#[source] Arc<rusqlite::Error>),
    /// There is no room left.
    #[error("the disk is full; nothing was written. Make room, or remove blobs nobody uses")]
    Full,
    /// A file or directory cannot be used.
    #[error("`{path}` cannot be used")]
    Path {
        /// What was to be used.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        error: Arc<std::io::Error>,
    },
    /// Another server has the directory.
    #[error("`{path}` is served already, by {holder}; stop that server or use another directory")]
    Locked {
        /// The directory.
        path: PathBuf,
        /// Who has it, as it said itself.
        holder: String,
    },
    /// There is no workspace.
    #[error("there is no workspace in `{0}`")]
    Missing(PathBuf),
    /// There is one where none may be.
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
    /// The database is not one, or not whole.
    #[error(
        "the database `{path}` is damaged ({details}). Move the directory aside and restore a \
         backup in its place"
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        details: String,
    },
    /// The bytes of a blob are not those it was stored with.
    #[error(
        "the bytes of the blob `{0}` are damaged: they are not those it was stored with; \
         verify the workspace to learn what can be done"
    )]
    Changed(String),
    /// A file that is to be restored, and is no backup.
    #[error("`{path}` is no backup of a workspace ({details}); give a file that a backup wrote")]
    NoBackup {
        /// The file.
        path: PathBuf,
        /// What was found.
        details: String,
    },
    /// A file that is to be written, and is there.
    #[error("`{0}` is there already, and is left as it is; give a name that nothing has")]
    Taken(PathBuf),
    /// A value that was never written like that.
    #[error("the workspace has a value that cannot be: {0}")]
    Unreadable(String),
    /// The work was given up.
    #[error("the work on the workspace was given up")]
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

    /// Why a database cannot be brought up to date.
    pub(crate) fn migration(path: &Path, error: MigrationError) -> Self {
        match error {
            MigrationError::Newer(version) => Self::Newer { path: path.to_owned(), version },
            MigrationError::Database(error) => error.into(),
        }
    }

    /// What was refused, if that is what it is.
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

/// Why something that was asked for is not done, and what would do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such artifact.
    #[error("there is no artifact `{0}`; `search_artifacts` and `artifacts://recent` have the ids")]
    NoArtifact(String),
    /// A parent does not exist.
    #[error("the parent `{0}` does not exist; a parent is stored before what is made from it")]
    NoParent(String),
    /// There are no such bytes.
    #[error("there is no blob `{0}`; store its bytes first, with `put_blob`")]
    NoBlob(String),
    /// Not a hash.
    #[error("`{0}` is not a BLAKE3 hash: those are 64 hexadecimal digits, in lower case")]
    Hash(String),
    /// More bytes than are taken.
    #[error(
        "a blob may have {limit} bytes at most; store the bytes in parts, or ask for a server with \
         a higher limit"
    )]
    BlobTooLarge {
        /// The limit.
        limit: u64,
    },
    /// More bytes than are read as a resource.
    #[error(
        "this blob has {size} bytes, and a resource {limit} at most; over HTTP `GET /blob/{hash}` \
         gives it, whole or in parts, and beside any server whoever may read its directory"
    )]
    TooLargeToRead {
        /// Its hash.
        hash: String,
        /// How many bytes it has.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// A text that is no MIME type.
    #[error(
        "`{0}` is no MIME type; write it as `text/plain` or `text/html; charset=utf-8`, or leave \
         it out"
    )]
    MimeType(String),
    /// A tag of an identity without a namespace.
    #[error("`{0}` is no tag of an identity; write it as `namespace:value`, as in `role:synth`")]
    IdentityTag(String),
    /// A text that is empty, or only white space.
    #[error("`{what}` is empty; it needs at least one character that is no white space")]
    Empty {
        /// Which.
        what: &'static str,
    },
    /// A text that is too long.
    #[error("`{what}` has {length} bytes; it may have {limit} at most")]
    TooLong {
        /// Which.
        what: &'static str,
        /// How long it is.
        length: usize,
        /// How long it may be.
        limit: usize,
    },
    /// More things than may be.
    #[error("there would be {count} of `{what}`; there may be {limit} at most")]
    TooMany {
        /// Which.
        what: &'static str,
        /// How many there would be.
        count: usize,
        /// How many there may be.
        limit: usize,
    },
    /// A text with characters that cannot be shown.
    #[error("`{what}` has the control character U+{code:04X}; leave it out")]
    Control {
        /// Which.
        what: &'static str,
        /// The first of them.
        code: u32,
    },
    /// A place in a set that is taken.
    #[error("the set `{set}` has an artifact at {index} already; leave the index out for the next")]
    PlaceTaken {
        /// The set.
        set: String,
        /// The place.
        index: u64,
    },
    /// An index that cannot be.
    #[error("`index` needs a `set` and is below 2^53")]
    Index,
    /// A confidence that cannot be.
    #[error("a confidence is from 0 to 1")]
    Confidence,
    /// There is no such identity.
    #[error("there is no identity `{0}`; `graph://identities` has the ids, `graph_bind` makes one")]
    NoIdentity(String),
    /// A hint that is another's.
    #[error(
        "the hint `{kind}` = `{value}` belongs to the identity `{owner}`; bind that one, leave the \
         hint out, or take it away with `steal`"
    )]
    HintTaken {
        /// What kind of hint.
        kind: String,
        /// What it says.
        value: String,
        /// Whose it is.
        owner: String,
    },
    /// A connection that is there.
    #[error(
        "this connection is there already, and nothing needs to be done; for another one give \
         another port or transport"
    )]
    Connected,
    /// A connection that is not there.
    #[error("there is no such connection; `graph://connections` has those there are")]
    NotConnected,
    /// A cursor to events that are gone.
    #[error("the events after {cursor} are gone; the oldest cursor is {oldest}")]
    Expired {
        /// What was given.
        cursor: u64,
        /// The oldest that can be used.
        oldest: u64,
    },
    /// A cursor to events that are not there yet.
    #[error("there is no event {cursor} yet; the last is {last}")]
    Ahead {
        /// What was given.
        cursor: u64,
        /// The number of the last event.
        last: u64,
    },
    /// A value that names no place in a list.
    #[error("`{0}` is no place in this list; give what a page calls `next`")]
    After(String),
}
