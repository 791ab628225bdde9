//! The one path of a change: it is readable, it is dirty, its fingerprint moved, who listens?
//!
//! Everything a hub shares lives here; [`crate::Hub`] owns the tasks that drive it.

mod listener;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use tidings_core::{Fingerprint, ListKind, ListKinds, ResourceUri};
use tokio::sync::{Notify, broadcast};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::announcer::{Topic, Windows};
use crate::catalog::{Catalog, Edit, EditError, Missing, Touched};
use crate::config::Config;
use crate::metrics::Metrics;
use crate::notice::{Notice, Wire};
use crate::outbox::{Look, Pulse};
use crate::source::AnswerError;
use crate::subscriptions::{Index, Watched};

pub(crate) use listener::{Listener, SubscribeError};

/// How long a source may take to be read for comparing.
const LOOK_TIMEOUT: Duration = Duration::from_secs(30);
/// How many events a slow receiver may fall behind before it misses some; each is a line to show.
const EVENTS: usize = 1024;

/// Something a person who watches a hub would like to see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// Something moved, and this many listeners are told.
    Announced {
        /// A list (`tools`, `prompts`, `resources`) or a URI.
        what: String,
        /// How many listeners have a notice waiting now.
        listeners: usize,
    },
}

/// Whether the events of a legacy listener have numbers: over HTTP a client can come back with the
/// last one it saw, over stdio there is nothing to come back to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    Plain,
    Numbered,
}

/// What a hub shares with its shelves, sessions and streams.
pub(crate) struct Core {
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) index: Index,
    pub(crate) metrics: Arc<Metrics>,
    /// Cancelled when the hub shuts down.
    pub(crate) stopped: CancellationToken,
    pub(crate) events: broadcast::Sender<Event>,
    list_notices: [Arc<Notice>; ListKind::ALL.len()],
    list_pulses: [Pulse; ListKind::ALL.len()],
    windows: Mutex<Windows>,
    wake: Notify,
}

impl Core {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let metrics = Arc::new(Metrics::new());
        Arc::new(Self {
            catalog: Catalog::default(),
            index: Index::new(
                config.limits.subscriptions,
                config.merging.max_wait,
                metrics.clone(),
            ),
            metrics,
            stopped: CancellationToken::new(),
            events: broadcast::Sender::new(EVENTS),
            list_pulses: Default::default(),
            list_notices: ListKind::ALL.map(|kind| Arc::new(Notice::list_changed(kind))),
            windows: Mutex::new(Windows::new(config.merging)),
            wake: Notify::new(),
            config,
        })
    }

    /// Edits the catalog and makes dirty what may have moved.
    pub(crate) fn edit(&self, owner: u64, edits: Vec<Edit>) -> Result<(), EditError> {
        let touched = self.catalog.apply(owner, edits)?;
        self.touch(&touched);
        Ok(())
    }

    /// Makes dirty what an edit of the catalog touched.
    pub(crate) fn touch(&self, touched: &Touched) {
        self.lists_changed(touched.lists);
        for uri in &touched.uris {
            self.notify_updated(uri.as_ref());
        }
        for prefix in &touched.prefixes {
            self.touch_all(&self.index.with_prefix(prefix));
        }
    }

    pub(crate) fn notify_updated(&self, uri: &str) {
        self.metrics.changes.inc();
        if let Some(watched) = self.index.get(uri) {
            self.touch_all(&[watched]);
        }
    }

    pub(crate) fn notify_settled(&self, uri: &str) {
        self.metrics.changes.inc();
        let Some(watched) = self.index.get(uri) else { return };
        watched.pulse().beat();
        let topic = Topic::Uri(watched.uri().clone());
        if self.windows().mark_settled(topic, Instant::now()) {
            self.wake.notify_one();
        }
    }

    pub(crate) fn notify_matching(&self, pattern: &str) {
        match pattern.strip_suffix('*') {
            Some(prefix) => {
                self.metrics.changes.inc();
                self.touch_all(&self.index.with_prefix(prefix));
            }
            None => self.notify_updated(pattern),
        }
    }

    pub(crate) fn lists_changed(&self, kinds: ListKinds) {
        let now = Instant::now();
        let mut fresh = false;
        for kind in kinds.iter() {
            self.metrics.changes.inc();
            self.list_pulses[kind.index()].beat();
            fresh |= self.windows().mark(Topic::List(kind), now);
        }
        if fresh {
            self.wake.notify_one();
        }
    }

    fn touch_all(&self, all: &[Arc<Watched>]) {
        let now = Instant::now();
        let mut fresh = false;
        for watched in all {
            // Order: the change is readable, then counted, then due; a fingerprint taken in
            // between is older than the count and will be taken again.
            watched.pulse().beat();
            fresh |= self.windows().mark(Topic::Uri(watched.uri().clone()), now);
        }
        if fresh {
            self.wake.notify_one();
        }
    }

    /// Looks at what is due, until the hub stops.
    pub(crate) async fn announce(self: Arc<Self>) {
        let mut looks = Looks::default();
        loop {
            let due = self.windows().next_due();
            tokio::select! {
                () = self.stopped.cancelled() => break,
                () = self.wake.notified() => {}
                () = sleep_until(due) => {}
                Some(done) = looks.tasks.join_next_with_id() => self.looked(&mut looks, done),
            }
            while let Some((topic, since)) = self.take_due() {
                match topic {
                    Topic::List(kind) => self.announce_list(kind, since),
                    Topic::Uri(uri) => self.look_at(&mut looks, &uri, since),
                }
            }
        }
        looks.tasks.shutdown().await;
    }

    fn take_due(&self) -> Option<(Topic, Instant)> {
        self.windows().take_due(Instant::now())
    }

    fn announce_list(&self, kind: ListKind, since: Instant) {
        let now = self.look_at_list(kind);
        let told = self.index.announce_list(kind, now, self.list_notice(kind), since);
        self.report(kind.as_str(), told);
    }

    /// Compares what a watched URI returns now, at once if its source names a version, else by
    /// reading it in a task of its own: a slow source delays nobody else.
    fn look_at(self: &Arc<Self>, looks: &mut Looks, uri: &ResourceUri, since: Instant) {
        let Some(watched) = self.index.get(uri.as_ref()) else { return };
        if let Some(again) = looks.running.get_mut(uri) {
            *again = Some(since);
            return;
        }
        let at = watched.pulse().count();
        if let Some(fingerprint) = self.version(uri) {
            self.moved(&watched, Look { at, fingerprint }, since);
            return;
        }
        let core = self.clone();
        let look = looks.tasks.spawn(async move {
            let now = core.look(&watched).await;
            core.moved(&watched, now, since);
        });
        looks.running.insert(uri.clone(), None);
        looks.names.insert(look.id(), uri.clone());
    }

    fn looked(self: &Arc<Self>, looks: &mut Looks, done: Result<(Id, ()), JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(failed) => {
                error!(error = %failed, "comparing a resource failed");
                failed.id()
            }
        };
        if let Some(uri) = looks.names.remove(&id)
            && let Some(Some(since)) = looks.running.remove(&uri)
        {
            self.look_at(looks, &uri, since);
        }
    }

    fn moved(&self, watched: &Watched, now: Look, since: Instant) {
        let title = self.catalog.route(watched.uri()).ok().and_then(|route| route.title);
        let notice = || Notice::updated(watched.uri(), title.as_deref());
        let told = watched.apply(now, since, notice);
        self.report(watched.uri().as_ref(), told);
    }

    fn report(&self, what: &str, listeners: usize) {
        if listeners > 0 {
            debug!(what, listeners, "announced");
            if self.events.receiver_count() > 0 {
                drop(self.events.send(Event::Announced { what: what.to_owned(), listeners }));
            }
        }
    }

    /// The version a source names for a URI, if that is cheap to know.
    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        match self.catalog.route(uri) {
            Err(Missing::Unknown | Missing::Disabled) => Some(Fingerprint::ABSENT),
            Ok(route) => catch_unwind(AssertUnwindSafe(|| route.member.source.version(uri)))
                .unwrap_or_else(|_| {
                    error!(source = route.member.name, %uri, "a source panicked");
                    None
                }),
        }
    }

    /// What a read of this URI returns now.
    async fn look(&self, watched: &Watched) -> Look {
        // Order: the count before the content, so that a change in between is looked at again.
        let at = watched.pulse().count();
        let looking = self.fingerprint(watched.uri());
        let fingerprint = tokio::time::timeout(LOOK_TIMEOUT, looking).await.unwrap_or_else(|_| {
            warn!(uri = %watched.uri(), "reading a watched resource took too long");
            // A client that waits longer may read anything: each such look is news.
            Fingerprint::of_bytes(&at.to_le_bytes())
        });
        Look { at, fingerprint }
    }

    /// Names what a read of this URI returns now; that it fails is a state too.
    async fn fingerprint(&self, uri: &ResourceUri) -> Fingerprint {
        if let Some(version) = self.version(uri) {
            return version;
        }
        let Ok(route) = self.catalog.route(uri) else { return Fingerprint::ABSENT };
        let unavailable = || Fingerprint::of_bytes(b"unavailable");
        let Ok(_permit) = route.member.gate.acquire().await else { return unavailable() };
        match route.member.read(uri).await {
            Ok(contents) => contents.fingerprint(),
            Err(AnswerError::NotFound(_)) => Fingerprint::ABSENT,
            Err(error) => {
                debug!(%uri, %error, "a watched resource cannot be read now");
                unavailable()
            }
        }
    }

    /// The counters as a Prometheus server reads them.
    pub(crate) fn metrics_text(&self) -> String {
        let waiting = i64::try_from(self.index.waiting()).unwrap_or(i64::MAX);
        self.metrics.waiting.set(waiting);
        self.metrics.text()
    }

    /// A listener of a legacy session on this revision. It hears nothing before it is greeted.
    pub(crate) fn legacy_listener(
        self: &Arc<Self>,
        version: &ProtocolVersion,
        events: Events,
    ) -> Listener {
        let titled = crate::era::titles_updates(version);
        let numbered = events == Events::Numbered;
        Listener::new(self, Wire::Legacy { titled, numbered })
    }

    fn look_at_list(&self, kind: ListKind) -> Look {
        let at = self.list_pulses[kind.index()].count();
        Look { at, fingerprint: self.catalog.list_fingerprint(kind) }
    }

    fn list_notice(&self, kind: ListKind) -> &Arc<Notice> {
        &self.list_notices[kind.index()]
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().expect("no code panics while it holds the windows")
    }
}

/// The reads that are under way to compare content: one for each URI, and whether another is
/// wanted when it ends.
#[derive(Default)]
struct Looks {
    tasks: JoinSet<()>,
    names: HashMap<Id, ResourceUri>,
    running: HashMap<ResourceUri, Option<Instant>>,
}

async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
