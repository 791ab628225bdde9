//! One feed, asked over HTTP: what is kept from one time to the next.

use std::sync::Arc;

use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::*;
use crate::ask::ask;
use crate::condition::Condition;
use crate::fetch::{self, Fetcher};
use crate::schedule::Plan;
use crate::store::FeedRow;

const FEED: &str = "<rss version='2.0'><channel><title>T</title><ttl>60</ttl>\
    <item><guid>1</guid><title>one</title></item></channel></rss>";

/// A server that gives these answers in turn, and a feed of it.
struct Asked {
    feeds: Feeds,
    fetcher: Fetcher,
    plan: Plan,
    id: String,
    server: JoinSet<Vec<String>>,
}

impl Asked {
    async fn new(answers: &[&str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let mut config = Config::new(Data::Memory);
        config.role = Role::Server(Fetching::Off);
        config.feeds = vec![feed_at(format!("{base}/feed"))];
        let feeds = Feeds::open(config).await.unwrap();
        let id = feeds.0.board().rows().next().unwrap().id.clone();
        let fetching = fetch::Config {
            allow_private: true,
            apart: Duration::ZERO,
            ..fetch::Config::default()
        };
        let fetcher = Fetcher::new(fetching).unwrap();
        let answers: Vec<_> = answers.iter().map(|it| it.replace("BASE", &base)).collect();
        let mut server = JoinSet::new();
        server.spawn(serve(listener, answers));
        let plan = Plan::new(feeds.0.clock.time());
        Self { feeds, fetcher, plan, id, server }
    }

    async fn ask(&mut self) -> Arc<FeedRow> {
        let inner = self.feeds.0.clone();
        // As if it were due.
        self.plan.next = self.plan.next.min(inner.clock.time());
        let asked = ask(inner, self.fetcher.clone(), self.row(), self.plan.clone()).await;
        self.plan = asked.plan;
        self.row()
    }

    fn row(&self) -> Arc<FeedRow> {
        self.feeds.0.board().get(&self.id).unwrap().clone()
    }

    /// What the server was asked.
    async fn requests(mut self) -> Vec<String> {
        self.server.join_next().await.unwrap().unwrap()
    }
}

async fn serve(listener: TcpListener, answers: Vec<String>) -> Vec<String> {
    let mut requests = Vec::new();
    for answer in answers {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        requests.push(String::from_utf8(request).unwrap().to_lowercase());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
    requests
}

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn what_did_not_change_is_not_sent_again() {
    let first = answer("200 OK\r\netag: \"x\"", FEED);
    let mut asked = Asked::new(&[&first, &answer("304 Not Modified", "")]).await;
    let row = asked.ask().await;
    assert_eq!((row.item_count, row.condition(), row.shown_title()), (1, Condition::Good, "T"));
    assert!(row.next_fetch.is_some());
    let again = asked.ask().await;
    assert_eq!((again.item_count, again.revisions), (1, row.revisions));
    assert!(asked.requests().await[1].contains("if-none-match: \"x\""));
}

#[tokio::test]
async fn what_is_no_feed_is_a_failure_and_the_old_items_stay() {
    let answers = [
        answer("200 OK", FEED),
        answer("200 OK", "<html><body>sorry</body></html>"),
        answer("404 Not Found", ""),
    ];
    let mut asked = Asked::new(&answers.each_ref().map(String::as_str)).await;
    asked.ask().await;
    let row = asked.ask().await;
    assert_eq!((row.is_failing(), row.item_count), (true, 1));
    let error = row.last_error.clone().unwrap();
    assert!(error.starts_with("the document is a web page, not a feed"), "{error}");
    let row = asked.ask().await;
    let error = "the server has nothing at this address (404)";
    assert_eq!(row.last_error.as_deref(), Some(error));
    assert_eq!(asked.plan.condition, Condition::Failing);
}

#[tokio::test]
async fn a_feed_that_moved_for_good_keeps_its_id() {
    let moved = answer("301 Moved Permanently\r\nlocation: BASE/new", "");
    let feed = answer("200 OK", FEED);
    let times = [moved.as_str(), &feed].repeat(3);
    let mut asked = Asked::new(&[times.as_slice(), &[&feed]].concat()).await;
    for _ in 0..3 {
        asked.ask().await;
    }
    let row = asked.ask().await;
    assert!(row.address.as_str().ends_with("/new") && row.asked.as_str().ends_with("/feed"));
    assert_eq!((row.id.clone(), row.item_count), (asked.id.clone(), 1));
    assert!(asked.requests().await[6].starts_with("get /new "));
}

#[tokio::test]
async fn an_answer_without_a_document_forgets_nothing_the_document_asked_for() {
    let daily = FEED.replace("<ttl>60</ttl>", "<ttl>1200</ttl>");
    let first = answer("200 OK\r\netag: \"x\"", &daily);
    let mut asked = Asked::new(&[&first, &answer("304 Not Modified", "")]).await;
    asked.ask().await;
    asked.ask().await;
    let now = asked.feeds.0.clock.time();
    let wait = asked.plan.due().unwrap().since(now);
    assert!(wait >= Duration::from_mins(1190), "{wait:?}");
}

#[tokio::test]
async fn a_document_that_was_cut_off_is_asked_for_again_whole() {
    let cut = FEED.replace("</channel></rss>", "<item><guid>2</guid><tit");
    let first = answer("200 OK\r\netag: \"x\"", &cut);
    let mut asked = Asked::new(&[&first, &answer("200 OK", FEED)]).await;
    let row = asked.ask().await;
    assert_eq!(row.item_count, 1);
    asked.ask().await;
    assert!(!asked.requests().await[1].contains("if-none-match"));
}

#[tokio::test]
async fn an_address_that_is_gone_behind_a_detour_is_asked_again() {
    let detour = answer("302 Found\r\nlocation: BASE/elsewhere", "");
    let mut asked = Asked::new(&[&detour, &answer("410 Gone", "")]).await;
    asked.ask().await;
    assert_eq!(asked.plan.condition, Condition::Failing);
    let mut asked = Asked::new(&[&answer("410 Gone", "")]).await;
    asked.ask().await;
    assert_eq!(asked.plan.condition, Condition::Gone);
}

/// What a feed said and where it moved to once were published one after the other: whoever watched
/// heard of one answer twice, and found the old address and the old plan after the first time.
#[tokio::test]
async fn one_answer_is_kept_then_readable_and_then_announced_once() {
    let moved = answer("301 Moved Permanently\r\nlocation: BASE/new", "");
    let (feed, second) = (answer("200 OK", FEED), "<item><guid>2</guid><title>two</title></item>");
    let news = answer("200 OK", &FEED.replace("</channel>", &format!("{second}</channel>")));
    let answers = [&moved, &feed, &moved, &feed, &moved, &news].map(String::as_str);
    let mut asked = Asked::new(&answers).await;
    let (feeds, id) = (asked.feeds.clone(), asked.id.clone());
    let hub = Hub::new("test", "1");
    hub.add("feeds", |shelf| feeds.clone().on(shelf)).await.unwrap();
    asked.ask().await;
    asked.ask().await;
    let mut events = hub.events();
    let mut told = Vec::new();
    let mut hear = |event: Event| {
        let Event::Change { what, .. } = event else { return };
        let stored = feeds.0.store.feed(&id).unwrap().unwrap();
        assert!(stored.address.as_str().ends_with("/new") && stored.item_count == 2, "{stored:?}");
        assert_eq!(stored.plan.as_ref().unwrap().moved, None, "the plan is that after the answer");
        assert_eq!(feeds.0.board().get(&id).map(|row| &**row), Some(&stored), "{what}");
        told.push(what);
    };
    let mut asking = Box::pin(asked.ask());
    loop {
        tokio::select! {
            biased;
            Ok(event) = events.recv() => hear(event),
            _ = &mut asking => break,
        }
    }
    while let Ok(event) = events.try_recv() {
        hear(event);
    }
    for uri in ["feeds://all".to_owned(), format!("feeds://feed/{id}")] {
        assert_eq!(told.iter().filter(|it| **it == uri).count(), 1, "{uri}: {told:?}");
    }
}
