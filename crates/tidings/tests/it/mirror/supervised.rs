//! Mirrors that exist before their server does.

use std::time::Duration;

use serde_json::json;
use tidings_mirror::events::ConnectionState;
use tidings_mirror::{
    Backoff, CommandTarget, Config, ConnectError, Event, Mirror, NO_ARGUMENTS, Protocol,
    RequestError, StreamsTarget, Target,
};

use super::live::Plot;
use super::{connect, state, within};

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
    assert!(matches!(mirror.failure().as_deref(), Some(ConnectError::Died { .. })));
    let error = mirror.call_tool("dock_module", NO_ARGUMENTS).await.unwrap_err();
    assert!(matches!(error, RequestError::NotConnected(_)), "{error}");
    assert!(mirror.tools().is_empty() && mirror.server().is_none());

    std::fs::write(folder.path().join("licence"), "").unwrap();
    within(mirror.ready()).await.unwrap();
    assert_eq!(mirror.connection(), ConnectionState::Ready);
    assert!(mirror.failure().is_none());
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

/// Backs off for longer than any test waits.
fn patient() -> Config {
    let mut config = Config::default();
    let hour = Duration::from_hours(1);
    config.reconnect = Some(Backoff { first: hour, most: hour, attempts: None });
    config
}

fn is_retrying(state: &ConnectionState) -> bool {
    matches!(state, ConnectionState::Retrying { .. })
}

#[tokio::test]
async fn a_connection_that_waits_is_made_when_somebody_asks_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let words =
        ["-c", "test -e licence && exec \"$0\" \"$@\"", PROGRAM, "serve", "--demo", "--stdio"];
    let mut target = CommandTarget::run("sh", words);
    target.folder = Some(folder.path().to_owned());
    let (mirror, mut events) = Mirror::supervise(target, patient());
    state(&mut events, is_retrying).await;
    within(mirror.reconnect_now()).await.unwrap();
    state(&mut events, is_retrying).await;
    std::fs::write(folder.path().join("licence"), "").unwrap();
    within(mirror.reconnect_now()).await.unwrap();
    within(mirror.ready()).await.unwrap();
    assert!(!mirror.tools().is_empty());
    mirror.close().await;
    let error = within(mirror.reconnect_now()).await.unwrap_err();
    assert!(matches!(error, RequestError::NotConnected(_)), "{error}");
}

#[tokio::test]
async fn a_connection_that_lives_is_remade_and_what_is_watched_stays() {
    let plot = Plot::open().await;
    plot.garden.act(&["set", "garden://bed/rose", "1"]).await;
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let mut config = patient();
        config.protocol = protocol;
        let (mirror, mut events) = connect(&plot.url, config).await;
        let mut watch = within(mirror.watch("garden://bed/rose")).await.unwrap();
        within(watch.next()).await.unwrap();
        while events.try_next().is_some() {}
        within(mirror.reconnect_now()).await.unwrap();
        within(mirror.ready()).await.unwrap();
        assert_eq!(mirror.connection(), ConnectionState::Ready);
        let states = [ConnectionState::Connecting, ConnectionState::Ready];
        for expected in states {
            assert_eq!(state(&mut events, |_| true).await, expected);
        }
        assert_eq!(mirror.subscriptions(), ["garden://bed/rose".into()]);
        mirror.close().await;
    }
}

#[tokio::test]
async fn a_mirror_that_is_disconnected_keeps_what_it_has_until_it_is_told_to_come_back() {
    let plot = Plot::open().await;
    plot.garden.act(&["set", "garden://bed/rose", "1"]).await;
    let mut config = Config::default();
    config.reconnect = Some(Backoff { first: Duration::from_millis(1), ..Backoff::default() });
    let (mirror, mut events) = connect(&plot.url, config).await;
    let mut watch = within(mirror.watch("garden://bed/rose")).await.unwrap();
    within(watch.next()).await.unwrap();
    let tools = mirror.tools();
    within(mirror.disconnect()).await;
    assert!(matches!(mirror.connection(), ConnectionState::Disconnected { .. }));
    within(mirror.disconnect()).await;
    let error = mirror.call_tool("plant", NO_ARGUMENTS).await.unwrap_err();
    assert!(error.to_string().contains("disconnected: it was asked for"), "{error}");
    assert_eq!((mirror.tools(), mirror.subscriptions().len()), (tools, 1));
    assert!(mirror.cache().resource("garden://bed/rose").is_some());

    plot.garden.act(&["set", "garden://bed/rose", "7"]).await;
    within(mirror.reconnect_now()).await.unwrap();
    within(mirror.ready()).await.unwrap();
    let update = within(watch.next()).await.unwrap();
    assert!(update.content.unwrap().text().contains('7'), "what changed meanwhile is told");
    let mut seen = Vec::new();
    while let Some(event) = events.try_next() {
        if let Event::Connection(state) = event {
            seen.push(state.to_string());
        }
    }
    let expected = ["connecting", "ready", "disconnected: it was asked for", "connecting", "ready"];
    assert_eq!(seen, expected);
    mirror.close().await;
}

#[tokio::test]
async fn what_somebody_asks_for_may_fail_without_ending_the_mirror() {
    let plot = Plot::open().await;
    let mut config = Config::default();
    config.reconnect = None;
    let (mirror, _) = connect(&plot.url, config).await;
    within(mirror.disconnect()).await;
    plot.crash().await;
    within(mirror.reconnect_now()).await.unwrap();
    let mut events = mirror.events();
    let resting = |state: &ConnectionState| matches!(state, ConnectionState::Disconnected { .. });
    if !resting(&mirror.connection()) {
        state(&mut events, resting).await;
    }
    let reason = mirror.connection().to_string();
    assert!(reason.contains("could not reach the server"), "{reason}");
    assert!(!mirror.tools().is_empty(), "what is known stays");
    mirror.close().await;
}

#[tokio::test]
async fn an_attempt_is_given_up_when_somebody_disconnects() {
    let (mirror, mut events) = Mirror::supervise("http://127.0.0.1:1/mcp", patient());
    state(&mut events, is_retrying).await;
    within(mirror.disconnect()).await;
    assert!(matches!(mirror.connection(), ConnectionState::Disconnected { .. }));
    let (ours, _theirs) = tokio::io::duplex(64);
    let (input, output) = tokio::io::split(ours);
    let (streams, _events) = Mirror::supervise(StreamsTarget::new(input, output), patient());
    let error = within(streams.reconnect_now()).await.unwrap_err();
    assert!(matches!(error, RequestError::Invalid(_)), "{error}");
}
