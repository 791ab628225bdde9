//! Feeds that are kept: taken in, read in pages, searched, listed.

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_core::ResourceUri;
use tidings_feeds::{
    Asker, Config, Data, FeedAddress, FeedConfig, Feeds, Fetching, Retention, Role, opml,
};
use tokio::task::JoinSet;

use crate::Failure;
use crate::client::{Client, hub};
use crate::news::{self, Random};
use crate::table::{Row, median};

/// Items of one feed, and feeds of as many.
const ITEMS: usize = 10_000;
const FEEDS: usize = 10;
const PAGE: usize = 100;

/// An item as it is shown; for the floor, which writes the same again.
#[derive(Deserialize, Serialize)]
struct Item {
    title: String,
    description: String,
    content: String,
    link: String,
    published: String,
    authors: Vec<Author>,
    categories: Vec<String>,
    guid: String,
}

#[derive(Deserialize, Serialize)]
struct Author {
    name: String,
}

/// A feed in the list of all.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    id: String,
    title: String,
    public_url: String,
    item_count: u64,
}

pub(crate) async fn rows(rounds: usize) -> Result<(), Failure> {
    taking_in(rounds.min(7)).await?;
    let directory = tempfile::tempdir()?;
    let feeds = full(directory.path()).await?;
    reading(&feeds, rounds).await?;
    searching(&feeds, directory.path(), rounds).await?;
    searching_all(&feeds, directory.path(), rounds).await?;
    listing(rounds).await
}

/// A feed of ten thousand items: from the file to the notice that they can be read.
async fn taking_in(rounds: usize) -> Result<(), Failure> {
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("news.xml");
        std::fs::write(&file, news::document("News", ITEMS, round as u64 + 1))?;
        let begun = Instant::now();
        let feeds = serve(directory.path(), &[file.as_path()]).await?;
        ours.push(begun.elapsed().as_secs_f64() * 1000.0);
        let items = items(&feeds, 0, "").await?;
        assert_eq!(items.len(), ITEMS);
        floor.push(bare_insert(&directory.path().join("bare.sqlite"), &items)?);
    }
    let ours = median(&mut ours);
    Row {
        what: "10,000 items parsed, kept, indexed, told",
        ours,
        floor: Some(median(&mut floor)),
        peer: None,
        allowed: "≤ 1500 ms",
        is_met: ours <= 1500.0,
    }
    .print();
    Ok(())
}

/// Ten feeds of ten thousand items each.
async fn full(directory: &Path) -> Result<Feeds, Failure> {
    let mut files = Vec::new();
    for number in 0..FEEDS {
        let file = directory.join(format!("{number}.xml"));
        std::fs::write(&file, news::document("News", ITEMS, 100 + number as u64))?;
        files.push(file);
    }
    let files: Vec<_> = files.iter().map(|file| &**file).collect();
    serve(directory, &files).await
}

/// Serves files until all of them can be read, and then no more.
async fn serve(directory: &Path, files: &[&Path]) -> Result<Feeds, Failure> {
    let mut config = Config::new(Data::Directory(directory.join("data")));
    config.retention = Retention::new(ITEMS as u64, None);
    for file in files {
        let address = FeedAddress::parse(&file.display().to_string(), Asker::Operator)?;
        let mut feed = FeedConfig::new(address);
        feed.interval = Some(Duration::from_hours(1));
        config.feeds.push(feed);
    }
    let feeds = Feeds::open(config).await?;
    let hub = hub();
    let mut tasks = JoinSet::new();
    hub.add("feeds", |shelf| feeds.clone().on(shelf)).await?;
    let mut client = Client::watching(&hub, "feeds://all", &mut tasks).await?;
    loop {
        let all: Vec<Summary> = serde_json::from_str(&read(&feeds, "feeds://all").await?)?;
        if all.iter().all(|feed| feed.item_count == ITEMS as u64) {
            break;
        }
        client.told().await?;
    }
    hub.shutdown().await;
    tasks.shutdown().await;
    Ok(feeds)
}

async fn read(feeds: &Feeds, uri: &str) -> Result<String, Failure> {
    let contents = feeds.read(&ResourceUri::parse(uri)?).await.map_err(|it| it.to_string())?;
    let value = serde_json::to_value(&contents.parts[0])?;
    Ok(value["text"].as_str().ok_or("no text")?.to_owned())
}

/// The ids of all feeds.
async fn ids(feeds: &Feeds) -> Result<Vec<String>, Failure> {
    let all: Vec<Summary> = serde_json::from_str(&read(feeds, "feeds://all").await?)?;
    Ok(all.into_iter().map(|feed| feed.id).collect())
}

async fn items(feeds: &Feeds, feed: usize, query: &str) -> Result<Vec<Item>, Failure> {
    let id = &ids(feeds).await?[feed];
    Ok(serde_json::from_str(&read(feeds, &format!("feeds://feed/{id}/items{query}")).await?)?)
}

/// What the database takes to insert the same rows, each indexed by the same texts, at once.
fn bare_insert(file: &Path, items: &[Item]) -> Result<f64, Failure> {
    let texts: Vec<_> =
        items.iter().map(|item| item.content.replace(['<', '>', '/', '"', '='], " ")).collect();
    let mut connection = Connection::open(file)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    let begun = Instant::now();
    connection.execute_batch(
        "CREATE TABLE items (key INTEGER PRIMARY KEY AUTOINCREMENT, feed INTEGER,
            identity TEXT NOT NULL, link TEXT, title TEXT, description TEXT, content TEXT,
            moment INTEGER, authors TEXT, categories TEXT, UNIQUE (feed, identity));
        CREATE INDEX items_in_order ON items (feed, moment DESC, key);
        CREATE TABLE labels (item INTEGER, kind INTEGER, value TEXT, shown TEXT,
            PRIMARY KEY (item, kind, value)) WITHOUT ROWID;
        CREATE VIRTUAL TABLE words USING fts5(feed, title, description, content,
            content = '', contentless_delete = 1, tokenize = 'ascii');
        INSERT INTO words (words, rank) VALUES ('hashsize', 4194304);",
    )?;
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare(
            "INSERT INTO items (feed, identity, link, title, description, content, moment,
                authors, categories) VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let mut label = transaction.prepare("INSERT OR IGNORE INTO labels VALUES (?, ?, ?, ?)")?;
        let mut index = transaction.prepare(
            "INSERT INTO words (rowid, feed, title, description, content) VALUES (?, '1', ?, ?, ?)",
        )?;
        for (item, text) in items.iter().zip(&texts) {
            insert.execute((
                &item.guid,
                &item.link,
                &item.title,
                &item.description,
                &item.content,
                &item.published,
                &item.authors[0].name,
                item.categories.join(","),
            ))?;
            let key = transaction.last_insert_rowid();
            label.execute((key, 1, &item.authors[0].name, &item.authors[0].name))?;
            for category in &item.categories {
                label.execute((key, 0, category, category))?;
            }
            index.execute((key, &item.title, &item.description, text))?;
        }
    }
    transaction.commit()?;
    Ok(begun.elapsed().as_secs_f64() * 1000.0)
}

/// Pages of a hundred items out of ten thousand.
async fn reading(feeds: &Feeds, rounds: usize) -> Result<(), Failure> {
    let id = ids(feeds).await?.swap_remove(0);
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for round in 0..rounds * 10 {
        let offset = round * 7 % (ITEMS / PAGE) * PAGE;
        let uri = format!("feeds://feed/{id}/items?limit={PAGE}&offset={offset}");
        let uri = ResourceUri::parse(&uri)?;
        let begun = Instant::now();
        let contents = feeds.read(&uri).await.map_err(|it| it.to_string())?;
        ours.push(begun.elapsed().as_secs_f64() * 1000.0);
        let value = serde_json::to_value(&contents.parts[0])?;
        let items: Vec<Item> = serde_json::from_str(value["text"].as_str().ok_or("no text")?)?;
        assert_eq!(items.len(), PAGE);
        let begun = Instant::now();
        let text = serde_json::to_string(&items)?;
        floor.push(begun.elapsed().as_secs_f64() * 1000.0);
        assert!(!text.is_empty());
    }
    let ours = median(&mut ours);
    Row {
        what: "a page of 100 of 10,000 items",
        ours,
        floor: Some(median(&mut floor)),
        peer: None,
        allowed: "≤ 2 ms",
        is_met: ours <= 2.0,
    }
    .print();
    Ok(())
}

/// Two words among a hundred thousand items.
async fn searching(feeds: &Feeds, directory: &Path, rounds: usize) -> Result<(), Failure> {
    let bare = Connection::open(directory.join("data/feeds.sqlite"))?;
    let mut query = bare.prepare("SELECT rowid FROM words WHERE words MATCH ? LIMIT 50")?;
    let ids = ids(feeds).await?;
    let mut random = Random(7);
    let (mut one, mut all, mut floor) = (Vec::new(), Vec::new(), Vec::new());
    let mut hits = 0;
    for _ in 0..rounds * 3 {
        // One that is in many items, and one that is in few.
        let words = (news::word(random.below(200)), news::word(1000 + random.below(4000)));
        let begun = Instant::now();
        for (number, id) in ids.iter().enumerate() {
            let search = format!("search={}+{}&limit=50", words.0, words.1);
            let uri = ResourceUri::parse(&format!("feeds://feed/{id}/items?{search}"))?;
            let contents = feeds.read(&uri).await.map_err(|it| it.to_string())?;
            if number == 0 {
                one.push(begun.elapsed().as_secs_f64() * 1000.0);
            }
            hits += usize::from(!format!("{:?}", contents.parts[0]).contains("\"[]\""));
        }
        all.push(begun.elapsed().as_secs_f64() * 1000.0);
        let begun = Instant::now();
        let expression = format!("\"{}\" AND \"{}\"", words.0, words.1);
        let found = query.query_map([expression], |row| row.get::<_, i64>(0))?.count();
        floor.push(begun.elapsed().as_secs_f64() * 1000.0);
        hits += found;
    }
    assert!(hits > 0, "the words are somewhere");
    let floor = median(&mut floor);
    for (what, times, allowed) in [
        ("search one of ten feeds, 100,000 items", &mut one, "≤ 5 ms"),
        ("search all ten, one after the other", &mut all, ""),
    ] {
        let ours = median(times);
        let is_met = ours <= 5.0;
        Row { what, ours, floor: Some(floor), peer: None, allowed, is_met }.print();
    }
    Ok(())
}

/// What `search_items` takes, from the call to its answer, for words of any kind; the floor is the
/// index of words alone giving the rows of the best twenty.
async fn searching_all(feeds: &Feeds, directory: &Path, rounds: usize) -> Result<(), Failure> {
    let bare = Connection::open(directory.join("data/feeds.sqlite"))?;
    let mut query = bare.prepare("SELECT rowid FROM words WHERE words MATCH ? LIMIT 20")?;
    let hub = hub();
    let mut tasks = JoinSet::new();
    hub.add("feeds", |shelf| feeds.clone().on(shelf)).await?;
    let mut client = Client::of(&hub, &mut tasks).await?;
    let mut random = Random(11);
    for (what, every, common, rare, end) in [
        ("`search_items`, 100,000 items, a frequent and a rare word", 0, 1, 1, ""),
        ("`search_items`, 100,000 items, a rare word", 0, 0, 1, ""),
        ("`search_items`, 100,000 items, a frequent word", 0, 1, 0, ""),
        ("`search_items`, 100,000 items, two frequent words", 0, 2, 0, ""),
        ("`search_items`, 100,000 items, a word of every item", 1, 0, 0, ""),
        ("`search_items`, 100,000 items, the beginning of a rare word", 0, 0, 1, "*"),
        ("`search_items`, 100,000 items, the beginning of a frequent word", 0, 1, 0, "*"),
    ] {
        let (mut ours, mut floor, mut found) = (Vec::new(), Vec::new(), 0);
        for _ in 0..rounds * 3 {
            let mut words = vec![news::EVERYWHERE.to_owned(); every];
            words.extend((0..common).map(|_| news::word(random.below(200))));
            words.extend((0..rare).map(|_| news::word(1000 + random.below(4000))));
            if !end.is_empty() {
                for word in &mut words {
                    word.truncate(5);
                }
            }
            let search = words.iter().map(|word| format!("{word}{end}")).collect::<Vec<_>>();
            let arguments = json!({ "search": search.join(" "), "limit": 20 });
            let params = json!({ "name": "search_items", "arguments": arguments });
            let begun = Instant::now();
            let answer = client.ask("tools/call", &params).await?;
            ours.push(begun.elapsed().as_secs_f64() * 1000.0);
            assert!(answer.contains("\"isError\":false"), "{answer}");
            let begun = Instant::now();
            let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"{end}")).collect();
            found += query.query_map([words.join(" AND ")], |row| row.get::<_, i64>(0))?.count();
            floor.push(begun.elapsed().as_secs_f64() * 1000.0);
        }
        assert!(found > 0, "the words are somewhere");
        let ours = median(&mut ours);
        let (floor, is_met) = (Some(median(&mut floor)), ours <= 5.0);
        Row { what, ours, floor, peer: None, allowed: "≤ 5 ms", is_met }.print();
    }
    hub.shutdown().await;
    tasks.shutdown().await;
    Ok(())
}

/// The list of a thousand feeds.
async fn listing(rounds: usize) -> Result<(), Failure> {
    let mut config = Config::new(Data::Memory);
    config.role = Role::Server(Fetching::Off);
    for number in 0..1_000 {
        let url = format!("https://feeds.example/{number}/feed.xml");
        let mut feed = FeedConfig::new(FeedAddress::parse(&url, Asker::Client)?);
        feed.title = Some(format!("The news number {number}"));
        config.feeds.push(feed);
    }
    let feeds = Feeds::open(config).await?;
    assert_eq!(opml::read(feeds.export().as_bytes())?.len(), 1_000);
    let uri = ResourceUri::parse("feeds://all")?;
    let all: Vec<Summary> = serde_json::from_str(&read(&feeds, "feeds://all").await?)?;
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds * 10 {
        let begun = Instant::now();
        feeds.read(&uri).await.map_err(|it| it.to_string())?;
        ours.push(begun.elapsed().as_secs_f64() * 1000.0);
        let begun = Instant::now();
        let text = serde_json::to_string(&all)?;
        floor.push(begun.elapsed().as_secs_f64() * 1000.0);
        assert!(!text.is_empty());
    }
    let ours = median(&mut ours);
    Row {
        what: "`feeds://all` of 1,000 feeds",
        ours,
        floor: Some(median(&mut floor)),
        peer: None,
        allowed: "≤ 3 ms",
        is_met: ours <= 3.0,
    }
    .print();
    Ok(())
}
