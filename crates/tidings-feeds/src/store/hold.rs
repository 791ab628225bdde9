//! Who fetches the feeds of a directory: one process at a time, and everybody can see which.

use std::fs::{File, TryLockError};
use std::io::{Read as _, Write as _};
use std::path::Path;

use tidings_store::database::directory;
use tidings_store::date::Moment;

use crate::config::{Fetching, Role};
use crate::store::StoreError;

/// The file that is locked. It says who locked it last; only the lock says whether that holds.
const FILE: &str = "feeds.lock";
/// What the file says of a process that fetches nothing.
const OFFLINE: &str = "offline";
/// What it says of one that does not stay.
const VISIT: &str = "visit";

/// What the file says of whoever has this role.
fn word(role: Role) -> &'static str {
    match role {
        Role::Server(Fetching::Off) => OFFLINE,
        Role::Guest(_) => VISIT,
        _ => "",
    }
}

/// The role that the file says.
fn role(word: Option<&str>) -> Role {
    match word {
        Some(OFFLINE) => Role::Server(Fetching::Off),
        Some(VISIT) => Role::Guest(Fetching::On),
        _ => Role::Server(Fetching::On),
    }
}

/// Who fetches the feeds of a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Holder {
    /// Its process id; `None` if it has not said yet.
    pub pid: Option<u32>,
    /// Since when.
    pub since: Option<Moment>,
    /// What it does there: a server that fetches or does not, or a guest that fetches once.
    pub role: Role,
}

impl Holder {
    /// Who fetches the feeds of this directory now, if anybody does.
    ///
    /// # Errors
    ///
    /// The lock cannot be looked at.
    pub fn of(directory: &Path) -> Result<Option<Self>, StoreError> {
        let failed = |error| StoreError::Directory { path: directory.to_owned(), error };
        let mut file = match File::open(directory.join(FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(None),
            Err(TryLockError::WouldBlock) => Ok(Some(Self::read(&mut file))),
            Err(TryLockError::Error(error)) => Err(failed(error)),
        }
    }

    fn read(file: &mut File) -> Self {
        let mut text = String::new();
        // What cannot be read is not known; that it is held is.
        drop(file.read_to_string(&mut text));
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
    /// Locked; the lock goes with it, also when the process is killed.
    _file: File,
}

impl Hold {
    /// Takes it, if nobody has it, and says in the file who did and what for.
    pub(crate) fn take(path: &Path, now: Moment, role: Role) -> Result<Self, StoreError> {
        let failed = |error| StoreError::Directory { path: path.to_owned(), error };
        directory::make(path).map_err(failed)?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path.join(FILE)).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let (path, holder) = (path.to_owned(), Holder::read(&mut file));
                return Err(StoreError::Held { path, holder });
            }
            Err(TryLockError::Error(error)) => return Err(failed(error)),
        }
        let said = format!("{} {now} {}\n", std::process::id(), word(role));
        file.set_len(0).and_then(|()| file.write_all(said.as_bytes())).map_err(failed)?;
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
