//! The pipeline of a change: readable, dirty, checked, fingerprint moved, announced to listeners.
//!
//! Everything a hub shares lives here; [`crate::Hub`] owns the tasks that drive it.

mod listener;
#[cfg(test)]
mod tests;
mod views;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::{Implementation, ProtocolVersion};
use tidings_core::{Change, Fingerprint, ListKind, ListKinds, Pace, ResourceUri};
use tokio::sync::{Notify, broadcast};
use tokio::task::{Id, JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::about::{About, Transport};
use crate::catalog::{Catalog, Edit, Reach, Route, Touched};
use crate::config::Config;
use crate::context::{Announce, Context};
use crate::edit::EditError;
use crate::labels::Labels;
use crate::member::Member;
use crate::metrics::Metrics;
use crate::notice::{Notice, Wire};
use crate::outbox::Check;
use crate::subscriptions::{Facts, ListView, Subscriptions, Watched};
use crate::viewers::{GrantError, Scope, Viewer, Viewers, Word};
use crate::windows::{Topic, Windows};

pub(crate) use listener::{Listener, SubscribeError};

/// The timeout of a read for a comparison.
const CHECK_TIMEOUT: Duration = Duration::from_secs(30);
/// How many events a slow receiver may fall behind before it misses some; each is a line to show.
const EVENTS: usize = 1024;

/// An event of a hub, for people who observe it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A change, or a source's report of one, and its outcome.
    Change {
        /// A list (`tools`, `prompts`, `resources`), a URI, the prefix of URIs, or the `labels` of a
        /// client.
        what: String,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A listener came: a legacy session, or a modern listen request.
    ListenerCame {
        /// Its number.
        id: u64,
        /// The client's name and version, if it said them.
        client: Option<String>,
    },
    /// A listener left.
    ListenerLeft {
        /// Its number.
        id: u64,
    },
}

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// This many listeners have a notice waiting now.
    Announced(usize),
    /// It was merged with a change that is not compared yet.
    Merged,
    /// The content equals the last content announced.
    Equal,
    /// Nobody follows it.
    NotFollowed,
    /// This many listeners are not notified because of their protocol revision.
    Withheld(usize),
}

/// Whether the events of a legacy listener have numbers. Over HTTP a client can reconnect and name
/// the last event it saw; over stdio it cannot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Events {
    Plain,
    Numbered,
}

/// Takes changes from the catalog to the outboxes of listeners. A hub shares it with its shelves,
/// sessions and streams.
pub(crate) struct Pipeline {
    pub(crate) config: Config,
    pub(crate) catalog: Catalog,
    pub(crate) subscriptions: Subscriptions,
    /// Who the clients are.
    pub(crate) viewers: Arc<Viewers>,
    pub(crate) metrics: Arc<Metrics>,
    /// Cancelled when the hub shuts down.
    pub(crate) stopped: CancellationToken,
    pub(crate) events: broadcast::Sender<Event>,
    list_notices: [Arc<Notice>; ListKind::ALL.len()],
    windows: Mutex<Windows>,
    wake: Notify,
    /// The watched URIs that their sources know of. Locked while a source is notified, so that it
    /// learns of the first watcher and of the end of the last in the order they happened. Lock
    /// order: before the subscriptions.
    watchers: Mutex<HashMap<ResourceUri, Arc<Member>>>,
}

impl Pipeline {
    pub(crate) fn new(config: Config) -> Arc<Self> {
        let metrics = Arc::new(Metrics::new());
        Arc::new(Self {
            catalog: Catalog::default(),
            subscriptions: Subscriptions::new(
                config.limits.subscriptions,
                config.merging.max_wait,
                metrics.clone(),
            ),
            viewers: Arc::default(),
            metrics,
            stopped: CancellationToken::new(),
            events: broadcast::Sender::new(EVENTS),
            list_notices: ListKind::ALL.map(|kind| Arc::new(Notice::list_changed(kind))),
            windows: Mutex::new(Windows::new(config.merging)),
            wake: Notify::new(),
            watchers: Mutex::default(),
            config,
        })
    }

    /// Edits the catalog and marks the affected lists and URIs dirty.
    pub(crate) fn edit(&self, owner: u64, edits: Vec<Edit>) -> Result<(), EditError> {
        let touched = self.catalog.apply(owner, edits)?;
        self.touch(&touched);
        Ok(())
    }

    /// Applies the edits of the catalog that are possible, and returns the errors of the others.
    pub(crate) fn edit_possible(
        &self,
        owner: u64,
        edits: Vec<Edit>,
    ) -> Result<Vec<EditError>, EditError> {
        let (touched, refused) = self.catalog.apply_possible(owner, edits)?;
        self.touch(&touched);
        Ok(refused)
    }

    /// Marks the lists and URIs dirty that an edit of the catalog touched.
    pub(crate) fn touch(&self, touched: &Touched) {
        self.lists_changed(touched.lists, |kind| &touched.reach[kind.index()]);
        for uri in &touched.uris {
            self.rewatch(uri);
            self.resource_changed(uri, Pace::default());
        }
        for prefix in &touched.prefixes {
            let all = self.subscriptions.with_prefix(prefix);
            for watched in &all {
                self.rewatch(watched.uri());
            }
            self.touch_all(&all);
        }
    }

    /// Marks the lists or URIs dirty that a source reports as changed.
    pub(crate) fn change(&self, change: Change) {
        match change {
            Change::Resource(uri, pace) => self.resource_changed(&uri, pace),
            Change::Below(prefix) => {
                self.metrics.changes.inc();
                let all = self.subscriptions.with_prefix(&prefix);
                if all.is_empty() {
                    self.tell_outcome(&prefix, Outcome::NotFollowed);
                }
                self.touch_all(&all);
            }
            Change::Lists(kinds) => {
                self.lists_changed(kinds, |_| &Reach::Everyone);
            }
            // Nothing else can change.
            _ => {}
        }
    }

    /// Marks a URI dirty whose listeners are notified whatever it is when it is checked.
    pub(crate) fn changed_meanwhile(&self, uri: &ResourceUri) {
        if let Some(watched) = self.subscriptions.get(uri.as_ref()) {
            watched.doubt();
        }
        self.resource_changed(uri, Pace::default());
    }

    fn resource_changed(&self, uri: &ResourceUri, pace: Pace) {
        self.metrics.changes.inc();
        let Some(watched) = self.subscriptions.get(uri.as_ref()) else {
            return self.tell_outcome(uri.as_ref(), Outcome::NotFollowed);
        };
        // Order: the change is readable, then counted, then due; a fingerprint taken in between is
        // older than the count and will be taken again.
        watched.pulse().beat();
        let topic = Topic::Uri(watched.uri().clone());
        if self.windows().mark_at(topic, pace, Instant::now()) {
            self.wake.notify_one();
        } else {
            self.tell_outcome(uri.as_ref(), Outcome::Merged);
        }
    }

    /// Marks lists dirty for those who may see the change of each.
    fn lists_changed<'a>(&self, kinds: ListKinds, reach: impl Fn(ListKind) -> &'a Reach) {
        let now = Instant::now();
        let mut fresh = false;
        for kind in kinds.iter() {
            self.metrics.changes.inc();
            // Order: whoever sees the first item with a label, or the last, changes groups before
            // the change is counted.
            self.regroup(kind);
            self.subscriptions.beat(kind, reach(kind));
            let is_new = self.windows().mark(Topic::List(kind), now);
            if !is_new {
                self.tell_outcome(kind.as_str(), Outcome::Merged);
            }
            fresh |= is_new;
        }
        if fresh {
            self.wake.notify_one();
        }
    }

    /// Puts the listeners of a list among those who see the same of it by now. True if one moved.
    fn regroup(&self, kind: ListKind) -> bool {
        self.subscriptions.learn(kind, || self.catalog.take_moved_labels(kind))
    }

    fn touch_all(&self, all: &[Arc<Watched>]) {
        let now = Instant::now();
        let mut fresh = false;
        for watched in all {
            // Order: as in `resource_changed`.
            watched.pulse().beat();
            let is_new = self.windows().mark(Topic::Uri(watched.uri().clone()), now);
            if !is_new {
                self.tell_outcome(watched.uri().as_ref(), Outcome::Merged);
            }
            fresh |= is_new;
        }
        if fresh {
            self.wake.notify_one();
        }
    }

    /// Checks the things that are due, until the hub stops.
    pub(crate) async fn announce(self: Arc<Self>) {
        let mut checks = Checks::default();
        loop {
            let due = self.windows().next_due();
            tokio::select! {
                () = self.stopped.cancelled() => break,
                () = self.wake.notified() => {}
                () = sleep_until(due) => {}
                Some(done) = checks.tasks.join_next_with_id() => self.checked(&mut checks, done),
            }
            while let Some((topic, since)) = self.take_due() {
                match topic {
                    Topic::List(kind) => self.announce_list(kind, since),
                    Topic::Uri(uri) => self.start_check(&mut checks, &uri, since),
                    Topic::View(listener) => self.look_again(listener, since),
                }
            }
        }
        checks.tasks.shutdown().await;
    }

    fn take_due(&self) -> Option<(Topic, Instant)> {
        self.windows().take_due(Instant::now())
    }

    fn announce_list(&self, kind: ListKind, since: Instant) {
        self.regroup(kind);
        let dirty = self.subscriptions.take_dirty(kind).into_iter();
        let told = dirty.map(|due| {
            let now = self.check_list(kind, &due.view);
            // An edit that is not counted yet may have added the first item with a label. Its
            // holders saw more than was checked, so they leave the group before they are told.
            if self.regroup(kind) {
                self.windows().mark(Topic::List(kind), Instant::now());
            }
            let notice = self.list_notice(kind);
            self.subscriptions.announce_list(kind, (now, &due), notice, since)
        });
        let told = told.sum();
        let what = kind.as_str();
        if self.is_observed() {
            let withheld = self.subscriptions.withheld(kind);
            if withheld > 0 {
                self.tell_outcome(what, Outcome::Withheld(withheld));
            }
            if told == 0 && !self.subscriptions.is_list_followed(kind) {
                return self.tell_outcome(what, Outcome::NotFollowed);
            }
        }
        self.report(what, told);
    }

    /// Compares the content of a watched URI: at once if its source names a version, else by reading
    /// it in a task of its own, so that a slow source delays nobody else.
    fn start_check(self: &Arc<Self>, checks: &mut Checks, uri: &ResourceUri, since: Instant) {
        let Some(watched) = self.subscriptions.get(uri.as_ref()) else { return };
        if let Some(again) = checks.running.get_mut(uri) {
            *again = Some(since);
            return;
        }
        let sight = match self.sight(&watched) {
            Sight::Known(now, facts) => return self.moved(&watched, now, &facts, since),
            unread @ Sight::Unread { .. } => unread,
        };
        let pipeline = self.clone();
        let check = checks.tasks.spawn(async move {
            let (now, facts) = pipeline.read(&watched, sight).await;
            pipeline.moved(&watched, now, &facts, since);
        });
        checks.running.insert(uri.clone(), None);
        checks.names.insert(check.id(), uri.clone());
    }

    fn checked(self: &Arc<Self>, checks: &mut Checks, done: Result<(Id, ()), JoinError>) {
        let id = match done {
            Ok((id, ())) => id,
            Err(failed) => {
                error!(error = %failed, "comparing a resource failed");
                failed.id()
            }
        };
        if let Some(uri) = checks.names.remove(&id)
            && let Some(Some(since)) = checks.running.remove(&uri)
        {
            self.start_check(checks, &uri, since);
        }
    }

    fn moved(&self, watched: &Watched, now: Check, facts: &Facts, since: Instant) {
        let told = watched.apply(now, facts, since);
        self.report(watched.uri().as_ref(), told);
    }

    fn report(&self, what: &str, listeners: usize) {
        if listeners == 0 {
            return self.tell_outcome(what, Outcome::Equal);
        }
        debug!(what, listeners, "announced");
        self.tell_outcome(what, Outcome::Announced(listeners));
    }

    /// Reports the outcome of a change to observers.
    fn tell_outcome(&self, what: &str, outcome: Outcome) {
        self.tell(|| Event::Change { what: what.to_owned(), outcome });
    }

    /// Reports an event to observers. Free of cost without observers.
    pub(crate) fn tell(&self, event: impl FnOnce() -> Event) {
        if self.is_observed() {
            drop(self.events.send(event()));
        }
    }

    fn is_observed(&self) -> bool {
        self.events.receiver_count() > 0
    }

    /// A URI got a watcher: notifies its source of the first one, if the source wants to know.
    pub(crate) fn watchers_moved(&self, uri: &ResourceUri, member: &Arc<Member>) {
        if !member.source().wants_watchers() {
            return;
        }
        let mut told = self.watchers();
        if self.subscriptions.get(uri.as_ref()).is_some() && !told.contains_key(uri) {
            told.insert(uri.clone(), member.clone());
            member.watched(uri);
        }
    }

    /// A watched URI may have another source now: tells the one before, and the one that has it.
    fn rewatch(&self, uri: &ResourceUri) {
        if self.subscriptions.get(uri.as_ref()).is_none() {
            return;
        }
        // While nobody offers it, the one before keeps it: it may come back.
        let Ok(route) = self.catalog.owner(uri) else { return };
        let member = &route.answerer.member;
        let mut told = self.watchers();
        if let Some(before) = told.get(uri).filter(|before| !Arc::ptr_eq(before, member)) {
            before.unwatched(uri);
            told.remove(uri);
        }
        drop(told);
        self.watchers_moved(uri, member);
    }

    /// A URI lost its last watcher: notifies its source, unless somebody watches it again.
    pub(crate) fn unwatched(&self, uri: &ResourceUri) {
        let mut told = self.watchers();
        if self.subscriptions.get(uri.as_ref()).is_none()
            && let Some(member) = told.remove(uri)
        {
            member.unwatched(uri);
        }
    }

    /// A source was added: notifies it of its URIs that are watched already.
    pub(crate) fn introduce(&self, member: &Arc<Member>) {
        if !member.source().wants_watchers() {
            return;
        }
        for uri in self.subscriptions.watched() {
            let route = self.catalog.owner(&uri);
            if route.is_ok_and(|route| Arc::ptr_eq(&route.answerer.member, member)) {
                self.watchers_moved(&uri, member);
            }
        }
    }

    /// A source was removed: it is not notified of watchers any more.
    pub(crate) fn dismiss(&self, name: &str) {
        self.watchers().retain(|_, member| member.name != name);
    }

    fn watchers(&self) -> MutexGuard<'_, HashMap<ResourceUri, Arc<Member>>> {
        self.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks a watched URI: at once if its source names a version, or no source answers for it.
    fn sight(&self, watched: &Watched) -> Sight {
        // Order: the count before the content, so that a change in between is checked again.
        let at = watched.pulse().count();
        let uri = watched.uri();
        let Ok(route) = self.catalog.owner(uri) else {
            return Sight::Known(Check { at, fingerprint: Fingerprint::ABSENT }, Facts::default());
        };
        match route.answerer.version(uri) {
            Some(fingerprint) => Sight::Known(Check { at, fingerprint }, facts(&route)),
            None => Sight::Unread { at, route },
        }
    }

    /// The fingerprint of a read of this URI now, its title and its audience.
    async fn check(self: &Arc<Self>, watched: &Watched) -> (Check, Facts) {
        let sight = self.sight(watched);
        self.read(watched, sight).await
    }

    /// Does the read that a check needs.
    async fn read(self: &Arc<Self>, watched: &Watched, sight: Sight) -> (Check, Facts) {
        let (at, route) = match sight {
            Sight::Known(now, facts) => return (now, facts),
            Sight::Unread { at, route } => (at, route),
        };
        let reading = self.fingerprint(watched.uri(), &route);
        let fingerprint = tokio::time::timeout(CHECK_TIMEOUT, reading).await.unwrap_or_else(|_| {
            warn!(uri = %watched.uri(), "reading a watched resource took too long");
            // The content is unknown, so every such check counts as a change.
            Fingerprint::of_bytes(&at.to_le_bytes())
        });
        (Check { at, fingerprint }, facts(&route))
    }

    /// The fingerprint of a read of this URI now. A failed read has a fingerprint too.
    async fn fingerprint(self: &Arc<Self>, uri: &ResourceUri, route: &Route) -> Fingerprint {
        let unavailable = || Fingerprint::of_bytes(b"unavailable");
        let answerer = &route.answerer;
        let Ok(_permit) = answerer.member.gate.acquire().await else { return unavailable() };
        let context = Context::of_hub(self.clone());
        match answerer.read(uri, &route.variables, &context).await {
            Ok(contents) => contents.fingerprint(),
            Err(error) if error.is_absence() => Fingerprint::ABSENT,
            Err(error) => {
                debug!(%uri, %error, "a watched resource cannot be read now");
                unavailable()
            }
        }
    }

    /// The counters as a Prometheus server reads them.
    pub(crate) fn metrics_text(&self) -> String {
        let waiting = i64::try_from(self.subscriptions.waiting()).unwrap_or(i64::MAX);
        self.metrics.waiting.set(waiting);
        let members = self.catalog.members().into_iter();
        let figures = members.map(|(member, _)| (member.name.clone(), member.figures()));
        self.metrics.text(&figures.collect::<Vec<_>>())
    }

    /// A listener of a legacy session on this revision. It is not notified before it is greeted.
    pub(crate) fn legacy_listener(
        self: &Arc<Self>,
        version: &ProtocolVersion,
        client: &Implementation,
        events: Events,
        viewer: Option<Arc<Viewer>>,
    ) -> Listener {
        let titled = crate::era::titles_updates(version);
        let numbered = events == Events::Numbered;
        let transport = if numbered { Transport::Http } else { Transport::Stdio };
        let lists = self.config.versions.lists_for(version.as_str());
        let withheld = ListKind::ALL.into_iter().filter(|kind| !lists.contains(*kind)).collect();
        let about = About::new(Some(client), transport, withheld);
        Listener::new(self, Wire::Legacy { titled, numbered }, about, viewer)
    }

    /// What a list is in a view.
    fn check_list(&self, kind: ListKind, view: &ListView) -> Check {
        // Order: as in `sight`.
        let at = view.pulse.count();
        Check { at, fingerprint: self.catalog.list_fingerprint(kind, &view.labels) }
    }

    fn list_notice(&self, kind: ListKind) -> &Arc<Notice> {
        &self.list_notices[kind.index()]
    }

    fn windows(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().expect("no code panics while it holds the windows")
    }
}

impl Announce for Pipeline {
    fn announce(&self, change: Change) {
        self.change(change);
    }

    fn say(&self, viewer: &Viewer, scope: Scope, words: (&Labels, Word)) -> Result<(), GrantError> {
        self.say_to(viewer, scope, words)
    }
}

/// A check of a watched URI, as far as it goes without waiting.
enum Sight {
    /// The result, with the title and the audience of the resource.
    Known(Check, Facts),
    /// It must be read.
    Unread { at: u64, route: Route },
}

/// The reads for comparisons that are under way: one for each URI, and whether another must follow.
#[derive(Default)]
struct Checks {
    tasks: JoinSet<()>,
    names: HashMap<Id, ResourceUri>,
    running: HashMap<ResourceUri, Option<Instant>>,
}

fn facts(route: &Route) -> Facts {
    Facts { title: route.title.clone(), audience: route.audience.clone() }
}

/// Waits for a moment, if there is one.
pub(crate) async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
