//! `tidings feeds`: one file for each of its subcommands.

mod parse;

use anyhow::Result;

use crate::args::{Feeds, FeedsCommand};

pub(crate) fn run(args: &Feeds) -> Result<()> {
    match &args.command {
        FeedsCommand::Parse(args) => parse::run(args),
    }
}
