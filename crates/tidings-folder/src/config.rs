//! Settings of a folder, with their defaults.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::{Keeper, Report, withheld};

/// Variables of our environment that programs get. All others are withheld, because they may be
/// secrets.
const PASSED: [&str; 12] = [
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ",
    "USER",
];

/// Variables that every shell sets itself, so none is missed if ours is withheld.
const SHELLS_OWN: [&str; 7] = ["_", "EUID", "HOSTNAME", "OLDPWD", "PWD", "SHLVL", "UID"];

/// Which folder to serve, and how.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The folder.
    pub root: PathBuf,
    /// The environment of its programs, besides the variables that describe a call; see
    /// [`Config::pass`]. Empty by default.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables that are set but withheld: an error that mentions one gets a hint.
    pub withheld: BTreeSet<String>,
    /// Makes that hint for a variable. Callers of tools read it, so it should say how the operator
    /// can pass the variable.
    pub withheld_hint: fn(&str) -> String,
    /// Whether `server.d/register.*` may be run, and the least time between two runs.
    pub register: Option<Duration>,
    /// Whether the commands in `enabled` are run; if not, their tools are always offered. True.
    pub checks: bool,
    /// Rescan the whole folder this often instead of watching it, for file systems without change
    /// events.
    pub poll: Option<Duration>,
    /// How often a watched resource of a provider is read again: providers report no changes.
    pub providers_every: Duration,
    /// Changes of the lists are published together after this much quiet: 25 ms.
    pub quiet: Duration,
    /// Changes of the lists are published after this long at the latest: 250 ms. A tree in motion,
    /// such as a checkout of many files, is waited for: until 200 ms of rest, for 3 s at most.
    pub max_wait: Duration,
    /// Where to send the report of each rescan. A report is dropped if the channel is full.
    pub reports: Option<mpsc::Sender<Report>>,
    /// Ends the folder's programs if this process is killed; one keeper serves all folders of a
    /// process. `None` by default: programs then survive a `kill -9`.
    pub keeper: Option<Keeper>,
    /// Limits of the folder.
    pub limits: FolderLimits,
}

impl Config {
    /// The default settings for this folder.
    #[must_use]
    pub fn new(root: PathBuf) -> Self {
        Self {
            root,
            environment: Vec::new(),
            withheld: BTreeSet::new(),
            withheld_hint: withheld::hint,
            register: None,
            checks: true,
            poll: None,
            providers_every: Duration::from_secs(5),
            quiet: Duration::from_millis(25),
            max_wait: Duration::from_millis(250),
            reports: None,
            keeper: None,
            limits: FolderLimits::default(),
        }
    }

    /// Passes variables on to programs: a short list of harmless ones, and those given as `NAME` or
    /// `NAME=VALUE`. The names of all others are stored in [`Config::withheld`].
    pub fn pass(
        &mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        named: &[String],
    ) {
        let is_named = |name: &str| named.iter().any(|it| it == name);
        for (name, value) in variables {
            match name.to_str() {
                Some(text) if is_harmless(text) || is_named(text) => {
                    self.environment.push((name, value));
                }
                Some(text) if !SHELLS_OWN.contains(&text) => {
                    self.withheld.insert(text.to_owned());
                }
                _ => {}
            }
        }
        for (name, value) in named.iter().filter_map(|it| it.split_once('=')) {
            self.withheld.remove(name);
            self.environment.retain(|(known, _)| known != name);
            self.environment.push((name.into(), value.into()));
        }
    }
}

fn is_harmless(name: &str) -> bool {
    PASSED.contains(&name) || name.starts_with("LC_")
}

/// Limits of a folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FolderLimits {
    /// Programs that run at once: 16. More wait for their turn, in order for each client, with the
    /// clients in rotation.
    pub runs: usize,
    /// Calls that may wait for their turn: 256. Further calls are refused.
    pub waiting: usize,
    /// Bytes a program may print: 10 MiB.
    pub output: usize,
    /// Bytes of a file that is served as a resource: 10 MiB.
    pub resource: u64,
    /// Bytes of a description, a prompt or a registration: 1 MiB.
    pub description: u64,
    /// Bytes of an icon that is embedded in a list: 128 KiB.
    pub icon: u64,
    /// Files in the folder: 200,000.
    pub files: usize,
    /// Time limit of a tool that declares none: 30 s.
    pub timeout: Duration,
    /// Time limit of any tool, even if it reports progress: 10 min.
    pub timeout_at_most: Duration,
}

impl Default for FolderLimits {
    fn default() -> Self {
        Self {
            runs: 16,
            waiting: 256,
            output: 10 << 20,
            resource: 10 << 20,
            description: 1 << 20,
            icon: 128 << 10,
            files: 200_000,
            timeout: Duration::from_secs(30),
            timeout_at_most: Duration::from_mins(10),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(named: &[&str]) -> Config {
        let variables =
            [("PATH", "/bin"), ("LC_ALL", "C"), ("TOKEN", "s3cret"), ("MINE", "1"), ("PWD", "/")]
                .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let mut config = Config::new(PathBuf::new());
        config.pass(variables, &named.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>());
        config
    }

    fn names(config: &Config) -> Vec<&str> {
        config.environment.iter().filter_map(|(name, _)| name.to_str()).collect()
    }

    #[test]
    fn secrets_stay_with_us() {
        let config = passed(&["MINE"]);
        assert_eq!(names(&config), ["PATH", "LC_ALL", "MINE"]);
        assert_eq!(config.withheld, ["TOKEN".to_owned()].into());
    }

    #[test]
    fn a_value_that_is_given_replaces_the_one_that_is_set() {
        let config = passed(&["MINE=a=b", "NEW="]);
        assert_eq!(names(&config), ["PATH", "LC_ALL", "MINE", "NEW"]);
        assert_eq!(config.environment[2].1, "a=b");
        assert_eq!(config.withheld, ["TOKEN".to_owned()].into());
    }
}
