//! Shared by the handle and the driver: the machine, the current connection, and pending work.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc, watch};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::cache::{self, Reader};
use crate::config::Config;
use crate::connect::{ConnectError, Link, Listening, Memory, Sink};
use crate::events::{ConnectionState, Sender};
use crate::history::History;
use crate::lists::Limits;
use crate::machine::{Input, Machine, Request, Rules};
use crate::pace::Merging;
use crate::request::RequestError;
use crate::target::Target;

/// Replacements of the stream of notices that may wait for the driver, which takes each at once.
const LISTENINGS: usize = 16;
/// Requests of one kind, reads or subscriptions, in progress at once: enough to hide the latency,
/// too few to burden the server.
pub(crate) const SIDE_BY_SIDE: usize = 16;

/// A wish for the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// To connect now.
    Connect,
    /// To disconnect, and not to reconnect.
    Disconnect,
}

/// New streams of notices, and their connection.
pub(crate) type Streams = (Arc<Link>, Vec<Listening>);

/// Steps the machine, and keeps what it wants done for the driver.
pub(crate) struct Engine {
    pub(crate) config: Config,
    pub(crate) target: Target,
    pub(crate) reader: Reader,
    pub(crate) events: Sender,
    pub(crate) history: Arc<History>,
    machine: Mutex<Machine>,
    link: Mutex<Option<Arc<Link>>>,
    pub(crate) memory: Memory,
    /// Numbers the connections; signals of older ones are ignored.
    pub(crate) epoch: AtomicU64,
    /// Requests of the machine that the driver has not begun. Bounded by the machine: one page per
    /// list, one read per watched resource.
    work: Mutex<VecDeque<Request>>,
    /// There is work, or the time of the next tick changed.
    pub(crate) awake: Notify,
    /// Advances with every step.
    moved: watch::Sender<u64>,
    /// Why the last attempt to connect failed; `None` if it did not.
    failure: Mutex<Option<Arc<ConnectError>>>,
    /// The connection that ended last, and the reason.
    pub(crate) ended: watch::Sender<(u64, Arc<str>)>,
    /// Held while the set of watched resources is changed, so that changes are sequential.
    pub(crate) subscribing: AsyncMutex<()>,
    pub(crate) listenings: mpsc::Sender<Streams>,
    /// The last wish and its number; the driver holds the receiver.
    wishes: watch::Sender<(u64, Wish)>,
    /// The number of the last wish that the driver has begun or finished.
    granted: watch::Sender<u64>,
}

impl Engine {
    pub(crate) fn new(target: Target, config: Config) -> (Arc<Self>, mpsc::Receiver<Streams>) {
        let events = Sender::new(config.event_capacity);
        let (reader, writer) = cache::cache(config.cache, events.clone());
        let rules = Rules {
            merging: Merging { quiet: config.quiet, max_wait: config.max_wait },
            limits: Limits { items: config.max_items, pages: config.max_pages },
            resubscribe: config.resubscribe,
            second_look: config.second_look,
            unannounced: config.unannounced,
        };
        let (listenings, opened) = mpsc::channel(LISTENINGS);
        let engine = Self {
            reader,
            history: Arc::new(History::new(config.history)),
            machine: Mutex::new(Machine::new(rules, writer, events.clone())),
            events,
            link: Mutex::new(None),
            memory: Memory::default(),
            epoch: AtomicU64::new(0),
            work: Mutex::default(),
            awake: Notify::new(),
            failure: Mutex::default(),
            moved: watch::Sender::new(0),
            ended: watch::Sender::new((0, "never connected".into())),
            subscribing: AsyncMutex::new(()),
            listenings,
            wishes: watch::Sender::new((0, Wish::Connect)),
            granted: watch::Sender::new(0),
            config,
            target,
        };
        (Arc::new(engine), opened)
    }

    pub(crate) fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the machine an input, and passes its requests on.
    pub(crate) fn step(&self, input: Input) {
        let requests = self.machine().step(input, Instant::now());
        if !requests.is_empty() {
            self.work.lock().unwrap_or_else(PoisonError::into_inner).extend(requests);
        }
        self.awake.notify_one();
        self.moved.send_modify(|moved| *moved += 1);
    }

    /// Why the last attempt to connect failed.
    pub(crate) fn failure(&self) -> Option<Arc<ConnectError>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_failure(&self, failure: Option<Arc<ConnectError>>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    pub(crate) fn take_work(&self) -> VecDeque<Request> {
        std::mem::take(&mut *self.work.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for a state.
    pub(crate) async fn wait_for(&self, is_so: impl Fn(&mut Machine) -> bool) {
        let mut moved = self.moved.subscribe();
        loop {
            moved.mark_unchanged();
            if is_so(&mut self.machine()) {
                return;
            }
            // Invariant: the sender is ours, so it exists.
            let _ = moved.changed().await;
        }
    }

    pub(crate) fn link(&self) -> Result<Arc<Link>, RequestError> {
        let link = self.link.lock().unwrap_or_else(PoisonError::into_inner).clone();
        link.ok_or_else(|| {
            let machine = self.machine();
            let reason: Arc<str> = match machine.connection() {
                ConnectionState::Ready => "it is being closed".into(),
                state => state.to_string().into(),
            };
            RequestError::NotConnected(reason)
        })
    }

    /// How to reconnect; `None` if the target can be used only once.
    pub(crate) fn reconnect(&self) -> Option<Backoff> {
        self.config.reconnect.filter(|_| !self.target.is_single())
    }

    pub(crate) fn set_link(&self, link: Option<Arc<Link>>) {
        *self.link.lock().unwrap_or_else(PoisonError::into_inner) = link;
    }

    /// The wishes from now on.
    pub(crate) fn wishes(&self) -> watch::Receiver<(u64, Wish)> {
        self.wishes.subscribe()
    }

    /// Makes a wish, and waits until the driver has begun it or is gone.
    pub(crate) async fn wish(&self, wish: Wish) {
        let mut number = 0;
        self.wishes.send_modify(|last| {
            number = last.0 + 1;
            *last = (number, wish);
        });
        let mut granted = self.granted.subscribe();
        tokio::select! {
            _ = granted.wait_for(|granted| *granted >= number) => {}
            () = self.wishes.closed() => {}
        }
    }

    pub(crate) fn grant(&self, number: u64) {
        self.granted.send_replace(number);
    }

    /// A connection is being opened: signals of older ones are ignored from now on.
    pub(crate) fn next_epoch(self: &Arc<Self>) -> (u64, Sink) {
        let epoch = self.epoch.fetch_add(1, Ordering::SeqCst) + 1;
        // Weak: the connection is ours, and must not keep us alive.
        let engine: Weak<Self> = Arc::downgrade(self);
        let sink: Sink = Arc::new(move |signal| {
            if let Some(engine) = engine.upgrade() {
                engine.signal(epoch, signal);
            }
        });
        (epoch, sink)
    }

    /// The connection is over: further signals of it are ignored.
    pub(crate) fn end_epoch(&self) {
        self.epoch.fetch_add(1, Ordering::SeqCst);
    }
}
