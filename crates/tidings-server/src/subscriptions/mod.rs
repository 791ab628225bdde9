//! The index of subscriptions: exact look-up by URI, ordered range by prefix.
//!
//! The cost of a notice depends on its subscribers, not on the number of other subscriptions.
//! Lock order: the subscriptions, then a watched URI, then an outbox; none is held across an await.

mod group;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use tidings_core::{ListKind, ResourceUri};
use tokio::time::Instant;

use crate::about::{About, ListenerInfo, WatchedInfo};
use crate::catalog::{MovedLabels, Reach};
use crate::labels::Labels;
use crate::metrics::Metrics;
use crate::notice::{Notice, Wire};
use crate::outbox::{Check, Outbox, Pulse, Seen, price};
use group::Groups;

pub(crate) use group::{Due, ListView};

/// Every subscription of every listener.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    metrics: Arc<Metrics>,
    limit: usize,
    patience: Duration,
    next_id: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Invariant: `ordered` and `uris` have the same URIs, and every watched URI has a listener.
    uris: HashMap<ResourceUri, Arc<Watched>>,
    ordered: BTreeMap<Key, Arc<Watched>>,
    groups: Groups,
    listeners: HashMap<u64, Weak<Outbox>>,
    subscriptions: usize,
    /// Their total, see [`price`].
    held: usize,
}

/// One URI that somebody watches.
#[derive(Debug)]
pub(crate) struct Watched {
    uri: ResourceUri,
    pulse: Pulse,
    state: Mutex<WatchedState>,
}

/// The item of a watched URI: its title in the list, and whom it is for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Facts {
    pub(crate) title: Option<String>,
    pub(crate) audience: Labels,
}

#[derive(Debug, Default)]
struct WatchedState {
    listeners: BTreeMap<u64, Arc<Outbox>>,
    current: Option<Check>,
}

/// The hub has its maximum number of subscriptions.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("this server holds {0} subscriptions, which is as many as it may")]
pub(crate) struct IndexFull(usize);

impl Subscriptions {
    pub(crate) fn new(limit: usize, patience: Duration, metrics: Arc<Metrics>) -> Self {
        Self { metrics, limit, patience, next_id: AtomicU64::new(1), state: Mutex::default() }
    }

    /// A listener that follows nothing yet.
    pub(crate) fn listener(&self, wire: Wire, about: About) -> Arc<Outbox> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let outbox = Outbox::new(id, wire, about, self.patience, self.metrics.clone());
        self.lock().listeners.insert(id, Arc::downgrade(&outbox));
        outbox
    }

    /// Removes the subscriptions of a listener, and returns the URIs that nobody watches any more.
    pub(crate) fn forget(&self, outbox: &Outbox) -> Vec<ResourceUri> {
        let followed = outbox.followed();
        let mut state = self.lock();
        state.listeners.remove(&outbox.id());
        state.groups.forget(&outbox.labels(), outbox.id());
        self.metrics.views.set(count(state.groups.len()));
        let unwatched = followed.into_iter().filter(|uri| {
            outbox.unfollow(uri);
            state.unfollow(uri, outbox.id())
        });
        let unwatched = unwatched.collect();
        self.metrics.subscriptions.set(count(state.subscriptions));
        unwatched
    }

    /// Subscribes a listener to a list. If it `knows` the list, its baseline follows. Returns what
    /// it sees of the list.
    pub(crate) fn follow_list(
        &self,
        kind: ListKind,
        outbox: &Arc<Outbox>,
        knows: bool,
    ) -> ListView {
        let mut state = self.lock();
        let view = state.groups.follow(kind, &outbox.labels(), outbox);
        outbox.follow_list(kind, &view.pulse, knows);
        self.metrics.views.set(count(state.groups.len()));
        view
    }

    /// Replaces the labels of a listener.
    pub(crate) fn relabel(&self, outbox: &Arc<Outbox>, labels: &Labels) {
        let mut state = self.lock();
        if !state.listeners.contains_key(&outbox.id()) {
            // The listener ended and follows nothing.
            return;
        }
        let pulses = state.groups.relabel((&outbox.labels(), labels), outbox);
        outbox.relabel(labels, &pulses);
        self.metrics.views.set(count(state.groups.len()));
    }

    /// Puts the listeners of a list into the groups that they belong to by the labels that items
    /// name now. True if somebody changed groups: then a check of the list must follow.
    /// Lock order: `take_moved` may lock the catalog. What it takes is learned before anything else
    /// is taken.
    pub(crate) fn learn(&self, kind: ListKind, take_moved: impl FnOnce() -> MovedLabels) -> bool {
        let mut state = self.lock();
        let moved = take_moved();
        if moved.is_empty() {
            return false;
        }
        let has_moved = state.groups.learn(kind, moved);
        self.metrics.views.set(count(state.groups.len()));
        has_moved
    }

    /// Counts a change of a list for the listeners that may see it.
    pub(crate) fn beat(&self, kind: ListKind, reach: &Reach) {
        self.lock().groups.beat(kind, reach);
    }

    /// The views in which a list may have changed since its last check.
    pub(crate) fn take_dirty(&self, kind: ListKind) -> Vec<Due> {
        self.lock().groups.take_dirty(kind)
    }

    /// What clients with these labels see of a list, if any of them follows it.
    pub(crate) fn view(&self, kind: ListKind, labels: &Labels) -> Option<ListView> {
        self.lock().groups.view(kind, labels)
    }

    /// The listener of this number.
    pub(crate) fn listener_of(&self, id: u64) -> Option<Arc<Outbox>> {
        self.lock().listeners.get(&id).and_then(Weak::upgrade)
    }

    /// Subscribes a listener to a URI. `None` if it was subscribed already; its baseline is set or
    /// will be.
    pub(crate) fn follow(
        &self,
        uri: &ResourceUri,
        outbox: &Arc<Outbox>,
    ) -> Result<Option<Arc<Watched>>, IndexFull> {
        let mut state = self.lock();
        if outbox.follows(uri) {
            return Ok(None);
        }
        if state.held + price(uri) > self.limit {
            return Err(IndexFull(self.limit));
        }
        let watched = if let Some(watched) = state.uris.get(uri) {
            watched.clone()
        } else {
            let watched = Arc::new(Watched::new(uri.clone()));
            state.uris.insert(uri.clone(), watched.clone());
            state.ordered.insert(Key::of(uri.as_ref()), watched.clone());
            watched
        };
        // One text for all listeners: a look-up then compares addresses, not bytes far apart.
        outbox.follow(&watched.uri, &watched.pulse);
        watched.lock().listeners.insert(outbox.id(), outbox.clone());
        state.subscriptions += 1;
        state.held += price(uri);
        self.metrics.subscriptions.set(count(state.subscriptions));
        Ok(Some(watched))
    }

    /// Ends a listener's subscription to a URI; true if nobody watches it any more.
    pub(crate) fn unfollow(&self, uri: &ResourceUri, outbox: &Outbox) -> bool {
        let mut state = self.lock();
        if !outbox.unfollow(uri) {
            return false;
        }
        let is_last = state.unfollow(uri, outbox.id());
        self.metrics.subscriptions.set(count(state.subscriptions));
        is_last
    }

    /// All watched URIs.
    pub(crate) fn watched(&self) -> Vec<ResourceUri> {
        self.lock().uris.keys().cloned().collect()
    }

    /// Whether anybody follows this list.
    pub(crate) fn is_list_followed(&self, kind: ListKind) -> bool {
        self.lock().groups.is_followed(kind)
    }

    /// How many listeners are not notified of this list because of their protocol revision.
    pub(crate) fn withheld(&self, kind: ListKind) -> usize {
        let listeners = self.listeners();
        listeners.iter().filter(|outbox| outbox.about().withheld.contains(kind)).count()
    }

    /// All listeners and watched URIs, for people.
    pub(crate) fn inspect(&self) -> (Vec<ListenerInfo>, Vec<WatchedInfo>) {
        let watched: Vec<_> = self.lock().ordered.values().cloned().collect();
        let watched = watched.iter().map(|watched| WatchedInfo {
            uri: watched.uri.clone(),
            listeners: watched.lock().listeners.len(),
            changes: watched.pulse.count(),
        });
        let mut listeners: Vec<_> =
            self.listeners().iter().map(|outbox| outbox.inspect()).collect();
        listeners.sort_by_key(|listener| listener.id);
        (listeners, watched.collect())
    }

    fn listeners(&self) -> Vec<Arc<Outbox>> {
        self.lock().listeners.values().filter_map(Weak::upgrade).collect()
    }

    /// The URI, if somebody watches it.
    pub(crate) fn get(&self, uri: &str) -> Option<Arc<Watched>> {
        self.lock().uris.get(uri).cloned()
    }

    /// The watched URIs that begin with this text, in order.
    pub(crate) fn with_prefix(&self, prefix: &str) -> Vec<Arc<Watched>> {
        let state = self.lock();
        let from_here = state.ordered.range(Key::of(prefix)..).map(|(_, watched)| watched);
        from_here.take_while(|watched| watched.uri.as_ref().starts_with(prefix)).cloned().collect()
    }

    /// Passes the check of a list to its subscribers in this view, and returns how many have a
    /// notice waiting.
    pub(crate) fn announce_list(
        &self,
        kind: ListKind,
        (now, due): (Check, &Due),
        notice: &Arc<Notice>,
        since: Instant,
    ) -> usize {
        let state = self.lock();
        let Due { view: ListView { labels, pulse }, only } = due;
        let is_meant = |outbox: &&Arc<Outbox>| match only {
            Some(only) => only.contains(&outbox.id()),
            None => true,
        };
        let followers = state.groups.followers(kind, labels).filter(is_meant);
        followers.filter(|outbox| outbox.mark_list(kind, (now, pulse), notice, since)).count()
    }

    /// Ends every listener gracefully.
    pub(crate) fn close_all(&self) {
        for outbox in self.listeners() {
            outbox.close();
        }
    }

    /// The number of waiting notices of all listeners.
    pub(crate) fn waiting(&self) -> usize {
        self.listeners().iter().map(|outbox| outbox.waiting()).sum()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no code panics while it holds the subscriptions")
    }
}

impl State {
    /// True if nobody watches the URI any more.
    fn unfollow(&mut self, uri: &ResourceUri, listener: u64) -> bool {
        let Some(watched) = self.uris.get(uri) else { return false };
        let mut inner = watched.lock();
        if inner.listeners.remove(&listener).is_none() {
            return false;
        }
        let nobody = inner.listeners.is_empty();
        drop(inner);
        self.subscriptions -= 1;
        self.held -= price(uri);
        if nobody {
            self.uris.remove(uri);
            self.ordered.remove(&Key::of(uri.as_ref()));
        }
        nobody
    }
}

/// A text with a copy of its first bytes. Among a million URIs, most comparisons are then decided
/// without following a pointer into cold memory.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// The first bytes, padded with zeros, which no URI has: they sort as the texts do.
    head: [u8; Key::HEAD],
    rest: Box<[u8]>,
}

impl Key {
    /// Most URIs differ within this many bytes.
    const HEAD: usize = 40;

    fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let (first, rest) = bytes.split_at(bytes.len().min(Self::HEAD));
        let mut head = [0; Self::HEAD];
        head[..first.len()].copy_from_slice(first);
        Self { head, rest: rest.into() }
    }
}

impl Watched {
    fn new(uri: ResourceUri) -> Self {
        Self { uri, pulse: Pulse::default(), state: Mutex::default() }
    }

    /// The URI.
    pub(crate) fn uri(&self) -> &ResourceUri {
        &self.uri
    }

    /// The number of changes that its source announced.
    pub(crate) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    /// Takes the result of a check. An older one never replaces a newer one. Returns how many
    /// listeners have a notice waiting.
    pub(crate) fn apply(&self, now: Check, facts: &Facts, since: Instant) -> usize {
        let mut state = self.lock();
        if state.current.is_some_and(|newest| newest.at > now.at) {
            return 0;
        }
        state.current = Some(now);
        self.mark(now, facts, since, state.listeners.values())
    }

    /// What its listeners know of it is in doubt.
    pub(crate) fn doubt(&self) {
        self.lock().listeners.values().for_each(|outbox| outbox.doubt(&self.uri));
    }

    /// Compares again for a listener whose labels changed. If the newest content is not known, a
    /// check follows anyway.
    pub(crate) fn look_again(&self, outbox: &Arc<Outbox>, facts: &Facts, since: Instant) -> bool {
        let state = self.lock();
        let current = state.current.filter(|now| now.at == self.pulse.count());
        current.is_some_and(|now| self.mark(now, facts, since, [outbox]) > 0)
    }

    fn mark<'a>(
        &self,
        check: Check,
        facts: &Facts,
        since: Instant,
        followers: impl IntoIterator<Item = &'a Arc<Outbox>>,
    ) -> usize {
        let notice = Arc::new(Notice::updated(&self.uri, facts.title.as_deref()));
        let has_gone = !facts.audience.is_empty() && facts.title.is_some();
        let gone = has_gone.then(|| Arc::new(Notice::updated(&self.uri, None)));
        let (notice, gone) = (&notice, gone.as_ref().unwrap_or(&notice));
        let seen = Seen { check, audience: &facts.audience, notice, gone };
        followers.into_iter().filter(|outbox| outbox.mark(&self.uri, &seen, since)).count()
    }

    /// Sets a new listener's baseline if the newest content is known; otherwise it must be read
    /// first.
    pub(crate) fn settle(&self, outbox: &Outbox, audience: &Labels) -> bool {
        let state = self.lock();
        match state.current {
            Some(now) if now.at == self.pulse.count() => {
                outbox.baseline(&self.uri, now, audience);
                true
            }
            _ => false,
        }
    }

    /// Sets a new listener's baseline to the last check, even if a change was announced since: that
    /// change will be checked and announced.
    pub(crate) fn settle_with_latest(&self, outbox: &Outbox, audience: &Labels) {
        if let Some(now) = self.lock().current {
            outbox.baseline(&self.uri, now, audience);
        }
    }

    fn lock(&self) -> MutexGuard<'_, WatchedState> {
        self.state.lock().expect("no code panics while it holds a watched URI")
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use proptest::prelude::*;
    use tidings_core::Fingerprint;

    use super::*;
    use crate::outbox::Next;

    const PLAIN: Wire = Wire::Legacy { titled: false, numbered: false };

    #[test]
    fn an_older_check_never_replaces_a_newer_one() {
        let index = Subscriptions::new(10, Duration::ZERO, Arc::new(Metrics::new()));
        let outbox = index.listener(PLAIN, About::nobody());
        let uri = ResourceUri::parse("x://a").unwrap();
        let watched = index.follow(&uri, &outbox).unwrap().unwrap();
        let check = |at: u64, text: &[u8]| {
            let now = Check { at, fingerprint: Fingerprint::of_bytes(text) };
            watched.apply(now, &Facts::default(), Instant::now())
        };
        watched.pulse().beat();
        watched.pulse().beat();
        check(2, b"new");
        assert!(watched.settle(&outbox, &Labels::NONE), "the newest check is the baseline");
        assert_eq!(check(1, b"old"), 0, "a late answer is not news");
        let later = index.listener(PLAIN, About::nobody());
        index.follow(&uri, &later).unwrap().unwrap();
        assert!(watched.settle(&later, &Labels::NONE), "and it did not make the newest check old");
        check(2, b"new");
        let reader = later.attach();
        let mut context = Context::from_waker(Waker::noop());
        let next: Poll<Next> = later.poll_next(reader, &mut context);
        assert!(next.is_pending(), "the listener knows what there is");
    }

    // A check that was under way when the last listener left was applied to the next one, whose
    // count begins anew: every check of its own was then taken for an older one.
    #[test]
    fn a_check_from_before_a_listener_came_costs_it_no_notice() {
        let index = Subscriptions::new(10, Duration::ZERO, Arc::new(Metrics::new()));
        let notice = Arc::new(Notice::list_changed(ListKind::Tools));
        let check = |at: u64, text: &[u8]| Check { at, fingerprint: Fingerprint::of_bytes(text) };
        let announce = |now: Check, view: &ListView| {
            let due = Due { view: view.clone(), only: None };
            index.announce_list(ListKind::Tools, (now, &due), &notice, Instant::now())
        };
        let first = index.listener(PLAIN, About::nobody());
        let before = index.follow_list(ListKind::Tools, &first, true);
        (0..57).for_each(|_| before.pulse.beat());
        index.forget(&first);
        let next = index.listener(PLAIN, About::nobody());
        let view = index.follow_list(ListKind::Tools, &next, true);
        next.baseline_list(ListKind::Tools, (check(0, b"new"), &view.pulse));
        assert_eq!(announce(check(57, b"new"), &before), 0, "it knows that");
        view.pulse.beat();
        assert_eq!(announce(check(1, b"newer"), &view), 1, "this is news");
    }

    #[test]
    fn holders_of_a_label_change_groups_and_are_checked() {
        let index = Subscriptions::new(10, Duration::ZERO, Arc::new(Metrics::new()));
        let set = |text| Labels::parse(text).unwrap();
        let ada = index.listener(PLAIN, About::nobody());
        ada.begin(&set("user:ada role:pilot"));
        let other = index.listener(PLAIN, About::nobody());
        for outbox in [&ada, &other] {
            index.follow_list(ListKind::Tools, outbox, true);
        }
        let learn = |is_named| {
            let moved = [(Arc::from("user:ada"), is_named)].into();
            let has_moved = index.learn(ListKind::Tools, || moved);
            let due = index.take_dirty(ListKind::Tools).into_iter();
            (has_moved, due.map(|due| (due.view.labels, due.only)).collect::<Vec<_>>())
        };
        let only = Some([ada.id()].into());
        assert_eq!(learn(true), (true, vec![(set("user:ada"), only.clone())]));
        assert_eq!(learn(true), (false, vec![]));
        assert_eq!(learn(false), (true, vec![(Labels::NONE, only)]));
        index.forget(&ada);
        index.forget(&other);
        assert!(!index.is_list_followed(ListKind::Tools));
        assert_eq!(learn(true), (false, vec![]), "nobody is left");
    }

    proptest! {
        /// Keys sort as their texts do, and a prefix comes before the texts that begin with it.
        #[test]
        fn keys_are_in_the_order_of_their_texts(left in "[a-c/é]{0,60}", right in "[a-c/é]{0,60}") {
            prop_assert_eq!(Key::of(&left).cmp(&Key::of(&right)), left.cmp(&right));
            let longer = format!("{left}{right}");
            prop_assert!(Key::of(&left) <= Key::of(&longer));
        }
    }
}
