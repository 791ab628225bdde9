//! Servers with a connection for each client, and servers that start on first use.

use std::time::Duration;

use serde_json::json;
use tidings_server::Hub;
use tidings_upstream::{Start, State};

use super::actor::Actor;
use super::{Gateway, config};

#[tokio::test(start_paused = true)]
async fn an_isolated_client_has_its_own_server_from_its_first_call_to_its_end() {
    let actor = Actor::live();
    let mut config = config("up", &actor);
    config.isolate = true;
    let gateway = Gateway::with(config).await;
    let (mut one, mut two) = (gateway.legacy().await, gateway.legacy().await);
    one.text("note://1").await;
    one.names("tools").await;
    assert_eq!(actor.count("initialize"), 1, "lists and reads are shared");
    one.call("up__act", json!({})).await;
    one.call("up__act", json!({})).await;
    assert_eq!(actor.count("initialize"), 2);
    two.call("up__act", json!({})).await;
    assert_eq!(actor.count("initialize"), 3);
    assert_eq!(actor.open(), 3);
    drop(one);
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(actor.open(), 2, "it ends with its session");
    tokio::time::sleep(Duration::from_mins(6)).await;
    assert_eq!(actor.open(), 1, "and when it is idle");
    two.call("up__act", json!({})).await;
    assert_eq!(actor.open(), 2);
    gateway.hub.shutdown().await;
    assert_eq!(actor.open(), 0, "nothing is left behind");
}

#[tokio::test(start_paused = true)]
async fn a_lazy_server_is_started_by_its_first_use_and_listed_before() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("up.json");
    let actor = Actor::live();
    let lazy = |actor: &Actor| {
        let mut config = config("up", actor);
        config.start = Start::Lazy(path.clone());
        config
    };
    // Without lists of a last run it is started at once.
    let gateway = Gateway::with(lazy(&actor)).await;
    gateway.hub.shutdown().await;
    drop(gateway);
    let before = actor.count("initialize");
    let mut gateway = Gateway { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
    gateway.join(lazy(&actor)).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("tools").await.len(), 5);
    assert_eq!(gateway.status(0).state, State::Waiting);
    assert_eq!(actor.count("initialize"), before);
    actor.add("tools", r#"{"name":"new","inputSchema":{}}"#);
    assert!(client.call("up__act", json!({})).await.get("result").is_some());
    gateway.settle().await;
    assert_eq!(actor.count("initialize"), before + 1);
    assert_eq!(client.heard(), ["tools/list_changed"], "what differs from the last run is told");
}
