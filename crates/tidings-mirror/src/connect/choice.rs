//! `Protocol::Auto`: which era to try first, and what is remembered.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};

use super::{ConnectError, Signal, Sink};
use crate::config::{Config, Protocol};
use crate::era::Era;
use crate::target::Target;

/// Time for a server to answer `server/discover`. A legacy server may never answer, so after this
/// it counts as legacy. A modern server that starts slowly is then used as legacy if it supports
/// that, and asked once more if not.
const PROBE: Duration = Duration::from_secs(2);

/// The era of the server of one mirror, once it is known.
#[derive(Debug, Default)]
pub(crate) struct EraMemory(Mutex<Option<Era>>);

impl EraMemory {
    pub(super) fn note(&self, era: Option<Era>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = era;
    }

    /// The era to try first.
    pub(super) fn first(&self, wanted: &Protocol) -> Protocol {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (wanted, known) {
            (Protocol::Auto, Some(Era::Legacy)) => Protocol::Legacy,
            (Protocol::Auto, Some(Era::Modern)) => Protocol::Modern,
            _ => wanted.clone(),
        }
    }
}

/// Signals of one attempt to connect. The end of a failed attempt is not the end of the connection,
/// so signals are held back until the attempt has succeeded.
pub(super) struct Attempt {
    sink: Sink,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_over: bool,
    is_open: bool,
    is_late_modern: bool,
    ended: Option<Arc<str>>,
}

impl Attempt {
    pub(super) fn new(sink: Sink) -> Arc<Self> {
        Arc::new(Self { sink, state: Mutex::default() })
    }

    pub(super) fn sink(self: &Arc<Self>) -> Sink {
        let attempt = self.clone();
        Arc::new(move |signal| attempt.hear(signal))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, signal: Signal) {
        let mut state = self.state();
        match signal {
            _ if state.is_over => {}
            Signal::LateModern => state.is_late_modern = true,
            Signal::Ended(reason) if !state.is_open => {
                state.ended.get_or_insert(reason);
            }
            other => {
                drop(state);
                (self.sink)(other);
            }
        }
    }

    /// The attempt succeeded: its signals are passed on.
    pub(super) fn worked(&self) {
        let ended = {
            let mut state = self.state();
            state.is_open = true;
            state.ended.take()
        };
        if let Some(reason) = ended {
            (self.sink)(Signal::Ended(reason));
        }
    }

    /// The attempt failed: its signals are dropped.
    pub(super) fn failed(&self) {
        self.state().is_over = true;
    }

    /// The second attempt after `first` failed; `None` if it would be useless.
    pub(super) fn second(
        &self,
        wanted: &Protocol,
        first: &Protocol,
        target: &Target,
        error: &ConnectError,
    ) -> Option<Protocol> {
        let is_final = matches!(
            error,
            ConnectError::Spawn { .. }
                | ConnectError::Url(_)
                | ConnectError::Header(_)
                | ConnectError::Unauthorized
                | ConnectError::Forbidden
        );
        // A program that fell silent is started again; a remote server would be as slow as before.
        let is_final = is_final
            || matches!(error, ConnectError::Timeout { .. })
                && !matches!(target, Target::Command(_));
        // Streams can be used once.
        if *wanted != Protocol::Auto || is_final || target.is_single() {
            return None;
        }
        Some(match first {
            Protocol::Auto if self.state().is_late_modern => Protocol::Modern,
            Protocol::Auto => Protocol::Legacy,
            // The remembered era is out of date.
            _ => Protocol::Auto,
        })
    }
}

/// Time for the first attempt. A program may fall silent at `server/discover`, so half of the time
/// is left to start it again.
pub(super) fn first_timeout(config: &Config, first: &Protocol, target: &Target) -> Duration {
    match (first, target) {
        (Protocol::Auto, Target::Command(_)) => config.connect_timeout / 2,
        _ => config.connect_timeout,
    }
}

/// Time for the answer to `server/discover`. Most of the time to connect is left for the handshake.
pub(super) fn probe(config: &Config) -> Option<Duration> {
    (config.protocol == Protocol::Auto).then(|| PROBE.min(config.connect_timeout / 4))
}

/// The answer in place of a missing answer to `server/discover`.
pub(super) fn not_modern(id: RequestId, why: String) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, why, None);
    ServerJsonRpcMessage::error(error, Some(id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::{CommandTarget, StreamsTarget};

    fn refused() -> ConnectError {
        ConnectError::Refused("no".to_owned())
    }

    #[track_caller]
    fn check(attempt: &Attempt, first: &Protocol, error: &ConnectError, second: Option<&Protocol>) {
        let target = Target::Command(CommandTarget::new("server", Vec::new()));
        assert_eq!(attempt.second(&Protocol::Auto, first, &target, error).as_ref(), second);
        assert_eq!(attempt.second(&Protocol::Legacy, first, &target, error), None);
        let (ours, theirs) = tokio::io::duplex(1);
        let streams = Target::Streams(StreamsTarget::new(ours, theirs));
        assert_eq!(attempt.second(&Protocol::Auto, first, &streams, error), None);
    }

    #[test]
    fn the_second_attempt_is_what_the_first_was_not() {
        let attempt = Attempt::new(Arc::new(|_| {}));
        check(&attempt, &Protocol::Auto, &refused(), Some(&Protocol::Legacy));
        check(&attempt, &Protocol::Legacy, &refused(), Some(&Protocol::Auto));
        check(&attempt, &Protocol::Auto, &ConnectError::Unauthorized, None);
        let closed = ConnectError::Unreachable("it hung up".to_owned());
        check(&attempt, &Protocol::Auto, &closed, Some(&Protocol::Legacy));
        let timeout = Duration::from_secs(15);
        let silent = ConnectError::Timeout { timeout, stderr: Vec::new(), garbage: None };
        check(&attempt, &Protocol::Auto, &silent, Some(&Protocol::Legacy));
        let http = Target::Http(crate::target::HttpTarget::new("http://127.0.0.1:1/"));
        assert_eq!(attempt.second(&Protocol::Auto, &Protocol::Auto, &http, &silent), None);
        attempt.sink()(Signal::LateModern);
        check(&attempt, &Protocol::Auto, &refused(), Some(&Protocol::Modern));
    }

    #[test]
    fn the_end_of_an_attempt_is_told_if_it_is_the_connection() {
        let told = Arc::new(Mutex::new(Vec::new()));
        let heard = told.clone();
        let sink: Sink = Arc::new(move |signal| heard.lock().unwrap().push(format!("{signal:?}")));
        let (failed, worked) = (Attempt::new(sink.clone()), Attempt::new(sink));
        for attempt in [&failed, &worked] {
            attempt.sink()(Signal::Ended("it ended".into()));
        }
        failed.failed();
        failed.sink()(Signal::StreamLost);
        assert!(told.lock().unwrap().is_empty());
        worked.worked();
        assert_eq!(*told.lock().unwrap(), ["Ended(\"it ended\")"]);
    }

    #[test]
    fn what_worked_is_tried_first() {
        let memory = EraMemory::default();
        assert_eq!(memory.first(&Protocol::Auto), Protocol::Auto);
        memory.note(Some(Era::Legacy));
        assert_eq!(memory.first(&Protocol::Auto), Protocol::Legacy);
        assert_eq!(memory.first(&Protocol::Modern), Protocol::Modern);
    }
}
