//! Harmful content of a folder: each is refused with a reason, and the rest is served.

use std::time::Duration;

use serde_json::{Value, json};
use tidings_server::Merging;

use super::{Plot, Yard, is_alive};
use crate::support::client::Way;

fn described(plot: &Plot, name: &str, extra: &Value, body: &str) {
    plot.script(&format!("tools/{name}/tool.sh"), body);
    let mut meta = json!({ "name": name, "description": "A test" });
    for (key, value) in extra.as_object().unwrap() {
        meta[key] = value.clone();
    }
    plot.write(&format!("tools/{name}/tool.meta.json"), meta.to_string());
}

fn text(answer: &Value) -> &str {
    answer["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn tools_that_misbehave_are_errors_that_say_why_and_leave_nothing_behind() {
    let yard = Yard::with(
        |plot| {
            described(plot, "good", &json!({}), "echo fine");
            described(plot, "flood", &json!({}), "yes");
            described(plot, "bytes", &json!({}), "printf 'a\\377b'");
            described(plot, "half", &json!({}), "printf '{\"content\": [{\"type\": \"te'");
            described(plot, "fails", &json!({}), "echo the reason >&2; exit 7");
            described(plot, "dies", &json!({}), "kill -9 $$");
            let brief = json!({ "timeoutSecs": 2 });
            described(
                plot,
                "deaf",
                &brief,
                "trap '' TERM; echo $$ > pid; while :; do sleep 60; done",
            );
            described(plot, "forks", &json!({}), "sleep 600 & echo $! > pid; echo forked");
            let schema = json!({ "outputSchema": { "type": "object", "required": ["n"] } });
            described(plot, "promises", &schema, "echo '{\"m\": 1}'");
            let schema = json!({ "inputSchema": {
                "properties": { "n": { "type": "integer" } }, "required": ["n"],
            } });
            described(plot, "strict", &schema, "echo ran > ran");
        },
        Merging::default(),
        |config| config.limits.output = 1 << 20,
    )
    .await;
    let mut listener = yard.listener(Way::Stdio).await;
    let mut call = async |name: &str| {
        let params = json!({ "name": name, "arguments": {} });
        let answer = listener.ask("tools/call", params).await;
        (text(&answer).to_owned(), answer["isError"] == true)
    };
    let check = |(said, is_error): (String, bool), words: &str, wrong: bool| {
        assert!(said.contains(words), "{said}");
        assert_eq!(is_error, wrong, "{said}");
    };
    check(call("flood").await, "1048576", true);
    check(call("bytes").await, "byte 1", true);
    check(call("half").await, "{\"content\": [{\"type\": \"te", false);
    check(call("fails").await, "the reason", true);
    check(call("fails").await, "7", true);
    check(call("dies").await, "9", true);
    check(call("deaf").await, "fixed", true);
    check(call("forks").await, "forked", false);
    check(call("promises").await, "n", true);
    check(call("strict").await, "n", true);
    check(call("good").await, "fine", false);
    assert!(!yard.plot().at("tools/strict/ran").exists(), "it must not run at all");
    for name in ["deaf", "forks"] {
        let pid = std::fs::read_to_string(yard.plot().at(&format!("tools/{name}/pid"))).unwrap();
        assert!(!is_alive(pid.trim()), "{name} left {pid} behind");
    }
}

#[tokio::test]
async fn a_tool_that_hangs_delays_nobody_and_ends_when_its_client_gives_up() {
    let yard = Yard::new(|plot| {
        described(plot, "hangs", &json!({}), "echo $$ > pid; echo '::progress 1' >&2; sleep 600");
        described(plot, "good", &json!({}), "echo fine");
    })
    .await;
    for way in [Way::Stdio, Way::Http] {
        let mut patient = yard.listener(way).await;
        let mut other = yard.listener(way).await;
        let params = json!({ "name": "hangs", "_meta": { "progressToken": 1 } });
        let id = patient.client.request("tools/call", params, false).await;
        patient.client.wait(&json!({ "method": "notifications/progress" })).await;
        let answer = other.ask("tools/call", json!({ "name": "good" })).await;
        assert_eq!(text(&answer), "fine");
        let pid = std::fs::read_to_string(yard.plot().at("tools/hangs/pid")).unwrap();
        assert!(is_alive(pid.trim()));
        let given_up = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id },
        });
        patient.client.send(given_up).await;
        let gone = async {
            while is_alive(pid.trim()) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), gone).await.unwrap();
        patient.ask("ping", json!({})).await;
        let answers: Vec<_> =
            patient.client.rest().into_iter().filter(|message| message["id"] == id).collect();
        assert_eq!(answers, Vec::<Value>::new(), "what was given up is not answered");
    }
}

#[tokio::test]
async fn things_that_are_no_files_and_files_that_are_too_large_are_refused() {
    let mut yard = Yard::new(|plot| {
        plot.write("resources/good.txt", "fine");
        let at = |name: &str| plot.at(&format!("resources/{name}"));
        let large = std::fs::File::create(at("large.bin")).unwrap();
        large.set_len(4 << 30).unwrap();
        std::os::unix::fs::symlink("loop", at("loop")).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", at("out")).unwrap();
        let status = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(status.success());
        plot.write("resources/any.meta.json", r#"{"name":"any","uriTemplate":"file:///{path}"}"#);
    })
    .await;
    let mut listener = yard.listener(Way::Http).await;
    assert_eq!(listener.names("resources").await, ["good.txt", "large.bin"]);
    let plot = yard.plot();
    let answer =
        listener.ask("resources/read", json!({ "uri": plot.uri("resources/large.bin") })).await;
    assert!(answer["error"]["data"]["details"].to_string().contains("larger than"), "{answer}");
    // A template for any file reaches the files that are served, and nothing else.
    let folder = plot.at("").canonicalize().unwrap();
    let folder = folder.to_str().unwrap().trim_end_matches('/').replace('/', "%2F");
    let inside = format!("file:///{folder}%2Fresources%2Fgood.txt");
    assert_eq!(listener.text(&inside).await, "fine");
    for outside in [
        "file:///%2Fetc%2Fpasswd".to_owned(),
        "file:///etc/passwd".to_owned(),
        format!("file:///{folder}%2Fresources%2F..%2F..%2F..%2Fetc%2Fpasswd"),
        format!("file:///{folder}%2Fresources%2Fout"),
        format!("file:///{folder}%2Fresources%2Fpipe"),
        format!("file:///{folder}%2Fresources%2F.hidden"),
        format!("file:///{folder}%2Fserver.d%2Fpolicy.toml"),
    ] {
        plot.write("resources/.hidden", "secret");
        plot.write("server.d/policy.toml", "");
        let answer = listener.ask("resources/read", json!({ "uri": outside })).await;
        assert!(answer.get("error").is_some(), "{outside}: {answer}");
    }
    let report = yard.report().await;
    let files: Vec<_> = report.problems.iter().map(|it| it.file.display().to_string()).collect();
    assert_eq!(files, ["resources/loop", "resources/out", "resources/pipe"]);
}

#[tokio::test]
async fn a_provider_says_by_its_exit_code_what_is_wrong() {
    let yard = Yard::new(|plot| {
        plot.script(
            "providers/echo.sh",
            "case $1 in *2) exit 2;; *3) exit 3;; *4) exit 4;; *5) echo no line >&2; exit 5;; \
             *6) exit 6;; *9) exit 9;; esac; printf 'you said %s' \"$1\"",
        );
    })
    .await;
    let mut listener = yard.listener(Way::Stdio).await;
    assert_eq!(listener.text("echo://hello").await, "you said echo://hello");
    for (end, code) in
        [(2, -32602), (3, -32002), (4, -32602), (5, -32603), (6, -32603), (9, -32603)]
    {
        let uri = format!("echo://x{end}");
        let answer = listener.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["error"]["code"], code, "{uri} {answer}");
    }
}

#[tokio::test]
async fn a_watched_answer_of_a_provider_is_looked_at_by_itself() {
    let mut yard = Yard::with(
        |plot| {
            plot.write("clock", "one");
            plot.script("providers/clock.sh", "cat clock");
        },
        Merging::default(),
        |config| config.providers_every = Duration::from_millis(60),
    )
    .await;
    let mut listeners = yard.listeners().await;
    listeners.subscribe("clock://now").await;
    yard.plot().save("clock", "two");
    for listener in &mut listeners.0 {
        listener.client.wait(&json!({ "params": { "uri": "clock://now" } })).await;
        assert_eq!(listener.text("clock://now").await, "two");
    }
    yard.fence(&mut listeners).await;
    listeners.told(&[]).await;
}

#[tokio::test]
async fn a_registration_that_others_can_write_is_not_run() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut yard = Yard::with(
        |plot| {
            plot.script("server.d/register.sh", "echo ran > ran; echo '{\"tools\": []}'");
            let at = plot.at("server.d/register.sh");
            std::fs::set_permissions(at, std::fs::Permissions::from_mode(0o777)).unwrap();
            described(plot, "good", &json!({}), "echo fine");
        },
        Merging::default(),
        |config| config.register = Some(Duration::from_secs(5)),
    )
    .await;
    let mut listener = yard.listener(Way::Stdio).await;
    assert_eq!(listener.names("tools").await, ["good"]);
    let report = yard.report().await;
    let said = report.problems[0].to_string();
    assert!(said.contains("`server.d/register.sh` can be written by others"), "{said}");
    assert!(!yard.plot().at("ran").exists());
}

#[tokio::test]
async fn the_environment_of_a_tool_has_no_secrets() {
    let yard =
        Yard::new(|plot| described(plot, "env", &json!({}), "env | cut -d= -f1 | sort")).await;
    let mut listener = yard.listener(Way::Stdio).await;
    let answer = listener.ask("tools/call", json!({ "name": "env" })).await;
    let names: Vec<_> = text(&answer).lines().collect();
    assert!(names.contains(&"MCP_TOOL_ARGS_JSON") && names.contains(&"PATH"), "{names:?}");
    // What the test runner sets is in ours, and must not be in the tool's.
    assert!(std::env::vars().any(|(name, _)| name == "CARGO_MANIFEST_DIR"));
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}
