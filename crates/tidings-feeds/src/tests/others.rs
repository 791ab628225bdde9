//! Two processes and one directory: what one writes, the clients of the other hear.

use std::path::Path;

use super::*;
use crate::fetch::Validators;
use crate::store::Hold;
use crate::{Condition, Earlier, FeedsError, Holder, Refresh, Refreshed, Status};

fn config(directory: &Path) -> Config {
    let mut config = Config::new(Data::Directory(directory.to_owned()));
    config.feeds = vec![feed_at(URL), feed_at(OTHER_URL)];
    config.role = Role::Server(Fetching::Off);
    config
}

async fn guest(directory: &Path) -> Feeds {
    let mut config = Config::new(Data::Directory(directory.to_owned()));
    config.role = Role::Guest(Fetching::Off);
    Feeds::open(config).await.unwrap()
}

/// A server whose client listens to the list, to all feeds and to one of them, and a guest.
async fn both(test: impl AsyncFn(&mut World, &Feeds)) {
    for era in [Era::Legacy, Era::Modern] {
        let directory = tempfile::tempdir().unwrap();
        let mut world = World::with(config(directory.path()), era).await;
        world.apply(ID, &document("News", &[("a", 1)]), 3).await;
        let guest = guest(directory.path()).await;
        let uris = ["", "/items", "/items?category=category+b", "/meta"];
        let mut uris: Vec<_> = uris.iter().map(|it| format!("feeds://feed/{ID}{it}")).collect();
        uris.push("feeds://all".to_owned());
        world.listen(&uris).await;
        test(&mut world, &guest).await;
        // Whatever was told, nothing is told twice.
        assert_eq!(world.notices().await, Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_another_process_adds_or_removes_is_told_once_and_can_be_read() {
    both(async |world, guest| {
        let id = guest.add(feed_at("https://example.org/")).await.unwrap();
        assert_eq!(world.notices().await, ["feeds://all", "list"]);
        let all = world.read("feeds://all").await;
        assert!(all.as_array().unwrap().iter().any(|feed| feed["id"] == id.as_str()));
        guest.add(feed_at("https://example.org/")).await.unwrap();
        assert_eq!(world.notices().await, Vec::<String>::new());
        assert!(guest.remove(&id).await.unwrap());
        assert_eq!(world.notices().await, ["feeds://all", "list"]);
    })
    .await;
}

/// Both have the same revisions: then only the feed as a whole can tell them apart.
#[tokio::test(start_paused = true)]
async fn a_feed_that_another_process_removes_and_adds_again_is_told() {
    both(async |world, guest| {
        let other = document("News", &[("c", 1)]);
        let again = guest.0.blocking(move |inner| {
            let row = inner.store.feed(ID)?.unwrap();
            inner.store.remove(ID)?;
            let registration = feed_at(URL).registration();
            inner.store.add(&registration, row.added)?;
            inner.store.apply(ID, &other, day(3))?;
            let again = inner.store.feed(ID)?.unwrap();
            Ok((row.revisions, again.revisions))
        });
        let (before, now) = again.await.unwrap();
        assert_eq!(before, now);
        let told = world.notices().await;
        assert!(told.contains(&format!("feeds://feed/{ID}/items")), "{told:?}");
        let items = world.read(&format!("feeds://feed/{ID}/items")).await;
        assert_eq!(items[0]["title"], "c");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn many_feeds_that_come_at_once_are_told_once() {
    both(async |world, guest| {
        let outline = |number| format!("<outline xmlUrl='https://example.org/{number}'/>");
        let list: String = (0..50).map(outline).collect();
        guest.import(format!("<opml>{list}</opml>").as_bytes(), Asker::Client).await.unwrap();
        assert_eq!(world.notices().await, ["feeds://all", "list"]);
        assert_eq!(world.read("feeds://all").await.as_array().unwrap().len(), 52);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn items_that_another_process_keeps_are_told_to_the_views_they_are_in() {
    both(async |world, guest| {
        let grown = document("News", &[("c", 3), ("a", 1)]);
        let keep = move |store: &Store, id: &str| store.apply(id, &grown, day(4));
        record(guest, ID, keep).await;
        let told = ["", "/items"].map(|ending| format!("feeds://feed/{ID}{ending}"));
        let mut told = told.to_vec();
        told.insert(0, "feeds://all".to_owned());
        assert_eq!(world.notices().await, told);
        let items = world.read(&format!("feeds://feed/{ID}/items")).await;
        assert_eq!(items[0]["title"], "c");
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_lets_nothing_go_that_its_host_would_keep() {
    let directory = tempfile::tempdir().unwrap();
    Feeds::open(config(directory.path())).await.unwrap();
    let mut config = Config::new(Data::Directory(directory.path().to_owned()));
    config.role = Role::Guest(Fetching::Off);
    config.retention = crate::Retention::new(1, Some(Duration::from_hours(1)));
    let guest = Feeds::open(config).await.unwrap();
    let grown = document("News", &[("b", 2), ("a", 1)]);
    let keep = move |store: &Store, id: &str| store.apply(id, &grown, day(9));
    record(&guest, ID, keep).await;
    assert_eq!(guest.0.board().get(ID).unwrap().item_count, 2);
}

/// Where only commands ever fetched, nothing went.
#[tokio::test(start_paused = true)]
async fn a_guest_lets_go_what_its_host_would() {
    let directory = tempfile::tempdir().unwrap();
    let mut host = config(directory.path());
    host.retention = crate::Retention::new(1, None);
    drop(Feeds::open(host).await.unwrap());
    let guest = guest(directory.path()).await;
    let grown = document("News", &[("b", 2), ("a", 1)]);
    let keep = move |store: &Store, id: &str| store.apply(id, &grown, day(9));
    record(&guest, ID, keep).await;
    assert_eq!(guest.0.board().get(ID).unwrap().item_count, 1);
}

#[tokio::test(start_paused = true)]
async fn what_others_write_that_nobody_can_read_is_silence() {
    both(async |_, guest| {
        let same = document("News", &[("a", 1)]);
        let keep = move |store: &Store, id: &str| {
            store.keep_validators(id, &Validators::default())?;
            store.apply(id, &same, day(4))
        };
        record(guest, ID, keep).await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_is_served_read_only_follows_whoever_writes() {
    let directory = tempfile::tempdir().unwrap();
    let writer = Feeds::open(config(directory.path())).await.unwrap();
    let mut config = Config::new(Data::Directory(directory.path().to_owned()));
    config.role = Role::Reader;
    let mut world = World::with(config, Era::Legacy).await;
    world.listen(&[]).await;
    writer.add(feed_at("https://example.org/")).await.unwrap();
    assert_eq!(world.notices().await, ["list"]);
}

#[tokio::test(start_paused = true)]
async fn a_second_server_is_refused_by_the_name_of_the_first() {
    let directory = tempfile::tempdir().unwrap();
    let first = Feeds::open(config(directory.path())).await.unwrap();
    let refused = Feeds::open(config(directory.path())).await.unwrap_err();
    let FeedsError::Store(StoreError::Held { holder, .. }) = refused else {
        panic!("{refused}");
    };
    assert_eq!(holder.pid, Some(std::process::id()));
    assert_eq!(Holder::of(directory.path()).unwrap(), Some(holder));
    drop(first);
    Feeds::open(config(directory.path())).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_guest_leaves_the_configured_feeds_as_they_are() {
    let directory = tempfile::tempdir().unwrap();
    drop(Feeds::open(config(directory.path())).await.unwrap());
    let guest = guest(directory.path()).await;
    assert_eq!(guest.statuses().len(), 2);
    assert_eq!(guest.holder().unwrap(), None);
}

const RSS: &str = "<rss version='2.0'><channel><title>File</title><item><guid>1</guid>\
    <title>one</title></item></channel></rss>";

/// Has all feeds asked; gives what is told.
async fn refreshed(feeds: &Feeds) -> Result<Vec<Refreshed>, FeedsError> {
    let ids: Vec<_> = feeds.statuses().into_iter().map(|status| status.id).collect();
    let (told, mut heard) = tokio::sync::mpsc::channel(16);
    feeds.refresh_each(&ids, QUIET, told).await?;
    let mut found = Vec::new();
    while let Some(refreshed) = heard.recv().await {
        found.push(refreshed);
    }
    Ok(found)
}

fn new_items(refreshed: &Refreshed) -> usize {
    match &refreshed.outcome {
        Refresh::Answered(news) => news.new,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_guest_fetches_itself_where_nobody_serves() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    std::fs::write(&file, RSS).unwrap();
    let mut config = Config::new(Data::Directory(directory.path().join("data")));
    config.role = Role::Guest(Fetching::On);
    let guest = Feeds::open(config).await.unwrap();
    guest.add(feed_at(file.to_str().unwrap())).await.unwrap();
    assert_eq!(guest.progress().borrow().done, 0);
    let first = refreshed(&guest).await.unwrap();
    assert_eq!((first.len(), new_items(&first[0])), (1, 1));
    let progress = *guest.progress().borrow();
    assert_eq!((progress.total, progress.done, progress.items), (1, 1, 1));
    assert_eq!(new_items(&refreshed(&guest).await.unwrap()[0]), 0);
    // Nobody has the directory for longer than it takes.
    assert_eq!(guest.holder().unwrap(), None);
}

#[tokio::test(start_paused = true)]
async fn a_feed_that_another_process_adds_is_fetched_and_one_that_it_pauses_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    std::fs::write(&file, RSS).unwrap();
    let data = directory.path().join("data");
    let mut world = World::with(Config::new(Data::Directory(data.clone())), Era::Legacy).await;
    world.listen(&[]).await;
    let guest = guest(&data).await;
    let mut feed = feed_at(file.to_str().unwrap());
    feed.title = Some("Mine".to_owned());
    let id = guest.add(feed).await.unwrap();
    assert_eq!(world.notices().await, ["list"]);
    let items = format!("feeds://feed/{id}/items");
    assert_eq!(world.read(&items).await[0]["title"], "one");
    assert!(guest.pause(&id).await.unwrap());
    assert_eq!(world.notices().await, Vec::<String>::new());
    let told = refreshed(&guest).await.unwrap();
    assert_eq!(told[0].outcome, Refresh::Paused);
}

/// It once was known only to who was asked, and to the next that was started.
#[tokio::test(start_paused = true)]
async fn a_host_that_asked_another_process_for_a_pause_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let data = Data::Directory(directory.path().to_owned());
    let mut config = Config::new(data);
    config.allow_private = true;
    let mut world = World::with(config, Era::Legacy).await;
    let guest = guest(directory.path()).await;
    let (store, now) = (&guest.0.store, guest.0.clock.time());
    store.keep_pause("127.0.0.1", Duration::from_mins(2), now).unwrap();
    assert_eq!(world.notices().await, Vec::<String>::new());
    let feed = feed_at("http://127.0.0.1:1/feed");
    let refused = world.feeds.discover(feed).await.unwrap_err();
    assert!(refused.to_string().contains("refuses requests"), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn a_guest_has_feeds_fetched_by_whoever_serves_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("feed.xml");
    std::fs::write(&file, RSS).unwrap();
    let data = directory.path().join("data");
    let mut feed = feed_at(file.to_str().unwrap());
    feed.interval = Some(Duration::from_hours(24));
    let mut config = Config::new(Data::Directory(data.clone()));
    config.feeds = vec![feed];
    let mut world = World::with(config, Era::Legacy).await;
    world.listen(&["feeds://all".to_owned()]).await;
    let guest = guest(&data).await;
    assert_eq!(guest.statuses()[0].items, 1);
    let grown = RSS.replace("<item>", "<item><guid>2</guid><title>two</title></item><item>");
    std::fs::write(&file, grown).unwrap();
    let told = refreshed(&guest).await.unwrap();
    // The file may have been seen before it was wished for; then there is nothing new any more.
    assert!(told.len() == 1 && new_items(&told[0]) <= 1, "{told:?}");
    let row = guest.0.store.feed(&told[0].id).unwrap().unwrap();
    assert_eq!(row.item_count, 2);
    assert_eq!(world.notices().await, ["feeds://all"]);
    // What was wished for is done, and nothing is left of the wish.
    assert_eq!(guest.0.store.wishes().unwrap(), []);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_fetches_nothing_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let _server = Feeds::open(config(directory.path())).await.unwrap();
    let guest = guest(directory.path()).await;
    assert!(matches!(refreshed(&guest).await, Err(FeedsError::Offline)));
}

/// A guest that may fetch, with a feed that is a file.
async fn visitor(data: &Path, file: &Path) -> Feeds {
    std::fs::write(file, RSS).unwrap();
    let mut config = Config::new(Data::Directory(data.to_owned()));
    config.role = Role::Guest(Fetching::On);
    let guest = Feeds::open(config).await.unwrap();
    guest.add(feed_at(file.to_str().unwrap())).await.unwrap();
    guest
}

#[tokio::test(start_paused = true)]
async fn who_fetches_once_is_waited_for_by_visitors_and_servers() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let guest = visitor(&data, &directory.path().join("feed.xml")).await;
    for hold_for in [Duration::from_secs(1), QUIET / 2] {
        let hold = Hold::take(&data, day(1), Role::Guest(Fetching::On)).unwrap();
        let leave = async {
            tokio::time::sleep(hold_for).await;
            assert_eq!(guest.0.store.wishes().unwrap(), []);
            drop(hold);
        };
        let (told, ()) = tokio::join!(refreshed(&guest), leave);
        assert_eq!(told.unwrap().len(), 1);
    }
    let hold = Hold::take(&data, day(1), Role::Guest(Fetching::On)).unwrap();
    let leave = async {
        tokio::time::sleep(QUIET).await;
        drop(hold);
    };
    let config = Config::new(Data::Directory(data.clone()));
    let (opened, ()) = tokio::join!(Feeds::open(config), leave);
    assert_eq!(opened.unwrap().holder().unwrap().unwrap().role, Role::Server(Fetching::On));
}

#[tokio::test(start_paused = true)]
async fn who_follows_fetches_when_the_other_is_gone_and_not_only_away() {
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    drop(visitor(&data, &directory.path().join("feed.xml")).await);
    let first = Feeds::open(Config::new(Data::Directory(data.clone()))).await.unwrap();
    let mut config = Config::new(Data::Directory(data.clone()));
    config.role = Role::Follower(Fetching::On);
    let mut world = World::with(config, Era::Legacy).await;
    let id = world.feeds.statuses()[0].id.clone();
    world.listen(&[]).await;
    assert_eq!(world.feeds.status(&id).unwrap().items, 0);
    assert!(matches!(world.feeds.refresh(&id).await, Err(FeedsError::ReadOnly)));
    drop(first);
    tokio::time::sleep(Duration::from_secs(10)).await;
    let again = Feeds::open(Config::new(Data::Directory(data.clone()))).await.unwrap();
    world.notices().await;
    assert_eq!(world.feeds.status(&id).unwrap().items, 0);
    drop(again);
    assert_eq!(world.notices().await, ["list"]);
    assert_eq!(world.feeds.status(&id).unwrap().items, 1);
    let holder = Holder::of(&data).unwrap().unwrap();
    assert_eq!(holder.role, Role::Server(Fetching::On));
}

#[tokio::test(start_paused = true)]
async fn what_a_guest_may_not_ask_is_told_and_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut config = Config::new(Data::Directory(directory.path().to_owned()));
    config.role = Role::Guest(Fetching::On);
    let guest = Feeds::open(config).await.unwrap();
    let id = guest.add(feed_at("http://127.0.0.1:8080/feed")).await.unwrap();
    let before = guest.status(&id).unwrap();
    let told = refreshed(&guest).await.unwrap();
    let Refresh::Forbidden(reason) = &told[0].outcome else { panic!("{told:?}") };
    assert!(reason.contains("private address"), "{reason}");
    let row = guest.0.store.feed(&id).unwrap().unwrap();
    assert_eq!((row.last_error, row.plan), (None, None));
    assert_eq!(guest.status(&id).unwrap(), before);
}

#[tokio::test(start_paused = true)]
async fn feeds_of_an_earlier_configuration_are_served_on_where_that_is_wanted() {
    let directory = tempfile::tempdir().unwrap();
    let open = async |urls: &[&str], earlier| {
        let mut config = config(directory.path());
        config.feeds = urls.iter().map(|url| feed_at(*url)).collect();
        config.earlier = earlier;
        Feeds::open(config).await.unwrap()
    };
    let ids = |statuses: Vec<Status>| -> Vec<_> { statuses.into_iter().map(|it| it.id).collect() };
    drop(open(&[URL], Earlier::Dropped).await);
    let feeds = open(&[], Earlier::Served).await;
    assert_eq!(ids(feeds.statuses()), [ID]);
    // A list that comes later takes the place of what was there before.
    feeds.configure(vec![feed_at(OTHER_URL)], Earlier::Dropped).await.unwrap();
    assert_eq!(ids(feeds.statuses()), [OTHER_ID]);
    let unserved = feeds.unserved().await.unwrap();
    assert_eq!(unserved[0].condition, Condition::Unserved);
    assert_eq!(ids(unserved), [ID]);
    assert!(feeds.remove(ID).await.unwrap());
    assert_eq!(feeds.unserved().await.unwrap(), []);
}
