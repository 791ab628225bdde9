//! The rounds by themselves: feeds that lie in files are asked when they are due.

use std::path::Path;

use super::*;
use crate::id;

/// A hub that serves the feed in a file, asked every ten minutes.
pub(super) async fn world(file: &Path) -> (World, String) {
    let url = file.to_str().unwrap();
    let mut feed = feed_at(url);
    feed.interval = Some(Duration::from_mins(10));
    let mut config = Config::new(Data::Memory);
    config.feeds = vec![feed];
    (World::with(config, Era::Legacy).await, id::short(url))
}

pub(super) fn rss(titles: &[&str]) -> String {
    let item = |title: &&str| format!("<item><guid>{title}</guid><title>{title}</title></item>");
    let items: Vec<_> = titles.iter().map(item).collect();
    let items = items.concat();
    format!("<rss version='2.0'><channel><title>File</title>{items}</channel></rss>")
}

/// Waits for a notice, however far away, and for all that come with it.
async fn next_notices(world: &mut World) -> Vec<String> {
    for _ in 0..60 {
        let notices = world.notices().await;
        if !notices.is_empty() {
            return notices;
        }
    }
    panic!("an hour without news");
}

#[tokio::test(start_paused = true)]
async fn a_feed_is_asked_when_it_is_due_and_its_news_are_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    std::fs::write(&file, rss(&["a"])).unwrap();
    let (mut world, id) = world(&file).await;
    let items = format!("feeds://feed/{id}/items");
    world.listen(std::slice::from_ref(&items)).await;
    assert_eq!(world.read(&items).await[0]["title"], "a");
    std::fs::write(&file, rss(&["b", "a"])).unwrap();
    assert_eq!(next_notices(&mut world).await, std::slice::from_ref(&items));
    assert_eq!(world.read(&items).await[0]["title"], "b");
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_is_not_there_is_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    let (mut world, id) = world(&file).await;
    let items = format!("feeds://feed/{id}/items");
    world.listen(std::slice::from_ref(&items)).await;
    let answer = world.read(&items).await;
    let details = answer["error"]["data"]["details"].as_str().unwrap();
    let start = "Feed fetch failed: could not read the file: ";
    assert!(details.starts_with(start) && details.contains("; it is tried again at "), "{details}");
    std::fs::write(&file, rss(&["a"])).unwrap();
    assert_eq!(next_notices(&mut world).await, [items.clone(), "list".to_owned()]);
    assert_eq!(world.read(&items).await[0]["title"], "a");
}

#[tokio::test(start_paused = true)]
async fn only_the_operator_names_files() {
    let file = "/nowhere/feed.xml";
    let (world, _) = world(Path::new(file)).await;
    assert_eq!(world.feeds.statuses()[0].asked_url, file);
    let list = |url: &str| format!("<opml><outline xmlUrl='{url}'/></opml>");
    for url in ["/etc/passwd", "file:///etc/passwd", "gopher://a.org/", ""] {
        assert!(FeedAddress::parse(url, Asker::Client).is_err(), "{url}");
        let imported = world.feeds.import(list(url).as_bytes(), Asker::Client).await.unwrap();
        assert_eq!((imported.added.len(), imported.known.len()), (0, 0), "{url}");
    }
}
