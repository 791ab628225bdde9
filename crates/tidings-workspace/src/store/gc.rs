//! Removes bytes nobody uses.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tidings_store::temporary;

use crate::WorkspaceError;
use crate::change::Change;
use crate::store::{Blobs, Store, backup, blob};

/// How many blobs are removed in one transaction, so that writers do not wait long.
const AT_ONCE: usize = 200;
/// Bytes that never became a blob are removed after a day, whoever has them; nothing takes that long
/// to arrive.
pub(super) const ABANDONED: Duration = Duration::from_hours(24);

/// What was removed, or could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// How many blobs.
    pub blobs: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

impl Store {
    /// Removes blobs that no artifact has and that nobody stored within the grace time.
    pub(crate) fn collect(
        &self,
        grace: Duration,
        actor: &str,
    ) -> Result<Collected, WorkspaceError> {
        let mut collected = Collected::default();
        let now = SystemTime::now();
        // Those whose bytes went while a process that collected them was killed, and those of files.
        let mut old = self.read(|connection| {
            let mut statement = connection.prepare(
                "SELECT hash FROM blobs
                 WHERE NOT EXISTS (SELECT 1 FROM artifacts WHERE hash = blobs.hash)",
            )?;
            let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
            Ok(rows.collect::<Result<Vec<_>, _>>()?)
        })?;
        old.retain(|hash| !self.has_file(hash));
        let files = self.blobs.all()?.into_iter();
        let files = files.filter(|(_, metadata)| is_older(metadata, now, grace));
        old.extend(files.map(|(hash, _)| hash));
        for hashes in old.chunks(AT_ONCE) {
            let (hashes, actor) = (hashes.to_vec(), actor.to_owned());
            let part = self.write(move |ledger| {
                let mut part = Collected::default();
                let mut gone = Vec::new();
                for hash in hashes {
                    let is_used = ledger
                        .connection
                        .prepare_cached("SELECT 1 FROM artifacts WHERE hash = ?1")?
                        .exists([&hash])?;
                    // Looked at again: whoever stores it now makes it young.
                    let path = ledger.blobs.path_of(&hash);
                    let metadata = std::fs::metadata(&path);
                    if is_used {
                        continue;
                    }
                    let Ok(metadata) = metadata else {
                        gone.push(hash);
                        continue;
                    };
                    if !is_older(&metadata, now, grace) {
                        continue;
                    }
                    std::fs::remove_file(&path)
                        .map_err(|error| WorkspaceError::path(&path, error))?;
                    part.blobs += 1;
                    part.bytes += metadata.len();
                    gone.push(hash);
                }
                if !gone.is_empty() {
                    ledger.record(&actor, Change::BlobsCollected { hashes: gone })?;
                }
                Ok(part)
            })?;
            collected.blobs += part.blobs;
            collected.bytes += part.bytes;
        }
        sweep(&self.config.directory, &self.blobs);
        Ok(collected)
    }
}

impl Store {
    /// What [`Store::collect`] would remove now.
    pub(crate) fn collectable(&self, grace: Duration) -> Result<Collected, WorkspaceError> {
        let mut found = Collected::default();
        let (now, all) = (SystemTime::now(), self.blobs.all()?);
        self.read(|connection| {
            let mut used = connection.prepare_cached("SELECT 1 FROM artifacts WHERE hash = ?1")?;
            for (hash, metadata) in all {
                if is_older(&metadata, now, grace) && !used.exists([&hash])? {
                    found.blobs += 1;
                    found.bytes += metadata.len();
                }
            }
            Ok(found)
        })
    }
}

/// Removes what processes that were killed left: bytes that never became a blob, and copies of the
/// database that never became one. Others may be sending bytes or copying meanwhile; theirs are
/// locked, and stay.
pub(super) fn sweep(directory: &Path, blobs: &Blobs) {
    let incoming = blobs.incoming();
    temporary::sweep(&incoming, blob::PART);
    temporary::sweep(directory, backup::UNFINISHED);
    // Those of earlier releases, and of file systems that lock nothing, can only be told by age.
    let now = SystemTime::now();
    for path in blob::listed(&incoming).unwrap_or_default() {
        if std::fs::metadata(&path).is_ok_and(|it| is_older(&it, now, ABANDONED)) {
            drop(std::fs::remove_file(&path));
        }
    }
}

/// Whether nobody stored a blob within the grace time.
pub(super) fn is_older(metadata: &std::fs::Metadata, now: SystemTime, grace: Duration) -> bool {
    metadata.modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= grace))
}
