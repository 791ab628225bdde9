//! Changes of raw items and contents: told once if a client would see another value.

use tidings_server::model::{Resource, Tool};
use tidings_server::{Config, Greeting};

use super::*;
use crate::support::client::{Client, Way as Reach};

/// A client that hears of changed lists and of one resource, and has heard all of its greeting.
async fn listener(hub: &Hub, way: Way) -> Client {
    let router = server::router(hub, HttpConfig::default());
    let reach = if way.is_http { Reach::Http } else { Reach::Stdio };
    let mut client = Client::new(reach, hub, &router);
    if way.is_modern {
        let filter = json!({
            "toolsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["raw://one"],
        });
        client.request("subscriptions/listen", json!({ "notifications": filter }), true).await;
        client.wait(&json!({ "method": "notifications/subscriptions/acknowledged" })).await;
    } else {
        client.send(initialize()).await;
        client.wait(&json!({ "id": 1 })).await;
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let params = json!({ "uri": "raw://one" });
        let subscribe =
            json!({ "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": params });
        client.send(subscribe).await;
        client.wait(&json!({ "id": 2 })).await;
    }
    client
}

/// How many notices of this kind come until all is quiet. Time is paused: it goes on when nobody has
/// anything to do.
async fn notices(client: &Client, method: &str) -> usize {
    tokio::time::sleep(Duration::from_secs(2)).await;
    let method = json!({ "method": method });
    std::iter::from_fn(|| client.take(&method)).count()
}

#[tokio::test(start_paused = true)]
async fn a_change_in_an_unknown_field_is_announced_once() {
    for way in WAYS {
        let relay = Relay::default();
        *relay.content.lock().unwrap() = r#"{"contents":[{"new":1,"uri":"raw://one"}]}"#.to_owned();
        let mut config = Config::new("relay", "1");
        config.greeting = Greeting::Silent;
        let hub = Hub::with_config(config);
        let (content, kept) = (relay.content.clone(), Arc::new(Mutex::new(None)));
        let shelf = kept.clone();
        hub.add("relay", |own| {
            *kept.lock().unwrap() = Some(own.clone());
            relay.on(&own)
        })
        .await
        .unwrap();
        let shelf = shelf.lock().unwrap().clone().unwrap();
        let client = listener(&hub, way).await;
        let put_tool = |text: &str| {
            let mut edit = shelf.transaction();
            edit.put(raw::<Tool>(text).unwrap()).unwrap();
            edit.commit().unwrap();
        };
        let put_resource = |text: &str| {
            let mut edit = shelf.transaction();
            edit.put(raw::<Resource>(text).unwrap()).unwrap();
            edit.commit().unwrap();
        };
        let tools = "notifications/tools/list_changed";
        // Of a number, only a digit that no float holds.
        put_tool(&TOOL.replace("18446744073709551616", "18446744073709551617"));
        assert_eq!(notices(&client, tools).await, 1, "{way:?}");
        // Another order of keys is listed as it is, and is no change.
        let turned = r#"{"name":"call","zebra":[1.0,2e3],"annotations":{"magic":18446744073709551617},"inputSchema":{"x-order":["b","a"],"type":"object","properties":{"a":{},"b":{}}}}"#;
        put_tool(turned);
        assert_eq!(notices(&client, tools).await, 0, "{way:?}");
        assert!(answer(&hub, way, "tools/list", json!({})).await.contains(turned), "{way:?}");

        let resources = "notifications/resources/list_changed";
        let measured = RESOURCE.replace("1e3", "2e3");
        put_resource(&measured);
        let measured =
            measured.replace("{\"uri\"", "{\"annotations\":{\"lastModified\":\"2026\"},\"uri\"");
        put_resource(&measured);
        assert_eq!(notices(&client, resources).await, 0, "{way:?}");
        assert!(answer(&hub, way, "resources/list", json!({})).await.contains(&measured));
        put_resource(&measured.replace("raw://two", "raw://three"));
        assert_eq!(notices(&client, resources).await, 1, "{way:?}");

        let updated = "notifications/resources/updated";
        assert_eq!(notices(&client, updated).await, 0, "{way:?}");
        let contents = [
            (r#"{"contents":[{"new":2,"uri":"raw://one"}]}"#, 1),
            (r#"{"ttlMs":7,"contents":[ {"uri":"raw:\/\/one", "new":2} ]}"#, 0),
            (r#"{"contents":[{"new":2,"uri":"raw://one"}],"more":18446744073709551617}"#, 1),
            (r#"{"contents":[{"new":2,"uri":"raw://one"}],"more":18446744073709551618}"#, 1),
        ];
        for (text, count) in contents {
            *content.lock().unwrap() = text.to_owned();
            shelf.changed("raw://one").unwrap();
            assert_eq!(notices(&client, updated).await, count, "{way:?} {text}");
        }
    }
}
