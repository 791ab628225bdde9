//! Feeds as a real server of them plays them, and what clients of both eras hear of it.
//!
//! A feed is asked for when a test says so, with the clock running; what is told is counted with
//! the clock held, so that it is all there is. Names are looked up in a directory of the test, in
//! which the server has a public address: nothing is allowed here that is refused elsewhere.

mod press;
mod told;
mod trouble;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use self::press::{Answer, Press};
use super::*;
use crate::ask::ask;
use crate::fetch::{self, Directory, Fetcher, ResolvedAddress};
use crate::id;
use crate::schedule::Plan;
use crate::store::FeedRow;

const NEWS: &str = "http://feed.example/news";

/// The server, the feeds of it, and a client of each era.
struct Scene {
    press: Press,
    hub: Hub,
    feeds: Feeds,
    fetcher: Fetcher,
    plans: HashMap<String, Plan>,
    clients: Vec<World>,
}

impl Scene {
    /// Feeds at these addresses, of which none was asked yet.
    async fn new(urls: &[&str]) -> Self {
        Self::with(urls, fetch::Config::default()).await
    }

    async fn with(urls: &[&str], fetching: fetch::Config) -> Self {
        let press = Press::start().await;
        let mut config = Config::new(Data::Memory);
        config.role = Role::Server(Fetching::Off);
        config.feeds = urls.iter().map(|url| feed_at(*url)).collect();
        let feeds = Feeds::open(config).await.unwrap();
        let fetching = fetch::Config { apart: Duration::ZERO, ..fetching };
        let look_up = Directory::Told(Arc::new(directory(press.address)));
        let fetcher = Fetcher::with_directory(fetching, look_up).unwrap();
        let mut config = HubConfig::new("test", "1");
        config.greeting = Greeting::Silent;
        let hub = Hub::with_config(config);
        hub.add("feeds", |shelf| feeds.clone().on(shelf)).await.unwrap();
        Self { press, hub, feeds, fetcher, plans: HashMap::new(), clients: Vec::new() }
    }

    /// One feed, asked once, and a client of each era that watches these parts of it.
    async fn watched(answer: Answer, parts: &[&str]) -> Self {
        let mut scene = Self::new(&[NEWS]).await;
        scene.press.print("/news", answer);
        scene.ask(NEWS).await;
        scene.press.take_hits();
        let uris: Vec<_> = parts.iter().map(|part| uri(NEWS, part)).collect();
        scene.listen(&[&["feeds://all".to_owned()], uris.as_slice()].concat()).await;
        scene
    }

    /// A client of each era that follows these addresses, and the list.
    async fn listen(&mut self, uris: &[String]) {
        for era in [Era::Legacy, Era::Modern] {
            let wire = Wire::to(self.hub.clone(), 1 << 20);
            let mut client = World { feeds: self.feeds.clone(), era, wire, next: 0 };
            if era == Era::Legacy {
                let params = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {},
                    "clientInfo": { "name": "test", "version": "1" },
                });
                client.ask("initialize", params).await;
                client.send(json!({ "method": "notifications/initialized" })).await;
            }
            client.listen(uris).await;
            self.clients.push(client);
        }
    }

    /// Asks a feed once, as if it were due.
    async fn ask(&mut self, url: &str) -> Arc<FeedRow> {
        let row = self.row(url);
        let now = self.feeds.0.clock.time();
        let mut plan = self.plans.remove(url).unwrap_or_else(|| Plan::new(now));
        plan.next = plan.next.min(now);
        let inner = self.feeds.0.clone();
        // Nobody but the server and us has anything to do with this; its time is that of the
        // machine.
        tokio::time::resume();
        let asked = ask(inner, self.fetcher.clone(), row, plan).await;
        tokio::time::pause();
        self.plans.insert(url.to_owned(), asked.plan);
        self.row(url)
    }

    /// Another answer of the feed, which is asked for at once.
    async fn turn(&mut self, answer: Answer) -> Arc<FeedRow> {
        self.press.print("/news", answer);
        self.ask(NEWS).await
    }

    fn row(&self, url: &str) -> Arc<FeedRow> {
        self.feeds.0.board().get(&id::short(url)).unwrap().clone()
    }

    fn plan(&self, url: &str) -> &Plan {
        &self.plans[url]
    }

    /// How many requests came since the last time.
    fn requests(&self) -> usize {
        self.press.take_hits().len()
    }

    /// Checks that every client was told of exactly these, each once: parts of the feed, and other
    /// names.
    #[track_caller]
    fn told(&mut self, parts: &[&str], others: &[&str]) -> impl Future<Output = ()> {
        let caller = std::panic::Location::caller();
        let mut expected: Vec<_> = parts.iter().map(|part| uri(NEWS, part)).collect();
        expected.extend(others.iter().map(|name| (*name).to_owned()));
        expected.sort();
        async move {
            for client in &mut self.clients {
                let notices = client.notices().await;
                assert_eq!(notices, expected, "{:?}, asked for at {caller}", client.era);
            }
        }
    }

    async fn read(&mut self, part: &str) -> Value {
        let uri = uri(NEWS, part);
        let one = self.clients[0].read(&uri).await;
        assert_eq!(one, self.clients[1].read(&uri).await, "both eras read the same");
        one
    }
}

/// What a name server says: everything is at the press, and one name is at a private address.
fn directory(press: SocketAddr) -> impl Fn(&str) -> Vec<ResolvedAddress> {
    move |host| {
        let address = if host == "inside.example" { "10.0.0.1" } else { "93.184.215.14" };
        vec![ResolvedAddress { address: address.parse().unwrap(), socket: press }]
    }
}

/// A part of a feed.
fn uri(url: &str, part: &str) -> String {
    format!("feeds://feed/{}{part}", id::short(url))
}

/// A document with these items: a title, a day, a category. What else is in it is up to a test.
fn rss(head: &str, items: &[(&str, u32, &str)]) -> String {
    let item = |(title, day, category): &(&str, u32, &str)| {
        format!(
            "<item><guid isPermaLink='false'>{title}</guid><title>{title}</title>\
             <link>http://feed.example/{title}</link><description>About {title}.</description>\
             <category>{category}</category>\
             <pubDate>{day:02} Jan 2024 12:00:00 GMT</pubDate></item>"
        )
    };
    let items: String = items.iter().map(item).collect();
    format!("<rss version='2.0'><channel><title>News</title>{head}{items}</channel></rss>")
}
