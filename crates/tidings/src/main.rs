//! The program `tidings`: parse, run, exit code.

mod args;
mod check;
mod command;
mod console;
mod demo;
mod draft;
mod feeds;
mod folder;
mod follow;
mod group;
mod hosts;
mod logging;
mod machine;
mod present;
mod report;
mod schema;
mod session;
mod settings;
mod target;
mod tokens;
mod values;
mod web;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::Builder;

use crate::args::Args;

/// Returns freed memory to the system within seconds. glibc's allocator kept most of it for the
/// life of the process after a burst of large requests.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    logging::start(args.log, args.log_format, args.command.logs_access());
    // One thread starts sooner and is enough for one connection.
    let mut builder = if command::is_busy(&args.command) {
        Builder::new_multi_thread()
    } else {
        Builder::new_current_thread()
    };
    let runtime = match builder.enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::failure(&anyhow::Error::new(error).context("starting")),
    };
    let result = runtime.block_on(command::run(args.command));
    // A pending read of standard input must not keep the program running.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::failure(&error),
    }
}
