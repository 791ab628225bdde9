//! Which notices come through: after a real change, a claim without one, a burst, and a restart.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::fast::{ONE, TWO};
use crate::gateways::{Gateway, Recipe};
use crate::session::Session;
use crate::{Failure, process, verdict};

/// How long notices are waited for.
const HEARD: Duration = Duration::from_secs(3);
/// The same after the server was killed.
const RETURNED: Duration = Duration::from_secs(12);
const BURST: usize = 200;

/// The notices that one watcher of two resources got.
struct Account {
    change: usize,
    claim: usize,
    burst: usize,
    /// Whether what was read at the last notice of the burst is the last content.
    is_last: bool,
    /// After a restart, of the resource that differs and of the one that does not.
    restart: [usize; 2],
    /// Whether calls are answered after it.
    is_back: bool,
}

struct Watcher {
    session: Session,
    heard: mpsc::Receiver<String>,
}

impl Watcher {
    fn new(gateway: &Gateway) -> Result<Self, Failure> {
        let mut session = Session::open(gateway.port)?;
        let heard = session.listen()?;
        for uri in [ONE, TWO] {
            let subscribed = session.ask("resources/subscribe", &json!({ "uri": uri }));
            subscribed.map_err(|_| "it refuses subscriptions")?;
        }
        Ok(Self { session, heard })
    }

    /// The notices of this time.
    fn count(&self, time: Duration) -> [usize; 2] {
        let (mut counts, until) = ([0; 2], Instant::now() + time);
        while let Ok(uri) = self.heard.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            counts[usize::from(uri != ONE)] += 1;
        }
        counts
    }

    fn after(&mut self, tool: &str, arguments: &Value) -> Result<usize, Failure> {
        self.session.reconnect()?;
        self.session.heard.clear();
        self.session.call(tool, arguments)?;
        Ok(self.count(HEARD).iter().sum::<usize>() + self.session.heard.len())
    }

    fn read(&mut self) -> Result<String, Failure> {
        self.session.reconnect()?;
        let result = self.session.ask("resources/read", &json!({ "uri": ONE }))?;
        Ok(result["contents"][0]["text"].as_str().unwrap_or_default().to_owned())
    }
}

fn account(recipe: &Recipe) -> Result<Account, Failure> {
    let gateway = Gateway::start(recipe, "stdio")?;
    let mut watcher = Watcher::new(&gateway)?;
    // Whatever is said at the beginning is no change.
    watcher.count(HEARD);
    let change = watcher.after("write", &json!({ "uri": ONE, "text": "changed" }))?;
    let claim = watcher.after("claim", &json!({ "uri": ONE }))?;
    let burst = json!({ "uri": ONE, "text": "burst", "times": BURST });
    let burst = watcher.after("write", &burst)?;
    let is_last = watcher.read()? == format!("burst {BURST}");
    for pid in gateway.folder.servers() {
        process::kill(pid, Signal::KILL);
    }
    gateway.folder.write(ONE, "changed while it was away")?;
    let restart = watcher.count(RETURNED);
    let is_back = watcher.session.reconnect().is_ok() && watcher.session.time_calls(1).is_ok();
    Ok(Account { change, claim, burst, is_last, restart, is_back })
}

/// Measures all gateways, side by side since they wait most of the time, and prints the table.
pub(crate) fn measure(recipes: &[Recipe]) -> Result<(), Failure> {
    let accounts: Vec<Result<Account, Failure>> = std::thread::scope(|scope| {
        let tasks: Vec<_> = recipes.iter().map(|recipe| scope.spawn(|| account(recipe))).collect();
        tasks.into_iter().map(|task| task.join().expect("a watcher does not panic")).collect()
    });
    println!("\nNotices that one watcher of two resources gets.\n");
    println!(
        "| | a change | a claim without one | {BURST} changes at once | last content read | server killed: of the resource that differs | of the one that does not | calls are answered again |"
    );
    println!("| --- | ---: | ---: | ---: | --- | ---: | ---: | --- |");
    let word = |is: bool| if is { "yes" } else { "no" };
    for (recipe, account) in recipes.iter().zip(&accounts) {
        match account {
            Ok(it) => println!(
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                recipe.name,
                it.change,
                it.claim,
                it.burst,
                word(it.is_last),
                it.restart[0],
                it.restart[1],
                word(it.is_back)
            ),
            Err(error) => println!("| {} | {error} | | | | | | |", recipe.name),
        }
    }
    let ours = accounts.into_iter().next().ok_or("there is no gateway")??;
    println!("\n| target | is | |\n| --- | ---: | --- |");
    let rows = [
        ("a change = 1", ours.change, ours.change == 1),
        ("a claim without one = 0", ours.claim, ours.claim == 0),
        ("200 changes at once: 1 or 2", ours.burst, (1..=2).contains(&ours.burst) && ours.is_last),
        ("restart, what differs = 1", ours.restart[0], ours.restart[0] == 1 && ours.is_back),
        ("restart, what does not = 0", ours.restart[1], ours.restart[1] == 0),
    ];
    for (target, is, is_met) in rows {
        println!("| {target} | {is} | {} |", verdict(is_met));
    }
    Ok(())
}
