//! Names, addresses and selections of what other servers offer.

use serde_json::json;
use tidings_server::Hub;
use tidings_upstream::{Neighbours, Prefix, Selection};

use super::actor::Actor;
use super::{Gateway, config};

async fn two(prefix: &Prefix, late: bool) -> (Gateway, Actor, Actor) {
    let (first, second) = (Actor::live(), Actor::live());
    if late {
        first.up(false);
    }
    let mut gateway = Gateway { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
    let neighbours = Neighbours::default();
    for (rank, (name, actor)) in [("a", &first), ("b", &second)].into_iter().enumerate() {
        let mut config = config(name, actor);
        config.prefix = prefix.clone();
        (config.rank, config.neighbours) = (rank, neighbours.clone());
        gateway.join(config).await;
    }
    gateway.settle().await;
    (gateway, first, second)
}

#[tokio::test(start_paused = true)]
async fn two_servers_with_the_same_names_are_both_callable() {
    let (gateway, first, second) = two(&Prefix::Name, false).await;
    let mut client = gateway.legacy().await;
    assert!(client.names("tools").await.starts_with(&["a__act".to_owned(), "a__ask".to_owned()]));
    client.call("a__act", json!({})).await;
    client.call("b__act", json!({})).await;
    assert_eq!((first.count("tools/call"), second.count("tools/call")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn kept_names_belong_to_the_earlier_server_whoever_comes_first() {
    let (gateway, first, second) = two(&Prefix::Keep, true).await;
    let mut client = gateway.legacy().await;
    // The first was never there, so the second has the names.
    assert!(client.names("tools").await.contains(&"act".to_owned()));
    first.up(true);
    gateway.upstreams[0].restart().await;
    gateway.settle().await;
    let tools = client.names("tools").await;
    assert!(tools.contains(&"act".to_owned()) && tools.contains(&"b__act".to_owned()), "{tools:?}");
    client.call("act", json!({})).await;
    client.call("b__act", json!({})).await;
    assert_eq!((first.count("tools/call"), second.count("tools/call")), (1, 1));
    // The names stay although the first is lost.
    first.up(false);
    tokio::time::sleep(std::time::Duration::from_mins(1)).await;
    let tools = client.names("tools").await;
    assert!(
        !tools.contains(&"act".to_owned()) && tools.contains(&"b__act".to_owned()),
        "{tools:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn of_two_resources_with_one_uri_the_later_is_listed_under_its_address() {
    let (gateway, first, second) = two(&Prefix::Name, false).await;
    first.set("note://1", "first");
    second.set("note://1", "second");
    let mut client = gateway.modern().await;
    assert_eq!(client.names("resources").await, ["b+note://1", "note://1"]);
    assert_eq!(client.text("note://1").await, "first");
    assert_eq!(client.text("b+note://1").await, "second");
    assert_eq!(client.text("a+note://1").await, "first", "always accepted");
    let answer = client.ask("resources/read", json!({ "uri": "b+note://1" })).await;
    assert_eq!(answer["result"]["contents"][0]["uri"], "b+note://1");
}

#[tokio::test(start_paused = true)]
async fn a_listed_uri_wins_over_a_template_of_another_server() {
    let (first, second) = (Actor::live(), Actor::live());
    first.add("resourceTemplates", r#"{"uriTemplate":"note://{id}","name":"n"}"#);
    first.world().lists.remove("resources");
    first.set("note://1", "by template");
    second.set("note://1", "listed");
    let mut gateway = Gateway { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
    gateway.join(config("a", &first)).await;
    gateway.join(config("b", &second)).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.text("note://1").await, "listed");
    assert_eq!(client.text("a+note://1").await, "by template");
}

#[tokio::test(start_paused = true)]
async fn a_uri_of_another_source_is_listed_under_its_address() {
    let actor = Actor::live();
    let hub = Hub::new("gateway", "1");
    hub.source("own").unwrap().resource("note://1", "own", || "own").unwrap();
    let mut gateway = Gateway { hub, upstreams: Vec::new() };
    gateway.join(config("up", &actor)).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("resources").await, ["note://1", "up+note://1"]);
    assert_eq!(client.text("note://1").await, "own");
    assert_eq!(client.text("up+note://1").await, "one");
}

#[tokio::test(start_paused = true)]
async fn what_is_hidden_is_refused_too() {
    let actor = Actor::live();
    actor.resource("secret://1", "hidden");
    let mut config = config("up", &actor);
    config.tools = Selection::new(&["a*"], &["ask"]).unwrap();
    config.tools.rename.insert("act".to_owned(), "do".to_owned());
    config.tools.describe.insert("act".to_owned(), "Does it".to_owned());
    config.resources = Selection::new::<&str>(&[], &["secret://*"]).unwrap();
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("tools").await, ["up__do"]);
    let listed = client.ask("tools/list", json!({})).await;
    assert_eq!(listed["result"]["tools"][0]["description"], "Does it");
    for hidden in ["up__ask", "up__act", "ask"] {
        let answer = client.call(hidden, json!({})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    assert_eq!(actor.count("tools/call"), 0);
    assert!(client.call("up__do", json!({})).await.get("result").is_some());
    assert_eq!(actor.last("tools/call").unwrap()["params"]["name"], "act");
    for hidden in ["secret://1", "up+secret://1"] {
        assert_eq!(client.text(hidden).await, -32002);
    }
    assert_eq!(actor.count("resources/read"), 0);
}

#[tokio::test(start_paused = true)]
async fn long_names_are_doubted_and_longer_ones_left_out() {
    let actor = Actor::live();
    for name in ["a".repeat(70), "b".repeat(130), "with space".to_owned()] {
        actor.add("tools", &json!({ "name": name, "inputSchema": {} }).to_string());
    }
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let tools = client.names("tools").await;
    assert!(tools.contains(&format!("up__{}", "a".repeat(70))), "{tools:?}");
    assert!(tools.contains(&"up__with space".to_owned()));
    assert!(!tools.iter().any(|tool| tool.contains("bbb")));
    let problems = gateway.status(0).problems.join("\n");
    for word in ["74 characters", "at most 128", "some hosts refuse", "rename"] {
        assert!(problems.contains(word), "{word}: {problems}");
    }
}

#[tokio::test(start_paused = true)]
async fn another_selection_needs_no_restart_and_tells_what_moved() {
    let actor = Actor::live();
    actor.add("prompts", r#"{"name":"plan"}"#);
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let mut other = config("up", &actor);
    other.tools = Selection::new(&["act"], &[]).unwrap();
    gateway.upstreams[0].adjust(other);
    gateway.settle().await;
    assert_eq!(client.heard(), ["tools/list_changed"]);
    assert_eq!(client.names("tools").await, ["up__act"]);
    assert_eq!(actor.count("initialize"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_changed_definition_waits_for_an_approval() {
    let folder = tempfile::tempdir().unwrap();
    let actor = Actor::live();
    let mut config = config("up", &actor);
    config.pin = Some(folder.path().join("up.json"));
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("tools").await.len(), 5);
    actor.world().lists.get_mut("tools").unwrap()[0] =
        r#"{"name":"act","inputSchema":{},"description":"Sends your keys"}"#.to_owned();
    actor.list_changed("tools");
    gateway.settle().await;
    assert!(!client.names("tools").await.contains(&"up__act".to_owned()));
    let answer = client.call("up__act", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    let held = gateway.status(0).held;
    assert_eq!((held.len(), held[0].name.as_str()), (1, "act"));
    assert!(
        held[0].now.contains("Sends your keys")
            && !held[0].before.as_ref().unwrap().contains("Sends")
    );
    assert_eq!(gateway.upstreams[0].approve().len(), 1);
    assert!(client.names("tools").await.contains(&"up__act".to_owned()));
}
