//! `tidings serve --stdio` in a pipeline: input that ends, output that nobody reads.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::support::demo::{program, within};

const BARE: &str = r#"{"jsonrpc":"2.0","id":"init","method":"initialize","params":{}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"l1","method":"tools/list"}
{"jsonrpc":"2.0","id":"l2","method":"tools/list"}
"#;

/// A folder with one tool.
fn folder(script: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tools/wait");
    std::fs::create_dir_all(&tool).unwrap();
    let meta = json!({ "name": "wait", "description": "Waits" });
    std::fs::write(tool.join("tool.meta.json"), meta.to_string()).unwrap();
    let file = tool.join("tool.sh");
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
    folder
}

fn serve(folder: &Path) -> Command {
    let mut command = program("serve --stdio --folder");
    command.arg(folder);
    command
}

/// Sends a text and the end of the input; returns the lines of the output.
async fn piped(mut command: Command, text: &str) -> Vec<String> {
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(text.as_bytes()).await.unwrap();
    drop(input);
    let ended = within(child.wait_with_output()).await.unwrap();
    assert!(ended.status.success(), "{ended:?}");
    String::from_utf8(ended.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn count(lines: &[String], words: &str) -> usize {
    lines.iter().filter(|line| line.contains(words)).count()
}

#[tokio::test]
async fn what_is_due_is_sent_after_the_end_of_the_input() {
    let folder = folder("#!/bin/sh\necho done\n");
    let old = BARE.replace("{}", r#"{"protocolVersion":"2025-03-26"}"#);
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"wait"}}"#;
    for _ in 0..4 {
        let lines = piped(serve(folder.path()), BARE).await;
        assert_eq!((lines.len(), count(&lines, "list_changed")), (6, 3), "{lines:#?}");
        let lines = piped(serve(folder.path()), &old).await;
        assert_eq!((lines.len(), count(&lines, "list_changed")), (3, 0), "{lines:#?}");
        // After a bad line, with a call that is under way and has no newline.
        let lines = piped(serve(folder.path()), &format!("{{\n{BARE}{call}")).await;
        assert_eq!((lines.len(), count(&lines, "list_changed")), (8, 3), "{lines:#?}");
        assert_eq!((count(&lines, "-32700"), count(&lines, r#""text":"done"#)), (1, 1));
    }
}

#[tokio::test]
async fn a_refused_line_before_the_handshake_keeps_nobody_waiting() {
    let initialize = BARE.lines().next().unwrap();
    for start in 0..24 {
        let refused =
            ["{", "[]", "[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]"][start % 3];
        let mut child = program("serve --demo --stdio --every 3600").spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(format!("{refused}\n{initialize}\n").as_bytes()).await.unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let error: Value =
            serde_json::from_str(&within(lines.next_line()).await.unwrap().unwrap()).unwrap();
        assert!(error["error"]["code"].is_i64(), "{error}");
        let answer: Value =
            serde_json::from_str(&within(lines.next_line()).await.unwrap().unwrap()).unwrap();
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25", "{answer}");
    }
}

/// A server that answered its client.
async fn begun(mut command: Command) -> Child {
    let mut child = command.spawn().unwrap();
    child.stdin.as_mut().unwrap().write_all(BARE.as_bytes()).await.unwrap();
    let mut lines = BufReader::new(child.stdout.as_mut().unwrap()).lines();
    while !within(lines.next_line()).await.unwrap().unwrap().contains("\"l2\"") {}
    child
}

#[tokio::test]
async fn a_server_whose_output_nobody_reads_ends_though_its_input_is_open() {
    let demo = || program("serve --demo --stdio --every 3600");
    let mut child = begun(demo()).await;
    drop(child.stdout.take());
    let input = child.stdin.as_mut().unwrap();
    // It may have noticed before.
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\n";
    drop(input.write_all(ping).await);
    let open = child.stdin.take();
    assert!(within(child.wait()).await.unwrap().success());
    drop(open);
    // It notices without being asked.
    let mut child = begun(demo()).await;
    let open = child.stdin.take();
    drop(child.stdout.take());
    assert!(within(child.wait()).await.unwrap().success());
    drop(open);
}

#[tokio::test]
async fn a_call_ends_with_the_client_that_made_it() {
    let folder = folder(
        "#!/bin/sh\necho $$ > \"$0.pid.new\"; mv \"$0.pid.new\" \"$0.pid\"\nexec sleep 600\n",
    );
    let mut child = begun(serve(folder.path())).await;
    let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"wait"}}"#;
    child.stdin.as_mut().unwrap().write_all(format!("{call}\n").as_bytes()).await.unwrap();
    let file = folder.path().join("tools/wait/tool.sh.pid");
    let pid = within(async {
        loop {
            if let Ok(pid) = std::fs::read_to_string(&file) {
                break pid;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let open = child.stdin.take();
    drop(child.stdout.take());
    assert!(within(child.wait()).await.unwrap().success());
    // It was killed; when the system is done with it is another matter.
    within(async {
        while is_running(pid.trim()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    drop(open);
}

/// Whether a process is there and is more than an entry that nobody has collected yet.
fn is_running(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    status.lines().any(|line| line.starts_with("State:") && !line.contains('Z'))
}
