//! Serves a folder in memory, without a process, to see it as a client does.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tidings_folder::{Config, Folder};
use tidings_mirror::{Config as MirrorConfig, Events, StreamsTarget, Target};
use tidings_server::{Hub, stdio};
use tokio_util::sync::CancellationToken;

use crate::args::Place;
use crate::present::Output;
use crate::session::{self, Session};

/// Bytes between the two ends; further writes wait.
const PIPE: usize = 64 << 10;
/// The interval of registrations. A command ends after one.
const REGISTER: Duration = Duration::from_mins(1);

/// Whether a folder may run the program that registers items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    Refused,
    Allowed,
}

impl Register {
    /// As the option says.
    pub(crate) fn when(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Refused }
    }
}

/// The settings of `tidings serve`.
pub(crate) fn config(root: &Path, variables: &[String], register: Register) -> Config {
    let mut config = Config::new(root.to_owned());
    config.pass(std::env::vars_os(), variables);
    config.withheld_hint = super::advice::of_withheld;
    config.keeper = Some(super::keeper());
    config.register = (register == Register::Allowed).then_some(REGISTER);
    config
}

/// Serves the folder, does the work as its client, and ends both.
pub(crate) async fn serve<T>(
    folder: Folder,
    place: Place,
    config: MirrorConfig,
    output: Output,
    work: impl AsyncFnOnce(&Session, Events) -> Result<T>,
) -> Result<T> {
    let hub = Hub::new("tidings", env!("CARGO_PKG_VERSION"));
    hub.add("folder", |shelf| Ok(folder.still_on(shelf))).await.context("serving the folder")?;
    let (near, far) = tokio::io::duplex(PIPE);
    let (input, requests) = tokio::io::split(near);
    let (far_input, far_output) = tokio::io::split(far);
    let target = Target::Streams(StreamsTarget::new(input, requests));
    let cancel = CancellationToken::new();
    let client = async {
        let result = session::over(target, place, config, output, work).await;
        cancel.cancel();
        result
    };
    let server = stdio::serve(&hub, far_input, far_output, cancel.clone());
    let (result, served) = tokio::join!(client, server);
    hub.shutdown().await;
    let value = result?;
    served.context("serving the folder")?;
    Ok(value)
}

/// The command line that would serve the same folder.
pub(crate) fn place(folder: &Path) -> Place {
    let folder = folder.to_string_lossy();
    let words = ["tidings", "serve", "--folder", &folder, "--stdio"];
    Place::Command(words.map(str::to_owned).to_vec())
}
