//! The program `tidings`: parse, run, exit code.

mod args;
mod command;
mod demo;
mod logging;
mod report;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

fn main() -> ExitCode {
    let args = Args::parse();
    logging::start(args.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report::failure(&anyhow::Error::new(error).context("starting")),
    };
    let result = runtime.block_on(async {
        match args.command {
            Command::Serve(serve) => command::serve::run(serve).await,
        }
    });
    // A read of standard input that has not returned must not keep the program.
    runtime.shutdown_background();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report::failure(&error),
    }
}
