//! The driver: keeps the connection, carries out the machine's requests, and reconnects.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rmcp::model::{CacheScope, ReadResourceResult};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cache::ResourceContent;
use crate::connect::{self, ConnectError, End, Link, Listening, Taken};
use crate::engine::{Engine, SIDE_BY_SIDE, Streams, Wish};
use crate::events::ConnectionState;
use crate::lists::List;
use crate::machine::{Input, PageAnswer, Request};
use crate::request::RequestError;

/// A connection that lived this long was good: the next retry schedule starts from its beginning.
const GOOD: Duration = Duration::from_secs(5);
/// Broken streams of notices that are reopened on one connection within [`GOOD`] of each other.
/// After that the connection counts as lost.
const REOPENINGS: u32 = 3;

/// Why a connection is no longer used.
enum ConnectionEnd {
    Lost(Arc<str>),
    Wished(Wish),
    Closed,
}

/// What to do without a connection.
enum Next {
    /// Make the first attempt.
    First,
    /// Connect at once, because the user asked for it.
    Now,
    /// Retry on schedule; why the last attempt or connection failed.
    Later(Arc<str>),
    /// Wait until the user asks for a connection.
    Rest(Arc<str>),
}

impl From<Wish> for Next {
    fn from(wish: Wish) -> Self {
        match wish {
            Wish::Connect => Self::Now,
            Wish::Disconnect => Self::Rest("it was asked for".into()),
        }
    }
}

/// The end of an attempt or a rest.
enum Heard {
    Connected(Result<NumberedLink, ConnectError>),
    Wished(Wish),
    Closed,
}

/// A connection and its number.
type NumberedLink = (u64, Arc<Link>);

/// The result of a driver's task.
enum Done {
    /// A request was carried out and its answer reported.
    Request,
    /// Unneeded subscriptions were ended.
    Released,
    /// The stream of notices with this number ended.
    Stream(u64, End),
    /// The stream was reopened, or could not be.
    Reopened(Result<(), Arc<str>>),
}

impl Done {
    /// The connection depends on it.
    fn of(result: Result<(), RequestError>) -> Self {
        match result {
            Ok(()) => Self::Request,
            Err(error) => Self::Reopened(Err(error.to_string().into())),
        }
    }
}

pub(crate) struct Driver {
    engine: Arc<Engine>,
    listenings: mpsc::Receiver<Streams>,
    wishes: watch::Receiver<(u64, Wish)>,
    /// The number of the last wish that was taken.
    taken: u64,
    tasks: JoinSet<Done>,
    /// Connections that are closing; none delays the next.
    farewells: JoinSet<()>,
    /// The modern streams of notices, which are opened and replaced together.
    streams: Vec<AbortHandle>,
    /// Ends unneeded subscriptions, one group after the other.
    releasing: Option<AbortHandle>,
    /// Numbers the sets of streams: signals of an older set are ignored.
    opened: u64,
    /// Limits the reads in progress.
    reads: Arc<Semaphore>,
    reopenings: u32,
    last_reopened: Option<Instant>,
}

impl Driver {
    pub(crate) fn new(engine: Arc<Engine>, listenings: mpsc::Receiver<Streams>) -> Self {
        Self {
            wishes: engine.wishes(),
            taken: 0,
            engine,
            listenings,
            tasks: JoinSet::new(),
            farewells: JoinSet::new(),
            streams: Vec::new(),
            releasing: None,
            opened: 0,
            reads: Arc::new(Semaphore::new(SIDE_BY_SIDE)),
            reopenings: 0,
            last_reopened: None,
        }
    }

    /// Opens one connection.
    pub(crate) async fn connect(engine: &Arc<Engine>) -> Result<NumberedLink, ConnectError> {
        let (epoch, sink) = engine.next_epoch();
        engine.step(Input::State(ConnectionState::Connecting));
        let history = engine.history.clone();
        let link =
            connect::open(&engine.target, &engine.config, sink, history, &engine.memory).await?;
        Ok((epoch, Arc::new(link)))
    }

    /// Opens the first connection, with as many attempts as needed, and runs the mirror.
    pub(crate) async fn start(mut self, cancel: CancellationToken) {
        let mut failed = 0;
        match self.come_back(&mut failed, Next::First, &cancel).await {
            Ok(first) => self.keep(first, failed, cancel).await,
            Err(reason) => self.close(&reason).await,
        }
    }

    /// Runs the mirror until `cancel`, or until the connection ends for good.
    pub(crate) async fn run(self, first: NumberedLink, cancel: CancellationToken) {
        self.keep(first, 0, cancel).await;
    }

    /// `failed` is the number of failed attempts before this connection.
    async fn keep(mut self, first: NumberedLink, mut failed: u32, cancel: CancellationToken) {
        let (mut epoch, mut link) = first;
        loop {
            let began = Instant::now();
            let outcome = self.serve(epoch, &link, &cancel).await;
            if let ConnectionEnd::Lost(reason) = &outcome {
                let reason = reason.clone();
                self.engine.step(Input::State(ConnectionState::Lost { reason }));
            }
            self.leave(match outcome {
                ConnectionEnd::Lost(_) => self.engine.reconnect().is_some(),
                ConnectionEnd::Wished(_) => true,
                ConnectionEnd::Closed => false,
            });
            if began.elapsed() >= GOOD {
                failed = 0;
            }
            let next = match outcome {
                ConnectionEnd::Lost(reason) => Next::Later(reason),
                ConnectionEnd::Wished(wish) => wish.into(),
                ConnectionEnd::Closed => {
                    link.close().await;
                    return self.close("it was closed").await;
                }
            };
            if matches!(next, Next::Rest(_)) {
                // The caller of `disconnect` waits for the end.
                link.close().await;
            } else {
                self.farewells.spawn(async move { link.close().await });
            }
            match self.come_back(&mut failed, next, &cancel).await {
                Ok(next) => (epoch, link) = next,
                Err(reason) => return self.close(&reason).await,
            }
        }
    }

    /// Uses a connection until it ends.
    async fn serve(
        &mut self,
        epoch: u64,
        link: &Arc<Link>,
        cancel: &CancellationToken,
    ) -> ConnectionEnd {
        let engine = self.engine.clone();
        // Unneeded subscriptions are not restored.
        let unneeded = engine.events.watchers.take_unneeded();
        engine.step(Input::Unsubscribed { uris: unneeded });
        engine.set_link(Some(link.clone()));
        let mut ended = engine.ended.subscribe();
        let greeting = engine.clone();
        let greeted = link.clone();
        self.tasks.spawn(async move { Done::of(greeting.welcome(&greeted).await) });
        loop {
            self.begin_work(link);
            let deadline = engine.machine().deadline();
            let due = async {
                match deadline {
                    Some(deadline) => tokio::time::sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = cancel.cancelled() => return ConnectionEnd::Closed,
                (number, wish) = wished(&mut self.wishes) => {
                    self.taken = number;
                    return ConnectionEnd::Wished(wish);
                }
                end = ended.wait_for(|ended| ended.0 == epoch) => {
                    let reason = end.map_or_else(|_| "it ended".into(), |ended| ended.1.clone());
                    return ConnectionEnd::Lost(reason);
                }
                () = engine.awake.notified() => {}
                () = due => engine.step(Input::Tick),
                Some((of, listenings)) = self.listenings.recv() => {
                    // A stream of a closed connection is useless.
                    if Arc::ptr_eq(&of, link) {
                        self.follow(listenings);
                    }
                }
                Some(done) = self.tasks.join_next() => {
                    let reason = match done {
                        Ok(done) => self.finished(done, link),
                        Err(error) => {
                            error.is_panic().then(|| "a handler of this client failed".into())
                        }
                    };
                    if let Some(reason) = reason {
                        return ConnectionEnd::Lost(reason);
                    }
                }
            }
        }
    }

    /// A task ended. Returns a reason if that ends the connection.
    fn finished(&mut self, done: Done, link: &Arc<Link>) -> Option<Arc<str>> {
        match done {
            Done::Request | Done::Reopened(Ok(())) => None,
            Done::Released => {
                self.releasing = None;
                None
            }
            Done::Stream(number, _) if number != self.opened => None,
            // A stream that ends with a result ends its subscriptions. The connection lives: a
            // server that is leaving will not open another stream.
            Done::Stream(_, end) => {
                let reason: Arc<str> = match end {
                    End::Graceful => "the server closed the stream of notices".into(),
                    End::Broken(reason) => reason,
                };
                // The other streams of the set are reopened with it.
                self.opened += 1;
                self.engine.step(Input::StreamLost);
                let is_again = self.last_reopened.is_some_and(|last| last.elapsed() < GOOD);
                self.reopenings = if is_again { self.reopenings + 1 } else { 0 };
                if self.reopenings >= REOPENINGS {
                    return Some(reason);
                }
                self.last_reopened = Some(Instant::now());
                let (engine, link) = (self.engine.clone(), link.clone());
                self.tasks.spawn(async move {
                    let opened = engine.listen_again(&link).await;
                    Done::Reopened(opened.map_err(|error| format!("{reason}: {error}").into()))
                });
                None
            }
            Done::Reopened(Err(reason)) => Some(reason),
        }
    }

    /// Replaces the current streams of notices, which end now.
    fn follow(&mut self, listenings: Vec<Listening>) {
        self.opened += 1;
        let number = self.opened;
        let old = std::mem::take(&mut self.streams);
        for mut listening in listenings {
            let following = async move { Done::Stream(number, listening.ended().await) };
            self.streams.push(self.tasks.spawn(following));
        }
        old.iter().for_each(AbortHandle::abort);
    }

    fn begin_work(&mut self, link: &Arc<Link>) {
        if self.engine.events.watchers.has_unneeded() && self.releasing.is_none() {
            let (engine, link) = (self.engine.clone(), link.clone());
            let releasing = self.tasks.spawn(async move {
                if let Err(error) = engine.release(&link).await {
                    tracing::debug!(%error, "a subscription could not be ended");
                }
                Done::Released
            });
            self.releasing = Some(releasing);
        }
        for request in self.engine.take_work() {
            let (engine, link, reads) = (self.engine.clone(), link.clone(), self.reads.clone());
            self.tasks.spawn(async move {
                let _turn = match request {
                    Request::Read { .. } => reads.acquire().await.ok(),
                    _ => None,
                };
                carry_out(&engine, &link, request).await
            });
        }
    }

    /// Nothing of a connection outlives it, except the state to compare with.
    fn leave(&mut self, keep: bool) {
        // A new set: signals of the old one are ignored.
        self.tasks = JoinSet::new();
        self.streams = Vec::new();
        self.releasing = None;
        self.reopenings = 0;
        while self.listenings.try_recv().is_ok() {}
        self.engine.set_link(None);
        self.engine.end_epoch();
        self.engine.take_work();
        if !keep {
            return;
        }
        self.engine.step(Input::Gone { keep });
    }

    /// Waits and retries; gives up with a reason.
    async fn come_back(
        &mut self,
        failed: &mut u32,
        mut next: Next,
        cancel: &CancellationToken,
    ) -> Result<NumberedLink, Arc<str>> {
        loop {
            let wait = self.begin(&next, failed)?;
            let heard = tokio::select! {
                () = cancel.cancelled() => Heard::Closed,
                (number, wish) = wished(&mut self.wishes) => {
                    self.taken = number;
                    Heard::Wished(wish)
                }
                connected = attempt(&self.engine, wait) => Heard::Connected(connected),
            };
            next = match heard {
                Heard::Closed => return Err("it was closed".into()),
                Heard::Wished(wish) => wish.into(),
                Heard::Connected(Ok(connected)) => {
                    self.engine.set_failure(None);
                    return Ok(connected);
                }
                Heard::Connected(Err(error)) => {
                    let reason = error.to_string().into();
                    self.engine.set_failure(Some(Arc::new(error)));
                    match next {
                        // A requested attempt may fail without ending the mirror.
                        Next::Now if self.engine.reconnect().is_none() => Next::Rest(reason),
                        _ => Next::Later(reason),
                    }
                }
            };
        }
    }

    /// Announces the next step, and returns the wait before an attempt; `None` for no attempt.
    fn begin(&self, next: &Next, failed: &mut u32) -> Result<Option<Duration>, Arc<str>> {
        let engine = &self.engine;
        let wait = match next {
            Next::First => Some(Duration::ZERO),
            Next::Now => {
                *failed = 0;
                engine.step(Input::State(ConnectionState::Connecting));
                Some(Duration::ZERO)
            }
            Next::Later(reason) => {
                let backoff = engine.reconnect().ok_or_else(|| reason.clone())?;
                let after = backoff.wait(*failed, random()).ok_or_else(|| reason.clone())?;
                let (attempt, reason) = (*failed, reason.clone());
                engine.step(Input::State(ConnectionState::Retrying { attempt, after, reason }));
                *failed = failed.saturating_add(1);
                Some(after)
            }
            Next::Rest(reason) => {
                let reason = reason.clone();
                engine.step(Input::State(ConnectionState::Disconnected { reason }));
                None
            }
        };
        // The caller sees the resulting state.
        engine.grant(self.taken);
        Ok(wait)
    }

    /// The end: nothing of ours outlives this call.
    async fn close(mut self, reason: &str) {
        self.engine.set_link(None);
        self.engine.step(Input::Gone { keep: false });
        while self.farewells.join_next().await.is_some() {}
        self.engine.step(Input::State(ConnectionState::Closed { reason: reason.into() }));
    }
}

/// One attempt to connect, after a wait.
async fn attempt(
    engine: &Arc<Engine>,
    after: Option<Duration>,
) -> Result<NumberedLink, ConnectError> {
    match after {
        Some(after) => {
            tokio::time::sleep(after).await;
            Driver::connect(engine).await
        }
        None => std::future::pending().await,
    }
}

/// The next wish. Cancel-safe: it is taken either here or at the next call.
async fn wished(wishes: &mut watch::Receiver<(u64, Wish)>) -> (u64, Wish) {
    // Invariant: the sender is in the shared state, so it exists.
    let _ = wishes.changed().await;
    *wishes.borrow_and_update()
}

async fn carry_out(engine: &Arc<Engine>, link: &Arc<Link>, request: Request) -> Done {
    match request {
        Request::Page { list, ticket, cursor } => {
            let answer = match list {
                List::Tools => PageAnswer::Tools(link.tools(cursor).await),
                List::Resources => PageAnswer::Resources(link.resources(cursor).await),
                List::Templates => PageAnswer::Templates(link.templates(cursor).await),
                List::Prompts => PageAnswer::Prompts(link.prompts(cursor).await),
            };
            engine.step(Input::Page { ticket, answer });
        }
        Request::Read { uri, ticket } => {
            let answer = link.reread(&uri).await.map(content);
            engine.step(Input::Reread { uri, ticket, answer });
        }
        Request::Restore => {
            let uris = engine.machine().subscriptions().cloned().collect();
            return Done::of(engine.restore(link, uris).await);
        }
        Request::Watch { uri } => return Done::of(engine.restore(link, vec![uri]).await),
    }
    Done::Request
}

/// The content of a read, for the cache.
pub(crate) fn content(taken: Taken<ReadResourceResult>) -> ResourceContent {
    let Taken { result, odd, raw } = taken;
    ResourceContent {
        raw,
        contents: result.contents,
        odd,
        read_at: SystemTime::now(),
        ttl: result.ttl_ms.map(Duration::from_millis),
        private: result.cache_scope == Some(CacheScope::Private),
    }
}

/// From 0 to 1. It need not be secure: it keeps clients from returning at the same moment.
fn random() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
