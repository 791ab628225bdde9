//! Saved sessions: what is in the file, and what a console shows of it without a server.

use std::path::PathBuf;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::Console;
use crate::support::demo::{Demo, PROGRAM, run, within};

/// A session with a watched resource, calls and messages, saved to a file.
async fn session(console: &Console) -> String {
    console.ready().await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    let has_changed = |it: &Value| it["changes"].as_u64() >= Some(2);
    console.until("s/1/watched/station://log", has_changed).await;
    let values = json!({ "module": "iris", "password": "hunter2" });
    let call = json!({ "list": "tools", "key": "dock_module", "values": values });
    console.post("s/1/call", call).await;
    let is_over = |it: &Value| {
        it["runs"].as_array().is_some_and(|it| !it.is_empty()) && it["runs"][0]["state"] != "runs"
    };
    console.until("s/1/calls/dock_module", is_over).await;
    let request = console.client.get(format!("http://{}/api/s/1/session", console.host));
    within(within(request.bearer_auth(&console.token).send()).await.unwrap().text()).await.unwrap()
}

fn write(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

#[tokio::test]
async fn a_saved_session_is_shown_without_its_server() {
    let demo = Demo::start("--every 0.1").await;
    let console = Console::open(&[&demo.url(), "--header", "x-key:hunter2hunter2"]).await;
    let text = session(&console).await;
    let servers = console.get("state?see=servers").await["things"]["servers"].clone();
    drop((console, demo));
    assert!(!text.contains("hunter2"), "secrets are in no line");
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let folder = tempfile::tempdir().unwrap();
    let path = write(&folder, "a.tidings", &text);
    let console = Console::open(&[path.to_str().unwrap()]).await;
    let row = console.get("state?see=servers").await["things"]["servers"][0].clone();
    assert_eq!(row["state"]["state"], "saved", "{row}");
    assert_eq!(row["state"]["reason"], "saved session");
    for same in ["name", "product", "revision", "era", "over", "place"] {
        assert_eq!(row[same], servers[0][same], "{same}");
    }
    assert_eq!(row["lists"]["tools"]["count"], servers[0]["lists"]["tools"]["count"]);
    let keys = [
        "s/1",
        "s/1/tools",
        "s/1/watched",
        "s/1/watched/station://log",
        "s/1/log",
        "s/1/calls/dock_module",
    ];
    let see: Vec<_> = keys.iter().map(|key| format!("see={key}")).collect();
    let state = console.get(&format!("state?{}", see.join("&"))).await;
    let things = &state["things"];
    assert_eq!(things["s/1"]["tells"]["contents"], true, "{}", things["s/1"]);
    assert!(things["s/1/tools"]["rows"].as_array().unwrap().len() >= 2);
    let watched = &things["s/1/watched/station://log"];
    assert!(watched["versions"].as_array().unwrap().len() >= 3, "{watched}");
    assert!(watched["diff"]["added"].as_u64() >= Some(1) && watched["fresh"] == false, "{watched}");
    let rows = things["s/1/log"]["rows"].as_array().unwrap();
    let read = rows.iter().find(|row| row["what"] == "resources/read" && row["cause"].is_u64());
    let read = console.get(&format!("s/1/log/{}", read.unwrap()["n"])).await;
    assert_eq!(read["cause"]["what"], "resources/updated", "{read}");
    let value = format!("s/1/value?of=row:{}&at=/params", read["n"]);
    let window = console.get(&value).await;
    assert!(window["nodes"].as_array().unwrap().iter().any(|it| it["text"] == "station://log"));
    let runs = &things["s/1/calls/dock_module"]["runs"];
    assert_eq!(runs.as_array().unwrap().len(), 1, "{runs}");
    let result = console.get(&format!("s/1/result/{}", runs[0]["n"])).await;
    assert!(result["arguments"].get("password").is_none(), "{result}");
    let call = json!({ "list": "tools", "key": "dock_module", "values": {} });
    for (path, body) in
        [("s/1/call", call), ("s/1/connect", json!({})), ("s/1/read", json!({ "uri": "a:b" }))]
    {
        let (status, said) = console.ask(Method::POST, path, Some(body)).await;
        assert_eq!(status, StatusCode::CONFLICT, "{path}: {said}");
        assert!(said["error"].as_str().unwrap().contains("saved session"), "{said}");
    }
    let again = console.client.get(format!("http://{}/api/s/1/session", console.host));
    let again = within(again.bearer_auth(&console.token).send()).await.unwrap();
    let again = within(again.text()).await.unwrap();
    assert_eq!(again.lines().count(), text.lines().count(), "it can be saved again");
}

#[tokio::test]
async fn a_file_that_was_cut_is_opened_up_to_there_and_others_are_refused() {
    let words = ["--", PROGRAM, "serve", "--demo", "--stdio", "--every", "0.1"];
    let text = session(&Console::open(&words).await).await;
    let folder = tempfile::tempdir().unwrap();
    let cut = write(&folder, "cut.tidings", &text[..text.len() / 2]);
    let console = Console::open(&[cut.to_str().unwrap()]).await;
    let row = console.get("state?see=servers").await["things"]["servers"][0].clone();
    let reason = row["state"]["reason"].as_str().unwrap();
    assert!(reason.starts_with("saved session; the file is cut in line "), "{reason}");
    assert!(row["lists"]["tools"]["count"].as_u64() >= Some(2), "{row}");
    let mut lines: Vec<_> = text.lines().collect();
    lines[1] = "nonsense";
    for (name, text, expected) in [
        ("bad.tidings", lines.join("\n"), "line 2: not JSON"),
        ("page.tidings", "<html>\n".to_owned(), "line 1: not JSON"),
        (
            "other.tidings",
            "{\"a\":1}\n".to_owned(),
            "line 1: this is not a saved session of Tidings",
        ),
        ("empty.tidings", String::new(), "line 1: the file is empty"),
    ] {
        let path = write(&folder, name, &text);
        let ended = run(&["open", "--new", "--no-browser", path.to_str().unwrap()]).await;
        assert_eq!((ended.code, ended.output.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.errors.contains(expected) && ended.errors.contains(name), "{ended:?}");
    }
    let missing = folder.path().join("none.tidings");
    let ended = run(&["open", "--new", "--no-browser", missing.to_str().unwrap()]).await;
    assert_eq!(ended.code, Some(1), "{ended:?}");
}
