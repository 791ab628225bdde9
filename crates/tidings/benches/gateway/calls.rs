//! What a call costs: every gateway in its turn, one client at a time and many at once.

use std::sync::Barrier;

use tempfile::TempDir;

use crate::fast::Folder;
use crate::gateways::{self, Gateway, Recipe};
use crate::session::Session;
use crate::{Failure, median, verdict};

/// Clients at once.
const MANY: usize = 32;
/// Calls before those that are timed, in each turn.
const WARM: usize = 20;
/// What a call may take longer through our gateway than without one, µs.
const TARGET: f64 = 150.0;

/// How much is measured.
pub(crate) struct Plan {
    rounds: usize,
    /// Calls in a turn, of one client and of each of many.
    calls: [usize; 2],
}

impl Plan {
    pub(crate) fn new(is_quick: bool) -> Self {
        if is_quick {
            return Self { rounds: 3, calls: [100, 10] };
        }
        Self { rounds: 5, calls: [300, 20] }
    }
}

/// The server behind the gateways.
pub(crate) enum Behind {
    Fast,
    Everything(Vec<String>),
}

impl Behind {
    fn name(&self) -> &'static str {
        match self {
            Self::Fast => "a fast server",
            Self::Everything(_) => "`server-everything`",
        }
    }

    /// The server over HTTP, without a gateway.
    fn bare(&self) -> Result<Gateway, Failure> {
        let folder = TempDir::new()?;
        let words = match self {
            Self::Fast => gateways::fast("{port}", &Folder(folder.path().into()))?,
            Self::Everything(words) => [&words[..], &["streamableHttp".to_owned()]].concat(),
        };
        Gateway::before(&gateways::bare(words), &[], folder)
    }

    fn behind(&self, recipe: &Recipe) -> Result<Gateway, Failure> {
        match self {
            Self::Fast => Gateway::start(recipe, "stdio"),
            Self::Everything(words) => {
                let words = [&words[..], &["stdio".to_owned()]].concat();
                Gateway::before(recipe, &words, TempDir::new()?)
            }
        }
    }
}

/// One gateway with its clients.
struct Contender {
    gateway: Gateway,
    clients: Vec<Session>,
    /// For one client and for many: p50 and p99 of each round, µs.
    times: [Vec<[f64; 2]>; 2],
}

impl Contender {
    fn new(gateway: Gateway) -> Result<Self, Failure> {
        let clients = (0..MANY).map(|_| Session::open(gateway.port)).collect::<Result<_, _>>()?;
        Ok(Self { gateway, clients, times: Default::default() })
    }

    fn turn(&mut self, plan: &Plan) -> Result<(), Failure> {
        for client in &mut self.clients {
            client.reconnect()?;
        }
        let first = &mut self.clients[0];
        first.time_calls(WARM)?;
        self.times[0].push(quantiles(first.time_calls(plan.calls[0])?));
        let (start, calls) = (Barrier::new(MANY), plan.calls[1]);
        let work = |client: &mut Session| {
            start.wait();
            client.time_calls(calls)
        };
        let results: Vec<Result<Vec<f64>, Failure>> = std::thread::scope(|scope| {
            let clients = self.clients.iter_mut();
            let tasks: Vec<_> = clients.map(|client| scope.spawn(move || work(client))).collect();
            tasks.into_iter().map(|task| task.join().expect("a client does not panic")).collect()
        });
        let times = results.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        self.times[1].push(quantiles(times));
        Ok(())
    }

    /// The median over all rounds: for one client or many, p50 or p99.
    fn time(&self, clients: usize, quantile: usize) -> f64 {
        median(self.times[clients].iter().map(|round| round[quantile]).collect())
    }

    /// The same above another, compared within each round.
    fn added(&self, to: &Self, clients: usize, quantile: usize) -> f64 {
        let pairs = self.times[clients].iter().zip(&to.times[clients]);
        median(pairs.map(|(one, other)| one[quantile] - other[quantile]).collect())
    }
}

/// p50 and p99.
fn quantiles(mut times: Vec<f64>) -> [f64; 2] {
    times.sort_by(f64::total_cmp);
    [50, 99].map(|part| times[times.len() * part / 100])
}

/// Measures all gateways in front of one server and prints the table.
pub(crate) fn measure(recipes: &[Recipe], behind: &Behind, plan: &Plan) -> Result<(), Failure> {
    let mut contenders = vec![Contender::new(behind.bare()?)?];
    for (at, recipe) in recipes.iter().enumerate() {
        match behind.behind(recipe).and_then(Contender::new) {
            Ok(contender) => contenders.push(contender),
            Err(error) if at == 0 => return Err(format!("ours did not start: {error}").into()),
            Err(error) => eprintln!("{} is left out: {error}", recipe.name),
        }
    }
    for round in 0..plan.rounds {
        eprintln!("calls of {}, round {} of {}", behind.name(), round + 1, plan.rounds);
        // Whoever comes first in one round comes later in the next.
        for turn in 0..contenders.len() {
            let at = (turn + round) % contenders.len();
            contenders[at].turn(plan)?;
        }
    }
    print(&contenders, behind, plan);
    Ok(())
}

fn print(contenders: &[Contender], behind: &Behind, plan: &Plan) {
    let (name, rounds) = (behind.name(), plan.rounds);
    println!("\nA call of {name}, µs, medians of {rounds} rounds; `+` is added to no gateway.\n");
    println!(
        "| | 1 client, p50 | p99 | + p50 | + p99 | {MANY} clients, p50 | p99 | + p50 | + p99 |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
    let bare = &contenders[0];
    for contender in contenders {
        print!("| {} |", contender.gateway.name);
        for clients in 0..2 {
            for quantile in 0..2 {
                print!(" {:.0} |", contender.time(clients, quantile));
            }
            for quantile in 0..2 {
                print!(" {:.0} |", contender.added(bare, clients, quantile));
            }
        }
        println!();
    }
    println!("\n| target | is | |\n| --- | ---: | --- |");
    let ours = &contenders[1];
    let added = ours.added(bare, 0, 0);
    println!(
        "| p50 added, 1 client ≤ {TARGET} µs | {added:.0} µs | {} |",
        verdict(added <= TARGET)
    );
    for (clients, count) in [1, MANY].into_iter().enumerate() {
        let added: Vec<_> = contenders.iter().map(|it| it.added(bare, clients, 0)).collect();
        let best = added[2..].iter().copied().fold(f64::INFINITY, f64::min);
        println!(
            "| p50 added, clients: {count}, less than every other's | {:.0} µs; the next {best:.0} µs | {} |",
            added[1],
            verdict(added[1] < best)
        );
    }
}
