//! The control socket: `tidings upstream` speaks with a running server of the same user.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tracing::warn;

use super::plan::Plan;
use super::reload::FollowedFiles;
use super::upstreams::Upstreams;
use crate::command::control::Request;
use crate::console::socket::{bind, directory};

/// The longest request.
const LONGEST: u64 = 4096;
/// Connections at once; further ones wait.
const CONNECTIONS: usize = 16;
/// Time for a request to arrive, and for its answer to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time for an upstream to come up before its restart is answered.
const RESTART: Duration = Duration::from_secs(4);

/// The socket of this server. It is removed when this is dropped.
pub(super) struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Opens the socket of a server that has upstreams, or may get some. A server without one still
    /// serves, but the commands cannot reach it.
    pub(super) fn open(served: &Plan, files: &FollowedFiles) -> Option<Self> {
        if served.upstreams.is_empty() && files.settings.is_none() && files.servers.is_none() {
            return None;
        }
        let directory = directory().ok()?;
        let path = directory.join(format!("{}.sock", std::process::id()));
        match bind(&directory, &path) {
            Ok(listener) => Some(Self { listener, path }),
            Err(error) => {
                let path = path.display();
                warn!(%path, %error, "`tidings upstream` cannot reach this server");
                None
            }
        }
    }

    /// Answers until it is dropped.
    pub(super) async fn serve(control: Option<Self>, upstreams: &Upstreams) {
        let Some(control) = control else { return std::future::pending().await };
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = control.listener.accept(), if connections.len() < CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let upstreams = upstreams.clone();
                        connections.spawn(tokio::time::timeout(PATIENCE, async move {
                            drop(converse(stream, &upstreams).await);
                        }));
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
    }
}

/// One request and its answer, a line of JSON each.
async fn converse(mut stream: UnixStream, upstreams: &Upstreams) -> io::Result<()> {
    let mut line = String::new();
    BufReader::new((&mut stream).take(LONGEST)).read_line(&mut line).await?;
    let answer = match serde_json::from_str(&line) {
        Ok(request) => answer(request, upstreams).await,
        Err(error) => json!({ "error": format!("the request is invalid: {error}") }),
    };
    stream.write_all(format!("{answer}\n").as_bytes()).await
}

async fn answer(request: Request, upstreams: &Upstreams) -> Value {
    let unknown = |name: &str| {
        let known: Vec<_> = upstreams.statuses().into_iter().map(|status| status.name).collect();
        json!({ "error": format!("no upstream is named `{name}`"), "known": known })
    };
    match request {
        Request::List => json!({ "upstreams": upstreams.statuses() }),
        Request::Restart(name) => match upstreams.named(&name) {
            Some(upstream) => {
                // One that takes longer says later how it is.
                let _ = tokio::time::timeout(RESTART, upstream.restart()).await;
                json!({ "restarted": name, "upstream": upstream.status() })
            }
            None => unknown(&name),
        },
        Request::Approve(name) => match upstreams.named(&name) {
            Some(upstream) => json!({ "approved": upstream.approve() }),
            None => unknown(&name),
        },
    }
}
