//! Mirrors that exist before their server does.

use std::time::Duration;

use serde_json::json;
use tidings_mirror::events::ConnectionState;
use tidings_mirror::{
    Backoff, CommandTarget, Config, ConnectError, Mirror, NO_ARGUMENTS, RequestError,
    StreamsTarget, Target,
};

use super::{state, within};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");

fn config() -> Config {
    let mut config = Config::default();
    config.reconnect = Some(Backoff { first: Duration::from_millis(10), ..Backoff::default() });
    config
}

#[tokio::test]
async fn a_program_that_fails_at_first_is_tried_until_it_works() {
    let folder = tempfile::tempdir().unwrap();
    let script = "test -e licence || { echo no licence >&2; exit 3; }; exec \"$0\" \"$@\"";
    let words = ["-c", script, PROGRAM, "serve", "--demo", "--stdio"];
    let mut target = CommandTarget::run("sh", words);
    target.folder = Some(folder.path().to_owned());
    let (mirror, mut events) = Mirror::supervise(target, config());
    assert_eq!(mirror.connection(), ConnectionState::Connecting);
    let again =
        |state: &ConnectionState| matches!(state, ConnectionState::Retrying { attempt: 1, .. });
    let reason = state(&mut events, again).await.to_string();
    assert!(reason.contains("exit status: 3"), "{reason}");
    assert_eq!(mirror.stderr().last().map(|line| &**line), Some("no licence"));
    let error = mirror.call_tool("dock_module", NO_ARGUMENTS).await.unwrap_err();
    assert!(matches!(error, RequestError::NotConnected(_)), "{error}");
    assert!(mirror.tools().is_empty() && mirror.server().is_none());

    std::fs::write(folder.path().join("licence"), "").unwrap();
    within(mirror.ready()).await.unwrap();
    assert_eq!(mirror.connection(), ConnectionState::Ready);
    assert!(!mirror.tools().is_empty());
    mirror.close().await;
    let error = mirror.ready().await.unwrap_err();
    assert!(matches!(error, RequestError::NotConnected(_)), "{error}");
}

#[tokio::test]
async fn a_mirror_without_a_server_can_be_closed_and_dropped() {
    let (mirror, mut events) = Mirror::supervise("http://127.0.0.1:1/mcp", config());
    state(&mut events, |state| matches!(state, ConnectionState::Retrying { .. })).await;
    within(mirror.close()).await;
    assert!(matches!(mirror.connection(), ConnectionState::Closed { .. }));
    let (mirror, mut events) = Mirror::supervise("http://127.0.0.1:1/mcp", config());
    drop(mirror);
    within(async { while events.next().await.is_some() {} }).await;
}

#[tokio::test]
async fn attempts_have_an_end_if_the_configuration_says_so() {
    let mut config = config();
    config.reconnect = config.reconnect.map(|backoff| Backoff { attempts: Some(2), ..backoff });
    let (mirror, _events) = Mirror::supervise("http://127.0.0.1:1/mcp", config);
    let error = within(mirror.ready()).await.unwrap_err();
    assert!(error.to_string().contains("could not reach the server"), "{error}");
}

#[tokio::test]
async fn streams_are_used_once_although_coming_back_is_the_default() {
    let (ours, theirs) = tokio::io::duplex(64);
    drop(theirs);
    let (input, output) = tokio::io::split(ours);
    let (mirror, _events) = Mirror::supervise(StreamsTarget::new(input, output), Config::default());
    assert!(within(mirror.ready()).await.is_err());
}

#[tokio::test]
async fn anything_that_names_a_server_can_be_connected_to() {
    let mut command = std::process::Command::new(PROGRAM);
    command.args(["serve", "--demo", "--stdio"]);
    let mirror = within(Mirror::connect(command)).await.unwrap();
    assert!(!mirror.tools().is_empty());
    mirror.close().await;
    let entry = json!({ "command": PROGRAM, "args": ["serve", "--demo", "--stdio"] });
    let mirror = within(Mirror::connect(&entry)).await.unwrap();
    assert!(!mirror.tools().is_empty());
    mirror.close().await;
    let refused = within(Mirror::connect(json!({ "type": "stdio" }))).await.map(drop).unwrap_err();
    assert!(matches!(refused, ConnectError::Target(_)), "{refused}");
    let refused = within(Mirror::connect("nonsense")).await.map(drop).unwrap_err();
    assert!(matches!(refused, ConnectError::Url(_)), "{refused}");
    let _target: Target = String::from("http://127.0.0.1:1/mcp").into();
}
