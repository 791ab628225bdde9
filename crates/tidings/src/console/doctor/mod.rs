//! The connection doctor: the steps to a connection, the one that failed, and what to do.

mod reach;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use tidings_mirror::events::ConnectionState;
use tidings_mirror::{ConnectError, Target};

use self::reach::reach;
use crate::console::log::{Log, Status, Way};
use crate::console::markdown;
use crate::console::server::Server;
use crate::present::text::harmless;
use crate::session;

/// The last lines of standard error that are shown.
const STDERR: usize = 12;

/// What is known of each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum StepState {
    Good,
    Failed,
    /// It was not reached.
    Unknown,
}

#[derive(Debug, Serialize)]
struct ConnectStep {
    name: &'static str,
    state: StepState,
    words: String,
    #[serde(rename = "took")]
    took_ms: Option<f64>,
}

/// The steps in order, and what to do about the one that failed.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Diagnosis {
    steps: Vec<ConnectStep>,
    advice: Option<String>,
    /// The last lines of a program's standard error.
    stderr: Vec<Arc<str>>,
    #[serde(skip)]
    is_ready: bool,
}

/// The outcome of the last attempt.
struct Attempt {
    state: ConnectionState,
    failure: Option<Arc<ConnectError>>,
    /// The revision of the protocol, once it was agreed on.
    revision: Option<String>,
}

/// What the timeline knows of the last process of a server.
#[derive(Debug, Default, PartialEq, Eq)]
struct LastProcess {
    started: Option<String>,
    spoke: bool,
    ended: Option<String>,
}

/// Examines the connection of a server: asks what can be asked without disturbing it, and reads the
/// rest from its last attempt.
pub(crate) async fn examine(server: &Server) -> Diagnosis {
    let (failure, state) = (server.mirror.failure(), server.mirror.connection());
    let identity = server.mirror.server();
    let revision = identity.map(|identity| identity.version.to_string());
    let attempt = Attempt { state, failure, revision };
    let is_ready = attempt.state == ConnectionState::Ready;
    let mut diagnosis = Diagnosis { is_ready, ..Diagnosis::default() };
    match &server.target {
        Target::Http(target) => {
            let reached = reach(target, &mut diagnosis).await;
            diagnosis.speak_http(reached, &attempt, &server.target);
        }
        Target::Command(command) => {
            let last = LastProcess::of(&server.facts().log);
            let found = find(&command.program, command.folder.as_deref());
            diagnosis.run_program(&command.program, found, &last, &attempt, &server.target);
            let stderr = server.mirror.stderr();
            diagnosis.stderr = stderr[stderr.len().saturating_sub(STDERR)..].to_vec();
        }
        _ => {
            diagnosis.good("found", "it is in this program".to_owned(), None);
            diagnosis.conclude("handshake", &attempt);
        }
    }
    diagnosis
}

impl Diagnosis {
    /// For a viewer. The advice has commands in backticks, so it is Markdown; a hint continues a
    /// line, so it begins small.
    pub(crate) fn json(&self) -> Value {
        let mut json = serde_json::to_value(self).unwrap_or_default();
        if let Some(words) = &self.advice {
            let mut letters = words.chars();
            let first = letters.next().map(char::to_uppercase).into_iter().flatten();
            let nodes = markdown::nodes(&first.chain(letters).collect::<String>());
            json["advice"] = serde_json::to_value(nodes).unwrap_or_default();
        }
        json
    }

    fn step(&mut self, name: &'static str, state: StepState, words: String, took: Option<Instant>) {
        let took_ms = took.map(|began| began.elapsed().as_secs_f64() * 1e3);
        self.steps.push(ConnectStep { name, state, words, took_ms });
    }

    fn good(&mut self, name: &'static str, words: String, took: Option<Instant>) {
        self.step(name, StepState::Good, words, took);
    }

    /// The step failed, unless there is a connection: then there is another way, such as a proxy.
    fn fail(&mut self, name: &'static str, words: String, took: Option<Instant>) {
        let state = if self.is_ready { StepState::Unknown } else { StepState::Failed };
        self.step(name, state, words, took);
    }

    fn skip(&mut self, names: &[&'static str]) {
        for name in names {
            self.step(name, StepState::Unknown, String::new(), None);
        }
    }

    /// The last step: there is a connection, or it is not known why there is none.
    fn conclude(&mut self, name: &'static str, attempt: &Attempt) {
        match (&attempt.state, &attempt.failure) {
            (ConnectionState::Ready, _) => {
                let revision = attempt.revision.as_deref().unwrap_or("connected");
                self.good(name, format!("agreed on {revision}"), None);
            }
            (_, Some(failure)) => self.fail(name, failure.to_string(), None),
            (ConnectionState::Connecting, None) => {
                self.step(name, StepState::Unknown, "under way".to_owned(), None);
            }
            (state, None) => self.step(name, StepState::Unknown, state.to_string(), None),
        }
    }

    /// The steps of a URL after it was reached, or not: then `reached` says what to do.
    fn speak_http(&mut self, reached: Result<(), String>, attempt: &Attempt, target: &Target) {
        let (protocol, authorisation) = ("protocol", "authorisation");
        if let (Err(advice), false) = (reached, self.is_ready) {
            self.skip(&[protocol, authorisation]);
            self.advice = Some(advice);
            return;
        }
        let failure = attempt.failure.as_deref().filter(|_| !self.is_ready);
        match failure {
            Some(error @ (ConnectError::Unauthorized | ConnectError::Forbidden)) => {
                let words = "not asked before the authorisation".to_owned();
                self.step(protocol, StepState::Unknown, words, None);
                self.fail(authorisation, error.to_string(), None);
            }
            Some(error @ ConnectError::Unreachable(_)) => {
                self.step(protocol, StepState::Unknown, format!("before: {error}"), None);
                self.skip(&[authorisation]);
                self.advice = Some("It answers now: connect again.".to_owned());
                return;
            }
            _ => {
                self.conclude(protocol, attempt);
                if self.is_ready {
                    self.good(authorisation, "accepted".to_owned(), None);
                } else {
                    self.skip(&[authorisation]);
                }
            }
        }
        self.advice = failure.and_then(|error| session::advice(error, target));
    }

    /// The steps of a program.
    fn run_program(
        &mut self,
        program: &str,
        found: Option<PathBuf>,
        last: &LastProcess,
        attempt: &Attempt,
        target: &Target,
    ) {
        let failure = attempt.failure.as_deref().filter(|_| !self.is_ready);
        self.advice = failure.and_then(|error| session::advice(error, target));
        match (found, failure) {
            (Some(path), _) => self.good("found", path.display().to_string(), None),
            (None, Some(ConnectError::Spawn { .. })) => {
                self.fail("found", format!("no `{program}` in PATH"), None);
                return self.skip(&["starts", "speaks", "handshake"]);
            }
            (None, _) => self.step("found", StepState::Unknown, program.to_owned(), None),
        }
        if let Some(ConnectError::Spawn { source, .. }) = failure {
            self.fail("starts", source.to_string(), None);
            return self.skip(&["speaks", "handshake"]);
        }
        let Some(pid) = &last.started else { return self.skip(&["starts", "speaks", "handshake"]) };
        self.good("starts", pid.clone(), None);
        if let Some(words) = failure.and_then(|error| silence(error, last)) {
            self.fail("speaks", words, None);
            return self.skip(&["handshake"]);
        }
        if last.spoke || self.is_ready {
            self.good("speaks", "it prints messages".to_owned(), None);
        } else {
            self.skip(&["speaks"]);
        }
        self.conclude("handshake", attempt);
        if let (Some(words), false) = (&last.ended, self.is_ready) {
            self.step("ended", StepState::Failed, words.clone(), None);
        }
    }
}

/// Why a program did not speak, if that is the failure.
fn silence(error: &ConnectError, last: &LastProcess) -> Option<String> {
    match error {
        ConnectError::Died { garbage: Some(line), .. }
        | ConnectError::Timeout { garbage: Some(line), .. } => {
            Some(format!("it printed a line that is not an MCP message: {}", harmless(line)))
        }
        ConnectError::Died { .. } | ConnectError::Timeout { .. } if !last.spoke => {
            Some(error.to_string())
        }
        _ => None,
    }
}

impl LastProcess {
    fn of(log: &Log) -> Self {
        let mut last = Self::default();
        for row in log.rows().rev() {
            match &*row.what {
                "process ended" if last.ended.is_none() => last.ended = Some(row.subject.clone()),
                "process started" => {
                    last.started = Some(row.subject.clone());
                    break;
                }
                _ => {}
            }
            // An answer is in the row of its request.
            last.spoke |= row.way == Way::Received || row.status == Status::Answered;
        }
        last
    }
}

/// The file of a program: as it is named, or in `PATH`.
fn find(program: &str, folder: Option<&Path>) -> Option<PathBuf> {
    let is_file = |path: &PathBuf| path.is_file();
    if program.contains(std::path::MAIN_SEPARATOR) {
        let folder = folder.unwrap_or(Path::new(""));
        return Some(folder.join(program)).filter(is_file);
    }
    let places = std::env::var_os("PATH")?;
    std::env::split_paths(&places).map(|place| place.join(program)).find(is_file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidings_mirror::{CommandTarget, HttpTarget};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    /// The steps as `name:state`, and the advice.
    fn shown(diagnosis: &Diagnosis) -> String {
        let sign = |state| match state {
            StepState::Good => "+",
            StepState::Failed => "!",
            StepState::Unknown => "?",
        };
        let steps = diagnosis.steps.iter().map(|step| format!("{}{}", sign(step.state), step.name));
        steps.collect::<Vec<_>>().join(" ")
    }

    fn lost(failure: ConnectError) -> Attempt {
        let state = ConnectionState::Lost { reason: "it ended".into() };
        Attempt { state, failure: Some(Arc::new(failure)), revision: None }
    }

    fn program(failure: ConnectError, found: bool, spoke: bool) -> Diagnosis {
        let mut diagnosis = Diagnosis::default();
        let target = Target::from(CommandTarget::new("node", Vec::new()));
        let last = LastProcess { started: Some("pid 1".to_owned()), spoke, ended: None };
        let found = found.then(|| PathBuf::from("/bin/node"));
        diagnosis.run_program("node", found, &last, &lost(failure), &target);
        diagnosis
    }

    #[test]
    fn a_program_stops_at_its_step() {
        let missing = || std::io::Error::from(std::io::ErrorKind::NotFound);
        let spawn = |source| ConnectError::Spawn { program: "node".to_owned(), source };
        let diagnosis = program(spawn(missing()), false, false);
        assert_eq!(shown(&diagnosis), "!found ?starts ?speaks ?handshake");
        assert!(diagnosis.advice.unwrap().contains("installed"));
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(
            shown(&program(spawn(denied), true, false)),
            "+found !starts ?speaks ?handshake"
        );
        let died = |garbage: Option<&str>| ConnectError::Died {
            status: Some("exit status: 3".to_owned()),
            stderr: Vec::new(),
            garbage: garbage.map(Into::into),
        };
        let diagnosis = program(died(None), true, false);
        assert_eq!(shown(&diagnosis), "+found +starts !speaks ?handshake");
        assert!(diagnosis.steps[2].words.contains("exit status: 3"));
        let diagnosis = program(died(Some("hello")), true, false);
        assert!(diagnosis.steps[2].words.contains("hello"), "{diagnosis:?}");
        let refused = ConnectError::Refused("no".to_owned());
        assert_eq!(shown(&program(refused, true, true)), "+found +starts +speaks !handshake");
    }

    #[tokio::test]
    async fn a_url_stops_where_nobody_listens_or_speaks() {
        let examined = async |url: &str, failure| {
            let target = HttpTarget::new(url);
            let mut diagnosis = Diagnosis::default();
            let reached = reach(&target, &mut diagnosis).await;
            diagnosis.speak_http(reached, &lost(failure), &Target::Http(target));
            diagnosis
        };
        let unreachable = || ConnectError::Unreachable("refused".to_owned());
        // Nobody listens on a port that was just given back.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let diagnosis = examined(&format!("http://{free}/mcp"), unreachable()).await;
        assert_eq!(shown(&diagnosis), "+resolve !connect ?HTTP ?protocol ?authorisation");
        assert!(diagnosis.advice.unwrap().contains("running"));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let answering = async {
            for answer in
                ["nothing of the kind\r\n\r\n", "HTTP/1.1 401 No\r\ncontent-length: 0\r\n\r\n"]
            {
                // The first connection of each examination only looks whether somebody listens.
                drop(listener.accept().await.unwrap());
                let (mut stream, _) = listener.accept().await.unwrap();
                assert!(stream.read(&mut [0; 1024]).await.unwrap() > 0);
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        };
        let asking = async {
            let url = format!("http://{address}/mcp");
            let diagnosis = examined(&url, unreachable()).await;
            assert_eq!(shown(&diagnosis), "+resolve +connect !HTTP ?protocol ?authorisation");
            let diagnosis = examined(&url, ConnectError::Unauthorized).await;
            let expected = "+resolve +connect +HTTP ?protocol !authorisation";
            assert_eq!(shown(&diagnosis), expected, "{diagnosis:?}");
            assert!(diagnosis.advice.unwrap().contains("--token-file"));
        };
        tokio::join!(answering, asking);
    }

    #[test]
    fn with_a_connection_nothing_failed() {
        let mut diagnosis = Diagnosis { is_ready: true, ..Diagnosis::default() };
        let attempt = Attempt {
            state: ConnectionState::Ready,
            failure: None,
            revision: Some("2025-11-25".to_owned()),
        };
        diagnosis.fail("connect", "by a proxy".to_owned(), None);
        let target = Target::from("http://127.0.0.1:1/mcp");
        diagnosis.speak_http(Err("?".to_owned()), &attempt, &target);
        assert_eq!(shown(&diagnosis), "?connect +protocol +authorisation");
        assert_eq!(diagnosis.advice, None);
    }
}
