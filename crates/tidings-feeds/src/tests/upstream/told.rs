//! Numbers of notices and requests for each behaviour of a server of feeds.

use super::*;

/// What is watched besides the list of feeds: everything there is of a feed, and views of it.
const PARTS: [&str; 6] =
    ["", "/items", "/meta", "/items?category=ai", "/items?category=sport", "/items?limit=1"];

const TWO: [(&str, u32, &str); 2] = [("b", 2, "ai"), ("a", 1, "sport")];

async fn watched() -> Scene {
    Scene::watched(Answer::document(rss("", &TWO)), &PARTS).await
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_is_told_once_to_everything_of_the_feed() {
    let mut scene = Scene::new(&[NEWS]).await;
    let mut uris: Vec<_> = PARTS.iter().map(|part| uri(NEWS, part)).collect();
    uris.push("feeds://all".to_owned());
    scene.listen(&uris).await;
    scene.turn(Answer::document(rss("", &TWO))).await;
    scene.told(&PARTS, &["feeds://all", "list"]).await;
    assert_eq!(scene.requests(), 1);
}

#[tokio::test(start_paused = true)]
async fn reads_ask_nobody() {
    let mut scene = watched().await;
    for number in 0..50 {
        for part in PARTS {
            assert!(scene.read(part).await.get("error").is_none());
        }
        scene.read(&format!("/items?search=about&offset={number}")).await;
    }
    scene.press.print("/news", Answer::new(500, ""));
    scene.ask(NEWS).await;
    assert_eq!(scene.requests(), 1);
    for part in PARTS {
        assert!(scene.read(part).await.get("error").is_none(), "what is kept is served");
    }
    assert_eq!(scene.requests(), 0);
}

#[tokio::test(start_paused = true)]
async fn validators_are_sent_back_as_they_came_and_304_is_silence() {
    for (name, sent, value) in [
        ("etag", "if-none-match", "\"plain\""),
        ("etag", "if-none-match", "W/\"weak, with a comma\""),
        ("etag", "if-none-match", "not quoted at all"),
        ("etag", "if-none-match", "\"nested \"quotes\"\""),
        ("last-modified", "if-modified-since", "Mon, 01 Jan 2024 12:00:00 GMT"),
        ("last-modified", "if-modified-since", "2024-01-01 some time"),
    ] {
        let answer = Answer::document(rss("", &TWO)).with(name, value);
        let mut scene = Scene::watched(answer, &PARTS).await;
        for _ in 0..3 {
            scene.ask(NEWS).await;
        }
        let hits = scene.press.take_hits();
        assert_eq!(hits.len(), 3);
        assert!(hits.iter().all(|hit| hit.header(sent) == value), "{value}: {hits:?}");
        scene.told(&[], &[]).await;
        // Something changed after all: the old validator fits no more, and the new one is kept.
        let next = rss("", &[("c", 3, "ai"), TWO[0], TWO[1]]);
        scene.turn(Answer::document(next).with("etag", "\"next\"")).await;
        scene.ask(NEWS).await;
        let hits = scene.press.take_hits();
        assert_eq!((hits[0].header(sent), hits[1].header("if-none-match")), (value, "\"next\""));
        assert_eq!(hits[1].header("if-modified-since"), "", "the old one is forgotten");
        scene.told(&["", "/items", "/items?category=ai", "/items?limit=1"], &["feeds://all"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_validator_that_came_with_no_feed_is_not_kept() {
    let mut scene = watched().await;
    scene.turn(Answer::document("<html>sorry</html>").with("etag", "\"page\"")).await;
    scene.turn(Answer::document(rss("", &TWO))).await;
    assert!(scene.press.take_hits().iter().all(|hit| hit.header("if-none-match").is_empty()));
}

#[tokio::test(start_paused = true)]
async fn the_same_content_sent_again_is_silence() {
    let mut scene = watched().await;
    for _ in 0..3 {
        scene.ask(NEWS).await;
    }
    assert_eq!(scene.requests(), 3);
    scene.told(&[], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn what_moves_by_itself_is_silence() {
    let mut scene = watched().await;
    let plain = rss("", &TWO);
    for (what, document) in [
        (
            "when it was built",
            rss("<lastBuildDate>Tue, 02 Jan 2024 10:00:00 GMT</lastBuildDate>", &TWO),
        ),
        ("how long it is good", rss("<ttl>90</ttl>", &TWO)),
        ("where a reader came from", plain.replace("</link>", "?utm_source=feed</link>")),
        ("the case of a category", plain.replace(">ai<", ">AI<")),
        ("how it is written", plain.replace("<item>", "\n\t<item >").replace('\'', "\"")),
        ("the order of its items", rss("", &[TWO[1], TWO[0]])),
        ("when all was published", plain.replace("12:00:00", "12:00:07")),
    ] {
        scene.turn(Answer::document(document)).await;
        for client in &mut scene.clients {
            assert_eq!(client.notices().await, [""; 0], "{what}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_link_that_is_shown_in_another_way_is_told_and_read() {
    let mut scene = watched().await;
    let link = |name: &str| format!("http://feed.example/{name}<");
    let moved = rss("", &TWO).replace(&link("a"), "https://feed.example/a<");
    scene.turn(Answer::document(moved.clone())).await;
    scene.told(&["", "/items", "/items?category=sport"], &[]).await;
    assert_eq!(scene.read("/items?category=sport").await[0]["link"], "https://feed.example/a");
    scene.turn(Answer::document(moved)).await;
    scene.told(&[], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_item_is_told_to_the_views_it_is_in() {
    let mut scene = watched().await;
    scene.turn(Answer::document(rss("", &[("c", 3, "ai"), TWO[0], TWO[1]]))).await;
    scene.told(&["", "/items", "/items?category=ai", "/items?limit=1"], &["feeds://all"]).await;
    assert_eq!(scene.read("/items?category=ai").await[0]["title"], "c");
    scene.turn(Answer::document(rss("", &[("d", 4, "art"), ("c", 3, "ai"), TWO[0], TWO[1]]))).await;
    scene.told(&["", "/items", "/items?limit=1"], &["feeds://all"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_changed_item_is_told_to_the_views_it_is_in() {
    let mut scene = watched().await;
    let edited = rss("", &TWO).replace("About a.", "About a, corrected.");
    scene.turn(Answer::document(edited.clone())).await;
    scene.told(&["", "/items", "/items?category=sport"], &[]).await;
    scene.turn(Answer::document(edited.replace("sport", "ai"))).await;
    scene.told(&["", "/items", "/items?category=sport", "/items?category=ai"], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_item_is_told_to_the_views_it_was_in() {
    let three = [("c", 3, "ai"), TWO[0], TWO[1]];
    let mut scene = Scene::watched(Answer::document(rss("", &three)), &PARTS).await;
    scene.turn(Answer::document(rss("", &[three[0], three[2]]))).await;
    scene.told(&["", "/items", "/items?category=ai"], &["feeds://all"]).await;
    assert_eq!(scene.read("/items").await.as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_item_that_is_too_old_for_the_document_is_not_withdrawn() {
    let mut scene = watched().await;
    scene.turn(Answer::document(rss("", &[("c", 3, "art"), TWO[0]]))).await;
    scene.told(&["", "/items", "/items?limit=1"], &["feeds://all"]).await;
    assert_eq!(scene.read("/items").await.as_array().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn what_a_feed_says_of_itself_is_told_without_its_items() {
    let mut scene = watched().await;
    scene.turn(Answer::document(rss("<description>Daily.</description>", &TWO))).await;
    scene.told(&["", "/meta"], &["feeds://all"]).await;
    scene.turn(Answer::document(rss("<copyright>Nobody.</copyright>", &TWO))).await;
    scene.told(&["", "/meta"], &["feeds://all"]).await;
    let renamed = rss("<copyright>Nobody.</copyright>", &TWO).replace(">News<", ">Olds<");
    scene.turn(Answer::document(renamed)).await;
    scene.told(&["", "/meta"], &["feeds://all", "list"]).await;
}

#[tokio::test(start_paused = true)]
async fn that_a_feed_fails_is_told_once_and_that_it_is_back_too() {
    let mut scene = watched().await;
    for _ in 0..4 {
        scene.turn(Answer::new(500, "sorry")).await;
    }
    scene.told(&["/meta"], &[]).await;
    let meta = scene.read("/meta").await;
    assert_eq!(meta["lastError"], "the server answered 500");
    assert!(meta["lastSuccess"].is_string(), "{meta}");
    assert_eq!(scene.read("/items").await.as_array().unwrap().len(), 2);
    scene.turn(Answer::document(rss("", &TWO))).await;
    scene.ask(NEWS).await;
    scene.told(&["/meta"], &[]).await;
    assert!(scene.read("/meta").await.get("lastError").is_none());
    assert_eq!(scene.requests(), 6);
}

/// Each was told, and a certificate that ran out gives another reason every second.
#[tokio::test(start_paused = true)]
async fn another_reason_to_fail_can_be_read_and_is_not_told() {
    let mut scene = watched().await;
    for answer in [Answer::new(500, ""), Answer::new(404, ""), Answer::new(502, "")] {
        scene.turn(answer).await;
    }
    scene.told(&["/meta"], &[]).await;
    assert_eq!(scene.read("/meta").await["lastError"], "the server answered 502");
    scene.turn(Answer::document("no feed")).await;
    scene.told(&[], &[]).await;
    scene.turn(Answer::document(rss("", &TWO))).await;
    scene.told(&["/meta"], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_returns_with_news_is_told_once_for_both() {
    let mut scene = watched().await;
    scene.turn(Answer::new(500, "sorry")).await;
    scene.told(&["/meta"], &[]).await;
    scene.turn(Answer::document(rss("", &[("c", 3, "art"), TWO[0], TWO[1]]))).await;
    scene.told(&["", "/items", "/items?limit=1", "/meta"], &["feeds://all"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_comes_and_one_that_goes_are_told_to_the_list_once() {
    let mut scene = watched().await;
    let other = scene.feeds.add(feed_at("http://feed.example/other")).await.unwrap();
    scene.told(&[], &["feeds://all", "list"]).await;
    assert!(scene.feeds.remove(&other).await.unwrap());
    scene.told(&[], &["feeds://all", "list"]).await;
    assert!(scene.feeds.remove(&id::short(NEWS)).await.unwrap());
    scene.told(&PARTS, &["feeds://all", "list"]).await;
    assert_eq!(scene.requests(), 0, "who is not asked for is not asked");
}
