//! Benchmark of a thousand feeds: the start, the first answers, memory.
//!
//! `cargo bench -p tidings --bench feeds -- [--quick]`. The program is measured from outside, over
//! stdio. Of the feeds on the web a tenth is where nobody answers, and the rest is at a server that
//! takes what it is asked and says nothing. The floor of a start is the same program that only says
//! its version.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod support;

use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use self::support::{Failure, Server, bare_start, median};

const FEEDS: usize = 1_000;
const ITEMS: usize = 50;
/// Over how many servers the feeds are spread.
const HOSTS: usize = 100;

fn main() -> Result<(), Failure> {
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !std::env::args().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let quick = std::env::args().any(|argument| argument == "--quick");
    println!("| 1,000 feeds | ours | floor | allowed | |\n|---|---|---|---|---|");
    starts(if quick { 7 } else { 31 })?;
    memory_of_files()?;
    memory_over_http()
}

/// From the start of the process to the answer to its first request.
fn starts(rounds: usize) -> Result<(), Failure> {
    let here = tempfile::tempdir()?;
    // It is connected to, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let dead = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut list = "<opml version=\"2.0\"><body>".to_owned();
    for number in 0..FEEDS {
        let host = if number % 10 == 0 { dead } else { silent.local_addr()? };
        write!(list, "<outline text=\"{number}\" xmlUrl=\"http://{host}/{number}\"/>")?;
    }
    let file = here.path().join("list.opml");
    std::fs::write(&file, list + "</body></opml>")?;
    let [mut first, mut again, mut floors] = [const { Vec::new() }; 3];
    for round in 0..rounds {
        let data = here.path().join(round.to_string());
        let arguments =
            [&"--opml".into(), &file, &"--allow-private".into(), &"--data".into(), &data];
        for times in [&mut first, &mut again] {
            let begun = Instant::now();
            let mut server = Server::start(arguments)?;
            times.push(begun.elapsed());
            let all = read(&mut server, "feeds://all")?;
            assert_eq!(all.as_array().map(Vec::len), Some(FEEDS));
            server.end()?;
        }
        floors.push(bare_start()?);
    }
    let floor = median(&mut floors);
    for (what, mut times) in
        [("`initialize`, nothing kept yet", first), ("`initialize`, after a restart", again)]
    {
        let ours = median(&mut times);
        let verdict = if ours <= Duration::from_millis(100) { "met" } else { "MISSED" };
        let (ours, floor) = (ours.as_secs_f64() * 1000.0, floor.as_secs_f64() * 1000.0);
        println!("| {what} | {ours:.1} ms | {floor:.1} ms | ≤ 100 ms | {verdict} |");
    }
    Ok(())
}

/// A thousand feeds of fifty items each, in files: right after all were taken in, and in a process
/// that found them kept.
fn memory_of_files() -> Result<(), Failure> {
    let here = tempfile::tempdir()?;
    let data = here.path().join("data");
    let mut arguments: Vec<PathBuf> = vec!["--data".into(), data];
    for number in 0..FEEDS {
        let file = here.path().join(format!("{number}.xml"));
        std::fs::write(&file, document(number))?;
        arguments.extend(["--feed".into(), file]);
    }
    resident("files", &arguments)
}

/// The same at a hundred servers on this machine, which are asked as all servers are: one request
/// at a time, a second apart.
fn memory_over_http() -> Result<(), Failure> {
    let here = tempfile::tempdir()?;
    let mut list = "<opml version=\"2.0\"><body>".to_owned();
    for host in 0..HOSTS {
        let address = serve(host)?;
        for number in (host..FEEDS).step_by(HOSTS) {
            write!(list, "<outline text=\"{number}\" xmlUrl=\"http://{address}/{number}\"/>")?;
        }
    }
    let file = here.path().join("list.opml");
    std::fs::write(&file, list + "</body></opml>")?;
    let data = here.path().join("data");
    let arguments = ["--opml".into(), file, "--allow-private".into(), "--data".into(), data];
    resident("HTTP", &arguments)
}

/// A server of feeds on an address of its own. It lives as long as the benchmark.
fn serve(host: usize) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind(format!("127.0.1.{}:0", host + 1))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A client that goes away is nobody's fault.
            let _ = answer(stream);
        }
    });
    Ok(address)
}

fn answer(mut stream: TcpStream) -> Result<(), Failure> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().ok_or("no request")??;
    let number = first.split(['/', ' ']).nth(2).ok_or("no number")?.parse()?;
    while !lines.next().ok_or("no end")??.is_empty() {}
    let body = document(number);
    let length = body.len();
    write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}")?;
    Ok(())
}

fn resident(from: &str, arguments: &[PathBuf]) -> Result<(), Failure> {
    for what in ["all taken in at once", "found kept"] {
        let mut server = Server::start(arguments)?;
        server.ask("resources/subscribe", &json!({ "uri": "feeds://all" }))?;
        let all = loop {
            let all = read(&mut server, "feeds://all")?;
            let feeds = all.as_array().ok_or("no list")?.clone();
            if feeds.iter().all(|feed| feed["itemCount"] == ITEMS) {
                break feeds;
            }
            server.hear("notifications/resources/updated")?;
        };
        for feed in &all {
            let id = feed["id"].as_str().ok_or("no id")?;
            let items = read(&mut server, &format!("feeds://feed/{id}/items"))?;
            assert_eq!(items.as_array().map(Vec::len), Some(ITEMS));
        }
        let resident = server.resident()? as f64 / 1000.0;
        let verdict = if resident <= 60.0 { "met" } else { "MISSED" };
        println!(
            "| resident memory, × 50 items, {from}, {what}, all read | {resident:.1} MB | | ≤ 60 MB | {verdict} |"
        );
        server.end()?;
    }
    Ok(())
}

fn document(number: usize) -> String {
    let mut text = format!(
        "<rss version=\"2.0\"><channel><title>News {number}</title><link>http://a.example/</link>"
    );
    for item in (0..ITEMS).rev() {
        let words = format!("Words of {number} that say nothing in particular. ").repeat(10);
        let _ = write!(
            text,
            "<item><title>Item {item} of {number}</title><guid>urn:{number}:{item}</guid>\
             <link>http://a.example/{number}/{item}</link><category>news</category>\
             <pubDate>01 Jan 2024 12:{item:02}:00 GMT</pubDate>\
             <description>{words}</description></item>"
        );
    }
    text + "</channel></rss>"
}

fn read(server: &mut Server, uri: &str) -> Result<Value, Failure> {
    let answer = server.ask("resources/read", &json!({ "uri": uri }))?;
    Ok(serde_json::from_str(answer["contents"][0]["text"].as_str().ok_or("no text")?)?)
}
