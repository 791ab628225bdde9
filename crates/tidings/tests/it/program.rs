//! The program as a person runs it: the real binary, real sockets, real signals.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Command;

use crate::support::demo::{Demo, PROGRAM, program, within};

fn http_post(body: &Value, headers: &str) -> String {
    let body = body.to_string();
    format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
         content-type: application/json\r\n{headers}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn listen() -> String {
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        },
        "notifications": { "resourceSubscriptions": ["station://log"] },
    }});
    http_post(&message, "mcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n")
}

#[tokio::test]
async fn the_demo_changes_by_itself_and_tells_who_listens() {
    let mut demo = Demo::start("--every 0.05").await;
    let mut client = BufReader::new(demo.send(&listen()).await).lines();
    let mut heard = Vec::new();
    while heard.len() < 3 {
        let line = within(client.next_line()).await.unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            let message: Value = serde_json::from_str(data).unwrap();
            heard.push(message["method"].as_str().unwrap().to_owned());
        }
    }
    let updated = "notifications/resources/updated";
    assert_eq!(heard, ["notifications/subscriptions/acknowledged", updated, updated]);
    demo.line("  change  ").await;
    assert!(demo.line("  notice  station://log").await.ends_with("→ 1 listener"));
    let metrics = demo.get("/metrics").await;
    assert!(metrics.contains("tidings_subscriptions 1"), "{metrics}");
    assert!(demo.get("/healthz").await.ends_with("ok\n"));
}

#[tokio::test]
async fn a_signal_ends_streams_properly_and_the_program_with_success() {
    for name in ["-TERM", "-INT"] {
        let mut demo = Demo::start("--every 3600").await;
        let mut client = BufReader::new(demo.send(&listen()).await).lines();
        while !within(client.next_line()).await.unwrap().unwrap().contains("acknowledged") {}
        demo.signal(name);
        let mut last = String::new();
        while let Some(line) = within(client.next_line()).await.unwrap() {
            if line.starts_with("data: ") {
                last = line;
            }
        }
        assert!(last.contains("\"resultType\":\"complete\""), "{last}");
        assert!(within(demo.child.wait()).await.unwrap().success());
    }
}

#[tokio::test]
async fn json_lines_are_for_machines() {
    let mut child = program("serve --demo --json --every 0.05 --http 127.0.0.1:0").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value =
        serde_json::from_str(&within(lines.next_line()).await.unwrap().unwrap()).unwrap();
    assert_eq!(first["event"], "listening");
    let second: Value =
        serde_json::from_str(&within(lines.next_line()).await.unwrap().unwrap()).unwrap();
    assert_eq!(second["event"], "change");
    assert!(second["what"].is_string() && second["unix_ms"].is_u64());
}

#[tokio::test]
async fn over_stdio_only_the_protocol_is_on_standard_output() {
    let mut child =
        program("serve --demo --stdio --verbose --every 0.05 --log info").spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "it", "version": "1" } } });
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    let watch = json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
        "params": { "uri": "station://log" } });
    input.write_all(format!("{hello}\n{ready}\n{watch}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut updates = 0;
    while updates < 3 {
        let line = within(lines.next_line()).await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        updates += usize::from(message["method"] == "notifications/resources/updated");
    }
    drop(input);
    let ended = within(child.wait_with_output()).await.unwrap();
    assert!(ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("change") && said.contains("serving stdio"), "{said}");
}

#[tokio::test]
async fn a_signal_ends_a_stdio_server_whose_input_is_open() {
    let mut child = program("serve --demo --stdio --verbose --every 0.05").spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    assert!(within(lines.next_line()).await.unwrap().unwrap().contains("change"));
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert!(within(child.wait()).await.unwrap().success());
}

/// A stdio server that has begun to say far more on standard error than a pipe holds, and nobody
/// reads on; it answers all the same.
async fn unread() -> (tempfile::TempDir, tokio::process::Child) {
    let folder = tempfile::tempdir().unwrap();
    let unknown = "x".repeat(3000);
    for number in 0..100 {
        let tool = folder.path().join(format!("tools/t{number}"));
        std::fs::create_dir_all(&tool).unwrap();
        std::fs::write(tool.join("tool.sh"), "").unwrap();
        let meta = json!({ "description": "A test", unknown.as_str(): 1 });
        std::fs::write(tool.join("tool.meta.json"), meta.to_string()).unwrap();
    }
    let mut command = program("serve --stdio --folder");
    let mut child = command.arg(folder.path()).spawn().unwrap();
    let mut begun = [0; 10];
    within(child.stderr.as_mut().unwrap().read_exact(&mut begun)).await.unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "it", "version": "1" } } });
    let input = child.stdin.as_mut().unwrap();
    input.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    assert!(within(lines.next_line()).await.unwrap().unwrap().contains("serverInfo"));
    (folder, child)
}

/// It ended with success, and with lines that found no reader.
async fn ended_unread(mut child: tokio::process::Child) {
    assert!(within(child.wait()).await.unwrap().success());
    let mut said = String::new();
    within(child.stderr.unwrap().read_to_string(&mut said)).await.unwrap();
    assert!(said.lines().count() < 100, "{said}");
}

#[tokio::test]
async fn a_closed_input_ends_a_server_whose_errors_nobody_reads() {
    let (_folder, mut child) = unread().await;
    drop(child.stdin.take());
    ended_unread(child).await;
}

#[tokio::test]
async fn a_signal_ends_a_server_whose_errors_nobody_reads() {
    let (_folder, mut child) = unread().await;
    let _open = child.stdin.take();
    let id = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    ended_unread(child).await;
}

#[tokio::test]
async fn wrong_usage_is_two_and_a_failure_is_one_with_a_hint() {
    let usage = within(program("serve").output()).await.unwrap();
    assert_eq!(usage.status.code(), Some(2));
    let taken = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = taken.local_addr().unwrap();
    let failed = within(program(&format!("serve --demo --http {address}")).output()).await.unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(
        String::from_utf8(failed.stderr).unwrap(),
        format!(
            "error: listening on {address}\ncaused by: Address already in use (os error 98)\n\
             hint: is another program listening there? `--http 127.0.0.1:0` uses any free port\n"
        )
    );
    let no_file = "serve --demo --http 127.0.0.1:0 --token-file /nonexistent/token";
    let failed = within(program(no_file).output()).await.unwrap();
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(said.starts_with("error: reading the token from /nonexistent/token\n"), "{said}");
}

#[tokio::test]
async fn the_way_in_is_shown_without_arguments() {
    let shown = within(program("").output()).await.unwrap();
    assert_eq!(shown.status.code(), Some(2));
    let said = String::from_utf8(shown.stderr).unwrap();
    assert!(said.contains("Start here: tidings serve --demo"), "{said}");
}

#[tokio::test]
async fn every_example_of_the_help_works_as_printed() {
    let help = within(program("serve --help").output()).await.unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let examples: Vec<_> = help
        .lines()
        .filter_map(|line| line.trim().strip_prefix("tidings "))
        .map(|line| line.split("  ").next().unwrap().to_owned())
        .collect();
    assert_eq!(examples.len(), 10, "{help}");
    let here = tempfile::tempdir().unwrap();
    let made = within(program("new folder my-tools").current_dir(&here).status()).await.unwrap();
    assert!(made.success());
    std::fs::write(
        here.path().join("news.xml"),
        "<rss><channel><title>News</title></channel></rss>",
    )
    .unwrap();
    let hosts = json!({ "mcpServers": {
        "demo": { "command": "tidings", "args": ["serve", "--demo", "--stdio"] }
    } });
    std::fs::write(here.path().join(".mcp.json"), hosts.to_string()).unwrap();
    let path = std::path::Path::new(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{path}:{}", std::env::var("PATH").unwrap());
    for example in examples {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec tidings {example}")]).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.current_dir(&here).env("HOME", here.path()).env("PATH", &path);
        command.env_remove("TIDINGS_TOKEN").env_remove("XDG_DATA_HOME");
        let mut child = command.spawn().unwrap();
        if example.ends_with("--stdio") {
            drop(child.stdin.take());
            assert!(within(child.wait()).await.unwrap().success(), "{example}");
            continue;
        }
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = within(lines.next_line()).await.unwrap();
        // Another server may have the port of the first example on the machine of the test.
        assert!(first.is_none() || first.unwrap().starts_with("listening on "), "{example}");
    }
}

/// Clients that come and go in every state leave nothing behind.
#[tokio::test]
async fn ten_thousand_connects_and_drops_leave_nothing() {
    let demo = Demo::start("--every 3600").await;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let half = &http_post(&list, "")[..150];
    let listen = listen();
    let resident = |id: u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().parse::<u64>().unwrap()
    };
    let id = demo.child.id().unwrap();
    let mut after_first = 0;
    for round in 0..100 {
        let mut sockets = Vec::new();
        for number in 0..100 {
            let request = match number % 4 {
                0 => "",
                1 => "GET /mcp HT",
                2 => half,
                _ => &listen,
            };
            sockets.push(demo.send(request).await);
        }
        drop(sockets);
        if round == 9 {
            after_first = resident(id);
        }
    }
    // Dropping a connection is seen when it is read again; asking is what gives it the time.
    within(async {
        while !demo.get("/metrics").await.contains("tidings_listeners 0") {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let grown = resident(id).saturating_sub(after_first);
    assert!(grown < 16 * 1024, "{grown} KiB more after 9,000 further connections");
    assert!(demo.get("/metrics").await.contains("tidings_sessions 0"));
}
