//! A writer that is killed in the middle of its writes: what it acknowledged is there.

use std::collections::HashSet;
use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use super::Place;
use crate::support::demo::within;
use crate::support::workspace;

const KILLS: usize = 50;
/// More than a writer gets to before it is killed.
const FILES: usize = 300;

/// The writers take turns: the command line with a folder of files, and a server whose client asks
/// for many artifacts at once. Each is killed after a few acknowledgements, at whatever it does then.
#[tokio::test]
async fn no_acknowledged_write_is_lost_when_a_writer_is_killed() {
    let place = Place::in_memory();
    for number in 0..FILES {
        place.write(&format!("many/{number}.txt"), &format!("file {number}"));
    }
    place.import("first", "").await;
    let mut acknowledged = HashSet::new();
    for round in 0..KILLS {
        let after = round * 7 % 23;
        let ids = match round % 2 {
            0 => killed_import(&place, after).await,
            _ => killed_server(&place, after).await,
        };
        assert!(ids.len() >= after && ids.len() < FILES, "{} in round {round}", ids.len());
        acknowledged.extend(ids);
        let workspace = workspace(&place.path("w"));
        for id in &acknowledged {
            assert!(workspace.artifact(id).unwrap().is_some(), "{id} is gone in round {round}");
        }
        let verified = workspace.verify(|_, _| {}).unwrap();
        assert_eq!(verified.problems, [], "round {round}");
    }
    assert_eq!(place.run("verify").await.code, Some(0));
}

async fn killed_import(place: &Place, after: usize) -> Vec<String> {
    let mut command = place.command("workspace w import many --json");
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ids = Vec::new();
    let mut is_killed = false;
    loop {
        if ids.len() >= after && !is_killed {
            child.start_kill().unwrap();
            is_killed = true;
        }
        // What was written before the end counts, also when it is read later.
        let Some(line) = within(lines.next_line()).await.unwrap() else { break };
        let line: Value = serde_json::from_str(&line).unwrap();
        ids.push(line["id"].as_str().unwrap().to_owned());
    }
    within(child.wait()).await.unwrap();
    ids
}

async fn killed_server(place: &Place, after: usize) -> Vec<String> {
    let mut child = place.command("serve --stdio --silent --workspace w").spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut text = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "killed", "version": "1" } } })
    .to_string();
    text += "\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
    for number in 1..FILES {
        let arguments =
            json!({ "title": format!("of {number}"), "text": format!("{number}"), "tags": ["t"] });
        let params = json!({ "name": "create_artifact", "arguments": arguments });
        let call =
            json!({ "jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params });
        text += &[&call.to_string(), "\n"].concat();
    }
    let mut input = child.stdin.take().unwrap();
    let sending = async move {
        // It is cut off in the middle.
        drop(input.write_all(text.as_bytes()).await);
        input
    };
    let reading = async {
        let mut ids = Vec::new();
        let mut is_killed = false;
        loop {
            if ids.len() >= after && !is_killed {
                child.start_kill().unwrap();
                is_killed = true;
            }
            let Some(line) = within(lines.next_line()).await.unwrap() else { break };
            // The last line may be cut off; what it says was not heard.
            let Ok(message) = serde_json::from_str::<Value>(&line) else { break };
            if let Some(id) = message["result"]["structuredContent"]["id"].as_str() {
                ids.push(id.to_owned());
            }
        }
        within(child.wait()).await.unwrap();
        ids
    };
    tokio::join!(sending, reading).1
}
