//! A server that is killed while a tool of its folder runs.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;

use super::{Plot, is_alive};
use crate::support::demo::{client, within};
use crate::support::piped::Server;

/// A tool that starts another program, says who they are, and waits.
const BLOCKS: &str = "sleep 600 & echo $$ $! > pids; echo '::progress 1' >&2; wait";

/// A folder, and where its programs have their private files.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().unwrap());
        home.plot().tool("blocks", "A tool that does not end", BLOCKS);
        std::fs::create_dir(home.scratch()).unwrap();
        home
    }

    fn plot(&self) -> Plot {
        Plot(self.0.path().join("folder"))
    }

    fn scratch(&self) -> PathBuf {
        self.0.path().join("scratch")
    }

    /// A server whose tool runs, and the processes of the tool.
    async fn serve(&self) -> (Server, Vec<String>) {
        let mut server = Server::of(self.command()).await;
        let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {
            "name": "blocks", "arguments": {}, "_meta": { "progressToken": 1 } } });
        server.send(&call).await;
        while server.next().await["method"] != "notifications/progress" {}
        let pids = std::fs::read_to_string(self.plot().at("tools/blocks/pids")).unwrap();
        (server, pids.split_whitespace().map(str::to_owned).collect())
    }

    fn command(&self) -> tokio::process::Command {
        let mut command = client(&["serve", "--stdio", "--silent", "--folder"]);
        command.arg(self.plot().at("")).env("TMPDIR", self.scratch());
        command
    }
}

/// The process that ends programs when their server is gone.
fn keeper_of(server: &Server) -> String {
    let id = server.child.id().unwrap().to_string();
    let of_us = |pid: &str| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1));
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        parent == Some(id.as_str()) && words == b"tidings\0keep\0"
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let mut names = processes.map(|it| it.unwrap().file_name().to_string_lossy().into_owned());
    names.find(|name| of_us(name)).expect("a keeper")
}

/// Waits until it catches the signals that end a process: hangup, interrupt, quit, terminate.
async fn catches_signals(pid: &str) {
    let wanted = (1_u64 << 0) | (1 << 1) | (1 << 2) | (1 << 14);
    let catching = async {
        loop {
            let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
            let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
            if u64::from_str_radix(mask.trim(), 16).unwrap() & wanted == wanted {
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(catching).await;
}

fn signal(name: &str, pid: &str) {
    let sent = std::process::Command::new("kill").args([name, pid]).status().unwrap();
    assert!(sent.success());
}

async fn gone(pid: &str) {
    let gone = async {
        while is_alive(pid) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(gone).await;
}

#[tokio::test]
async fn programs_die_with_a_server_that_is_killed() {
    let home = Home::new();
    let (mut server, pids) = home.serve().await;
    assert_eq!(pids.len(), 2);
    assert!(pids.iter().all(|pid| is_alive(pid)));
    let keeper = keeper_of(&server);
    catches_signals(&keeper).await;
    // What a terminal or a supervisor sends to everyone must not end it first.
    for name in ["-INT", "-TERM", "-HUP", "-QUIT"] {
        signal(name, &keeper);
    }
    within(server.child.kill()).await.unwrap();
    for pid in pids.iter().chain([&keeper]) {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_keeper_that_was_killed_is_replaced_with_the_next_program() {
    let home = Home::new();
    home.plot().tool("quick", "A tool that ends", "echo done");
    let (mut server, pids) = home.serve().await;
    let keeper = keeper_of(&server);
    signal("-KILL", &keeper);
    gone(&keeper).await;
    assert_eq!(server.call("quick", json!({})).await["content"][0]["text"], "done");
    within(server.child.kill()).await.unwrap();
    for pid in &pids {
        gone(pid).await;
    }
}

#[tokio::test]
async fn a_server_that_ends_takes_its_keeper_with_it() {
    let home = Home::new();
    let (mut server, pids) = home.serve().await;
    let keeper = keeper_of(&server);
    let given_up = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": "call" } });
    server.send(&given_up).await;
    drop(server.child.stdin.take());
    within(server.child.wait()).await.unwrap();
    for pid in pids.iter().chain([&keeper]) {
        gone(pid).await;
    }
}

#[tokio::test]
async fn private_files_of_a_killed_server_are_removed_and_those_of_a_live_one_stay() {
    let home = Home::new();
    let calls = || std::fs::read_dir(home.scratch()).unwrap().count();
    let (mut killed, _) = home.serve().await;
    assert_eq!(calls(), 1);
    within(killed.child.kill()).await.unwrap();
    assert_eq!(calls(), 1);
    let (_live, _) = home.serve().await;
    assert_eq!(calls(), 1, "only that of the call that runs");
    let _other = Server::of(home.command()).await;
    assert_eq!(calls(), 1, "the call still runs");
}
