//! A hub of this process as a server of the console: a pipe in memory for each connection.

use tidings_mirror::{StreamsTarget, Target};
use tidings_server::{Hub, stdio};
use tokio::io::{DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Bytes between the hub and the console; further writes wait.
const PIPE: usize = 64 << 10;
/// Connections that may wait to be served; the console has one at a time.
const WAITING: usize = 4;

/// The target of a hub, and the work that serves it until `cancel`.
pub(crate) fn target(
    hub: Hub,
    cancel: CancellationToken,
) -> (Target, impl Future<Output = ()> + Send + 'static) {
    let (opened, openings) = mpsc::channel(WAITING);
    let open = move || -> Option<(ReadHalf<DuplexStream>, WriteHalf<DuplexStream>)> {
        let (near, far) = tokio::io::duplex(PIPE);
        opened.try_send(far).ok()?;
        Some(tokio::io::split(near))
    };
    (Target::Streams(StreamsTarget::each(open)), serve(hub, openings, cancel))
}

async fn serve(hub: Hub, mut openings: mpsc::Receiver<DuplexStream>, cancel: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            Some(far) = openings.recv() => {
                let (hub, cancel) = (hub.clone(), cancel.clone());
                connections.spawn(async move {
                    let (input, output) = tokio::io::split(far);
                    if let Err(error) = stdio::serve(&hub, input, output, cancel).await {
                        warn!(%error, "a connection of the console ended");
                    }
                });
            }
            Some(_) = connections.join_next() => {}
            else => break,
        }
    }
    connections.shutdown().await;
}
