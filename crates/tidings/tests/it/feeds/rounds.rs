//! The rounds over real connections: feeds are asked by themselves, and clients of both eras hear.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tidings_feeds::{Asker, Config, Data, FeedAddress, FeedConfig, Feeds};
use tidings_server::http::{self, HttpConfig};
use tidings_server::{Config as HubConfig, Greeting, Hub};

use super::news;
use super::press::{Press, document};
use crate::support::client::{Client, Way};

/// A client that follows a resource and the list, in its era.
async fn listener(hub: &Hub, way: Way, modern: bool, uri: &str) -> Client {
    let router = http::router(hub, HttpConfig::default());
    let mut client = Client::new(way, hub, &router);
    if modern {
        let wanted = json!({ "resourcesListChanged": true, "resourceSubscriptions": [uri] });
        client.request("subscriptions/listen", json!({ "notifications": wanted }), true).await;
        let begun = json!({ "method": "notifications/subscriptions/acknowledged" });
        client.wait(&begun).await;
    } else {
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "reader", "version": "1" },
        });
        let id = client.request("initialize", params, false).await;
        client.wait(&json!({ "id": id })).await;
        client.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        let id = client.request("resources/subscribe", json!({ "uri": uri }), false).await;
        client.wait(&json!({ "id": id })).await;
    }
    client
}

async fn titles(client: &mut Client, modern: bool, uri: &str) -> Vec<Value> {
    let id = client.request("resources/read", json!({ "uri": uri }), modern).await;
    let answer = client.wait(&json!({ "id": id })).await;
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
    let items: Vec<Value> = serde_json::from_str(text).unwrap();
    items.into_iter().map(|item| item["title"].clone()).collect()
}

#[tokio::test]
async fn a_feed_is_asked_by_itself_and_clients_of_both_eras_hear_of_news_only() {
    let content = Arc::new(Mutex::new(("\"1\"", news(&["one"]))));
    let printed = content.clone();
    let press = Press::start(move |hit| {
        let (etag, body) = printed.lock().unwrap().clone();
        Some(document(hit, etag, body))
    })
    .await;
    let mut feed = FeedConfig::new(FeedAddress::parse(&press.url("/news"), Asker::Client).unwrap());
    // The shortest there is.
    feed.interval = Some(Duration::from_secs(1));
    let mut config = Config::new(Data::Memory);
    config.allow_private = true;
    config.feeds = vec![feed];
    let feeds = Feeds::open(config).await.unwrap();
    let outlines = tidings_feeds::opml::read(feeds.export().as_bytes()).unwrap();
    assert_eq!(outlines.len(), 1);
    let mut config = HubConfig::new("test", "1");
    config.greeting = Greeting::Silent;
    let hub = Hub::with_config(config);
    hub.add("feeds", |shelf| feeds.on(shelf)).await.unwrap();
    // The id of a feed is a hash of its address, which has another port each time.
    let uri = only_items(&hub).await;
    let mut clients = [
        (listener(&hub, Way::Stdio, false, &uri).await, false),
        (listener(&hub, Way::Http, true, &uri).await, true),
    ];
    // The second request comes after the answer to the first was kept and told.
    press.until(2).await;
    for (client, modern) in &mut clients {
        assert_eq!(titles(client, *modern, &uri).await, ["one"]);
        while client.take(&json!({ "jsonrpc": "2.0" })).is_some() {}
    }
    *content.lock().unwrap() = ("\"2\"", news(&["two", "one"]));
    let updated = json!({ "method": "notifications/resources/updated", "params": { "uri": uri } });
    for (client, modern) in &mut clients {
        client.wait(&updated).await;
        assert_eq!(titles(client, *modern, &uri).await, ["two", "one"]);
        assert_eq!(client.rest(), [] as [Value; 0], "once, and of nothing else");
    }
    hub.shutdown().await;
}

/// The address of the items of the only feed.
async fn only_items(hub: &Hub) -> String {
    let router = http::router(hub, HttpConfig::default());
    let mut client = Client::new(Way::Http, hub, &router);
    let id = client.request("resources/list", json!({}), true).await;
    let answer = client.wait(&json!({ "id": id })).await;
    let resources = answer["result"]["resources"].as_array().unwrap().clone();
    let uris = resources.iter().filter_map(|resource| resource["uri"].as_str());
    uris.filter(|uri| uri.ends_with("/items")).map(str::to_owned).next().unwrap()
}
