//! What watchers cost the server behind our gateway: requests in a minute with one and with many.

use std::io::BufReader;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fast::ONE;
use crate::gateways::{Gateway, Recipe};
use crate::session::Session;
use crate::{Failure, verdict};

const WATCHERS: [usize; 2] = [1, 1_000];
const MINUTE: Duration = Duration::from_mins(1);

/// Requests that the server got in a minute from the first watcher on.
fn requests(recipe: &Recipe, how: &str, watchers: usize) -> Result<usize, Failure> {
    let gateway = Gateway::start(recipe, how)?;
    let before = gateway.folder.count("");
    let began = Instant::now();
    let mut all: Vec<(Session, BufReader<TcpStream>)> = Vec::new();
    for _ in 0..watchers {
        let mut session = Session::open(gateway.port)?;
        let stream = session.open_stream()?;
        session.ask("resources/subscribe", &json!({ "uri": ONE }))?;
        all.push((session, stream));
    }
    std::thread::sleep(MINUTE.saturating_sub(began.elapsed()));
    Ok(gateway.folder.count("") - before)
}

/// Measures servers that announce changes or are polled, side by side, and prints the table.
pub(crate) fn measure(ours: &Recipe) -> Result<(), Failure> {
    let ways = [
        ("it announces changes", "stdio", ""),
        ("it is polled every 7 s", "silent", "poll = \"7s\""),
        ("it is polled adaptively", "silent", ""),
    ];
    let counts: Vec<Result<usize, Failure>> = std::thread::scope(|scope| {
        let tasks: Vec<_> = ways
            .iter()
            .flat_map(|(_, how, settings)| WATCHERS.map(|count| (ours.with(settings), *how, count)))
            .map(|(ours, how, watchers)| scope.spawn(move || requests(&ours, how, watchers)))
            .collect();
        tasks.into_iter().map(|task| task.join().expect("a watcher does not panic")).collect()
    });
    let counts = counts.into_iter().collect::<Result<Vec<_>, _>>()?;
    println!("\nRequests at the server in a minute, with watchers of one resource.\n");
    println!("| | 1 watcher | 1,000 watchers | equal |\n| --- | ---: | ---: | --- |");
    for ((name, ..), pair) in ways.iter().zip(counts.chunks(2)) {
        // The time between polls has a random part, unless it was set.
        let tolerance = usize::from(*name == ways[2].0);
        let is_equal = pair[0].abs_diff(pair[1]) <= tolerance;
        println!("| {name} | {} | {} | {} |", pair[0], pair[1], verdict(is_equal));
    }
    Ok(())
}
