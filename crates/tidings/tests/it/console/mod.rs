//! `tidings open`: the real binary, as its page and others meet it.

mod kept;
mod processes;
mod saved;

use std::process::Stdio;

use reqwest::{Client, Method, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::demo::{Demo, PROGRAM, http, program, run, within};

/// A console, and a client with its token.
struct Console {
    child: Child,
    host: String,
    token: String,
    client: Client,
}

impl Console {
    async fn open(words: &[&str]) -> Self {
        let mut command = program("open --new --no-browser --json");
        command.args(words);
        Self::start(command).await
    }

    async fn start(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = within(lines.next_line()).await.unwrap().unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let link = line["link"].as_str().unwrap();
        let (host, token) = link.strip_prefix("http://").unwrap().split_once("/#token=").unwrap();
        let client = http();
        Self { child, host: host.to_owned(), token: token.to_owned(), client }
    }

    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let request = self.client.request(method, format!("http://{}/api/{path}", self.host));
        let mut request = request.bearer_auth(&self.token);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = within(request.send()).await.unwrap();
        let status = answer.status();
        let text = within(answer.text()).await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    async fn get(&self, path: &str) -> Value {
        let (status, answer) = self.ask(Method::GET, path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {answer}");
        answer
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(Method::POST, path, Some(body)).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    }

    /// Follows a thing as the page does, until it is as wanted.
    async fn until(&self, key: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let mut since = 0;
        let following = async {
            loop {
                let state = self.get(&format!("state?since={since}&wait=20&see={key}")).await;
                since = state["rev"].as_u64().unwrap();
                if let Some(value) = state["things"].get(key).filter(|value| is_wanted(value)) {
                    return value.clone();
                }
            }
        };
        within(following).await
    }

    /// Waits until the first server is connected and its lists are there.
    async fn ready(&self) {
        let is_ready = |it: &Value| {
            it[0]["state"]["state"] == "ready"
                && it[0]["lists"]["tools"]["count"].as_u64() >= Some(2)
        };
        self.until("servers", is_ready).await;
    }
}

#[tokio::test]
async fn only_the_page_with_its_token_is_answered() {
    let console = Console::open(&[]).await;
    let status = async |path: &str, headers: &[(&str, &str)]| {
        let mut request = console.client.get(format!("http://{}{path}", console.host));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        within(request.send()).await.unwrap().status().as_u16()
    };
    let token = format!("Bearer {}", console.token);
    let token = ("authorization", &*token);
    assert_eq!(status("/", &[]).await, 200);
    assert_eq!(status("/", &[("host", "evil.example")]).await, 403);
    assert_eq!(status("/api/state", &[("host", "localhost"), token]).await, 403);
    assert_eq!(status("/api/state", &[token, ("origin", "http://evil.example")]).await, 403);
    assert_eq!(status("/api/state", &[]).await, 401);
    assert_eq!(status(&format!("/api/state?token={}", console.token), &[]).await, 401);
    assert_eq!(status("/api/state", &[("authorization", "Bearer x")]).await, 401);
    assert_eq!(status("/api/state", &[token]).await, 200);
    let answer = console.client.get(format!("http://{}/", console.host)).send().await.unwrap();
    let policy = answer.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
    assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    assert!(answer.headers().get("access-control-allow-origin").is_none());
    assert!(!answer.text().await.unwrap().contains(&console.token), "the page holds no secret");
}

#[tokio::test]
async fn the_page_cannot_start_a_command() {
    let console = Console::open(&[]).await;
    for target in ["touch /tmp/x", "sh -c true", "/bin/true", "--", "-- sh"] {
        let add = console.ask(Method::POST, "s", Some(json!({ "target": target }))).await;
        assert_eq!(add.0, StatusCode::BAD_REQUEST, "{target}: {}", add.1);
    }
    let add = json!({ "target": "x", "command": ["touch", "/tmp/x"] });
    assert_eq!(console.ask(Method::POST, "s", Some(add)).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(console.get("state?see=servers").await["things"]["servers"], json!([]));
}

#[tokio::test]
async fn a_notice_leads_to_a_read_and_a_new_version() {
    let demo = Demo::start("--every 0.1").await;
    let console = Console::open(&[&demo.url()]).await;
    console.ready().await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    let has_changed = |it: &Value| it["changes"].as_u64() >= Some(2);
    let watched = console.until("s/1/watched/station://log", has_changed).await;
    assert!(watched["diff"]["added"].as_u64() >= Some(1), "{watched}");
    assert_eq!((&watched["fresh"], &watched["mime"]), (&true.into(), &"text/plain".into()));
    let is_content =
        |row: &&Value| row["what"].as_str().is_some_and(|it| it.starts_with("content v"));
    let has_content =
        |it: &Value| it["rows"].as_array().unwrap().iter().any(|row| is_content(&row));
    let log = console.until("s/1/log", has_content).await;
    let row = log["rows"].as_array().unwrap().iter().find(is_content).unwrap();
    let whole = console.get(&format!("s/1/log/{}", row["n"])).await;
    assert_eq!(whole["cause"]["what"], "resources/updated", "{whole}");
    let cause = console.get(&format!("s/1/log/{}", whole["cause"]["n"])).await;
    let effects: Vec<_> = cause["effects"].as_array().unwrap().iter().collect();
    assert!(effects.iter().any(|it| it["what"] == "resources/read"), "{cause}");
    let value = format!("s/1/value?of=row:{}&at=/params", whole["cause"]["n"]);
    let window = console.get(&value).await;
    assert!(window["nodes"].as_array().unwrap().iter().any(|it| it["text"] == "station://log"));
}

#[tokio::test]
async fn a_call_has_a_result_and_its_effects() {
    let demo = Demo::start("--every 3600").await;
    let console = Console::open(&[&demo.url()]).await;
    console.ready().await;
    let item = console.get("s/1/item?list=tools&key=dock_module").await;
    assert_eq!(item["fields"][0]["name"], "module");
    let form = |values: Value| json!({ "list": "tools", "key": "dock_module", "values": values });
    let checked = console.post("s/1/form", form(json!({}))).await;
    assert!(checked["problems"][0]["text"].as_str().unwrap().contains("module"), "{checked}");
    let call = console.post("s/1/call", form(json!({ "module": "iris" }))).await;
    let is_done = |it: &Value| it["runs"][0]["state"] == "ok";
    console.until("s/1/calls/dock_module", is_done).await;
    // What a call sets off may come after its result.
    let has_effects = |it: &Value| {
        it["total"].as_u64() > Some(0)
            && it["rows"]
                .as_array()
                .unwrap()
                .iter()
                .any(|row| row["what"] == "resources/list_changed")
    };
    console.until("s/1/log", has_effects).await;
    let result = console.get(&format!("s/1/result/{}", call["call"])).await;
    assert!(result["blocks"][0]["text"].as_str().unwrap().contains("iris"), "{result}");
    let effects = result["effects"].as_array().unwrap();
    assert!(effects.iter().any(|row| row["what"] == "resources/list_changed"), "{result}");
    let unknown = form(json!({}));
    console.post("s/1/call", unknown).await;
    let has_failed =
        |it: &Value| ["error", "failed"].iter().any(|state| it["runs"][0]["state"] == *state);
    console.until("s/1/calls/dock_module", has_failed).await;
}

#[tokio::test]
async fn a_killed_server_leaves_its_evidence_and_comes_back() {
    let mut demo = Demo::start("--every 0.1").await;
    let address = demo.address.clone();
    let console = Console::open(&[&demo.url()]).await;
    console.ready().await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    let has_changed = |it: &Value| it["changes"].as_u64() >= Some(1);
    console.until("s/1/watched/station://log", has_changed).await;
    demo.child.kill().await.unwrap();
    let lost = console.until("servers", |it| it[0]["losses"].as_u64() >= Some(1)).await;
    assert!(lost[0]["lists"]["tools"]["count"].as_u64() >= Some(2), "the lists stay");
    let watched = console.get("state?see=s/1/watched/station://log").await;
    let watched = &watched["things"]["s/1/watched/station://log"];
    assert!(watched["versions"].as_array().unwrap().len() >= 2, "{watched}");
    let _again = Demo::start_at(&address, "--every 0.1").await;
    console.until("servers", |it| it[0]["state"]["state"] == "ready").await;
    let before = watched["versions"].as_array().unwrap().last().unwrap()["n"].as_u64();
    let is_newer = |it: &Value| {
        it["fresh"] == true
            && it["versions"].as_array().unwrap().last().unwrap()["n"].as_u64() > before
    };
    console.until("s/1/watched/station://log", is_newer).await;
}

#[tokio::test]
async fn the_step_that_failed_is_named_with_the_last_words_of_the_program() {
    let console = Console::open(&["--", "sh", "-c", "echo no licence >&2; exit 3"]).await;
    console.until("servers", |it| it[0]["state"]["state"] == "retrying").await;
    let doctor = console.get("s/1/doctor").await;
    let steps: Vec<_> = doctor["steps"].as_array().unwrap().iter().collect();
    let states: Vec<_> = steps.iter().map(|step| step["state"].as_str().unwrap()).collect();
    assert_eq!(states[..4], ["good", "good", "failed", "unknown"], "{doctor}");
    assert!(steps[2]["words"].as_str().unwrap().contains("exit status: 3"), "{doctor}");
    assert_eq!(doctor["stderr"].as_array().unwrap().last(), Some(&"no licence".into()));
    assert_eq!(doctor["advice"][0]["kind"], "paragraph", "{doctor}");
}

#[tokio::test]
async fn nothing_is_left_when_the_console_ends() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let words = ["--", PROGRAM, "serve", "--demo", "--stdio"];
        let mut console = Console::open(&words).await;
        console.ready().await;
        let log = console.until("s/1/log", |it| it["total"].as_u64() > Some(0)).await;
        let rows = log["rows"].as_array().unwrap();
        let is_start = |row: &&Value| row["what"] == "process started";
        let started = rows.iter().rfind(is_start).unwrap();
        let pid = started["of"].as_str().unwrap().strip_prefix("pid ").unwrap().to_owned();
        let own = Pid::from_raw(i32::try_from(console.child.id().unwrap()).unwrap()).unwrap();
        kill_process(own, signal).unwrap();
        let status = within(console.child.wait()).await.unwrap();
        assert!(status.success(), "{signal:?}: {status}");
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
        assert!(!stat.is_ok_and(|it| !it.contains(") Z ")), "{signal:?}: {pid} runs");
    }
}

/// The console of a server is at its own port, with its own token, and shows who listens to what.
#[tokio::test]
async fn a_server_shows_its_listeners_and_what_became_of_each_change() {
    let token = ("TIDINGS_TOKEN", "0123456789abcdef");
    let mut command = program("serve --demo --every 0.1 --console --json --http 127.0.0.1:0");
    let mut child = command.env(token.0, token.1).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap();
    let link = line["console"].as_str().unwrap();
    let (host, page_token) = link.strip_prefix("http://").unwrap().split_once("#token=").unwrap();
    assert_eq!(format!("http://{}", host.replace("console/", "mcp")), line["endpoint"]);
    // The requests of a console are below the path of its page.
    let host = host.trim_end_matches('/').to_owned();
    let console = Console { child, host, token: page_token.to_owned(), client: http() };
    let status = async |path: &str, token: &str| {
        let place = format!("http://{}{path}", console.host);
        within(console.client.get(place).bearer_auth(token).send()).await.unwrap().status().as_u16()
    };
    assert_eq!(status("/", "").await, 200);
    assert_eq!(status("/api/state", "").await, 401);
    assert_eq!(status("/api/state", token.1).await, 401, "the token of the endpoint is another");
    assert_eq!(status("/../mcp", page_token).await, 401, "and so is the token of the page");
    let add = console.ask(Method::POST, "s", Some(json!({ "target": "http://127.0.0.1:1" }))).await;
    assert_eq!(add.0, StatusCode::FORBIDDEN, "{}", add.1);
    assert_eq!(console.ask(Method::DELETE, "s/1", None).await.0, StatusCode::FORBIDDEN);
    console.ready().await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    let is_told = |it: &Value| {
        let rows = it["ledger"].as_array().unwrap();
        it["listeners"][0]["told"].as_u64() > Some(0)
            && rows.iter().any(|row| row["what"] == "station://log" && row["became"] == "announced")
    };
    let hub = console.until("hub", is_told).await;
    assert_eq!(hub["sources"][0]["name"], "station", "{hub}");
    assert_eq!(
        (&hub["listening"], &hub["watched"][0]["uri"]),
        (&1.into(), &"station://log".into())
    );
    let mut child = console.child;
    let own = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    kill_process(own, Signal::TERM).unwrap();
    assert!(within(child.wait()).await.unwrap().success());
}

#[tokio::test]
async fn a_console_is_not_served_to_other_machines() {
    let words = ["serve", "--demo", "--console", "--allow-anyone", "--http", "0.0.0.0:0"];
    let ended = run(&words).await;
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_eq!(run(&["serve", "--demo", "--console", "--stdio"]).await.code, Some(2));
}

#[tokio::test]
async fn wrong_targets_are_refused_before_anything_starts() {
    let ended = run(&["open", "--no-browser", "no-such-server"]).await;
    assert_eq!((ended.code, ended.output.as_str()), (Some(2), ""), "{ended:?}");
    let both = ["open", "--no-browser", "x", "--", "sh"];
    assert_eq!(run(&both).await.code, Some(2));
}
