//! Exposure to others: addresses, tokens, the log, and errors.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Child;

use super::request;
use crate::support::demo::{program, within};

/// A server of the program, and the address that it printed.
async fn serve(arguments: &str) -> (Child, String) {
    let mut child = program(&format!("serve {arguments}")).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = within(lines.next_line()).await.unwrap().unwrap();
    let address = line.strip_prefix("listening on ").unwrap().to_owned();
    (child, address)
}

/// Ends a server; returns its log.
async fn log_of(mut child: Child) -> String {
    let pid = child.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let mut log = String::new();
    within(child.stderr.take().unwrap().read_to_string(&mut log)).await.unwrap();
    log
}

async fn ask(url: &str, message: &serde_json::Value) -> (u16, String) {
    let request = crate::support::demo::http()
        .post(url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .body(message.to_string());
    let answer = within(request.send()).await.unwrap();
    (answer.status().as_u16(), within(answer.text()).await.unwrap())
}

#[tokio::test]
async fn a_server_that_other_machines_can_reach_needs_a_token_or_a_word() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let refused = program(&format!("serve --demo --http {address}")).output();
        let refused = within(refused).await.unwrap();
        assert_eq!(refused.status.code(), Some(2));
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(said.contains("anyone who can reach this machine"), "{said}");
        assert!(said.contains("--token-file") && said.contains("--allow-anyone"), "{said}");
    }
    let (child, _) = serve("--demo --http 0.0.0.0:0 --allow-anyone").await;
    let log = log_of(child).await;
    assert!(log.contains("anyone who can reach this machine may use"), "{log}");
}

#[tokio::test]
async fn a_readable_token_file_and_refused_requests_are_logged() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "a-token-that-is-long-enough\n").unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let arguments = format!("--demo --http 127.0.0.1:0 --token-file {}", file.display());
    let (child, url) = serve(&arguments).await;
    for _ in 0..20 {
        assert_eq!(ask(&url, &request("ping", json!({}))).await.0, 401);
    }
    let log = log_of(child).await;
    assert!(log.contains("other users can read the token"), "{log}");
    // Twenty refusals are one line.
    assert_eq!(log.matches("a request was refused").count(), 1, "{log}");
    assert!(log.contains("status=401") && !log.contains("long-enough"), "{log}");
}

#[tokio::test]
async fn errors_name_no_paths_of_the_machine() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let tool = folder.path().join("tools/broken");
    std::fs::create_dir_all(&tool).unwrap();
    std::fs::write(tool.join("tool.meta.json"), r#"{"name":"broken","description":"x"}"#).unwrap();
    std::fs::write(tool.join("tool.sh"), "#!/nonexistent/interpreter\n").unwrap();
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(tool.join("tool.sh"), executable).unwrap();
    let (child, url) =
        serve(&format!("--folder {} --http 127.0.0.1:0", folder.path().display())).await;
    let modern = super::modern("tools/call", json!({ "name": "broken" }));
    let call = crate::support::demo::http()
        .post(&url)
        .header("accept", "application/json, text/event-stream")
        .header("content-type", "application/json")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "broken")
        .body(modern.to_string());
    let said = within(within(call.send()).await.unwrap().text()).await.unwrap();
    assert!(said.contains("broken") || said.contains("start"), "{said}");
    assert!(!said.contains(folder.path().to_str().unwrap()), "{said}");
    drop(log_of(child).await);
}
