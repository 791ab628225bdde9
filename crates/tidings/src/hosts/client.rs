//! The hosts whose configuration we can write: their files and the form of an entry.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::hosts::Surroundings;

/// A well-known host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Client {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// The key that holds the servers in its file.
    pub(crate) key: &'static str,
    /// Whether an entry states that it uses stdio.
    typed: bool,
    pub(crate) format: Format,
    /// The file of a project, relative to the project's folder.
    project: Option<&'static str>,
    user: &'static [(Base, &'static str)],
}

/// The format of a host's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    /// Printed only; the host's own command changes the file.
    Toml,
}

/// The base of a user's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Home,
    /// `XDG_CONFIG_HOME` or `~/.config`.
    Configuration,
    /// `~/Library/Application Support`.
    Library,
}

/// A server as written in a host's file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Server {
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    env: BTreeMap<String, String>,
}

/// Every known host, in the order of the list.
pub(crate) const CLIENTS: [Client; 9] = [
    Client::json("claude-code", Some(".mcp.json"), &[(Base::Home, ".claude.json")]),
    Client::json(
        "claude-desktop",
        None,
        &[
            (Base::Configuration, "Claude/claude_desktop_config.json"),
            (Base::Library, "Claude/claude_desktop_config.json"),
        ],
    ),
    Client {
        key: "mcp_servers",
        format: Format::Toml,
        ..Client::json("codex", Some(".codex/config.toml"), &[(Base::Home, ".codex/config.toml")])
    },
    Client::json("cursor", Some(".cursor/mcp.json"), &[(Base::Home, ".cursor/mcp.json")]),
    Client::json("gemini", Some(".gemini/settings.json"), &[(Base::Home, ".gemini/settings.json")]),
    Client::json("lmstudio", None, &[(Base::Home, ".lmstudio/mcp.json")]),
    Client {
        key: "servers",
        typed: true,
        ..Client::json(
            "vscode",
            Some(".vscode/mcp.json"),
            &[(Base::Configuration, "Code/User/mcp.json"), (Base::Library, "Code/User/mcp.json")],
        )
    },
    Client::json("windsurf", None, &[(Base::Home, ".codeium/windsurf/mcp_config.json")]),
    Client {
        key: "context_servers",
        ..Client::json("zed", None, &[(Base::Configuration, "zed/settings.json")])
    },
];

impl Client {
    const fn json(
        name: &'static str,
        project: Option<&'static str>,
        user: &'static [(Base, &'static str)],
    ) -> Self {
        Self { name, key: "mcpServers", typed: false, format: Format::Json, project, user }
    }

    /// The host of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        CLIENTS.into_iter().find(|client| client.name == name)
    }

    /// A server that is started with these words.
    pub(crate) fn server(
        &self,
        command: String,
        args: Vec<String>,
        env: BTreeMap<String, String>,
    ) -> Server {
        Server { kind: self.typed.then_some("stdio"), command, args, env }
    }

    /// The host's file if it had this server alone.
    pub(crate) fn snippet(&self, name: &str, server: &Server) -> String {
        match self.format {
            Format::Json => {
                let file = BTreeMap::from([(self.key, BTreeMap::from([(name, server)]))]);
                serde_json::to_string_pretty(&file).expect("texts are JSON")
            }
            Format::Toml => {
                let arguments: Vec<_> = server.args.iter().map(|word| toml_text(word)).collect();
                let variables = server.env.iter();
                let variables: Vec<_> = variables
                    .map(|(name, value)| format!("{} = {}", toml_key(name), toml_text(value)))
                    .collect();
                let env = match variables.as_slice() {
                    [] => String::new(),
                    some => format!("\nenv = {{ {} }}", some.join(", ")),
                };
                format!(
                    "[{}.{}]\ncommand = {}\nargs = [{}]{env}",
                    self.key,
                    toml_key(name),
                    toml_text(&server.command),
                    arguments.join(", ")
                )
            }
        }
    }

    /// The file of the current project, if the host has one.
    pub(crate) fn project_file(&self, surroundings: &Surroundings) -> Option<PathBuf> {
        self.project.map(|file| surroundings.here.join(file))
    }

    /// The user's file: the first that exists, else the first whose folder exists, else the
    /// default. `None` if the home directory is unknown.
    pub(crate) fn user_file(&self, surroundings: &Surroundings) -> Option<PathBuf> {
        let files = self.user_files(surroundings);
        let there = files.iter().find(|file| file.exists());
        let begun = || files.iter().find(|file| file.parent().is_some_and(Path::exists));
        there.or_else(begun).or(files.first()).cloned()
    }

    fn user_files(&self, surroundings: &Surroundings) -> Vec<PathBuf> {
        let home = surroundings.home.as_ref();
        let path = |(base, file): &(Base, &str)| {
            let folder = match base {
                Base::Home => home.cloned(),
                Base::Configuration => surroundings.configuration(),
                Base::Library => home.map(|home| home.join("Library/Application Support")),
            };
            folder.map(|folder| folder.join(file))
        };
        self.user.iter().filter_map(path).collect()
    }
}

/// A key of TOML, quoted if it must be.
pub(crate) fn toml_key(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let bare = !name.is_empty() && name.chars().all(plain);
    if bare { name.to_owned() } else { toml_text(name) }
}

/// JSON strings are TOML strings, except that TOML escapes the delete character too.
pub(crate) fn toml_text(text: &str) -> String {
    let text = serde_json::to_string(text).expect("texts are JSON");
    text.replace('\u{7f}', "\\u007f")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings() -> Surroundings {
        Surroundings { here: "/project".into(), home: Some("/home/me".into()), configuration: None }
    }

    fn snippet(client: &str) -> String {
        let client = Client::named(client).unwrap();
        let words = ["serve", "--folder", "/x", "--stdio"].map(str::to_owned);
        client.snippet(
            "hello",
            &client.server("/bin/tidings".to_owned(), words.to_vec(), BTreeMap::new()),
        )
    }

    #[test]
    fn a_snippet_is_what_the_host_reads() {
        insta::assert_snapshot!(snippet("claude-desktop"), @r#"
        {
          "mcpServers": {
            "hello": {
              "command": "/bin/tidings",
              "args": [
                "serve",
                "--folder",
                "/x",
                "--stdio"
              ]
            }
          }
        }
        "#);
        let vscode: serde_json::Value = serde_json::from_str(&snippet("vscode")).unwrap();
        assert_eq!(vscode["servers"]["hello"]["type"], "stdio");
        assert!(snippet("zed").contains("\"context_servers\""));
        insta::assert_snapshot!(snippet("codex"), @r#"
        [mcp_servers.hello]
        command = "/bin/tidings"
        args = ["serve", "--folder", "/x", "--stdio"]
        "#);
    }

    #[test]
    fn names_that_are_no_bare_keys_are_quoted() {
        assert_eq!(toml_key("a-b_1"), "a-b_1");
        assert_eq!(toml_key("a.b"), "\"a.b\"");
        assert_eq!(toml_text("a\\\"\u{7f}"), "\"a\\\\\\\"\\u007f\"");
    }

    /// What we write we also find again by its name.
    #[test]
    fn every_file_we_write_is_one_we_read() {
        let surroundings = surroundings();
        let read = surroundings.files();
        for client in CLIENTS.iter().filter(|it| ["mcpServers", "servers"].contains(&it.key)) {
            let files = client.user_files(&surroundings);
            for file in files.into_iter().chain(client.project_file(&surroundings)) {
                assert!(read.contains(&file), "{}", file.display());
            }
        }
    }

    #[test]
    fn the_file_that_is_there_is_taken() {
        let home = tempfile::tempdir().unwrap();
        let surroundings = Surroundings {
            here: "/project".into(),
            home: Some(home.path().to_owned()),
            configuration: None,
        };
        let desktop = Client::named("claude-desktop").unwrap();
        let library = home.path().join("Library/Application Support/Claude");
        let linux = home.path().join(".config/Claude/claude_desktop_config.json");
        assert_eq!(desktop.user_file(&surroundings), Some(linux));
        std::fs::create_dir_all(&library).unwrap();
        let macos = library.join("claude_desktop_config.json");
        assert_eq!(desktop.user_file(&surroundings), Some(macos));
    }
}
