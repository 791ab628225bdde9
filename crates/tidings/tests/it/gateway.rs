//! Other servers behind `tidings serve`: configured, followed, looked after.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::process::Command;

use crate::support::demo::{Ended, client, ended, folder, within};
use crate::support::piped::Server;
use crate::support::troublemaker::{SCRIPT, is_alive};

/// A gateway with a configuration file and a place for its socket and its pins.
struct Gateway {
    server: Server,
    directory: PathBuf,
}

/// The program in a directory of its own.
fn program(directory: &Path, words: &[&str]) -> Command {
    let mut command = client(words);
    command.env("XDG_RUNTIME_DIR", directory).env("XDG_DATA_HOME", directory);
    command.current_dir(directory);
    command
}

impl Gateway {
    async fn start(name: &str, text: &str) -> Self {
        let directory = folder(&format!("gateway-{name}"));
        std::fs::write(directory.join("tidings.toml"), text).unwrap();
        Self::with(directory, &["--config", "tidings.toml"]).await
    }

    async fn with(directory: PathBuf, words: &[&str]) -> Self {
        let words: Vec<_> = ["serve", "--stdio", "--silent"].iter().chain(words).copied().collect();
        let server = Server::of(program(&directory, &words)).await;
        Self { server, directory }
    }

    fn edit(&self, text: &str) {
        let (file, new) = (self.directory.join("tidings.toml"), self.directory.join("new"));
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, file).unwrap();
    }

    async fn tools(&mut self) -> Vec<String> {
        let listed = self.server.ask("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the tools are such that this holds.
    async fn until(&mut self, holds: impl Fn(&[String]) -> bool) -> Vec<String> {
        within(async {
            loop {
                let tools = self.tools().await;
                if holds(&tools) {
                    return tools;
                }
                while self.server.next().await["method"] != "notifications/tools/list_changed" {}
            }
        })
        .await
    }

    async fn command(&self, words: &[&str]) -> Ended {
        let words: Vec<_> = ["upstream"].iter().chain(words).copied().collect();
        ended(program(&self.directory, &words)).await
    }

    /// The text of a call's result.
    async fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.server.call(tool, arguments).await;
        result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
    }

    /// The processes of a troublemaker.
    async fn processes(&mut self, name: &str) -> Vec<u64> {
        let said = self.call(&format!("{name}__asked"), json!({})).await;
        let said: Value = serde_json::from_str(&said).unwrap();
        said["pids"].as_array().unwrap().iter().filter_map(Value::as_u64).collect()
    }
}

fn upstream(name: &str, more: &str) -> String {
    format!("[upstream.{name}]\ncommand = ['python3', '{SCRIPT}']\n{more}\n")
}

fn has(tools: &[String], name: &str) -> bool {
    tools.iter().any(|tool| tool == name)
}

#[tokio::test]
async fn the_first_list_of_a_client_over_stdio_has_the_tools_of_a_slow_upstream() {
    let text = upstream("slow", "env = { TROUBLE = 'late' }");
    let dead = "[upstream.dead]\nurl = 'http://127.0.0.1:1/mcp'\n";
    let mut gateway = Gateway::start("first", &format!("{text}{dead}")).await;
    let tools = gateway.tools().await;
    assert!(has(&tools, "slow__echo"), "{tools:?}");
}

#[tokio::test]
async fn an_edit_adds_filters_and_removes_upstreams_and_restarts_no_other() {
    let one = upstream("one", "");
    let mut gateway = Gateway::start("edit", &one).await;
    gateway.until(|tools| has(tools, "one__echo")).await;
    let before = gateway.processes("one").await;
    gateway.edit(&format!("{one}{}", upstream("two", "prefix = 'second'")));
    let tools = gateway.until(|tools| has(tools, "second__echo")).await;
    assert!(has(&tools, "one__echo"), "{tools:?}");
    let filtered = upstream("one", "tools = { allow = ['a*', 'echo'], rename = { echo = 'say' } }");
    gateway.edit(&format!("{filtered}{}", upstream("two", "prefix = 'second'")));
    let tools = gateway.until(|tools| has(tools, "one__say")).await;
    assert!(!has(&tools, "one__echo") && !has(&tools, "one__fail"), "{tools:?}");
    assert_eq!(gateway.processes("one").await, before, "filters need no restart");
    gateway.edit(&filtered);
    let tools = gateway.until(|tools| !has(tools, "second__echo")).await;
    assert!(has(&tools, "one__say"), "{tools:?}");
    assert_eq!(gateway.processes("one").await, before);
}

#[tokio::test]
async fn another_environment_restarts_only_that_upstream() {
    let (one, two) = (upstream("one", ""), upstream("two", ""));
    let mut gateway = Gateway::start("restart", &format!("{one}{two}")).await;
    gateway.until(|tools| has(tools, "one__echo") && has(tools, "two__echo")).await;
    let before = (gateway.processes("one").await, gateway.processes("two").await);
    let changed = upstream("two", "env = { TROUBLE = 'duplicates' }");
    gateway.edit(&format!("{one}{changed}"));
    gateway.until(|tools| !has(tools, "two__echo")).await;
    gateway.until(|tools| has(tools, "two__echo")).await;
    assert_eq!(gateway.processes("one").await, before.0);
    assert_ne!(gateway.processes("two").await, before.1);
    within(async {
        while is_alive(before.1[0]) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn upstreams_of_the_command_line_and_of_a_host_are_served_together() {
    let directory = folder("gateway-hosts");
    let servers = json!({ "mcpServers": {
        "git_hub": { "command": "python3", "args": ["${TROUBLE_SCRIPT:-none}"], "env": { "TROUBLE": "noise" } },
        "off": { "command": "python3", "args": [SCRIPT], "disabled": true },
        "gone": { "type": "http", "url": "http://127.0.0.1:1/mcp" },
    }});
    let servers = servers.to_string().replace("${TROUBLE_SCRIPT:-none}", "${TROUBLE_NONE:-SCRIPT}");
    std::fs::write(directory.join("mcp.json"), servers.replace("SCRIPT}", &format!("{SCRIPT}}}")))
        .unwrap();
    let named = format!("one=python3 {SCRIPT}");
    let words = ["--upstream", &named, "--mcp-file", "mcp.json"];
    let mut gateway = Gateway::with(directory, &words).await;
    let tools = gateway.until(|it| has(it, "one__echo") && has(it, "git-hub__echo")).await;
    assert!(!tools.iter().any(|tool| tool.starts_with("off")), "{tools:?}");
    let listed = gateway.command(&["ls", "--json"]).await;
    let names: Vec<_> = listed.lines().iter().map(|it| it["name"].clone()).collect();
    assert_eq!(names, ["git-hub", "gone", "one"]);
    let health = gateway.command(&["health"]).await;
    assert_eq!(health.code, Some(1), "{health:?}");
    assert!(health.errors.contains("not available: gone"), "{health:?}");
    // One upstream less in the host's file is one less here.
    std::fs::write(gateway.directory.join("mcp.json"), r#"{"mcpServers": {}}"#).unwrap();
    gateway.until(|tools| !has(tools, "git-hub__echo")).await;
}

#[tokio::test]
async fn the_state_of_upstreams_is_a_resource_that_is_announced() {
    let mut gateway = Gateway::start("resource", &upstream("one", "")).await;
    gateway.server.subscribe("tidings://upstreams").await;
    gateway.until(|tools| has(tools, "one__echo")).await;
    let states = gateway.server.read("tidings://upstreams").await;
    assert_eq!((&states[0]["name"], &states[0]["state"]), (&json!("one"), &json!("ready")));
    let failed = gateway.server.call("one__die", json!({})).await;
    assert!(failed.is_null() || failed["isError"] == true, "{failed}");
    gateway.server.told("tidings://upstreams").await;
}

#[tokio::test]
async fn commands_restart_an_upstream_and_approve_its_changes() {
    let state = folder("gateway-approve-state").join("state.json");
    let text =
        upstream("one", &format!("pin = true\nenv = {{ TROUBLE_STATE = '{}' }}", state.display()));
    let mut gateway = Gateway::start("approve", &text).await;
    gateway.until(|tools| has(tools, "one__echo")).await;
    let before = gateway.processes("one").await;
    let restarted = gateway.command(&["restart", "one"]).await;
    assert_eq!((restarted.code, restarted.output.as_str()), (Some(0), "restarted one\n"));
    within(async { while gateway.processes("one").await == before {} }).await;
    gateway.call("one__add", json!({ "name": "new", "description": "Brand new" })).await;
    within(async {
        loop {
            let listed = gateway.command(&["ls", "--json"]).await.object();
            if listed["held"].as_array().is_some_and(|held| !held.is_empty()) {
                break;
            }
        }
    })
    .await;
    assert!(!has(&gateway.tools().await, "one__new"));
    let approved = gateway.command(&["approve", "one"]).await;
    assert!(approved.output.contains("+  \"description\": \"Brand new\""), "{approved:?}");
    assert!(approved.output.ends_with("approved 1 definition\n"), "{approved:?}");
    gateway.until(|tools| has(tools, "one__new")).await;
    let unknown = gateway.command(&["restart", "on"]).await;
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.errors.contains("did you mean `one`?"), "{unknown:?}");
}

#[tokio::test]
async fn without_a_server_the_commands_say_how_to_start_one() {
    let directory = folder("gateway-none");
    let listed = ended(program(&directory, &["upstream", "ls"])).await;
    assert_eq!(listed.code, Some(2), "{listed:?}");
    assert!(listed.errors.contains("tidings serve --upstream NAME=TARGET"), "{listed:?}");
}

#[tokio::test]
async fn the_servers_of_a_host_are_imported_and_the_host_starts_us_instead() {
    let directory = folder("gateway-import");
    let host = json!({ "mcpServers": {
        "one": { "command": "python3", "args": [SCRIPT], "env": { "TROUBLE": "noise" } },
        "off": { "command": "nothing", "disabled": true },
    }});
    std::fs::write(directory.join(".mcp.json"), format!("{host:#}")).unwrap();
    let words = ["import", "claude-code", "--project", "--replace", "--json"];
    let imported = ended(program(&directory, &words)).await.object();
    assert_eq!(imported["added"], json!(["one"]), "{imported}");
    let left = std::fs::read_to_string(directory.join(".mcp.json")).unwrap();
    let left: Value = serde_json::from_str(&left).unwrap();
    let servers = left["mcpServers"].as_object().unwrap();
    assert_eq!(servers.keys().collect::<Vec<_>>(), ["off", "tidings"], "{left}");
    let kept = std::fs::read_to_string(directory.join(".mcp.json.bak")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&kept).unwrap(), host);
    // The entry works: a host that starts it gets the tools of its server.
    let entry = &servers["tidings"];
    let words = entry["args"].as_array().unwrap().iter();
    let words: Vec<_> = words.map(|word| word.as_str().unwrap()).collect();
    let mut gateway = Gateway { server: Server::of(program(&directory, &words)).await, directory };
    gateway.until(|tools| has(tools, "one__echo")).await;
    // What was imported is not imported again.
    let again = ended(program(&gateway.directory, &["import", "claude-code", "--project"])).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.errors.contains("no servers to import"), "{again:?}");
}
