//! Feeds that never could be fetched, as tools and prompts tell of them: they are not taken for feeds
//! without news.

use super::*;
use crate::schedule::Plan;

/// What is said of the feed that is dead.
const REASON: &str = "Feed fetch failed: the server answered 503; it is tried again at \
    2024-01-09T00:00:00Z";

/// What it is called, since it never said so.
const TITLE: &str = "example.com/feed22.xml";

/// A feed with two items, and one that is dead.
async fn world() -> World {
    let world = dead().await;
    world.apply(ID, &document("News", &[("b", 2), ("a", 1)]), 6).await;
    world
}

/// A feed that was not asked yet, and one that is dead.
async fn dead() -> World {
    let world = World::new(Era::Legacy).await;
    let failed = |store: &crate::store::Store, id: &str| {
        // The ninth of January 2024.
        store.keep_plan(id, Plan::new(Moment::from_millis(1_704_758_400_000)))?;
        store.failed(id, "the server answered 503", day(1))
    };
    record(&world.feeds, OTHER_ID, failed).await;
    world
}

/// Every call that can name feeds, with these.
fn calls(ids: &[&str]) -> Vec<(&'static str, Value)> {
    let mut calls = vec![
        ("merge_feeds", json!({ "feeds": ids })),
        ("search_items", json!({ "feeds": ids, "search": "about" })),
    ];
    for format in ["rss", "atom", "json", "csv"] {
        calls.push(("export_feeds", json!({ "feeds": ids, "format": format })));
    }
    calls
}

#[tokio::test(start_paused = true)]
async fn a_call_for_nothing_else_is_refused_with_the_reason() {
    let mut world = world().await;
    let mut calls = calls(&[OTHER_ID]);
    calls.push(("new_since", json!({ "agent": "me", "feed": OTHER_ID })));
    let item = format!("{OTHER_ID}-1");
    calls.push(("mark_items", json!({ "ids": [item], "read": true })));
    for (name, arguments) in calls {
        let refusal = world.refusal(name, arguments).await;
        let expected = format!(
            "`{name}` was not done: none of the requested feeds could be fetched yet\n- {TITLE} · \
             {OTHER_ID}: {REASON}"
        );
        assert_eq!(refusal, expected);
    }
    let list = json!({ "format": "opml", "feeds": [OTHER_ID] });
    assert_eq!(world.call("export_feeds", list).await["count"], 1);
}

#[tokio::test(start_paused = true)]
async fn what_others_have_comes_with_the_feeds_that_are_not_in_it() {
    let mut world = world().await;
    for (name, arguments) in calls(&[ID, OTHER_ID]) {
        let found = world.call(name, arguments.clone()).await;
        assert_eq!(found["total"], 2, "{found}");
        let feed = json!({ "id": OTHER_ID, "title": TITLE, "reason": REASON });
        assert_eq!(found["unavailable"], json!({ "count": 1, "feeds": [feed] }), "{name}");
        let result = world.result(name, arguments).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(&format!("{OTHER_ID}: {REASON}")), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_named_feeds_they_are_told_where_there_is_nothing_else() {
    let mut world = world().await;
    for (name, mut arguments) in calls(&[]) {
        let found = world.call(name, arguments.clone()).await;
        assert_eq!(found.get("unavailable"), None, "{name}");
        arguments["category"] = json!("nothing");
        let found = world.call(name, arguments).await;
        assert_eq!((&found["total"], &found["unavailable"]["count"]), (&json!(0), &json!(1)));
    }
    let mut world = dead().await;
    let inbox = world.call("new_since", json!({ "agent": "me" })).await;
    assert_eq!((&inbox["total"], &inbox["unavailable"]["count"]), (&json!(0), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn many_of_them_leave_room_for_items() {
    let mut config = Config::new(Data::Memory);
    let url = |number| format!("https://example.com/{number}/{}", "x".repeat(200));
    config.feeds = (0..100).map(|number| feed_at(url(number))).collect();
    config.role = Role::Server(Fetching::Off);
    let mut world = World::with(config, Era::Legacy).await;
    let ids: Vec<_> = world.feeds.0.board().rows().map(|row| row.id.clone()).collect();
    let names: Vec<_> = (0..50).map(|number| format!("number-{number}")).collect();
    let names: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    world.apply(&ids[0], &document("News", &names), 2).await;
    for tokens in [1_000, 8_000] {
        for (name, mut arguments) in calls(&ids.iter().map(String::as_str).collect::<Vec<_>>()) {
            arguments["maxTokens"] = json!(tokens);
            let found = world.call(name, arguments.clone()).await;
            assert_eq!(found["unavailable"]["count"], 99, "{name}");
            assert!(!found["unavailable"]["feeds"].as_array().unwrap().is_empty(), "{name}");
            let shown = found["items"].as_array().map_or(0, Vec::len);
            assert!(shown > 0 || found["count"].as_u64() > Some(0), "{name}");
            let result = world.result(name, arguments).await;
            assert!(result.to_string().len() <= 4 * tokens, "{name} {tokens}");
        }
        let dead: Vec<_> = ids[1..].to_vec();
        let arguments = json!({ "feeds": dead, "maxTokens": tokens });
        let refusal = world.refusal("merge_feeds", arguments).await;
        assert!(refusal.len() <= 4 * tokens && refusal.contains(&ids[1]), "{}", refusal.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_prompt_for_nothing_else_says_so() {
    let mut world = dead().await;
    let feeds = format!("{ID},{OTHER_ID}");
    for (name, arguments) in [
        ("digest", json!({ "feed": OTHER_ID })),
        ("compare", json!({ "feeds": feeds })),
        ("monitor_keywords", json!({ "keywords": "a", "feed": OTHER_ID })),
        ("trends", json!({ "feed": OTHER_ID })),
    ] {
        let told = world.filled(name, arguments).await;
        assert!(told.starts_with("None of the requested feeds could be fetched yet"), "{told}");
        assert!(told.contains(&format!("{OTHER_ID}: {REASON}")), "{told}");
    }
    for (name, arguments) in [
        ("digest", json!({})),
        ("monitor_keywords", json!({ "keywords": "a" })),
        ("trends", json!({})),
    ] {
        let told = world.filled(name, arguments).await;
        assert!(told.contains("These feeds could not be fetched yet"), "{told}");
        assert!(told.contains(&format!("{OTHER_ID}: {REASON}")), "{told}");
        assert!(told.contains(&format!("{ID}: Feed has not been fetched yet")), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn feeds_are_compared_without_those_that_are_not_there() {
    let mut world = world().await;
    let told = world.filled("compare", json!({ "feeds": format!("{ID},{OTHER_ID}") })).await;
    assert!(told.contains(&format!("## News ({ID}): 2 of 2 items")), "{told}");
    assert!(!told.contains("0 of 0") && told.contains(&format!("{OTHER_ID}: {REASON}")), "{told}");
    let digest = world.filled("digest", json!({})).await;
    assert!(!digest.contains("could not be fetched"), "{digest}");
}
