//! The driver: keeps the connection, carries out what the machine wants, and comes back after a loss.

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

/// A connection that lived this long was a good one: the next loss is waited out from the beginning.
const GOOD: Duration = Duration::from_secs(5);
/// How many streams of notices that broke are opened again on one connection within [`GOOD`] of each
/// other; after that the connection counts as lost.
const REOPENINGS: u32 = 3;

/// Why a connection is not in use any longer.
enum ConnectionEnd {
    Lost(Arc<str>),
    Wished(Wish),
    Closed,
}

/// What to do without a connection.
enum Next {
    /// Try the first time.
    First,
    /// Try at once, because somebody asked for it.
    Now,
    /// Try when the back-off says so; why the attempt or the connection before failed.
    Later(Arc<str>),
    /// Wait until somebody asks for a connection.
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

/// What ends an attempt or a rest.
enum Heard {
    Connected(Result<NumberedLink, ConnectError>),
    Wished(Wish),
    Closed,
}

/// A connection and its number.
type NumberedLink = (u64, Arc<Link>);

/// What a task of the driver came to.
enum Done {
    /// A request was carried out and its answer told.
    Request,
    /// Subscriptions that nobody needs were ended.
    Released,
    /// The stream of notices with this number ended.
    Stream(u64, End),
    /// The stream was opened again, or could not be.
    Reopened(Result<(), Arc<str>>),
}

impl Done {
    /// Of something without which the connection is of no use.
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
    /// Connections that are being left; none holds up the next.
    farewells: JoinSet<()>,
    /// The streams of notices of the modern era, which are opened and replaced together.
    streams: Vec<AbortHandle>,
    /// Ends subscriptions that nobody needs, one lot after the other.
    releasing: Option<AbortHandle>,
    /// Numbers the sets of streams: what an older one has to say is not heard.
    opened: u64,
    /// Lets some reads through and holds up the others.
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

    /// Makes one connection.
    pub(crate) async fn connect(engine: &Arc<Engine>) -> Result<NumberedLink, ConnectError> {
        let (epoch, sink) = engine.next_epoch();
        engine.step(Input::State(ConnectionState::Connecting));
        let history = engine.history.clone();
        let link =
            connect::open(&engine.target, &engine.config, sink, history, &engine.memory).await?;
        Ok((epoch, Arc::new(link)))
    }

    /// Makes the first connection, however often that must be tried, and keeps the mirror.
    pub(crate) async fn start(mut self, cancel: CancellationToken) {
        let mut failed = 0;
        match self.come_back(&mut failed, Next::First, &cancel).await {
            Ok(first) => self.keep(first, failed, cancel).await,
            Err(reason) => self.close(&reason).await,
        }
    }

    /// Keeps the mirror until `cancel`, or until the connection is lost for good.
    pub(crate) async fn run(self, first: NumberedLink, cancel: CancellationToken) {
        self.keep(first, 0, cancel).await;
    }

    /// `failed` is how many attempts were in vain before this connection.
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
                // Whoever asks for the end of a connection waits for it.
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
        // What nobody needs any longer is not restored.
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
                    // One of a connection that is over is of no use.
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

    /// Something ended. Gives a reason if that ends the connection.
    fn finished(&mut self, done: Done, link: &Arc<Link>) -> Option<Arc<str>> {
        match done {
            Done::Request | Done::Reopened(Ok(())) => None,
            Done::Released => {
                self.releasing = None;
                None
            }
            Done::Stream(number, _) if number != self.opened => None,
            // A stream that ends with a result is over, and so is what it told. The connection is not:
            // a server that is leaving will not open another one.
            Done::Stream(_, end) => {
                let reason: Arc<str> = match end {
                    End::Graceful => "the server closed the stream of notices".into(),
                    End::Broken(reason) => reason,
                };
                // The others of its set are opened again with it.
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

    /// Takes new streams of notices in place of the present ones, which end now.
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

    /// Nothing of a connection outlives it but what is kept for comparing.
    fn leave(&mut self, keep: bool) {
        // A new set: what the old one has to say is not heard any longer.
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

    /// Waits and tries as often as it takes; gives up with a reason.
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
                Heard::Connected(Ok(connected)) => return Ok(connected),
                Heard::Connected(Err(error)) => {
                    let reason = error.to_string().into();
                    match next {
                        // What somebody asked for may fail without ending the mirror.
                        Next::Now if self.engine.reconnect().is_none() => Next::Rest(reason),
                        _ => Next::Later(reason),
                    }
                }
            };
        }
    }

    /// Says what comes next, and how long until an attempt; `None` for none.
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
        // Whoever wished for it sees the state that it led to.
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

/// One attempt to connect after a while; never without one.
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

/// The next wish. Cancel-safe: it is either taken here or at the next call.
async fn wished(wishes: &mut watch::Receiver<(u64, Wish)>) -> (u64, Wish) {
    // Invariant: the sender is in what the driver shares, so it is there.
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

/// What a read gave, as it is kept.
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

/// From 0 to 1. It need not be good: it keeps clients from coming back at one moment.
fn random() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
