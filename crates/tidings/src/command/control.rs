//! The sockets of running servers: where they are, and what is said there.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;

use crate::console::socket::directory;
use crate::report::Usage;

/// Time for an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a command asks of a running server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Request {
    /// How all upstreams are.
    List,
    /// Connect to an upstream anew.
    Restart(String),
    /// Approve the definitions of an upstream that wait.
    Approve(String),
}

/// Asks the running server with this process id, or the only one there is.
///
/// # Errors
///
/// If no server runs, several run, or the server does not answer.
pub(crate) async fn ask(process: Option<u32>, request: &Request) -> Result<Value> {
    let mut servers = running().await?;
    servers.retain(|(id, _)| process.is_none_or(|wanted| wanted == *id));
    let (id, stream) = match servers.len() {
        0 => {
            let usage = match process {
                Some(id) => Usage::new(format!("no server with upstreams has the process id {id}")),
                None => Usage::new("no server with upstreams is running"),
            };
            bail!(usage.hint("start one: `tidings serve --upstream NAME=TARGET`"));
        }
        1 => servers.remove(0),
        _ => {
            let ids: Vec<_> = servers.iter().map(|(id, _)| id.to_string()).collect();
            let usage = Usage::new(format!("several servers are running: {}", ids.join(", ")));
            bail!(usage.hint(format!("choose one by its process id: `--server {}`", ids[0])));
        }
    };
    let answered = tokio::time::timeout(PATIENCE, exchange(stream, request)).await;
    answered
        .with_context(|| format!("process {id} did not answer within {} s", PATIENCE.as_secs()))?
        .with_context(|| format!("asking process {id}"))
}

/// The servers that accept connections. Sockets of servers that were killed are removed.
async fn running() -> Result<Vec<(u32, UnixStream)>> {
    let directory = directory()?;
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(&directory) else { return Ok(found) };
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        let id = path.file_stem().and_then(|stem| stem.to_str()?.parse().ok());
        let Some(id) = id.filter(|_| path.extension().is_some_and(|it| it == "sock")) else {
            continue;
        };
        match UnixStream::connect(&path).await {
            Ok(stream) => found.push((id, stream)),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                drop(std::fs::remove_file(&path));
            }
            Err(_) => {}
        }
    }
    found.sort_by_key(|(id, _)| *id);
    Ok(found)
}

async fn exchange(mut stream: UnixStream, request: &Request) -> Result<Value> {
    let line = serde_json::to_string(request).context("writing the request")? + "\n";
    stream.write_all(line.as_bytes()).await?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).await?;
    Ok(serde_json::from_str(&answer)?)
}
