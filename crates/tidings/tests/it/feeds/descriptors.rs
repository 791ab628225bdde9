//! More hosts than file descriptors: every feed is fetched all the same.

use std::fmt::Write as _;
use std::process::Stdio;

use axum::Router;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::task::JoinSet;

use super::news;
use crate::support::demo::{PROGRAM, within};
use crate::support::piped::Server;

const HOSTS: usize = 150;
/// Enough for the program itself and for what it asks at a time, and for no more.
const DESCRIPTORS: usize = 96;

/// Connections once were kept for 15 seconds each, and feeds failed when there were too many.
#[tokio::test]
async fn more_hosts_than_descriptors_are_all_fetched() {
    let mut serving = JoinSet::new();
    let mut list = "<opml version='2.0'><body>".to_owned();
    for host in 0..HOSTS {
        let listener = TcpListener::bind(format!("127.0.3.{}:0", host + 1)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let _ = write!(list, "<outline text='{host}' xmlUrl='http://{address}/feed'/>");
        let router = Router::new().fallback(async || news(&["one"]));
        serving.spawn(async move { axum::serve(listener, router).await.unwrap() });
    }
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("list.opml"), list + "</body></opml>").unwrap();
    let mut command = Command::new("sh");
    let limited = format!("ulimit -n {DESCRIPTORS}; exec \"$0\" \"$@\"");
    command.args(["-c", &limited, PROGRAM, "serve", "--stdio", "--silent", "--opml", "list.opml"]);
    command.args(["--in-memory", "--allow-private"]).current_dir(here.path());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
    let mut server = Server::of(command).await;
    server.subscribe("feeds://all").await;
    let fetched = async {
        loop {
            let all = server.read("feeds://all").await;
            let count = all.as_array().unwrap().iter().filter(|it| it["itemCount"] == 1).count();
            if count == HOSTS {
                break;
            }
            server.told("feeds://all").await;
        }
    };
    within(fetched).await;
    let health = server.call("feed_health", serde_json::json!({})).await;
    assert!(health.to_string().contains("\"good\":150"), "{health}");
}
