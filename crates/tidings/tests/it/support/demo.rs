//! The program as a process: the demo behind a socket, and commands that run to their end.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};

/// The real binary.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_tidings");
/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// The program with these arguments, and nothing of the machine it runs on.
pub(crate) fn program(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace()).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("TIDINGS_TOKEN");
    command
}

/// `tidings serve --demo` on a port of its own.
pub(crate) struct Demo {
    pub(crate) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    pub(crate) address: String,
}

impl Demo {
    pub(crate) async fn start(arguments: &str) -> Self {
        Self::start_at("127.0.0.1:0", arguments).await
    }

    pub(crate) async fn start_at(address: &str, arguments: &str) -> Self {
        let mut child =
            program(&format!("serve --demo --http {address} {arguments}")).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let first = within(lines.next_line()).await.unwrap().unwrap();
        let address = first.strip_prefix("listening on http://").unwrap();
        let address = address.strip_suffix("/mcp").unwrap().to_owned();
        Self { child, lines, address }
    }

    /// Its endpoint.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) async fn send(&self, request: &str) -> TcpStream {
        let mut socket = within(TcpStream::connect(&self.address)).await.unwrap();
        socket.write_all(request.as_bytes()).await.unwrap();
        socket
    }

    /// One GET, to its end.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut socket = self
            .send(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"))
            .await;
        let mut answer = String::new();
        within(socket.read_to_string(&mut answer)).await.unwrap();
        answer
    }

    /// A line that says this.
    pub(crate) async fn line(&mut self, holds: &str) -> String {
        loop {
            let line = within(self.lines.next_line()).await.unwrap().unwrap();
            if line.contains(holds) {
                return line;
            }
        }
    }

    /// A figure of its memory, in bytes.
    pub(crate) fn memory(&self, figure: &str) -> usize {
        let status = format!("/proc/{}/status", self.child.id().unwrap());
        let status = std::fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(figure)).unwrap();
        line.trim().trim_end_matches("kB").trim().parse::<usize>().unwrap() << 10
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it takes too long")
}

/// What a command that ran to its end left.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ended {
    /// The lines of its output as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The one line of its output as JSON, of a command that succeeded.
    #[track_caller]
    pub(crate) fn object(&self) -> Value {
        assert_eq!(self.code, Some(0), "{self:?}");
        let lines = self.lines();
        assert_eq!(lines.len(), 1, "{self:?}");
        lines[0].clone()
    }
}

/// The program with these words as they are.
pub(crate) fn client(words: &[&str]) -> Command {
    let mut command = program("");
    command.args(words).env("HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env_remove("XDG_CONFIG_HOME").current_dir(env!("CARGO_TARGET_TMPDIR"));
    command
}

/// Runs the program to its end.
pub(crate) async fn run(words: &[&str]) -> Ended {
    ended(client(words)).await
}

pub(crate) async fn ended(mut command: Command) -> Ended {
    let output = within(command.stdin(Stdio::null()).output()).await.unwrap();
    Ended {
        code: output.status.code(),
        output: String::from_utf8(output.stdout).unwrap(),
        errors: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A folder of one test, empty.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A client for plain HTTP.
pub(crate) fn http() -> reqwest::Client {
    // Plain HTTP needs no keys, but the client wants to know how it would make them.
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    // A server closes connections on which nothing came for ten seconds: none that old is used, or a
    // request could meet the end of its connection.
    let builder = reqwest::Client::builder().pool_idle_timeout(Duration::from_secs(5));
    builder.no_proxy().tls_backend_preconfigured(tls).build().unwrap()
}
