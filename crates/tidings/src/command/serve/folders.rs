//! The folders to serve, from the command line.

use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_folder::{Config, Folder, Report};
use tokio::sync::mpsc;

use crate::args::Serve;
use crate::folder::{advice, keeper};
use crate::report::Hint;

/// Reads every folder for the first time, and names its source.
pub(super) async fn open(
    args: &Serve,
    variables: &[String],
    reports: &mpsc::Sender<Report>,
) -> Result<Vec<(String, Folder)>> {
    let (mut folders, keeper) = (Vec::new(), keeper());
    for path in &args.folder {
        let options = &args.folders;
        let mut config = Config::new(path.clone());
        let named: Vec<_> = variables.iter().chain(&options.env).cloned().collect();
        config.pass(std::env::vars_os(), &named);
        config.withheld_hint = advice::of_withheld;
        config.register =
            options.allow_register.then(|| Duration::from_secs_f64(options.register_every));
        config.poll = options.poll.map(Duration::from_secs_f64);
        config.quiet = Duration::from_millis(args.quiet);
        config.max_wait = Duration::from_millis(args.max_wait);
        config.providers_every = Duration::from_secs_f64(options.provider_every);
        config.keeper = Some(keeper.clone());
        config.reports = Some(reports.clone());
        config.limits.runs = usize::from(options.runs);
        let folder = Folder::open(config).await.with_context(|| {
            Hint(format!("`tidings new folder {}` creates one", path.display()))
        })?;
        folders.push((format!("folder {}", path.display()), folder));
    }
    Ok(folders)
}
