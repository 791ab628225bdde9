//! Garbage collection of unused blobs.

use std::path::Path;
use std::time::{Duration, SystemTime};

use tidings_store::temporary;

use crate::WorkspaceError;
use crate::change::Change;
use crate::store::{Blobs, Store, backup, blob};

/// How many blobs are removed in one transaction, so that writers do not wait long.
const AT_ONCE: usize = 200;
/// Incomplete blobs are removed after a day, even if they are in use; no upload takes that long.
pub(super) const ABANDONED: Duration = Duration::from_hours(24);

/// The blobs that were removed, or could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Collected {
    /// The number of blobs.
    pub blobs: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

impl Store {
    /// Removes blobs that no artifact uses and that were stored before the grace time.
    pub(crate) fn collect(
        &self,
        grace: Duration,
        actor: &str,
    ) -> Result<Collected, WorkspaceError> {
        let mut collected = Collected::default();
        let now = SystemTime::now();
        // Old files, and entries whose files are gone because a collecting process was killed.
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
                    // Checked again: storing it now renews its age.
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
    /// The blobs that [`Store::collect`] would remove now.
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

/// Removes leftovers of killed processes: incomplete blobs and copies of the database. Those in use
/// are locked, and stay.
pub(super) fn sweep(directory: &Path, blobs: &Blobs) {
    let incoming = blobs.incoming();
    temporary::sweep(&incoming, blob::PART);
    temporary::sweep(directory, backup::UNFINISHED);
    // Leftovers of earlier releases, and on file systems without locks, are recognised by age.
    let now = SystemTime::now();
    for path in blob::listed(&incoming).unwrap_or_default() {
        if std::fs::metadata(&path).is_ok_and(|it| is_older(&it, now, ABANDONED)) {
            drop(std::fs::remove_file(&path));
        }
    }
}

/// Whether a blob was stored before the grace time.
pub(super) fn is_older(metadata: &std::fs::Metadata, now: SystemTime, grace: Duration) -> bool {
    metadata.modified().is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age >= grace))
}
