//! The environment of the folder's programs: variables, limits, private files and the queue.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::describe::Confines;
use crate::offer::{Patience, Program};
use crate::queue::RunQueue;
use crate::script::{GRACE, Job, Keeper};
use crate::{Config, FolderLimits};

/// The programs that can stand in for `jq`, the faster one first.
const JSON_TOOLS: [&str; 2] = ["gojq", "jq"];
/// Where a folder may keep the SDK of `mcp-bash`.
const SDK_PLACES: [&str; 2] = ["sdk", ".mcp-bash/sdk"];

/// Variables and their values.
pub(crate) type Environment = Vec<(OsString, OsString)>;

/// What every program of the folder gets. Clones share the queue.
#[derive(Clone, Debug)]
pub(crate) struct Workshop {
    /// The folder, without symbolic links.
    pub(crate) root: PathBuf,
    pub(crate) queue: RunQueue,
    pub(crate) limits: FolderLimits,
    /// The directory for private files.
    pub(crate) scratch: PathBuf,
    /// How long a program may take to exit after it was asked to.
    pub(crate) grace: Duration,
    pub(crate) hosts: Hosts,
    /// The directories that tools may work in.
    pub(crate) confines: Confines,
    /// Names of variables that are set but withheld.
    pub(crate) withheld: BTreeSet<String>,
    pub(crate) withheld_hint: fn(&str) -> String,
    keeper: Option<Keeper>,
    /// The variables passed by the operator, and those that are the same for every program.
    environment: Environment,
}

/// The hosts that the folder's policy names. Programs enforce it themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hosts {
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
}

impl Workshop {
    /// Builds the environment, searching `jq` and the SDK once.
    pub(crate) fn new(config: &Config, hosts: &Hosts) -> Self {
        let root = config.root.canonicalize().unwrap_or_else(|_| config.root.clone());
        let environment = environment(&root, &config.environment, hosts);
        Self {
            queue: RunQueue::new(config.limits.runs, config.limits.waiting),
            limits: config.limits,
            scratch: value(&config.environment, "TMPDIR")
                .filter(|place| Path::new(place).is_dir())
                .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from),
            grace: GRACE,
            hosts: hosts.clone(),
            confines: Confines::default(),
            withheld: config.withheld.clone(),
            withheld_hint: config.withheld_hint,
            keeper: config.keeper.clone(),
            environment,
            root,
        }
    }

    /// The same workshop with another policy or other roots; waiting calls stay queued.
    pub(crate) fn with(&self, config: &Config, hosts: &Hosts, confines: Confines) -> Self {
        Self { queue: self.queue.clone(), confines, ..Self::new(config, hosts) }
    }

    /// The program of this name in `PATH`.
    pub(crate) fn along_path(&self, name: &OsStr) -> Option<PathBuf> {
        if Path::new(name).components().count() != 1 {
            return None;
        }
        along(value(&self.environment, "PATH").as_deref(), name)
    }

    /// A run of a program in this directory, with the shared environment.
    pub(crate) fn job(&self, program: &Program, directory: &Path, patience: Patience) -> Job {
        Job {
            program: program.clone(),
            arguments: Vec::new(),
            directory: directory.to_owned(),
            environment: self.environment.clone(),
            input: Vec::new(),
            patience,
            output_limit: self.limits.output,
            grace: self.grace,
            stream: None,
            keeper: self.keeper.clone(),
        }
    }
}

fn environment(root: &Path, passed: &[(OsString, OsString)], hosts: &Hosts) -> Environment {
    let mut environment = passed.to_vec();
    let mut set = |name: &str, value: &OsStr| environment.push((name.into(), value.into()));
    set("MCPBASH_PROJECT_ROOT", root.as_os_str());
    for (name, folder) in [
        ("MCPBASH_TOOLS_DIR", "tools"),
        ("MCPBASH_RESOURCES_DIR", "resources"),
        ("MCPBASH_PROMPTS_DIR", "prompts"),
        ("MCPBASH_PROVIDERS_DIR", "providers"),
        ("MCPBASH_SERVER_DIR", "server.d"),
    ] {
        set(name, root.join(folder).as_os_str());
    }
    set("MCPBASH_MODE", OsStr::new("full"));
    if let Some((name, file)) = json_tool(value(passed, "PATH").as_deref()) {
        set("MCPBASH_JSON_TOOL", OsStr::new(name));
        set("MCPBASH_JSON_TOOL_BIN", file.as_os_str());
    }
    if let Some(sdk) = value(passed, "MCP_SDK").map(PathBuf::from).or_else(|| find_sdk(root)) {
        set("MCP_SDK", sdk.as_os_str());
        if let Some(home) = sdk.parent() {
            set("MCPBASH_HOME", home.as_os_str());
        }
    }
    for (name, hosts) in
        [("MCPBASH_HTTPS_ALLOW_HOSTS", &hosts.allow), ("MCPBASH_HTTPS_DENY_HOSTS", &hosts.deny)]
    {
        if !hosts.is_empty() {
            set(name, OsStr::new(&hosts.join(",")));
        }
    }
    environment
}

fn value(environment: &[(OsString, OsString)], name: &str) -> Option<OsString> {
    environment.iter().find(|(it, _)| it == name).map(|(_, value)| value.clone())
}

fn json_tool(path: Option<&OsStr>) -> Option<(&'static str, PathBuf)> {
    JSON_TOOLS.into_iter().find_map(|name| along(path, OsStr::new(name)).map(|file| (name, file)))
}

/// The first executable of that name in the directories of a path. Relative directories are
/// skipped.
pub(crate) fn along(path: Option<&OsStr>, name: &OsStr) -> Option<PathBuf> {
    let folders = path.unwrap_or_default().as_bytes().split(|byte| *byte == b':');
    folders
        .filter(|folder| folder.starts_with(b"/"))
        .map(|folder| Path::new(OsStr::from_bytes(folder)).join(name))
        .find(|file| is_executable(file))
}

fn is_executable(file: &Path) -> bool {
    file.is_file() && rustix::fs::access(file, rustix::fs::Access::EXEC_OK).is_ok()
}

fn find_sdk(root: &Path) -> Option<PathBuf> {
    SDK_PLACES
        .iter()
        .map(|place| root.join(place))
        .find(|place| place.join("tool-sdk.sh").is_file())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn get(workshop: &Workshop, name: &str) -> Option<String> {
        let found = workshop.environment.iter().rev().find(|(it, _)| it == name);
        found.map(|(_, value)| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn tools_on_the_path_and_the_sdk_are_found_once() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for name in ["bin", ".mcp-bash/sdk"] {
            std::fs::create_dir_all(root.join(name)).unwrap();
        }
        std::fs::write(root.join(".mcp-bash/sdk/tool-sdk.sh"), "").unwrap();
        std::fs::write(root.join("bin/gojq"), "").unwrap();
        std::fs::write(root.join("bin/jq"), "").unwrap();
        let runnable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(root.join("bin/jq"), runnable).unwrap();
        let mut config = Config::new(root.clone());
        let path = format!("relative:/nowhere:{}", root.join("bin").display());
        config.environment = vec![("PATH".into(), path.into())];
        let hosts = Hosts { allow: vec!["a.example".into(), "b.example".into()], deny: Vec::new() };
        let workshop = Workshop::new(&config, &hosts);
        let inner = |name: &str| Some(root.join(name).to_str().unwrap().to_owned());
        assert_eq!(get(&workshop, "MCPBASH_JSON_TOOL").as_deref(), Some("jq"));
        assert_eq!(get(&workshop, "MCPBASH_JSON_TOOL_BIN"), inner("bin/jq"));
        assert_eq!(get(&workshop, "MCP_SDK"), inner(".mcp-bash/sdk"));
        assert_eq!(get(&workshop, "MCPBASH_HOME"), inner(".mcp-bash"));
        assert_eq!(get(&workshop, "MCPBASH_SERVER_DIR"), inner("server.d"));
        let allowed = get(&workshop, "MCPBASH_HTTPS_ALLOW_HOSTS");
        assert_eq!(allowed.as_deref(), Some("a.example,b.example"));
        assert_eq!(get(&workshop, "MCPBASH_HTTPS_DENY_HOSTS"), None);
        config.environment.push(("MCP_SDK".into(), "/opt/kit/sdk".into()));
        let workshop = workshop.with(&config, &Hosts::default(), Confines::default());
        assert_eq!(get(&workshop, "MCPBASH_HOME").as_deref(), Some("/opt/kit"));
        assert_eq!(get(&workshop, "MCPBASH_HTTPS_ALLOW_HOSTS"), None);
    }
}
