//! The lock of a directory of feeds: one process fetches them, and others can see which.

use std::path::Path;

use tidings_store::database::directory;
use tidings_store::date::Moment;
use tidings_store::lock::{self, LockError, LockFile};

use crate::config::{Fetching, Role};
use crate::store::StoreError;

const FILE: &str = "feeds.lock";
/// The word for a process that does not fetch.
const OFFLINE: &str = "offline";
/// The word for a process that fetches once and ends.
const VISIT: &str = "visit";

/// The word for a role in the file.
fn word(role: Role) -> &'static str {
    match role {
        Role::Server(Fetching::Off) => OFFLINE,
        Role::Guest(_) => VISIT,
        _ => "",
    }
}

/// The role of a word in the file.
fn role(word: Option<&str>) -> Role {
    match word {
        Some(OFFLINE) => Role::Server(Fetching::Off),
        Some(VISIT) => Role::Guest(Fetching::On),
        _ => Role::Server(Fetching::On),
    }
}

/// The process that fetches the feeds of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Its process id; `None` if it has not written it yet.
    pub pid: Option<u32>,
    /// Since when.
    pub since: Option<Moment>,
    /// Its role: a server that fetches or does not, or a guest that fetches once.
    pub role: Role,
}

impl Holder {
    /// The process that fetches the feeds of this directory now, if there is one.
    ///
    /// # Errors
    ///
    /// The lock file cannot be opened or locked.
    pub fn of(directory: &Path) -> Result<Option<Self>, StoreError> {
        let failed = |error| StoreError::Directory { path: directory.to_owned(), error };
        let holder = lock::holder(&directory.join(FILE)).map_err(failed)?;
        Ok(holder.as_deref().map(Self::parse))
    }

    fn parse(text: &str) -> Self {
        let mut words = text.split_whitespace();
        let pid = words.next().and_then(|word| word.parse().ok());
        let since = words.next().and_then(Moment::parse);
        Self { pid, since, role: role(words.next()) }
    }
}

impl std::fmt::Display for Holder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.pid, self.since) {
            (Some(pid), Some(since)) => write!(formatter, "process {pid} (since {since})"),
            (Some(pid), None) => write!(formatter, "process {pid}"),
            (None, _) => formatter.write_str("another process"),
        }
    }
}

/// The right to fetch the feeds of a directory, until it is dropped.
#[derive(Debug)]
pub(crate) struct Hold {
    _file: LockFile,
}

impl Hold {
    /// Locks the directory, and writes the process and its role into the file.
    pub(crate) fn take(path: &Path, now: Moment, role: Role) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Directory { path: path.to_owned(), error };
        directory::make(path).map_err(failed)?;
        let file = LockFile::open(&path.join(FILE)).map_err(failed)?;
        let ours = format!("{} {now} {}", std::process::id(), word(role));
        let file = file.lock(&ours).map_err(|error| match error {
            LockError::Held(text) => {
                StoreError::Held { path: path.to_owned(), holder: Holder::parse(&text) }
            }
            LockError::File(error) => failed(error),
        })?;
        if !role.is_guest() {
            directory::warn_if_open(path);
        }
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_holds_a_directory_and_others_see_who() {
        let directory = tempfile::tempdir().unwrap();
        let now = Moment::from_unix(1_704_067_200).unwrap();
        assert_eq!(Holder::of(directory.path()).unwrap(), None);
        let hold = Hold::take(directory.path(), now, Role::Server(Fetching::Off)).unwrap();
        let pid = Some(std::process::id());
        let holder = Holder { pid, since: Some(now), role: Role::Server(Fetching::Off) };
        assert_eq!(Holder::of(directory.path()).unwrap(), Some(holder));
        let refused = Hold::take(directory.path(), now, Role::Server(Fetching::On)).unwrap_err();
        assert!(matches!(refused, StoreError::Held { holder: by, .. } if by == holder));
        drop(hold);
        assert_eq!(Holder::of(directory.path()).unwrap(), None);
        for role in [Role::Server(Fetching::On), Role::Guest(Fetching::On)] {
            let hold = Hold::take(directory.path(), now, role).unwrap();
            let holder = Holder { role, ..holder };
            assert_eq!(Holder::of(directory.path()).unwrap(), Some(holder));
            drop(hold);
        }
    }
}
