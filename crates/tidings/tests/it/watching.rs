//! `tidings watch` against the demo: changes, restarts, commands, and how it ends.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::support::demo::{Demo, PROGRAM, client, folder, run, within};
use crate::support::rogue::{Rogue, answer, event_stream};

/// A watcher whose lines are read as they come.
struct Watcher {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Watcher {
    fn start(words: &[&str]) -> Self {
        let mut child = client(&[&["watch"], words].concat()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// The next event that is this.
    async fn event(&mut self, is: impl Fn(&Value) -> bool) -> Value {
        loop {
            let line = within(self.lines.next_line()).await.unwrap().expect("it goes on");
            let event: Value = serde_json::from_str(&line).unwrap();
            assert!(event["at_ms"].is_u64(), "{line}");
            if is(&event) {
                return event;
            }
        }
    }

    async fn named(&mut self, name: &str) -> Value {
        self.event(|event| event["event"] == name).await
    }

    async fn interrupt(&mut self) {
        let id = self.child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        assert!(within(self.child.wait()).await.unwrap().success());
    }
}

fn is_state(state: &'static str) -> impl Fn(&Value) -> bool {
    move |event| event["event"] == "connection" && event["state"] == state
}

#[tokio::test]
async fn changes_of_a_text_are_told_as_differences() {
    let demo = Demo::start("--every 0.05").await;
    let watched = run(&["watch", &demo.url(), "station://log", "--until", "2"]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    let text = &watched.output;
    assert_eq!(text.matches("Z  content    station://log changed").count(), 2, "{text}");
    assert!(text.contains("\n@@ ") && text.contains("\n+0"), "{text}");
    assert!(text.contains("Z  watching   station://log\n"), "{text}");
}

#[tokio::test]
async fn changes_of_lists_are_told_by_name() {
    for protocol in ["legacy", "modern"] {
        let demo = Demo::start("--every 3600").await;
        let url = demo.url();
        let mut watcher = Watcher::start(&[&url, "--json", "--protocol", protocol, "--until", "2"]);
        watcher.event(is_state("ready")).await;
        // It says so once the lists are loaded and followed.
        let docked = run(&["call", &url, "dock_module", "module=iris"]).await;
        assert_eq!(docked.code, Some(0), "{docked:?}");
        let change = watcher.named("resources_changed").await;
        assert_eq!(change["added"], serde_json::json!(["station://module/iris"]));
        assert_eq!(change["removed"], serde_json::json!([]));
        assert_eq!(change["reordered"], false);
        assert!(change.get("error").is_none());
        run(&["call", &url, "undock_module", "module=iris"]).await;
        let change = watcher.named("resources_changed").await;
        assert_eq!(change["removed"], serde_json::json!(["station://module/iris"]));
        assert!(within(watcher.child.wait()).await.unwrap().success());
    }
}

#[tokio::test]
async fn contents_are_told_in_json() {
    let demo = Demo::start("--every 0.05").await;
    let watched = run(&["watch", &demo.url(), "station://log", "--until", "2", "--json"]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    let lines = watched.lines();
    let contents: Vec<_> = lines.iter().filter(|line| line["event"] == "content_changed").collect();
    assert_eq!(contents[0]["cause"], "asked");
    let counted: Vec<_> = contents.iter().filter(|line| line["cause"] != "asked").collect();
    assert_eq!(counted.len(), 2, "{lines:#?}");
    assert_eq!(counted[0]["uri"], "station://log");
    assert!(counted[0]["contents"][0]["text"].is_string());
    let watching = lines.iter().find(|line| line["event"] == "subscriptions_changed").unwrap();
    assert_eq!(watching["uris"], serde_json::json!(["station://log"]));
    assert!(!lines.iter().any(|line| line["event"] == "tools_changed"), "{lines:#?}");
}

#[tokio::test]
async fn a_restart_is_survived_and_what_changed_meanwhile_is_told() {
    for protocol in ["legacy", "modern"] {
        let mut demo = Demo::start("--every 3600").await;
        let (url, address) = (demo.url(), demo.address.clone());
        run(&["call", &url, "dock_module", "module=iris"]).await;
        let words =
            [&url, "station://status", "--lists", "--json", "--protocol", protocol, "--until", "2"];
        let mut watcher = Watcher::start(&words);
        watcher.named("subscriptions_changed").await;
        demo.child.kill().await.unwrap();
        watcher.event(is_state("lost")).await;
        watcher.event(is_state("retrying")).await;
        let _again = Demo::start_at(&address, "--every 3600").await;
        let mut changes = Vec::new();
        while changes.len() < 2 {
            let change = |event: &Value| {
                event["event"] == "resources_changed" || event["event"] == "content_changed"
            };
            changes.push(watcher.event(change).await);
        }
        let list = changes.iter().find(|it| it["event"] == "resources_changed").unwrap();
        assert_eq!(list["removed"], serde_json::json!(["station://module/iris"]));
        let content = changes.iter().find(|it| it["event"] == "content_changed").unwrap();
        assert_eq!(content["cause"], "resync");
        assert!(within(watcher.child.wait()).await.unwrap().success());
    }
}

#[tokio::test]
async fn a_command_is_run_for_each_change_and_may_fail() {
    let demo = Demo::start("--every 0.05").await;
    let file = folder("exec").join("changes");
    let command = format!("cat >> {}; exit 3", file.display());
    let words =
        ["watch", &demo.url(), "station://log", "--until", "3", "--json", "--exec", &command];
    let watched = run(&words).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    let given = std::fs::read_to_string(&file).unwrap();
    let given: Vec<Value> = given.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(given.len(), 3);
    assert!(given.iter().all(|change| change["event"] == "content_changed"));
    let warned = watched.lines().iter().filter(|line| line["event"] == "warning").count();
    assert_eq!(warned, 3, "{watched:?}");
}

#[tokio::test]
async fn it_ends_after_a_time() {
    let demo = Demo::start("--every 3600").await;
    let watched = run(&["watch", &demo.url(), "--for", "50ms"]).await;
    assert_eq!(watched.code, Some(0), "{watched:?}");
    assert!(watched.output.contains("watching   3 tools, 5 resources"), "{watched:?}");
}

#[tokio::test]
async fn an_interrupt_ends_it_with_success_and_its_server_with_it() {
    let server = format!("echo $$ >&2; exec {PROGRAM} serve --demo --stdio --every 3600");
    let mut watcher = Watcher::start(&["station://log", "--json", "--", "sh", "-c", &server]);
    let line = watcher.named("stderr").await;
    let id = line["line"].as_str().unwrap().trim().to_owned();
    watcher.named("subscriptions_changed").await;
    assert!(std::path::Path::new(&format!("/proc/{id}")).exists());
    watcher.interrupt().await;
    assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
}

#[tokio::test]
async fn what_cannot_be_watched_is_a_failure() {
    let demo = Demo::start("--every 3600").await;
    let watched = run(&["watch", &demo.url(), "nowhere://x"]).await;
    assert_eq!(watched.code, Some(1), "{watched:?}");
    assert!(watched.errors.contains("nothing can be watched"), "{watched:?}");
}

#[tokio::test]
async fn a_reader_that_goes_away_ends_it_with_success() {
    let demo = Demo::start("--every 0.05").await;
    let mut child = client(&["watch", &demo.url(), "--lists", "station://log"]).spawn().unwrap();
    drop(child.stdout.take());
    let ended = tokio::time::timeout(Duration::from_secs(20), child.wait()).await;
    assert!(ended.unwrap().unwrap().success());
}

#[tokio::test]
async fn a_resource_that_disappears_is_a_change_and_so_is_its_return() {
    for protocol in ["legacy", "modern"] {
        let demo = Demo::start("--every 3600").await;
        let url = demo.url();
        run(&["call", &url, "dock_module", "module=iris"]).await;
        let uri = "station://module/iris";
        let file = folder(&format!("gone-{protocol}")).join("changes");
        let command = format!("cat >> {}", file.display());
        let words =
            [&url, uri, "--json", "--protocol", protocol, "--until", "2", "--exec", &command];
        let mut watcher = Watcher::start(&words);
        watcher.named("subscriptions_changed").await;
        run(&["call", &url, "undock_module", "module=iris"]).await;
        assert_eq!(watcher.named("gone").await["uri"], uri);
        run(&["call", &url, "dock_module", "module=iris"]).await;
        let back = watcher.event(|event| event["cause"] == "returned").await;
        assert_eq!(back["event"], "content_changed");
        assert!(within(watcher.child.wait()).await.unwrap().success());
        assert_eq!(std::fs::read_to_string(&file).unwrap().lines().count(), 2);
    }
}

#[tokio::test]
async fn many_resources_are_read_and_watched_side_by_side_and_told_in_one_line() {
    let rogue = Rogue::start(|call| match (&call.http, call.method.as_str()) {
        (&Method::GET, _) => {
            let (sender, answer) = event_stream();
            // It stays open with the server.
            std::mem::forget(sender);
            answer
        }
        (_, "resources/read") => match call.message["params"]["uri"].as_str() {
            Some("r://0") => {
                let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
                answer(StatusCode::OK, "application/json", Body::from_stream(never))
            }
            uri => call.result(&json!({ "contents": [{ "uri": uri, "text": "hello" }] })),
        },
        _ => call.decent(&json!({ "resources": { "subscribe": true } })),
    })
    .await;
    let uris: Vec<_> = (0..200).map(|number| format!("r://{number}")).collect();
    let mut words = vec![rogue.url.as_str(), "--protocol", "legacy"];
    words.extend(uris.iter().map(String::as_str));
    let mut watcher = Watcher::start(&words);
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("watching")) {
        lines.push(within(watcher.lines.next_line()).await.unwrap().unwrap());
    }
    assert!(lines.last().unwrap().ends_with("watching   200 resources"), "{lines:?}");
    assert!(lines.len() < 5, "{lines:?}");
    watcher.interrupt().await;
}

#[tokio::test]
async fn a_command_that_runs_ends_with_the_watcher_and_so_does_all_it_started() {
    for signal in ["TERM", "HUP"] {
        a_command_ends_at(signal).await;
    }
}

async fn a_command_ends_at(signal: &str) {
    let demo = Demo::start("--every 0.05").await;
    let file = folder(&format!("running-{signal}")).join("id");
    let command = format!("sleep 600 & echo $! > {0}.new; mv {0}.new {0}; wait", file.display());
    let words = [&demo.url(), "station://log", "--json", "--exec", &command];
    let mut watcher = Watcher::start(&words);
    let id = within(async {
        loop {
            watcher.named("content_changed").await;
            if let Ok(id) = std::fs::read_to_string(&file) {
                return id;
            }
        }
    })
    .await;
    let running = std::path::PathBuf::from(format!("/proc/{}", id.trim()));
    assert!(running.exists());
    let watching = watcher.child.id().unwrap().to_string();
    let kill = ["-s", signal, &watching];
    assert!(std::process::Command::new("kill").args(kill).status().unwrap().success());
    assert!(within(watcher.child.wait()).await.unwrap().success());
    within(async {
        while std::fs::read_to_string(running.join("stat")).is_ok_and(|stat| !stat.contains(") Z "))
        {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn watching_where_nothing_can_be_announced_is_a_failure() {
    let rogue = Rogue::start(|call| match call.method.as_str() {
        "resources/read" => {
            call.result(&json!({ "contents": [{ "uri": "r://1", "text": "hello" }] }))
        }
        _ => call.decent(&json!({ "resources": { "subscribe": true } })),
    })
    .await;
    let watched = run(&["watch", &rogue.url, "r://1", "--protocol", "legacy"]).await;
    assert_eq!(watched.code, Some(1), "{watched:?}");
    assert!(watched.errors.contains("does not offer a stream"), "{watched:?}");
}

#[tokio::test]
async fn what_a_restart_takes_away_is_told_and_so_is_its_return() {
    for protocol in ["legacy", "modern"] {
        let mut demo = Demo::start("--every 3600").await;
        let (url, address) = (demo.url(), demo.address.clone());
        run(&["call", &url, "dock_module", "module=iris"]).await;
        let uri = "station://module/iris";
        let words = [&url, uri, "--json", "--protocol", protocol, "--until", "2"];
        let mut watcher = Watcher::start(&words);
        watcher.named("subscriptions_changed").await;
        demo.child.kill().await.unwrap();
        watcher.event(is_state("lost")).await;
        let _again = Demo::start_at(&address, "--every 3600").await;
        assert_eq!(watcher.named("gone").await["uri"], uri);
        run(&["call", &url, "dock_module", "module=iris"]).await;
        watcher.event(|event| event["cause"] == "returned").await;
        assert!(within(watcher.child.wait()).await.unwrap().success());
    }
}
