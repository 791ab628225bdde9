//! What comes back when the console starts again, and what does not.

use std::os::unix::fs::PermissionsExt as _;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::Console;
use super::processes::{User, signal};
use crate::support::demo::{Demo, PROGRAM, within};

async fn end(mut console: Console) {
    signal(&console, Signal::TERM);
    assert!(within(console.child.wait()).await.unwrap().success());
}

fn state(user: &User) -> (String, u32) {
    let path = user.home.path().join("data/tidings/console-state.json");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    (std::fs::read_to_string(&path).unwrap(), mode)
}

#[tokio::test]
async fn servers_watches_and_the_port_come_back() {
    let user = User::new();
    let demo = Demo::start("--every 3600").await;
    let console = user.console(&[&demo.url()]).await;
    console.ready().await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    let host = console.host.clone();
    end(console).await;
    assert_eq!(state(&user).1, 0o600);
    let again = user.console(&[]).await;
    assert_eq!(again.host, host);
    let is_watched = |it: &Value| it["rows"][0]["uri"] == "station://log";
    again.until("s/1/watched", is_watched).await;
    assert_eq!(again.ask(reqwest::Method::DELETE, "s/1", None).await.0, 200);
    end(again).await;
    let third = user.console(&[]).await;
    assert_eq!(third.get("state?see=servers").await["things"]["servers"], json!([]));
}

/// A server that is down keeps its place in the state, with what was watched.
#[tokio::test]
async fn what_cannot_be_reached_is_not_forgotten() {
    let user = User::new();
    let demo = Demo::start("--every 3600").await;
    let address = demo.address.clone();
    let console = user.console(&[&demo.url()]).await;
    console.ready().await;
    console.post("s/1/watch", json!({ "uri": "station://log" })).await;
    end(console).await;
    drop(demo);
    let console = user.console(&[]).await;
    console.until("servers", |it| it[0]["state"]["state"] == "retrying").await;
    end(console).await;
    let _again = Demo::start_at(&address, "--every 3600").await;
    let console = user.console(&[]).await;
    console.until("s/1/watched", |it| it["rows"][0]["uri"] == "station://log").await;
}

#[tokio::test]
async fn a_program_is_offered_and_not_started() {
    let user = User::new();
    let script = "exec \"$0\" serve --demo --stdio";
    let words = ["--", "sh", "-c", script, PROGRAM, "--token", "hunter2"];
    let console = user.console(&words).await;
    console.ready().await;
    assert_eq!(console.get("known").await["offers"], json!([]));
    end(console).await;
    assert!(!state(&user).0.contains("hunter2"), "{:?}", state(&user));
    let console = user.console(&[]).await;
    assert_eq!(console.get("state?see=servers").await["things"]["servers"], json!([]));
    let known = console.get("known").await;
    let offer = known["offers"][0].as_str().unwrap();
    assert!(offer.starts_with("cd ") && offer.contains(" && tidings open -- sh -c "), "{offer}");
    end(console).await;
    let console = user.console(&words).await;
    console.ready().await;
    assert_eq!(console.get("known").await["offers"], json!([]), "it runs again");
}

#[tokio::test]
async fn a_name_comes_back_from_its_file_and_a_url_with_a_secret_does_not() {
    let user = User::new();
    let demo = Demo::start("--every 3600").await;
    let file = user.home.path().join("mcp.json");
    let entry = json!({ "mcpServers": { "demo": { "url": demo.url() } } });
    std::fs::write(&file, entry.to_string()).unwrap();
    let secret = format!("{}?key=hunter2", demo.url());
    let words = ["demo", &secret, "--mcp-file", file.to_str().unwrap()];
    let console = user.console(&words).await;
    console.ready().await;
    end(console).await;
    assert!(!state(&user).0.contains("hunter2"), "{:?}", state(&user));
    let console = user.console(&[]).await;
    console.ready().await;
    let servers = console.get("state?see=servers").await["things"]["servers"].clone();
    assert_eq!((servers.as_array().unwrap().len(), &servers[0]["name"]), (1, &"demo".into()));
    end(console).await;
    std::fs::remove_file(&file).unwrap();
    end(user.console(&[]).await).await;
    std::fs::write(&file, entry.to_string()).unwrap();
    user.console(&[]).await.ready().await;
}

#[tokio::test]
async fn a_state_that_cannot_be_read_is_moved_aside() {
    let user = User::new();
    let folder = user.home.path().join("data/tidings");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("console-state.json"), "{").unwrap();
    end(user.console(&[]).await).await;
    assert_eq!(std::fs::read_to_string(folder.join("console-state.json.bad")).unwrap(), "{");
    assert!(state(&user).0.contains("\"version\": 1"));
}
