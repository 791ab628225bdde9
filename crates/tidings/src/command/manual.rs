//! `tidings completions` and `tidings man`: shell completions and manual pages.

use anyhow::{Context as _, Result};
use clap::{Command, CommandFactory as _};

use crate::args::{Args, Completions, Man};
use crate::present::Output;

pub(crate) fn completions(args: &Completions) -> Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut visible(), "tidings", &mut script);
    Output::new(false).bytes(&script)
}

/// The command line without hidden commands, which would be completed otherwise.
fn visible() -> Command {
    let all = Args::command();
    let shown = all.get_subcommands().filter(|command| !command.is_hide_set());
    Command::new("tidings").args(all.get_arguments().cloned()).subcommands(shown.cloned())
}

pub(crate) fn pages(args: &Man) -> Result<()> {
    let command = Args::command();
    match &args.out {
        None => {
            let mut page = Vec::new();
            clap_mangen::Man::new(command).render(&mut page)?;
            Output::new(false).bytes(&page)
        }
        Some(folder) => {
            let writing = || format!("writing manual pages to `{}`", folder.display());
            std::fs::create_dir_all(folder).with_context(writing)?;
            clap_mangen::generate_to(command, folder).with_context(writing)
        }
    }
}
