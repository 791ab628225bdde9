//! Errors and exit codes of the client commands.

use tokio::net::TcpListener;

use crate::support::demo::{Demo, client, ended, folder, run, within};

#[track_caller]
fn check(ended: &crate::support::demo::Ended, code: i32, holds: &[&str]) {
    assert_eq!(ended.code, Some(code), "{ended:?}");
    assert!(ended.errors.starts_with("error: "), "{ended:?}");
    for text in holds {
        assert!(ended.errors.contains(text), "{text}: {ended:?}");
    }
}

#[tokio::test]
async fn a_wrong_port_is_said_so() {
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let failed = run(&["tools", &format!("http://{address}/mcp")]).await;
    check(&failed, 1, &["could not connect to", "hint: is the server running"]);
}

#[tokio::test]
async fn something_else_behind_a_url_is_said_so() {
    let demo = Demo::start("--every 3600").await;
    let failed = run(&["tools", &format!("http://{}/healthz", demo.address)]).await;
    check(&failed, 1, &[&format!("try `http://{}/mcp`", demo.address)]);
}

#[tokio::test]
async fn a_token_is_asked_for_and_taken() {
    let folder = folder("token");
    let file = folder.join("token");
    std::fs::write(&file, "correct horse battery\n".replace(' ', "-")).unwrap();
    let file = file.to_str().unwrap();
    let demo = Demo::start(&format!("--every 3600 --token-file {file}")).await;
    let url = demo.url();
    check(&run(&["tools", &url]).await, 1, &["401", "--token-file"]);
    let listed = run(&["tools", &url, "--token-file", file, "--json"]).await;
    assert_eq!(listed.lines().len(), 3);
    let mut command = client(&["tools", &url, "--json"]);
    command.env("TIDINGS_TOKEN", "correct-horse-battery");
    assert_eq!(ended(command).await.lines().len(), 3);
    let listed =
        run(&["tools", &url, "--header", "Authorization: Bearer correct-horse-battery"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    check(
        &run(&["tools", &url, "--token-file", "/nonexistent/token"]).await,
        1,
        &["reading the token"],
    );
}

#[tokio::test]
async fn a_program_that_is_not_there_or_dies_is_said_so() {
    let failed = run(&["tools", "--", "no-such-program-here"]).await;
    check(&failed, 1, &["hint: is `no-such-program-here` installed"]);
    let failed = run(&["tools", "--", "sh", "-c", "echo no license found >&2; exit 3"]).await;
    check(&failed, 1, &["exit status: 3", "\n  no license found\n"]);
}

#[tokio::test]
async fn a_silent_server_is_waited_for_as_long_as_said() {
    let silent = "echo ready; exec sleep 60";
    let failed = run(&["tools", "--timeout", "300ms", "--", "sh", "-c", silent]).await;
    check(&failed, 1, &["did not answer within 0.3 s", "not an MCP message: ready"]);
}

#[tokio::test]
async fn wrong_usage_is_two() {
    for words in [
        &["tools"][..],
        &["tools", "no-such-name"],
        &["tools", "localhost:8484/mcp"],
        &["read", "http://127.0.0.1:1/mcp"],
        &["read", "http://127.0.0.1:1/mcp", "a:b", "c=d"],
        &["call", "http://127.0.0.1:1/mcp", "tool", "word"],
        &["complete", "http://127.0.0.1:1/mcp", "prompt", "x"],
        &["tools", "http://127.0.0.1:1/mcp", "--env", "A=b"],
        &["tools", "--header", "A:b", "--", "true"],
        &["tools", "more", "--", "true"],
    ] {
        check(&run(words).await, 2, &[]);
    }
}

#[tokio::test]
async fn a_closed_pipe_is_no_failure() {
    let demo = Demo::start("--every 3600").await;
    for words in [&["man"][..], &["completions", "bash"], &["tools", &demo.url()]] {
        let mut child = client(words).spawn().unwrap();
        drop(child.stdout.take());
        assert!(within(child.wait()).await.unwrap().success(), "{words:?}");
    }
}

#[tokio::test]
async fn manual_pages_are_written_for_every_command() {
    let folder = folder("manual");
    let written = run(&["man", "--out", folder.to_str().unwrap()]).await;
    assert_eq!(written.code, Some(0), "{written:?}");
    for page in ["tidings.1", "tidings-watch.1"] {
        assert!(std::fs::read_to_string(folder.join(page)).unwrap().contains(".SH NAME"));
    }
    let script = run(&["completions", "zsh"]).await.output;
    assert!(script.contains("station") || script.contains("watch"));
}
