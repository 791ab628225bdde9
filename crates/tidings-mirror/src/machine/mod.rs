//! The pure state machine: something happened -> new state, requests, events.
//!
//! It knows no network and no clock. Whoever drives it carries out the requests, tells it what came
//! of them, and gives it the time. Every state of the mirror has this one writer.

mod watch;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::{ListKind, ListKinds};
use tokio::time::Instant;

use self::watch::Watch;
use crate::cache::{Kind, PromptContent, ResourceContent, TemplateContent, ToolOutcome, Writer};
use crate::events::{Cause, ConnectionState, Event, Items, ListChange, Sender, Warning};
use crate::lists::{Ask, List, Listed, Listing, Outcome, Page};
use crate::pace::Merging;
use crate::request::RequestError;

/// How many resources that nobody subscribed to are warned of; a server that floods us with them
/// must not flood our user.
const MAX_STRANGERS: usize = 64;

/// What the machine is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// The connection moved. [`Input::Connected`] and [`Input::Gone`] are told besides, where the
    /// server came or went.
    State(ConnectionState),
    /// A server answered the handshake; it offers this.
    Connected(Offer),
    /// The server is gone.
    Gone {
        /// Whether it will be tried again, so that the state is kept for comparing.
        keep: bool,
    },
    /// The stream of notices broke: some may be missed from here on.
    StreamLost,
    /// The stream of notices is there again.
    StreamBack,
    /// There is no stream of notices.
    NoStream,
    /// The server says that a list changed.
    ListNotice(ListKind),
    /// The server says that a resource changed.
    Updated(Arc<str>),
    /// Somebody wants a list loaded again.
    Reload(List),
    /// An answer to [`Request::Page`].
    Page { ticket: u64, answer: PageAnswer },
    /// An answer to [`Request::Read`].
    Reread { uri: Arc<str>, ticket: u64, answer: Result<ResourceContent, RequestError> },
    /// Somebody's own read was answered.
    Read { uri: Arc<str>, ticket: u64, content: Arc<ResourceContent> },
    /// Somebody's own read failed.
    ReadFailed { uri: Arc<str> },
    /// Somebody's own read of a template was answered.
    TemplateRead { template: Arc<str>, ticket: u64, content: Arc<TemplateContent> },
    /// Somebody's prompt was answered.
    Prompted { name: Arc<str>, ticket: u64, content: Arc<PromptContent> },
    /// Somebody's call ended.
    Called { name: Arc<str>, ticket: u64, outcome: Arc<ToolOutcome> },
    /// The server is being asked to watch these: a notice may come before its answer is known here.
    Subscribing { uris: Vec<Arc<str>> },
    /// The server was asked and did not answer.
    SubscribeFailed { uris: Vec<Arc<str>> },
    /// The server watches these for us from now on, and not those.
    Subscribed { uris: Vec<Arc<str>>, refused: Vec<Arc<str>> },
    /// The server does not watch these any longer.
    Unsubscribed { uris: Vec<Arc<str>> },
    /// The authorisation is another one now.
    Reauthorized,
    /// Time passed.
    Tick,
}

/// What a server offers, as far as this mirror wants it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Offer {
    /// The lists to load.
    pub(crate) lists: Vec<List>,
    /// The kinds whose changes will be announced.
    pub(crate) announced: ListKinds,
    /// Whether what was watched before is watched already.
    pub(crate) is_restored: bool,
}

/// The answer for one page.
#[derive(Debug)]
pub(crate) enum PageAnswer {
    Tools(Result<Page<Tool>, RequestError>),
    Resources(Result<Page<Resource>, RequestError>),
    Templates(Result<Page<ResourceTemplate>, RequestError>),
    Prompts(Result<Page<Prompt>, RequestError>),
}

/// What the machine wants done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Ask for a page of a list.
    Page { list: List, ticket: u64, cursor: Option<String> },
    /// Read a watched resource again.
    Read { uri: Arc<str>, ticket: u64 },
    /// Subscribe again to all that is watched.
    Restore,
}

/// How the machine behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    pub(crate) merging: Merging,
    pub(crate) max_items: usize,
    pub(crate) resubscribe: bool,
}

/// The lists, each of its own type.
#[derive(Debug, Default)]
pub(crate) struct Lists {
    pub(crate) tools: Listing<Tool>,
    pub(crate) resources: Listing<Resource>,
    pub(crate) templates: Listing<ResourceTemplate>,
    pub(crate) prompts: Listing<Prompt>,
}

/// Does the same to one of the lists, whichever it is.
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

/// The state of a mirror, and the only writer of it.
#[derive(Debug)]
pub(crate) struct Machine {
    rules: Rules,
    /// Before the first attempt it is closed: nobody asked for it yet.
    connection: ConnectionState,
    /// What the server of the present connection offers; nothing without one.
    offer: Option<Offer>,
    /// Whether notices can reach us. Without that nothing is sure to be current.
    has_stream: bool,
    lists: Lists,
    watches: BTreeMap<Arc<str>, Watch>,
    /// Watches that wait for their time. Invariant: exactly those whose pace has a due time.
    waiting: BTreeSet<Arc<str>>,
    strangers: HashSet<Arc<str>>,
    /// What the server is being asked to watch, and whether it was announced meanwhile.
    expected: BTreeMap<Arc<str>, bool>,
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
    /// The last ticket given out; each request has its own, and a later one a greater one.
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
            strangers: HashSet::new(),
            expected: BTreeMap::new(),
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

    /// Takes in what happened and says what is to be done.
    pub(crate) fn step(&mut self, input: Input, now: Instant) -> Vec<Request> {
        match input {
            Input::State(state) => self.move_to(state),
            Input::Connected(offer) => self.connected(offer, now),
            Input::Gone { keep } => self.gone(keep),
            Input::StreamLost | Input::NoStream => {
                self.has_stream = false;
                self.cache.make_stale(None);
            }
            Input::StreamBack => {
                self.has_stream = true;
                self.resync(now);
            }
            Input::ListNotice(kind) => self.list_notice(kind, now),
            Input::Updated(uri) => self.updated(&uri, now),
            Input::Reload(list) => self.mark_list(list, now),
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
                self.expected.extend(uris.into_iter().map(|uri| (uri, false)));
            }
            Input::SubscribeFailed { uris } => {
                for uri in uris {
                    self.expected.remove(&uri);
                }
            }
            Input::Subscribed { uris, refused } => self.subscribed(&uris, refused, now),
            Input::Unsubscribed { uris } => self.unsubscribed(&uris),
            Input::Reauthorized => {
                self.authorized = self.tickets;
                self.cache.drop_private();
            }
            Input::Tick => self.tick(now),
        }
        std::mem::take(&mut self.requests)
    }

    /// A ticket for a request that somebody makes now.
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
        lists.into_iter().flatten().chain(waiting).min()
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

    /// Why a list is not what the server has, if it could not be loaded.
    pub(crate) fn list_error(&self, list: List) -> Option<RequestError> {
        match list {
            List::Tools => self.lists.tools.error(),
            List::Resources => self.lists.resources.error(),
            List::Templates => self.lists.templates.error(),
            List::Prompts => self.lists.prompts.error(),
        }
        .cloned()
    }

    /// The number of the listing that is sure to see what is true now.
    pub(crate) fn next_listing(&mut self, list: List) -> u64 {
        with_list!(self.lists, list, listing => listing.next_number())
    }

    /// Whether the listing of that number is over, well or not.
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

    /// How often a server was lost.
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// Whether the answer to this request may be kept.
    fn may_keep(&self, ticket: u64, is_private: bool) -> bool {
        ticket > self.cleared && !(is_private && ticket <= self.authorized)
    }

    /// Whether notices can reach us.
    pub(crate) fn has_stream(&self) -> bool {
        self.has_stream
    }

    /// Whether the server offers a list, and this mirror keeps it.
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
        for list in List::ALL {
            self.abandon(list);
            if lists.contains(&list) {
                self.mark_list(list, now);
            } else {
                self.clear_list(list);
            }
        }
        if !self.watches.is_empty() && !is_restored {
            self.requests.push(Request::Restore);
        }
    }

    fn gone(&mut self, keep: bool) {
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
        self.watches.values_mut().for_each(|watch| watch.pace.reset());
        let keeps_watching = keep && self.rules.resubscribe;
        if !keeps_watching && !self.watches.is_empty() {
            self.watches.clear();
            self.tell_subscriptions(Vec::new());
        }
        if !keep {
            self.cleared = self.tickets;
            for list in List::ALL {
                self.clear_list(list);
            }
            self.cache.drop_all();
        }
    }

    /// Notices may have been missed: everything that is kept current is looked at again.
    fn resync(&mut self, now: Instant) {
        let Some(offer) = self.offer.clone() else { return };
        for list in offer.lists {
            if offer.announced.contains(list.kind()) {
                self.mark_list(list, now);
            }
        }
        let uris: Vec<_> = self.watches.keys().cloned().collect();
        for uri in uris {
            self.mark_watch(&uri, Cause::Resync, now);
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
    }
}

/// Lists.
impl Machine {
    fn list_notice(&mut self, kind: ListKind, now: Instant) {
        let Some(offer) = &self.offer else { return };
        if !offer.announced.contains(kind) {
            return;
        }
        let lists: Vec<_> =
            offer.lists.iter().copied().filter(|list| list.kind() == kind).collect();
        for list in lists {
            self.mark_list(list, now);
        }
    }

    fn mark_list(&mut self, list: List, now: Instant) {
        if !self.offers(list) {
            return;
        }
        let (ticket, merging) = (self.tickets + 1, self.rules.merging);
        let ask = with_list!(self.lists, list, listing => listing.mark(ticket, now, merging));
        self.ask(list, ask);
    }

    fn ask(&mut self, list: List, ask: Option<Ask>) {
        let Some(Ask { ticket, cursor }) = ask else { return };
        self.tickets = self.tickets.max(ticket);
        self.requests.push(Request::Page { list, ticket, cursor });
    }

    fn abandon(&mut self, list: List) {
        with_list!(self.lists, list, listing => listing.abandon());
    }

    fn clear_list(&mut self, list: List) {
        match list {
            List::Tools => self.lists.tools.clear().into_iter().for_each(|change| {
                self.events.emit(Event::ToolsChanged(change));
            }),
            List::Resources => self.lists.resources.clear().into_iter().for_each(|change| {
                self.events.emit(Event::ResourcesChanged(change));
            }),
            List::Templates => self.lists.templates.clear().into_iter().for_each(|change| {
                self.events.emit(Event::TemplatesChanged(change));
            }),
            List::Prompts => self.lists.prompts.clear().into_iter().for_each(|change| {
                self.events.emit(Event::PromptsChanged(change));
            }),
        }
    }

    fn page(&mut self, ticket: u64, answer: PageAnswer, now: Instant) {
        let (fresh, most) = (self.tickets + 1, self.rules.max_items);
        let time = (now, self.rules.merging);
        match answer {
            PageAnswer::Tools(answer) => {
                let outcome =
                    self.lists.tools.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let items = self.lists.tools.items().clone();
                self.outcome(List::Tools, outcome, items, Event::ToolsChanged);
            }
            PageAnswer::Resources(answer) => {
                let outcome =
                    self.lists.resources.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let removed = match &outcome {
                    Outcome::Loaded { change: Some(change), .. } => {
                        Some(change.diff.removed.iter().map(|item| item.uri.clone()).collect())
                    }
                    _ => None,
                };
                let items = self.lists.resources.items().clone();
                self.outcome(List::Resources, outcome, items, Event::ResourcesChanged);
                if let Some(removed) = removed {
                    self.keep_listed_resources(&removed);
                }
            }
            PageAnswer::Templates(answer) => {
                let outcome =
                    self.lists.templates.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let items = self.lists.templates.items().clone();
                self.outcome(List::Templates, outcome, items, Event::TemplatesChanged);
            }
            PageAnswer::Prompts(answer) => {
                let outcome =
                    self.lists.prompts.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let is_loaded = matches!(outcome, Outcome::Loaded { change: Some(_), .. });
                let items = self.lists.prompts.items().clone();
                self.outcome(List::Prompts, outcome, items, Event::PromptsChanged);
                if is_loaded {
                    let names = keys(self.lists.prompts.items());
                    self.cache.keep(Kind::Prompt, |name| names.contains(name));
                }
            }
        }
    }

    fn outcome<T>(
        &mut self,
        list: List,
        outcome: Outcome<T>,
        items: Items<T>,
        event: impl Fn(ListChange<T>) -> Event,
    ) {
        match outcome {
            Outcome::Ask(ask) => self.ask(list, Some(ask)),
            Outcome::Loaded { change, again } => {
                for key in again {
                    self.events.emit(Event::Warning(Warning::Duplicate { list, key }));
                }
                if let Some(change) = change {
                    self.events.emit(event(change));
                }
            }
            Outcome::Failed(error) => {
                let error: Arc<str> = error.to_string().into();
                let diff = tidings_core::Diff::default();
                self.events.emit(event(ListChange { items, diff, error: Some(error.clone()) }));
                self.events.emit(Event::Warning(Warning::ListFailed { list, error }));
            }
            Outcome::Late => {}
        }
    }

    /// Content of a resource that is not listed goes. What a template names need not be listed, nor
    /// what is watched, unless it just was `removed`.
    fn keep_listed_resources(&mut self, removed: &HashSet<String>) {
        let listed = keys(self.lists.resources.items());
        let watches = &self.watches;
        let templates: Vec<_> = self
            .lists
            .templates
            .items()
            .iter()
            .filter_map(|item| tidings_core::Template::parse(&item.uri_template).ok())
            .collect();
        self.cache.keep(Kind::Resource, |uri| {
            listed.contains(uri)
                || (watches.contains_key(uri) && !removed.contains(uri))
                || templates.iter().any(|template| template.matches(uri).is_some())
        });
    }
}

/// A server that says it has resources need not have templates: what it does not know is empty.
fn empty_if_unknown<T>(answer: Result<Page<T>, RequestError>) -> Result<Page<T>, RequestError> {
    match answer {
        Err(RequestError::Refused(error)) if error.code.0 == -32601 => {
            Ok(Page { items: Vec::new(), next: None })
        }
        other => other,
    }
}

fn keys<T: Listed>(items: &Items<T>) -> HashSet<Arc<str>> {
    items.iter().map(|item| Arc::from(item.key())).collect()
}

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;
