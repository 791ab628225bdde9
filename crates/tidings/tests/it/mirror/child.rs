//! Servers that are child processes, good and bad.

use std::path::Path;
use std::time::Duration;

use tidings_mirror::events::ConnectionState;
use tidings_mirror::{
    Backoff, CommandTarget, Config, ConnectError, Event, Events, Happened, Mirror, Protocol,
    Record, RequestError, Secret, Target,
};

use super::{config, next, state, tools_changed, within};

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");

fn shell(script: &str) -> Target {
    Target::Command(CommandTarget::new("sh", vec!["-c".to_owned(), script.to_owned()]))
}

fn demo() -> Target {
    let arguments = ["serve", "--demo", "--every", "0.05", "--stdio"];
    Target::Command(CommandTarget::new(PROGRAM, arguments.map(str::to_owned).to_vec()))
}

async fn refused(target: Target, config: Config) -> ConnectError {
    match within(Mirror::connect_with(target, config)).await {
        Ok(_) => panic!("it connected"),
        Err(error) => error,
    }
}

async fn open(target: Target, config: Config) -> (Mirror, Events) {
    within(Mirror::connect_with_events(target, config)).await.unwrap()
}

/// Whether a process is there and not only its name on a grave.
fn is_alive(id: &str) -> bool {
    let status = std::fs::read_to_string(Path::new("/proc").join(id.trim()).join("status"));
    status.is_ok_and(|status| !status.contains("State:\tZ"))
}

async fn pid_in(file: &Path) -> String {
    within(async {
        loop {
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => return text,
                _ => tokio::task::yield_now().await,
            }
        }
    })
    .await
}

async fn gone(id: &str) {
    within(async {
        while is_alive(id) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_over_stdio_is_followed_in_both_eras() {
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let (mirror, mut events) = open(demo(), config(protocol)).await;
        assert!(!mirror.resources().is_empty());
        within(mirror.read_resource("station://log")).await.unwrap();
        within(mirror.subscribe(&["station://log"])).await.unwrap();
        for _ in 0..3 {
            super::content_changed(&mut events, "station://log").await;
        }
        tools_changed(&mut events).await;
        mirror.close().await;
        assert!(matches!(mirror.connection(), ConnectionState::Closed { .. }));
    }
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let target = Target::Command(CommandTarget::new("no-such-program-here", Vec::new()));
    let error = refused(target, config(Protocol::Auto)).await;
    assert!(error.to_string().contains("no-such-program-here"), "{error}");
}

#[tokio::test]
async fn a_server_that_dies_leaves_its_last_words() {
    let target = shell("echo banner; echo 'no database' >&2; exit 3");
    let error = refused(target, config(Protocol::Auto)).await;
    let ConnectError::Died { status, stderr, garbage } = &error else { panic!("{error:?}") };
    assert!(status.as_ref().unwrap().contains('3'), "{error}");
    assert_eq!(stderr.iter().map(|line| &**line).collect::<Vec<_>>(), ["no database"]);
    assert_eq!(garbage.as_deref(), Some("banner"));
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_and_killed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let mut config = config(Protocol::Legacy);
    config.connect_timeout = Duration::from_millis(300);
    let error =
        refused(shell(&format!("echo $$ > {}; exec sleep 1000", file.display())), config).await;
    assert!(matches!(error, ConnectError::Timeout { .. }), "{error:?}");
    gone(&pid_in(&file).await).await;
}

#[tokio::test]
async fn a_server_that_floods_is_given_up() {
    for script in ["exec yes", "exec cat /dev/zero"] {
        let mut config = config(Protocol::Legacy);
        config.max_message = 1 << 20;
        let error = refused(shell(script), config).await;
        assert!(matches!(error, ConnectError::Died { .. }), "{script}: {error:?}");
    }
}

#[tokio::test]
async fn a_banner_on_standard_output_is_a_warning_and_no_more() {
    let script = format!("echo 'Welcome to my server'; exec {PROGRAM} serve --demo --stdio");
    let (mirror, mut events) = open(shell(&script), config(Protocol::Auto)).await;
    let line = next(&mut events, |event| match event {
        Event::Warning(tidings_mirror::events::Warning::Garbage { line }) => Some(line),
        _ => None,
    });
    assert_eq!(&*line.await, "Welcome to my server");
    mirror.close().await;
}

#[tokio::test]
async fn the_child_and_its_children_are_gone_when_the_mirror_is_closed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script =
        format!("sleep 1000 & echo $! > {}; exec {PROGRAM} serve --demo --stdio", file.display());
    let (mirror, _) = open(shell(&script), config(Protocol::Auto)).await;
    let grandchild = pid_in(&file).await;
    assert!(is_alive(&grandchild));
    within(mirror.close()).await;
    gone(&grandchild).await;

    // Dropping the last handle is less polite and as thorough.
    std::fs::remove_file(&file).unwrap();
    let (mirror, _) = open(shell(&script), config(Protocol::Auto)).await;
    let grandchild = pid_in(&file).await;
    drop(mirror);
    gone(&grandchild).await;
}

#[tokio::test]
async fn a_server_that_dies_is_started_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script =
        format!("echo $$ > {}; exec {PROGRAM} serve --demo --every 3000 --stdio", file.display());
    let mut config = config(Protocol::Auto);
    config.reconnect = Some(Backoff { first: Duration::from_millis(10), ..Backoff::default() });
    let (mirror, mut events) = open(shell(&script), config).await;
    within(mirror.subscribe(&["station://log"])).await.unwrap();
    let id = pid_in(&file).await;
    std::fs::remove_file(&file).unwrap();
    assert!(std::process::Command::new("kill").args(["-9", id.trim()]).status().unwrap().success());
    state(&mut events, |state| matches!(state, ConnectionState::Lost { .. })).await;
    state(&mut events, |state| *state == ConnectionState::Ready).await;
    assert_ne!(pid_in(&file).await, id);
    next(&mut events, |event| matches!(event, Event::ResourceUpdated { .. }).then_some(())).await;
    assert!(mirror.is_subscribed("station://log"));
    mirror.close().await;
}

#[tokio::test]
async fn standard_error_is_told_line_by_line_and_environment_is_given() {
    let mut target = CommandTarget::new(
        "sh",
        vec![
            "-c".to_owned(),
            format!("echo \"key is $KEY\" >&2; exec {PROGRAM} serve --demo --stdio"),
        ],
    );
    target.environment.insert("KEY".to_owned(), Secret::new("k1"));
    let (mirror, mut events) = open(Target::Command(target), config(Protocol::Auto)).await;
    let line = next(&mut events, |event| match event {
        Event::Stderr { line } => Some(line),
        _ => None,
    });
    assert_eq!(&*line.await, "key is k1");
    assert!(mirror.stderr().iter().any(|line| &**line == "key is k1"));
    mirror.close().await;
}

#[tokio::test]
async fn a_server_that_dies_before_its_lists_are_loaded_is_not_connected_to() {
    let answer = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let script =
        format!("read line; echo '{answer}'; read line; read line; echo 'no disk' >&2; exit 1");
    let mut config = config(Protocol::Legacy);
    config.reconnect = Some(Backoff { first: Duration::from_millis(10), ..Backoff::default() });
    let error = refused(shell(&script), config).await;
    let ConnectError::Died { stderr, .. } = &error else { panic!("{error:?}") };
    assert!(stderr.iter().any(|line| &**line == "no disk"), "{error:?}");
}

#[tokio::test]
async fn a_server_that_dies_of_the_question_is_started_again_and_not_asked_again() {
    let folder = tempfile::tempdir().unwrap();
    let (starts, file) = (folder.path().join("starts"), folder.path().join("pid"));
    let script = format!(
        "echo . >> {}; echo $$ > {}; read -r line; \
         case \"$line\" in *server/discover*) echo 'what?' >&2; exit 1;; esac; \
         {{ printf '%s\\n' \"$line\"; cat; }} | {PROGRAM} serve --demo --every 3000 --stdio",
        starts.display(),
        file.display(),
    );
    let mut config = config(Protocol::Auto);
    config.reconnect = Some(Backoff { first: Duration::from_millis(10), ..Backoff::default() });
    let (mirror, mut events) = open(shell(&script), config).await;
    assert_eq!(mirror.server().unwrap().era, tidings_mirror::Era::Legacy);
    let count = || std::fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(count(), 2);
    let group = format!("-{}", pid_in(&file).await.trim());
    let killed = std::process::Command::new("kill").args(["-9", "--", &group]).status().unwrap();
    assert!(killed.success());
    state(&mut events, |state| matches!(state, ConnectionState::Lost { .. })).await;
    state(&mut events, |state| *state == ConnectionState::Ready).await;
    assert_eq!(count(), 3, "what it is was remembered");
    mirror.close().await;
}

#[tokio::test]
async fn a_server_that_stops_reading_holds_up_no_request_for_longer_than_its_timeout() {
    let result = serde_json::json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "serverInfo": { "name": "deaf", "version": "1" },
    });
    let hello = serde_json::json!({ "jsonrpc": "2.0", "id": 0, "result": result });
    let script = format!("read -r line; echo '{hello}'; read -r line; exec sleep 1000");
    let mut config = config(Protocol::Legacy);
    (config.request_timeout, config.history) = (Duration::from_millis(200), 10);
    let (mirror, _) = open(shell(&script), config).await;
    for _ in 0..2 {
        // More than a pipe holds.
        let text = "x".repeat(1 << 20);
        let error = within(mirror.call_tool("hear", [("text", text)])).await.unwrap_err();
        assert!(matches!(error, RequestError::Timeout(_)), "{error}");
    }
    let started = mirror.records_since(0).into_iter().find_map(|record| match record {
        Record::Fact(fact) => match fact.what {
            Happened::ProcessStarted { pid } => Some(pid),
            _ => None,
        },
        _ => None,
    });
    drop(mirror);
    gone(&started.unwrap().to_string()).await;
}
