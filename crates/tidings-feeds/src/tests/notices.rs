//! Notices, counted exactly.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_document_that_was_cut_off_is_told_and_flagged_until_it_is_whole() {
    for era in [Era::Legacy, Era::Modern] {
        let mut world = World::new(era).await;
        let (meta, items) = (format!("feeds://feed/{ID}/meta"), format!("feeds://feed/{ID}/items"));
        let mut document = document("News", &[("a", 1)]);
        world.apply(ID, &document, 2).await;
        world.listen(&[meta.clone(), items]).await;
        document.truncated = true;
        world.apply(ID, &document, 3).await;
        assert_eq!(world.notices().await, std::slice::from_ref(&meta));
        assert_eq!(world.read(&meta).await["feed"]["truncated"], true);
        assert!(world.feeds.status(ID).unwrap().truncated);
        world.apply(ID, &document, 4).await;
        assert_eq!(world.notices().await, Vec::<String>::new());
        document.truncated = false;
        world.apply(ID, &document, 5).await;
        assert_eq!(world.notices().await, std::slice::from_ref(&meta));
        assert!(world.read(&meta).await["feed"].get("truncated").is_none());
    }
}

/// Every resource of the first feed, some filtered views of it, and the list of feeds.
fn watched() -> Vec<String> {
    let mut uris = vec!["feeds://all".to_owned()];
    for part in ["", "/items", "/items?limit=1", "/items?search=news", "/items?until=2024-01-02"] {
        uris.push(format!("feeds://feed/{ID}{part}"));
    }
    uris.push(format!("feeds://feed/{ID}/items?category=category+a"));
    uris.push(format!("feeds://feed/{ID}/meta"));
    uris
}

/// The watched resources of the first feed with these endings, and other names.
fn expected(endings: &[&str], others: &[&str]) -> Vec<String> {
    let mut names: Vec<_> = endings.iter().map(|it| format!("feeds://feed/{ID}{it}")).collect();
    names.extend(others.iter().map(|name| (*name).to_owned()));
    names.sort();
    names
}

async fn both(test: impl AsyncFn(&mut World)) {
    for era in [Era::Legacy, Era::Modern] {
        let mut world = World::new(era).await;
        world.apply(ID, &document("News", &[("b", 2), ("a", 1)]), 3).await;
        world.apply(OTHER_ID, &document("Other", &[("x", 1)]), 3).await;
        world.listen(&watched()).await;
        test(&mut world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_new_item_is_told_to_the_views_it_is_in() {
    both(async |world| {
        world.apply(ID, &document("News", &[("c", 3), ("b", 2), ("a", 1)]), 4).await;
        let told = expected(&["", "/items", "/items?limit=1"], &["feeds://all"]);
        assert_eq!(world.notices().await, told);
        assert_eq!(world.read(&format!("feeds://feed/{ID}/items?limit=1")).await[0]["title"], "c");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_same_document_again_is_told_to_nobody() {
    both(async |world| {
        let again = document("News", &[("b", 2), ("a", 1)]);
        assert!(world.apply(ID, &again, 4).await.is_empty());
        assert_eq!(world.notices().await, Vec::<String>::new());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn age_alone_is_told_to_nobody_and_what_is_too_old_goes_with_news() {
    for era in [Era::Legacy, Era::Modern] {
        let mut config = Config::new(Data::Memory);
        config.feeds = vec![feed_at(URL)];
        config.role = Role::Server(Fetching::Off);
        config.retention.age = Some(Duration::from_hours(72));
        let mut world = World::with(config, era).await;
        let mut names = vec![("b", 2), ("a", 1)];
        world.apply(ID, &document("News", &names), 3).await;
        let items = format!("feeds://feed/{ID}/items");
        world.listen(std::slice::from_ref(&items)).await;
        let before = world.read(&items).await;
        world.apply(ID, &document("News", &names), 9).await;
        let unmodified = |store: &crate::store::Store, id: &str| store.unmodified(id, day(9));
        record(&world.feeds, ID, unmodified).await;
        assert_eq!(world.notices().await, Vec::<String>::new());
        assert_eq!(world.read(&items).await, before);
        names.insert(0, ("c", 9));
        world.apply(ID, &document("News", &names), 9).await;
        assert_eq!(world.notices().await, [items.as_str()]);
        let now = world.read(&items).await;
        assert_eq!((now.as_array().unwrap().len(), &now[0]["title"]), (1, &json!("c")));
    }
}

#[tokio::test(start_paused = true)]
async fn an_edited_item_is_told_to_the_views_it_is_in() {
    both(async |world| {
        let mut edited = document("News", &[("b", 2), ("a", 1)]);
        edited.items[1].summary = Some(text("Something else."));
        world.apply(ID, &edited, 4).await;
        let endings = ["", "/items", "/items?until=2024-01-02", "/items?category=category+a"];
        assert_eq!(world.notices().await, expected(&endings, &[]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_withdrawn_item_is_told_to_the_views_it_was_in() {
    both(async |world| {
        world.apply(ID, &document("News", &[("a", 1)]), 4).await;
        let endings = ["", "/items", "/items?limit=1", "/items?until=2024-01-02"];
        let told = expected(&endings, &["feeds://all"]);
        assert_eq!(world.notices().await, told);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn another_title_is_told_once_to_the_list_too() {
    both(async |world| {
        world.apply(ID, &document("Olds", &[("b", 2), ("a", 1)]), 4).await;
        assert_eq!(world.notices().await, expected(&["", "/meta"], &["feeds://all", "list"]));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn that_a_feed_fails_and_returns_is_told_once_each() {
    both(async |world| {
        world.fail(ID, "no answer", 4).await;
        world.fail(ID, "no answer", 5).await;
        assert_eq!(world.notices().await, expected(&["/meta"], &[]));
        let meta = world.read(&format!("feeds://feed/{ID}/meta")).await;
        assert_eq!(meta["lastError"], "no answer");
        assert_eq!(meta["lastSuccess"], "2024-01-03T00:00:00Z");
        world.apply(ID, &document("News", &[("b", 2), ("a", 1)]), 6).await;
        assert_eq!(world.notices().await, expected(&["/meta"], &[]));
        let meta = world.read(&format!("feeds://feed/{ID}/meta")).await;
        assert!(meta.get("lastError").is_none() && meta.get("lastSuccess").is_none());
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn news_of_another_feed_are_told_to_nobody_but_the_list_of_feeds() {
    both(async |world| {
        world.apply(OTHER_ID, &document("Other", &[("y", 2), ("x", 1)]), 4).await;
        assert_eq!(world.notices().await, ["feeds://all"]);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_comes_or_goes_is_told_to_the_list() {
    both(async |world| {
        let id = world.feeds.add(feed_at("https://example.org/")).await.unwrap();
        assert_eq!(world.notices().await, ["feeds://all", "list"]);
        assert!(world.feeds.remove(&id).await.unwrap());
        assert_eq!(world.notices().await, ["feeds://all", "list"]);
        assert!(world.feeds.remove(ID).await.unwrap());
        let mut told = watched();
        told.push("list".to_owned());
        told.sort();
        assert_eq!(world.notices().await, told);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_of_a_feed_is_told() {
    for era in [Era::Legacy, Era::Modern] {
        let mut world = World::new(era).await;
        world.listen(&watched()).await;
        world.apply(ID, &document("News", &[]), 1).await;
        let mut told = watched();
        told.push("list".to_owned());
        told.sort();
        assert_eq!(world.notices().await, told);
    }
}

#[tokio::test(start_paused = true)]
async fn a_folder_is_told_of_news_of_its_feeds_and_of_no_others() {
    for era in [Era::Legacy, Era::Modern] {
        let mut world = World::new(era).await;
        let mut feed = feed_at(URL);
        feed.category = Some("Tech".to_owned());
        world.feeds.add(feed).await.unwrap();
        let folder = "feeds://folder/Tech/items".to_owned();
        let unknown = world.read(&folder).await;
        assert_eq!(unknown["error"]["code"], -32603, "never fetched is not empty");
        for id in [ID, OTHER_ID] {
            world.apply(id, &document("News", &[("a", 1)]), 2).await;
        }
        world.listen(std::slice::from_ref(&folder)).await;
        world.notices().await;
        world.apply(OTHER_ID, &document("News", &[("b", 2), ("a", 1)]), 3).await;
        assert!(!world.notices().await.contains(&folder));
        world.apply(ID, &document("News", &[("b", 2), ("a", 1)]), 4).await;
        assert!(world.notices().await.contains(&folder));
        assert_eq!(world.read(&folder).await[0]["title"], "b");
    }
}
