//! The console's end of its socket: one console a user, and what others ask of it.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde_json::json;
use tidings_mirror::events::ConnectionState;
use tidings_store::lock::{LockError, LockFile};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinSet;
use tracing::warn;

use super::opener::ServerOpener;
use super::{FromConsole, SOCKET, ToConsole, bind, directory, make, relay};

/// The longest request: servers with the environment of a terminal.
const LONGEST: u64 = 8 << 20;
/// Connections at once; further ones wait.
const CONNECTIONS: usize = 64;
/// Time for a request to arrive.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a command waits for a session that is connecting.
const CONNECTING: Duration = Duration::from_secs(10);

/// The socket of this console. It is removed when this is dropped.
pub(crate) struct ConsoleSocket {
    listener: UnixListener,
    path: PathBuf,
    /// Says who runs, and at which port.
    record: PathBuf,
    /// Held as long as the console runs. The lock of a killed process is free.
    _lock: LockFile,
}

/// Who has the socket.
pub(crate) enum Holder {
    Us(ConsoleSocket),
    /// Another process, with its number as it wrote it.
    Other(String),
}

impl ConsoleSocket {
    /// Takes the socket, unless another console runs.
    ///
    /// # Errors
    ///
    /// If the directory of sockets cannot be used.
    pub(crate) fn take() -> Result<Holder> {
        let directory = directory()?;
        make(&directory).with_context(|| format!("creating `{}`", directory.display()))?;
        let lock = directory.join("console.lock");
        let using = || format!("using `{}`", lock.display());
        let file = LockFile::open(&lock).with_context(using)?;
        let lock = match file.lock(&std::process::id().to_string()) {
            Ok(lock) => lock,
            Err(LockError::Held(holder)) => return Ok(Holder::Other(holder)),
            Err(error) => return Err(error).with_context(using),
        };
        let path = directory.join(SOCKET);
        let listener = bind(&directory, &path);
        let listener = listener.with_context(|| format!("listening on `{}`", path.display()))?;
        let record = directory.join("console.json");
        Ok(Holder::Us(Self { listener, path, record, _lock: lock }))
    }

    /// Writes down which process runs, and at which port its page is.
    pub(crate) fn record(&self, port: u16) {
        let line = format!("{}\n", json!({ "pid": std::process::id(), "port": port }));
        if let Err(error) = write(&self.record, &line) {
            warn!(%error, path = %self.record.display(), "the console is not recorded");
        }
    }

    /// Answers until the console ends.
    pub(crate) async fn serve(self, opener: ServerOpener) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                // A console that ends takes nothing more: the next one can begin.
                () = opener.ended() => break,
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let opener = opener.clone();
                        connections.spawn(async move {
                            drop(converse(stream, &opener).await);
                        });
                    }
                }
                Some(_) = connections.join_next() => {}
            }
        }
    }
}

impl Drop for ConsoleSocket {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
        drop(std::fs::remove_file(&self.record));
    }
}

/// Writes a file that only its owner may read.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

/// One request and its answer, or a relayed session.
async fn converse(stream: UnixStream, opener: &ServerOpener) -> std::io::Result<()> {
    // The permissions of the socket say the same. Root may do everything anyway.
    if stream.peer_cred()?.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    let (input, mut output) = stream.into_split();
    let mut input = BufReader::new(input);
    let mut line = String::new();
    let mut limited = (&mut input).take(LONGEST);
    let reading = tokio::time::timeout(PATIENCE, limited.read_line(&mut line)).await;
    let answer = match reading {
        Ok(Ok(_)) => match serde_json::from_str(&line) {
            Ok(ToConsole::Open(handover)) => opener.hand_over(handover).await,
            Ok(ToConsole::Find(name)) => find(opener, &name).await,
            Ok(ToConsole::Use(name)) => {
                if let Some(server) = opener.console().named(&name) {
                    relay::relay(server, input, output).await;
                }
                return Ok(());
            }
            Err(error) => refused(format!("the request is invalid: {error}"), None),
        },
        _ => return Ok(()),
    };
    let answer = serde_json::to_string(&answer)? + "\n";
    output.write_all(answer.as_bytes()).await
}

pub(super) fn refused(why: impl Into<String>, hint: Option<String>) -> FromConsole {
    FromConsole::Refused { why: why.into(), hint }
}

/// Whether there is a session of this name. One that is connecting is waited for.
async fn find(opener: &ServerOpener, name: &str) -> FromConsole {
    let Some(server) = opener.console().named(name) else {
        let names = opener.console().names();
        let known: Vec<_> = names.iter().map(|name| format!("@{name}")).collect();
        let hint = match known.as_slice() {
            [] => "the console has no servers: `tidings open TARGET` adds one".to_owned(),
            known => format!("known sessions: {}", known.join(", ")),
        };
        return refused(format!("the console has no session `@{name}`"), Some(hint));
    };
    if server.archive.is_some() {
        let hint = "commands use sessions that are connected".to_owned();
        return refused(format!("`@{name}` is a saved session, without a server"), Some(hint));
    }
    let ready = tokio::time::timeout(CONNECTING, async {
        if server.mirror.connection() == ConnectionState::Connecting {
            drop(server.mirror.ready().await);
        }
    });
    drop(ready.await);
    match server.mirror.connection() {
        ConnectionState::Ready => FromConsole::Found,
        state => refused(
            format!("`@{name}` is not connected: {state}"),
            Some("the page of the console shows more, and connects again".to_owned()),
        ),
    }
}
