//! Tools as clients list and call them.

use super::*;
use crate::Tools;

const CHANGING: [&str; 4] = ["mark_items", "new_since", "pause_feed", "remove_feed"];
const LOOKING: [&str; 6] = [
    "all_syndication_feeds",
    "export_feeds",
    "feed_health",
    "get_syndication_feed_items",
    "merge_feeds",
    "search_items",
];

impl World {
    pub(super) async fn tools(&mut self) -> Vec<Value> {
        let answer = self.ask("tools/list", json!({})).await;
        answer["result"]["tools"].as_array().unwrap().clone()
    }

    pub(super) async fn result(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await;
        assert!(answer.get("result").is_some(), "{answer}");
        answer["result"].clone()
    }

    /// The structure of a good answer, which fits the schema that the tool is listed with.
    pub(super) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.result(name, arguments).await;
        assert_ne!(result["isError"], true, "{result}");
        assert!(!result["content"][0]["text"].as_str().unwrap().is_empty());
        let tools = self.tools().await;
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let structure = &result["structuredContent"];
        let schema = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let faults: Vec<_> = schema.iter_errors(structure).map(|it| it.to_string()).collect();
        assert_eq!(faults, Vec::<String>::new(), "{structure}");
        structure.clone()
    }

    /// What a call is refused with.
    pub(super) async fn refusal(&mut self, name: &str, arguments: Value) -> String {
        let result = self.result(name, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

fn titles(structure: &Value) -> String {
    let items = structure["items"].as_array().unwrap().iter();
    items.map(|item| item["title"].as_str().unwrap()).collect::<Vec<_>>().join(" ")
}

/// Two feeds; one item is in both.
async fn world() -> World {
    let world = World::new(Era::Legacy).await;
    let mut news = document("News", &[("c", 5), ("b", 3), ("a", 1)]);
    news.items[0].content = Some(html("<p>All <b>of</b> it.</p><script>steal()</script>"));
    world.apply(ID, &news, 6).await;
    world.apply(OTHER_ID, &document("Other", &[("c", 4), ("x", 2)]), 6).await;
    world
}

#[tokio::test(start_paused = true)]
async fn every_tool_is_listed_with_its_schemas() {
    let mut world = world().await;
    let tools = world.tools().await;
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in LOOKING.iter().chain(&CHANGING) {
        assert!(names.contains(name), "{name}");
    }
    for tool in &tools {
        assert!(tool["inputSchema"].is_object() && tool["outputSchema"].is_object(), "{tool}");
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_may_not_be_changed_lists_no_tool_that_does() {
    for (tools, expected) in [(Tools::Reading, true), (Tools::None, false)] {
        let mut config = Config::new(Data::Memory);
        (config.role, config.tools) = (Role::Server(Fetching::Off), tools);
        let mut world = World::with(config, Era::Legacy).await;
        let listed = world.tools().await;
        assert_eq!(listed.is_empty(), !expected);
        assert!(listed.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true));
        for name in CHANGING {
            let answer = world.ask("tools/call", json!({ "name": name })).await;
            assert!(answer.get("error").is_some(), "{answer}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn addresses_in_texts_lead_somewhere_wherever_they_are_read() {
    let mut world = World::new(Era::Legacy).await;
    let mut news = document("News", &[("a", 1)]);
    news.items[0].content = Some(html("<a href=\"/b\">x</a>"));
    // The first is kept, the second takes its place.
    let uri = format!("feeds://feed/{ID}/items");
    for (day, base) in [(6, "https://a.org/c"), (7, "https://b.org/c")] {
        news.items[0].base = Some(base.to_owned());
        news.items[0].title = Some(html(base));
        world.apply(ID, &news, day).await;
        for format in ["html", "markdown"] {
            let arguments = json!({ "ID": ID, "includeContent": true, "format": format });
            let listed = world.call("get_syndication_feed_items", arguments).await;
            let content = listed["items"][0]["content"].as_str().unwrap();
            assert!(content.contains(&base.replace("/c", "/b")), "{content}");
        }
        let exported = world.call("export_feeds", json!({ "format": "rss" })).await;
        assert!(exported["document"].as_str().unwrap().contains(&base.replace("/c", "/b")));
        let answer = world.ask("resources/read", json!({ "uri": uri })).await;
        let text = answer["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains(&base.replace("/c", "/b")), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_feed_is_listed() {
    let mut world = world().await;
    let listed = world.call("all_syndication_feeds", json!({})).await;
    assert_eq!((&listed["total"], &listed["feeds"][0]["id"]), (&json!(2), &json!(OTHER_ID)));
    assert_eq!(
        listed["feeds"][1],
        json!({
            "id": ID, "title": "News", "publicUrl": URL, "language": "en",
            "lastUpdated": "2024-01-05T00:00:00Z", "itemCount": 3,
        })
    );
    let rest = world.call("all_syndication_feeds", json!({ "offset": 1 })).await;
    assert_eq!(rest["feeds"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn items_of_a_feed_come_as_much_as_wanted() {
    let mut world = world().await;
    let tool = "get_syndication_feed_items";
    let all = world.call(tool, json!({ "ID": ID })).await;
    assert_eq!((titles(&all), &all["total"]), ("c b a".to_owned(), &json!(3)));
    assert_eq!(all["items"][2]["description"], "About a.");
    assert!(all["items"][0].get("content").is_none() && all.get("leftOut").is_none());
    // Some programs write every number with a point.
    for paged in [json!({ "limit": 1, "offset": 1 }), json!({ "limit": 1.0, "offset": 1.0 })] {
        let arguments = json!({ "ID": ID, "limit": paged["limit"], "offset": paged["offset"] });
        let page = world.call(tool, arguments).await;
        assert_eq!((titles(&page), &page["leftOut"]["count"]), ("b".to_owned(), &json!(1)));
    }
    for (format, expected) in [
        ("text", "All of it."),
        ("markdown", "All **of** it."),
        ("html", "<p>All <b>of</b> it.</p>"),
    ] {
        let asked = json!({ "ID": ID, "includeContent": true, "format": format });
        assert_eq!(world.call(tool, asked).await["items"][0]["content"], expected);
    }
    let short = json!({ "ID": ID, "includeContent": true, "maxContentLength": 4 });
    let short = world.call(tool, short).await;
    assert_eq!(
        (&short["items"][0]["content"], &short["items"][0]["isCut"]),
        (&json!("All…"), &json!(true))
    );
}

#[tokio::test(start_paused = true)]
async fn plain_text_that_looks_like_markup_is_shown_as_it_is() {
    let mut world = World::new(Era::Modern).await;
    let mut news = document("News", &[("a", 1)]);
    news.items[0].content = Some(text("Use <script> & &eacute; <b>here</b>"));
    world.apply(ID, &news, 2).await;
    let asked = json!({ "ID": ID, "includeContent": true });
    let shown = world.call("get_syndication_feed_items", asked).await;
    assert_eq!(shown["items"][0]["content"], "Use <script> & &eacute; <b>here</b>");
    let found = world.call("search_items", json!({ "search": "script" })).await;
    assert_eq!(found["total"], 1);
}

#[tokio::test(start_paused = true)]
async fn an_answer_has_a_length_and_says_what_it_left_out() {
    let world = &mut World::new(Era::Legacy).await;
    let names: Vec<_> = (0..100).map(|number| format!("number-{number}")).collect();
    let names: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    world.apply(ID, &document("News", &names), 2).await;
    for (name, mut arguments) in [
        ("get_syndication_feed_items", json!({ "ID": ID, "limit": 1000 })),
        ("merge_feeds", json!({ "limit": 1000 })),
        ("search_items", json!({ "search": "number", "limit": 1000 })),
        ("new_since", json!({ "agent": "a", "limit": 1000, "backlog": 1000 })),
        ("export_feeds", json!({ "format": "rss", "limit": 1000 })),
    ] {
        arguments["maxTokens"] = json!(1000);
        let result = world.result(name, arguments.clone()).await;
        let structure = &result["structuredContent"];
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(structure.to_string().len() + text.len() <= 4000, "{name}");
        let shown = structure["items"]
            .as_array()
            .map_or_else(|| structure["count"].as_u64().unwrap(), |items| items.len() as u64);
        assert!(shown > 0);
        assert_eq!(structure["leftOut"]["count"].as_u64().unwrap() + shown, 100, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn words_are_found_everywhere_and_filters_hold() {
    let mut world = world().await;
    let found = world.call("search_items", json!({ "search": "ABOUT" })).await;
    assert_eq!(found["total"], 5);
    for item in found["items"].as_array().unwrap() {
        assert_eq!(item["snippet"], format!("About {}.", item["title"].as_str().unwrap()));
    }
    for (more, expected) in [
        (json!({ "feeds": [OTHER_ID], "since": "2024-01-03" }), "c"),
        (json!({ "until": "2024-01-01" }), "a"),
        (json!({ "category": "category X" }), "x"),
        (json!({ "author": "nobody" }), ""),
    ] {
        let mut asked = more.clone();
        asked["search"] = json!("about");
        assert_eq!(titles(&world.call("search_items", asked).await), expected, "{more}");
    }
}

#[tokio::test(start_paused = true)]
async fn several_feeds_are_one_list_in_which_each_item_is_once() {
    let mut world = world().await;
    let merged = world.call("merge_feeds", json!({})).await;
    assert_eq!((titles(&merged), &merged["folded"]), ("c b x a".to_owned(), &json!(1)));
    assert_eq!(merged["items"][0]["alsoIn"], json!([OTHER_ID]));
    let one = world.call("merge_feeds", json!({ "feeds": [OTHER_ID] })).await;
    assert_eq!(titles(&one), "c x");
}

#[tokio::test(start_paused = true)]
async fn an_inbox_gives_each_item_once_it_is_acknowledged_never_again() {
    let mut world = world().await;
    let first = world.call("new_since", json!({ "agent": "me" })).await;
    assert_eq!(first["total"], 5);
    let again = world.call("new_since", json!({ "agent": "me" })).await;
    assert_eq!(again, first);
    let next = json!({ "agent": "me", "cursor": first["cursor"] });
    let after = world.call("new_since", next.clone()).await;
    assert_eq!(after["total"], 0);
    world.apply(ID, &document("News", &[("d", 6), ("c", 5), ("b", 3), ("a", 1)]), 7).await;
    assert_eq!(titles(&world.call("new_since", next).await), "d");
    // Earlier releases gave cursors that do not say of which store they are.
    let cursor = first["cursor"].as_str().unwrap().split('-').next().unwrap();
    let old = world.call("new_since", json!({ "agent": "old", "cursor": cursor })).await;
    assert_eq!(titles(&old), "d");
    let other = world.call("new_since", json!({ "agent": "you", "feed": OTHER_ID })).await;
    assert_eq!(titles(&other), "c x");
}

/// An inbox once began with the oldest items of a document.
#[tokio::test(start_paused = true)]
async fn an_inbox_begins_with_the_newest() {
    let mut world = world().await;
    let page = json!({ "agent": "me", "feed": ID, "limit": 2 });
    let first = world.call("new_since", page).await;
    assert_eq!(titles(&first), "c b");
    let rest = json!({ "agent": "me", "feed": ID, "cursor": first["cursor"] });
    assert_eq!(titles(&world.call("new_since", rest).await), "a");
}

#[tokio::test(start_paused = true)]
async fn folders_choose_feeds() {
    let mut world = world().await;
    let mut feed = feed_at(OTHER_URL);
    feed.category = Some("Tech/Rust".to_owned());
    world.feeds.add(feed).await.unwrap();
    let merged = world.call("merge_feeds", json!({ "folder": "tech" })).await;
    assert_eq!(titles(&merged), "c x");
    let found = json!({ "search": "about", "folder": "Tech" });
    assert_eq!(world.call("search_items", found).await["total"], 2);
    let inbox = json!({ "agent": "me", "folder": "Tech" });
    assert_eq!(titles(&world.call("new_since", inbox).await), "c x");
    let feeds = world.call("all_syndication_feeds", json!({ "folder": "Tech" })).await;
    assert_eq!((&feeds["total"], &feeds["feeds"][0]["folder"]), (&json!(1), &json!("Tech/Rust")));
}

#[tokio::test(start_paused = true)]
async fn callers_of_older_servers_are_understood() {
    let mut world = world().await;
    for more in [
        json!({ "includeImages": true, "embedImages": false }),
        json!({ "limit": 0, "maxContentLength": 0 }),
    ] {
        let mut arguments = json!({ "ID": ID });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let items = world.call("get_syndication_feed_items", arguments).await;
        assert_eq!(titles(&items), "c b a");
    }
}

#[tokio::test(start_paused = true)]
async fn marks_are_kept_and_choose() {
    let mut world = world().await;
    let all = world.call("merge_feeds", json!({})).await;
    let id = &all["items"][1]["id"];
    let marked = json!({ "ids": [id, "b799e597-999"], "read": true, "starred": true });
    let marked = world.call("mark_items", marked).await;
    assert_eq!(marked, json!({ "marked": 1, "missing": 1, "missingIds": ["b799e597-999"] }));
    let starred = world.call("merge_feeds", json!({ "only": "starred" })).await;
    assert_eq!((titles(&starred), &starred["items"][0]["read"]), ("b".to_owned(), &json!(true)));
    assert_eq!(titles(&world.call("merge_feeds", json!({ "only": "unread" })).await), "c x a");
    world.call("mark_items", json!({ "ids": [id], "starred": false })).await;
    assert_eq!(titles(&world.call("merge_feeds", json!({ "only": "starred" })).await), "");
}

#[tokio::test(start_paused = true)]
async fn health_puts_trouble_first() {
    let mut world = world().await;
    world.fail(ID, "the server answered 503", 7).await;
    let told = world.call("feed_health", json!({})).await;
    assert_eq!(told["counts"], json!({ "failing": 1, "good": 1 }));
    assert_eq!(told["feeds"][0]["lastError"], "the server answered 503");
    assert_eq!(told["feeds"][0]["explanation"], "nothing is fetched here");
    let troubled = world.call("feed_health", json!({ "only": "troubled" })).await;
    assert_eq!(troubled["feeds"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn every_format_is_exported_and_read_by_our_own_reader() {
    let mut world = world().await;
    for format in ["rss", "atom", "json"] {
        let exported = world.call("export_feeds", json!({ "format": format })).await;
        let bytes = exported["document"].as_str().unwrap().as_bytes();
        let read = crate::parse::parse(bytes, &crate::parse::Hints::default());
        assert_eq!(read.unwrap().items.len(), 5, "{format}");
    }
    let list = world.call("export_feeds", json!({ "format": "opml", "feeds": [ID] })).await;
    let outlines = crate::opml::read(list["document"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!((outlines.len(), outlines[0].url.as_str()), (1, URL));
    let first = json!({ "format": "opml", "limit": 1, "only": "all" });
    let first = world.call("export_feeds", first).await;
    assert_eq!((&first["count"], &first["leftOut"]["count"]), (&json!(1), &json!(1)));
    let table = world.call("export_feeds", json!({ "format": "csv" })).await;
    assert_eq!(table["document"].as_str().unwrap().matches("\r\n").count(), 6);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_a_result_that_says_what_to_do() {
    let mut world = world().await;
    for (name, arguments, expected) in [
        ("get_syndication_feed_items", json!({}), "the argument `ID` is required"),
        (
            "get_syndication_feed_items",
            json!({ "ID": "nope" }),
            "`ID`: `nope` cannot be used: there is no such feed; `all_syndication_feeds` lists their \
             ids",
        ),
        (
            "get_syndication_feed_items",
            json!({ "ID": ID, "limit": -1 }),
            "`limit`: -1 is less than the minimum of 0",
        ),
        ("merge_feeds", json!({ "colour": 1 }), "there is no argument `colour`"),
        (
            "merge_feeds",
            json!({ "since": "soon" }),
            "`since`: `soon` cannot be used: Date must be in ISO 8601 format \
             (YYYY-MM-DDTHH:MM:SSZ or YYYY-MM-DD)",
        ),
        (
            "search_items",
            json!({ "search": "\"open" }),
            "`search`: `\"open` cannot be used: a phrase must end with the quotation mark it begins \
             with",
        ),
        (
            "new_since",
            json!({ "agent": "a", "cursor": "x" }),
            "`cursor`: `x` cannot be used: it must be the `cursor` of an answer, or be left out",
        ),
        (
            "new_since",
            json!({ "agent": "a", "cursor": "c999" }),
            "`cursor`: `c999` cannot be used: it belongs to other feeds; call without `cursor`",
        ),
        (
            "new_since",
            json!({ "agent": "a", "cursor": "c1-other" }),
            "`cursor`: `c1-other` cannot be used: it belongs to other feeds; call without `cursor`",
        ),
        (
            "mark_items",
            json!({ "ids": ["x"] }),
            "one of the arguments `read` and `starred` must be given",
        ),
    ] {
        let refusal = world.refusal(name, arguments).await;
        assert_eq!(refusal, format!("`{name}` was not done: {expected}"));
    }
    for (argument, value) in [
        ("since", "2024-01-01"),
        ("until", "2024-01-01"),
        ("category", "a"),
        ("author", "a"),
        ("search", "a"),
        ("only", "unread"),
    ] {
        let arguments = json!({ "format": "opml", argument: value });
        let refusal = world.refusal("export_feeds", arguments).await;
        let expected =
            format!("`{argument}`: `{value}` cannot be used: a list of feeds has no items");
        assert!(refusal.contains(&expected), "{refusal}");
    }
    let empty = World::new(Era::Modern).await;
    let refusal = { empty }.refusal("get_syndication_feed_items", json!({ "ID": ID })).await;
    assert!(refusal.contains("Feed has not been fetched yet"), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn no_tool_makes_a_sound_where_nothing_changes() {
    for era in [Era::Legacy, Era::Modern] {
        let mut world = World::new(era).await;
        world.apply(ID, &document("News", &[("b", 2), ("a", 1)]), 3).await;
        let uris = ["", "/items", "/meta", "/items?limit=1"];
        let mut uris: Vec<_> = uris.iter().map(|it| format!("feeds://feed/{ID}{it}")).collect();
        uris.push("feeds://all".to_owned());
        world.listen(&uris).await;
        let items = world.result("merge_feeds", json!({})).await["structuredContent"].clone();
        let id = &items["items"][0]["id"];
        for (name, arguments) in [
            ("all_syndication_feeds", json!({})),
            ("get_syndication_feed_items", json!({ "ID": ID })),
            ("search_items", json!({ "search": "about" })),
            ("feed_health", json!({})),
            ("export_feeds", json!({ "format": "atom" })),
            ("new_since", json!({ "agent": "a" })),
            ("mark_items", json!({ "ids": [id], "read": true, "starred": true })),
        ] {
            world.result(name, arguments).await;
        }
        assert_eq!(world.notices().await, Vec::<String>::new());
    }
}
