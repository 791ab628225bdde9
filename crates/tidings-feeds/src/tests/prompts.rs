//! Prompts as clients list and fill them.

use super::*;

impl World {
    pub(super) async fn filled(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.ask("prompts/get", json!({ "name": name, "arguments": arguments })).await;
        let text = &answer["result"]["messages"][0]["content"]["text"];
        text.as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }
}

async fn world() -> World {
    let world = World::new(Era::Legacy).await;
    let mut news = document("News", &[("pears", 9), ("figs", 8), ("old", 1)]);
    for item in &mut news.items[..2] {
        item.categories[0].term = "Fruit".to_owned();
    }
    world.apply(ID, &news, 10).await;
    world.apply(OTHER_ID, &document("Other", &[("pears", 7)]), 10).await;
    world
}

#[tokio::test(start_paused = true)]
async fn every_prompt_is_listed_with_its_arguments() {
    let mut world = world().await;
    let answer = world.ask("prompts/list", json!({})).await;
    let prompts = answer["result"]["prompts"].as_array().unwrap();
    let names: Vec<_> = prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["compare", "digest", "monitor_keywords", "trends"]);
    for prompt in prompts {
        let arguments = prompt["arguments"].as_array().unwrap();
        assert!(arguments.iter().all(|it| it["description"].is_string()), "{prompt}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_digest_is_made_of_the_items_there_are() {
    let mut world = world().await;
    let digest = world.filled("digest", json!({ "feed": ID, "since": "2024-01-02" })).await;
    assert!(digest.contains("2 of 2 items follow"), "{digest}");
    assert!(digest.contains("https://example.com/pears") && !digest.contains("old"), "{digest}");
    let none = world.filled("digest", json!({ "category": "nothing" })).await;
    assert!(none.starts_with("There are no items, of the category nothing."), "{none}");
}

#[tokio::test(start_paused = true)]
async fn an_item_without_a_description_shows_how_its_content_begins() {
    let mut world = World::new(Era::Legacy).await;
    let mut news = document("News", &[("pears", 9)]);
    let content = format!("<p>All <b>of</b> it.</p>{}", "<p>More.</p>".repeat(100));
    (news.items[0].summary, news.items[0].content) = (None, Some(html(&content)));
    world.apply(ID, &news, 10).await;
    world.apply(OTHER_ID, &news, 10).await;
    for (name, arguments) in [
        ("digest", json!({})),
        ("compare", json!({ "feeds": format!("{ID},{OTHER_ID}") })),
        ("monitor_keywords", json!({ "keywords": "pears" })),
    ] {
        let told = world.filled(name, arguments).await;
        assert!(told.contains("\n  All of it.\n  More.") && told.contains('…'), "{told}");
    }
    let merged = world.call("merge_feeds", json!({})).await;
    assert_eq!(merged["items"][0]["isCut"], true);
    assert!(merged["items"][0]["content"].as_str().unwrap().starts_with("All of it."));
}

#[tokio::test(start_paused = true)]
async fn feeds_are_compared_with_their_counts() {
    let mut world = world().await;
    let feeds = format!("{ID}, {OTHER_ID}");
    let compared = world.filled("compare", json!({ "feeds": feeds, "search": "pears" })).await;
    assert!(compared.contains(&format!("## News ({ID}): 1 of 1 item")), "{compared}");
    assert!(compared.contains(&format!("## Other ({OTHER_ID}): 1 of 1 item")), "{compared}");
}

#[tokio::test(start_paused = true)]
async fn keywords_are_counted_one_by_one() {
    let mut world = world().await;
    let told =
        world.filled("monitor_keywords", json!({ "keywords": "pears, About figs, kiwi" })).await;
    for line in ["## pears: 2 items, 2 shown", "## About figs: 1 item,", "## kiwi: 0 items"] {
        assert!(told.contains(line), "{told}");
    }
}

#[tokio::test(start_paused = true)]
async fn trends_have_both_counts() {
    let mut world = world().await;
    let told = world.filled("trends", json!({ "days": "5", "until": "2024-01-10" })).await;
    for line in [
        "Items: 3 (before: 1)",
        &format!("- News ({ID}): 2 (before: 1)"),
        "- Fruit: 2 (before: 0)",
        "- Category old: 0 (before: 1)",
        "- pears: 2 (before: 0)",
    ] {
        assert!(told.contains(line), "{line}\n{told}");
    }
    let none = world.filled("trends", json!({ "until": "1999-01-01" })).await;
    assert!(none.starts_with("There are no items in the 14 days"), "{none}");
}

#[tokio::test(start_paused = true)]
async fn a_prompt_keeps_to_its_length() {
    let world = &mut World::new(Era::Legacy).await;
    let names: Vec<_> = (0..200).map(|number| format!("number-{number}")).collect();
    let names: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    world.apply(ID, &document("News", &names), 2).await;
    let digest = world.filled("digest", json!({ "maxTokens": "1000" })).await;
    assert!(digest.len() <= 4500 && digest.contains("of 200 items follow"), "{}", digest.len());
}

#[tokio::test(start_paused = true)]
async fn wrong_arguments_are_told_by_name() {
    let mut world = world().await;
    for (name, arguments, parameter) in [
        ("digest", json!({ "colour": "red" }), "colour"),
        ("digest", json!({ "feed": "nope" }), "feed"),
        ("digest", json!({ "maxTokens": "many" }), "maxTokens"),
        ("compare", json!({}), "feeds"),
        ("compare", json!({ "feeds": ID }), "feeds"),
        ("monitor_keywords", json!({ "keywords": "!" }), "keywords"),
        ("trends", json!({ "days": "0" }), "days"),
    ] {
        let answer =
            world.ask("prompts/get", json!({ "name": name, "arguments": arguments })).await;
        assert_eq!(answer["error"]["data"]["parameter"], parameter, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn arguments_of_prompts_are_proposed() {
    let mut world = world().await;
    for (prompt, argument, typed, expected) in [
        ("digest", "feed", "b7", json!([ID])),
        ("digest", "feed", "oth", json!([OTHER_ID])),
        ("digest", "category", "fr", json!(["Fruit"])),
        ("compare", "feeds", "05", json!([OTHER_ID])),
        ("compare", "feeds", &format!("{OTHER_ID},"), json!([format!("{OTHER_ID},{ID}")])),
        ("trends", "days", "", json!([])),
    ] {
        let reference = json!({ "type": "ref/prompt", "name": prompt });
        let argument = json!({ "name": argument, "value": typed });
        let asked = json!({ "ref": reference, "argument": argument });
        let answer = world.ask("completion/complete", asked).await;
        assert_eq!(answer["result"]["completion"]["values"], expected, "{typed}");
    }
}
