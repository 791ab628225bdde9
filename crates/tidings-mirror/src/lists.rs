//! Lists with generations: a late answer never replaces a newer one, and a listing that is
//! overtaken by a change starts again.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::diff::unique;
use tidings_core::{Diff, ListKind};
use tokio::time::Instant;

use crate::events::{Items, ListChange};
use crate::item::Item;
use crate::odd::Odd;
use crate::pace::{Merging, Pace};
use crate::request::RequestError;

/// How often one listing may restart before it is accepted as it is: a server whose list keeps
/// changing must not keep us from having one.
const MAX_RESTARTS: u32 = 8;

/// One of the four lists a server may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum List {
    /// The tools that can be called.
    Tools,
    /// The resources that can be read.
    Resources,
    /// The templates of resources.
    Templates,
    /// The prompts that can be filled in.
    Prompts,
}

impl List {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Tools, Self::Resources, Self::Templates, Self::Prompts];

    /// Its name, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Templates => "templates",
            Self::Prompts => "prompts",
        }
    }

    /// The kind of notices that announce it.
    #[must_use]
    pub const fn kind(self) -> ListKind {
        match self {
            Self::Tools => ListKind::Tools,
            Self::Resources | Self::Templates => ListKind::Resources,
            Self::Prompts => ListKind::Prompts,
        }
    }
}

impl std::fmt::Display for List {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// An item of a list.
pub(crate) trait Listed: Clone + PartialEq {
    /// Its unique key.
    fn key(&self) -> &str;
}

impl Listed for Tool {
    fn key(&self) -> &str {
        &self.name
    }
}

impl Listed for Resource {
    fn key(&self) -> &str {
        &self.uri
    }
}

impl Listed for ResourceTemplate {
    fn key(&self) -> &str {
        &self.uri_template
    }
}

impl Listed for Prompt {
    fn key(&self) -> &str {
        &self.name
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub(crate) struct Page<T> {
    pub(crate) items: Vec<Item<T>>,
    /// Items that violate the protocol, by their position on this page.
    pub(crate) odd: Vec<Odd>,
    pub(crate) next: Option<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { items: Vec::new(), odd: Vec::new(), next: None }
    }
}

/// The limits of a list.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) items: usize,
    pub(crate) pages: usize,
}

/// A page to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) ticket: u64,
    pub(crate) cursor: Option<String>,
}

/// The outcome of a page.
#[derive(Debug)]
pub(crate) enum PageOutcome<T> {
    /// Another page is needed.
    Ask(Ask),
    /// The list is loaded.
    Loaded {
        /// The difference, if there is one.
        change: Option<ListChange<T>>,
        /// Keys that the server lists more than once.
        again: Vec<Arc<str>>,
        /// The odd items, if they changed.
        odd: Option<Arc<[Odd]>>,
        /// Why it was not loaded to its end, if it was before.
        cut: Option<Arc<str>>,
    },
    /// The list could not be loaded and stays as it was. The notice that led to the attempt.
    Failed(RequestError, Option<u64>),
    /// It belongs to a listing that is over.
    Late,
}

/// The pages of one listing so far.
#[derive(Debug)]
struct Walk<T> {
    /// Identifies the expected page.
    ticket: u64,
    /// Identifies the listing.
    number: u64,
    items: Vec<Item<T>>,
    odd: Vec<Odd>,
    /// The number of items the server sent, including unusable ones.
    sent: usize,
    /// One for each page but the first.
    cursors: HashSet<String>,
    /// Whether the page that is loaded was asked for with an empty cursor.
    is_unnamed: bool,
}

impl<T> Walk<T> {
    fn new(ticket: u64, number: u64) -> Self {
        let (items, odd, cursors) = (Vec::new(), Vec::new(), HashSet::new());
        Self { ticket, number, items, odd, sent: 0, cursors, is_unnamed: false }
    }

    fn take(&mut self, items: Vec<Item<T>>, odd: Vec<Odd>) {
        let before = self.sent;
        self.sent += items.len() + odd.iter().filter(|odd| !odd.usable).count();
        self.items.extend(items);
        self.odd.extend(odd.into_iter().map(|odd| Odd { index: before + odd.index, ..odd }));
    }

    /// Why the listing ends although the server has another page.
    fn cut(&mut self, next: &str, limits: Limits) -> Option<String> {
        if self.sent >= limits.items {
            return Some(format!("it has more than {} items", limits.items));
        }
        if self.cursors.len() + 1 >= limits.pages {
            return Some(format!("it has more than {} pages", limits.pages));
        }
        let is_new = self.cursors.insert(next.to_owned());
        (!is_new).then(|| "the server gave the same cursor twice".to_owned())
    }
}

impl<T: Listed> Walk<T> {
    /// Whether an empty cursor was no cursor: some servers mean a page with it, and others the end.
    /// Those refuse it, or begin anew.
    fn leads_nowhere(&self, answer: &Result<Page<T>, RequestError>) -> bool {
        match answer {
            Ok(page) => {
                let known: HashSet<_> = self.items.iter().map(|item| item.key()).collect();
                let is_end = page.next.as_deref().is_none_or(str::is_empty);
                (is_end || !page.items.is_empty())
                    && page.items.iter().all(|item| known.contains(item.key()))
            }
            Err(error) => matches!(error, RequestError::Refused(_)),
        }
    }
}

/// One list as it was last loaded, and the current listing.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    items: Items<T>,
    odd: Arc<[Odd]>,
    cut: Option<Arc<str>>,
    error: Option<RequestError>,
    pace: Pace,
    /// The newest notice since the last listing began.
    heard: Option<u64>,
    /// The notice that led to the current listing, or to the one that is retried.
    because: Option<u64>,
    /// Whether a notice came since the last listing that found something new.
    expects_news: bool,
    walk: Option<Walk<T>>,
    /// How often the current listing was restarted.
    restarts: u32,
    /// The number of listings that began.
    begun: u64,
    /// The number of the last listing that ended, successfully or not.
    ended: u64,
    /// The number of the last listing that began before the current connection.
    before: u64,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        Self {
            items: Vec::new().into(),
            odd: Vec::new().into(),
            cut: None,
            error: None,
            pace: Pace::default(),
            heard: None,
            because: None,
            expects_news: false,
            walk: None,
            restarts: 0,
            begun: 0,
            ended: 0,
            before: 0,
        }
    }
}

impl<T: Listed> Listing<T> {
    pub(crate) fn items(&self) -> &Items<T> {
        &self.items
    }

    /// Items that violate the protocol, in the server's order.
    pub(crate) fn odd(&self) -> &Arc<[Odd]> {
        &self.odd
    }

    /// Why it was not loaded to its end.
    pub(crate) fn cut(&self) -> Option<&Arc<str>> {
        self.cut.as_ref()
    }

    pub(crate) fn error(&self) -> Option<&RequestError> {
        self.error.as_ref()
    }

    /// The number of the last listing that ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// The number of the next listing, which is sure to see the current state.
    pub(crate) fn next_number(&self) -> u64 {
        self.begun + 1
    }

    /// The list may have changed, as the message `notice` announced. Returns the page to request
    /// now, if any.
    pub(crate) fn mark(
        &mut self,
        ticket: u64,
        now: Instant,
        merging: Merging,
        notice: Option<u64>,
    ) -> Option<Ask> {
        self.heard = notice.or(self.heard);
        self.pace.mark(now, merging).then(|| self.begin(ticket))
    }

    /// A notice says that there is news.
    pub(crate) fn expect_news(&mut self) {
        self.expects_news = true;
    }

    /// A listing ended. If a notice promised news and there is none, another listing begins after
    /// this time, once.
    pub(crate) fn look_again(&mut self, after: Option<Duration>, now: Instant) {
        if std::mem::take(&mut self.expects_news)
            && let Some(after) = after
        {
            self.pace.look_again(now + after);
        }
    }

    /// When the next listing begins.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pace.due()
    }

    /// Begins a listing if it is due.
    pub(crate) fn tick(&mut self, ticket: u64, now: Instant) -> Option<Ask> {
        self.pace.begin(now).then(|| self.begin(ticket))
    }

    /// Drops the current listing: its answers will not come, or are not for us.
    pub(crate) fn abandon(&mut self) {
        self.pace.reset();
        (self.heard, self.because) = (None, None);
        self.walk = None;
        self.restarts = 0;
        self.ended = self.begun;
        self.before = self.begun;
    }

    /// Whether a listing ended, successfully or not, since the connection was opened.
    pub(crate) fn is_loaded_anew(&self) -> bool {
        self.ended > self.before
    }

    /// Empties the list, because the server does not offer it.
    pub(crate) fn clear(&mut self) -> Option<ListChange<T>> {
        self.abandon();
        self.error = None;
        self.odd = Vec::new().into();
        self.cut = None;
        self.replace(Vec::new())
    }

    /// An answer for the page with this ticket. `fresh` is the ticket of the next page.
    pub(crate) fn page(
        &mut self,
        ticket: u64,
        answer: Result<Page<T>, RequestError>,
        fresh: u64,
        limits: Limits,
        (now, merging): (Instant, Merging),
    ) -> PageOutcome<T> {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.ticket == ticket) else {
            return PageOutcome::Late;
        };
        let (is_first, mut is_refused) = (walk.cursors.is_empty(), false);
        let is_unnamed = std::mem::take(&mut walk.is_unnamed);
        let page = match answer {
            answer if is_unnamed && walk.leads_nowhere(&answer) => Page::default(),
            Ok(page) => page,
            // The cursor expired: the list changed during the listing.
            Err(RequestError::Refused(error)) if !is_first && error.code.0 == -32602 => {
                if self.restarts < MAX_RESTARTS {
                    return self.start_over(fresh, merging);
                }
                is_refused = true;
                Page::default()
            }
            Err(error) => return self.fail(error, now),
        };
        walk.take(page.items, page.odd);
        let is_mixed = self.pace.is_overtaken() && !(is_first && page.next.is_none());
        if is_mixed && self.restarts < MAX_RESTARTS {
            return self.start_over(fresh, merging);
        }
        let mut cut = is_refused.then(|| "the server refuses a cursor that it gave".to_owned());
        if let Some(cursor) = page.next {
            cut = walk.cut(&cursor, limits);
            if cut.is_none() {
                (walk.ticket, walk.is_unnamed) = (fresh, cursor.is_empty());
                return PageOutcome::Ask(Ask { ticket: fresh, cursor: Some(cursor) });
            }
        } else if walk.items.len() > limits.items {
            cut = Some(format!("it has more than {} items", limits.items));
        }
        walk.items.truncate(limits.items);
        let (was_cut, cut) = (self.cut.take(), cut.map(Arc::from));
        self.cut.clone_from(&cut);
        let (items, again) =
            unique(std::mem::take(&mut walk.items), |item| Arc::<str>::from(item.key()));
        let odd = std::mem::take(&mut walk.odd);
        let odd = (*self.odd != *odd).then(|| Arc::from(odd));
        if let Some(odd) = &odd {
            self.odd = Arc::clone(odd);
        }
        self.end();
        self.error = None;
        self.pace.finish(merging);
        let cut = cut.filter(|cut| was_cut.as_ref() != Some(cut));
        let notice = self.because.take();
        let change = self.replace(items).map(|change| ListChange { notice, ..change });
        PageOutcome::Loaded { change, again, odd, cut }
    }

    fn begin(&mut self, ticket: u64) -> Ask {
        self.begun += 1;
        self.because = self.heard.take().or(self.because);
        self.walk = Some(Walk::new(ticket, self.begun));
        Ask { ticket, cursor: None }
    }

    /// Restarts from the first page: when pending changes rest, or at once if there are none.
    fn start_over(&mut self, fresh: u64, merging: Merging) -> PageOutcome<T> {
        self.restarts += 1;
        self.walk = None;
        if self.pace.is_overtaken() {
            self.pace.finish(merging);
            return PageOutcome::Late;
        }
        PageOutcome::Ask(self.begin(fresh))
    }

    fn fail(&mut self, error: RequestError, now: Instant) -> PageOutcome<T> {
        self.end();
        self.error = Some(error.clone());
        self.pace.fail(now);
        PageOutcome::Failed(error, self.because)
    }

    fn end(&mut self) {
        self.restarts = 0;
        if let Some(walk) = self.walk.take() {
            self.ended = walk.number;
        }
    }

    /// Replaces the items; equal items stay the same object.
    fn replace(&mut self, items: Vec<Item<T>>) -> Option<ListChange<T>> {
        let old: std::collections::HashMap<&str, &Arc<Item<T>>> =
            self.items.iter().map(|item| (item.key(), item)).collect();
        let items: Items<T> = items
            .into_iter()
            .map(|item| match old.get(item.key()) {
                Some(old) if ***old == item => Arc::clone(old),
                _ => Arc::new(item),
            })
            .collect();
        let diff = Diff::between_by(&self.items, &items, |item| item.key(), Arc::ptr_eq);
        if diff.is_empty() {
            return None;
        }
        self.items = items.clone();
        Some(ListChange { items, diff, error: None, notice: None })
    }
}
