//! The pure state machine: an input leads to a new state, requests and events.
//!
//! It has no network and no clock. The driver carries out its requests, reports the results, and
//! supplies the time. The machine is the only writer of the mirror's state.

/// Applies an expression to one of the lists.
macro_rules! with_list {
    ($lists:expr, $list:expr, $listing:ident => $body:expr) => {
        match $list {
            List::Tools => {
                let $listing = &mut $lists.tools;
                $body
            }
            List::Resources => {
                let $listing = &mut $lists.resources;
                $body
            }
            List::Templates => {
                let $listing = &mut $lists.templates;
                $body
            }
            List::Prompts => {
                let $listing = &mut $lists.prompts;
                $body
            }
        }
    };
}

mod input;
mod loading;
mod tally;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::ListKinds;
use tokio::time::Instant;

pub(crate) use self::input::{Input, Offer, PageAnswer, Request};
use self::tally::Tally;
use self::watch::{Expected, Reason, Untold, WatchedResource};
use crate::cache::Writer;
use crate::events::{ConnectionState, Event, Sender};
use crate::lists::{Limits, List, Listing};
use crate::odd::Odd;
use crate::pace::Merging;
use crate::request::RequestError;

/// The settings of the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) merging: Merging,
    pub(crate) limits: Limits,
    pub(crate) resubscribe: bool,
    pub(crate) second_look: Option<Duration>,
    pub(crate) unannounced: bool,
}

#[cfg(test)]
impl Rules {
    /// Rules for tests.
    fn of(merging: Merging, items: usize) -> Self {
        let limits = Limits { items, pages: 100 };
        Self { merging, limits, resubscribe: true, second_look: None, unannounced: false }
    }
}

/// The lists, each of its own type.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) tools: Listing<Tool>,
    pub(crate) resources: Listing<Resource>,
    pub(crate) templates: Listing<ResourceTemplate>,
    pub(crate) prompts: Listing<Prompt>,
}

/// The state of a mirror, and its only writer.
#[derive(Debug)]
pub(crate) struct Machine {
    rules: Rules,
    /// Closed before the first attempt.
    connection: ConnectionState,
    /// The offers of the current server; `None` without a connection.
    offer: Option<Offer>,
    /// Whether notices can arrive. Otherwise nothing is sure to be current.
    has_stream: bool,
    lists: Lists,
    watches: BTreeMap<Arc<str>, WatchedResource>,
    /// Watches that wait to be read. Invariant: exactly those whose pace has a due time.
    waiting: BTreeSet<Arc<str>>,
    /// Announced resources that are not subscribed to.
    strangers: Tally,
    /// Other unexpected notices, by method.
    unasked: Tally,
    /// Resources that the server is being asked to watch.
    expected: BTreeMap<Arc<str>, Expected>,
    /// A change of the watched set that was not announced yet.
    untold: Option<Untold>,
    /// Watched resources by their normalised spelling, for notices with another spelling.
    spellings: BTreeMap<String, BTreeSet<Arc<str>>>,
    /// How often a server was lost.
    losses: u64,
    /// Requests up to this ticket were made with another authorisation.
    authorized: u64,
    /// Requests up to this ticket were made on a connection that is over.
    lost: u64,
    /// Requests up to this ticket were made before everything was cleared.
    cleared: u64,
    cache: Writer,
    events: Sender,
    /// The last ticket. Each request has its own, and a later one has a greater one.
    tickets: u64,
    requests: Vec<Request>,
}

impl Machine {
    pub(crate) fn new(rules: Rules, cache: Writer, events: Sender) -> Self {
        Self {
            rules,
            connection: ConnectionState::Closed { reason: "it was never opened".into() },
            offer: None,
            has_stream: true,
            lists: Lists::default(),
            watches: BTreeMap::new(),
            waiting: BTreeSet::new(),
            strangers: Tally::default(),
            unasked: Tally::default(),
            expected: BTreeMap::new(),
            untold: None,
            spellings: BTreeMap::new(),
            losses: 0,
            authorized: 0,
            lost: 0,
            cleared: 0,
            cache,
            events,
            tickets: 0,
            requests: Vec::new(),
        }
    }

    /// Applies an input, and returns the requests.
    pub(crate) fn step(&mut self, input: Input, now: Instant) -> Vec<Request> {
        match input {
            Input::State(state) => self.move_to(state),
            Input::Connected(offer) => self.connected(offer, now),
            Input::Gone { keep } => self.gone(keep, now),
            Input::StreamLost | Input::NoStream => {
                self.has_stream = false;
                self.cache.make_stale(None);
            }
            Input::StreamBack => {
                self.has_stream = true;
                self.resync(now);
            }
            Input::ListNotice(kind, notice) => self.list_notice(kind, notice, now),
            Input::Updated(uri, notice) => self.updated(&uri, notice, now),
            Input::Unknown(method) => self.unasked(method),
            Input::Reload(list) => self.mark_list(list, Merging::NONE, None, now),
            Input::Page { ticket, answer } => self.page(ticket, answer, now),
            Input::Reread { uri, ticket, answer } => self.reread(&uri, ticket, answer, now),
            Input::Read { uri, ticket, content } => self.read(&uri, ticket, content, now),
            Input::ReadFailed { uri } => self.cache.make_stale(Some(&uri)),
            Input::TemplateRead { template, ticket, content } => {
                if self.may_keep(ticket, content.content.private) {
                    self.cache.put_template(&template, content, ticket);
                }
            }
            Input::Prompted { name, ticket, content } => {
                if self.may_keep(ticket, true) {
                    self.cache.put_prompt(&name, content, ticket);
                }
            }
            Input::Called { name, ticket, outcome } => {
                if self.may_keep(ticket, true) {
                    self.cache.put_tool(&name, outcome, ticket);
                }
            }
            Input::Subscribing { uris } => {
                let unheard = Expected::default();
                self.expected.extend(uris.into_iter().map(|uri| (uri, unheard)));
            }
            Input::SubscribingEnded { uris } => {
                for uri in uris {
                    self.expected.remove(&uri);
                }
                self.tell_subscriptions(now);
            }
            Input::Subscribed { uris, refused } => self.subscribed(&uris, refused, now),
            Input::Unsubscribed { uris } => self.unsubscribed(&uris, now),
            Input::Reauthorized => {
                self.authorized = self.tickets;
                self.cache.drop_private();
            }
            Input::Tick => self.tick(now),
        }
        std::mem::take(&mut self.requests)
    }

    /// A ticket for a new request of a user.
    pub(crate) fn ticket(&mut self) -> u64 {
        self.tickets += 1;
        self.tickets
    }

    /// When [`Input::Tick`] is wanted next.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        let lists = [
            self.lists.tools.due(),
            self.lists.resources.due(),
            self.lists.templates.due(),
            self.lists.prompts.due(),
        ];
        let waiting = self.waiting.iter().filter_map(|uri| self.watches.get(uri)?.pace.due());
        let untold = self.untold.as_ref().map(|untold| untold.due);
        lists.into_iter().flatten().chain(waiting).chain(untold).min()
    }

    pub(crate) fn connection(&self) -> &ConnectionState {
        &self.connection
    }

    pub(crate) fn lists(&self) -> &Lists {
        &self.lists
    }

    pub(crate) fn cache(&self) -> &Writer {
        &self.cache
    }

    pub(crate) fn subscriptions(&self) -> impl Iterator<Item = &Arc<str>> {
        self.watches.keys()
    }

    pub(crate) fn is_subscribed(&self, uri: &str) -> bool {
        self.watches.contains_key(uri)
    }

    /// Why a list could not be loaded.
    pub(crate) fn list_error(&self, list: List) -> Option<RequestError> {
        match list {
            List::Tools => self.lists.tools.error(),
            List::Resources => self.lists.resources.error(),
            List::Templates => self.lists.templates.error(),
            List::Prompts => self.lists.prompts.error(),
        }
        .cloned()
    }

    /// The items of a list that violate the protocol.
    pub(crate) fn odd(&mut self, list: List) -> Arc<[Odd]> {
        with_list!(self.lists, list, listing => listing.odd().clone())
    }

    /// Why a list was not loaded to its end.
    pub(crate) fn cut(&mut self, list: List) -> Option<Arc<str>> {
        with_list!(self.lists, list, listing => listing.cut().cloned())
    }

    /// The number of the listing that is sure to see the current state.
    pub(crate) fn next_listing(&mut self, list: List) -> u64 {
        with_list!(self.lists, list, listing => listing.next_number())
    }

    /// Whether the listing of that number is over, successfully or not.
    pub(crate) fn is_loaded(&mut self, list: List, number: u64) -> bool {
        with_list!(self.lists, list, listing => listing.ended() >= number)
    }

    /// Whether the first listing of all lists is over, or the connection is.
    pub(crate) fn is_settled(&mut self) -> bool {
        let offer = self.offer.clone();
        self.losses > 0
            || offer
                .is_some_and(|offer| offer.lists.into_iter().all(|list| self.is_loaded(list, 1)))
    }

    /// Whether there is a connection and all its lists are loaded.
    pub(crate) fn is_loaded_now(&mut self) -> bool {
        let Some(offer) = self.offer.clone() else { return false };
        offer
            .lists
            .into_iter()
            .all(|list| with_list!(self.lists, list, listing => listing.is_loaded_anew()))
    }

    /// Whether this connection has this list: it was loaded without an error, or there is none.
    pub(crate) fn has_list_now(&mut self, list: List) -> bool {
        let Some(offer) = &self.offer else { return false };
        !offer.lists.contains(&list)
            || with_list!(self.lists, list, listing => {
                listing.is_loaded_anew() && listing.error().is_none()
            })
    }

    /// How often a server was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// Whether the answer to this request may be stored.
    fn may_keep(&self, ticket: u64, is_private: bool) -> bool {
        ticket > self.cleared && !(is_private && ticket <= self.authorized)
    }

    /// Whether notices can arrive.
    pub(crate) fn has_stream(&self) -> bool {
        self.has_stream
    }

    /// Whether the server offers a list and this mirror keeps it.
    pub(crate) fn offers(&self, list: List) -> bool {
        self.offer.as_ref().is_some_and(|offer| offer.lists.contains(&list))
    }

    /// The kinds whose changes are announced.
    pub(crate) fn announced(&self) -> ListKinds {
        self.offer.as_ref().map_or(ListKinds::EMPTY, |offer| offer.announced)
    }

    fn move_to(&mut self, state: ConnectionState) {
        if self.connection != state {
            self.connection = state.clone();
            self.events.emit(Event::Connection(state));
        }
    }

    fn connected(&mut self, offer: Offer, now: Instant) {
        self.move_to(ConnectionState::Ready);
        let (lists, is_restored) = (offer.lists.clone(), offer.is_restored);
        self.offer = Some(offer);
        self.strangers.clear();
        self.unasked.clear();
        for list in List::ALL {
            self.abandon(list);
            if lists.contains(&list) {
                self.mark_list(list, self.rules.merging, None, now);
            } else {
                self.clear_list(list);
            }
        }
        if !self.watches.is_empty() && !is_restored {
            self.requests.push(Request::Restore);
        }
    }

    fn gone(&mut self, keep: bool, now: Instant) {
        self.offer = None;
        self.losses += 1;
        self.lost = self.tickets;
        self.expected.clear();
        self.has_stream = true;
        self.cache.make_stale(None);
        self.waiting.clear();
        for list in List::ALL {
            self.abandon(list);
        }
        self.watches.values_mut().for_each(WatchedResource::reset);
        let keeps_watching = keep && self.rules.resubscribe;
        if !keeps_watching && !self.watches.is_empty() {
            self.watches.clear();
            self.spellings.clear();
            self.watches_moved(Vec::new(), now);
        }
        self.tell_subscriptions(now);
        if !keep {
            self.cleared = self.tickets;
            for list in List::ALL {
                self.clear_list(list);
            }
            self.cache.drop_all();
        }
    }

    /// Notices may have been missed: checks everything that is kept current.
    fn resync(&mut self, now: Instant) {
        let Some(offer) = self.offer.clone() else { return };
        for list in offer.lists {
            if offer.announced.contains(list.kind()) {
                self.mark_list(list, self.rules.merging, None, now);
            }
        }
        let uris: Vec<_> = self.watches.keys().cloned().collect();
        for uri in uris {
            self.mark_watch(&uri, Reason::RESYNC, now);
        }
    }

    fn tick(&mut self, now: Instant) {
        for list in List::ALL {
            let ticket = self.tickets + 1;
            let ask = with_list!(self.lists, list, listing => listing.tick(ticket, now));
            self.ask(list, ask);
        }
        let due: Vec<_> = self.waiting.iter().cloned().collect();
        for uri in due {
            self.tick_watch(&uri, now);
        }
        self.tell_subscriptions(now);
    }
}

#[cfg(test)]
mod tests;
