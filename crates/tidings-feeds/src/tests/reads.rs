//! Reads of clients, and their errors.

use super::*;
use crate::schedule::Plan;

async fn world() -> World {
    let mut document = document("News", &[("c", 3), ("b", 2), ("a", 1)]);
    document.feed.updated = Some(day(3));
    document.items[0].content = Some(html("<p>All of it.</p>"));
    document.items[0].authors.clear();
    document.items[1].categories[0].label = Some("Category b".to_owned());
    document.items[1].categories[0].term = "b1".to_owned();
    let world = World::new(Era::Legacy).await;
    world.apply(ID, &document, 4).await;
    world
}

#[tokio::test(start_paused = true)]
async fn every_resource_has_its_shape() {
    let mut world = world().await;
    let item = json!({
        "title": "a", "description": "About a.", "link": "https://example.com/a",
        "published": "2024-01-01T00:00:00Z",
        "authors": [{ "name": "Jane Smith", "email": "jane@example.com" }],
        "categories": ["Category a"], "guid": "https://example.com/a",
    });
    let feed = json!({ "title": "News", "language": "en", "updated": "2024-01-03T00:00:00Z" });
    let all = json!([
        { "id": OTHER_ID, "title": "example.com/feed22.xml", "publicUrl": OTHER_URL, "itemCount": 0 },
        { "id": ID, "title": "News", "publicUrl": URL, "language": "en",
          "lastUpdated": "2024-01-03T00:00:00Z", "itemCount": 3 },
    ]);
    assert_eq!(world.read("feeds://all").await, all);
    let meta = json!({ "id": ID, "title": "News", "publicUrl": URL, "feed": feed });
    assert_eq!(world.read(&format!("feeds://feed/{ID}/meta")).await, meta);
    let items = world.read(&format!("feeds://feed/{ID}/items")).await;
    assert_eq!(items[2], item);
    assert_eq!(items[0]["content"], "<p>All of it.</p>");
    assert!(items[0].get("authors").is_none());
    let mut whole = meta.clone();
    whole["items"] = items;
    assert_eq!(world.read(&format!("feeds://feed/{ID}")).await, whole);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_says_only_when_it_was_changed_shows_that() {
    let mut document = document("News", &[("b", 2), ("a", 1)]);
    document.items[0].published = None;
    document.items[0].updated = Some(day(3));
    document.items[1].updated = Some(day(3));
    let mut world = World::new(Era::Legacy).await;
    world.apply(ID, &document, 4).await;
    let items = world.read(&format!("feeds://feed/{ID}/items")).await;
    assert_eq!(items[0]["updated"], "2024-01-03T00:00:00Z");
    assert!(items[0].get("published").is_none() && items[1].get("updated").is_none(), "{items}");
    assert_eq!(world.read(&format!("feeds://feed/{ID}")).await["items"], items);
    let arguments = json!({ "ID": ID });
    let params = json!({ "name": "get_syndication_feed_items", "arguments": arguments });
    let answer = world.ask("tools/call", params).await;
    let shown = &answer["result"]["structuredContent"]["items"][0];
    assert_eq!(shown["updated"], "2024-01-03T00:00:00Z", "{answer}");
    assert!(shown.get("seen").is_none(), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_read_is_not_watched() {
    let mut world = world().await;
    for query in ["limit=0", "colour=red", "since=x:y"] {
        let uri = format!("feeds://feed/{ID}/items?{query}");
        let refused =
            world.ask("resources/subscribe", json!({ "uri": uri })).await["error"].clone();
        assert_eq!(refused, world.read(&uri).await["error"], "{query}");
        assert_eq!(refused["code"], -32602, "{refused}");
    }
    // One that may come can be waited for.
    world.listen(&["feeds://feed/00000000/items".to_owned()]).await;
}

#[tokio::test(start_paused = true)]
async fn parameters_choose() {
    let mut world = world().await;
    for (query, titles) in [
        ("since=2024-01-02", "c b"),
        ("since=2024-01-01T00:00:00Z&until=2024-01-02", "b a"),
        ("limit=1&offset=1", "b"),
        ("author=JANE++smith", "b a"),
        ("author=Jane%40example.com", "b a"),
        ("category=category+B", "b"),
        ("category=b1", "b"),
        ("search=about+C", "c"),
        ("search=%22all+of%22", "c"),
        ("search=p", ""),
        ("offset=9", ""),
    ] {
        let found = world.read(&format!("feeds://feed/{ID}/items?{query}")).await;
        let found: Vec<_> =
            found.as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
        assert_eq!(found.join(" "), titles, "{query}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_told_with_its_name() {
    let mut world = world().await;
    for (query, parameter, value) in
        [("limit=0", "limit", "0"), ("colour=red", "colour", "red"), ("since=x:y", "since", "x:y")]
    {
        let uri = format!("feeds://feed/{ID}/items?{query}");
        let error = world.read(&uri).await["error"].clone();
        assert_eq!(error["code"], -32602);
        assert_eq!(
            (&error["data"]["parameter"], &error["data"]["value"]),
            (&json!(parameter), &json!(value))
        );
        assert!(!error["data"]["details"].as_str().unwrap().is_empty());
    }
    let missing = world.read("feeds://feed/nope/items?limit=1").await;
    assert_eq!(missing["error"]["message"], "Resource not found");
    assert_eq!(missing["error"]["data"]["details"], "Feed with ID 'nope' not found");
}

#[tokio::test(start_paused = true)]
async fn errors_have_exactly_the_fields_of_the_interface() {
    for era in [Era::Legacy, Era::Modern] {
        let mut world = World::new(era).await;
        world.fail(OTHER_ID, "connection timeout", 4).await;
        let missing = if era == Era::Legacy { -32002 } else { -32602 };
        let pattern = "URI must follow pattern: feeds://all or feeds://feed/{feedId}[/items|/meta]";
        let malformed = |uri: &str| {
            json!({
                "code": -32602, "message": "Invalid resource URI format",
                "data": { "uri": uri, "details": pattern },
            })
        };
        let absent = |uri: &str| {
            json!({
                "code": missing, "message": "Resource not found",
                "data": { "uri": uri, "details": "Feed with ID 'nonexistent' not found" },
            })
        };
        let date = "Date must be in ISO 8601 format (YYYY-MM-DDTHH:MM:SSZ or YYYY-MM-DD)";
        let unavailable = format!("feeds://feed/{OTHER_ID}");
        let wrong = format!("feeds://feed/{ID}/items?since=invalid-date");
        let invalid = json!({
            "code": -32602, "message": "Invalid parameter value",
            "data": { "parameter": "since", "value": "invalid-date", "details": date },
        });
        let failed = json!({
            "code": -32603, "message": "Resource temporarily unavailable",
            "data": {
                "uri": unavailable,
                "details": "Feed fetch failed: connection timeout; it is not tried again by itself",
            },
        });
        for (uri, expected) in [
            ("feeds://invalid/uri", malformed("feeds://invalid/uri")),
            ("feeds://feed/a/b/c", malformed("feeds://feed/a/b/c")),
            ("feeds://feed/nonexistent", absent("feeds://feed/nonexistent")),
            ("feeds://feed/nonexistent/meta", absent("feeds://feed/nonexistent/meta")),
            ("feeds://feed/nonexistent/items", absent("feeds://feed/nonexistent/items")),
            (&wrong, invalid),
            (&unavailable, failed),
        ] {
            assert_eq!(world.read(uri).await["error"], expected, "{era:?} {uri}");
        }
        if era == Era::Legacy {
            let uri = "feeds://feed/nonexistent";
            let refused = world.ask("resources/subscribe", json!({ "uri": uri })).await;
            assert_eq!(refused["error"], absent(uri));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_was_never_fetched_says_why() {
    let mut world = world().await;
    let uri = format!("feeds://feed/{OTHER_ID}/items");
    let details = |answer: Value| {
        assert_eq!(answer["error"]["code"], -32603);
        assert_eq!(answer["error"]["message"], "Resource temporarily unavailable");
        answer["error"]["data"]["details"].as_str().unwrap().to_owned()
    };
    assert_eq!(details(world.read(&uri).await), "Feed has not been fetched yet");
    let plan = Plan::new(day(5));
    world.feeds.0.store.keep_plan(OTHER_ID, plan).unwrap();
    world.fail(OTHER_ID, "the server answered 503", 4).await;
    assert_eq!(
        details(world.read(&uri).await),
        "Feed fetch failed: the server answered 503; it is tried again at \
         2024-01-05T00:00:00Z"
    );
}

#[tokio::test(start_paused = true)]
async fn what_can_do_harm_is_never_read() {
    let mut world = world().await;
    let harm = "<p onclick=\"steal()\">a<script>steal()</script><iframe src='javascript:steal()'></iframe></p>";
    let mut news = document("News", &[("a", 1)]);
    (news.items[0].summary, news.items[0].content) = (Some(html(harm)), Some(html(harm)));
    (news.feed.description, news.feed.copyright) = (Some(html(harm)), Some(html(harm)));
    world.apply(ID, &news, 6).await;
    let feed = format!("feeds://feed/{ID}");
    for uri in ["feeds://all", &feed, &format!("{feed}/items"), &format!("{feed}/meta")] {
        let answer = world.ask("resources/read", json!({ "uri": uri })).await;
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("<p>a</p>") && !text.contains("steal"), "{uri}: {text}");
        let answer = world.ask("resources/list", json!({})).await;
        let resources = answer["result"]["resources"].as_array().unwrap();
        let listed = resources.iter().find(|it| it["uri"] == *uri).unwrap();
        assert_eq!(listed["size"], text.len(), "{uri}");
    }
    for format in ["rss", "atom", "json", "csv"] {
        let exported = world.call("export_feeds", json!({ "format": format })).await;
        assert!(!exported["document"].as_str().unwrap().contains("steal"), "{exported}");
    }
    let found = world.read(&format!("{feed}/items?search=steal")).await;
    assert_eq!(found, json!([]));
    // Where only the harm is another, nobody hears of it.
    news.feed.description = Some(html(&harm.replace("steal", "rob")));
    let before = world.feeds.0.board().get(ID).unwrap().revisions;
    news.items.insert(0, document("News", &[("b", 2)]).items.remove(0));
    world.apply(ID, &news, 7).await;
    let after = world.feeds.0.board().get(ID).unwrap().revisions;
    assert_eq!((after.metadata, after.items), (before.metadata, before.items + 1));
}

async fn length(world: &mut World, uri: &str) -> usize {
    let answer = world.ask("resources/read", json!({ "uri": uri })).await;
    answer["result"]["contents"][0]["text"].as_str().unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn the_list_names_every_resource_how_long_it_is_and_when_it_changed() {
    let mut world = world().await;
    let answer = world.ask("resources/list", json!({})).await;
    let resources = answer["result"]["resources"].as_array().unwrap().clone();
    assert_eq!(resources.len(), 7);
    let feed = format!("feeds://feed/{ID}");
    for uri in ["feeds://all".to_owned(), feed.clone(), format!("{feed}/meta")] {
        let listed = resources.iter().find(|it| it["uri"] == *uri).unwrap();
        assert_eq!(listed["size"], length(&mut world, &uri).await, "{uri}");
    }
    let size = length(&mut world, &format!("{feed}/items")).await;
    let items = resources.iter().find(|it| it["uri"] == format!("{feed}/items"));
    assert_eq!(
        *items.unwrap(),
        json!({
            "uri": format!("feeds://feed/{ID}/items"), "name": "News Items",
            "description": "Items from News (supports filtering)",
            "mimeType": "application/json", "size": size,
            "annotations": { "lastModified": "2024-01-04T00:00:00Z" },
        })
    );
    let answer = world.ask("resources/templates/list", json!({})).await;
    let templates = answer["result"]["resourceTemplates"].as_array().unwrap();
    let templates: Vec<_> =
        templates.iter().map(|it| it["uriTemplate"].as_str().unwrap()).collect();
    assert_eq!(templates, [crate::view::TEMPLATE, crate::view::FOLDER_TEMPLATE]);
}

#[tokio::test(start_paused = true)]
async fn a_list_of_feeds_comes_in_and_goes_out() {
    let list = br#"<opml><body><outline text="Tech"><outline text="Rust">
        <outline text="Mine" xmlUrl="https://example.org/f"/></outline></outline></body></opml>"#;
    let mut config = Config::new(Data::Memory);
    config.role = Role::Server(Fetching::Off);
    let outlines = crate::opml::read(list).unwrap();
    config.feeds = crate::opml::read_list(list, Asker::Client).unwrap().feeds;
    let feeds = Feeds::open(config).await.unwrap();
    assert_eq!(crate::opml::read(feeds.export().as_bytes()).unwrap(), outlines);
}

#[tokio::test(start_paused = true)]
async fn ids_categories_and_authors_are_proposed() {
    let mut world = world().await;
    for (argument, typed, expected) in [
        ("feedId", "b7", json!([ID])),
        ("feedId", "new", json!([ID])),
        ("category", "category B", json!(["Category b"])),
        ("category", "", json!(["b1", "Category a", "Category b", "Category c"])),
        ("author", "j", json!(["Jane Smith"])),
        ("search", "", json!([])),
    ] {
        let reference = json!({ "type": "ref/resource", "uri": crate::view::TEMPLATE });
        let argument = json!({ "name": argument, "value": typed });
        let context = json!({ "arguments": { "feedId": ID } });
        let asked = json!({ "ref": reference, "argument": argument, "context": context });
        let answer = world.ask("completion/complete", asked).await;
        assert_eq!(answer["result"]["completion"]["values"], expected, "{typed}");
    }
}

#[tokio::test(start_paused = true)]
async fn folders_are_resources_of_their_own() {
    let mut world = world().await;
    let mut feed = feed_at(URL);
    feed.category = Some("Tech/Rust & co".to_owned());
    world.feeds.add(feed).await.unwrap();
    let listed = world.ask("resources/list", json!({})).await;
    let resources = listed["result"]["resources"].as_array().unwrap().iter();
    let uris: Vec<_> = resources.map(|it| it["uri"].as_str().unwrap().to_owned()).collect();
    let inner = "feeds://folder/Tech%2FRust%20%26%20co/items";
    for uri in ["feeds://folder/Tech/items", inner] {
        assert!(uris.iter().any(|it| it == uri), "{uris:?}");
        let answer = world.ask("resources/read", json!({ "uri": format!("{uri}?limit=1") })).await;
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        let items: Vec<Value> = serde_json::from_str(text).unwrap();
        assert_eq!(items.len(), 1, "{uri}");
    }
    let all = world.ask("resources/read", json!({ "uri": "feeds://all" })).await;
    assert!(all.to_string().contains("Tech/Rust & co"), "{all}");
    let none = world.ask("resources/read", json!({ "uri": "feeds://folder/None/items" })).await;
    assert!(none["error"].to_string().contains("Folder 'None' not found"), "{none}");
}

#[tokio::test(start_paused = true)]
async fn what_a_variable_holds_is_never_shown() {
    let mut config = Config::new(Data::Memory);
    config.role = Role::Server(Fetching::Off);
    let mut feed = feed_at("https://example.com/feed?key=secret");
    feed.shown_url = Some("https://example.com/feed?key=${KEY}".to_owned());
    config.feeds = vec![feed];
    let mut world = World::with(config, Era::Legacy).await;
    let all = world.ask("resources/read", json!({ "uri": "feeds://all" })).await.to_string();
    let listed = world.ask("resources/list", json!({})).await.to_string();
    let statuses = format!("{:?}", world.feeds.statuses());
    for shown in [all, listed, statuses, world.feeds.export()] {
        assert!(shown.contains("${KEY}") && !shown.contains("secret"), "{shown}");
    }
}
