//! The folders to serve, from the command line and `tidings.toml`.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_folder::{Config, Folder, Report};
use tokio::sync::mpsc;

use super::plan::PlannedFolder;
use crate::args::Serve;
use crate::folder::{advice, keeper};
use crate::report::Hint;

/// The name of a folder's source.
pub(super) fn name(path: &Path) -> String {
    format!("folder {}", path.display())
}

/// Reads a folder for the first time.
pub(super) async fn open(
    args: &Serve,
    planned: &PlannedFolder,
    reports: &mpsc::Sender<Report>,
) -> Result<Folder> {
    let (options, path) = (&args.folders, &planned.path);
    let mut config = Config::new(path.clone());
    let named: Vec<_> = planned.variables.iter().chain(&options.env).cloned().collect();
    config.pass(std::env::vars_os(), &named);
    config.withheld_hint = advice::of_withheld;
    config.register =
        options.allow_register.then(|| Duration::from_secs_f64(options.register_every));
    config.poll = options.poll.map(Duration::from_secs_f64);
    config.quiet = Duration::from_millis(args.quiet);
    config.max_wait = Duration::from_millis(args.max_wait);
    config.providers_every = Duration::from_secs_f64(options.provider_every);
    config.keeper = Some(keeper());
    config.reports = Some(reports.clone());
    config.limits.runs = usize::from(options.runs);
    Folder::open(config)
        .await
        .with_context(|| Hint(format!("`tidings new folder {}` creates one", path.display())))
}
