//! Fan-out over real sockets: one change, N listeners, our server beside raw sockets, a bare axum
//! server and a plain rmcp server.
//!
//! `cargo bench -p tidings-server --bench fanout -- [--quick] [--idle] [--era legacy|modern] [--n N]
//! [--rounds R] [--server NAME]`. With `--idle`, only the memory of idle listeners is measured. The program starts itself again as each server and as the load client, so that
//! every number belongs to one process.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod client;
#[path = "../../examples/counter.rs"]
#[expect(dead_code, reason = "the example's own main is not used here")]
mod counter;
mod floor;
mod listener;
mod ours;
mod plain;
mod plan;
mod process;
mod raw;
mod round;
mod table;
mod wire;

use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", name] => process::serve(name),
        ["client", ref order @ ..] => client::main(order),
        // `cargo test` runs this too, without the flag; then there is nothing to do.
        ref all if all.contains(&"--bench") => round::all(&plan::Plan::parse(all)?),
        _ => Ok(()),
    }
}
