//! The `mcp.json` files of well-known hosts: their locations, the servers in them, and adding one.

mod client;
mod expand;
mod merge;
mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Map, Value};

pub(crate) use self::client::{CLIENTS, Client, Format, Server, toml_key, toml_text};
pub(crate) use self::expand::Environment;
pub(crate) use self::merge::{MergeError, Merged, Other, merge, without};
pub(crate) use self::write::Original;

/// A server in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamedServer {
    pub(crate) name: String,
    pub(crate) file: PathBuf,
    pub(crate) kind: Kind,
    /// Whether the host leaves it out.
    pub(crate) is_disabled: bool,
}

/// How a server is reached, as written in the file. Variables are not replaced.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Http {
        url: String,
        headers: BTreeMap<String, String>,
    },
    Command {
        program: String,
        arguments: Vec<String>,
        environment: BTreeMap<String, String>,
        folder: Option<String>,
    },
}

/// Values of headers and environment variables may be secrets, so they are not shown.
impl std::fmt::Debug for Kind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http { url, headers } => {
                write!(formatter, "Http({url}, {:?})", headers.keys().collect::<Vec<_>>())
            }
            Self::Command { program, arguments, environment, folder } => write!(
                formatter,
                "Command({program}, {arguments:?}, {:?}, {folder:?})",
                environment.keys().collect::<Vec<_>>()
            ),
        }
    }
}

/// The servers that were found, and the files that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// In order of precedence: the first of a name counts.
    pub(crate) entries: Vec<NamedServer>,
    pub(crate) problems: Vec<String>,
}

/// The directories that hosts keep their files in.
#[derive(Clone, Debug)]
pub(crate) struct Surroundings {
    /// The current directory.
    pub(crate) here: PathBuf,
    pub(crate) home: Option<PathBuf>,
    /// `XDG_CONFIG_HOME`, if it is set.
    pub(crate) configuration: Option<PathBuf>,
}

impl Surroundings {
    /// The directories of this process.
    pub(crate) fn new() -> Self {
        let folder = |name: &str| {
            std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
        };
        Self {
            here: std::env::current_dir().unwrap_or_default(),
            home: folder("HOME"),
            configuration: folder("XDG_CONFIG_HOME"),
        }
    }

    /// The directory for the settings of programs.
    fn configuration(&self) -> Option<PathBuf> {
        let at_home = || self.home.as_ref().map(|home| home.join(".config"));
        self.configuration.clone().or_else(at_home)
    }

    /// Every possible file, the nearest first.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        let here = [
            ".mcp.json",
            "mcp.json",
            ".cursor/mcp.json",
            ".vscode/mcp.json",
            ".gemini/settings.json",
        ];
        let mut files: Vec<_> = here.iter().map(|file| self.here.join(file)).collect();
        let configuration = self.configuration();
        if let Some(home) = &self.home {
            let at_home = [
                ".cursor/mcp.json",
                ".claude.json",
                ".codeium/windsurf/mcp_config.json",
                ".gemini/settings.json",
                ".lmstudio/mcp.json",
            ];
            files.extend(at_home.iter().map(|file| home.join(file)));
        }
        let macos = self.home.as_ref().map(|home| home.join("Library/Application Support"));
        for folder in configuration.into_iter().chain(macos) {
            files.push(folder.join("Claude/claude_desktop_config.json"));
            files.push(folder.join("Code/User/mcp.json"));
        }
        files
    }

    /// All servers in all files.
    pub(crate) fn find(&self) -> Found {
        let mut found = Found::default();
        let mut files = self.files();
        // In the home directory, the project's file and the user's file may be the same.
        let mut seen = std::collections::BTreeSet::new();
        files.retain(|file| seen.insert(file.clone()));
        for file in files {
            match std::fs::read_to_string(&file) {
                Ok(text) => self.take(&file, &text, &mut found),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => found.problems.push(format!("`{}`: {error}", file.display())),
            }
        }
        found
    }

    /// The servers in one file.
    pub(crate) fn read(&self, file: &Path) -> Result<Found> {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("reading `{}`", file.display()))?;
        let mut found = Found::default();
        self.take(file, &text, &mut found);
        match found.problems.first() {
            Some(problem) if found.entries.is_empty() => Err(anyhow::anyhow!("{problem}")),
            _ => Ok(found),
        }
    }

    fn take(&self, file: &Path, text: &str, found: &mut Found) {
        let value = match merge::read(text) {
            Ok(value) => value.unwrap_or_default(),
            Err(error) => {
                found.problems.push(format!("`{}` is not JSON: {error}", file.display()));
                return;
            }
        };
        // Claude Code keeps the servers of a project under the path of the project.
        let project = value.get("projects").and_then(|projects| projects.get(self.here.to_str()?));
        for value in project.into_iter().chain([&value]) {
            let servers =
                ["mcpServers", "servers"].iter().find_map(|key| value.get(key)?.as_object());
            for (name, server) in servers.into_iter().flatten() {
                match kind(server) {
                    Ok(kind) => {
                        let (name, file) = (name.clone(), file.to_owned());
                        let is_off =
                            |key: &str, value| server.get(key) == Some(&Value::Bool(value));
                        let is_disabled = is_off("disabled", true) || is_off("enabled", false);
                        found.entries.push(NamedServer { name, file, kind, is_disabled });
                    }
                    Err(problem) => found
                        .problems
                        .push(format!("`{}`: server `{name}` {problem}", file.display())),
                }
            }
        }
    }
}

fn kind(server: &Value) -> Result<Kind, &'static str> {
    let server = server.as_object().ok_or("is not an object")?;
    let text = |key: &str| server.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(url) = text("url").or_else(|| text("serverUrl")).or_else(|| text("httpUrl")) {
        return Ok(Kind::Http { url, headers: texts(server, "headers")? });
    }
    let program = text("command").ok_or("has neither `command` nor `url`")?;
    let arguments = match server.get("args") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(arguments)) => arguments
            .iter()
            .map(|argument| argument.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or("has `args` that are not strings")?,
        Some(_) => return Err("has `args` that are not an array"),
    };
    Ok(Kind::Command {
        program,
        arguments,
        environment: texts(server, "env")?,
        folder: text("cwd"),
    })
}

/// A table of strings; numbers and booleans are converted.
fn texts(
    server: &Map<String, Value>,
    key: &'static str,
) -> Result<BTreeMap<String, String>, &'static str> {
    let table = match server.get(key) {
        None | Some(Value::Null) => return Ok(BTreeMap::new()),
        Some(Value::Object(table)) => table,
        Some(_) => return Err("has `env` or `headers` that are not a table"),
    };
    let texts = table.iter().map(|(name, value)| {
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err("has an `env` or `headers` entry that is not a string"),
        };
        Ok((name.clone(), text))
    });
    texts.collect()
}

/// The name of an upstream for a server of this name: hyphens in place of other characters.
pub(crate) fn upstream_name(name: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() { letter } else { '-' };
    let name: String = name.chars().map(plain).collect();
    let begins = name.trim_start_matches(|letter: char| !letter.is_ascii_alphabetic());
    begins.trim_end_matches('-').chars().take(32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings { here: "/project".into(), home: Some("/home/me".into()), configuration: None }
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str], problems: &[&str]) {
        let mut found = Found::default();
        surroundings().take(Path::new("/mcp.json"), text, &mut found);
        let entries: Vec<_> =
            found.entries.iter().map(|entry| format!("{} {:?}", entry.name, entry.kind)).collect();
        assert_eq!(entries, expected);
        assert_eq!(found.problems, problems);
    }

    #[test]
    fn every_usual_form_is_read() {
        check(
            r#"{"mcpServers": {"a": {"command": "node", "args": ["s.js"], "env": {"KEY": "hunter2"}, "cwd": "/x"}}}"#,
            &[r#"a Command(node, ["s.js"], ["KEY"], Some("/x"))"#],
            &[],
        );
        check(
            r#"{"servers": {"b": {"type": "http", "url": "http://h/mcp", "headers": {"X": "hunter2"}}}}"#,
            &[r#"b Http(http://h/mcp, ["X"])"#],
            &[],
        );
        check(
            r#"{"mcpServers": {"c": {"serverUrl": "http://h"}}}"#,
            &["c Http(http://h, [])"],
            &[],
        );
        check("{\"servers\": { // a comment\n}, }", &[], &[]);
    }

    #[test]
    fn the_servers_of_this_project_come_first() {
        check(
            r#"{"mcpServers": {"a": {"url": "http://all"}},
                "projects": {"/project": {"mcpServers": {"a": {"url": "http://here"}}}, "/else": {}}}"#,
            &["a Http(http://here, [])", "a Http(http://all, [])"],
            &[],
        );
    }

    #[test]
    fn what_is_wrong_with_one_server_leaves_the_others() {
        check(
            r#"{"mcpServers": {"a": {}, "b": {"command": "x", "args": 3}, "c": {"command": "x"}}}"#,
            &["c Command(x, [], [], None)"],
            &[
                "`/mcp.json`: server `a` has neither `command` nor `url`",
                "`/mcp.json`: server `b` has `args` that are not an array",
            ],
        );
    }

    #[test]
    fn files_are_looked_for_here_and_at_home() {
        let files = surroundings().files();
        for file in [
            "/project/.mcp.json",
            "/project/.vscode/mcp.json",
            "/home/me/.claude.json",
            "/home/me/.config/Claude/claude_desktop_config.json",
            "/home/me/Library/Application Support/Claude/claude_desktop_config.json",
        ] {
            assert!(files.contains(&PathBuf::from(file)), "{file}");
        }
    }

    #[test]
    fn names_of_hosts_become_names_of_upstreams() {
        for (name, expected) in [
            ("git_hub", "git-hub"),
            ("@scope/server-x", "scope-server-x"),
            ("1 two", "two"),
            ("a__b.c ", "a--b-c"),
            ("ä", ""),
        ] {
            assert_eq!(upstream_name(name), expected, "{name}");
        }
    }
}
