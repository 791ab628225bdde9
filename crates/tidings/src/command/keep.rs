//! `tidings keep`: ends the programs of a server that was killed. Servers start it themselves.

use anyhow::{Context as _, Result};
use tidings_folder::keep;
use tokio::signal::unix::{SignalKind, signal};

/// Returns when the server is gone and its programs are.
pub(crate) fn run() -> Result<()> {
    // A signal that somebody waits for does not end a process. What ends the server ends it too,
    // but not before it has done its work.
    let kinds = [
        SignalKind::interrupt(),
        SignalKind::terminate(),
        SignalKind::hangup(),
        SignalKind::quit(),
    ];
    let waiting: Vec<_> = kinds
        .into_iter()
        .map(|kind| signal(kind).context("waiting for signals"))
        .collect::<Result<_>>()?;
    keep(std::io::stdin().lock());
    drop(waiting);
    Ok(())
}
