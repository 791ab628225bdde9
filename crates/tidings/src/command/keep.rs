//! `tidings keep`: ends the programs of a killed server. Servers start it themselves.

use anyhow::{Context as _, Result};
use tidings_folder::keep;
use tokio::signal::unix::{SignalKind, signal};

/// Returns when the server and its programs are gone.
pub(crate) fn run() -> Result<()> {
    // Waiting for a signal keeps it from ending the process. The signal that ends the server is
    // sent to this process too, which must do its work first.
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
