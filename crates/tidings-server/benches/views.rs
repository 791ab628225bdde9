//! What one change of a list costs when listeners have different labels.
//!
//! `cargo bench -p tidings-server --bench views`. 5,000 clients, each with one of 1, 10 or 100 sets
//! of labels, follow the list of tools through the public surface, in one thread. Each set has a tool
//! of its own. A tool changes, and every client that sees it reads one line: the tool that everyone
//! sees, then the tool of one set. Then each client has a label of its own, and a tool names only one
//! of these labels: the others make no difference, so two views are left.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::error::Error;
use std::time::Instant;

use serde_json::{Map, json};
use tidings_server::model::Tool;
use tidings_server::{Config, Greeting, Handle, Hub, Identity, Labels, Merging, Offer, stdio};
use tokio::io::{
    AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const CLIENTS: usize = 5_000;
const TURNS: usize = 21;

type Failure = Box<dyn Error + Send + Sync>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    println!("\nMedian ms from a change to the last line read, {CLIENTS} clients.\n");
    println!("| sets of labels | tools | everyone's tool | clients | one set's tool | clients |");
    println!("| ---: | ---: | ---: | ---: | ---: | ---: |");
    for (sets, tools) in [(1, 1), (10, 10), (100, 100), (CLIENTS, 1)] {
        let mut setup = Setup::new(sets, tools).await?;
        let all = setup.time(false).await?;
        let one = setup.time(true).await?;
        println!("| {sets} | {tools} | {all:.2} | {CLIENTS} | {one:.2} | {} |", CLIENTS / sets);
        setup.serving.shutdown().await;
    }
    Ok(())
}

struct Setup {
    sets: usize,
    any: Handle<Tool>,
    own: Handle<Tool>,
    clients: Vec<Client>,
    serving: JoinSet<()>,
    changes: usize,
}

struct Client {
    _input: WriteHalf<DuplexStream>,
    output: BufReader<ReadHalf<DuplexStream>>,
}

fn tool(name: String, text: usize) -> Tool {
    Tool::new(name, text.to_string(), Map::new())
}

impl Setup {
    /// Clients with this many sets of labels, and tools for the first of them.
    async fn new(sets: usize, tools: usize) -> Result<Self, Failure> {
        let mut config = Config::new("views", env!("CARGO_PKG_VERSION"));
        config.merging = Merging::off();
        config.greeting = Greeting::Silent;
        let hub = Hub::with_config(config);
        let shelf = hub.source("tools")?;
        let any = shelf.add(tool("any".to_owned(), 0))?;
        let mut owned = Vec::new();
        for set in 0..tools {
            let label = format!("set:{set}");
            owned.push(shelf.add(Offer::from(tool(format!("own-{set}"), 0)).audience(&*label))?);
        }
        let mut serving = JoinSet::new();
        let mut clients = Vec::new();
        for client in 0..CLIENTS {
            let labels = Labels::new([format!("set:{}", client % sets)])?;
            let identity = Identity::new(format!("client-{client}"), labels);
            clients.push(Client::begin(&hub, identity, &mut serving).await?);
        }
        let own = owned.swap_remove(0);
        Ok(Self { sets, any, own, clients, serving, changes: 0 })
    }

    /// The median time of a change.
    async fn time(&mut self, one_set: bool) -> Result<f64, Failure> {
        let mut times = Vec::new();
        for _ in 0..TURNS {
            self.changes += 1;
            let (handle, step) = if one_set { (&self.own, self.sets) } else { (&self.any, 1) };
            let began = Instant::now();
            handle.update(tool(handle.key().to_owned(), self.changes))?;
            for client in self.clients.iter_mut().step_by(step) {
                client.line().await?;
            }
            times.push(began.elapsed().as_secs_f64() * 1e3);
        }
        times.sort_by(f64::total_cmp);
        Ok(times[TURNS / 2])
    }
}

impl Client {
    async fn begin(
        hub: &Hub,
        identity: Identity,
        serving: &mut JoinSet<()>,
    ) -> Result<Self, Failure> {
        let (ours, theirs) = tokio::io::duplex(4096);
        let hub = hub.clone();
        serving.spawn(async move {
            let streams = tokio::io::split(theirs);
            let served = stdio::serve_as(&hub, identity, streams, CancellationToken::new()).await;
            served.expect("a client is served until it goes");
        });
        let (output, mut input) = tokio::io::split(ours);
        let info = json!({ "name": "bench", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
        let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" });
        input.write_all(format!("{hello}\n{ready}\n{ping}\n").as_bytes()).await?;
        let mut client = Self { _input: input, output: BufReader::with_capacity(256, output) };
        client.line().await?;
        client.line().await?;
        Ok(client)
    }

    async fn line(&mut self) -> Result<(), Failure> {
        let mut line = String::new();
        self.output.read_line(&mut line).await?;
        Ok(())
    }
}
