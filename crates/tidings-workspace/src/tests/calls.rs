//! Tests of tools: arguments, results and refusals.

use super::*;

#[tokio::test(start_paused = true)]
async fn every_tool_is_described_with_what_it_takes_and_gives() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let id = client.create("one", json!({})).await;
    client.call("graph_bind", json!({ "id": "a", "name": "A" })).await;
    let link = json!({ "from": "a", "from_port": "1", "to": "a", "to_port": "2" });
    client.call("graph_connect", link.clone()).await;
    let answer = client.ask("tools/list", json!({})).await;
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 14);
    let calls = [
        ("put_blob", json!({ "base64": "AAE=" })),
        ("create_artifact", json!({ "title": "two", "base64": "AAE=", "set": "s" })),
        ("tag", json!({ "id": id, "tags": ["a"] })),
        ("untag", json!({ "id": id, "tags": ["a"] })),
        ("annotate", json!({ "id": id, "message": "x" })),
        ("archive_artifact", json!({ "id": id })),
        ("search_artifacts", json!({ "limit": 1 })),
        ("graph_bind", json!({ "id": "b", "name": "B" })),
        ("graph_tag", json!({ "id": "b", "add": ["x:y"] })),
        ("graph_disconnect", link.clone()),
        ("graph_connect", link),
        ("graph_find", json!({ "tag": "x:y" })),
        ("poll_events", json!({ "cursor": 0 })),
        ("graph_unbind", json!({ "id": "b" })),
    ];
    for (name, arguments) in calls {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert!(tool["annotations"]["readOnlyHint"].is_boolean(), "{tool}");
        let input = jsonschema::validator_for(&tool["inputSchema"]).unwrap();
        assert!(input.is_valid(&arguments), "{name}");
        let result = client.call(name, arguments).await;
        let output = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let faults: Vec<_> = output.iter_errors(&result).map(|it| it.to_string()).collect();
        assert!(faults.is_empty(), "{name}: {result}: {faults:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_said_with_what_to_do() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    client.create("one", json!({})).await;
    let hash = "0".repeat(64);
    for (name, arguments, expected) in [
        ("put_blob", json!({}), "`text` or in `base64`"),
        ("put_blob", json!({ "base64": "?" }), "not base64"),
        ("put_blob", json!({ "text": "a", "base64": "AA==" }), "not both"),
        ("put_blob", json!({ "text": "a", "other": 1 }), "unknown field `other`"),
        ("create_artifact", json!({ "title": "x" }), "give one of"),
        ("create_artifact", json!({ "title": "x", "hash": hash }), "`put_blob`"),
        ("create_artifact", json!({ "title": "x", "hash": "?" }), "64 hexadecimal"),
        ("create_artifact", json!({ "title": "x", "text": "", "index": 1 }), "needs a `set`"),
        (
            "create_artifact",
            json!({ "title": "x", "text": "", "parents": ["?"] }),
            "does not exist",
        ),
        ("create_artifact", json!({ "title": "a\u{0}", "text": "" }), "U+0000"),
        ("create_artifact", json!({ "title": " ", "text": "" }), "needs at least one character"),
        (
            "create_artifact",
            json!({ "title": "x", "text": "", "mime_type": "not a mime type" }),
            "`text/plain`",
        ),
        ("put_blob", json!({ "text": "x", "mime_type": "text" }), "`text/plain`"),
        ("tag", json!({ "id": "?", "tags": ["x"] }), "no artifact `?`"),
        ("search_artifacts", json!({ "since": "soon" }), "2026-01-31"),
        ("search_artifacts", json!({ "after": "?" }), "is not in this list"),
        ("poll_events", json!({ "cursor": 99 }), "the last is 2"),
        ("poll_events", json!({ "types": ["?"] }), "artifact.created"),
    ] {
        let words = client.fail(name, arguments).await;
        assert!(words.contains(expected), "{name}: {words}");
    }
    assert_eq!(client.read("artifacts://summary").await["artifacts"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_the_next_event_it_was_asked_for() {
    let world = ServedWorkspace::new().await;
    let (mut poller, mut writer) = (world.client("poller").await, world.client("writer").await);
    let arguments =
        json!({ "cursor": 0, "types": ["artifact.created"], "wait_ms": 60_000, "limit": 1 });
    let params = json!({ "name": "poll_events", "arguments": arguments });
    poller.send(json!({ "id": 99, "method": "tools/call", "params": params })).await;
    writer.call("put_blob", json!({ "text": "only a blob" })).await;
    writer.create("one", json!({ "text": "only a blob" })).await;
    let answer = loop {
        let message = poller.hear().await.unwrap();
        if message["id"] == 99 {
            break message["result"]["structuredContent"].clone();
        }
    };
    assert_eq!(answer["events"][0]["title"], "one");
    assert_eq!((&answer["cursor"], &answer["has_more"]), (&json!(2), &json!(false)));
    let none = json!({ "cursor": 0, "types": ["identity.bound"], "wait_ms": 10 });
    let answer = poller.call("poll_events", none).await;
    assert_eq!((&answer["events"], &answer["cursor"]), (&json!([]), &json!(2)));
}

#[tokio::test(start_paused = true)]
async fn an_artifact_can_be_made_by_one_for_another() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let id = client
        .create("one", json!({ "creator": "agent 7", "metadata": { "b": 1, "a": [] } }))
        .await;
    let artifact = client.read(&format!("artifacts://artifact/{id}")).await;
    assert_eq!(artifact["creator"], "agent 7");
    assert_eq!(artifact["metadata"], json!({ "b": 1, "a": [] }));
    assert_eq!(client.read("artifacts://by-creator/agent%207").await["total"], 1);
    assert_eq!(client.read("events://recent?limit=1").await[0]["actor"], "client");
}

#[tokio::test(start_paused = true)]
async fn a_remark_is_by_its_author_and_the_log_says_who_called() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    let id = client.create("one", json!({})).await;
    client.call("annotate", json!({ "id": id, "message": "x", "author": "agent 7" })).await;
    let artifact = client.read(&format!("artifacts://artifact/{id}")).await;
    assert_eq!(artifact["annotations"][0]["author"], "agent 7");
    let event = client.read("events://recent?limit=1").await[0].clone();
    assert_eq!((&event["actor"], &event["author"]), (&json!("client"), &json!("agent 7")));
}

#[tokio::test(start_paused = true)]
async fn what_is_left_out_of_the_graph_is_said() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    for id in ["a", "b", "c"] {
        client.call("graph_bind", json!({ "id": id, "name": id })).await;
    }
    let found = client.call("graph_find", json!({ "limit": 2 })).await;
    assert_eq!(found["identities"].as_array().unwrap().len(), 2);
    assert_eq!(found["has_more"], true);
    let found = client.call("graph_find", json!({ "limit": 3 })).await;
    assert_eq!(found["has_more"], false);
    let link = json!({ "from": "a", "from_port": "1", "to": "b", "to_port": "2" });
    client.call("graph_connect", link.clone()).await;
    let words = client.fail("graph_connect", link).await;
    assert!(words.contains("another port or transport"), "{words}");
}

#[tokio::test(start_paused = true)]
async fn a_tag_of_an_identity_without_a_namespace_is_refused() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    client.call("graph_bind", json!({ "id": "a", "name": "A" })).await;
    let words = client.fail("graph_tag", json!({ "id": "a", "add": ["ns:v", "plain"] })).await;
    assert!(words.contains("`plain`") && words.contains("`namespace:value`"), "{words}");
    // A tag stored by an older release can be removed.
    client.call("graph_tag", json!({ "id": "a", "remove": ["plain"] })).await;
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_takes_or_overwrites_says_so() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    client.create("one", json!({})).await;
    client.call("graph_bind", json!({ "id": "a", "name": "A" })).await;
    let answer = client.ask("tools/list", json!({})).await;
    let destructive: Vec<_> = answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|tool| tool["annotations"]["destructiveHint"] == true)
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        destructive,
        ["archive_artifact", "graph_bind", "graph_tag", "graph_unbind", "untag"]
    );
}
