//! Connecting and disconnecting.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{Inner, Mirror};
use crate::config::Config;
use crate::connect::ConnectError;
use crate::driver::Driver;
use crate::engine::{Engine, Wish};
use crate::events::{ConnectionState, Events};
use crate::machine::{Input, Machine};
use crate::options::RequestOptions;
use crate::request::RequestError;
use crate::target::Target;

/// Connecting.
impl Mirror {
    /// Connects with the default configuration, and loads the lists.
    ///
    /// The target is a URL, a [`CommandTarget`](crate::CommandTarget), a [`std::process::Command`] or
    /// the entry of a server in an `mcp.json` as [`serde_json::Value`]. If the connection is lost
    /// later, the mirror connects again by itself.
    ///
    /// ```no_run
    /// # async fn example() -> Result<(), tidings_mirror::ConnectError> {
    /// let mirror = tidings_mirror::Mirror::connect("http://127.0.0.1:8484/mcp").await?;
    /// println!("{} tools", mirror.tools().len());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`connect_with`](Self::connect_with).
    pub async fn connect<T>(target: T) -> Result<Self, ConnectError>
    where
        T: TryInto<Target>,
        ConnectError: From<T::Error>,
    {
        Self::connect_with(target, Config::default()).await
    }

    /// Connects, and loads the lists.
    ///
    /// A list that cannot be loaded does not fail the connection: see
    /// [`list_error`](Self::list_error).
    ///
    /// # Errors
    ///
    /// If the server cannot be reached or started, speaks no common protocol, or is lost before the
    /// lists are loaded. The first connection is tried once; [`supervise`](Self::supervise)
    /// retries.
    pub async fn connect_with<T>(target: T, config: Config) -> Result<Self, ConnectError>
    where
        T: TryInto<Target>,
        ConnectError: From<T::Error>,
    {
        Self::connect_with_events(target, config).await.map(|(mirror, _)| mirror)
    }

    /// Connects as [`connect_with`](Self::connect_with) does, and returns the events from the first
    /// one on.
    ///
    /// # Errors
    ///
    /// Those of [`connect_with`](Self::connect_with).
    pub async fn connect_with_events<T>(
        target: T,
        config: Config,
    ) -> Result<(Self, Events), ConnectError>
    where
        T: TryInto<Target>,
        ConnectError: From<T::Error>,
    {
        Self::open(target.try_into()?, config).await
    }

    async fn open(target: Target, config: Config) -> Result<(Self, Events), ConnectError> {
        let (engine, listenings) = Engine::new(target, config);
        let events = engine.events.receiver();
        let first = Driver::connect(&engine).await?;
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Driver::new(engine.clone(), listenings).run(first, cancel.clone()));
        engine.wait_for(Machine::is_settled).await;
        if engine.machine().losses() > 0 {
            // A connection that was lost before it was complete is not kept.
            let stderr = engine.memory.stderr();
            return Err(match &engine.target {
                Target::Command(_) => ConnectError::Died { status: None, stderr, garbage: None },
                _ => ConnectError::Transport(
                    "the connection ended before the lists were loaded".to_owned(),
                ),
            });
        }
        Ok((Self::of(engine, cancel, tasks), events))
    }

    /// A mirror that exists before its server: it connects in the background, and retries as
    /// [`Config::reconnect`] says.
    ///
    /// Meanwhile the lists are empty, [`connection`](Self::connection) has the state and why the
    /// last attempt failed, [`stderr`](Self::stderr) has the output of a program, and requests fail
    /// with [`RequestError::NotConnected`]. [`ready`](Self::ready) waits for the lists.
    ///
    /// ```no_run
    /// # use tidings_mirror::{Config, Mirror, RequestError};
    /// # async fn example() -> Result<(), RequestError> {
    /// let (mirror, _events) = Mirror::supervise("http://127.0.0.1:8484/mcp", Config::default());
    /// println!("{}", mirror.connection()); // connecting
    /// mirror.ready().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a Tokio runtime.
    pub fn supervise(target: impl Into<Target>, config: Config) -> (Self, Events) {
        let (engine, listenings) = Engine::new(target.into(), config);
        let events = engine.events.receiver();
        engine.step(Input::State(ConnectionState::Connecting));
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        tasks.spawn(Driver::new(engine.clone(), listenings).start(cancel.clone()));
        (Self::of(engine, cancel, tasks), events)
    }

    fn of(engine: Arc<Engine>, cancel: CancellationToken, tasks: JoinSet<()>) -> Self {
        let inner = Inner { engine, tags: AtomicU64::new(0), cancel, tasks: Mutex::new(tasks) };
        Self { inner: Arc::new(inner), options: Arc::default() }
    }

    /// Waits until there is a connection and its lists are loaded, across retries and disconnects.
    ///
    /// # Errors
    ///
    /// [`RequestError::NotConnected`] if the connection ended for good.
    pub async fn ready(&self) -> Result<(), RequestError> {
        let engine = &self.inner.engine;
        let is_over =
            |machine: &Machine| matches!(machine.connection(), ConnectionState::Closed { .. });
        engine.wait_for(|machine| machine.is_loaded_now() || is_over(machine)).await;
        if is_over(&engine.machine()) { engine.link().map(drop) } else { Ok(()) }
    }

    /// The same mirror, with these options for reads, prompts, calls and completions.
    ///
    /// ```no_run
    /// # use tidings_mirror::{Mirror, RequestError, RequestOptions};
    /// # async fn example(mirror: Mirror) -> Result<(), RequestError> {
    /// let traced = mirror.with(RequestOptions::new().meta("example.com/trace", "7f3a"));
    /// traced.call_tool("add", [("a", 1), ("b", 2)]).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with(&self, options: RequestOptions) -> Self {
        Self { inner: self.inner.clone(), options: Arc::new(options) }
    }

    /// Connects now: a pending attempt is made at once, and an open connection is replaced. Lists,
    /// contents and watches are kept and compared, as after a loss. Returns when the attempt has
    /// begun; [`ready`](Self::ready) waits for its end.
    ///
    /// If the attempt fails, it is retried as [`Config::reconnect`] says; without that, the mirror
    /// is [`ConnectionState::Disconnected`].
    ///
    /// # Errors
    ///
    /// [`RequestError::NotConnected`] if the connection ended for good, and [`RequestError::Invalid`]
    /// if the target is a pair of streams, which can be used only once.
    pub async fn reconnect_now(&self) -> Result<(), RequestError> {
        let engine = &self.inner.engine;
        if engine.target.is_single() {
            return Err(RequestError::Invalid("streams cannot be connected to again".to_owned()));
        }
        engine.wish(Wish::Connect).await;
        if self.is_closed() { engine.link().map(drop) } else { Ok(()) }
    }

    /// Ends the connection and keeps the rest: the session is deleted and a child process ends,
    /// while lists, contents, watches and this handle stay. The mirror reconnects only with
    /// [`reconnect_now`](Self::reconnect_now). A pending attempt is cancelled.
    ///
    /// If [`Config::resubscribe`] is off, watches end with the connection.
    pub async fn disconnect(&self) {
        self.inner.engine.wish(Wish::Disconnect).await;
    }

    /// Whether the connection ended for good.
    fn is_closed(&self) -> bool {
        matches!(self.connection(), ConnectionState::Closed { .. })
    }

    /// Ends the connection for good: the session is deleted, a child process ends with all its
    /// children, and lists, contents and subscriptions are cleared.
    pub async fn close(&self) {
        self.inner.cancel.cancel();
        let mut tasks = {
            let mut tasks = self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *tasks)
        };
        let is_first = !tasks.is_empty();
        while tasks.join_next().await.is_some() {}
        let engine = &self.inner.engine;
        let is_closed =
            |machine: &mut Machine| matches!(machine.connection(), ConnectionState::Closed { .. });
        if is_first && !is_closed(&mut engine.machine()) {
            // The driver failed: clears the state in its place.
            engine.step(Input::Gone { keep: false });
            let reason = "the mirror failed".into();
            engine.step(Input::State(ConnectionState::Closed { reason }));
        }
        engine.wait_for(is_closed).await;
    }
}
