//! One console a user: servers that are handed over, sessions that commands use, and what is left.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use super::Console;
use crate::support::demo::{Demo, Ended, PROGRAM, client, ended, within};

pub(super) const PROGRAM_SERVER: [&str; 5] = ["--", PROGRAM, "serve", "--demo", "--stdio"];

/// A user of their own.
pub(super) struct User {
    pub(super) home: TempDir,
}

impl User {
    pub(super) fn new() -> Self {
        Self { home: tempfile::tempdir().unwrap() }
    }

    pub(super) fn command(&self, words: &[&str]) -> Command {
        let mut command = client(words);
        command.env("XDG_RUNTIME_DIR", self.home.path().join("run"));
        command.env("XDG_DATA_HOME", self.home.path().join("data"));
        command
    }

    pub(super) async fn console(&self, words: &[&str]) -> Console {
        let all = [&["open", "--no-browser", "--json"], words].concat();
        Console::start(self.command(&all)).await
    }

    pub(super) async fn run(&self, words: &[&str]) -> Ended {
        ended(self.command(words)).await
    }

    async fn open(&self, words: &[&str]) -> Value {
        self.run(&[&["open", "--no-browser", "--json"], words].concat()).await.object()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.path().join("run/tidings").join(name)
    }
}

pub(super) fn signal(console: &Console, signal: Signal) {
    let own = Pid::from_raw(i32::try_from(console.child.id().unwrap()).unwrap()).unwrap();
    kill_process(own, signal).unwrap();
}

/// The process ids of the programs that a console started for a server.
async fn started(console: &Console, server: u64) -> Vec<String> {
    let log = format!("s/{server}/log");
    let is_started = |row: &Value| row["what"] == "process started";
    let has_started = |it: &Value| it["rows"].as_array().unwrap().iter().any(is_started);
    let log = console.until(&log, has_started).await;
    let rows = log["rows"].as_array().unwrap().iter().filter(|row| is_started(row));
    rows.map(|row| row["of"].as_str().unwrap().strip_prefix("pid ").unwrap().to_owned()).collect()
}

fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|it| !it.contains(") Z "))
}

#[tokio::test]
async fn a_second_open_hands_its_servers_over_and_ends() {
    let user = User::new();
    let demo = Demo::start("--every 3600").await;
    let mut console = user.console(&[]).await;
    let record = std::fs::read_to_string(user.file("console.json")).unwrap();
    let record: Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["pid"].as_u64(), console.child.id().map(u64::from));
    assert!(console.host.ends_with(&format!(":{}", record["port"])), "{record}");
    for (name, mode) in [("console.sock", 0o600), ("console.json", 0o600), ("", 0o700)] {
        let permissions = std::fs::metadata(user.file(name)).unwrap().permissions();
        assert_eq!(permissions.mode() & 0o777, mode, "{name}");
    }
    let opened = user.open(&[&demo.url()]).await;
    let link = format!("http://{}/#token={}", console.host, console.token);
    assert_eq!((&opened["link"], &opened["names"]), (&link.into(), &json!([demo.address])));
    console.ready().await;
    let again = user.open(&[&demo.url()]).await;
    assert_eq!(again["names"], json!([demo.address]), "a URL is opened once");
    let program = user.open(&PROGRAM_SERVER).await;
    assert_eq!(program["names"], json!(["serve"]));
    let other = user.open(&PROGRAM_SERVER).await;
    assert_eq!(other["names"], json!(["serve-2"]), "programs may differ in their folder");
    let is_ready =
        |it: &Value| it[1]["state"]["state"] == "ready" && it[2]["state"]["state"] == "ready";
    console.until("servers", is_ready).await;
    let mut pids = started(&console, 2).await;
    pids.extend(started(&console, 3).await);
    let port = user.run(&["open", "--port", "1"]).await;
    assert_eq!(port.code, Some(2), "{port:?}");
    assert!(port.errors.contains("--new"), "{port:?}");
    signal(&console, Signal::HUP);
    assert!(within(console.child.wait()).await.unwrap().success());
    assert!(!pids.iter().any(|pid| runs(pid)), "{pids:?}");
    assert!(!user.file("console.sock").exists() && !user.file("console.json").exists());
}

#[tokio::test]
async fn what_a_killed_console_left_is_replaced() {
    let user = User::new();
    let mut console = user.console(&[]).await;
    console.child.kill().await.unwrap();
    assert!(user.file("console.sock").exists());
    let none = user.run(&["tools", "@serve"]).await;
    assert_eq!(none.code, Some(2), "{none:?}");
    assert!(none.errors.contains("no console is running"), "{none:?}");
    assert!(none.errors.contains("hint: start one in another terminal: `tidings open TARGET`"));
    let second = user.console(&PROGRAM_SERVER).await;
    second.ready().await;
    assert_eq!(user.run(&["tools", "@serve"]).await.code, Some(0));
}

#[tokio::test]
async fn a_command_uses_the_session_of_the_console() {
    let user = User::new();
    let console = user.console(&PROGRAM_SERVER).await;
    console.ready().await;
    let tools = user.run(&["tools", "@serve", "--json"]).await.lines();
    let direct = user.run(&[&["tools", "--json"], &PROGRAM_SERVER[..]].concat()).await.lines();
    assert_eq!(tools, direct);
    let info = user.run(&["info", "@serve", "--json"]).await.object();
    assert_eq!(info["title"], "Tidings: a space station", "{info}");
    let called = user.run(&["call", "@serve", "dock_module", "module=iris"]).await;
    assert!(called.code == Some(0) && called.output.contains("iris"), "{called:?}");
    let read = user.run(&["read", "@serve", "station://log"]).await;
    assert!(read.code == Some(0) && !read.output.is_empty(), "{read:?}");
    let template = ["read", "@serve", "station://module/{name}", "name=iris"];
    assert!(user.run(&template).await.output.contains("iris"));
    let report = user.run(&["prompt", "@serve", "station_report", "focus=iris"]).await;
    assert!(report.code == Some(0) && report.output.contains("iris"), "{report:?}");
    let complete = ["complete", "@serve", "prompt", "station_report", "focus=i"];
    assert!(user.run(&complete).await.output.contains("iris"));
    let wrong = user.run(&["read", "@serve", "station://nothing"]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
    let by_cli = |what: &'static str| {
        move |it: &Value| {
            let rows = it["rows"].as_array().unwrap();
            rows.iter().any(|row| row["what"] == what && row["by"] == "cli")
        }
    };
    for what in ["tools/call", "resources/read", "prompts/get", "completion/complete"] {
        console.until("s/1/log", by_cli(what)).await;
    }
    let is_shown = |it: &Value| it["runs"][0]["by"] == "cli" && it["runs"][0]["state"] == "ok";
    console.until("s/1/calls/dock_module", is_shown).await;
    assert_eq!(started(&console, 1).await.len(), 1, "the session is the one of the console");
}

#[tokio::test]
async fn a_watch_over_a_session_shows_changes_and_ends_with_its_command() {
    let user = User::new();
    let demo = Demo::start("--every 0.1").await;
    let console = user.console(&[&demo.url()]).await;
    console.ready().await;
    let place = format!("@{}", demo.address);
    let words = ["watch", &place, "station://log", "--until", "3", "--json"];
    let watched = user.run(&words).await;
    assert_eq!((watched.code, watched.lines().len() >= 3), (Some(0), true), "{watched:?}");
    console.until("s/1/watched", |it| it["rows"] == json!([])).await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    assert_eq!(user.run(&words).await.code, Some(0));
    let is_kept = |it: &Value| it["rows"][0]["uri"] == "station://log";
    assert!(is_kept(&console.until("s/1/watched", is_kept).await), "the page watches it still");
}

#[tokio::test]
async fn what_cannot_be_used_is_named() {
    let user = User::new();
    let console = user.console(&["--demo"]).await;
    let unknown = user.run(&["tools", "@sation"]).await;
    assert_eq!(unknown.code, Some(1), "{unknown:?}");
    assert!(unknown.errors.contains("no session `@sation`"), "{unknown:?}");
    assert!(unknown.errors.contains("hint: known sessions: @station"), "{unknown:?}");
    for option in [["--header", "x:y"], ["--env", "A=b"], ["--protocol", "legacy"]] {
        let refused = user.run(&[&["tools", "@station"], &option[..]].concat()).await;
        assert_eq!(refused.code, Some(2), "{refused:?}");
        assert!(refused.errors.contains(option[0]), "{refused:?}");
    }
    let check = user.run(&["check", "@station"]).await;
    assert_eq!(check.code, Some(2), "{check:?}");
    console.post("s/1/disconnect", json!({})).await;
    console.until("servers", |it| it[0]["state"]["state"] == "disconnected").await;
    let gone = user.run(&["tools", "@station"]).await;
    assert_eq!(gone.code, Some(1), "{gone:?}");
    assert!(gone.errors.contains("`@station` is not connected"), "{gone:?}");
}

/// A cancelled call is cancelled at the server, and shown so.
#[tokio::test]
async fn a_command_that_is_killed_leaves_no_call_behind() {
    let user = User::new();
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tools/wait");
    std::fs::create_dir_all(&tool).unwrap();
    std::fs::write(tool.join("tool.sh"), "#!/bin/sh\nsleep 1000\n").unwrap();
    std::fs::write(tool.join("tool.meta.json"), r#"{"description":"Waits."}"#).unwrap();
    let path = folder.path().to_str().unwrap().to_owned();
    let words = ["--", PROGRAM, "serve", "--stdio", "--folder", &path];
    let console = user.console(&words).await;
    let has_tool = |it: &Value| it[0]["lists"]["tools"]["count"] == 1;
    let servers = console.until("servers", has_tool).await;
    let place = format!("@{}", servers[0]["name"].as_str().unwrap());
    let mut call = user.command(&["call", &place, "wait"]).spawn().unwrap();
    console.until("s/1/calls/wait", |it| it["runs"][0]["state"] == "runs").await;
    call.kill().await.unwrap();
    console.until("s/1/calls/wait", |it| it["runs"][0]["state"] == "cancelled").await;
    let is_told =
        |it: &Value| it["rows"].as_array().unwrap().iter().any(|row| row["what"] == "cancelled");
    console.until("s/1/log", is_told).await;
}

#[tokio::test]
async fn a_warm_call_needs_no_handshake() {
    let user = User::new();
    let console = user.console(&PROGRAM_SERVER).await;
    console.ready().await;
    user.run(&["call", "@serve", "dock_module", "module=iris"]).await;
    let log = console.get("state?see=s/1/log").await;
    let rows = log["things"]["s/1/log"]["rows"].as_array().unwrap().clone();
    let handshakes =
        rows.iter().filter(|row| row["what"] == "server/discover" || row["what"] == "initialize");
    assert_eq!(handshakes.count(), 1, "{rows:?}");
}
