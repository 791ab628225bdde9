//! Watched resources: announced, read again, compared; gone, and back.

use std::collections::btree_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use tidings_core::uri::parents;
use tokio::time::Instant;

use super::{Machine, Request};
use crate::cache::{Fresh, ResourceContent, TemplateContent};
use crate::events::{Cause, Event, Warning};
use crate::pace::{Merging, Pace};
use crate::request::RequestError;
use crate::spelling::plain;

/// Quiet time before a change of the watched set is announced while the server is being asked:
/// thousands of subscriptions are one event, and a hanging one does not delay it.
const RESTING: Duration = Duration::from_secs(1);

/// Sub-resources of one watched resource that are announced at once. Beyond this, only the parent
/// is read.
const PARTS: usize = 256;

/// Why a watched resource is read: the cause, and the message number of a notice.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reason {
    cause: Cause,
    notice: Option<u64>,
}

impl Reason {
    pub(super) const RESYNC: Self = Self { cause: Cause::Resync, notice: None };

    fn notice(notice: Option<u64>) -> Self {
        Self { cause: Cause::Notice, notice }
    }
}

/// A resource that the server is being asked to watch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expected {
    /// Whether it was announced meanwhile, and in which message.
    is_announced: bool,
    notice: Option<u64>,
}

impl Expected {
    fn announce(&mut self, notice: Option<u64>) {
        (self.is_announced, self.notice) = (true, notice.or(self.notice));
    }
}

/// One watched resource.
#[derive(Debug)]
pub(super) struct WatchedResource {
    pub(super) pace: Pace,
    /// A read with this ticket or an earlier one may have missed a change.
    noticed: u64,
    /// The reason of the next read.
    cause: Cause,
    /// The newest notice since the last read began.
    heard: Option<u64>,
    /// The notice that led to the current read, or to the one that is retried.
    because: Option<u64>,
    /// The current read: answers to others are late.
    reading: u64,
    /// Whether the server reported that there is no such resource.
    is_gone: bool,
    /// Whether the server no longer watches it. It may be gone, so occasional reads find out
    /// whether it is back.
    is_refused: bool,
    /// Whether it was listed, and no longer is.
    is_delisted: bool,
    /// Changed sub-resources that were not announced yet.
    parts: BTreeSet<Arc<str>>,
}

impl WatchedResource {
    /// Drops the current read and all pending changes.
    pub(super) fn reset(&mut self) {
        self.pace.reset();
        (self.heard, self.because) = (None, None);
    }

    /// The current read failed.
    fn failed(&mut self, error: &RequestError, merging: Merging, now: Instant) {
        if matches!(error, RequestError::TooLarge(_)) && !self.is_refused {
            // It stays too large until it changes again, and the server announces that.
            self.pace.finish(merging);
            self.because = None;
        } else {
            self.pace.fail(now);
        }
    }
}

/// A change of the watched set that was not announced yet.
#[derive(Debug)]
pub(super) struct Untold {
    refused: Vec<Arc<str>>,
    pub(super) due: Instant,
}

impl Machine {
    /// Whether the server watches this resource for us.
    pub(crate) fn is_announced(&self, uri: &str) -> bool {
        self.watches.get(uri).is_some_and(|watch| !watch.is_refused)
    }

    pub(super) fn subscribed(&mut self, uris: &[Arc<str>], refused: Vec<Arc<str>>, now: Instant) {
        let (lost, refused): (Vec<_>, Vec<_>) = refused.into_iter().partition(|uri| {
            self.expected.remove(uri);
            let is_held = self.is_wanted(uri);
            let watch = self.watches.get_mut(uri).filter(|watch| is_held || watch.is_gone);
            watch.map(|watch| watch.is_refused = true).is_some()
        });
        for uri in &refused {
            self.forget_watch(uri);
        }
        let mut fresh = HashSet::new();
        let mut announced = HashMap::new();
        for uri in uris {
            if let Some(watch) = self.watches.get_mut(uri) {
                watch.is_refused = false;
            } else {
                let watch = WatchedResource {
                    pace: Pace::default(),
                    noticed: self.tickets,
                    cause: Cause::Resync,
                    heard: None,
                    because: None,
                    reading: 0,
                    is_gone: false,
                    is_refused: false,
                    is_delisted: false,
                    parts: BTreeSet::new(),
                };
                self.watches.insert(uri.clone(), watch);
                self.spellings.entry(plain(uri)).or_default().insert(uri.clone());
                fresh.insert(uri);
            }
            if let Some(expected) = self.expected.remove(uri).filter(|it| it.is_announced) {
                announced.insert(uri, expected.notice);
            }
        }
        if !(refused.is_empty() && fresh.is_empty()) {
            self.watches_moved(refused, now);
        }
        self.tell_subscriptions(now);
        // Content read before the server began to watch may have changed since. A resource that was
        // neither read nor watched has no news.
        for uri in uris {
            if let Some(notice) = announced.get(uri) {
                self.mark_watch(uri, Reason::notice(*notice), now);
            } else if !fresh.contains(uri) || self.cache.holds(uri) {
                self.mark_watch(uri, Reason::RESYNC, now);
            }
        }
        // A server may refuse to watch a resource that is gone: a read finds out.
        for uri in &lost {
            self.mark_watch(uri, Reason::RESYNC, now);
        }
    }

    pub(super) fn unsubscribed(&mut self, uris: &[Arc<str>], now: Instant) {
        let mut is_changed = false;
        for uri in uris {
            is_changed |= self.forget_watch(uri);
        }
        if is_changed {
            self.watches_moved(Vec::new(), now);
            self.tell_subscriptions(now);
        }
    }

    /// Its changes are not announced from now on. Returns whether it was watched.
    fn forget_watch(&mut self, uri: &Arc<str>) -> bool {
        self.waiting.remove(uri);
        self.cache.make_stale(Some(uri));
        if let Entry::Occupied(mut spelled) = self.spellings.entry(plain(uri)) {
            spelled.get_mut().remove(uri);
            if spelled.get().is_empty() {
                spelled.remove();
            }
        }
        self.watches.remove(uri).is_some()
    }

    /// The watched set changed.
    pub(super) fn watches_moved(&mut self, refused: Vec<Arc<str>>, now: Instant) {
        let due = now + RESTING;
        let untold = self.untold.get_or_insert_with(|| Untold { refused: Vec::new(), due });
        untold.refused.extend(refused);
        untold.due = due;
    }

    /// Announces the change of the watched set once the server has answered everything, or rests.
    pub(super) fn tell_subscriptions(&mut self, now: Instant) {
        let is_time = |untold: &mut Untold| self.expected.is_empty() || untold.due <= now;
        if let Some(Untold { refused, .. }) = self.untold.take_if(is_time) {
            let uris = self.watches.keys().cloned().collect();
            self.events.emit(Event::SubscriptionsChanged { uris, refused });
        }
    }

    pub(super) fn updated(&mut self, uri: &Arc<str>, notice: Option<u64>, now: Instant) {
        let watched = self.watched_as(uri);
        for watched in &watched {
            self.mark_watch(watched, Reason::notice(notice), now);
        }
        self.cache.make_stale(Some(uri));
        let mut is_asked_for = !watched.is_empty();
        if let Some(expected) = self.expected.get_mut(uri) {
            expected.announce(notice);
            is_asked_for = true;
        }
        if !self.part_updated(uri, is_asked_for, notice, now)
            && !is_asked_for
            && let Some(count) = self.strangers.count(uri)
        {
            self.events.emit(Event::Warning(Warning::NotSubscribed { uri: uri.clone(), count }));
        }
    }

    /// The watched resources of a notice, one for each spelling: the server may use another one
    /// than we did.
    fn watched_as(&self, uri: &str) -> BTreeSet<Arc<str>> {
        self.spellings.get(&plain(uri)).cloned().unwrap_or_default()
    }

    /// These were added to a list or removed from it, because of `notice`: a read finds out whether
    /// the watched ones exist.
    pub(super) fn look_again(
        &mut self,
        added: &[Arc<str>],
        removed: &[Arc<str>],
        notice: Option<u64>,
        now: Instant,
    ) {
        let added = added.iter().map(|uri| (uri, false));
        for (uri, is_delisted) in added.chain(removed.iter().map(|uri| (uri, true))) {
            let is_held = self.is_wanted(uri);
            let Some(watch) = self.watches.get_mut(uri) else { continue };
            watch.is_delisted = is_delisted;
            if watch.is_gone || is_held {
                self.mark_watch(uri, Reason::notice(notice), now);
            }
        }
    }

    /// Whether all that waits are reads of gone, unwatched resources.
    #[cfg(test)]
    pub(super) fn only_looks(&self) -> bool {
        let looks = |uri| self.watches.get(uri).is_some_and(|it| it.is_gone && it.is_refused);
        let lists = [self.lists.tools.due(), self.lists.resources.due()];
        self.waiting.iter().all(looks) && lists == [None, None] && self.untold.is_none()
    }

    /// The watched resources that are gone.
    #[cfg(test)]
    pub(super) fn gone_resources(&self) -> std::collections::BTreeSet<Arc<str>> {
        let gone = self.watches.iter().filter(|(_, watch)| watch.is_gone);
        gone.map(|(uri, _)| uri.clone()).collect()
    }

    /// The change may be in a sub-resource, and then affects watched parents. Returns whether there
    /// are any. A sub-resource that `is_watched` itself has its own events.
    fn part_updated(
        &mut self,
        uri: &Arc<str>,
        is_watched: bool,
        notice: Option<u64>,
        now: Instant,
    ) -> bool {
        let (mut above, mut is_expected) = (BTreeSet::new(), false);
        for parent in parents(uri) {
            if let Some(expected) = self.expected.get_mut(parent) {
                expected.announce(notice);
                is_expected = true;
            }
            above.extend(self.watched_as(parent));
        }
        // Two spellings of one resource are not parent and child.
        above.retain(|parent| plain(parent) != plain(uri));
        for (place, parent) in above.iter().enumerate() {
            let watch = self.watches.get_mut(parent).filter(|_| place == 0 && !is_watched);
            if let Some(watch) = watch.filter(|watch| watch.parts.len() < PARTS) {
                watch.parts.insert(uri.clone());
            }
            self.mark_watch(parent, Reason::notice(notice), now);
        }
        is_expected || !above.is_empty()
    }

    /// A watched resource changed, or may have.
    pub(super) fn mark_watch(&mut self, uri: &Arc<str>, reason: Reason, now: Instant) {
        let Reason { cause, notice } = reason;
        if self.offer.is_none() {
            return;
        }
        self.cache.make_stale(Some(uri));
        let (tickets, merging) = (self.tickets, self.rules.merging);
        let Some(watch) = self.watches.get_mut(uri) else { return };
        watch.noticed = tickets;
        watch.heard = notice.or(watch.heard);
        watch.cause = if watch.pace.is_resting() { cause } else { stronger(watch.cause, cause) };
        let begin = watch.pace.mark(now, merging);
        self.settle(uri, begin);
    }

    pub(super) fn tick_watch(&mut self, uri: &Arc<str>, now: Instant) {
        let begin = self.watches.get_mut(uri).is_some_and(|watch| watch.pace.begin(now));
        if begin || !self.watches.contains_key(uri) {
            self.settle(uri, begin);
        }
    }

    /// A read of ours was answered.
    pub(super) fn reread(
        &mut self,
        uri: &Arc<str>,
        ticket: u64,
        answer: Result<ResourceContent, RequestError>,
        now: Instant,
    ) {
        let merging = self.rules.merging;
        let Some(watch) = self.watches.get_mut(uri).filter(|_| self.offer.is_some()) else {
            return;
        };
        if !watch.pace.is_running() || watch.reading != ticket {
            return;
        }
        let (cause, notice) = (watch.cause, watch.because);
        match answer {
            Ok(content) => {
                watch.pace.finish(merging);
                if !self.may_keep(ticket, content.private) {
                    // It belongs to another authorisation: read again.
                    self.mark_watch(uri, Reason { cause, notice }, now);
                    return;
                }
                let Some(watch) = self.watches.get_mut(uri) else { return };
                watch.because = None;
                let was_gone = std::mem::take(&mut watch.is_gone);
                let cause = if was_gone { Cause::Returned } else { cause };
                let is_current = self.has_stream && !watch.is_refused && watch.noticed < ticket;
                let fresh = if is_current { Fresh::UntilNotice } else { Fresh::No };
                let is_refused = watch.is_refused;
                self.replace(uri, ticket, content, fresh, (cause, notice));
                if is_refused {
                    self.readable_again(uri, was_gone, now);
                }
            }
            Err(error) if is_gone(&error, watch) => {
                if watch.is_refused {
                    // Its return will not be announced.
                    watch.pace.fail(now);
                } else {
                    watch.pace.finish(merging);
                }
                watch.because = None;
                let is_news = !std::mem::replace(&mut watch.is_gone, true);
                self.cache.drop_resource(uri);
                if is_news {
                    let (uri, reason) = (uri.clone(), error.to_string().into());
                    self.events.emit(Event::ResourceGone { uri, reason, cause, notice });
                }
            }
            Err(error) => {
                watch.failed(&error, merging, now);
                let error = error.to_string().into();
                self.events.emit(Event::Warning(Warning::ReadFailed { uri: uri.clone(), error }));
            }
        }
        self.settle(uri, false);
    }

    /// The server refused to watch a resource that can be read. If the resource was gone then, it
    /// is asked again; otherwise there is nothing to watch.
    fn readable_again(&mut self, uri: &Arc<str>, was_gone: bool, now: Instant) {
        if was_gone {
            self.requests.push(Request::Watch { uri: uri.clone() });
        } else {
            self.forget_watch(uri);
            self.watches_moved(vec![uri.clone()], now);
            self.tell_subscriptions(now);
        }
    }

    /// A user's read was answered.
    pub(super) fn read(
        &mut self,
        uri: &Arc<str>,
        ticket: u64,
        content: Arc<ResourceContent>,
        now: Instant,
    ) {
        if !self.may_keep(ticket, content.private) {
            return;
        }
        let watch = self.watches.get_mut(uri);
        let is_outdated =
            ticket <= self.lost || watch.as_ref().is_some_and(|watch| watch.noticed >= ticket);
        let was_gone = watch.as_ref().is_some_and(|watch| watch.is_gone);
        if was_gone && is_outdated {
            // It may have been read before it went.
            self.mark_watch(uri, Reason::notice(None), now);
            return;
        }
        let fresh = match (&watch, content.ttl) {
            _ if is_outdated => Fresh::No,
            (Some(watch), _) if self.has_stream && self.offer.is_some() && !watch.is_refused => {
                Fresh::UntilNotice
            }
            (_, Some(ttl)) => Fresh::Until(now + ttl),
            (_, None) => Fresh::No,
        };
        let watch_is_refused = watch.as_ref().is_some_and(|watch| watch.is_refused);
        if let Some(watch) = watch {
            watch.is_gone = false;
        }
        let is_back = was_gone && watch_is_refused;
        let cause = if was_gone { Cause::Returned } else { Cause::Asked };
        self.cache.put_resource(uri, content, ticket, fresh, (cause, None));
        if is_back {
            self.requests.push(Request::Watch { uri: uri.clone() });
        }
        if is_outdated {
            self.mark_watch(uri, Reason::notice(None), now);
        }
    }

    /// Replaces the stored content. Cleared content stays cleared unless the resource is followed,
    /// and content of a returned resource is stored again.
    fn replace(
        &mut self,
        uri: &Arc<str>,
        ticket: u64,
        content: ResourceContent,
        fresh: Fresh,
        (cause, notice): (Cause, Option<u64>),
    ) {
        for (template, old) in self.cache.templates_at(uri) {
            if !old.content.is_same(&content) {
                let new = TemplateContent {
                    name: old.name.clone(),
                    uri: uri.clone(),
                    values: old.values.clone(),
                    content: content.clone(),
                };
                self.cache.put_template(&template, Arc::new(new), ticket);
            }
        }
        let is_followed = self.events.watchers.has(uri);
        if is_followed || self.cache.holds_resource(uri) || cause == Cause::Returned {
            self.cache.put_resource(uri, Arc::new(content), ticket, fresh, (cause, notice));
        } else if !self.cache.holds(uri) {
            self.events.emit(Event::ResourceUpdated { uri: uri.clone(), cause, notice });
        }
    }

    /// Updates `waiting`, and starts the read that is due.
    fn settle(&mut self, uri: &Arc<str>, begin: bool) {
        let is_waiting = self.watches.get(uri).is_some_and(|watch| watch.pace.due().is_some());
        if is_waiting {
            self.waiting.insert(uri.clone());
        } else {
            self.waiting.remove(uri);
        }
        if begin {
            self.load(uri);
        }
    }

    /// Whether a watched resource is read again when it changes: it was read before, or is
    /// followed.
    fn is_wanted(&self, uri: &str) -> bool {
        self.cache.holds(uri) || self.events.watchers.has(uri)
    }

    /// Announces the changed sub-resources, and reads the resource again. If it was never read,
    /// only the change is announced.
    fn load(&mut self, uri: &Arc<str>) {
        let (ticket, merging) = (self.tickets + 1, self.rules.merging);
        let is_held = self.is_wanted(uri);
        let Some(watch) = self.watches.get_mut(uri) else { return };
        watch.because = watch.heard.take().or(watch.because);
        let notice = watch.because;
        for uri in std::mem::take(&mut watch.parts) {
            self.events.emit(Event::ResourceUpdated { uri, cause: Cause::Notice, notice });
        }
        if is_held || watch.is_gone {
            self.tickets = ticket;
            watch.reading = ticket;
            self.requests.push(Request::Read { uri: uri.clone(), ticket });
        } else {
            watch.pace.finish(merging);
            watch.because = None;
            let (uri, cause) = (uri.clone(), watch.cause);
            self.events.emit(Event::ResourceUpdated { uri, cause, notice });
        }
    }
}

/// A notice is a better cause than a possibly missed one.
fn stronger(one: Cause, other: Cause) -> Cause {
    if one == Cause::Notice { one } else { other }
}

/// Whether the server reports that there is no such resource: with an error code of the protocol,
/// with the text of a library that has one code for everything, or by removing it from the list and
/// refusing to read it.
fn is_gone(error: &RequestError, watch: &WatchedResource) -> bool {
    error.refusal().is_some_and(|error| {
        let message = error.message.to_lowercase();
        matches!(error.code.0, -32002 | -32602)
            || watch.is_delisted
            || message.contains("unknown resource")
            || message.contains("no such file or directory")
            || (message.contains("resource") && message.contains("not found"))
    })
}
