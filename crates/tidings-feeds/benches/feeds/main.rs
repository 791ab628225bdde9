//! Benchmark of feeds inside the process: parsing, storing, reading, searching, announcing.
//!
//! `cargo bench -p tidings-feeds --bench feeds -- [--quick]`. Each figure stands beside its floor:
//! what the libraries below would take for the same rows. What a whole process takes is in the
//! bench of the same name of the program.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod client;
mod fanout;
mod keeping;
mod news;
mod parsing;
mod table;

use std::error::Error;

use self::table::Row;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().collect();
    // `cargo test` runs this too, without the flag; then there is nothing to do.
    if !arguments.iter().any(|argument| argument == "--bench") {
        return Ok(());
    }
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let rounds = if quick { 7 } else { 31 };
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    Row::head();
    parsing::rows(rounds);
    runtime.block_on(keeping::rows(rounds))?;
    runtime.block_on(fanout::row(rounds.min(11)))
}
