//! Benchmark of the client: one command against a warm server, the first byte, a cached read, and
//! a list of ten thousand that is loaded again.
//!
//! `cargo bench -p tidings --bench client -- [--quick]`. Whole processes take turns: `tidings tools`,
//! the same exchange by a bare program on the protocol library, and the floor, the same requests as
//! prepared bytes on a socket.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::collections::HashMap;
use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rmcp::model::ProtocolVersion;
use rmcp::service::ClientLifecycleMode;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use tidings_mirror::{Config, Event, Events, HttpTarget, Mirror, Protocol, Target};
use tidings_server::http::{self, HttpConfig};
use tidings_server::model::Resource;
use tidings_server::{
    Config as HubConfig, EditError, Greeting, Handle, Hub, Merging, Shelf, Source,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");
const RESOURCES: usize = 10_000;
const NOTICES: usize = 1_000;
/// Longer than the mirror's quiet time, in which it does not load a list again.
const REST: Duration = Duration::from_millis(60);
const CACHED_READS: u32 = 20_000;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("bare") => return bare(&arguments[2]),
        Some("floor") => return floor(&arguments[2]),
        _ => {}
    }
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let rounds = if arguments.iter().any(|argument| argument == "--quick") { 21 } else { 201 };
    processes(rounds)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(library(rounds))
}

/// The programs that take turns.
#[derive(Clone, Copy)]
enum Way {
    Ours,
    Bare,
    Floor,
}

impl Way {
    const ALL: [Self; 3] = [Self::Ours, Self::Bare, Self::Floor];

    fn name(self) -> &'static str {
        match self {
            Self::Ours => "`tidings tools`",
            Self::Bare => "bare rmcp",
            Self::Floor => "floor",
        }
    }

    fn command(self, url: &str) -> Result<Command, Failure> {
        let mut command = match self {
            Self::Ours => {
                let mut command = Command::new(PROGRAM);
                command.args(["tools", url, "--json"]);
                command
            }
            Self::Bare => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["bare", url]);
                command
            }
            Self::Floor => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["floor", url]);
                command
            }
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }
}

fn processes(rounds: usize) -> Result<(), Failure> {
    let (mut server, url) = serve()?;
    let result = compare(&url, rounds);
    server.kill()?;
    server.wait()?;
    result
}

/// A warm server: the demo, standing still.
fn serve() -> Result<(Child, String), Failure> {
    let mut server = Command::new(PROGRAM)
        .args(["serve", "--demo", "--every", "3600", "--http", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let output = server.stdout.take().ok_or("the server has no output")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line)?;
    let url = line.trim().strip_prefix("listening on ").ok_or("the server does not listen")?;
    Ok((server, url.to_owned()))
}

fn compare(url: &str, rounds: usize) -> Result<(), Failure> {
    let mut whole = [const { Vec::new() }; 3];
    let mut first = [const { Vec::new() }; 3];
    for round in 0..rounds {
        for turn in 0..Way::ALL.len() {
            let index = (round + turn) % Way::ALL.len();
            let began = Instant::now();
            let status = Way::ALL[index].command(url)?.status()?;
            whole[index].push(began.elapsed());
            if !status.success() {
                return Err(format!("{} failed: {status}", Way::ALL[index].name()).into());
            }
            first[index].push(first_byte(Way::ALL[index])?);
        }
    }
    println!("\nOne list of tools over HTTP, medians of {rounds} rounds, one process each.\n");
    println!("| | start to exit, ms | start to first byte, ms |");
    println!("| --- | ---: | ---: |");
    let whole = whole.map(median);
    let first = first.map(median);
    for (way, (whole, first)) in Way::ALL.iter().zip(whole.iter().zip(&first)) {
        println!("| {} | {:.2} | {:.2} |", way.name(), ms(*whole), ms(*first));
    }
    println!("\n| target | is | |");
    println!("| --- | ---: | --- |");
    let ratio = ms(whole[0]) / ms(whole[1]);
    println!(
        "| start to exit against bare rmcp ≤ 1.5 × | {ratio:.2} × | {} |",
        verdict(ratio <= 1.5)
    );
    let start = ms(first[0]);
    println!("| start to first byte ≤ 10 ms | {start:.2} ms | {} |", verdict(start <= 10.0));
    Ok(())
}

/// How long a program takes from its start to its first byte on a socket.
fn first_byte(way: Way) -> Result<Duration, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/mcp", listener.local_addr()?);
    let began = Instant::now();
    let mut child = way.command(&url)?.spawn()?;
    let (mut socket, _) = listener.accept()?;
    socket.read_exact(&mut [0])?;
    let took = began.elapsed();
    child.kill()?;
    child.wait()?;
    Ok(took)
}

/// The same exchange by a program on the protocol library. It sets up no trust for TLS, which it
/// does not use: the library's default client would pay for it.
fn bare(url: &str) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(rustls::RootCertStore::empty())
            .with_no_client_auth();
        let client =
            reqwest::Client::builder().tls_backend_preconfigured(tls).no_proxy().build()?;
        let config = StreamableHttpClientTransportConfig::with_uri(url);
        let transport = StreamableHttpClientTransport::with_client(client, config);
        let mode = ClientLifecycleMode::Auto {
            preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            legacy_version: None,
        };
        let mut running = rmcp::service::serve_client_with_lifecycle((), transport, mode).await?;
        for tool in running.list_all_tools().await? {
            println!("{}", serde_json::to_string(&tool)?);
        }
        running.close().await?;
        Ok(())
    })
}

/// The same requests as prepared bytes.
fn floor(url: &str) -> Result<(), Failure> {
    let address = url.strip_prefix("http://").and_then(|rest| rest.strip_suffix("/mcp"));
    let address = address.ok_or("not a URL of ours")?;
    let mut socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    let mut answers = BufReader::new(socket.try_clone()?);
    for (id, method) in ["server/discover", "tools/list"].into_iter().enumerate() {
        let meta = serde_json::json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "floor", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = serde_json::json!({
            "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": meta },
        })
        .to_string();
        write!(
            socket,
            "POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n\
             accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
             mcp-method: {method}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )?;
        println!("{}", answer(&mut answers)?);
    }
    Ok(())
}

/// One answer with its length in the head.
fn answer(reader: &mut impl std::io::BufRead) -> Result<String, Failure> {
    let (mut length, mut line) = (0, String::new());
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(String::from_utf8(body)?)
}

/// A shelf with many resources, of which one changes.
#[derive(Clone, Default)]
struct Archive {
    handles: Arc<Mutex<Vec<Handle<Resource>>>>,
}

fn document(index: usize, title: &str) -> Resource {
    Resource::new(format!("archive://{index:05}"), "document").with_title(title)
}

impl Archive {
    fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        let mut transaction = shelf.transaction();
        let handles: Vec<Handle<Resource>> = (0..RESOURCES)
            .map(|index| transaction.add(document(index, "as it was")))
            .collect::<Result<_, _>>()?;
        transaction.commit()?;
        if let Ok(mut kept) = self.handles.lock() {
            *kept = handles;
        }
        Ok(self)
    }
}

impl Source for Archive {
    async fn read(
        &self,
        uri: &tidings_server::ResourceUri,
        _: &tidings_server::Context,
    ) -> Result<tidings_server::Contents, tidings_server::AnswerError> {
        Ok(tidings_server::Contents::text(uri, "what it says"))
    }
}

impl Archive {
    fn rename(&self, index: usize, title: &str) -> Result<(), Failure> {
        let handle = self.handles.lock().map_err(|_| "poisoned")?[index].clone();
        handle.update(document(index, title))?;
        Ok(())
    }
}

async fn library(rounds: usize) -> Result<(), Failure> {
    let archive = Archive::default();
    let mut config = HubConfig::new("archive", "1");
    config.greeting = Greeting::Silent;
    // Every change is a notice of its own: merging is the mirror's task here.
    config.merging = Merging::new(Duration::ZERO, Duration::ZERO);
    let hub = Hub::with_config(config);
    hub.add("archive", |shelf| archive.clone().on(&shelf)).await?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = http::endpoint(listener.local_addr()?);
    let cancel = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let (serving, stop) = (hub.clone(), cancel.clone());
    tasks.spawn(async move { http::serve(&serving, listener, HttpConfig::default(), stop).await });
    println!("\n| in one process | legacy | modern | target |");
    println!("| --- | ---: | ---: | --- |");
    let mut figures = Vec::new();
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        figures.push(figure(&url, &archive, protocol, rounds.div_ceil(10)).await?);
    }
    for ((name, target, legacy), (_, _, modern)) in figures[0].iter().zip(&figures[1]) {
        println!("| {name} | {legacy} | {modern} | {target} |");
    }
    cancel.cancel();
    while tasks.join_next().await.is_some() {}
    Ok(())
}

type Row = (&'static str, &'static str, String);

async fn figure(
    url: &str,
    archive: &Archive,
    protocol: Protocol,
    rounds: usize,
) -> Result<Vec<Row>, Failure> {
    let mut config = Config::new("bench", "1");
    config.reconnect = None;
    config.protocol = protocol;
    config.history = 100_000;
    let target = Target::Http(HttpTarget::new(url));
    let (mirror, mut events) = Mirror::connect_with_events(target, config).await?;
    while events.try_next().is_some() {}

    mirror.subscribe(&["archive://00001"]).await?;
    mirror.read_resource("archive://00001").await?;
    let cached = cached_reads(&mirror).await?;
    let floor = map_lookups();

    let (at_rest, told) = reloads(archive, &mut events, rounds, REST).await?;
    let (at_once, _) = reloads(archive, &mut events, rounds, Duration::ZERO).await?;

    let burst = burst(&mirror, &mut events, archive).await?;
    mirror.close().await;
    Ok(vec![
        ("a cached read, µs", "≤ 2", format!("{:.2}", cached.as_secs_f64() * 1e6)),
        ("floor: a look-up in a locked map, µs", "", format!("{:.2}", floor.as_secs_f64() * 1e6)),
        ("10,000 resources, 1 changed: to the event, ms", "", format!("{:.1}", ms(at_rest))),
        ("the same right after a reload, ms", "", format!("{:.1}", ms(at_once))),
        ("items in each event", "1", format!("{told:.2}")),
        ("1,000 changes in a burst: listings", "≤ 3", burst.to_string()),
    ])
}

/// The median time from a change to its event, and the items in each event. Each change comes this
/// long after the last event.
async fn reloads(
    archive: &Archive,
    events: &mut Events,
    rounds: usize,
    rest: Duration,
) -> Result<(Duration, f64), Failure> {
    while events.try_next().is_some() {}
    let mut times = Vec::new();
    let mut told = 0;
    for round in 0..rounds {
        tokio::time::sleep(rest).await;
        let began = Instant::now();
        archive.rename(round, &format!("{round} of {:?}", Instant::now()))?;
        told += loop {
            if let Some(Event::ResourcesChanged(change)) = events.next().await {
                break change.diff.added.len()
                    + change.diff.removed.len()
                    + change.diff.changed.len();
            }
        };
        times.push(began.elapsed());
    }
    Ok((median(times), told as f64 / rounds as f64))
}

/// How often the mirror lists the resources during a burst of changes.
async fn burst(mirror: &Mirror, events: &mut Events, archive: &Archive) -> Result<usize, Failure> {
    let listings = |mirror: &Mirror| {
        let asks = |message: &tidings_mirror::Message| {
            message.json().unwrap_or_default()["method"] == "resources/list"
        };
        mirror.history().iter().filter(|message| asks(message)).count()
    };
    let pages = RESOURCES.div_ceil(mirror_page(mirror));
    let before = listings(mirror);
    // Different from the titles that an earlier mirror saw.
    let burst_title = format!("burst of {:?}", Instant::now());
    for notice in 0..NOTICES {
        archive.rename(notice, &burst_title)?;
        tokio::task::yield_now().await;
    }
    let last = format!("archive://{:05}", NOTICES - 1);
    let is_current = || {
        let all = mirror.resources();
        let found = all.iter().find(|resource| resource.uri == last);
        found.and_then(|found| found.title.clone()).is_some_and(|title| title == burst_title)
    };
    while !is_current() {
        events.next().await;
    }
    Ok((listings(mirror) - before).div_ceil(pages))
}

/// How many resources the server puts on a page.
fn mirror_page(mirror: &Mirror) -> usize {
    let pages = mirror
        .history()
        .iter()
        .filter_map(|message| {
            message.json().unwrap_or_default()["result"]["resources"].as_array().map(Vec::len)
        })
        .max();
    pages.unwrap_or(RESOURCES)
}

async fn cached_reads(mirror: &Mirror) -> Result<Duration, Failure> {
    let mut turns = Vec::new();
    for _ in 0..11 {
        let began = Instant::now();
        for _ in 0..CACHED_READS {
            black_box(mirror.cached_or_read("archive://00001").await?);
        }
        turns.push(began.elapsed() / CACHED_READS);
    }
    Ok(median(turns))
}

fn map_lookups() -> Duration {
    let key: Arc<str> = "archive://00001".into();
    let map = Mutex::new(HashMap::from([(key, Arc::new(0u64))]));
    let mut turns = Vec::new();
    for _ in 0..11 {
        let began = Instant::now();
        for _ in 0..CACHED_READS {
            let found =
                map.lock().ok().and_then(|map| map.get(black_box("archive://00001")).cloned());
            black_box(found);
        }
        turns.push(began.elapsed() / CACHED_READS);
    }
    median(turns)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
