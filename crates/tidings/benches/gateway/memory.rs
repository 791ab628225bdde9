//! What clients cost: memory and processes of each gateway with 1, 10 and 100 clients.

use std::time::Duration;

use serde_json::json;

use crate::fast::ONE;
use crate::gateways::{Gateway, Recipe};
use crate::session::Session;
use crate::{Failure, process, verdict};

const CLIENTS: [usize; 3] = [1, 10, 100];
/// Time to come to rest.
const REST: Duration = Duration::from_secs(1);
/// Memory of a client of ours, KiB.
const TARGET: f64 = 30.0;

/// What a gateway holds with so many clients.
struct Holding {
    /// Memory of the gateway and all that it started, KiB.
    kib: f64,
    /// Processes that it started.
    started: usize,
    /// How often the server was asked to announce one resource.
    subscribed: usize,
}

fn holdings(recipe: &Recipe) -> Result<Vec<Holding>, Failure> {
    let gateway = Gateway::start(recipe, "stdio")?;
    let (mut clients, mut streams) = (Vec::new(), Vec::new());
    let mut holdings = Vec::new();
    for count in CLIENTS {
        while clients.len() < count {
            let mut client = Session::open(gateway.port)?;
            // One that takes no subscriptions serves the rest.
            let _ = client.ask("resources/subscribe", &json!({ "uri": ONE }));
            client.time_calls(1)?;
            streams.push(client.open_stream()?);
            clients.push(client);
        }
        std::thread::sleep(REST);
        let tree = process::tree(gateway.pid());
        holdings.push(Holding {
            kib: tree.iter().filter_map(|pid| process::proportional_kib(*pid)).sum(),
            started: tree.len() - 1,
            subscribed: gateway.folder.count("resources/subscribe"),
        });
    }
    Ok(holdings)
}

/// Measures all gateways, one after the other, and prints the table.
pub(crate) fn measure(recipes: &[Recipe]) -> Result<(), Failure> {
    println!(
        "\nMemory (PSS) of a gateway and all that it started, and subscriptions at the server.\n"
    );
    println!(
        "| | MiB, 1 client | 10 | 100 | KiB a client | processes started, 1 client | 10 | 100 | subscriptions, 100 |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let mut ours = None;
    for (at, recipe) in recipes.iter().enumerate() {
        let holdings = match holdings(recipe) {
            Ok(holdings) => holdings,
            Err(error) if at == 0 => return Err(format!("ours did not start: {error}").into()),
            Err(error) => {
                eprintln!("{} is left out: {error}", recipe.name);
                continue;
            }
        };
        let [one, ten, hundred] = &holdings[..] else { continue };
        let each = (hundred.kib - ten.kib) / (CLIENTS[2] - CLIENTS[1]) as f64;
        println!(
            "| {} | {:.1} | {:.1} | {:.1} | {each:.0} | {} | {} | {} | {} |",
            recipe.name,
            one.kib / 1024.0,
            ten.kib / 1024.0,
            hundred.kib / 1024.0,
            one.started,
            ten.started,
            hundred.started,
            hundred.subscribed
        );
        ours = ours.or(Some((each, hundred.started, hundred.subscribed)));
    }
    let (each, started, subscribed) = ours.ok_or("ours did not start")?;
    println!("\n| target | is | |\n| --- | ---: | --- |");
    println!("| KiB a client ≤ {TARGET} | {each:.1} | {} |", verdict(each <= TARGET));
    println!("| processes started = 1 | {started} | {} |", verdict(started == 1));
    println!("| subscriptions = 1 | {subscribed} | {} |", verdict(subscribed == 1));
    Ok(())
}
