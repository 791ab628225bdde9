//! Benchmark of a workspace: storing artifacts, beside its floor, and reads when it is full.
//!
//! `cargo bench -p tidings-workspace --bench workspace -- [--quick]`. The floor is the same rows in
//! the same tables, written with bare `rusqlite` in the same durability mode, a transaction each,
//! by one thread; it checks nothing, numbers nothing and tells nobody.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use tidings_server::{Hub, stdio};
use tidings_workspace::{ArtifactList, Config, Draft, Workspace};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines};
use tokio::io::{ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Artifacts of each round, and rounds; quick: fewer.
const EACH: usize = 2_000;
const ROUNDS: usize = 5;
const QUICK: (usize, usize) = (300, 3);
/// How many writers are there at once.
const WRITERS: [usize; 3] = [1, 4, 16];
/// The share of the floor's speed that is enough, and with whom watching which is.
const TARGET: f64 = 0.6;
const WATCHERS: [(Watchers, f64); 3] =
    [(Watchers::None, 0.6), (Watchers::OneOfMany, 0.4), (Watchers::Many, 0.4)];
/// How many addresses or clients are many.
const MANY: usize = 1_000;
/// How many artifacts a full workspace has.
const FULL: i64 = 1_000_000;
const QUICK_FULL: i64 = 100_000;
/// How long the newest may take to be read, and a full workspace to be opened.
const RECENT_US: f64 = 100.0;
const OPEN_MS: f64 = 200.0;
/// How many artifacts a small workspace has, and how many MB more a full one may take.
const SMALL: i64 = 10_000;
const GROWN_MB: f64 = 16.0;
/// Asks this program, as a process of its own, to serve a workspace and say how large it is.
const RESIDENT: &str = "--resident";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return;
    }
    if let Some(place) = arguments.iter().position(|argument| argument == RESIDENT) {
        println!("{}", serve_and_weigh(Path::new(&arguments[place + 1])));
        return;
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let (each, rounds) = if quick { QUICK } else { (EACH, ROUNDS) };
    println!("\nArtifacts a second, median of {rounds} rounds of {each}.\n");
    println!("| writers | ours | floor | ours : floor | |");
    println!("| ---: | ---: | ---: | ---: | --- |");
    for writers in WRITERS {
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        // They take turns, so that whatever else the machine does falls on both.
        for _ in 0..rounds {
            ours.push(create(writers, each));
            floor.push(insert(each));
        }
        let (ours, floor) = (median(ours), median(floor));
        let verdict = verdict(ours / floor >= TARGET);
        println!("| {writers} | {ours:.0} | {floor:.0} | {:.2} | {verdict} |", ours / floor);
    }
    println!("\nCalls of `create_artifact` a second, sixteen at once, through a hub.\n");
    println!("| watched by | ours | floor | ours : floor | |");
    println!("| --- | ---: | ---: | ---: | --- |");
    for (watchers, target) in WATCHERS {
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            ours.push(served(watchers, each));
            floor.push(insert(each));
        }
        let (ours, floor) = (median(ours), median(floor));
        let verdict = verdict(ours / floor >= target);
        let name = watchers.name();
        println!("| {name} | {ours:.0} | {floor:.0} | {:.2} | {verdict} |", ours / floor);
    }
    full(if quick { QUICK_FULL } else { FULL });
}

/// What a full workspace takes to be opened and read.
fn full(count: i64) {
    let directory = tempfile::tempdir().expect("there is room");
    let path = directory.path();
    let hash = prepared(path);
    fill(path, &hash, count);
    let opened: Vec<f64> = (0..5)
        .map(|_| {
            let start = Instant::now();
            drop(Workspace::open(Config::new(path)).expect("it is a workspace"));
            start.elapsed().as_secs_f64() * 1e3
        })
        .collect();
    let workspace = Workspace::open(Config::new(path)).expect("it is a workspace");
    let time = |work: &dyn Fn()| {
        let times = (0..1_000).map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64() * 1e6
        });
        median(times.collect())
    };
    let list = |list: &ArtifactList| {
        drop(workspace.list(list, None, 10).expect("it can be read"));
    };
    println!("\nWith {count} artifacts, medians.\n");
    println!("| what | time | |");
    println!("| --- | ---: | --- |");
    let opened = median(opened);
    println!("| open | {opened:.1} ms | {} |", verdict(opened <= OPEN_MS));
    let recent = time(&|| list(&ArtifactList::Recent));
    println!("| recent | {recent:.0} µs | {} |", verdict(recent <= RECENT_US));
    let tag = time(&|| list(&ArtifactList::Tag("type:text".to_owned())));
    println!("| by-tag, 10 | {tag:.0} µs | |");
    let summary = time(&|| drop(workspace.summary().expect("it can be read")));
    println!("| summary | {summary:.0} µs | |");
    drop(workspace);
    let (small, large) = (resident_of_small(), resident(path));
    println!("\nMemory of a process that serves it, after many reads.\n");
    println!("| artifacts | MB | |");
    println!("| ---: | ---: | --- |");
    println!("| {SMALL} | {small:.1} | |");
    let verdict = if large - small <= GROWN_MB { "flat" } else { "GROWS" };
    println!("| {count} | {large:.1} | {verdict} |");
}

fn resident_of_small() -> f64 {
    let directory = tempfile::tempdir().expect("there is room");
    let hash = prepared(directory.path());
    fill(directory.path(), &hash, SMALL);
    resident(directory.path())
}

/// How many MB a process takes that serves this workspace.
fn resident(path: &Path) -> f64 {
    let program = std::env::current_exe().expect("it runs");
    let mut command = Command::new(program);
    let output = command.args(["--bench", RESIDENT]).arg(path).output().expect("it starts");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("it says a number")
}

/// Serves a workspace, reads of it what many would, and gives the MB this process takes.
fn serve_and_weigh(path: &Path) -> f64 {
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    runtime.block_on(async {
        let workspace = Workspace::open(Config::new(path)).expect("it is a workspace");
        let hub = Hub::new("bench", "1");
        hub.add("workspace", |shelf| Ok(workspace.on(shelf))).await.expect("it can be served");
        let mut client = Client::of(&hub).await;
        for uri in ["artifacts://recent", "artifacts://summary", "artifacts://by-tag/type:text"] {
            client.ask("resources/subscribe", &json!({ "uri": uri })).await;
            for _ in 0..300 {
                client.ask("resources/read", &json!({ "uri": uri })).await;
            }
        }
        let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
        let kilobytes: f64 = kilobytes.expect("it is there").parse().expect("it is a number");
        kilobytes / 1e3
    })
}

fn verdict(is_enough: bool) -> &'static str {
    if is_enough { "fast enough" } else { "TOO SLOW" }
}

/// An empty workspace with one blob; gives its hash.
fn prepared(path: &Path) -> String {
    let workspace = Workspace::open(Config::new(path)).expect("there is room");
    workspace.put_blob(b"some text", None, "bench").expect("there is room").hash
}

/// Artifacts a second that so many writers make.
fn create(writers: usize, each: usize) -> f64 {
    let directory = tempfile::tempdir().expect("there is room");
    let hash = prepared(directory.path());
    let workspace = Workspace::open(Config::new(directory.path())).expect("there is room");
    let start = Instant::now();
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let (workspace, hash) = (&workspace, &hash);
            scope.spawn(move || {
                for number in 0..each / writers {
                    let mut draft = Draft::new(format!("artifact {number}"), hash, "bench");
                    draft.tags = vec!["type:text".to_owned(), format!("writer:{writer}")];
                    workspace.create(draft, "bench").expect("there is room");
                }
            });
        }
    });
    (each / writers * writers) as f64 / start.elapsed().as_secs_f64()
}

/// Who is told while artifacts are made.
#[derive(Clone, Copy)]
enum Watchers {
    None,
    /// One client that watches a thousand addresses.
    OneOfMany,
    /// A thousand clients that watch an address each, many of them the same.
    Many,
}

impl Watchers {
    fn name(self) -> &'static str {
        match self {
            Self::None => "nobody",
            Self::OneOfMany => "1 client, 1,000 addresses",
            Self::Many => "1,000 clients, 18 addresses",
        }
    }

    /// Lets them watch, and hear whatever comes.
    async fn gather(self, hub: &Hub) -> JoinSet<()> {
        let mut hearing = JoinSet::new();
        let mut hear = |mut client: Client| {
            hearing.spawn(async move { while client.heard().await {} });
        };
        match self {
            Self::None => {}
            Self::OneOfMany => {
                let mut client = Client::of(hub).await;
                for number in 0..MANY {
                    let uri = address(number);
                    let part =
                        if number < 18 { uri } else { format!("{uri}?limit={}", number / 16) };
                    client.ask("resources/subscribe", &json!({ "uri": part })).await;
                }
                hear(client);
            }
            Self::Many => {
                for number in 0..MANY {
                    let mut client = Client::of(hub).await;
                    let uri = address(number % 18);
                    client.ask("resources/subscribe", &json!({ "uri": uri })).await;
                    hear(client);
                }
            }
        }
        hearing
    }
}

fn address(number: usize) -> String {
    match number {
        0 => "artifacts://recent".to_owned(),
        1 => "artifacts://summary".to_owned(),
        _ => format!("artifacts://by-tag/writer:{}", number % 16),
    }
}

/// Calls a second that a served workspace answers, while it is watched.
fn served(watchers: Watchers, each: usize) -> f64 {
    let runtime = tokio::runtime::Runtime::new().expect("there are threads");
    runtime.block_on(async {
        let directory = tempfile::tempdir().expect("there is room");
        let hash = prepared(directory.path());
        let workspace = Workspace::open(Config::new(directory.path())).expect("there is room");
        let hub = Hub::new("bench", "1");
        hub.add("workspace", |shelf| Ok(workspace.on(shelf))).await.expect("it can be served");
        let _hearing = watchers.gather(&hub).await;
        let start = Instant::now();
        let mut writers = JoinSet::new();
        for writer in 0..16 {
            let (mut client, hash) = (Client::of(&hub).await, hash.clone());
            writers.spawn(async move {
                for number in 0..each / 16 {
                    let arguments = json!({
                        "title": format!("artifact {number}"), "hash": hash,
                        "tags": ["type:text", format!("writer:{writer}")],
                    });
                    let params = json!({ "name": "create_artifact", "arguments": arguments });
                    client.ask("tools/call", &params).await;
                }
            });
        }
        while writers.join_next().await.is_some() {}
        let rate = (each / 16 * 16) as f64 / start.elapsed().as_secs_f64();
        hub.shutdown().await;
        rate
    })
}

/// A client's side of a pipe.
struct Client {
    input: WriteHalf<DuplexStream>,
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    next: u64,
    _server: JoinSet<()>,
}

impl Client {
    async fn of(hub: &Hub) -> Self {
        let (near, far) = tokio::io::duplex(1 << 20);
        let (input, output) = tokio::io::split(far);
        let (mut server, hub) = (JoinSet::new(), hub.clone());
        server.spawn(async move {
            drop(stdio::serve(&hub, input, output, CancellationToken::new()).await);
        });
        let (output, input) = tokio::io::split(near);
        let lines = BufReader::new(output).lines();
        let mut client = Self { input, lines, next: 0, _server: server };
        let info = json!({ "name": "bench", "version": "1" });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info });
        client.ask("initialize", &hello).await;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        client
    }

    async fn send(&mut self, message: &Value) {
        self.input.write_all(format!("{message}\n").as_bytes()).await.expect("it is served");
    }

    /// Whether there is one more line.
    async fn heard(&mut self) -> bool {
        matches!(self.lines.next_line().await, Ok(Some(_)))
    }

    async fn ask(&mut self, method: &str, params: &Value) {
        self.next += 1;
        let id = self.next;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&request).await;
        while let Ok(Some(line)) = self.lines.next_line().await {
            let message: Value = serde_json::from_str(&line).expect("it is JSON");
            if message["id"] == id {
                assert!(message.get("result").is_some(), "{message}");
                assert_ne!(message["result"]["isError"], true, "{message}");
                return;
            }
        }
    }
}

/// Rows a second, with nothing around them.
fn insert(each: usize) -> f64 {
    let directory = tempfile::tempdir().expect("there is room");
    let hash = prepared(directory.path());
    let connection = open(directory.path(), "FULL");
    let start = Instant::now();
    for number in 0..each {
        connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
        rows(&connection, &hash, number).expect("there is room");
        connection.execute_batch("COMMIT").expect("there is room");
    }
    each as f64 / start.elapsed().as_secs_f64()
}

/// The rows of one artifact.
fn rows(connection: &Connection, hash: &str, number: usize) -> rusqlite::Result<()> {
    let (id, title) = (uuid::Uuid::now_v7().to_string(), format!("artifact {number}"));
    let tags = r#"["type:text","writer:0"]"#;
    let change = format!(
        r#"{{"type":"artifact.created","artifact":"{id}","title":"{title}","hash":"{hash}"}}"#
    );
    connection
        .prepare_cached(
            "INSERT INTO events (time, kind, actor, change) VALUES (0, 'artifact.created', 'b', ?1)",
        )?
        .execute([change])?;
    connection
        .prepare_cached(
            "INSERT INTO artifacts (id, title, hash, mime, size, creator, created, tags, parents,
                metadata) VALUES (?1, ?2, ?3, 'text/plain', 9, 'bench', 0, ?4, '[]', '{}')",
        )?
        .execute(params![id, title, hash, tags])?;
    let key = connection.last_insert_rowid();
    for tag in ["type:text", "writer:0"] {
        connection
            .prepare_cached("INSERT INTO tagged VALUES (?1, ?2)")?
            .execute(params![tag, key])?;
    }
    for (kind, name) in [
        ("artifacts", ""),
        ("creator", "bench"),
        ("tag", "type:text"),
        ("tag", "writer:0"),
        ("category", "type"),
        ("category", "writer"),
    ] {
        connection
            .prepare_cached(
                "INSERT INTO counts VALUES (?1, ?2, 1)
                 ON CONFLICT (kind, name) DO UPDATE SET count = count + 1",
            )?
            .execute([kind, name])?;
    }
    connection
        .prepare_cached("INSERT INTO words (rowid, title, body) VALUES (?1, ?2, ?3)")?
        .execute(params![key, title, "some text"])?;
    Ok(())
}

/// Fills a workspace in one go, without waiting for the disk.
fn fill(path: &Path, hash: &str, count: i64) {
    let connection = open(path, "OFF");
    let numbers = "WITH RECURSIVE numbers(n) AS
        (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?1)";
    let artifacts = format!(
        "{numbers} INSERT INTO artifacts (id, title, hash, mime, size, creator, created, tags,
            parents, metadata)
         SELECT printf('%032d', n), 'artifact ' || n, ?2, 'text/plain', 9, 'bench', n,
            '[\"type:text\"]', '[]', '{{}}' FROM numbers"
    );
    connection.execute(&artifacts, params![count, hash]).expect("there is room");
    connection
        .execute_batch(
            "INSERT INTO tagged SELECT 'type:text', key FROM artifacts;
             INSERT INTO counts SELECT 'artifacts', '', count(*) FROM artifacts;
             INSERT INTO counts SELECT 'tag', 'type:text', count(*) FROM artifacts;
             INSERT INTO counts SELECT 'category', 'type', count(*) FROM artifacts;
             INSERT INTO counts SELECT 'creator', 'bench', count(*) FROM artifacts;
             PRAGMA wal_checkpoint(TRUNCATE)",
        )
        .expect("there is room");
}

fn open(path: &Path, synchronous: &str) -> Connection {
    let file = path.join("workspace.sqlite");
    let connection = Connection::open(file).expect("it is a workspace");
    connection.pragma_update(None, "synchronous", synchronous).expect("it can be set");
    connection.set_prepared_statement_cache_capacity(32);
    connection
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
