//! `Protocol::Auto`: which era to try, in which order, and what is remembered of it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage};

use super::{ConnectError, Signal, Sink};
use crate::config::{Config, Protocol};
use crate::era::Era;
use crate::target::Target;

/// How long a server may take to say whether it is modern. A legacy one may never answer that, so
/// after this it is taken for legacy; a modern one that is slow to start is then spoken to as legacy
/// if it speaks that too, and asked once more if not.
const PROBE: Duration = Duration::from_secs(2);

/// The era that one mirror's server turned out to be of; none at first.
#[derive(Debug, Default)]
pub(crate) struct EraMemory(Mutex<Option<Era>>);

impl EraMemory {
    pub(super) fn note(&self, era: Option<Era>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = era;
    }

    /// What to try first.
    pub(super) fn first(&self, wanted: &Protocol) -> Protocol {
        let known = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (wanted, known) {
            (Protocol::Auto, Some(Era::Legacy)) => Protocol::Legacy,
            (Protocol::Auto, Some(Era::Modern)) => Protocol::Modern,
            _ => wanted.clone(),
        }
    }
}

/// What one attempt to connect says of itself. The end of an attempt that failed is not the end of the
/// connection, so it is not told until it is known which of them it is.
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

    /// It worked: what it says is said by the connection.
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

    /// It failed: nothing of it is heard any longer.
    pub(super) fn failed(&self) {
        self.state().is_over = true;
    }

    /// What to try after `first` failed; nothing if that would be no use.
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
        // A program that fell silent is started again; a server elsewhere is as slow as before.
        let is_final = is_final
            || matches!(error, ConnectError::Timeout { .. })
                && !matches!(target, Target::Command(_));
        // Streams can be used once.
        if *wanted != Protocol::Auto || is_final || matches!(target, Target::Streams(_)) {
            return None;
        }
        Some(match first {
            Protocol::Auto if self.state().is_late_modern => Protocol::Modern,
            Protocol::Auto => Protocol::Legacy,
            // It was remembered, and is not true any longer.
            _ => Protocol::Auto,
        })
    }
}

/// How long the first attempt may take. A program may fall silent at the question whether it is
/// modern, so half of the time is left to start it again.
pub(super) fn first_timeout(config: &Config, first: &Protocol, target: &Target) -> Duration {
    match (first, target) {
        (Protocol::Auto, Target::Command(_)) => config.connect_timeout / 2,
        _ => config.connect_timeout,
    }
}

/// How long the question whether a server is modern may stay open: most of the time to connect is for
/// what comes after it.
pub(super) fn probe(config: &Config) -> Option<Duration> {
    (config.protocol == Protocol::Auto).then(|| PROBE.min(config.connect_timeout / 4))
}

/// What stands for the answer of a server that did not say whether it is modern.
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
