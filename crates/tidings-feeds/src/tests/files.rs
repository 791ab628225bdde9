//! Feeds that are files, refreshed and paused: every notice counted, since time stands still; and
//! saved, where the notice is awaited.

use std::path::Path;

use super::rounds::{rss, world};
use super::*;
use crate::refresh::{News, Refresh};

/// Watches the items and the metadata of a file's feed, and the list of feeds.
async fn watched(file: &Path) -> (World, String) {
    let (mut world, id) = world(file).await;
    let part = |part: &str| format!("feeds://feed/{id}{part}");
    world.listen(&[part("/items"), part("/meta"), "feeds://all".to_owned()]).await;
    (world, id)
}

fn counts(refresh: &Refresh) -> [usize; 4] {
    let Refresh::Answered(News { new, changed, withdrawn, unchanged, .. }) = refresh else {
        panic!("{refresh:?}");
    };
    [*new, *changed, *withdrawn, *unchanged]
}

#[tokio::test(start_paused = true)]
async fn a_refresh_tells_what_is_really_news_and_nothing_else_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    std::fs::write(&file, rss(&["b", "a"])).unwrap();
    let (mut world, id) = watched(&file).await;
    let refreshed = world.feeds.refresh(&id).await.unwrap();
    assert_eq!(counts(&refreshed.outcome), [0, 0, 0, 2]);
    assert_eq!(world.notices().await, Vec::<String>::new());
    let text = rss(&["c", "b", "a"]).replace("<title>b<", "<title>B<");
    std::fs::write(&file, text).unwrap();
    let refreshed = world.feeds.refresh(&id).await.unwrap();
    // The system may have told of the file before it was asked for.
    let kept = world.read(&format!("feeds://feed/{id}/items")).await;
    assert_eq!(kept.as_array().unwrap().len(), 3);
    assert!([[1, 1, 0, 1], [0, 0, 0, 3]].contains(&counts(&refreshed.outcome)));
    let items = format!("feeds://feed/{id}/items");
    assert_eq!(world.notices().await, ["feeds://all".to_owned(), items]);
    let again = world.feeds.refresh_all().await.unwrap();
    assert_eq!((again.len(), counts(&again[0].outcome)), (1, [0, 0, 0, 3]));
    assert_eq!(world.notices().await, Vec::<String>::new());
    let missing = world.feeds.refresh("nope").await.unwrap_err().to_string();
    assert_eq!(missing, "there is no feed `nope`");
}

#[tokio::test(start_paused = true)]
async fn a_pause_is_told_once_to_the_metadata_and_ends_the_asking() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    std::fs::write(&file, rss(&["a"])).unwrap();
    let (mut world, id) = watched(&file).await;
    let (items, meta) = (format!("feeds://feed/{id}/items"), format!("feeds://feed/{id}/meta"));
    assert!(world.feeds.pause(&id).await.unwrap());
    assert!(!world.feeds.pause(&id).await.unwrap());
    assert_eq!(world.notices().await, std::slice::from_ref(&meta));
    assert_eq!(world.read(&meta).await["paused"], true);
    std::fs::write(&file, rss(&["b", "a"])).unwrap();
    // Longer than the feed's interval.
    for _ in 0..30 {
        assert_eq!(world.notices().await, Vec::<String>::new());
    }
    assert_eq!(world.read(&items).await.as_array().unwrap().len(), 1);
    assert_eq!(world.feeds.refresh(&id).await.unwrap().outcome, Refresh::Paused);
    assert!(world.feeds.resume(&id).await.unwrap());
    assert!(!world.feeds.resume(&id).await.unwrap());
    let told = ["feeds://all".to_owned(), items.clone(), meta.clone()];
    assert_eq!(world.notices().await, told);
    assert!(world.read(&meta).await.get("paused").is_none());
    assert_eq!(world.read(&items).await.as_array().unwrap().len(), 2);
    assert!(world.feeds.pause("nope").await.is_err());
}

/// The next notice about a resource.
async fn told(world: &mut World, uri: &str) {
    loop {
        let message = world.hear().await.expect("a notice");
        if message["params"]["uri"] == uri {
            return;
        }
    }
}

/// The titles of all items, in order of the alphabet: what comes within a second has no other.
async fn titles(world: &mut World, items: &str) -> Vec<String> {
    let items = world.read(items).await;
    let title = |item: &Value| item["title"].as_str().unwrap().to_owned();
    let mut titles: Vec<_> = items.as_array().unwrap().iter().map(title).collect();
    titles.sort();
    titles
}

#[tokio::test]
async fn a_file_that_is_saved_is_told_of_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("not/yet/feed.xml");
    // Asked every ten minutes, so that only the system can be the one who tells.
    let (mut world, id) = world(&file).await;
    let items = format!("feeds://feed/{id}/items");
    let subscribed = world.ask("resources/subscribe", json!({ "uri": items })).await;
    assert!(subscribed.get("result").is_some());
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, rss(&["a"])).unwrap();
    told(&mut world, &items).await;
    assert_eq!(titles(&mut world, &items).await, ["a"]);
    // Written in place.
    std::fs::write(&file, rss(&["b", "a"])).unwrap();
    told(&mut world, &items).await;
    assert_eq!(titles(&mut world, &items).await, ["a", "b"]);
    // Put into its place whole.
    let other = file.with_extension("new");
    std::fs::write(&other, rss(&["c", "b", "a"])).unwrap();
    std::fs::rename(&other, &file).unwrap();
    told(&mut world, &items).await;
    assert_eq!(titles(&mut world, &items).await, ["a", "b", "c"]);
    // Gone with its directory, and back.
    std::fs::remove_dir_all(directory.path().join("not")).unwrap();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, rss(&["d", "c", "b", "a"])).unwrap();
    told(&mut world, &items).await;
    assert_eq!(titles(&mut world, &items).await, ["a", "b", "c", "d"]);
}
