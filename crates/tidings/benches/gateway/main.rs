//! Our gateway beside a bare server and the gateways of others: what a call costs, what a client
//! costs, and which notices come through.
//!
//! `cargo bench -p tidings --bench gateway -- [--quick]
//! [--only calls|everything|memory|notices|watchers] [--program FILE]`. `judges/gateway/rivals`
//! installs the others with `npm` and `pip`. The benchmark starts itself again as the fast server
//! behind all of them.

#![expect(clippy::print_stdout, reason = "a benchmark prints its tables")]
#![expect(clippy::disallowed_methods, reason = "the clients are threads, and real time passes")]

mod calls;
mod fast;
mod gateways;
mod memory;
mod notices;
mod process;
mod session;
mod watchers;

use std::error::Error;

use crate::calls::Plan;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["fast", how, folder] => fast::main(how, folder),
        // `cargo test` runs this too, without the flag; then there is nothing to do.
        ref all if all.contains(&"--bench") => measure(all),
        _ => Ok(()),
    }
}

fn measure(arguments: &[&str]) -> Result<(), Failure> {
    let plan = Plan::new(arguments.contains(&"--quick"));
    let value = |name: &str| {
        let mut all = arguments.iter().skip_while(|it| **it != name);
        all.nth(1).copied()
    };
    let only = value("--only");
    let is_wanted = |part: &str| only.is_none_or(|only| only == part);
    let gateways::Field { gateways, everything } = gateways::all(value("--program"))?;
    if is_wanted("calls") {
        calls::measure(&gateways, &calls::Behind::Fast, &plan)?;
    }
    if let Some(command) = everything.filter(|_| is_wanted("everything")) {
        calls::measure(&gateways, &calls::Behind::Everything(command), &plan)?;
    }
    if is_wanted("memory") {
        memory::measure(&gateways)?;
    }
    if is_wanted("notices") {
        notices::measure(&gateways)?;
    }
    if is_wanted("watchers") {
        watchers::measure(&gateways[0])?;
    }
    Ok(())
}

/// The number in the middle.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(f64::NAN)
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}
