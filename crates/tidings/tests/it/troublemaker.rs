//! The client commands against a server that does what servers should not do.

use std::time::Duration;

use serde_json::Value;

use crate::support::demo::{Ended, client, ended, within};
use crate::support::troublemaker::{SCRIPT, is_alive};

async fn run(trouble: &str, words: &[&str]) -> Ended {
    let mut words = words.to_vec();
    let server = format!("TROUBLE={trouble}");
    words.extend(["--json", "--env", &server, "--", "python3", SCRIPT]);
    ended(client(&words)).await
}

#[tokio::test]
async fn cursors_without_end_end_and_are_reported() {
    for (trouble, words) in [("endless", "more than 1000 pages"), ("looping", "same cursor twice")]
    {
        let listed = run(trouble, &["tools"]).await;
        let last = listed.lines().pop().unwrap();
        assert!(last["incomplete"].as_str().unwrap().contains(words), "{last}");
    }
}

#[tokio::test]
async fn what_nobody_knows_survives() {
    let called = run("", &["call", "strange"]).await;
    assert_eq!(called.code, Some(0), "{called:?}");
    for text in [
        r#""depth":9223372036854775807,"type":"hologram"}"#,
        r#""_meta":{"example.org/trace":18446744073709551615}"#,
        r#""structuredContent":null"#,
    ] {
        assert!(called.output.contains(text), "{text} is not in {}", called.output);
    }
}

#[tokio::test]
async fn lines_that_are_not_messages_are_skipped() {
    let listed = run("noise", &["tools"]).await;
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.lines().iter().any(|tool| tool["name"] == "strange"));
}

#[tokio::test]
async fn a_stubborn_server_and_its_child_are_gone_with_the_command() {
    let called = run("stubborn", &["call", "asked"]).await.object();
    let said = called["result"]["content"][0]["text"].as_str().unwrap();
    let said: Value = serde_json::from_str(said).unwrap();
    let ids: Vec<_> = said["pids"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    assert_eq!(ids.len(), 2, "{said}");
    within(async {
        while ids.iter().any(|id| is_alive(*id)) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
