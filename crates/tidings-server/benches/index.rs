//! The cost of one notice to one listener among a thousand and among a million subscriptions.
//!
//! `cargo bench -p tidings-server --bench index -- [--quick]`. Everything goes through the public
//! surface, in one thread: a source says that a URI changed, the client that watches it reads one
//! line. Beside it stands the floor, a look-up in a map and a message through a channel.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::collections::HashMap;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;
use tidings_server::model::ResourceTemplate;
use tidings_server::{AnswerError, Change, Config, Contents, Context, EditError, Fingerprint};
use tidings_server::{Greeting, Hub, Merging, ResourceUri, Shelf, Source, stdio};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Notices that are timed in one turn, and turns for each figure.
const NOTICES: usize = 2_000;
const TURNS: usize = 11;
/// The ratio between many and few subscriptions that is still "the same".
const TARGET: f64 = 1.5;
/// Bytes between a client and the hub; a batch of requests fits.
const PIPE: usize = 1 << 16;
/// Subscriptions that are asked for before their answers are read.
const BATCH: usize = 128;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let (few, many) = (1_000, if quick { 100_000 } else { 1_000_000 });
    let mut few = Setup::new(few).await?;
    let mut many = Setup::new(many).await?;
    println!("\nMedian µs for one notice, from the change to the line the client reads.\n");
    println!("| | {} subscriptions | {} subscriptions | ratio | |", few.count, many.count);
    println!("| --- | ---: | ---: | ---: | --- |");
    for way in Way::ALL {
        let (mut at_few, mut at_many) = (Vec::new(), Vec::new());
        // The two take turns, so that whatever else the machine does falls on both.
        for _ in 0..TURNS {
            at_few.push(few.time(way).await?);
            at_many.push(many.time(way).await?);
        }
        let (at_few, at_many) = (median(at_few), median(at_many));
        let ratio = at_many / at_few;
        let verdict = match (way, ratio <= TARGET) {
            (Way::Floor, _) => "",
            (_, true) => "met",
            (_, false) => "missed",
        };
        println!("| {} | {at_few:.2} | {at_many:.2} | {ratio:.2} × | {verdict} |", way.name());
    }
    println!("\nTarget: at most {TARGET} ×.");
    few.end().await;
    many.end().await;
    Ok(())
}

/// What is timed.
#[derive(Clone, Copy)]
enum Way {
    /// One URI again and again; its listener watches nothing else.
    Single,
    /// The same by the beginning of the URI.
    SingleMatching,
    /// Any of the other URIs, all watched by one listener.
    Random,
    /// The same by the beginning of the URI.
    RandomMatching,
    /// Any URI, and neither a hub nor a protocol.
    Floor,
}

impl Way {
    const ALL: [Self; 5] =
        [Self::Single, Self::SingleMatching, Self::Random, Self::RandomMatching, Self::Floor];

    fn name(self) -> &'static str {
        match self {
            Self::Single => "`notify_updated`, one URI, a listener of its own",
            Self::SingleMatching => "`notify_matching`, one URI, a listener of its own",
            Self::Random => "`notify_updated`, random URIs, the listener of all others",
            Self::RandomMatching => "`notify_matching`, random URIs, the listener of all others",
            Self::Floor => "floor: a map and a channel, random URIs",
        }
    }
}

/// A hub with so many subscriptions, and the floor with as many.
struct Setup {
    count: usize,
    hub: Hub,
    version: Arc<AtomicU64>,
    /// Watches all items below `count`.
    crowd: Client,
    /// Watches one more.
    single: Client,
    floor: Floor,
    random: Random,
    tasks: JoinSet<()>,
}

impl Setup {
    async fn new(count: usize) -> Result<Self, Failure> {
        let mut config = Config::new("index", env!("CARGO_PKG_VERSION"));
        config.merging = Merging::off();
        config.greeting = Greeting::Silent;
        config.limits.subscriptions_per_listener = count;
        config.limits.subscriptions = count + 1;
        let hub = Hub::with_config(config);
        let version = Arc::new(AtomicU64::new(0));
        let items = Items { version: version.clone() };
        hub.add("items", |shelf| items.on(&shelf)).await?;
        let mut tasks = JoinSet::new();
        let mut crowd = Client::connect(&hub, &mut tasks).await?;
        let begun = Instant::now();
        crowd.subscribe(0..count).await?;
        let each = begun.elapsed().as_secs_f64() * 1e6 / count as f64;
        eprintln!("{count} subscriptions made, {each:.1} µs each");
        let mut single = Client::connect(&hub, &mut tasks).await?;
        single.subscribe(count..=count).await?;
        let (floor, random) = (Floor::new(count, &mut tasks), Random(1));
        Ok(Self { count, hub, version, crowd, single, floor, random, tasks })
    }

    /// The median time of some notices, in microseconds.
    async fn time(&mut self, way: Way) -> Result<f64, Failure> {
        let mut times = Vec::with_capacity(NOTICES);
        for _ in 0..NOTICES {
            let number = match way {
                Way::Single | Way::SingleMatching => self.count,
                Way::Random | Way::RandomMatching | Way::Floor => self.random.below(self.count),
            };
            let uri = item(number);
            let prefix = uri.clone();
            let begun = Instant::now();
            self.version.fetch_add(1, Ordering::Relaxed);
            let line = match way {
                Way::Floor => {
                    self.floor.tell(&uri).await?;
                    uri.as_str()
                }
                Way::Single => {
                    self.hub.changed(&uri)?;
                    self.single.line().await?
                }
                Way::SingleMatching => {
                    let Ok(()) = self.hub.changed(Change::below(prefix));
                    self.single.line().await?
                }
                Way::Random => {
                    self.hub.changed(&uri)?;
                    self.crowd.line().await?
                }
                Way::RandomMatching => {
                    let Ok(()) = self.hub.changed(Change::below(prefix));
                    self.crowd.line().await?
                }
            };
            times.push(begun.elapsed().as_secs_f64() * 1e6);
            if !line.contains(&uri) {
                return Err(format!("{uri} changed and the client read {line}").into());
            }
        }
        Ok(median(times))
    }

    async fn end(mut self) {
        self.hub.shutdown().await;
        self.tasks.shutdown().await;
    }
}

/// A map from URI to channel, and a task that answers what comes through.
struct Floor {
    index: HashMap<String, mpsc::Sender<usize>>,
    answers: mpsc::Receiver<usize>,
}

impl Floor {
    fn new(count: usize, tasks: &mut JoinSet<()>) -> Self {
        let (sender, mut receiver) = mpsc::channel::<usize>(1);
        let (back, answers) = mpsc::channel::<usize>(1);
        tasks.spawn(async move {
            while let Some(length) = receiver.recv().await {
                if back.send(length).await.is_err() {
                    break;
                }
            }
        });
        let index = (0..count).map(|number| (item(number), sender.clone())).collect();
        Self { index, answers }
    }

    async fn tell(&mut self, uri: &str) -> Result<(), Failure> {
        self.index.get(uri).ok_or("every item has a listener")?.send(uri.len()).await?;
        self.answers.recv().await.ok_or("the listener ended")?;
        Ok(())
    }
}

/// Any number of items whose version is one counter, so that looking at one costs nothing.
struct Items {
    version: Arc<AtomicU64>,
}

impl Items {
    fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        shelf.add(ResourceTemplate::new("bench://item/{number}", "item"))?;
        Ok(self)
    }
}

impl Source for Items {
    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        Ok(Contents::text(uri, self.version.load(Ordering::Relaxed).to_string()))
    }

    fn version(&self, _uri: &ResourceUri) -> Option<Fingerprint> {
        Some(Fingerprint::of_bytes(&self.version.load(Ordering::Relaxed).to_le_bytes()))
    }
}

/// A legacy client in memory.
struct Client {
    input: BufReader<ReadHalf<DuplexStream>>,
    output: WriteHalf<DuplexStream>,
    line: String,
}

impl Client {
    async fn connect(hub: &Hub, tasks: &mut JoinSet<()>) -> Result<Self, Failure> {
        let (near, far) = tokio::io::duplex(PIPE);
        let (input, output) = tokio::io::split(far);
        let hub = hub.clone();
        tasks.spawn(async move {
            drop(stdio::serve(&hub, input, output, CancellationToken::new()).await);
        });
        let (input, output) = tokio::io::split(near);
        let mut client = Self { input: BufReader::new(input), output, line: String::new() };
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "load", "version": "1" },
        });
        let first = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
        client.output.write_all(format!("{first}\n").as_bytes()).await?;
        client.line().await?;
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        client.output.write_all(format!("{ready}\n").as_bytes()).await?;
        Ok(client)
    }

    async fn subscribe(&mut self, numbers: impl IntoIterator<Item = usize>) -> Result<(), Failure> {
        let numbers: Vec<usize> = numbers.into_iter().collect();
        for batch in numbers.chunks(BATCH) {
            let mut requests = String::new();
            for number in batch {
                let params = json!({ "uri": item(*number) });
                let request = json!({
                    "jsonrpc": "2.0", "id": number, "method": "resources/subscribe",
                    "params": params,
                });
                requests.extend([&request.to_string(), "\n"]);
            }
            self.output.write_all(requests.as_bytes()).await?;
            for _ in batch {
                let answer = self.line().await?;
                if !answer.contains("\"result\"") {
                    return Err(answer.to_owned().into());
                }
            }
        }
        Ok(())
    }

    async fn line(&mut self) -> Result<&str, Failure> {
        self.line.clear();
        if self.input.read_line(&mut self.line).await? == 0 {
            return Err("the hub ended the connection".into());
        }
        Ok(&self.line)
    }
}

/// The same random numbers in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap_or(0) % limit
    }
}

/// A URI of which no other is the beginning.
fn item(number: usize) -> String {
    format!("bench://item/{number:07}")
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
