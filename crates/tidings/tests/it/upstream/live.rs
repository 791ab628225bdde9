//! Changes of other servers: announced once if they are real, and never else.

use std::time::Duration;

use serde_json::json;
use tidings_server::Hub;
use tidings_upstream::{PollRule, Start, State};

use super::actor::Actor;
use super::{Gateway, config};

/// Longer than any second look.
const REST: Duration = Duration::from_secs(3);

async fn rest() {
    tokio::time::sleep(REST).await;
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_equal_lists_is_silence_and_a_burst_is_one_notice() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let (mut old, mut new) = (gateway.legacy().await, gateway.modern().await);
    new.watch(&[]).await;
    new.forget();
    actor.list_changed("tools");
    rest().await;
    assert_eq!((old.heard(), new.heard()), (vec![], vec![]));
    let before = actor.count("tools/list");
    for number in 0..200 {
        actor.add("tools", &format!(r#"{{"name":"t{number}","inputSchema":{{}}}}"#));
        actor.list_changed("tools");
    }
    rest().await;
    assert_eq!(old.heard(), ["tools/list_changed"]);
    assert_eq!(new.heard(), ["tools/list_changed"]);
    assert_eq!(old.names("tools").await.len(), 205);
    let loads = actor.count("tools/list") - before;
    assert!(loads <= 3, "{loads} loads");
}

#[tokio::test(start_paused = true)]
async fn a_change_that_is_announced_before_it_can_be_read_is_found() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    actor.list_changed("tools");
    actor.updated("note://1");
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(client.heard(), [""; 0]);
    actor.add("tools", r#"{"name":"late","inputSchema":{}}"#);
    actor.set("note://1", "late");
    rest().await;
    let mut heard = client.heard();
    heard.sort();
    assert_eq!(heard, ["note://1", "tools/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn lists_of_a_server_that_never_tells_are_looked_at_while_somebody_listens() {
    let actor = Actor::silent();
    let gateway = Gateway::of(&actor).await;
    let before = actor.count("tools/list");
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert_eq!(actor.count("tools/list"), before, "nobody listens");
    let mut client = gateway.legacy().await;
    actor.add("tools", r#"{"name":"new","inputSchema":{}}"#);
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(client.heard(), ["tools/list_changed"]);
    // A call that may have changed something is a reason to look.
    actor.add("tools", r#"{"name":"newer","inputSchema":{}}"#);
    client.call("up__act", json!({})).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(client.heard(), ["tools/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_promises_to_tell_and_never_does_is_found_out() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    rest().await;
    actor.set("note://1", "two");
    assert_eq!(client.text("note://1").await, "two", "a read is never from memory");
    rest().await;
    assert_eq!(client.heard(), ["note://1"], "and what it finds is told");
    actor.set("note://1", "three");
    actor.add("tools", r#"{"name":"new","inputSchema":{}}"#);
    tokio::time::sleep(Duration::from_mins(7)).await;
    let mut heard = client.heard();
    heard.sort();
    assert_eq!(heard, ["note://1", "tools/list_changed"]);
    // A call that may have changed something is a reason to look.
    actor.add("tools", r#"{"name":"newer","inputSchema":{}}"#);
    client.call("up__act", json!({ "set": "note://1", "to": "four" })).await;
    assert_eq!(client.text("note://1").await, "four");
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut heard = client.heard();
    heard.sort();
    assert_eq!(heard, ["note://1", "tools/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn a_notice_that_was_not_advertised_is_believed() {
    let actor = Actor::silent();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    actor.add("tools", r#"{"name":"new","inputSchema":{}}"#);
    actor.list_changed("tools");
    rest().await;
    assert_eq!(client.heard(), ["tools/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn odd_lists_cost_nothing_but_themselves() {
    let actor = Actor::live();
    actor.add("tools", r#"{"name":"act","inputSchema":{"second":true}}"#);
    actor
        .world()
        .errors
        .insert("prompts/list".to_owned(), r#"{"code":-32601,"message":"no"}"#.to_owned());
    actor.world().errors.insert(
        "resources/templates/list".to_owned(),
        r#"{"code":-32603,"message":"broken"}"#.to_owned(),
    );
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("tools").await.len(), 5, "the first of a name is kept");
    assert_eq!(client.names("prompts").await, [""; 0]);
    assert_eq!(client.names("resources").await, ["note://1"]);
    let problems = gateway.status(0).problems.join("\n");
    assert!(problems.contains("its templates could not be listed"), "{problems}");
    // The last good list stays.
    actor
        .world()
        .errors
        .insert("tools/list".to_owned(), r#"{"code":-32603,"message":"broken"}"#.to_owned());
    actor.list_changed("tools");
    rest().await;
    assert_eq!(client.names("tools").await.len(), 5);
    assert_eq!(client.heard(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_list_that_hangs_or_fails_hides_and_erases_no_other() {
    let actor = Actor::live();
    actor.add("prompts", r#"{"name":"plan"}"#);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lists.json");
    let lazy = || {
        let mut config = config("up", &actor);
        config.start = Start::Lazy(path.clone());
        config
    };
    actor.world().hanging.insert("prompts/list");
    let gateway = Gateway::with(lazy()).await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("tools").await.len(), 5, "one list hangs");
    assert!(!path.exists(), "half of the lists is not kept");
    actor.world().hanging.clear();
    gateway.upstreams[0].restart().await;
    rest().await;
    assert_eq!(client.names("prompts").await, ["up__plan"]);
    // The next run begins with what is kept, and loses nothing by a list that fails.
    let error = r#"{"code":-32603,"message":"broken"}"#.to_owned();
    actor.world().errors.insert("tools/list".to_owned(), error);
    gateway.hub.shutdown().await;
    drop((client, gateway));
    let mut gateway = Gateway { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
    gateway.join(lazy()).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.text("note://1").await, "one", "a use connects");
    rest().await;
    assert_eq!(gateway.status(0).state, State::Ready);
    assert_eq!(client.names("tools").await.len(), 5);
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_listed_in_an_order_of_our_own() {
    let actor = Actor::live();
    actor.world().page = 2;
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let expected = ["up__act", "up__ask", "up__die", "up__hang", "up__say"];
    assert_eq!(client.names("tools").await, expected);
    actor.world().lists.get_mut("tools").unwrap().reverse();
    actor.list_changed("tools");
    rest().await;
    assert_eq!(client.names("tools").await, expected);
    assert_eq!(client.heard(), [""; 0], "another order is the same list");
}

#[tokio::test(start_paused = true)]
async fn a_description_alone_is_a_change_and_templates_ride_with_resources() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    actor.world().lists.get_mut("tools").unwrap()[0] =
        r#"{"name":"act","inputSchema":{"type":"object"},"description":"new"}"#.to_owned();
    actor.list_changed("tools");
    rest().await;
    assert_eq!(client.heard(), ["tools/list_changed"]);
    actor.add("resourceTemplates", r#"{"uriTemplate":"note://{id}","name":"n"}"#);
    actor.list_changed("resources");
    rest().await;
    assert_eq!(client.heard(), ["resources/list_changed"]);
}

#[tokio::test(start_paused = true)]
async fn many_watchers_are_one_at_the_server_from_the_first_to_the_last() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut clients = Vec::new();
    for number in 0..100 {
        let mut client =
            if number % 2 == 0 { gateway.legacy().await } else { gateway.modern().await };
        client.watch(&["note://1"]).await;
        client.forget();
        clients.push(client);
    }
    rest().await;
    assert_eq!(actor.count("resources/subscribe"), 1);
    let reads = actor.count("resources/read");
    actor.set("note://1", "two");
    actor.updated("note://1");
    rest().await;
    for client in &mut clients {
        assert_eq!(client.heard(), ["note://1"]);
        assert_eq!(client.text("note://1").await, "two");
    }
    assert_eq!(actor.count("resources/read"), reads + 2, "one look, and one read that they share");
    // Equal bytes are silence, and one more look.
    actor.updated("note://1");
    rest().await;
    assert!(clients.iter_mut().all(|client| client.heard().is_empty()));
    let last = clients.pop().unwrap();
    drop(clients);
    rest().await;
    assert_eq!(actor.count("resources/unsubscribe"), 0);
    drop(last);
    actor.asked("resources/unsubscribe", 1).await;
    assert!(actor.world().subscribed.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_announce_is_looked_at_for_its_watchers() {
    let actor = Actor::silent();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    assert!(actor.count("resources/read") >= 1, "the first watcher leads to a look at once");
    client.forget();
    actor.set("note://1", "two");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(client.heard(), ["note://1"]);
    assert_eq!(client.text("note://1").await, "two");
    // A call that sets it is seen at once.
    tokio::time::sleep(Duration::from_mins(30)).await;
    client.call("up__act", json!({ "set": "note://1", "to": "three" })).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(client.heard(), ["note://1"]);
    let before = actor.count("resources/read");
    client.ask("resources/unsubscribe", json!({ "uri": "note://1" })).await;
    tokio::time::sleep(Duration::from_mins(30)).await;
    assert_eq!(actor.count("resources/read"), before, "the last leaver ends it");
}

#[tokio::test(start_paused = true)]
async fn content_that_differs_on_every_read_is_flagged_and_told_seldom() {
    let actor = Actor::silent();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    let mut tasks = tokio::task::JoinSet::new();
    let changing = actor.clone();
    tasks.spawn(async move {
        for number in 0_u64.. {
            let reads = changing.count("resources/read");
            changing.set("note://1", &number.to_string());
            changing.asked("resources/read", reads + 1).await;
        }
    });
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(gateway.status(0).volatile, ["note://1"]);
    let heard = client.heard().len();
    assert!((5..30).contains(&heard), "{heard} notices in an hour");
}

#[tokio::test(start_paused = true)]
async fn what_can_be_neither_pushed_nor_polled_is_refused_at_subscribe() {
    let actor = Actor::silent();
    let mut config = config("up", &actor);
    config.poll = PollRule::Never.into();
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    let answer = client.ask("resources/subscribe", json!({ "uri": "note://1" })).await;
    let words = answer["error"]["data"]["details"].as_str().unwrap();
    assert!(words.contains("neither announces"), "{answer}");
    assert_eq!(client.text("note://1").await, "one", "it can still be read");
}

#[tokio::test(start_paused = true)]
async fn a_watched_resource_that_goes_and_comes_back_is_told_twice() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    let content = actor.world().contents.remove("note://1").unwrap();
    actor.updated("note://1");
    rest().await;
    assert_eq!(client.heard(), ["note://1"]);
    assert_eq!(client.text("note://1").await, -32002);
    actor.world().contents.insert("note://1".to_owned(), content);
    actor.updated("note://1");
    rest().await;
    assert_eq!(client.heard(), ["note://1"]);
    assert_eq!(client.text("note://1").await, "one");
}

#[tokio::test(start_paused = true)]
async fn a_notice_of_a_part_is_a_change_of_the_whole() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    actor.set("note://1", "with a new part");
    actor.updated("note://1/part");
    rest().await;
    assert_eq!(client.heard(), ["note://1"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_be_reached_at_first_appears_with_one_notice() {
    let (actor, other) = (Actor::live(), Actor::live());
    actor.up(false);
    let mut gateway = Gateway { hub: Hub::new("gateway", "1"), upstreams: Vec::new() };
    gateway.join(config("down", &actor)).await;
    gateway.join(config("up", &other)).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    assert_eq!(client.names("tools").await.len(), 5, "the rest is served");
    assert_eq!(gateway.status(0).state, State::Down);
    assert!(gateway.status(0).next_try.is_some());
    actor.up(true);
    gateway.until(|gateway| gateway.status(0).state == State::Ready).await;
    rest().await;
    let mut heard = client.heard();
    heard.sort();
    assert_eq!(heard, ["resources/list_changed", "tools/list_changed"]);
    assert_eq!(client.names("tools").await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_server_that_is_starting_waits_and_then_says_so() {
    let actor = Actor::live();
    let mut config = config("up", &actor);
    config.timeouts.connect = Duration::from_secs(8);
    let gateway = Gateway::with(config).await;
    let mut client = gateway.legacy().await;
    actor.world().is_mute = true;
    actor.lose();
    gateway.until(|gateway| gateway.status(0).state == State::Connecting).await;
    let began = tokio::time::Instant::now();
    let answer = client.call("up__act", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`up`"), "{message}");
    assert!(began.elapsed() <= Duration::from_secs(9), "{:?}", began.elapsed());
    actor.world().is_mute = false;
    gateway.upstreams[0].restart().await;
    let answer = client.call("up__act", json!({})).await;
    assert!(answer.get("result").is_some(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_exactly_what_differs_is_told() {
    let actor = Actor::live();
    actor.resource("note://2", "two");
    let gateway = Gateway::of(&actor).await;
    let (mut old, mut new) = (gateway.legacy().await, gateway.modern().await);
    for client in [&mut old, &mut new] {
        client.watch(&["note://1", "note://2"]).await;
        client.forget();
    }
    rest().await;
    actor.lose();
    rest().await;
    assert_eq!(gateway.status(0).connections, 2);
    assert_eq!((old.heard(), new.heard()), (vec![], vec![]), "nothing differs");
    actor.up(false);
    actor.set("note://2", "new");
    actor.add("prompts", r#"{"name":"plan"}"#);
    actor.up(true);
    tokio::time::sleep(Duration::from_secs(10)).await;
    for client in [&mut old, &mut new] {
        let mut heard = client.heard();
        heard.sort();
        assert_eq!(heard, ["note://2", "prompts/list_changed"]);
    }
    assert_eq!(actor.world().subscribed.len(), 2, "watched again");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_keeps_its_items_for_a_while_and_fails_at_once() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    actor.up(false);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(client.names("tools").await.len(), 5);
    assert_eq!(gateway.status(0).state, State::Lost);
    let began = tokio::time::Instant::now();
    let answer = client.call("up__act", json!({})).await;
    assert!(began.elapsed() < Duration::from_secs(1));
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("`up` is not available"), "{message}");
    assert_eq!(client.heard(), [""; 0]);
    tokio::time::sleep(Duration::from_mins(1)).await;
    let mut heard = client.heard();
    heard.sort();
    assert_eq!(heard, ["note://1", "resources/list_changed", "tools/list_changed"]);
    assert_eq!(gateway.status(0).state, State::Down);
    actor.up(true);
    gateway.until(|gateway| gateway.status(0).state == State::Ready).await;
    rest().await;
    let mut heard = client.heard();
    heard.sort();
    assert_eq!(heard, ["note://1", "resources/list_changed", "tools/list_changed"]);
    assert_eq!(client.text("note://1").await, "one");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_comes_and_goes_tells_nothing_that_did_not_move() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    for _ in 0..10 {
        actor.lose();
        tokio::time::sleep(Duration::from_secs(6)).await;
    }
    assert_eq!(client.heard(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_flood_of_notices_costs_few_requests() {
    let actor = Actor::live();
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    client.watch(&["note://1"]).await;
    client.forget();
    let before = actor.count("resources/read");
    for _ in 0..10 {
        for _ in 0..1000 {
            actor.updated("note://1");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    rest().await;
    assert!(actor.count("resources/read") - before < 40);
    assert_eq!(client.heard(), [""; 0]);
    assert!(client.call("up__act", json!({})).await.get("result").is_some());
}

#[tokio::test(start_paused = true)]
async fn instructions_are_those_of_the_server_as_it_is_now() {
    let actor = Actor::live();
    actor.world().instructions = Some("Ask first.".to_owned());
    let gateway = Gateway::of(&actor).await;
    let mut client = gateway.legacy().await;
    let hello = |client: &mut super::Caller| {
        let _ = client;
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } })
    };
    let params = hello(&mut client);
    let mut fresh = super::Caller {
        client: crate::support::client::Client::new(
            crate::support::client::Way::Stdio,
            &gateway.hub,
            &axum::Router::new(),
        ),
        modern: false,
    };
    let answer = fresh.ask("initialize", params.clone()).await;
    assert_eq!(answer["result"]["instructions"], "Ask first.");
    actor.world().instructions = Some("Ask twice.".to_owned());
    actor.lose();
    rest().await;
    let mut fresh = super::Caller {
        client: crate::support::client::Client::new(
            crate::support::client::Way::Stdio,
            &gateway.hub,
            &axum::Router::new(),
        ),
        modern: false,
    };
    let answer = fresh.ask("initialize", params).await;
    assert_eq!(answer["result"]["instructions"], "Ask twice.");
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_delays_no_other() {
    let (slow, quick) = (Actor::live(), Actor::live());
    let mut gateway = Gateway::with(config("slow", &slow)).await;
    gateway.join(config("quick", &quick)).await;
    gateway.settle().await;
    let mut client = gateway.legacy().await;
    for _ in 0..40 {
        client.client.request("tools/call", json!({ "name": "slow__hang" }), false).await;
    }
    let mut other = gateway.legacy().await;
    let began = tokio::time::Instant::now();
    assert!(client.call("quick__act", json!({})).await.get("result").is_some());
    assert!(
        other.call("slow__act", json!({})).await.get("result").is_some(),
        "fair between clients"
    );
    assert!(began.elapsed() < Duration::from_secs(1));
}
