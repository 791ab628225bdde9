//! What is done with feeds while they are served, against a server on this machine: how often it
//! was asked is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::response::Response;
use tokio::sync::Notify;

use super::rounds::rss;
use super::*;
use crate::condition::Condition;
use crate::fetch;
use crate::fetch::tests::server::{Hit, Server, answer, redirect};
use crate::page::Form;
use crate::refresh::{News, Refresh};

/// Feeds with everything allowed and no time lost.
async fn feeds(config: Config) -> Feeds {
    let fetching =
        fetch::Config { allow_private: true, apart: Duration::ZERO, ..fetch::Config::default() };
    Feeds::open_with(config, fetching).await.unwrap()
}

fn one(url: String) -> Config {
    let mut config = Config::new(Data::Memory);
    config.feeds = vec![feed_at(url)];
    config
}

fn only_id(feeds: &Feeds) -> String {
    let ids: Vec<_> = feeds.0.board().rows().map(|row| row.id.clone()).collect();
    let [id] = ids.as_slice() else { panic!("{ids:?}") };
    id.clone()
}

/// Pages with one feed, with two, with none, and a feed.
fn play(hit: &Hit) -> Response {
    let link = |path: &str| {
        format!("<link rel=alternate type='application/rss+xml' title='T{path}' href='{path}'>")
    };
    let page = |links: String| {
        answer(
            200,
            &[("content-type", "text/html")],
            format!(
                "<html><head><title>Page</title>{links}</head><body><p>Hello <b>you</b>.</body></html>"
            ),
        )
    };
    match hit.path.as_str() {
        "/one" => page(link("/feed") + &link("/feed")),
        "/two" => page(link("/feed") + &link("/other")),
        "/none" => page(String::new()),
        "/feed" if hit.header("if-none-match") == "\"x\"" => answer(304, &[], ""),
        "/feed" => answer(200, &[("etag", "\"x\"")], rss(&["b", "a"])),
        "/long" => answer(200, &[("content-type", "text/plain")], "word ".repeat(300)),
        "/moved" => redirect(302, "/one"),
        "/old" => redirect(301, "/feed"),
        "/linked" => {
            let link = "</other>; rel=alternate; type=application/rss+xml";
            answer(200, &[("content-type", "text/html"), ("link", link)], "<html><p>Hello")
        }
        "/posts" => page(link("/feed") + &link("/comments/feed")),
        "/other" => answer(200, &[], rss(&["c"])),
        "/pdf" => answer(200, &[("content-type", "application/pdf")], "%PDF-1.7"),
        _ => answer(404, &[], ""),
    }
}

#[tokio::test]
async fn the_only_feed_of_a_page_is_added_with_what_it_says() {
    let server = Server::start(play).await;
    let feeds = feeds(Config::new(Data::Memory)).await;
    let found = feeds.discover(feed_at(server.url("/one"))).await.unwrap();
    assert_eq!(found.url(), server.url("/feed"));
    assert_eq!(found.page(), Some(server.url("/one").as_str()));
    assert_eq!(found.document().items.len(), 2);
    assert!(feeds.0.board().rows().next().is_none());
    let id = feeds.add_found(found).await.unwrap();
    let row = feeds.0.board().get(&id).unwrap().clone();
    assert_eq!((row.item_count, row.condition(), row.shown_title()), (2, Condition::Good, "File"));
    assert!(row.next_fetch.is_some());
    assert_eq!(server.paths(), ["/one", "/feed"]);
    // Its validators were kept too.
    let refreshed = feeds.refresh(&id).await.unwrap();
    assert!(matches!(refreshed.outcome, Refresh::Answered(News { new: 0, unchanged: 2, .. })));
    assert_eq!(server.hits()[2].header("if-none-match"), "\"x\"");
}

#[tokio::test]
async fn a_page_leads_to_its_main_feed_and_to_usual_addresses() {
    let server = Server::start(play).await;
    let feeds = feeds(Config::new(Data::Memory)).await;
    for (page, expected) in [("/posts", "/feed"), ("/linked", "/other"), ("/none", "/feed")] {
        let found = feeds.discover(feed_at(server.url(page))).await.unwrap();
        assert_eq!(found.url(), server.url(expected), "{page}");
        assert_eq!(found.page(), Some(server.url(page).as_str()));
    }
    let empty = Server::start(|hit| match hit.path.as_str() {
        "/" => answer(200, &[("content-type", "text/html")], "<html><p>Hello"),
        _ => answer(404, &[], ""),
    })
    .await;
    let none = feeds.discover(feed_at(empty.url("/"))).await.unwrap_err().to_string();
    assert!(none.contains("names no feed"), "{none}");
    assert_eq!(empty.paths().len(), 7);
}

/// It once was a second feed with the same items.
#[tokio::test]
async fn an_address_that_moved_to_a_known_feed_is_that_feed() {
    let server = Server::start(play).await;
    let feeds = feeds(Config::new(Data::Memory)).await;
    for path in ["/feed", "/old", "/one"] {
        let found = feeds.discover(feed_at(server.url(path))).await.unwrap();
        feeds.add_found(found).await.unwrap();
    }
    assert_eq!(feeds.statuses().len(), 1);
}

#[tokio::test]
async fn what_is_no_feed_is_not_added_and_says_what_it_is() {
    let server = Server::start(play).await;
    let feeds = feeds(Config::new(Data::Memory)).await;
    let refused =
        async |path: &str| feeds.discover(feed_at(server.url(path))).await.unwrap_err().to_string();
    let two = refused("/two").await;
    assert!(two.contains("names 2 feeds"), "{two}");
    assert!(two.contains(&server.url("/feed")) && two.contains(&server.url("/other")), "{two}");
    assert!(refused("/gone").await.contains("404"));
    let mut world = World::over(feeds.clone(), Era::Legacy).await;
    let asked = server.hits().len();
    for path in ["/etc/passwd", "file:///etc/passwd", "feed.xml", "ftp://example.com/"] {
        assert!(FeedAddress::parse(path, Asker::Client).is_err(), "{path}");
        let refused = world.refusal("add_feed", json!({ "url": path })).await;
        assert!(refused.contains("it begins with `https://` or `http://`"), "{refused}");
        assert!(feeds.fetch_page(path, Form::Raw).await.is_err(), "{path}");
    }
    // What the operator did not allow.
    let guarded = Feeds::open(Config::new(Data::Memory)).await.unwrap();
    let private = guarded.discover(feed_at(server.url("/feed"))).await.unwrap_err();
    assert!(private.to_string().contains("private"), "{private}");
    let private = guarded.fetch_page(&server.url("/one"), Form::Raw).await.unwrap_err();
    assert!(private.to_string().contains("private"), "{private}");
    assert_eq!(server.hits().len(), asked);
}

#[tokio::test]
async fn a_refresh_counts_what_is_new_changed_and_taken_back() {
    let times = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |_| {
        let item = |name: &str, day: u8, text: &str| {
            format!(
                "<item><guid>{name}</guid><title>{name}</title><description>{text}</description>\
                 <pubDate>{day:02} Jan 2024 00:00:00 GMT</pubDate></item>"
            )
        };
        let items = match times.fetch_add(1, Ordering::Relaxed) {
            0 => item("c", 3, "x") + &item("b", 2, "x") + &item("a", 1, "x"),
            1 => item("d", 4, "x") + &item("b", 2, "y") + &item("a", 1, "x"),
            _ => return answer(500, &[], ""),
        };
        answer(200, &[], format!("<rss><channel><title>T</title>{items}</channel></rss>"))
    })
    .await;
    let feeds = feeds(one(server.url("/"))).await;
    let id = only_id(&feeds);
    let Refresh::Answered(first) = feeds.refresh(&id).await.unwrap().outcome else { panic!() };
    assert_eq!((first.new, first.changed, first.withdrawn, first.unchanged), (3, 0, 0, 0));
    let refreshed = feeds.refresh(&id).await.unwrap();
    let Refresh::Answered(news) = &refreshed.outcome else { panic!("{refreshed:?}") };
    assert_eq!((news.new, news.changed, news.withdrawn, news.unchanged), (1, 1, 1, 1));
    let named: Vec<_> =
        news.headlines.iter().map(|it| (it.title.as_deref().unwrap(), it.is_new)).collect();
    assert_eq!(named, [("d", true), ("b", false)]);
    let failed = feeds.refresh(&id).await.unwrap();
    assert_eq!(failed.outcome, Refresh::Failed("the server answered 500".to_owned()));
    assert!(failed.next.is_some());
    assert_eq!(server.hits().len(), 3);
}

#[tokio::test]
async fn a_server_that_wants_to_be_left_alone_is_not_asked_again() {
    let server = Server::start(|_| answer(429, &[("retry-after", "120")], "")).await;
    let feeds = feeds(one(server.url("/feed"))).await;
    let id = only_id(&feeds);
    let first = feeds.refresh(&id).await.unwrap();
    assert!(matches!(first.outcome, Refresh::Failed(_)), "{first:?}");
    for _ in 0..2 {
        let again = feeds.refresh(&id).await.unwrap();
        let Refresh::Postponed(until) = again.outcome else { panic!("{again:?}") };
        assert!(until.unix() >= feeds.0.clock.time().to_second().unix() + 100);
    }
    assert_eq!(server.hits().len(), 1);
}

#[tokio::test]
async fn a_host_that_wants_to_be_left_alone_is_after_a_restart() {
    let server = Server::start(|_| answer(429, &[("retry-after", "120")], "")).await;
    let directory = tempfile::tempdir().unwrap();
    let mut config = one(server.url("/feed"));
    config.data = Data::Directory(directory.path().to_owned());
    let before = feeds(config.clone()).await;
    before.refresh(&only_id(&before)).await.unwrap();
    drop(before);
    let after = feeds(config).await;
    let refused = after.discover(feed_at(server.url("/other"))).await.unwrap_err();
    assert!(refused.to_string().contains("refuses requests"), "{refused}");
    assert_eq!(server.paths(), ["/feed"]);
}

#[tokio::test]
async fn a_refresh_joins_an_asking_that_is_under_way() {
    let (arrived, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (came, held) = (arrived.clone(), release.clone());
    let server = Server::start(move |_| {
        came.notify_one();
        let held = held.clone();
        let body = futures_util::stream::once(async move {
            held.notified().await;
            Ok::<_, std::io::Error>(rss(&["b", "a"]))
        });
        answer(200, &[], Body::from_stream(body))
    })
    .await;
    let feeds = feeds(one(server.url("/feed"))).await;
    let id = only_id(&feeds);
    // The feed is due, so that the rounds ask it by themselves.
    let world = World::over(feeds.clone(), Era::Legacy).await;
    arrived.notified().await;
    let mut one = Box::pin(feeds.refresh(&id));
    let mut other = Box::pin(feeds.refresh_all());
    assert!(futures_util::poll!(&mut one).is_pending());
    assert!(futures_util::poll!(&mut other).is_pending());
    release.notify_one();
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    assert!(matches!(one.outcome, Refresh::Answered(News { new: 2, .. })), "{one:?}");
    assert_eq!(other, [one]);
    assert_eq!(server.hits().len(), 1);
    drop(world);
}

#[tokio::test]
async fn a_pause_is_there_after_a_restart_and_the_feed_is_served() {
    let server = Server::start(play).await;
    let directory = tempfile::tempdir().unwrap();
    let config = || {
        let mut config = Config::new(Data::Directory(directory.path().to_owned()));
        config.feeds = vec![feed_at(server.url("/feed"))];
        config
    };
    let before = feeds(config()).await;
    let id = only_id(&before);
    before.refresh(&id).await.unwrap();
    assert!(before.pause(&id).await.unwrap());
    drop(before);
    let after = feeds(config()).await;
    let mut world = World::over(after.clone(), Era::Legacy).await;
    let items = world.read(&format!("feeds://feed/{id}/items")).await;
    assert_eq!(items.as_array().unwrap().len(), 2);
    assert_eq!(world.read(&format!("feeds://feed/{id}/meta")).await["paused"], true);
    assert_eq!(after.refresh(&id).await.unwrap().outcome, Refresh::Paused);
    assert_eq!(server.hits().len(), 1);
    assert!(after.resume(&id).await.unwrap());
    let refreshed = after.refresh(&id).await.unwrap();
    assert!(matches!(refreshed.outcome, Refresh::Answered(_)), "{refreshed:?}");
    // By itself and because it was wanted, or both at once.
    assert!((2..=3).contains(&server.hits().len()));
}

#[tokio::test]
async fn a_list_of_the_web_is_taken_in() {
    let server = Server::start(|hit| match hit.path.as_str() {
        "/list" => answer(
            200,
            &[],
            "<opml><body>\n<outline text='F'>\n\
            <outline xmlUrl='https://a.org/1' text='One'/></outline>\n\
            <outline xmlUrl='/etc/passwd'/>\n<outline xmlUrl='https://a.org/2'/></body></opml>",
        ),
        _ => answer(404, &[], ""),
    })
    .await;
    let feeds = feeds(Config::new(Data::Memory)).await;
    let bytes = feeds.fetch_list(&WebAddress::parse(&server.url("/list")).unwrap()).await.unwrap();
    let imported = feeds.import(&bytes, Asker::Client).await.unwrap();
    assert_eq!((imported.added.len(), imported.known.len()), (2, 0));
    let problem = "line 4: `/etc/passwd` is not the URL of a feed on the web";
    assert_eq!(imported.problems.iter().map(ToString::to_string).collect::<Vec<_>>(), [problem]);
    let row = feeds.0.board().get(&imported.added[0]).unwrap().clone();
    assert_eq!((row.category.as_deref(), row.shown_title()), (Some("F"), "One"));
    let again = feeds.import(&bytes, Asker::Client).await.unwrap();
    assert_eq!((again.added.len(), again.known), (0, imported.added));
    assert!(feeds.import(b"<html/>", Asker::Client).await.is_err());
    let gone = WebAddress::parse(&server.url("/gone")).unwrap();
    assert!(feeds.fetch_list(&gone).await.is_err());
}

#[tokio::test]
async fn a_feed_is_added_refreshed_paused_and_removed_by_tools() {
    let server = Server::start(play).await;
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    let added = world.call("add_feed", json!({ "url": server.url("/one") })).await;
    assert_eq!((&added["isNew"], &added["itemCount"]), (&json!(true), &json!(2)));
    assert_eq!(added["foundOn"], server.url("/one"));
    let id = added["id"].as_str().unwrap().to_owned();
    let items = world.read(&format!("feeds://feed/{id}/items")).await;
    assert_eq!(items.as_array().unwrap().len(), 2);
    let url = json!({ "url": server.url("/feed"), "title": "Mine", "category": "A/B" });
    let again = world.call("add_feed", url).await;
    assert_eq!((&again["isNew"], &again["title"]), (&json!(false), &json!("Mine")));
    // What is set stays if nothing is said about it.
    world.call("add_feed", json!({ "url": server.url("/feed") })).await;
    let row = world.feeds.0.board().get(&id).unwrap().clone();
    assert_eq!((row.title.as_deref(), row.category.as_deref()), (Some("Mine"), Some("A/B")));
    let refreshed = world.call("refresh_feed", json!({ "ID": id })).await;
    assert_eq!(refreshed["feeds"][0]["outcome"], "answered");
    assert_eq!(refreshed["feeds"][0]["unchanged"], 2);
    assert_eq!((&refreshed["total"], &refreshed["new"]), (&json!(1), &json!(0)));
    let paused = world.call("pause_feed", json!({ "ID": id })).await;
    assert_eq!((&paused["paused"], &paused["state"]), (&json!(true), &json!("paused")));
    let refreshed = world.call("refresh_feed", json!({})).await;
    assert_eq!(
        (&refreshed["feeds"][0]["outcome"], &refreshed["notAsked"]),
        (&json!("paused"), &json!(1))
    );
    let resumed = world.call("pause_feed", json!({ "ID": id, "resume": true })).await;
    assert_eq!((&resumed["paused"], &resumed["changed"]), (&json!(false), &json!(true)));
    let removed = world.call("remove_feed", json!({ "ID": id })).await;
    assert_eq!((&removed["title"], &removed["itemCount"]), (&json!("Mine"), &json!(2)));
    for name in ["remove_feed", "pause_feed", "refresh_feed"] {
        let text = world.refusal(name, json!({ "ID": id })).await;
        assert!(text.contains("there is no such feed"), "{text}");
    }
    let text = world.refusal("add_feed", json!({ "url": server.url("/two") })).await;
    assert!(text.contains(&server.url("/feed")) && text.contains(&server.url("/other")), "{text}");
    for url in ["/etc/passwd", "file:///etc/passwd"] {
        let text = world.refusal("add_feed", json!({ "url": url })).await;
        assert!(text.contains("it begins with `https://`"), "{text}");
    }
}

/// The title of a feed is as foreign as those of its items.
#[tokio::test]
async fn every_title_in_an_answer_stands_between_lines_that_say_whose_it_is() {
    let feed = "<rss><channel><title>OBEY *me*</title>\
        <item><title>OBEY</title><guid>1</guid></item></channel></rss>";
    let server = Server::start(move |_| answer(200, &[], feed)).await;
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    let id = world.call("add_feed", json!({ "url": server.url("/other") })).await["id"].clone();
    for (name, arguments) in [
        ("add_feed", json!({ "url": server.url("/feed"), "folder": "Tech" })),
        ("all_syndication_feeds", json!({})),
        ("feed_health", json!({})),
        ("get_syndication_feed_items", json!({ "ID": id, "format": "markdown" })),
        ("merge_feeds", json!({})),
        ("refresh_feed", json!({ "ID": id })),
        ("pause_feed", json!({ "ID": id })),
        ("remove_feed", json!({ "ID": id })),
    ] {
        let result = world.result(name, arguments).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        let (before, rest) = text.split_once("--- written by others").expect(name);
        let (_, after) = rest.split_once("--- end of content written by others ---").expect(name);
        assert!(!before.contains("OBEY") && !after.contains("OBEY"), "{text}");
        if name == "get_syndication_feed_items" {
            assert!(text.contains(r"OBEY \*me\*"), "{text}");
            assert_eq!(result["structuredContent"]["feedTitle"], r"OBEY \*me\*");
        }
    }
}

#[tokio::test]
async fn a_folder_that_is_taken_for_a_category_is_named() {
    let server = Server::start(play).await;
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    world.call("add_feed", json!({ "url": server.url("/feed"), "category": "Tech" })).await;
    let merged = world.result("merge_feeds", json!({ "category": "Tech" })).await;
    let text = merged["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("`Tech`, which is a folder of feeds: use `folder`"), "{text}");
    assert_eq!(world.call("merge_feeds", json!({ "folder": "Tech" })).await["total"], 2);
}

#[tokio::test]
async fn the_page_of_a_feed_that_is_there_changes_nothing_that_is_set_for_it() {
    let server = Server::start(|hit| match hit.path.as_str() {
        "/feed" if hit.header("authorization") != "Bearer x" => answer(401, &[], ""),
        _ => play(hit),
    })
    .await;
    let mut feed = feed_at(server.url("/feed"));
    feed.title = Some("Mine".to_owned());
    feed.interval = Some(Duration::from_mins(30));
    feed.headers = vec![("Authorization".to_owned(), "Bearer x".to_owned())];
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    let id = world.feeds.add(feed.clone()).await.unwrap();
    let arguments = json!({ "url": server.url("/one"), "category": "A/B" });
    let added = world.call("add_feed", arguments).await;
    assert_eq!((&added["isNew"], &added["id"]), (&json!(false), &json!(id)));
    world.feeds.import(world.feeds.export().as_bytes(), Asker::Client).await.unwrap();
    assert_eq!(only_id(&world.feeds), id);
    let row = world.feeds.0.board().get(&id).unwrap().clone();
    assert_eq!((row.title.as_deref(), row.category.as_deref()), (Some("Mine"), Some("A/B")));
    assert_eq!(row.settings, feed.registration().settings);
}

#[tokio::test]
async fn a_name_that_is_given_to_a_feed_has_no_control_characters() {
    let server = Server::start(play).await;
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    let arguments = json!({
        "url": server.url("/feed"), "title": "My\u{0}\u{7}\nnews", "category": "A\u{1b}/B",
    });
    let added = world.call("add_feed", arguments).await;
    assert_eq!(added["title"], "My news");
    let row = world.feeds.0.board().get(&only_id(&world.feeds)).unwrap().clone();
    assert_eq!(row.category.as_deref(), Some("A /B"));
    let arguments = json!({ "url": server.url("/feed"), "title": "\u{7}" });
    let text = world.refusal("add_feed", arguments).await;
    assert!(text.contains("`title`"), "{text}");
}

#[tokio::test]
async fn a_link_is_whole_when_nothing_of_it_is_left() {
    let server = Server::start(play).await;
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    let mut offset = 0;
    let mut parts = Vec::new();
    loop {
        let arguments = json!({ "url": server.url("/long"), "maxTokens": 1000, "offset": offset });
        let page = world.call("fetch_link", arguments).await;
        assert_eq!(page["isWhole"], page.get("leftOut").is_none(), "{page}");
        offset += page["text"].as_str().unwrap().len();
        parts.push(page["isWhole"].clone());
        if page["isWhole"] == true || parts.len() > 3 {
            break;
        }
    }
    assert_eq!(parts, [false, true]);
}

#[tokio::test]
async fn a_link_is_fetched_as_markdown_and_says_where_it_led() {
    let server = Server::start(play).await;
    let mut world = World::over(feeds(Config::new(Data::Memory)).await, Era::Legacy).await;
    let page = world.call("fetch_link", json!({ "url": server.url("/moved") })).await;
    assert_eq!(page["url"], server.url("/one"));
    assert_eq!(page["redirectedFrom"], server.url("/moved"));
    assert_eq!((&page["title"], &page["text"]), (&json!("Page"), &json!("Hello **you**.")));
    assert_eq!((&page["format"], &page["length"]), (&json!("markdown"), &json!(14)));
    let arguments = json!({ "url": server.url("/one"), "offset": 6 });
    let rest = world.call("fetch_link", arguments).await;
    assert_eq!(rest["text"], "**you**.");
    let arguments = json!({ "url": server.url("/feed"), "format": "raw" });
    let raw = world.call("fetch_link", arguments).await;
    assert_eq!(raw["text"], rss(&["b", "a"]));
    let text = world.refusal("fetch_link", json!({ "url": server.url("/pdf") })).await;
    assert!(text.contains("application/pdf"), "{text}");
    let text = world.refusal("fetch_link", json!({ "url": "/etc/passwd" })).await;
    assert!(text.contains("it begins with `https://`"), "{text}");
    let mut guarded = World::with(Config::new(Data::Memory), Era::Legacy).await;
    let asked = server.hits().len();
    for name in ["fetch_link", "add_feed"] {
        let text = guarded.refusal(name, json!({ "url": server.url("/one") })).await;
        assert!(text.contains("private"), "{text}");
    }
    assert_eq!(server.hits().len(), asked);
}
