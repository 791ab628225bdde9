//! What an operator can set of a folder, with the defaults and their reasons.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;

use crate::folder::{Keeper, Report};

/// Variables of our own environment that programs of a folder get. Everything else, secrets above
/// all, stays with us.
const PASSED: [&str; 12] = [
    "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR", "TZ",
    "USER",
];

/// Which folder, and how it is served.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Config {
    /// The folder.
    pub root: PathBuf,
    /// The environment its programs get, besides what tells them of their call; see
    /// [`Config::environment_from`]. Empty by default.
    pub environment: Vec<(OsString, OsString)>,
    /// Whether `server.d/register.*` may be run, and how often at most.
    pub register: Option<Duration>,
    /// Whether commands that decide over tools are run; otherwise those tools are offered. True.
    pub checks: bool,
    /// Look at the whole folder this often instead of being told by the system, for file systems
    /// that tell nothing.
    pub poll: Option<Duration>,
    /// How often a watched resource of a provider is looked at: nobody tells when it changes.
    pub providers_every: Duration,
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
            register: None,
            checks: true,
            poll: None,
            providers_every: Duration::from_secs(5),
            reports: None,
            keeper: None,
            limits: Limits::default(),
        }
    }

    /// What of an environment programs may see: a short list of harmless variables, and the ones
    /// named.
    pub fn environment_from(
        variables: impl IntoIterator<Item = (OsString, OsString)>,
        named: &[String],
    ) -> Vec<(OsString, OsString)> {
        let passed = |name: &OsString| {
            name.to_str().is_some_and(|name| {
                PASSED.contains(&name)
                    || name.starts_with("LC_")
                    || named.iter().any(|it| it == name)
            })
        };
        variables.into_iter().filter(|(name, _)| passed(name)).collect()
    }
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

    #[test]
    fn secrets_stay_with_us() {
        let variables = [("PATH", "/bin"), ("LC_ALL", "C"), ("TOKEN", "s3cret"), ("MINE", "1")]
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let passed = Config::environment_from(variables, &["MINE".to_owned()]);
        let names: Vec<_> = passed.iter().filter_map(|(name, _)| name.to_str()).collect();
        assert_eq!(names, ["PATH", "LC_ALL", "MINE"]);
    }
}
