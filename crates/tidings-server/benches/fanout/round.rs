//! The rounds of a run: servers take turns, each in a fresh process, and medians are kept.

use std::error::Error;

use crate::client::{Figures, Idle, Stalled};
use crate::plan::{Era, Plan};
use crate::process::{self, SERVERS, Server};
use crate::table;

/// Files a process needs besides its sockets.
const SPARE_FILES: usize = 64;

/// One era and number of listeners.
pub(crate) struct Setting {
    pub(crate) era: Era,
    pub(crate) listeners: usize,
    /// Of each server, in the order of [`SERVERS`], one for each round.
    figures: [Vec<Figures>; SERVERS.len()],
    stalled: Vec<Stalled>,
}

impl Setting {
    /// What a server showed in the middle of all rounds.
    pub(crate) fn figure(&self, server: usize, field: fn(&Figures) -> f64) -> f64 {
        median(self.figures[server].iter().map(field))
    }

    /// A server against another, compared within each round: what else the machine did then fell
    /// on both.
    pub(crate) fn ratio(&self, server: usize, other: usize, field: fn(&Figures) -> f64) -> f64 {
        let pairs = self.figures[server].iter().zip(&self.figures[other]);
        median(pairs.map(|(one, other)| field(one) / field(other)))
    }

    /// As [`Self::figure`], for rounds in which some did not read.
    pub(crate) fn stalled(&self, field: fn(&Stalled) -> f64) -> f64 {
        median(self.stalled.iter().map(field))
    }
}

/// Measures everything in the plan and prints the tables.
pub(crate) fn all(plan: &Plan) -> Result<(), Box<dyn Error>> {
    let (mut settings, mut idle) = (Vec::new(), Vec::new());
    for &listeners in &plan.listeners {
        let allowed = process::open_files();
        if listeners + SPARE_FILES > allowed {
            println!("{listeners} listeners left out: only {allowed} open files are allowed");
            continue;
        }
        for &era in &plan.eras {
            if plan.idle {
                for name in SERVERS.into_iter().filter(|name| plan.has(name)) {
                    idle.push((era, listeners, name, one::<Idle>(name, era, listeners, "idle")?));
                }
            } else {
                settings.push(measure(era, listeners, plan)?);
            }
        }
    }
    if plan.idle {
        table::print_idle(&idle);
    } else {
        table::print(&settings, plan.rounds);
    }
    Ok(())
}

fn measure(era: Era, listeners: usize, plan: &Plan) -> Result<Setting, Box<dyn Error>> {
    let rounds = plan.rounds;
    let mut figures: [Vec<Figures>; SERVERS.len()] = Default::default();
    let mut stalled = Vec::new();
    for round in 0..rounds {
        eprintln!("{era}, {listeners} listeners, round {} of {rounds}", round + 1);
        // Whoever comes first in one round comes later in the next.
        for turn in 0..SERVERS.len() {
            let server = (turn + round) % SERVERS.len();
            if !plan.has(SERVERS[server]) {
                continue;
            }
            figures[server].push(one(SERVERS[server], era, listeners, "all")?);
        }
        if plan.has("ours") {
            stalled.push(one::<Stalled>("ours", era, listeners, "stalled")?);
        }
    }
    Ok(Setting { era, listeners, figures, stalled })
}

fn one<T: serde::de::DeserializeOwned>(
    name: &str,
    era: Era,
    listeners: usize,
    kind: &str,
) -> Result<T, Box<dyn Error>> {
    let server = Server::start(name)?;
    let (address, pid) = (server.address.to_string(), server.pid.to_string());
    let order = [address, pid, era.to_string(), listeners.to_string(), kind.to_owned()];
    Ok(serde_json::from_str(&process::client(&order)?)?)
}

/// The one in the middle; not a number if there are none.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    if numbers.is_empty() {
        return f64::NAN;
    }
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    if numbers.len().is_multiple_of(2) {
        f64::midpoint(numbers[middle - 1], numbers[middle])
    } else {
        numbers[middle]
    }
}
