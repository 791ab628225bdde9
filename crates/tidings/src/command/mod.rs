//! One file for each subcommand.

mod call;
mod check;
mod complete;
mod config;
mod control;
mod feeds;
mod import;
mod info;
mod keep;
mod lint;
mod list;
mod manual;
mod new;
mod open;
mod prompt;
mod read;
mod run;
mod serve;
mod servers;
mod show;
mod token;
mod upstream;
mod watch;
mod workspace;

use anyhow::Result;
use tidings_mirror::List;

use crate::args::Command;

/// Whether a command needs several threads.
pub(crate) fn is_busy(command: &Command) -> bool {
    matches!(command, Command::Serve(_) | Command::Open(_))
}

/// Runs the command.
pub(crate) async fn run(command: Command) -> Result<()> {
    match command {
        // Boxed: it holds all that a server does at once.
        Command::Serve(args) => Box::pin(serve::run(*args)).await,
        Command::New(args) => new::run(&args),
        Command::Run(args) => run::run(&args).await,
        Command::Lint(args) => lint::run(&args).await,
        Command::Config(args) => config::run(&args),
        Command::Tools(args) => list::run(&args, List::Tools).await,
        Command::Resources(args) => list::run(&args, List::Resources).await,
        Command::Templates(args) => list::run(&args, List::Templates).await,
        Command::Prompts(args) => list::run(&args, List::Prompts).await,
        Command::Show(args) => show::run(&args).await,
        Command::Call(args) => call::run(&args).await,
        Command::Read(args) => read::run(&args).await,
        Command::Prompt(args) => prompt::run(&args).await,
        Command::Complete(args) => complete::run(&args).await,
        Command::Watch(args) => watch::run(&args).await,
        Command::Check(args) => check::run(&args).await,
        Command::Open(args) => open::run(&args).await,
        Command::Info(args) => info::run(&args).await,
        Command::Servers(args) => servers::run(&args),
        Command::Feeds(args) => feeds::run(&args).await,
        Command::Workspace(args) => workspace::run(&args).await,
        Command::Token(args) => token::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Upstream(args) => upstream::run(&args).await,
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::pages(&args),
        Command::Keep => keep::run(),
    }
}
