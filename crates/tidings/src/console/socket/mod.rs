//! The socket of the running console: where it is, what commands ask there, and the targets behind
//! `@NAME`.

mod handed;
mod listen;
mod opener;
mod relay;
mod requests;

use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use tidings_mirror::{Protocol, StreamsTarget, Target};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};

pub(crate) use self::handed::HandedServer;
pub(crate) use self::listen::{ConsoleSocket, Holder};
pub(crate) use self::opener::ServerOpener;
use crate::args::{Connection, Place};
use crate::feeds::data_home;
use crate::report::{Hint, Usage};

/// The name of the socket in the directory of sockets.
const SOCKET: &str = "console.sock";
/// Time for an answer. The console waits for a session that is connecting, but not as long.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a command asks of the console, as one line of JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum ToConsole {
    /// Open these servers too.
    Open(Handover),
    /// Whether there is a session of this name, and it is connected.
    Find(String),
    /// Relay to the session of this name: MCP messages follow, one a line.
    Use(String),
}

/// What a second `tidings open` hands over.
#[derive(Default, Deserialize, Serialize)]
pub(crate) struct Handover {
    pub(crate) servers: Vec<HandedServer>,
    /// The space station too.
    pub(crate) demo: bool,
    /// Whether a browser will open the page.
    pub(crate) browse: bool,
}

/// What the console answers, as one line of JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum FromConsole {
    Opened(Opened),
    Found,
    Refused { why: String, hint: Option<String> },
}

/// What was opened in the running console.
#[derive(Deserialize, Serialize)]
pub(crate) struct Opened {
    pub(crate) pid: u32,
    pub(crate) link: String,
    /// The names of the servers that were handed over.
    pub(crate) names: Vec<String>,
    /// A private page that leads to the link, for a browser. The console removes it.
    pub(crate) redirect: Option<PathBuf>,
}

/// The directory of the sockets: `tidings` below `XDG_RUNTIME_DIR`, or `run` in the data directory.
pub(crate) fn directory() -> Result<PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").filter(|value| !value.is_empty());
    if let Some(runtime) = runtime {
        return Ok(PathBuf::from(runtime).join("tidings"));
    }
    let data = data_home().context("neither XDG_RUNTIME_DIR nor HOME is set")?;
    Ok(data.join("tidings/run"))
}

/// Makes the directory of sockets. Only its owner may enter.
pub(crate) fn make(directory: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

/// Opens a socket in that directory, in place of one that a killed process left. Only its owner may
/// use it.
pub(crate) fn bind(directory: &Path, path: &Path) -> io::Result<UnixListener> {
    make(directory)?;
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

/// Hands servers over to the running console; `None` if its socket is not there.
pub(crate) async fn hand_over(handover: Handover) -> Result<Option<Opened>> {
    let Ok(stream) = UnixStream::connect(directory()?.join(SOCKET)).await else { return Ok(None) };
    match ask(stream, &ToConsole::Open(handover)).await? {
        FromConsole::Opened(opened) => Ok(Some(opened)),
        _ => bail!("the running console gave another answer"),
    }
}

/// The session that a place names: `@NAME`.
pub(crate) fn session(place: &Place) -> Option<&str> {
    match place {
        Place::Named(name) => name.strip_prefix('@'),
        Place::Command(_) => None,
    }
}

/// The session of the running console as a server. It is connected already, so the options of the
/// connection do not apply.
///
/// # Errors
///
/// If no console runs, it has no such session, or an option was given that has no effect.
pub(crate) async fn target(name: &str, connection: &Connection) -> Result<Target> {
    let unused = [
        (!connection.header.is_empty(), "--header"),
        (!connection.env.is_empty(), "--env"),
        (connection.token_file.is_some(), "--token-file"),
        (connection.protocol != Protocol::Auto, "--protocol"),
    ];
    if let Some((_, option)) = unused.iter().find(|(is_given, _)| *is_given) {
        let usage = Usage::new(format!("{option} has no effect on `@{name}`, which is connected"));
        return Err(usage.hint("give the option to `tidings open`").into());
    }
    let path = directory()?.join(SOCKET);
    let Ok(stream) = UnixStream::connect(&path).await else {
        let usage = Usage::new(format!("no console is running, so there is no `@{name}`"));
        return Err(usage.hint("start one in another terminal: `tidings open TARGET`").into());
    };
    ask(stream, &ToConsole::Find(name.to_owned())).await?;
    let wanted = serde_json::to_string(&ToConsole::Use(name.to_owned()))? + "\n";
    let open = move || {
        use std::io::Write as _;
        let mut stream = std::os::unix::net::UnixStream::connect(&path).ok()?;
        stream.write_all(wanted.as_bytes()).ok()?;
        stream.set_nonblocking(true).ok()?;
        Some(tokio::io::split(UnixStream::from_std(stream).ok()?))
    };
    Ok(Target::Streams(StreamsTarget::each(open)))
}

async fn ask(mut stream: UnixStream, wanted: &ToConsole) -> Result<FromConsole> {
    let line = serde_json::to_string(wanted).context("writing the request")? + "\n";
    let exchange = async {
        stream.write_all(line.as_bytes()).await?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).await?;
        io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(PATIENCE, exchange).await;
    let answer = answer.context("the running console does not answer")?;
    let answer = answer.context("the running console hung up")?;
    match serde_json::from_str(&answer).context("the running console gave another answer")? {
        FromConsole::Refused { why, hint: Some(hint) } => {
            Err(anyhow::anyhow!(why).context(Hint(hint)))
        }
        FromConsole::Refused { why, hint: None } => bail!(why),
        answer => Ok(answer),
    }
}
