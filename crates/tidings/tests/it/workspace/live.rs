//! A server and the command line on one directory at one time.

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::{Listening, Place, create, serve};
use crate::support::demo::{PROGRAM, within};
use crate::support::piped::Server;

const RECENT: &str = "artifacts://recent";
const X: &str = "artifacts://by-tag/x";
const Y: &str = "artifacts://by-tag/y";

/// How often each was told of.
fn counts(server: &Server) -> [usize; 3] {
    [RECENT, X, Y].map(|uri| server.updated.iter().filter(|it| *it == uri).count())
}

#[tokio::test]
async fn a_server_tells_of_what_the_command_line_writes_once() {
    let place = Place::new();
    let mut server = serve(&place, "").await;
    for uri in [RECENT, X, Y] {
        server.subscribe(uri).await;
    }
    let id = place.import("one", "--tag x").await;
    server.wait(RECENT, 1).await;
    server.wait(X, 1).await;
    assert_eq!(server.read(X).await["items"][0]["id"], json!(id));
    // What only looks is not told of.
    for words in ["ls", "log", "verify", "gc", "export target"] {
        assert_eq!(place.run(words).await.code, Some(0), "{words}");
    }
    place.run(&format!("tag {id} x")).await;
    place.run(&format!("tag {id} y")).await;
    server.wait(Y, 1).await;
    server.wait(RECENT, 2).await;
    server.wait(X, 2).await;
    place.import("two", "--tag y").await;
    server.wait(Y, 2).await;
    server.wait(RECENT, 3).await;
    assert_eq!(counts(&server), [3, 2, 2], "{:?}", server.updated);
}

#[tokio::test]
async fn the_command_line_sees_and_follows_what_a_server_writes() {
    let place = Place::new();
    let mut server = serve(&place, "").await;
    let mut follow = place.command("workspace w log --follow --json --since 0").spawn().unwrap();
    let mut lines = BufReader::new(follow.stdout.take().unwrap()).lines();
    create(&mut server, "One", "1", &["x"]).await;
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        let line = within(lines.next_line()).await.unwrap().unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        kinds.push(event["type"].as_str().unwrap().to_owned());
        assert_eq!(event["actor"], "tester");
    }
    assert_eq!(kinds, ["blob.stored", "artifact.created"]);
    assert_eq!(place.lines("ls --tag x").await[0]["title"], "One");
    let id = follow.id().unwrap().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    assert!(within(follow.wait()).await.unwrap().success());
}

#[tokio::test]
async fn as_many_are_listed_as_the_server_is_told() {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.import(name, "").await;
    }
    let mut server = serve(&place, "--listed-artifacts 2 --listed-identities 1").await;
    for id in ["x", "y"] {
        server.call("graph_bind", json!({ "id": id, "name": id })).await;
    }
    // The list is brought up to date now and then.
    within(async {
        loop {
            let listed = server.ask("resources/list", json!({})).await;
            let resources = listed["result"]["resources"].as_array().unwrap();
            let of = |kind: &str| {
                resources.iter().filter(|it| it["uri"].as_str().unwrap().starts_with(kind)).count()
            };
            let counts = (of("artifacts://artifact/"), of("graph://identity/"));
            assert_eq!(counts.0, 2);
            if counts.1 == 1 {
                break;
            }
        }
    })
    .await;
    let wrong = place.command("serve --workspace w --listed-artifacts 10001");
    assert_eq!(crate::support::demo::ended(wrong).await.code, Some(2));
}

#[tokio::test]
async fn a_server_says_where_large_bytes_go_as_it_is_reached() {
    let place = Place::new();
    let words = format!("info --json -- {PROGRAM} serve --stdio --workspace w");
    let piped = crate::support::demo::ended(place.command(&words)).await;
    let said = piped.lines()[0]["instructions"].as_str().unwrap().to_owned();
    assert!(said.contains("import FILE") && !said.contains("/blob"), "{said}");
    let server = Listening::start(&place, "", None).await;
    let words = format!("info --json {}/mcp", server.url);
    let listening = crate::support::demo::ended(place.command(&words)).await;
    let said = listening.lines()[0]["instructions"].as_str().unwrap().to_owned();
    assert!(said.contains("`PUT /blob`"), "{said}");
}

#[tokio::test]
async fn a_second_server_is_refused_with_who_has_the_directory() {
    let place = Place::new();
    let first = serve(&place, "").await;
    let second =
        crate::support::demo::ended(place.command("serve --workspace w --http 127.0.0.1:0")).await;
    assert_eq!(second.code, Some(1));
    let holder = format!("is served already, by process {} since 2", first.child.id().unwrap());
    assert!(second.errors.contains(&holder), "{second:?}");
    drop(first);
}

#[tokio::test]
async fn a_server_that_ended_in_any_way_leaves_the_directory_free() {
    let place = Place::new();
    let mut first = serve(&place, "").await;
    create(&mut first, "One", "1", &[]).await;
    first.child.kill().await.unwrap();
    let mut second = serve(&place, "").await;
    assert_eq!(second.read(RECENT).await["items"][0]["title"], "One");
}
