//! What an upstream does by itself: it follows its server, looks at what is watched, and keeps the
//! shelf up to date.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidings_mirror::events::ConnectionState;
use tidings_mirror::{Event, Events, List, Mirror, SubscribeError};
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, PollRule, Start};
use crate::house::reason;
use crate::memory;
use crate::publish::Stock;
use crate::rooms::Rooms;
use crate::status::Counts;
use crate::upstream::Inner;
use crate::watch::schedule::{LONGEST, Look, Mode, SHORTEST_RULE};

/// How often lists are looked at that the server does not announce, while somebody listens. Those
/// that it promises to announce are looked at seldom: every [`LONGEST`].
const LISTS: Duration = Duration::from_mins(1);

/// When they are looked at after a call that may have changed them, and how soon again.
const LISTS_SOON: Duration = Duration::from_millis(50);
const LISTS_AGAIN: Duration = Duration::from_secs(2);

/// How often rooms that nobody needs are looked for.
const ROOMS: Duration = Duration::from_secs(5);

/// The time between two looks at lists.
fn lists_interval(rule: PollRule) -> Duration {
    match rule {
        PollRule::Every(time) => time.max(SHORTEST_RULE),
        _ => LISTS,
    }
}

/// The end of a task.
enum Done {
    /// A watched resource was looked at.
    Looked(Arc<str>, Look, Duration),
    /// The server was asked to announce changes of these resources, and does of all but the refused.
    Subscribed { all: Vec<Arc<str>>, refused: HashSet<Arc<str>> },
    /// The lists of a new connection were loaded.
    Loaded,
    /// Lists were looked at.
    Other,
}

/// Whether the server is down, and what that means for its items.
enum Absence {
    No,
    /// They are listed until then.
    Until(Instant),
    /// They are not listed.
    Withdrawn,
}

impl Absence {
    fn ends(&self) -> Option<Instant> {
        match self {
            Self::Until(end) => Some(*end),
            Self::No | Self::Withdrawn => None,
        }
    }
}

/// The state of the task that follows a server.
struct Follower {
    inner: Arc<Inner>,
    events: Option<Events>,
    tasks: JoinSet<Done>,
    /// Resources that the server was asked to announce, or is being asked.
    subscribed: HashSet<Arc<str>>,
    /// Whether the server is being asked. One at a time, so that the last wish counts.
    is_subscribing: bool,
    absence: Absence,
    /// Whether a connection is being made.
    is_connecting: bool,
    /// When the lists are looked at.
    lists_due: Instant,
    lists_began: Instant,
    /// From when on that includes those that the server announces.
    announced_due: Instant,
    /// When rooms that nobody needs are looked for.
    rooms_due: Instant,
}

impl Inner {
    pub(crate) async fn run(self: Arc<Self>, cancel: CancellationToken) {
        let config = self.config();
        self.begin(&config);
        let mut follower = Follower {
            events: None,
            tasks: JoinSet::new(),
            subscribed: HashSet::new(),
            is_subscribing: false,
            absence: Absence::No,
            is_connecting: false,
            lists_due: Instant::now() + LISTS,
            lists_began: Instant::now(),
            announced_due: Instant::now() + LONGEST,
            rooms_due: Instant::now() + ROOMS,
            inner: self.clone(),
        };
        follower.run(cancel, config.neighbours.moves()).await;
        follower.tasks.shutdown().await;
        self.parking.end().await;
        let rooms = self.rooms.as_ref().map(Rooms::all).unwrap_or_default();
        let mut farewells: JoinSet<()> = JoinSet::new();
        for room in rooms {
            farewells.spawn(async move { room.close().await });
        }
        self.house.end().await;
        farewells.join_all().await;
        config.neighbours.leave(self.place);
    }

    /// Connects, or offers the lists of the last run until the first use.
    fn begin(&self, config: &Config) {
        let stock = match &config.start {
            Start::Lazy(path) => memory::load(path),
            Start::Now => None,
        };
        // Nothing is due before there is a connection.
        self.watching().schedule.pause(true);
        match stock {
            Some(stock) => {
                self.restock(stock);
                self.settle();
            }
            None => drop(self.house.start()),
        }
    }

    /// A call ended that may have changed anything: what may be polled is looked at.
    pub(crate) fn touched(&self) {
        self.watching().touched(Instant::now());
        self.is_touched.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Looks at a watched resource, and tells its watchers if it differs.
    async fn compare(self: &Arc<Self>, uri: &Arc<str>) -> (Look, Duration) {
        let ticket = self.watching().ticket();
        let outcome = self.read_alone(uri).await;
        let observed = self.observe(uri, ticket, &outcome, true);
        (observed.look, observed.fresh_for)
    }

    /// The rules of polling are others.
    pub(crate) fn change_modes(&self) {
        let mut watching = self.watching();
        let uris: Vec<_> = watching.schedule.uris().cloned().collect();
        for uri in uris {
            let rule = self.config().poll.of(&uri);
            if let Some(mode) = watching.schedule.mode(&uri).map(|mode| mode.with(rule)) {
                watching.schedule.watch(&uri, mode, Instant::now());
            }
        }
        drop(watching);
        self.wake.notify_one();
    }
}

impl Follower {
    async fn run(
        &mut self,
        cancel: CancellationToken,
        mut moves: tokio::sync::watch::Receiver<u64>,
    ) {
        loop {
            self.begin_work();
            let due = self.due();
            tokio::select! {
                () = cancel.cancelled() => break,
                () = self.inner.house.started.notified() => self.events = self.inner.house.take_events(),
                event = next(&mut self.events) => self.happened(event),
                Ok(()) = moves.changed() => self.inner.publish(),
                () = self.inner.wake.notified() => {}
                () = sleep_until(due) => self.passed(),
                Some(done) = self.tasks.join_next() => self.finished(done.unwrap_or(Done::Other)),
            }
        }
    }

    fn mirror(&self) -> Option<Mirror> {
        self.inner.house.mirror()
    }

    /// The next moment at which something is due.
    fn due(&self) -> Option<Instant> {
        let looks = self.inner.watching().schedule.due();
        let rooms = self.inner.rooms.is_some().then_some(self.rooms_due);
        [looks, self.absence.ends(), Some(self.lists_due), rooms].into_iter().flatten().min()
    }

    fn happened(&mut self, event: Option<Event>) {
        let Some(event) = event else {
            self.events = None;
            return;
        };
        match event {
            Event::ToolsChanged(_)
            | Event::PromptsChanged(_)
            | Event::ResourcesChanged(_)
            | Event::TemplatesChanged(_) => self.restock(),
            Event::ResourceUpdated { uri, .. }
            | Event::ResourceContentChanged { uri, .. }
            | Event::ResourceGone { uri, .. } => {
                self.inner.watching().schedule.noticed(&uri, Instant::now());
            }
            Event::SubscriptionsChanged { refused, .. } => {
                for uri in refused {
                    self.unannounced(&uri);
                }
            }
            Event::Connection(state) => self.connection(&state),
            Event::Lagged { .. } => {
                // The connection may have come or gone meanwhile.
                if let Some(mirror) = self.mirror() {
                    self.connection(&mirror.connection());
                }
                self.restock();
            }
            Event::Stderr { line } => {
                let line = self.inner.house.failures().harmless(&line);
                tracing::debug!(source = %self.inner.config().name, %line, "standard error");
            }
            Event::Warning(warning) => {
                let warning = self.inner.house.failures().harmless(&format!("{warning:?}"));
                tracing::debug!(source = %self.inner.config().name, %warning, "an odd upstream");
            }
            _ => {}
        }
    }

    /// The lists that are loaded are compared with what is offered.
    fn restock(&mut self) {
        let Some(mirror) = self.mirror() else { return };
        if mirror.connection() == ConnectionState::Ready {
            let server = mirror.server();
            let instructions = server.and_then(|server| server.instructions.clone());
            self.inner.shelf.instruct(instructions);
            let stock = Stock::of(&mirror, &self.inner.stock());
            if let Start::Lazy(path) = &self.inner.config().start
                && stock.is_whole()
                && let Err(error) = memory::save(path, &stock)
            {
                let path = path.display();
                tracing::warn!(%path, %error, "the lists of an upstream could not be kept");
            }
            self.inner.restock(stock);
        }
    }

    fn connection(&mut self, state: &ConnectionState) {
        self.inner.house.move_on();
        let name = self.inner.config().name.clone();
        let is_ready = *state == ConnectionState::Ready;
        self.inner.watching().schedule.pause(!is_ready);
        let was_connecting = self.is_connecting;
        self.is_connecting = *state == ConnectionState::Connecting;
        if was_connecting && !is_ready && !self.is_connecting {
            Counts::add(&self.inner.counts.failed_connections);
        }
        match state {
            ConnectionState::Ready => {
                tracing::info!(source = %name, "upstream connected");
                Counts::add(&self.inner.counts.connections);
                self.absence = Absence::No;
                self.connected();
            }
            ConnectionState::Connecting => {}
            down => {
                if matches!(self.absence, Absence::No) {
                    let reason = self.inner.house.failures().harmless(&reason(down));
                    if was_connecting {
                        tracing::warn!(source = %name, %reason, "upstream not reached, will retry");
                    } else {
                        tracing::warn!(source = %name, %reason, "upstream lost, will retry");
                    }
                    self.absence = Absence::Until(Instant::now() + self.inner.config().grace);
                }
                self.inner.settle();
            }
        }
    }

    /// There is a new connection: everything is compared.
    fn connected(&mut self) {
        let Some(mirror) = self.mirror() else { return };
        // The mirror subscribes again by itself.
        self.subscribed.retain(|uri| mirror.is_subscribed(uri));
        let is_pushing = mirror.supports_subscriptions();
        let mut watching = self.inner.watching();
        let uris: Vec<_> = watching.schedule.uris().cloned().collect();
        for uri in uris.iter().filter(|uri| !is_pushing || !self.subscribed.contains(*uri)) {
            watching.schedule.watch(uri, self.inner.polled(uri), Instant::now());
        }
        watching.schedule.resync(Instant::now());
        drop(watching);
        // Lists that are as before lead to no event.
        self.tasks.spawn(async move {
            let _ = mirror.ready().await;
            Done::Loaded
        });
    }

    /// The server does not announce changes of this resource.
    fn unannounced(&self, uri: &Arc<str>) {
        let mode = self.inner.polled(uri);
        let mut watching = self.inner.watching();
        if watching.is_watched(uri) && watching.schedule.mode(uri).is_some_and(Mode::is_pushed) {
            watching.schedule.watch(uri, mode, Instant::now());
        }
    }

    /// Time passed.
    fn passed(&mut self) {
        let now = Instant::now();
        if self.absence.ends().is_some_and(|end| end <= now) {
            self.absence = Absence::Withdrawn;
            self.inner.withdraw();
        }
        if self.rooms_due <= now {
            self.rooms_due = now + ROOMS;
            let leavers = self.inner.rooms.as_ref().map(Rooms::leavers).unwrap_or_default();
            for room in leavers {
                self.tasks.spawn(async move {
                    room.close().await;
                    Done::Other
                });
            }
        }
        if self.lists_due <= now {
            self.lists_began = now;
            let rest = self.inner.config().poll.rest;
            self.lists_due = now + lists_interval(rest);
            let with_announced = self.announced_due <= now;
            if with_announced {
                self.announced_due = now + LONGEST;
            }
            if rest != PollRule::Never {
                self.poll_lists(with_announced);
            }
        }
    }

    /// Loads the lists that the server does not announce, or all, if somebody listens.
    fn poll_lists(&mut self, with_announced: bool) {
        let Some(mirror) = self.mirror().filter(|it| it.connection() == ConnectionState::Ready)
        else {
            return;
        };
        let announced = mirror.announced();
        let is_wanted = |list: &List| {
            (with_announced || !announced.contains(list.kind()))
                && self.inner.shelf.has_listeners(list.kind())
        };
        let lists: Vec<_> = List::ALL.into_iter().filter(is_wanted).collect();
        if !lists.is_empty() {
            let number = lists.len() as u64;
            self.inner.counts.list_looks.fetch_add(number, Ordering::Relaxed);
            self.tasks.spawn(async move {
                // A failure is kept as the error of the list.
                let _ = mirror.refresh(&lists).await;
                Done::Other
            });
        }
    }

    fn finished(&mut self, done: Done) {
        let now = Instant::now();
        match done {
            Done::Looked(uri, look, fresh_for) => {
                let mut watching = self.inner.watching();
                watching.schedule.looked(&uri, look, fresh_for, chance(), now);
            }
            Done::Subscribed { all, refused } => {
                self.is_subscribing = false;
                let mut watching = self.inner.watching();
                for uri in all.iter().filter(|uri| !refused.contains(*uri)) {
                    if watching.is_watched(uri) {
                        let rule = self.inner.config().poll.of(uri);
                        watching.schedule.watch(uri, Mode::Pushed(rule), now);
                    }
                }
            }
            Done::Loaded => {
                self.restock();
                self.inner.settle();
            }
            Done::Other => {}
        }
    }

    /// Begins what is due: subscriptions, their ends, and looks.
    fn begin_work(&mut self) {
        if self.mirror().is_none() && self.inner.watching().len() > 0 {
            // Somebody watches: that is a use.
            self.inner.house.start();
        }
        let Some(mirror) = self.mirror().filter(|it| it.connection() == ConnectionState::Ready)
        else {
            return;
        };
        self.follow_watchers(&mirror);
        if self.inner.is_touched.swap(false, Ordering::Relaxed) {
            let soon = (self.lists_began + LISTS_AGAIN).max(Instant::now() + LISTS_SOON);
            self.lists_due = self.lists_due.min(soon);
            self.announced_due = self.lists_due;
        }
        loop {
            let due = self.inner.watching().schedule.begin(Instant::now());
            let Some(uri) = due else { break };
            let inner = self.inner.clone();
            Counts::add(&inner.counts.looks);
            self.tasks.spawn(async move {
                let (look, fresh_for) = inner.compare(&uri).await;
                Done::Looked(uri, look, fresh_for)
            });
        }
    }

    /// What is watched here is watched at the server, once.
    fn follow_watchers(&mut self, mirror: &Mirror) {
        if self.is_subscribing || !mirror.supports_subscriptions() {
            return;
        }
        let watching = self.inner.watching();
        let is_new = |uri: &&Arc<str>| !self.subscribed.contains(*uri);
        let fresh: Vec<_> = watching.schedule.uris().filter(is_new).cloned().collect();
        let is_over = |uri: &&Arc<str>| !watching.is_watched(uri);
        let over: Vec<_> = self.subscribed.iter().filter(is_over).cloned().collect();
        drop(watching);
        if fresh.is_empty() && over.is_empty() {
            return;
        }
        self.is_subscribing = true;
        for uri in &over {
            self.subscribed.remove(uri);
        }
        self.subscribed.extend(fresh.iter().cloned());
        let mirror = mirror.clone();
        self.tasks.spawn(async move {
            if let Err(error) = mirror.unsubscribe(&over).await {
                tracing::debug!(%error, "subscriptions could not be ended");
            }
            let refused = if fresh.is_empty() {
                HashSet::new()
            } else {
                match mirror.subscribe(&fresh).await {
                    Ok(()) => HashSet::new(),
                    Err(SubscribeError::Refused { refused }) => {
                        refused.into_iter().map(|(uri, _)| uri).collect()
                    }
                    Err(_) => fresh.iter().cloned().collect(),
                }
            };
            Done::Subscribed { all: fresh, refused }
        });
    }
}

/// The next event; never, while there is no mirror.
async fn next(events: &mut Option<Events>) -> Option<Event> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

/// From 0 to 1. It need not be secure: it keeps gateways from asking at the same moment.
fn chance() -> f64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one(0_u8) as f64 / u64::MAX as f64
}
