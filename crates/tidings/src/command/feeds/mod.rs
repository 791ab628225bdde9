//! `tidings feeds`: one file for each of its subcommands.

mod add;
mod exchange;
mod health;
mod ls;
mod parse;
mod refresh;
mod tend;

use anyhow::Result;

use crate::args::{Feeds, FeedsCommand};

pub(crate) async fn run(args: &Feeds) -> Result<()> {
    match &args.command {
        FeedsCommand::Ls(args) => ls::run(args).await,
        FeedsCommand::Health(args) => health::run(args).await,
        FeedsCommand::Add(args) => add::run(args).await,
        FeedsCommand::Rm(args) => tend::run(&args.named, tend::Act::Remove).await,
        FeedsCommand::Pause(args) => tend::run(args, tend::Act::Pause).await,
        FeedsCommand::Resume(args) => tend::run(args, tend::Act::Resume).await,
        FeedsCommand::Refresh(args) => refresh::run(args).await,
        FeedsCommand::Import(args) => exchange::import(args).await,
        FeedsCommand::Export(args) => exchange::export(args).await,
        FeedsCommand::Parse(args) => parse::run(args).await,
    }
}
