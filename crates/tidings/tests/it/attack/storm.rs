//! A storm: readers that stand still, that leave in the middle, and that read, while things change.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior};

use super::{modern, site};
use crate::support::demo::within;

/// How long it lasts, unless `TIDINGS_STORM_SECONDS` says otherwise.
const STORM: Duration = Duration::from_secs(30);
/// How much memory this process, server and clients, may have more at the end than at the beginning.
const GROWTH: u64 = 64 << 20;
/// Clients of each kind.
const CLIENTS: usize = 40;
const WATCHED: &str = "lab://small";
const TOOLS: &str = "notifications/tools/list_changed";

fn listen() -> String {
    let params = json!({ "notifications": {
        "toolsListChanged": true, "resourceSubscriptions": [WATCHED],
    }});
    let body = modern("subscriptions/listen", params).to_string();
    let head = super::head(body.len()).replace(
        "\r\n\r\n",
        "\r\nmcp-protocol-version: 2026-07-28\r\nmcp-method: subscriptions/listen\r\n\r\n",
    );
    head + &body
}

async fn connect(address: std::net::SocketAddr) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(listen().as_bytes()).await.unwrap();
    socket
}

fn storm() -> Duration {
    let seconds = std::env::var("TIDINGS_STORM_SECONDS").ok();
    seconds.map_or(STORM, |seconds| Duration::from_secs(seconds.parse().unwrap()))
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap() << 10
}

/// Counts the notices of tools that come until the stream ends; `heard` counts those of all readers.
async fn read(socket: TcpStream, heard: watch::Sender<usize>) -> usize {
    let mut lines = BufReader::new(socket).lines();
    let mut notices = 0;
    while let Ok(Some(line)) = lines.next_line().await {
        if line.contains(TOOLS) {
            notices += 1;
            heard.send_modify(|heard| *heard += 1);
        }
    }
    notices
}

#[tokio::test]
async fn a_storm_of_half_a_minute_loses_nothing_and_leaves_nothing() {
    let site = site(|_| {}).await;
    let address = site.address;
    let (mut readers, heard) = (JoinSet::new(), watch::Sender::new(0));
    for _ in 0..CLIENTS {
        let heard = heard.clone();
        readers.spawn(async move { read(connect(address).await, heard).await });
    }
    // These never read a byte.
    let mut dead = Vec::new();
    for _ in 0..CLIENTS {
        dead.push(connect(address).await);
    }
    site.settles("tidings_subscriptions", 2 * i64::try_from(CLIENTS).unwrap()).await;
    // These come and go.
    let (until, before) = (Instant::now() + storm(), resident());
    let mut restless = JoinSet::new();
    for _ in 0..CLIENTS {
        restless.spawn(async move {
            let mut visits = 0_u64;
            while Instant::now() < until {
                drop(connect(address).await);
                visits += 1;
                tokio::time::sleep(Duration::from_millis(10 + visits % 50)).await;
            }
        });
    }
    let mut changes = 0;
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    while Instant::now() < until {
        pace.tick().await;
        // The list of tools really changes each time: the source itself comes or goes.
        if changes % 2 == 0 {
            assert!(site.hub.remove("laboratory"));
        } else {
            let laboratory = site.laboratory.clone();
            site.hub.add("laboratory", |shelf| laboratory.on(&shelf)).await.unwrap();
        }
        changes += 1;
        // Changes in one window would be one, or none: the next comes when all have heard of this.
        within(heard.subscribe().wait_for(|heard| *heard >= changes * CLIENTS)).await.unwrap();
    }
    while restless.join_next().await.is_some() {}
    // Who reads and who does not are all there still, and nobody else is.
    let both = 2 * i64::try_from(CLIENTS).unwrap();
    site.settles("tidings_subscriptions", both).await;
    drop(dead);
    site.settles("tidings_subscriptions", both / 2).await;
    site.settles("tidings_queue_depth", 0).await;
    let grown = resident().saturating_sub(before);
    assert!(grown < GROWTH, "{grown} bytes");
    let hub = site.hub.clone();
    site.ended().await;
    let mut counts = Vec::new();
    while let Some(count) = within(readers.join_next()).await {
        counts.push(count.unwrap());
    }
    // Each reader hears of each change, once.
    assert_eq!(counts, vec![changes; CLIENTS]);
    let metrics = hub.metrics();
    for gone in ["tidings_subscriptions 0", "tidings_in_flight_bytes 0", "tidings_connections 0"] {
        assert!(metrics.contains(gone), "{gone}: {metrics}");
    }
}
