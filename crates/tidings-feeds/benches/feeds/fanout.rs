//! A change of a feed that thousands watch, beside a change of a source that has nothing to do.
//!
//! For the feed, time runs from the moment in which its server answers to the last listener: it is
//! fetched, parsed, kept and told of in between.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tidings_feeds::{Asker, Config, Data, FeedAddress, FeedConfig, Feeds};
use tidings_server::model::Resource;
use tidings_server::{Fingerprint, Hub, Offer, http};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::Failure;
use crate::client::hub;
use crate::table::{Row, median};

const LISTENERS: usize = 5_000;
const PLAIN: &str = "bench://plain";
const UPDATED: &[u8] = b"notifications/resources/updated";

pub(crate) async fn row(rounds: usize) -> Result<(), Failure> {
    let mut tasks = JoinSet::new();
    let hub = hub();
    let version = Arc::new(AtomicU64::new(0));
    let counter = hub.source("plain")?.add(plain(&version))?;

    let (sender, mut answered) = mpsc::channel(1);
    let (permit, permits) = mpsc::channel(1);
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/feed", listener.local_addr()?);
    let mut feed = FeedConfig::new(FeedAddress::parse(&url, Asker::Client)?);
    // The shortest there is.
    feed.interval = Some(Duration::from_secs(1));
    tasks.spawn(answer(listener, permits, sender));
    let mut config = Config::new(Data::Memory);
    config.allow_private = true;
    config.feeds = vec![feed];
    let feeds = Feeds::open(config).await?;
    hub.add("feeds", |shelf| feeds.on(shelf)).await?;
    let mut crowd = Crowd::gather(&hub, &mut tasks).await?;

    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        permit.send(()).await?;
        let begun = answered.recv().await.ok_or("the server ended")?;
        ours.push(crowd.all_told(begun).await?);
        let begun = Instant::now();
        version.fetch_add(1, Ordering::Relaxed);
        counter.changed();
        floor.push(crowd.all_told(begun).await?);
    }
    hub.shutdown().await;
    tasks.shutdown().await;
    let (ours, floor) = (median(&mut ours), median(&mut floor));
    Row {
        what: "a feed's answer to the last of 5,000 listeners",
        ours,
        floor: Some(floor),
        peer: None,
        allowed: "≤ 2 × the hub alone",
        is_met: ours <= 2.0 * floor,
    }
    .print();
    Ok(())
}

/// Those who listen to both, each over a socket of its own.
struct Crowd {
    heard: mpsc::Receiver<()>,
}

impl Crowd {
    async fn gather(hub: &Hub, tasks: &mut JoinSet<()>) -> Result<Self, Failure> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let served = hub.clone();
        tasks.spawn(async move {
            let config = http::HttpConfig::default();
            drop(http::serve(&served, listener, config, CancellationToken::new()).await);
        });
        let (tell, heard) = mpsc::channel(LISTENERS);
        for _ in 0..LISTENERS {
            let mut stream = listening(address).await?;
            let tell = tell.clone();
            tasks.spawn(async move {
                while told(&mut stream, UPDATED).await.is_ok() && tell.send(()).await.is_ok() {}
            });
        }
        Ok(Self { heard })
    }

    /// The time until every listener heard once.
    async fn all_told(&mut self, begun: Instant) -> Result<f64, Failure> {
        for _ in 0..LISTENERS {
            self.heard.recv().await.ok_or("the listeners are gone")?;
        }
        Ok(begun.elapsed().as_secs_f64() * 1000.0)
    }
}

/// A stream that is acknowledged.
async fn listening(address: SocketAddr) -> Result<TcpStream, Failure> {
    let mut stream = TcpStream::connect(address).await?;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let filter = json!({ "resourceSubscriptions": [PLAIN, "feeds://all"] });
    let params = json!({ "notifications": filter, "_meta": meta });
    let method = "subscriptions/listen";
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: {method}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    told(&mut stream, b"acknowledged").await?;
    Ok(stream)
}

/// Reads until something is said; there is one message at a time.
async fn told(stream: &mut TcpStream, what: &[u8]) -> Result<(), Failure> {
    let (mut said, mut bytes) = (Vec::new(), [0; 1024]);
    loop {
        let count = stream.read(&mut bytes).await?;
        said.extend_from_slice(&bytes[..count]);
        if count == 0 {
            return Err(String::from_utf8_lossy(&said).into());
        }
        if said.windows(what.len()).any(|part| part == what) {
            return Ok(());
        }
    }
}

/// Answers each request with one item more, once it may, and says when it did.
async fn answer(
    listener: TcpListener,
    mut permits: mpsc::Receiver<()>,
    answered: mpsc::Sender<Instant>,
) {
    let mut items = String::new();
    for number in 0_u64.. {
        let Ok((mut socket, _)) = listener.accept().await else { return };
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let Ok(byte) = socket.read_u8().await else { break };
            request.push(byte);
        }
        if permits.recv().await.is_none() {
            return;
        }
        items = format!("<item><guid>{number}</guid><title>{number}</title></item>{items}");
        let body =
            format!("<rss version='2.0'><channel><title>News</title>{items}</channel></rss>");
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
        if answered.send(Instant::now()).await.is_err()
            || socket.write_all(format!("{head}{body}").as_bytes()).await.is_err()
        {
            return;
        }
    }
}

/// One resource whose version is a counter.
fn plain(version: &Arc<AtomicU64>) -> Offer<Resource> {
    let (text, name) = (version.clone(), version.clone());
    Offer::resource(PLAIN, "plain", move || text.load(Ordering::Relaxed).to_string())
        .version(move || Fingerprint::of_bytes(&name.load(Ordering::Relaxed).to_le_bytes()))
}
