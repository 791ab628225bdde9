//! What an operator can set of a folder, with the defaults and their reasons.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::{Keeper, Report, withheld};

/// Variables of our own environment that programs of a folder get. Everything else, secrets above
/// all, stays with us.
const PASSED: [&str; 12] = [
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ",
    "USER",
];

/// Variables that every shell sets for itself: nobody misses ours.
const SHELLS_OWN: [&str; 7] = ["_", "EUID", "HOSTNAME", "OLDPWD", "PWD", "SHLVL", "UID"];

/// Which folder, and how it is served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The folder.
    pub root: PathBuf,
    /// The environment its programs get, besides the variables that describe their call; see
    /// [`Config::pass`]. Empty by default.
    pub environment: Vec<(OsString, OsString)>,
    /// Names of variables that are set and not passed on: an error that mentions one gets a hint.
    pub withheld: BTreeSet<String>,
    /// That hint for a variable: callers of tools read it, and an operator knows how to pass it.
    pub withheld_hint: fn(&str) -> String,
    /// Whether `server.d/register.*` may be run, and how often at most.
    pub register: Option<Duration>,
    /// Whether commands that decide over tools are run; otherwise those tools are offered. True.
    pub checks: bool,
    /// Look at the whole folder this often instead of being told by the system, for file systems
    /// that tell nothing.
    pub poll: Option<Duration>,
    /// How often a watched resource of a provider is looked at: nobody tells when it changes.
    pub providers_every: Duration,
    /// Changes of what is offered are applied together when they were quiet for this long: 25 ms.
    pub quiet: Duration,
    /// And at the latest after this long: 250 ms. A tree in motion, such as a checkout of many
    /// files, is waited for: until 200 ms of rest, for 3 s at most.
    pub max_wait: Duration,
    /// Who hears what each reload found. Reports that find no room are dropped.
    pub reports: Option<mpsc::Sender<Report>>,
    /// Ends the folder's programs if this process is killed. Folders of one process share one.
    /// None by default: then programs outlive a `kill -9`.
    pub keeper: Option<Keeper>,
    /// What the folder refuses to exceed.
    pub limits: Limits,
}

impl Config {
    /// The defaults, for this folder.
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
            limits: Limits::default(),
        }
    }

    /// Passes variables on to programs: a short list of harmless ones, and the ones named, as
    /// `NAME` or `NAME=VALUE`. The names of all others are remembered as withheld.
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

/// What a folder refuses to exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Programs that run at once: 16. More wait their turn, each client's in order, the clients in
    /// rotation.
    pub runs: usize,
    /// Calls that wait for their turn: 256. One more is refused.
    pub waiting: usize,
    /// Bytes a program may print: 10 MiB.
    pub output: usize,
    /// Bytes of a file that is read as a resource: 10 MiB.
    pub resource: u64,
    /// Bytes of a description, a prompt or a registration: 1 MiB.
    pub description: u64,
    /// Bytes of an icon that is put into a list: 128 KiB.
    pub icon: u64,
    /// Files that are looked at: 200,000.
    pub files: usize,
    /// How long a tool may take that says nothing of it: 30 s.
    pub timeout: Duration,
    /// How long a tool may take at most, however it shows that it is alive: 10 min.
    pub timeout_at_most: Duration,
}

impl Default for Limits {
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
