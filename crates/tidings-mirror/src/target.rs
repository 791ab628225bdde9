//! Targets: the servers a mirror connects to, and conversions to them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::connect::{self, ConnectError};
use crate::secret::{Secret, TokenSource};

/// A server to connect to.
///
/// A URL, a [`CommandTarget`], a [`std::process::Command`] and the entry of a server in an
/// `mcp.json` can be converted to one:
///
/// ```
/// use serde_json::json;
/// use tidings_mirror::{CommandTarget, Target};
///
/// let url = Target::from("http://127.0.0.1:8484/mcp");
/// let program = Target::from(CommandTarget::run("python3", ["server.py"]));
/// let entry = Target::try_from(json!({ "command": "npx", "args": ["-y", "some-server"] }))?;
/// assert!(Target::try_from(json!({ "comand": "npx" })).is_err());
/// # let _ = (url, program, entry);
/// # Ok::<(), tidings_mirror::TargetError>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Target {
    /// A server behind Streamable HTTP.
    Http(HttpTarget),
    /// A program that speaks MCP on its standard input and output.
    Command(CommandTarget),
    /// A server at the other end of two byte streams, with one message per line: in this process,
    /// or started by somebody else. Streams can be used once, so there is no reconnecting, unless
    /// there is a function that opens others.
    Streams(StreamsTarget),
}

impl Target {
    /// Whether it can be connected to only once.
    pub(crate) fn is_single(&self) -> bool {
        matches!(self, Self::Streams(streams) if streams.is_single)
    }
}

/// A server behind Streamable HTTP.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpTarget {
    /// The endpoint, such as `http://127.0.0.1:8484/mcp`.
    pub url: String,
    /// Headers to send with every request.
    pub headers: Vec<(String, Secret)>,
    /// The source of the bearer token; used for each connection, and again after a 401.
    pub token: Option<TokenSource>,
}

impl HttpTarget {
    /// An endpoint without headers and token.
    pub fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), headers: Vec::new(), token: None }
    }

    /// The URL without credentials, query and fragment, which may be secret.
    #[must_use]
    pub fn shown_url(&self) -> String {
        shown(&self.url)
    }

    /// Adds a header to every request.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.headers.push((name.into(), value));
        self
    }

    /// An HTTP client with the redirects, timeouts and certificates of a mirror, and without
    /// headers: for requests beside a mirror.
    ///
    /// # Errors
    ///
    /// If the URL is invalid or TLS cannot be set up.
    pub fn client(&self) -> Result<reqwest::Client, ConnectError> {
        let url = reqwest::Url::parse(&self.url);
        connect::client(&url.map_err(|_| ConnectError::Url(shown(&self.url)))?)
    }

    /// Sends this bearer token.
    #[must_use]
    pub fn bearer(mut self, token: Secret) -> Self {
        self.token = Some(TokenSource::fixed(token));
        self
    }
}

impl std::fmt::Debug for HttpTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("HttpTarget")
            .field("url", &shown(&self.url))
            .field("headers", &self.headers)
            .field("token", &self.token)
            .finish()
    }
}

/// A program that speaks MCP on its standard input and output.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CommandTarget {
    /// The program.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables to add to our environment.
    pub environment: BTreeMap<String, Secret>,
    /// The directory to run it in; default the current one.
    pub folder: Option<PathBuf>,
}

impl CommandTarget {
    /// A program with arguments, in our directory and environment.
    pub fn new(program: impl Into<String>, arguments: Vec<String>) -> Self {
        Self { program: program.into(), arguments, environment: BTreeMap::new(), folder: None }
    }

    /// The same with any texts as arguments.
    pub fn run<A: Into<String>>(
        program: impl Into<String>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Self {
        Self::new(program, arguments.into_iter().map(Into::into).collect())
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: Secret) -> Self {
        self.environment.insert(name.into(), value);
        self
    }
}

type Input = Box<dyn AsyncRead + Send + Unpin>;
type Output = Box<dyn AsyncWrite + Send + Unpin>;

type OpenStreams = dyn Fn() -> Option<(Input, Output)> + Send + Sync;

/// Two byte streams with a server at their other end.
#[derive(Clone)]
pub struct StreamsTarget {
    open: Arc<OpenStreams>,
    /// Whether they can be opened only once.
    pub(crate) is_single: bool,
}

impl StreamsTarget {
    /// The streams that the server writes and reads.
    pub fn new(
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        let streams: (Input, Output) = (Box::new(input), Box::new(output));
        let streams = Mutex::new(Some(streams));
        let open = move || streams.lock().unwrap_or_else(PoisonError::into_inner).take();
        Self { open: Arc::new(open), is_single: true }
    }

    /// Streams that are opened anew for each connection; `None` if that is not possible now.
    pub fn each<I, O>(open: impl Fn() -> Option<(I, O)> + Send + Sync + 'static) -> Self
    where
        I: AsyncRead + Send + Unpin + 'static,
        O: AsyncWrite + Send + Unpin + 'static,
    {
        let open = move || {
            let (input, output) = open()?;
            let streams: (Input, Output) = (Box::new(input), Box::new(output));
            Some(streams)
        };
        Self { open: Arc::new(open), is_single: false }
    }

    pub(crate) fn take(&self) -> Option<(Input, Output)> {
        (self.open)()
    }
}

impl std::fmt::Debug for StreamsTarget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("StreamsTarget(…)")
    }
}

/// Why a value is not a target.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The entry of an `mcp.json` has the wrong form.
    #[error("the server's entry is not valid: {0}")]
    Entry(String),
    /// The entry has neither a command nor a URL.
    #[error("the server's entry has neither `command` nor `url`")]
    Nowhere,
    /// The entry has both.
    #[error("the server's entry has both `command` and `url`")]
    Both,
    /// A program, argument, folder or variable is not Unicode.
    #[error("{0} is not Unicode")]
    NotUnicode(String),
    /// A command removes variables from the environment, which a mirror cannot do.
    #[error("the command removes `{0}` from its environment")]
    Removed(String),
}

/// A URL.
impl From<&str> for Target {
    fn from(url: &str) -> Self {
        Self::Http(HttpTarget::new(url))
    }
}

/// A URL.
impl From<String> for Target {
    fn from(url: String) -> Self {
        Self::Http(HttpTarget::new(url))
    }
}

impl From<HttpTarget> for Target {
    fn from(target: HttpTarget) -> Self {
        Self::Http(target)
    }
}

impl From<CommandTarget> for Target {
    fn from(target: CommandTarget) -> Self {
        Self::Command(target)
    }
}

impl From<StreamsTarget> for Target {
    fn from(target: StreamsTarget) -> Self {
        Self::Streams(target)
    }
}

/// Takes the program, its arguments, its directory and its variables. Its input and output settings
/// are ignored: they become the connection.
impl TryFrom<std::process::Command> for Target {
    type Error = TargetError;

    fn try_from(command: std::process::Command) -> Result<Self, TargetError> {
        let text = |text: &OsStr| {
            let lossy = || TargetError::NotUnicode(format!("`{}`", text.to_string_lossy()));
            text.to_str().map(str::to_owned).ok_or_else(lossy)
        };
        let arguments = command.get_args().map(text).collect::<Result<_, _>>()?;
        let mut target = CommandTarget::new(text(command.get_program())?, arguments);
        for (name, value) in command.get_envs() {
            let name = text(name)?;
            let value = value.ok_or_else(|| TargetError::Removed(name.clone()))?;
            // The value may be secret, so it is not shown.
            let secret = || TargetError::NotUnicode(format!("the value of `{name}`"));
            let value = Secret::new(value.to_str().ok_or_else(secret)?);
            target.environment.insert(name, value);
        }
        target.folder = command.get_current_dir().map(Into::into);
        Ok(Self::Command(target))
    }
}

/// The entry of one server in an `mcp.json`. Unknown fields are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServerEntry {
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, Value>>,
    cwd: Option<PathBuf>,
    #[serde(alias = "serverUrl", alias = "httpUrl")]
    url: Option<String>,
    headers: Option<BTreeMap<String, Value>>,
}

/// The entry of one server in an `mcp.json`: `command` with `args`, `env` and `cwd`, or `url` with
/// `headers`. Variables such as `${KEY}` are not replaced: the library reads no environment.
impl TryFrom<&Value> for Target {
    type Error = TargetError;

    fn try_from(entry: &Value) -> Result<Self, TargetError> {
        let entry = ServerEntry::deserialize(entry)
            .map_err(|error| TargetError::Entry(error.to_string()))?;
        match (entry.command, entry.url) {
            (Some(_), Some(_)) => Err(TargetError::Both),
            (None, None) => Err(TargetError::Nowhere),
            (Some(program), None) => {
                let mut target = CommandTarget::new(program, entry.args.unwrap_or_default());
                target.environment = secrets(entry.env)?.collect();
                target.folder = entry.cwd;
                Ok(Self::Command(target))
            }
            (None, Some(url)) => {
                let mut target = HttpTarget::new(url);
                target.headers = secrets(entry.headers)?.collect();
                Ok(Self::Http(target))
            }
        }
    }
}

impl TryFrom<Value> for Target {
    type Error = TargetError;

    fn try_from(entry: Value) -> Result<Self, TargetError> {
        Self::try_from(&entry)
    }
}

/// Values of the environment or of headers. Numbers and booleans count as written.
fn secrets(
    table: Option<BTreeMap<String, Value>>,
) -> Result<impl Iterator<Item = (String, Secret)>, TargetError> {
    let texts = table.unwrap_or_default().into_iter().map(|(name, value)| match value {
        Value::String(text) => Ok((name, Secret::new(text))),
        Value::Number(_) | Value::Bool(_) => Ok((name, Secret::new(value.to_string()))),
        _ => Err(TargetError::Entry(format!("the value of `{name}` is not a string"))),
    });
    Ok(texts.collect::<Result<Vec<_>, _>>()?.into_iter())
}

/// A URL without its secret parts.
pub(crate) fn shown(url: &str) -> String {
    let end = url.find(['?', '#']).unwrap_or(url.len());
    let plain = &url[..end];
    let begin = plain.find("://").map_or(0, |place| place + 3);
    let host = plain[begin..].find('/').map_or(plain.len(), |place| begin + place);
    match plain[begin..host].rfind('@') {
        Some(place) => format!("{}…{}", &plain[..begin], &plain[begin + place..]),
        None => plain.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let mut target = HttpTarget::new("http://me:hunter1@127.0.0.1:1/mcp?key=hunter4#hunter5");
        target.headers.push(("x-key".to_owned(), Secret::new("hunter2")));
        target.token = Some(TokenSource::fixed(Secret::new("hunter3")));
        let shown = format!("{:?}", Target::Http(target));
        assert!(!shown.contains("hunter") && shown.contains("127.0.0.1:1/mcp"), "{shown}");
        assert_eq!(super::shown("nonsense"), "nonsense");
        assert_eq!(super::shown("htp://a:hunter@b/c@d"), "htp://…@b/c@d");
    }

    #[track_caller]
    fn check(entry: Value, expected: Result<&str, TargetError>) {
        let found = Target::try_from(entry).map(|target| format!("{target:?}"));
        match expected {
            Ok(expected) => assert!(found.as_ref().unwrap().contains(expected), "{found:?}"),
            Err(error) => assert_eq!(found.unwrap_err(), error),
        }
    }

    #[test]
    fn entries_of_an_mcp_json_are_targets() {
        check(json!({ "command": "a", "args": ["b"] }), Ok(r#"program: "a", arguments: ["b"]"#));
        check(json!({ "command": "a", "env": { "K": 1 } }), Ok(r#""K": Secret"#));
        check(json!({ "type": "http", "url": "http://h/mcp" }), Ok("http://h/mcp"));
        check(json!({ "serverUrl": "http://h/x", "headers": { "A": "b" } }), Ok(r#"("A", Secret"#));
        check(json!({ "args": ["b"] }), Err(TargetError::Nowhere));
        check(json!({ "command": "a", "url": "b" }), Err(TargetError::Both));
        let wrong = TargetError::Entry("the value of `K` is not a string".to_owned());
        check(json!({ "command": "a", "env": { "K": [] } }), Err(wrong));
        let found = Target::try_from(json!({ "command": "a", "args": 3 })).unwrap_err();
        assert!(found.to_string().contains("integer `3`"), "{found}");
    }

    #[test]
    fn commands_are_targets_unless_something_would_be_lost() {
        let mut command = std::process::Command::new("a");
        command.arg("b").env("K", "v").current_dir("/x");
        let Ok(Target::Command(target)) = Target::try_from(command) else { panic!("a command") };
        assert_eq!((target.program.as_str(), &*target.arguments), ("a", &["b".to_owned()][..]));
        assert_eq!(target.environment["K"].reveal(), "v");
        assert_eq!(target.folder, Some("/x".into()));
        let mut command = std::process::Command::new("a");
        command.env_remove("K");
        let error = Target::try_from(command).unwrap_err();
        assert_eq!(error, TargetError::Removed("K".to_owned()));
    }
}
