//! A connection for one command: opened with hints when it fails, and always closed.

use std::sync::Arc;

use anyhow::{Context as _, Result, anyhow};
use tidings_core::ListKinds;
use tidings_mirror::{
    Config, ConnectError, Event, Events, List, Mirror, Protocol, RequestError, Target,
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::args::{Connection, Place};
use crate::console::socket;
use crate::present::Output;
use crate::present::text::harmless;
use crate::report::Hint;
use crate::target;

/// How many of the last lines of a server's standard error are shown.
const LAST_WORDS: usize = 10;

/// A connected server.
pub(crate) struct Session {
    pub(crate) mirror: Mirror,
    pub(crate) place: Place,
    pub(crate) output: Output,
}

impl Session {
    /// Fails if a list could not be loaded.
    pub(crate) fn loaded(&self, list: List) -> Result<()> {
        match self.mirror.list_error(list) {
            Some(error) => Err(error).with_context(|| format!("listing the {list}")),
            None => Ok(()),
        }
    }
}

/// The user pressed Ctrl-C or sent a signal to end.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Connects with these lists and no notices, does the work, and closes the connection.
pub(crate) async fn once<T>(
    connection: &Connection,
    place: Place,
    lists: &[List],
    work: impl AsyncFnOnce(&Session) -> Result<T>,
) -> Result<T> {
    let mut config = config(connection);
    config.lists = lists.to_vec();
    config.list_changed = ListKinds::EMPTY;
    with(connection, place, config, async |session, mut events| {
        let result = work(session).await;
        result.map_err(|error| with_last_words(error, &last_words(&mut events)))
    })
    .await
}

/// Connects, does the work, and closes the connection whatever the outcome.
pub(crate) async fn with<T>(
    connection: &Connection,
    place: Place,
    config: Config,
    work: impl AsyncFnOnce(&Session, Events) -> Result<T>,
) -> Result<T> {
    let mut config = config;
    let target = if let Some(name) = socket::session(&place) {
        // What the console relays is the older era, without a question which one it is.
        config.protocol = Protocol::Legacy;
        socket::target(name, connection).await?
    } else {
        target::resolve(&place, connection)?
    };
    over(target, place, config, Output::new(connection.json), work).await
}

/// The same with a resolved server.
pub(crate) async fn over<T>(
    target: Target,
    place: Place,
    config: Config,
    output: Output,
    work: impl AsyncFnOnce(&Session, Events) -> Result<T>,
) -> Result<T> {
    let mut stop = Stop::new()?;
    let (mirror, events) = tokio::select! {
        connected = Mirror::connect_with_events(target.clone(), config) => {
            connected.map_err(|error| explained(error, &place, &target))?
        }
        () = stop.wait() => return Err(Interrupted.into()),
    };
    let session = Session { mirror, place, output };
    let result = tokio::select! {
        result = work(&session, events) => result,
        () = stop.wait() => Err(Interrupted.into()),
    };
    tokio::select! {
        () = session.mirror.close() => {}
        // A second signal means: do not wait.
        () = stop.wait() => {}
    }
    result
}

/// The default configuration, with the command's options.
pub(crate) fn config(connection: &Connection) -> Config {
    let mut config = defaults();
    config.protocol = connection.protocol.clone();
    if let Some(timeout) = connection.timeout {
        config.connect_timeout = timeout;
        config.request_timeout = timeout;
    }
    config
}

/// The default configuration. A command for one request ends with its connection.
pub(crate) fn defaults() -> Config {
    let mut config = Config::new("tidings", env!("CARGO_PKG_VERSION"));
    config.reconnect = None;
    config
}

/// The signals that end a program.
pub(crate) struct Stop {
    interrupt: Signal,
    terminate: Signal,
    /// The terminal was closed.
    hangup: Signal,
}

impl Stop {
    pub(crate) fn new() -> Result<Self> {
        let interrupt = signal(SignalKind::interrupt()).context("waiting for signals")?;
        let terminate = signal(SignalKind::terminate()).context("waiting for signals")?;
        let hangup = signal(SignalKind::hangup()).context("waiting for signals")?;
        Ok(Self { interrupt, terminate, hangup })
    }

    /// Cancel-safe: a signal is either seen here or at the next call.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hangup.recv() => {}
        }
    }
}

/// The error of a failed connection, with a hint.
fn explained(error: ConnectError, place: &Place, target: &Target) -> anyhow::Error {
    let hint = advice(&error, target);
    let connecting = format!("could not connect to `{}`", harmless(&place.to_string()));
    let error = match &error {
        ConnectError::Died { stderr, garbage, .. }
        | ConnectError::Timeout { stderr, garbage, .. } => {
            anyhow!("{error}{}{}", said(stderr), printed(garbage.as_deref()))
        }
        _ => anyhow::Error::new(error),
    };
    let error = error.context(connecting);
    match hint {
        Some(hint) => error.context(Hint(hint)),
        None => error,
    }
}

/// What to do about a failed connection.
pub(crate) fn advice(error: &ConnectError, target: &Target) -> Option<String> {
    let words = match error {
        ConnectError::Spawn { program, source } => match source.kind() {
            std::io::ErrorKind::NotFound => {
                return Some(format!("is `{program}` installed and in PATH?"));
            }
            std::io::ErrorKind::PermissionDenied => {
                return Some(format!("is `{program}` executable?"));
            }
            _ => return None,
        },
        ConnectError::Unreachable(_) => {
            "is the server running, and are the host and port correct? `tidings serve --demo` starts one \
             on http://127.0.0.1:8484/mcp"
        }
        ConnectError::Unauthorized => {
            "give a bearer token with `--token-file FILE` or in TIDINGS_TOKEN, or another header \
             with `--header NAME:@FILE`"
        }
        ConnectError::Forbidden => {
            "the token may lack a right, or the server may not serve this host name"
        }
        ConnectError::NotMcp(_) => return Some(endpoint_hint(target)),
        ConnectError::Version { .. } => "`--protocol auto` uses the revision the server speaks",
        ConnectError::Timeout { garbage: Some(_), .. }
        | ConnectError::Died { garbage: Some(_), .. } => {
            "a server may print only MCP messages on standard output, and must log on standard error"
        }
        ConnectError::Timeout { .. } => {
            "is it an MCP server? `--timeout 2m` waits longer; if it is an old one, try \
             `--protocol legacy`"
        }
        ConnectError::Died { .. } => match target {
            Target::Command(_) => {
                "does the command work when it is run by hand, and does it serve stdio? If it is an \
                 old server, try `--protocol legacy`"
            }
            _ => return None,
        },
        _ => return None,
    };
    Some(words.to_owned())
}

/// A hint for a URL that is not an MCP endpoint.
fn endpoint_hint(target: &Target) -> String {
    let general = "is this the endpoint of an MCP server?";
    let Target::Http(target) = target else { return general.to_owned() };
    let rest = target.url.split_once("://").map_or("", |(_, rest)| rest);
    let path = rest.split_once('/').map_or("", |(_, path)| path);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    if path.trim_matches('/') == "mcp" {
        return general.to_owned();
    }
    let end = rest.find('/').unwrap_or(rest.len());
    let base = target.url.len() - rest.len() + end;
    format!("the endpoint is often at `/mcp`: try `{}/mcp`", &target.url[..base])
}

fn said(lines: &[Arc<str>]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let last = lines.iter().skip(lines.len().saturating_sub(LAST_WORDS));
    let shown: Vec<_> = last.map(|line| harmless(line)).collect();
    format!("; its last lines on standard error:\n  {}", shown.join("\n  "))
}

fn printed(garbage: Option<&str>) -> String {
    garbage.map_or_else(String::new, |garbage| {
        format!("\n  it printed a line that is not an MCP message: {}", harmless(garbage))
    })
}

/// The lines the server wrote to standard error since it was started.
fn last_words(events: &mut Events) -> Vec<Arc<str>> {
    let next = || events.try_next();
    std::iter::from_fn(next)
        .filter_map(|event| match event {
            Event::Stderr { line } => Some(line),
            _ => None,
        })
        .collect()
}

/// If a request failed because the server ended, adds the server's last lines to the error.
pub(crate) fn with_last_words(error: anyhow::Error, lines: &[Arc<str>]) -> anyhow::Error {
    let request = error.chain().find_map(|cause| cause.downcast_ref::<RequestError>());
    let hint = match request {
        Some(RequestError::Lost(_) | RequestError::NotConnected(_)) if !lines.is_empty() => {
            format!("the server ended{}", said(lines))
        }
        Some(RequestError::Timeout(_)) => "`--timeout 5m` waits longer".to_owned(),
        _ => return error,
    };
    if error.downcast_ref::<Hint>().is_some() { error } else { error.context(Hint(hint)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tidings_mirror::{CommandTarget, HttpTarget};

    fn http(url: &str) -> Target {
        Target::Http(HttpTarget::new(url))
    }

    #[track_caller]
    fn check(error: ConnectError, target: &Target, expected: &str) {
        let error = explained(error, &Place::Named("it".to_owned()), target);
        let hint = error.downcast_ref::<Hint>().map(ToString::to_string);
        let shown = hint.iter().cloned().chain(error.chain().skip(1).map(ToString::to_string));
        let shown: Vec<_> = shown.collect();
        assert!(shown.join("\n").contains(expected), "{shown:#?}");
    }

    #[test]
    fn a_failed_connection_says_what_to_do() {
        let a = http("http://127.0.0.1:1/mcp");
        check(ConnectError::Unreachable("refused".to_owned()), &a, "is the server running");
        check(ConnectError::Unauthorized, &a, "--token-file");
        let elsewhere = http("http://127.0.0.1:1/sse?x=/y");
        check(ConnectError::NotMcp("404".to_owned()), &elsewhere, "try `http://127.0.0.1:1/mcp`");
        check(ConnectError::NotMcp("404".to_owned()), &a, "is this the endpoint");
        let node = Target::Command(CommandTarget::new("node", Vec::new()));
        let died = ConnectError::Died { status: None, stderr: Vec::new(), garbage: None };
        check(died, &node, "try `--protocol legacy`");
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let error = ConnectError::Spawn { program: "node".to_owned(), source: missing };
        check(error, &node, "is `node` installed");
    }

    #[test]
    fn the_last_words_of_a_server_are_shown() {
        let node = Target::Command(CommandTarget::new("node", Vec::new()));
        let lines: Vec<Arc<str>> = (0..20).map(|line| format!("line {line}").into()).collect();
        let died = ConnectError::Died {
            status: Some("exit status: 1".to_owned()),
            stderr: lines.clone(),
            garbage: None,
        };
        check(died, &node, "exit status: 1); its last lines on standard error:\n  line 10\n");
        let timeout = ConnectError::Timeout {
            timeout: Duration::from_secs(1),
            stderr: lines,
            garbage: Some("Hello!".into()),
        };
        check(timeout, &node, "not an MCP message: Hello!");
    }
}
