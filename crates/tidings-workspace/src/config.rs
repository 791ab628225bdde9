//! Settings of a workspace, with their defaults.

use std::path::PathBuf;
use std::time::Duration;

use tidings_server::Labels;

/// Where a workspace is, and its limits.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The directory; created if missing.
    pub directory: PathBuf,
    /// How it is opened.
    pub role: Role,
    /// Limits of the workspace.
    pub limits: WorkspaceLimits,
    /// How many events a server keeps: a million, about 300 MB. Old events are removed as new ones
    /// arrive; a command beside a server removes none.
    pub events_kept: u64,
    /// How many of the newest artifacts are in the list of resources: 50.
    pub listed_artifacts: usize,
    /// How many identities are in the list of resources: 200, sorted by id.
    pub listed_identities: usize,
    /// Clients with one of these labels may change the workspace; others only read it. Without
    /// labels, everyone may.
    pub writers: Labels,
    /// How often a server checks for events of other processes: every second.
    pub poll_every: Duration,
}

impl Config {
    /// The default settings of a server for this directory.
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            role: Role::Server,
            limits: WorkspaceLimits::default(),
            events_kept: 1_000_000,
            listed_artifacts: 50,
            listed_identities: 200,
            writers: Labels::NONE,
            poll_every: Duration::from_secs(1),
        }
    }

    /// The default settings of a command that works beside a server.
    #[must_use]
    pub fn beside(directory: impl Into<PathBuf>) -> Self {
        Self { role: Role::Beside, ..Self::new(directory) }
    }

    /// The default settings of a command that works beside a server, or creates a workspace.
    #[must_use]
    pub fn creating(directory: impl Into<PathBuf>) -> Self {
        Self { role: Role::Creating, ..Self::new(directory) }
    }

    /// The default settings of a command that only reads, beside a server or without one.
    #[must_use]
    pub fn read_only(directory: impl Into<PathBuf>) -> Self {
        Self { role: Role::ReadOnly, ..Self::new(directory) }
    }
}

/// How a directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// As the only server of the directory; a second one is refused. The directory is created.
    Server,
    /// For one command, with or without a server. The workspace must exist.
    Beside,
    /// Like [`Role::Beside`], but a missing workspace is created.
    Creating,
    /// Like [`Role::Beside`], but the directory may be read-only. If it is, every write fails, and
    /// events of a server that starts later are not seen.
    ReadOnly,
}

/// Limits of a workspace. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkspaceLimits {
    /// One blob: 64 MiB.
    pub blob: u64,
    /// A blob that is read as a resource: 4 MiB.
    pub read: u64,
    /// A title, or the name of a creator, a set or an identity: 500.
    pub name: usize,
    /// A tag: 200.
    pub tag: usize,
    /// The tags of one artifact or identity: 100.
    pub tags: usize,
    /// The parents of one artifact: 100.
    pub parents: usize,
    /// The metadata of one artifact, as JSON: 64 KiB.
    pub metadata: usize,
    /// The message of one annotation: 16 KiB.
    pub message: usize,
    /// The annotations of one artifact: 10,000.
    pub annotations: usize,
    /// The hints of one identity: 100.
    pub hints: usize,
}

impl Default for WorkspaceLimits {
    fn default() -> Self {
        Self {
            blob: 64 << 20,
            read: 4 << 20,
            name: 500,
            tag: 200,
            tags: 100,
            parents: 100,
            metadata: 64 << 10,
            message: 16 << 10,
            annotations: 10_000,
            hints: 100,
        }
    }
}
