//! The shared connection to an upstream: started once, kept, and waited for.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidings_mirror::events::ConnectionState;
use tidings_mirror::{Events, Handlers, Mirror, Target};
use tidings_server::AnswerError;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

use crate::config::Config;
use crate::failure::Failures;
use crate::watch::schedule::SECOND_LOOK;

/// The shared connection of one upstream.
pub(crate) struct House {
    target: Target,
    settings: tidings_mirror::Config,
    state: Mutex<State>,
    /// There is a mirror, whose events wait to be taken.
    pub(crate) started: Notify,
    /// Advances whenever the connection's state may be another.
    moved: watch::Sender<u64>,
    failures: Failures,
}

#[derive(Default)]
struct State {
    mirror: Option<Mirror>,
    events: Option<Events>,
    /// Whether it ends, and is not started again.
    is_over: bool,
}

impl House {
    pub(crate) fn new(config: &Config, handlers: Handlers) -> Self {
        let failures = Failures::new(config);
        Self {
            target: failures.guarded(config.target.clone()),
            settings: settings(config, handlers),
            state: Mutex::default(),
            started: Notify::new(),
            moved: watch::Sender::new(0),
            failures,
        }
    }

    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The mirror, if it was started.
    pub(crate) fn mirror(&self) -> Option<Mirror> {
        self.lock().mirror.clone()
    }

    /// Starts the mirror if it is not.
    pub(crate) fn start(&self) -> Option<Mirror> {
        let mut state = self.lock();
        if state.mirror.is_none() && !state.is_over {
            let (mirror, events) = Mirror::supervise(self.target.clone(), self.settings.clone());
            (state.mirror, state.events) = (Some(mirror), Some(events));
            self.started.notify_one();
        }
        state.mirror.clone()
    }

    /// The events of a mirror that was just started.
    pub(crate) fn take_events(&self) -> Option<Events> {
        self.lock().events.take()
    }

    /// The connection's state may be another.
    pub(crate) fn move_on(&self) {
        self.moved.send_modify(|moved| *moved += 1);
    }

    /// Ends the connection for good.
    pub(crate) async fn end(&self) {
        let mirror = {
            let mut state = self.lock();
            state.is_over = true;
            state.mirror.take()
        };
        if let Some(mirror) = mirror {
            mirror.close().await;
        }
        self.move_on();
    }

    /// The mirror with a connection. A server that is starting is waited for, up to its timeout; for
    /// one that is down the reason is returned at once.
    pub(crate) async fn ready(&self) -> Result<Mirror, AnswerError> {
        let deadline = Instant::now() + self.settings.connect_timeout;
        let mut moves = self.moved.subscribe();
        let mirror = self.start().ok_or_else(|| self.failures.down("it was removed"))?;
        loop {
            moves.mark_unchanged();
            match mirror.connection() {
                ConnectionState::Ready => return Ok(mirror),
                ConnectionState::Connecting => {}
                state => return Err(self.failures.down(&reason(&state))),
            }
            match tokio::time::timeout_at(deadline, moves.changed()).await {
                Ok(_) => {}
                Err(_) => return Err(self.failures.starting(self.settings.connect_timeout)),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why there is no connection.
pub(crate) fn reason(state: &ConnectionState) -> Arc<str> {
    match state {
        ConnectionState::Lost { reason }
        | ConnectionState::Retrying { reason, .. }
        | ConnectionState::Disconnected { reason }
        | ConnectionState::Closed { reason } => reason.clone(),
        other => other.to_string().into(),
    }
}

/// How an upstream is connected to.
pub(crate) fn settings(config: &Config, handlers: Handlers) -> tidings_mirror::Config {
    let mut settings = tidings_mirror::Config::new("tidings", env!("CARGO_PKG_VERSION"));
    settings.connect_timeout = config.timeouts.connect;
    settings.request_timeout = config.timeouts.call;
    settings.second_look = Some(SECOND_LOOK);
    settings.unannounced = true;
    settings.as_sent = true;
    settings.handlers = handlers;
    settings
}
