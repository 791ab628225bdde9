//! Servers that do not answer with a feed, and the consequences for readers.

use async_compression::Level;
use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZstdEncoder};

use super::*;
use crate::condition::Condition;
use crate::fetch::Validators;

const ONE: [(&str, u32, &str); 1] = [("a", 1, "ai")];

async fn watched() -> Scene {
    Scene::watched(Answer::document(rss("", &ONE)), &["", "/items", "/meta"]).await
}

/// An answer that is no feed: told once however often it comes, what is kept stays, and the reason
/// can be read.
async fn check_failing(scene: &mut Scene, answer: Answer, reason: &str) {
    let row = scene.turn(answer).await;
    assert_eq!((row.is_failing(), row.item_count), (true, 1), "{reason}");
    scene.ask(NEWS).await;
    scene.told(&["/meta"], &[]).await;
    let meta = scene.read("/meta").await;
    let shown = meta["lastError"].as_str().unwrap();
    assert!(shown.starts_with(reason), "{shown}");
    assert_eq!(scene.read("/items").await[0]["title"], "a");
    scene.turn(Answer::document(rss("", &ONE))).await;
    scene.told(&["/meta"], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_feed_leaves_what_is_kept() {
    let mut scene = watched().await;
    let page = "<html><link rel=alternate type=application/rss+xml href=/real><p>Hello";
    for (answer, reason) in [
        (Answer::new(404, ""), "the server has nothing at this address (404)"),
        (Answer::new(403, ""), "the server answered 403"),
        (Answer::new(502, ""), "the server answered 502"),
        (Answer::document(""), "the document is empty"),
        (Answer::document(page), "the document is a web page, not a feed"),
        (Answer::document("<rss><channel><item><title>b").cut_off(), "the answer was interrupted"),
        (
            Answer::document("not packed").with("content-encoding", "br"),
            "the answer could not be decompressed",
        ),
        (
            Answer::document("odd").with("content-encoding", "compress"),
            "the answer could not be decompressed",
        ),
        (Answer::redirect(302, "/news"), "the server redirects more than 5 times"),
        (Answer::new(302, ""), "the server redirects without an address"),
        (Answer::redirect(302, "ftp://feed.example/"), "`ftp` addresses are not fetched"),
        (Answer::redirect(302, "http://feed.example:25/"), "port 25 is not for the web"),
    ] {
        check_failing(&mut scene, answer, reason).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_breaks_off_gives_the_items_before_and_is_asked_for_again() {
    let mut scene = watched().await;
    let whole = rss("", &[("b", 2, "ai"), ("a", 1, "ai"), ("c", 1, "ai")]);
    let end = whole.rfind("</item>").unwrap();
    let row =
        scene.turn(Answer::document(whole[..end].to_owned()).with("etag", "\"1\"").cut_off()).await;
    assert_eq!((row.condition(), row.item_count), (Condition::Good, 2));
    // It once was asked for again the next day.
    let wait = row.next_fetch.unwrap().unix() - row.last_fetch.unwrap().unix();
    assert!(wait <= 20 * 60, "{wait} s");
    assert_eq!(row.validators, Validators::default(), "no version is known");
    scene.told(&["", "/items", "/meta"], &["feeds://all"]).await;
    assert_eq!(scene.read("/meta").await["feed"]["truncated"], true);
    let row = scene.turn(Answer::document(whole)).await;
    assert_eq!(row.item_count, 3);
    scene.told(&["", "/items", "/meta"], &["feeds://all"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_page_in_place_of_a_feed_says_where_feeds_are() {
    let mut scene = watched().await;
    let page = "<html><link rel=alternate type=application/atom+xml href=/real.atom><p>Hello";
    scene.turn(Answer::document(page)).await;
    scene.told(&["/meta"], &[]).await;
    let meta = scene.read("/meta").await;
    let error = meta["lastError"].as_str().unwrap();
    assert!(error.contains("http://feed.example/real.atom"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_redirect_does_not_lead_inside() {
    let mut scene = watched().await;
    let literal = format!("http://{}/secret", scene.press.address);
    scene.press.print("/secret", Answer::document(rss("", &[("secret", 9, "ai")])));
    for (location, reason) in [
        (literal.as_str(), "`127.0.0.1` is at the private address 127.0.0.1"),
        ("http://inside.example/secret", "`inside.example` is at the private address 10.0.0.1"),
        ("http://169.254.169.254/secret", "`169.254.169.254` is at the private address"),
        ("http://[::1]/secret", "`[::1]` is at the private address ::1"),
        ("http://0x7f.1/secret", "`127.0.0.1` is at the private address 127.0.0.1"),
    ] {
        check_failing(&mut scene, Answer::redirect(301, location), reason).await;
    }
    let hits = scene.press.take_hits();
    assert!(hits.iter().all(|hit| hit.path == "/news"), "nobody came through");
}

#[tokio::test(start_paused = true)]
async fn a_slow_server_is_given_up() {
    // Short enough that a test does not take long; nothing on this machine takes as long.
    let timeout = Duration::from_millis(250);
    let fetching = fetch::Config { timeout, ..fetch::Config::default() };
    let mut scene = Scene::with(&[NEWS], fetching).await;
    scene.turn(Answer::document(rss("", &ONE))).await;
    scene.listen(&[uri(NEWS, "/items"), uri(NEWS, "/meta")]).await;
    scene.turn(Answer::document("<rss><channel>").never_ending()).await;
    scene.told(&["/meta"], &[]).await;
    let meta = scene.read("/meta").await;
    assert_eq!(meta["lastError"], "the server took longer than 0.25 s");
}

async fn packed(name: &str, content: &[u8]) -> Vec<u8> {
    // Written as it is for each, since they have no common way to be taken apart.
    match name {
        "gzip" => {
            let mut encoder = GzipEncoder::with_quality(Vec::new(), Level::Fastest);
            encoder.write_all(content).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
        "br" => {
            let mut encoder = BrotliEncoder::with_quality(Vec::new(), Level::Fastest);
            encoder.write_all(content).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
        _ => {
            let mut encoder = ZstdEncoder::with_quality(Vec::new(), Level::Fastest);
            encoder.write_all(content).await.unwrap();
            encoder.shutdown().await.unwrap();
            encoder.into_inner()
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_packed_feed_is_read_and_a_bomb_is_not() {
    let fetching = fetch::Config { body_limit: 64 * 1024, ..fetch::Config::default() };
    let mut scene = Scene::with(&[NEWS], fetching).await;
    scene.turn(Answer::document(rss("", &ONE))).await;
    scene.listen(&[uri(NEWS, "/items"), uri(NEWS, "/meta")]).await;
    let bomb = rss(&" ".repeat(1024 * 1024), &[("b", 2, "ai"), ONE[0]]);
    for name in ["gzip", "br", "zstd"] {
        let body = packed(name, bomb.as_bytes()).await;
        assert!(body.len() < 32 * 1024, "small on its way");
        let answer = Answer::document(body).with("content-encoding", name);
        check_failing(&mut scene, answer, "the answer is larger than 65536 bytes").await;
        let body = packed(name, rss("", &ONE).as_bytes()).await;
        let row = scene.turn(Answer::document(body).with("content-encoding", name)).await;
        assert_eq!(row.condition(), Condition::Good, "{name}");
        scene.told(&[], &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_address_is_taken_over_after_it_did_well_three_times() {
    for status in [301, 308] {
        let mut scene = watched().await;
        scene.press.print("/new", Answer::document(rss("", &ONE)));
        for _ in 0..2 {
            scene.turn(Answer::redirect(status, "/new")).await;
        }
        // One that fails in between begins again.
        scene.press.print("/new", Answer::new(500, ""));
        scene.ask(NEWS).await;
        scene.told(&["/meta"], &[]).await;
        scene.press.print("/new", Answer::document(rss("", &ONE)));
        scene.ask(NEWS).await;
        scene.told(&["/meta"], &[]).await;
        scene.ask(NEWS).await;
        scene.told(&[], &[]).await;
        assert_eq!(scene.row(NEWS).address.as_str(), NEWS);
        scene.ask(NEWS).await;
        scene.told(&["", "/meta"], &["feeds://all"]).await;
        assert_eq!(scene.read("/meta").await["publicUrl"], "http://feed.example/new");
        scene.press.take_hits();
        scene.ask(NEWS).await;
        let paths: Vec<_> = scene.press.take_hits().into_iter().map(|hit| hit.path).collect();
        assert_eq!(paths, ["/new"], "and the old one is not asked any more");
        scene.told(&[], &[]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_detour_is_never_taken_over() {
    let mut scene = watched().await;
    scene.press.print("/new", Answer::document(rss("", &ONE)));
    for status in [302, 303, 307, 302, 307] {
        scene.turn(Answer::redirect(status, "/new")).await;
    }
    assert_eq!(scene.row(NEWS).address.as_str(), NEWS);
    assert_eq!(scene.requests(), 10);
    scene.told(&[], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_gone_is_told_once_and_not_asked_again() {
    let mut scene = watched().await;
    scene.turn(Answer::new(410, "")).await;
    scene.told(&["/meta"], &[]).await;
    assert_eq!((scene.plan(NEWS).condition, scene.plan(NEWS).due()), (Condition::Gone, None));
    let error = scene.read("/meta").await["lastError"].clone();
    assert_eq!(error, "the server reports that it was removed for good (410)");
}

#[tokio::test(start_paused = true)]
async fn a_missing_feed_is_asked_less_and_less() {
    let mut scene = watched().await;
    let mut before = Duration::ZERO;
    for _ in 0..3 {
        scene.turn(Answer::new(404, "")).await;
        let wait = scene.plan(NEWS).due().unwrap().since(scene.feeds.0.clock.time());
        assert!(wait > before * 2, "{wait:?} after {before:?}");
        before = wait;
    }
    scene.told(&["/meta"], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_wants_to_be_left_alone_is_and_no_other() {
    let (same, other) = ("http://feed.example/same", "http://other.example/feed");
    for (status, retry_after) in [
        (429, "7200"),
        (503, "7200"),
        (429, "Mon, 16 Nov 2026 02:00:00 GMT"),
        (503, "Mon, 16 Nov 2026 02:00:00 GMT"),
    ] {
        let mut scene = Scene::new(&[NEWS, same, other]).await;
        scene.press.print("/feed", Answer::document(rss("", &ONE)));
        let refusal = Answer::new(status, "not now")
            .with("retry-after", retry_after)
            .with("date", "Mon, 16 Nov 2026 00:00:00 GMT");
        scene.turn(refusal).await;
        for url in [same, other] {
            scene.ask(url).await;
        }
        let paths: Vec<_> = scene.press.take_hits().into_iter().map(|hit| hit.path).collect();
        assert_eq!(paths, ["/news", "/feed"], "{status} {retry_after}");
        let now = scene.feeds.0.clock.time();
        let waits = [NEWS, same].map(|url| scene.plan(url).due().unwrap().since(now));
        assert!(waits.iter().all(|wait| *wait > Duration::from_secs(7190)), "{waits:?}");
        assert!(scene.row(same).is_new(), "it did nothing wrong");
        assert_eq!(scene.row(other).condition(), Condition::Good);
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_without_an_address_is_a_failure_like_any_other() {
    let mut scene = watched().await;
    let address = scene.press.address;
    let look_up = Directory::Told(Arc::new(move |host| match host {
        "feed.example" => Vec::new(),
        _ => directory(address)(host),
    }));
    scene.fetcher = Fetcher::with_directory(fetch::Config::default(), look_up).unwrap();
    scene.ask(NEWS).await;
    scene.told(&["/meta"], &[]).await;
    assert_eq!(scene.requests(), 0);
    assert_eq!(scene.read("/items").await[0]["title"], "a");
}

/// A name server that changes its mind gets nobody inside, and what is kept stays.
#[tokio::test(start_paused = true)]
async fn a_name_that_moves_inside_is_not_followed_there() {
    let mut scene = watched().await;
    let address = scene.press.address;
    let look_up = Directory::Told(Arc::new(move |_| {
        vec![ResolvedAddress { address: "192.168.0.1".parse().unwrap(), socket: address }]
    }));
    scene.fetcher = Fetcher::with_directory(fetch::Config::default(), look_up).unwrap();
    scene.ask(NEWS).await;
    scene.told(&["/meta"], &[]).await;
    assert_eq!(scene.requests(), 0);
    let error = scene.read("/meta").await["lastError"].clone();
    assert_eq!(error, "`feed.example` is at the private address 192.168.0.1");
}
