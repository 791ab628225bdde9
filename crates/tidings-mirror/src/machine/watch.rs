//! Watched resources: heard of, read again, compared.

use std::sync::Arc;

use tokio::time::Instant;

use super::{MAX_STRANGERS, Machine, Request};
use crate::cache::{Fresh, ResourceContent, TemplateContent};
use crate::events::{Cause, Event, Warning};
use crate::pace::Pace;
use crate::request::RequestError;

/// One watched resource.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) pace: Pace,
    /// A read that was begun with this ticket or an earlier one may have missed a change.
    noticed: u64,
    /// Why the next read is made.
    cause: Cause,
    /// The read under way: an answer to any other is late.
    reading: u64,
}

impl Machine {
    pub(super) fn subscribed(&mut self, uris: &[Arc<str>], refused: Vec<Arc<str>>, now: Instant) {
        let gone = refused.iter().filter(|uri| self.watches.remove(*uri).is_some()).count();
        for uri in &refused {
            self.waiting.remove(uri);
            self.expected.remove(uri);
            // Nobody tells us of its changes.
            self.cache.make_stale(Some(uri));
        }
        let is_new = gone > 0 || !refused.is_empty();
        let mut fresh = Vec::new();
        for uri in uris {
            if !self.watches.contains_key(uri) {
                let (noticed, cause) = (self.tickets, Cause::Resync);
                let watch = Watch { pace: Pace::default(), noticed, cause, reading: 0 };
                self.watches.insert(uri.clone(), watch);
                fresh.push(uri.clone());
            }
        }
        if is_new || !fresh.is_empty() {
            self.tell_subscriptions(refused);
        }
        // What was read before the server began to watch may have changed in between. What nobody
        // read and nobody watched is no news.
        for uri in uris {
            let is_announced = self.expected.remove(uri) == Some(true);
            if is_announced {
                self.mark_watch(uri, Cause::Notice, now);
            } else if !fresh.contains(uri) || self.cache.holds(uri) {
                self.mark_watch(uri, Cause::Resync, now);
            }
        }
    }

    pub(super) fn unsubscribed(&mut self, uris: &[Arc<str>]) {
        let mut is_changed = false;
        for uri in uris {
            is_changed |= self.watches.remove(uri).is_some();
            self.waiting.remove(uri);
            // Nobody tells us of its changes from here on.
            self.cache.make_stale(Some(uri));
        }
        if is_changed {
            self.tell_subscriptions(Vec::new());
        }
    }

    pub(super) fn tell_subscriptions(&self, refused: Vec<Arc<str>>) {
        let uris = self.watches.keys().cloned().collect();
        self.events.emit(Event::SubscriptionsChanged { uris, refused });
    }

    pub(super) fn updated(&mut self, uri: &Arc<str>, now: Instant) {
        if self.watches.contains_key(uri) {
            self.mark_watch(uri, Cause::Notice, now);
            return;
        }
        self.cache.make_stale(Some(uri));
        if let Some(is_announced) = self.expected.get_mut(uri) {
            *is_announced = true;
        } else if self.strangers.len() < MAX_STRANGERS && self.strangers.insert(uri.clone()) {
            self.events.emit(Event::Warning(Warning::NotSubscribed { uri: uri.clone() }));
        }
    }

    /// A watched resource changed, or may have.
    pub(super) fn mark_watch(&mut self, uri: &Arc<str>, cause: Cause, now: Instant) {
        if self.offer.is_none() {
            return;
        }
        self.cache.make_stale(Some(uri));
        let is_held = self.cache.holds(uri);
        let (tickets, merging) = (self.tickets, self.rules.merging);
        let Some(watch) = self.watches.get_mut(uri) else { return };
        watch.noticed = tickets;
        if !is_held {
            self.events.emit(Event::ResourceUpdated { uri: uri.clone(), cause });
            return;
        }
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
        let cause = watch.cause;
        match answer {
            Ok(content) => {
                watch.pace.finish(merging);
                if !self.may_keep(ticket, content.private) {
                    // It is of another authorisation: once more, with this one.
                    self.mark_watch(uri, cause, now);
                    return;
                }
                let Some(watch) = self.watches.get(uri) else { return };
                let is_current = self.has_stream && watch.noticed < ticket;
                let fresh = if is_current { Fresh::UntilNotice } else { Fresh::No };
                self.replace(uri, ticket, content, fresh, cause);
            }
            Err(error) => {
                let is_gone = is_gone(&error);
                if is_gone {
                    watch.pace.finish(merging);
                    self.cache.drop_resource(uri);
                } else {
                    watch.pace.fail(now);
                }
                let error = error.to_string().into();
                self.events.emit(Event::Warning(Warning::ReadFailed { uri: uri.clone(), error }));
            }
        }
        self.settle(uri, false);
    }

    /// Somebody's own read was answered.
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
        let watch = self.watches.get(uri).filter(|_| self.offer.is_some());
        let is_outdated = ticket <= self.lost || watch.is_some_and(|watch| watch.noticed >= ticket);
        let fresh = match (watch, content.ttl) {
            _ if is_outdated => Fresh::No,
            (Some(_), _) if self.has_stream => Fresh::UntilNotice,
            (_, Some(ttl)) => Fresh::Until(now + ttl),
            (_, None) => Fresh::No,
        };
        self.cache.put_resource(uri, content, ticket, fresh, Cause::Asked);
        if is_outdated {
            self.mark_watch(uri, Cause::Notice, now);
        }
    }

    /// Puts what was read in place of what is kept. What was cleared meanwhile stays cleared.
    fn replace(
        &mut self,
        uri: &Arc<str>,
        ticket: u64,
        content: ResourceContent,
        fresh: Fresh,
        cause: Cause,
    ) {
        for (template, old) in self.cache.templates_at(uri) {
            if old.content.contents != content.contents {
                let new = TemplateContent {
                    uri: uri.clone(),
                    values: old.values.clone(),
                    content: content.clone(),
                };
                self.cache.put_template(&template, Arc::new(new), ticket);
            }
        }
        if self.cache.holds_resource(uri) {
            self.cache.put_resource(uri, Arc::new(content), ticket, fresh, cause);
        } else if !self.cache.holds(uri) {
            self.events.emit(Event::ResourceUpdated { uri: uri.clone(), cause });
        }
    }

    /// Keeps `waiting` true, and asks for a read that begins.
    fn settle(&mut self, uri: &Arc<str>, begin: bool) {
        let is_waiting = self.watches.get(uri).is_some_and(|watch| watch.pace.due().is_some());
        if is_waiting {
            self.waiting.insert(uri.clone());
        } else {
            self.waiting.remove(uri);
        }
        if begin {
            let ticket = self.ticket();
            if let Some(watch) = self.watches.get_mut(uri) {
                watch.reading = ticket;
            }
            self.requests.push(Request::Read { uri: uri.clone(), ticket });
        }
    }
}

/// A notice says more than that one may have been missed.
fn stronger(one: Cause, other: Cause) -> Cause {
    if one == Cause::Notice { one } else { other }
}

/// Whether the server says that there is no such resource.
fn is_gone(error: &RequestError) -> bool {
    error.refusal().is_some_and(|error| matches!(error.code.0, -32002 | -32602))
}
