//! Test support: a hub behind a pipe.

use tidings_server::{Hub, stdio};
use tokio::io::{AsyncBufReadExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The client's side of a connection, line by line.
pub struct Wire {
    /// What the client writes.
    pub input: WriteHalf<DuplexStream>,
    /// What the server writes.
    pub lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    _server: JoinSet<()>,
}

impl Wire {
    /// Serves a hub over a pipe that holds this many bytes.
    #[must_use]
    pub fn to(hub: Hub, room: usize) -> Self {
        let (near, far) = tokio::io::duplex(room);
        let (input, output) = tokio::io::split(far);
        let mut server = JoinSet::new();
        server.spawn(async move {
            stdio::serve(&hub, input, output, CancellationToken::new())
                .await
                .expect("the hub serves");
        });
        let (output, input) = tokio::io::split(near);
        Self { input, lines: BufReader::new(output).lines(), _server: server }
    }
}
