//! Lists with generations: a late answer never replaces a newer one, and paging that is overtaken
//! by a change starts again.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::diff::unique;
use tidings_core::{Diff, ListKind};
use tokio::time::Instant;

use crate::events::{Items, ListChange};
use crate::pace::{Merging, Pace};
use crate::request::RequestError;

/// How often one listing may start over before it is taken as it is: a server whose list never
/// rests must not keep us from ever having one.
const MAX_RESTARTS: u32 = 8;

/// One of the four lists a server may offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

    /// Which notices speak of it.
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

/// Something that stands in a list.
pub(crate) trait Listed: Clone + PartialEq {
    /// What tells it from the others.
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
    pub(crate) items: Vec<T>,
    pub(crate) next: Option<String>,
}

/// A page to ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) ticket: u64,
    pub(crate) cursor: Option<String>,
}

/// What a page led to.
#[derive(Debug)]
pub(crate) enum Outcome<T> {
    /// Another page is needed.
    Ask(Ask),
    /// The list is loaded.
    Loaded {
        /// How it differs, if it does.
        change: Option<ListChange<T>>,
        /// What the server lists more than once.
        again: Vec<Arc<str>>,
    },
    /// The list could not be loaded; it stays as it was.
    Failed(RequestError),
    /// It belongs to a listing that is over.
    Late,
}

/// The pages of one listing so far.
#[derive(Debug)]
struct Walk<T> {
    /// Names the page that is waited for.
    ticket: u64,
    /// Which listing this is.
    number: u64,
    items: Vec<T>,
    cursors: HashSet<String>,
    restarts: u32,
}

/// One list, as it was loaded last, and the listing under way.
#[derive(Debug)]
pub(crate) struct Listing<T> {
    items: Items<T>,
    error: Option<RequestError>,
    pace: Pace,
    walk: Option<Walk<T>>,
    /// How many listings were begun.
    begun: u64,
    /// The number of the last listing that ended, well or not.
    ended: u64,
}

impl<T> Default for Listing<T> {
    fn default() -> Self {
        let items = Vec::new().into();
        Self { items, error: None, pace: Pace::default(), walk: None, begun: 0, ended: 0 }
    }
}

impl<T: Listed> Listing<T> {
    pub(crate) fn items(&self) -> &Items<T> {
        &self.items
    }

    pub(crate) fn error(&self) -> Option<&RequestError> {
        self.error.as_ref()
    }

    /// The number of the last listing that ended.
    pub(crate) fn ended(&self) -> u64 {
        self.ended
    }

    /// The number of a listing that is sure to see what is true now: the next one.
    pub(crate) fn next_number(&self) -> u64 {
        self.begun + 1
    }

    /// The list may have changed. Gives the page to ask for, if it must be asked for now.
    pub(crate) fn mark(&mut self, ticket: u64, now: Instant, merging: Merging) -> Option<Ask> {
        self.pace.mark(now, merging).then(|| self.begin(ticket))
    }

    /// When the next listing begins.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.pace.due()
    }

    /// Begins a listing if its time has come.
    pub(crate) fn tick(&mut self, ticket: u64, now: Instant) -> Option<Ask> {
        self.pace.begin(now).then(|| self.begin(ticket))
    }

    /// Forgets the listing under way: its answers will not come, or not be for us.
    pub(crate) fn abandon(&mut self) {
        self.pace.reset();
        self.walk = None;
        self.ended = self.begun;
    }

    /// Makes the list empty, as one that the server does not offer is.
    pub(crate) fn clear(&mut self) -> Option<ListChange<T>> {
        self.abandon();
        self.error = None;
        self.replace(Vec::new())
    }

    /// An answer for the page with this ticket. `fresh` is the ticket of the page to ask for next.
    pub(crate) fn page(
        &mut self,
        ticket: u64,
        answer: Result<Page<T>, RequestError>,
        fresh: u64,
        max_items: usize,
        (now, merging): (Instant, Merging),
    ) -> Outcome<T> {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.ticket == ticket) else {
            return Outcome::Late;
        };
        let is_first = walk.cursors.is_empty();
        let page = match answer {
            Ok(page) => page,
            // A cursor that is not valid any longer: the list changed under us.
            Err(RequestError::Refused(error)) if !is_first && error.code.0 == -32602 => {
                return self.start_over(fresh, RequestError::Refused(error), now);
            }
            Err(error) => return self.fail(error, now),
        };
        walk.items.extend(page.items);
        if walk.items.len().max(walk.cursors.len()) > max_items {
            let error = format!("the server lists more than {max_items} items, or pages");
            return self.fail(RequestError::Transport(error.into()), now);
        }
        let is_mixed = self.pace.is_overtaken() && !(is_first && page.next.is_none());
        if is_mixed && walk.restarts < MAX_RESTARTS {
            let error = RequestError::Transport("the list changes faster than it is read".into());
            return self.start_over(fresh, error, now);
        }
        if let Some(cursor) = page.next {
            if !walk.cursors.insert(cursor.clone()) {
                let error = "the server gave the same cursor twice, so its list has no end";
                return self.fail(RequestError::Transport(error.into()), now);
            }
            walk.ticket = fresh;
            return Outcome::Ask(Ask { ticket: fresh, cursor: Some(cursor) });
        }
        let (items, again) =
            unique(std::mem::take(&mut walk.items), |item| Arc::<str>::from(item.key()));
        self.end();
        self.error = None;
        self.pace.finish(merging);
        Outcome::Loaded { change: self.replace(items), again }
    }

    fn begin(&mut self, ticket: u64) -> Ask {
        self.begun += 1;
        let (items, cursors) = (Vec::new(), HashSet::new());
        self.walk = Some(Walk { ticket, number: self.begun, items, cursors, restarts: 0 });
        Ask { ticket, cursor: None }
    }

    /// From the first page again, unless that was done too often.
    fn start_over(&mut self, fresh: u64, error: RequestError, now: Instant) -> Outcome<T> {
        let Some(walk) = self.walk.as_mut().filter(|walk| walk.restarts < MAX_RESTARTS) else {
            return self.fail(error, now);
        };
        walk.restarts += 1;
        walk.items.clear();
        walk.cursors.clear();
        walk.ticket = fresh;
        // It will see what was heard of so far, so whoever waits for that waits for this one.
        self.begun += 1;
        walk.number = self.begun;
        self.pace.restart();
        Outcome::Ask(Ask { ticket: fresh, cursor: None })
    }

    fn fail(&mut self, error: RequestError, now: Instant) -> Outcome<T> {
        self.end();
        self.error = Some(error.clone());
        self.pace.fail(now);
        Outcome::Failed(error)
    }

    fn end(&mut self) {
        if let Some(walk) = self.walk.take() {
            self.ended = walk.number;
        }
    }

    /// Puts the new items in place; what is equal stays the same object.
    fn replace(&mut self, items: Vec<T>) -> Option<ListChange<T>> {
        let old: std::collections::HashMap<&str, &Arc<T>> =
            self.items.iter().map(|item| (item.key(), item)).collect();
        let items: Items<T> = items
            .into_iter()
            .map(|item| match old.get(item.key()) {
                Some(old) if ***old == item => Arc::clone(old),
                _ => Arc::new(item),
            })
            .collect();
        let diff = Diff::between_by(
            &self.items,
            &items,
            |item| item.key(),
            |old, new| Arc::ptr_eq(old, new),
        );
        if diff.is_empty() {
            return None;
        }
        self.items = items.clone();
        Some(ListChange { items, diff, error: None })
    }
}
