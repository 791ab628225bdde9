//! Tests of reads, searches and completions.

use super::*;

#[tokio::test(start_paused = true)]
async fn bytes_are_read_as_what_they_are() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let text = client.call("put_blob", json!({ "text": "gr\u{fc}n" })).await;
    let bytes = client.call("put_blob", json!({ "base64": "/wA=", "mime_type": "x/y" })).await;
    let music = json!({ "base64": "TVRoZAAAAAY=", "mime_type": "audio/midi" });
    let music = client.call("put_blob", music).await;
    let picture = json!({ "text": "P1 1 1 1", "mime_type": "image/x-portable-bitmap" });
    let picture = client.call("put_blob", picture).await;
    let drawing =
        client.call("put_blob", json!({ "text": "<svg/>", "mime_type": "image/svg+xml" }));
    let drawing = drawing.await;
    for (blob, field, content, mime) in [
        (&text, "text", "gr\u{fc}n", "text/plain"),
        (&bytes, "blob", "/wA=", "x/y"),
        (&music, "blob", "TVRoZAAAAAY=", "audio/midi"),
        (&picture, "blob", "UDEgMSAxIDE=", "image/x-portable-bitmap"),
        (&drawing, "text", "<svg/>", "image/svg+xml"),
    ] {
        let uri = format!("cas://{}", blob["hash"].as_str().unwrap());
        let answer = client.ask("resources/read", json!({ "uri": uri })).await;
        let part = &answer["result"]["contents"][0];
        assert_eq!((&part[field], &part["mimeType"]), (&json!(content), &json!(mime)));
    }
    let uri = format!("cas://{}", "0".repeat(64));
    let answer = client.ask("resources/read", json!({ "uri": uri })).await;
    assert!(answer.get("error").is_some(), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_body_is_the_same_bytes_whenever_it_is_read() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let id = client.create("one", json!({ "tags": ["b", "a"] })).await;
    for uri in [
        "artifacts://recent",
        "artifacts://summary",
        &format!("artifacts://artifact/{id}"),
        "graph://identities",
        "events://recent",
    ] {
        let one = client.ask("resources/read", json!({ "uri": uri })).await;
        let other = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(one["result"], other["result"]);
        assert!(one["result"].is_object());
    }
    let summary = client.read("artifacts://summary").await;
    assert_eq!(summary["categories"], json!([{ "category": null, "tagged": 2 }]));
    assert_eq!(summary["creators"], json!([{ "name": "client", "artifacts": 1 }]));
}

#[tokio::test(start_paused = true)]
async fn tags_of_any_characters_are_found_and_completed() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let tags = ["a/b", "100 %", "gr\u{fc}n:\u{2600}", "type:midi", "q?a=b&c#d"];
    client.create("one", json!({ "tags": tags })).await;
    let template = "artifacts://by-tag/{tag}{?limit,after}";
    for tag in tags {
        let reference = json!({ "type": "ref/resource", "uri": template });
        let argument = json!({ "name": "tag", "value": tag.chars().next().unwrap().to_string() });
        let params = json!({ "ref": reference, "argument": argument });
        let answer = client.ask("completion/complete", params).await;
        assert_eq!(answer["result"]["completion"]["values"], json!([tag]), "{answer}");
        let parsed = tidings_core::Template::parse(template).unwrap();
        let uri = parsed.expand(&[("tag".to_owned(), tag.to_owned())].into());
        assert_eq!(client.read(&uri).await["total"], 1, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_category_and_its_values_are_completed() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    client.create("one", json!({ "tags": ["type:midi", "type:text", "mood:calm"] })).await;
    let mut complete = async |name: &str, value: &str| {
        let template = "artifacts://by-tag/{category}:{value}{?limit,after}";
        let params = json!({
            "ref": { "type": "ref/resource", "uri": template },
            "argument": { "name": name, "value": value },
            "context": { "arguments": { "category": "type" } },
        });
        let answer = client.ask("completion/complete", params).await;
        answer["result"]["completion"]["values"].clone()
    };
    assert_eq!(complete("category", "").await, json!(["mood", "type"]));
    assert_eq!(complete("value", "").await, json!(["midi", "text"]));
    assert_eq!(complete("value", "m").await, json!(["midi"]));
}

#[tokio::test(start_paused = true)]
async fn a_page_says_where_to_go_on() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    for title in ["a", "b", "c"] {
        client.create(title, json!({})).await;
    }
    let page = client.read("artifacts://recent?limit=2").await;
    let next = page["next"].as_str().unwrap();
    let page = client.read(&format!("artifacts://recent?limit=2&after={next}")).await;
    assert_eq!((&page["items"][0]["title"], page.get("next")), (&json!("a"), None));
    let wrong = client.read("artifacts://recent?after=x").await;
    assert!(wrong.to_string().contains("is not in this list"), "{wrong}");
}

#[tokio::test(start_paused = true)]
async fn more_bytes_than_one_answer_holds_are_not_read_but_said_where_they_are() {
    let world = ServedWorkspace::with(|config| config.limits.read = 4).await;
    let mut client = world.client("client").await;
    for (text, is_read) in [("1234", true), ("12345", false)] {
        let blob = client.call("put_blob", json!({ "text": text })).await;
        let uri = format!("cas://{}", blob["hash"].as_str().unwrap());
        let answer = client.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer.get("result").is_some(), is_read, "{answer}");
        assert_eq!(answer.to_string().contains("`GET /blob/"), !is_read, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn reads_of_bytes_wait_for_their_turn() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let blob = client.call("put_blob", json!({ "text": "x" })).await;
    let uri = format!("cas://{}", blob["hash"].as_str().unwrap());
    let turns = world.workspace.0.turns.acquire_many(4).await.unwrap();
    client.send(json!({ "id": 99, "method": "resources/read", "params": { "uri": uri } })).await;
    assert_eq!(client.hear().await, None);
    drop(turns);
    assert_eq!(client.hear().await.unwrap()["result"]["contents"][0]["text"], "x");
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_not_those_that_were_stored_are_refused() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let blob = client.call("put_blob", json!({ "text": "hello" })).await;
    let hash = blob["hash"].as_str().unwrap();
    let path = world.directory.path().join("objects").join(&hash[..2]).join(hash);
    std::fs::write(path, "hellO").unwrap();
    let answer = client.ask("resources/read", json!({ "uri": format!("cas://{hash}") })).await;
    assert!(answer.get("result").is_none(), "{answer}");
    assert!(answer.to_string().contains("not those it was stored with"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn where_to_go_on_is_completed() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let id = client.create("one", json!({ "set": "s", "tags": ["a:b"] })).await;
    client.create("two", json!({})).await;
    client.call("graph_bind", json!({ "id": "synth", "name": "Synth" })).await;
    let known = json!({ "arguments": { "set": "s", "category": "a", "value": "b" } });
    let mut complete = async |template: &str, name: &str, value: &str| {
        let params = json!({
            "ref": { "type": "ref/resource", "uri": template },
            "argument": { "name": name, "value": value }, "context": known,
        });
        let answer = client.ask("completion/complete", params).await;
        answer["result"]["completion"]["values"].clone()
    };
    for template in [
        "artifacts://set/{set}{?limit,after}",
        "artifacts://by-tag/{category}:{value}{?limit,after}",
    ] {
        // Only ids that are in the list.
        assert_eq!(complete(template, "after", &id[..8]).await, json!([id]));
        assert_eq!(complete(template, "after", "zz").await, json!([]));
    }
    let recent = complete("artifacts://recent{?limit,after}", "after", "").await;
    assert_eq!((recent.as_array().unwrap().len(), &recent[1]), (2, &json!(id)));
    let unknown = complete("artifacts://by-creator/{creator}{?limit,after}", "after", "").await;
    assert_eq!(unknown, json!([]));
    let identities = "graph://identities{?limit,after}";
    assert_eq!(complete(identities, "after", "s").await, json!(["synth"]));
    let connections = "graph://connections{?limit,after}";
    assert_eq!(complete(connections, "after", "").await, json!([]));
    let since = "events://since/{n}{?limit}";
    assert_eq!(complete(since, "n", "").await, json!(["5", "4", "3", "2", "1", "0"]));
    assert_eq!(complete(since, "n", "2").await, json!(["2"]));
}
