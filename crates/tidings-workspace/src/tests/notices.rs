//! Tests of notices, counted exactly: one client writes, another watches.

use super::*;

const RECENT: &str = "artifacts://recent";
const SUMMARY: &str = "artifacts://summary";
const EVENTS: &str = "events://recent";

/// A workspace with a watcher of these URIs and a writer.
async fn watched(uris: &[&str]) -> (ServedWorkspace, WorkspaceClient, WorkspaceClient) {
    let world = ServedWorkspace::new().await;
    let writer = world.client("writer").await;
    let mut watcher = world.client("watcher").await;
    watcher.subscribe(uris).await;
    (world, writer, watcher)
}

/// Notices of resources only.
fn updates(notices: Vec<String>) -> Vec<String> {
    notices.into_iter().filter(|it| it.contains("://")).collect()
}

fn sorted<const N: usize>(mut uris: [&str; N]) -> Vec<String> {
    uris.sort_unstable();
    uris.map(str::to_owned).to_vec()
}

#[tokio::test(start_paused = true)]
async fn a_new_artifact_is_told_to_every_list_it_is_in() {
    let (tag, plain) = ("artifacts://by-tag/type:midi", "artifacts://by-tag/type%3Amidi");
    let (creator, set) = ("artifacts://by-creator/writer", "artifacts://set/suite");
    let others = ["artifacts://by-tag/type:text", "artifacts://by-creator/other"];
    let uris = [RECENT, SUMMARY, tag, plain, creator, set, EVENTS, "events://since/0"];
    let (_world, mut writer, mut watcher) = watched(&[&uris[..], &others].concat()).await;
    writer.create("one", json!({ "tags": ["type:midi"], "set": "suite" })).await;
    assert_eq!(updates(watcher.notices().await), sorted(uris));
    assert_eq!(watcher.read(tag).await["items"][0]["title"], "one");
    assert_eq!(watcher.read(RECENT).await["items"][0]["creator"], "writer");
}

#[tokio::test(start_paused = true)]
async fn a_child_is_told_to_its_parent_and_no_lineage_that_stays() {
    let world = ServedWorkspace::new().await;
    let (mut writer, mut watcher) = (world.client("writer").await, world.client("watcher").await);
    let parent = writer.create("parent", json!({})).await;
    let other = writer.create("other", json!({})).await;
    let uri = |kind: &str, id: &str| format!("artifacts://{kind}/{id}");
    let uris = [uri("artifact", &parent), uri("lineage", &parent), uri("artifact", &other)];
    watcher.subscribe(&uris.each_ref().map(String::as_str)).await;
    let child = writer.create("child", json!({ "parents": [parent] })).await;
    assert_eq!(updates(watcher.notices().await), [uris[0].clone()]);
    assert_eq!(watcher.read(&uris[0]).await["children"], json!([child]));
    let lineage = watcher.read(&uri("lineage", &child)).await;
    let items = &lineage["items"];
    assert_eq!((&items[0]["id"], &items[1]["id"]), (&json!(parent), &json!(child)));
}

#[tokio::test(start_paused = true)]
async fn a_new_tag_is_told_to_every_list_that_shows_it_and_an_old_one_to_nobody() {
    let world = ServedWorkspace::new().await;
    let (mut writer, mut watcher) = (world.client("writer").await, world.client("watcher").await);
    let id = writer.create("one", json!({ "tags": ["old"], "set": "s" })).await;
    let artifact = format!("artifacts://artifact/{id}");
    let lineage = format!("artifacts://lineage/{id}");
    let moved = [
        "artifacts://by-tag/new:tag",
        "artifacts://by-tag/old",
        artifact.as_str(),
        "artifacts://by-creator/writer",
        "artifacts://set/s",
        RECENT,
        "artifacts://recent?limit=1",
        SUMMARY,
    ];
    let still = [lineage.as_str(), "artifacts://by-tag/none"];
    watcher.subscribe(&[&moved[..], &still].concat()).await;
    let answer = writer.call("tag", json!({ "id": id, "tags": ["new:tag", "old"] })).await;
    assert_eq!(answer["changed"], json!(["new:tag"]));
    assert_eq!(watcher.notices().await, sorted(moved));
    writer.call("tag", json!({ "id": id, "tags": ["new:tag", "old"] })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    writer.call("untag", json!({ "id": id, "tags": ["new:tag"] })).await;
    assert_eq!(watcher.notices().await, sorted(moved));
}

#[tokio::test(start_paused = true)]
async fn a_tag_of_an_artifact_that_is_not_in_the_newest_does_not_move_them() {
    let (_world, mut writer, mut watcher) = watched(&[RECENT, SUMMARY]).await;
    let old = writer.create("old", json!({})).await;
    for number in 0..10 {
        writer.create(&number.to_string(), json!({})).await;
    }
    assert_eq!(updates(watcher.notices().await), sorted([RECENT, SUMMARY]));
    writer.call("tag", json!({ "id": old, "tags": ["x"] })).await;
    assert_eq!(watcher.notices().await, [SUMMARY]);
}

#[tokio::test(start_paused = true)]
async fn a_remark_is_told_to_the_artifact_and_an_archiving_to_the_lists_it_leaves() {
    let world = ServedWorkspace::new().await;
    let (mut writer, mut watcher) = (world.client("writer").await, world.client("watcher").await);
    let id = writer.create("one", json!({ "tags": ["x"], "set": "s" })).await;
    let child = writer.create("two", json!({ "parents": [id] })).await;
    let artifact = format!("artifacts://artifact/{id}");
    let lineage = format!("artifacts://lineage/{child}");
    let uris = [
        RECENT,
        SUMMARY,
        "artifacts://by-tag/x",
        "artifacts://by-creator/writer",
        "artifacts://set/s",
        artifact.as_str(),
        lineage.as_str(),
    ];
    watcher.subscribe(&uris).await;
    writer.call("annotate", json!({ "id": id, "message": "good" })).await;
    assert_eq!(watcher.notices().await, std::slice::from_ref(&artifact));
    assert_eq!(watcher.read(&artifact).await["annotations"][0]["author"], "writer");
    writer.call("archive_artifact", json!({ "id": id })).await;
    assert_eq!(updates(watcher.notices().await), sorted(uris));
    writer.call("archive_artifact", json!({ "id": id })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn an_identity_is_told_when_it_is_new_or_renamed_and_not_when_it_is_the_same() {
    let uris = ["graph://identities", "graph://identity/synth", "graph://connections"];
    let (_world, mut writer, mut watcher) = watched(&uris).await;
    let moved = sorted([uris[0], uris[1]]);
    writer.call("graph_bind", json!({ "id": "synth", "name": "Synth" })).await;
    assert_eq!(updates(watcher.notices().await), moved);
    writer.call("graph_bind", json!({ "id": "synth", "name": "Synth" })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    writer.call("graph_bind", json!({ "id": "synth", "name": "Synthesizer" })).await;
    assert_eq!(updates(watcher.notices().await), moved);
    writer.call("graph_tag", json!({ "id": "synth", "add": ["role:lead"] })).await;
    assert_eq!(updates(watcher.notices().await), moved);
}

#[tokio::test(start_paused = true)]
async fn a_stolen_hint_is_told_to_both() {
    let uris = ["graph://identity/a", "graph://identity/b", "graph://identities"];
    let (_world, mut writer, mut watcher) = watched(&uris).await;
    let hint = json!([{ "kind": "usb", "value": "1" }]);
    writer.call("graph_bind", json!({ "id": "a", "name": "A", "hints": hint })).await;
    writer.call("graph_bind", json!({ "id": "b", "name": "B" })).await;
    watcher.notices().await;
    let arguments = json!({ "id": "b", "name": "B", "hints": hint });
    let words = writer.fail("graph_bind", arguments.clone()).await;
    assert!(words.contains("`a`") && words.contains("`steal`"), "{words}");
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    let mut arguments = arguments;
    arguments["steal"] = json!(true);
    writer.call("graph_bind", arguments).await;
    assert_eq!(watcher.notices().await, sorted([uris[0], uris[1]]));
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_told_once_and_goes_with_its_end() {
    let uris = ["graph://connections", "graph://identity/a", "graph://identity/b"];
    let (_world, mut writer, mut watcher) =
        watched(&[&uris[..], &["graph://identities"]].concat()).await;
    for id in ["a", "b"] {
        writer.call("graph_bind", json!({ "id": id, "name": id })).await;
    }
    watcher.notices().await;
    let link = json!({ "from": "a", "from_port": "out", "to": "b", "to_port": "in" });
    writer.call("graph_connect", link.clone()).await;
    assert_eq!(updates(watcher.notices().await), sorted(uris));
    writer.fail("graph_connect", link).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    writer.call("graph_unbind", json!({ "id": "b" })).await;
    let all = ["graph://identities", uris[0], uris[1], uris[2]];
    assert_eq!(updates(watcher.notices().await), sorted(all));
    assert_eq!(watcher.read("graph://connections").await["total"], 0);
    let gone = watcher.read("graph://identity/b").await;
    assert!(gone.get("error").is_some(), "{gone}");
}

/// An identity shows its first hundred connections; further ones only change their number.
#[tokio::test(start_paused = true)]
async fn a_connection_that_is_not_shown_any_more_is_told_too() {
    let (_world, mut writer, mut watcher) = watched(&["graph://identity/a"]).await;
    writer.call("graph_bind", json!({ "id": "a", "name": "A" })).await;
    for port in 0..101 {
        let port = port.to_string();
        let link = json!({ "from": "a", "from_port": port, "to": "a", "to_port": "in" });
        writer.call("graph_connect", link).await;
    }
    watcher.notices().await;
    let link = json!({ "from": "a", "from_port": "last", "to": "a", "to_port": "in" });
    writer.call("graph_connect", link).await;
    assert_eq!(watcher.notices().await, ["graph://identity/a"]);
    let identity = watcher.read("graph://identity/a").await;
    assert_eq!(identity["connections"].as_array().unwrap().len(), 100);
    assert_eq!(identity["connectionCount"], 102);
}

#[tokio::test(start_paused = true)]
async fn whoever_only_looks_tells_nobody() {
    let world = ServedWorkspace::new().await;
    let (mut writer, mut watcher) = (world.client("writer").await, world.client("watcher").await);
    let id = writer.create("one", json!({})).await;
    writer.call("graph_bind", json!({ "id": "a", "name": "A" })).await;
    let artifact = format!("artifacts://artifact/{id}");
    watcher.subscribe(&[RECENT, SUMMARY, EVENTS, &artifact, "graph://identities"]).await;
    writer.read(RECENT).await;
    writer.read(&artifact).await;
    writer.call("search_artifacts", json!({ "query": "one" })).await;
    writer.call("graph_find", json!({ "name": "a" })).await;
    writer.call("poll_events", json!({ "cursor": 0 })).await;
    writer.call("put_blob", json!({ "text": "one" })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_hundred_at_once_are_told_once_and_all_are_there() {
    let uris = [RECENT, SUMMARY, "artifacts://by-tag/x", EVENTS];
    let (_world, mut writer, mut watcher) = watched(&uris).await;
    let mut requests = String::new();
    for number in 0..100 {
        let arguments = json!({ "title": number.to_string(), "text": "same", "tags": ["x"] });
        let params = json!({ "name": "create_artifact", "arguments": arguments });
        let request = json!({
            "jsonrpc": "2.0", "id": 1000 + number, "method": "tools/call", "params": params,
        });
        requests.push_str(&request.to_string());
        requests.push('\n');
    }
    writer.wire.input.write_all(requests.as_bytes()).await.unwrap();
    for _ in 0..100 {
        while writer.hear().await.unwrap().get("result").is_none() {}
    }
    let all = [uris[0], uris[1], uris[2], uris[3], "resources", "tools"];
    assert_eq!(watcher.notices().await, sorted(all));
    let list = watcher.read("artifacts://by-tag/x").await;
    assert_eq!((&list["total"], list["items"].as_array().unwrap().len()), (&json!(100), 100));
    assert_eq!(watcher.read("events://since/0?limit=1000").await["cursor"], 101);
}

#[tokio::test(start_paused = true)]
async fn who_unsubscribed_or_left_hears_nothing_and_others_do() {
    let world = ServedWorkspace::new().await;
    let mut writer = world.client("c").await;
    let (mut one, mut two) = (world.client("a").await, world.client("b").await);
    let tag = "artifacts://by-tag/type:midi";
    one.subscribe(&[RECENT]).await;
    two.subscribe(&[tag]).await;
    writer.create("song", json!({ "tags": ["type:midi"] })).await;
    assert_eq!(updates(one.notices().await), [RECENT]);
    assert_eq!(updates(two.notices().await), [tag]);
    writer.create("text", json!({})).await;
    assert_eq!(updates(one.notices().await), [RECENT]);
    assert_eq!(updates(two.notices().await), Vec::<String>::new());
    drop(two);
    writer.create("other", json!({ "tags": ["type:midi"] })).await;
    assert_eq!(updates(one.notices().await), [RECENT]);
    one.unsubscribe(RECENT).await;
    writer.create("last", json!({})).await;
    assert_eq!(updates(one.notices().await), Vec::<String>::new());
    assert_eq!(one.read(RECENT).await["total"], 4);
}

#[tokio::test(start_paused = true)]
async fn what_can_never_be_read_is_not_watched() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    for (uri, written) in [
        ("artifacts://by-tag/a%2fb", "`artifacts://by-tag/a%2Fb`"),
        ("artifacts://by-tag/type:m%69di", "`artifacts://by-tag/type%3Amidi`"),
        ("artifacts://by-tag/type:a:b", "`artifacts://by-tag/type%3Aa%3Ab`"),
        ("artifacts://by-creator/w:1", "`artifacts://by-creator/w%3A1`"),
        ("artifacts://by-tag/it's%20(new)!", "`artifacts://by-tag/it%27s%20%28new%29%21`"),
        ("artifacts://recent?limit=0", "from 1 to 1000"),
        ("cas://ABC", "64 hexadecimal digits"),
    ] {
        for method in ["resources/subscribe", "resources/read"] {
            let error = client.ask(method, json!({ "uri": uri })).await["error"].clone();
            assert_eq!(error["code"], -32602, "{uri}: {error}");
            let details = error["data"]["details"].as_str().unwrap();
            assert!(details.contains(written), "{uri}: {details}");
        }
    }
    client.subscribe(&[RECENT]).await;
    let uris = vec![RECENT.to_owned(), "artifacts://recent?limit=0".to_owned()];
    let mut modern = Modern { wire: Wire::to(world.hub.clone(), 1 << 20), uris };
    let acknowledged = modern.listen().await;
    assert_eq!(acknowledged, json!([RECENT]));
}

#[tokio::test(start_paused = true)]
async fn what_another_process_writes_is_told_too() {
    let (world, _writer, mut watcher) = watched(&[RECENT, "graph://identities"]).await;
    let beside = Workspace::open(Config::beside(world.directory.path())).unwrap();
    let draft = crate::Draft::new("from beside", "", "cli");
    beside.import(&mut b"bytes".as_slice(), draft, "cli").unwrap();
    assert_eq!(watcher.notices().await, sorted([RECENT, "resources", "tools"]));
    assert_eq!(watcher.read(RECENT).await["items"][0]["creator"], "cli");
    assert!(world.workspace.newest_events(1).unwrap()[0].actor == "cli");
}

#[tokio::test(start_paused = true)]
async fn tools_and_resources_are_told_only_when_what_is_listed_moved() {
    let world = ServedWorkspace::with(|config| config.listed_artifacts = 2).await;
    let mut writer = world.client("writer").await;
    let mut watcher = world.client("watcher").await;
    watcher.notices().await;
    assert!(!watcher.names("tools").await.contains(&"graph_connect".to_owned()));
    writer.call("put_blob", json!({ "text": "x" })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    let id = writer.create("one", json!({})).await;
    assert_eq!(watcher.notices().await, ["resources", "tools"]);
    writer.call("tag", json!({ "id": id, "tags": ["x"] })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    writer.create("two", json!({})).await;
    assert_eq!(watcher.notices().await, ["resources"]);
    let third = writer.create("three", json!({})).await;
    assert_eq!(watcher.notices().await, ["resources"]);
    let listed = watcher.names("resources").await;
    assert!(listed.contains(&format!("artifacts://artifact/{third}")), "{listed:?}");
    assert!(!listed.contains(&format!("artifacts://artifact/{id}")), "{listed:?}");
    writer.call("graph_bind", json!({ "id": "a", "name": "A" })).await;
    assert_eq!(watcher.notices().await, ["resources", "tools"]);
    let link = json!({ "from": "a", "from_port": "1", "to": "a", "to_port": "2" });
    writer.call("graph_connect", link).await;
    assert_eq!(watcher.notices().await, ["tools"]);
    writer.call("graph_unbind", json!({ "id": "a" })).await;
    assert_eq!(watcher.notices().await, ["resources", "tools"]);
    let tools = watcher.names("tools").await;
    assert!(!tools.iter().any(|tool| tool == "graph_connect" || tool == "graph_disconnect"));
}

/// A direct connection to the database.
fn database(world: &ServedWorkspace) -> rusqlite::Connection {
    rusqlite::Connection::open(world.directory.path().join("workspace.sqlite")).unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_told_is_told_as_soon_as_it_can_be() {
    let (world, _writer, mut watcher) = watched(&[EVENTS]).await;
    let database = database(&world);
    // To announce a tag, the artifact's lists must be known.
    let broken = r#"INSERT INTO events (time, kind, actor, change) VALUES (0, 'artifact.tagged', 'a',
            '{"type":"artifact.tagged","artifact":"x","tags":["y"]}');
        ALTER TABLE artifacts RENAME TO elsewhere;"#;
    database.execute_batch(broken).unwrap();
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    database.execute_batch("ALTER TABLE elsewhere RENAME TO artifacts").unwrap();
    assert_eq!(watcher.notices().await, [EVENTS]);
}

#[tokio::test(start_paused = true)]
async fn where_a_damaged_workspace_is_concerns_no_client() {
    let world = ServedWorkspace::new().await;
    let mut client = world.client("client").await;
    client.create("one", json!({})).await;
    let broken = "UPDATE artifacts SET created = 'never'";
    database(&world).execute_batch(broken).unwrap();
    let read = client.ask("resources/read", json!({ "uri": RECENT })).await["error"].clone();
    let details = read["data"]["details"].as_str().unwrap().to_owned();
    let found = client.fail("search_artifacts", json!({ "query": "one" })).await;
    for words in [details, found] {
        assert!(words.contains("is damaged; its operator"), "{words}");
        assert!(!words.contains("workspace.sqlite"), "{words}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_that_cannot_be_read_is_shown_and_hides_nothing() {
    let (world, mut writer, mut watcher) = watched(&[EVENTS, RECENT, "graph://identities"]).await;
    let beside = r#"INSERT INTO identities VALUES ('a', 'A', '[]', 0, 'a');
        INSERT INTO counts VALUES ('identities', '', 1);
        INSERT INTO events (time, kind, actor, change) VALUES
        (0, 'artifact.sung', 'a', '{"type":"artifact.sung","song":1,"number":7}'),
        (0, 'blob.stored', 'a', '{"type":"blob.stored","hash":7}'), (0, 'odd', 'a', 'not JSON');"#;
    database(&world).execute_batch(beside).unwrap();
    let moved = sorted([EVENTS, "graph://identities", "resources", "tools"]);
    assert_eq!(watcher.notices().await, moved);
    let shown = watcher.read("events://since/0").await["events"].clone();
    let polled = writer.call("poll_events", json!({ "cursor": 0 })).await["events"].clone();
    assert_eq!(polled, shown);
    assert_eq!((&shown[0]["type"], &shown[0]["song"]), (&json!("artifact.sung"), &json!(1)));
    assert_eq!((&shown[0]["number"], &shown[0]["actor"]), (&json!(1), &json!("a")));
    assert_eq!((&shown[1]["type"], &shown[1]["hash"]), (&json!("blob.stored"), &json!(7)));
    assert_eq!((&shown[2]["type"], &shown[2]["number"]), (&json!("odd"), &json!(3)));
    writer.create("one", json!({})).await;
    assert_eq!(updates(watcher.notices().await), sorted([EVENTS, RECENT]));
}

#[tokio::test(start_paused = true)]
async fn bytes_are_told_when_they_can_be_read_and_not_when_there_is_a_file() {
    let world = ServedWorkspace::new().await;
    let (mut writer, mut watcher) = (world.client("writer").await, world.client("watcher").await);
    let hash = blake3::hash(b"text").to_hex().to_string();
    let uri = format!("cas://{hash}");
    // As a process leaves it that was killed meanwhile.
    let file = world.directory.path().join("objects").join(&hash[..2]).join(&hash);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "text").unwrap();
    watcher.subscribe(&[&uri]).await;
    writer.call("put_blob", json!({ "text": "text" })).await;
    assert_eq!(watcher.notices().await, std::slice::from_ref(&uri));
    writer.call("put_blob", json!({ "text": "text" })).await;
    assert_eq!(watcher.notices().await, Vec::<String>::new());
    watcher.unsubscribe(&uri).await;
    std::fs::remove_file(&file).unwrap();
    watcher.subscribe(&[&uri]).await;
    writer.call("put_blob", json!({ "text": "text" })).await;
    assert_eq!(watcher.notices().await, [uri]);
}
