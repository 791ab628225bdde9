//! Lists: when they are loaded, page by page, and the results.

use std::collections::HashSet;
use std::sync::Arc;

use rmcp::model::Resource;
use tidings_core::ListKind;
use tokio::time::Instant;

use super::{Machine, PageAnswer, Request};
use crate::cache::Kind;
use crate::events::{Event, Items, ListChange, Warning};
use crate::item::Item;
use crate::lists::{Ask, List, Listed, Page, PageOutcome};
use crate::pace::Merging;
use crate::request::RequestError;

impl Machine {
    pub(super) fn list_notice(&mut self, kind: ListKind, notice: Option<u64>, now: Instant) {
        let Some(offer) = &self.offer else { return };
        if offer.unfollowed.contains(kind) {
            return;
        }
        if !offer.announced.contains(kind) && !self.rules.unannounced {
            self.unasked(format!("notifications/{kind}/list_changed").into());
            return;
        }
        let lists: Vec<_> =
            offer.lists.iter().copied().filter(|list| list.kind() == kind).collect();
        for list in lists {
            with_list!(self.lists, list, listing => listing.expect_news());
            self.mark_list(list, self.rules.merging, notice, now);
        }
    }

    pub(super) fn unasked(&mut self, method: Arc<str>) {
        if let Some(count) = self.unasked.count(&method) {
            self.events.emit(Event::Warning(Warning::Unasked { method, count }));
        }
    }

    /// A list changed, or may have; `notice` is the number of the message that announced it.
    pub(super) fn mark_list(
        &mut self,
        list: List,
        merging: Merging,
        notice: Option<u64>,
        now: Instant,
    ) {
        if !self.offers(list) {
            return;
        }
        let ticket = self.tickets + 1;
        let ask =
            with_list!(self.lists, list, listing => listing.mark(ticket, now, merging, notice));
        self.ask(list, ask);
    }

    pub(super) fn ask(&mut self, list: List, ask: Option<Ask>) {
        let Some(Ask { ticket, cursor }) = ask else { return };
        self.tickets = self.tickets.max(ticket);
        self.requests.push(Request::Page { list, ticket, cursor });
    }

    pub(super) fn abandon(&mut self, list: List) {
        with_list!(self.lists, list, listing => listing.abandon());
    }

    pub(super) fn clear_list(&mut self, list: List) {
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

    pub(super) fn page(&mut self, ticket: u64, answer: PageAnswer, now: Instant) {
        let (fresh, most) = (self.tickets + 1, self.rules.limits);
        let time = (now, self.rules.merging);
        match answer {
            PageAnswer::Tools(answer) => {
                let outcome =
                    self.lists.tools.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let items = self.lists.tools.items().clone();
                self.outcome(List::Tools, outcome, items, Event::ToolsChanged, now);
            }
            PageAnswer::Resources(answer) => {
                let outcome =
                    self.lists.resources.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let uris = |items: &[Arc<Item<Resource>>]| -> Vec<Arc<str>> {
                    items.iter().map(|item| item.uri.as_str().into()).collect()
                };
                let moved = match &outcome {
                    PageOutcome::Loaded { change: Some(change), .. } => {
                        Some((uris(&change.diff.added), uris(&change.diff.removed), change.notice))
                    }
                    _ => None,
                };
                let items = self.lists.resources.items().clone();
                self.outcome(List::Resources, outcome, items, Event::ResourcesChanged, now);
                if let Some((added, removed, notice)) = moved {
                    self.keep_listed_resources();
                    self.look_again(&added, &removed, notice, now);
                }
            }
            PageAnswer::Templates(answer) => {
                let outcome =
                    self.lists.templates.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let items = self.lists.templates.items().clone();
                self.outcome(List::Templates, outcome, items, Event::TemplatesChanged, now);
            }
            PageAnswer::Prompts(answer) => {
                let outcome =
                    self.lists.prompts.page(ticket, empty_if_unknown(answer), fresh, most, time);
                let is_loaded = matches!(outcome, PageOutcome::Loaded { change: Some(_), .. });
                let items = self.lists.prompts.items().clone();
                self.outcome(List::Prompts, outcome, items, Event::PromptsChanged, now);
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
        outcome: PageOutcome<T>,
        items: Items<T>,
        event: impl Fn(ListChange<T>) -> Event,
        now: Instant,
    ) {
        match outcome {
            PageOutcome::Ask(ask) => self.ask(list, Some(ask)),
            PageOutcome::Loaded { change, again, odd, cut } => {
                let second_look = self.rules.second_look.filter(|_| change.is_none());
                with_list!(self.lists, list, listing => listing.look_again(second_look, now));
                if let Some(items) = odd.filter(|odd| !odd.is_empty()) {
                    self.events.emit(Event::Warning(Warning::OddItems { list, items }));
                }
                for key in again {
                    self.events.emit(Event::Warning(Warning::Duplicate { list, key }));
                }
                if let Some(change) = change {
                    self.events.emit(event(change));
                }
                if let Some(reason) = cut {
                    self.events.emit(Event::Warning(Warning::ListCut { list, reason }));
                }
            }
            PageOutcome::Failed(error, notice) => {
                let error: Arc<str> = error.to_string().into();
                let diff = tidings_core::Diff::default();
                let failed = ListChange { items, diff, error: Some(error.clone()), notice };
                self.events.emit(event(failed));
                self.events.emit(Event::Warning(Warning::ListFailed { list, error }));
            }
            PageOutcome::Late => {}
        }
    }

    /// Drops the content of resources that are not listed. Resources of templates and watched ones
    /// need not be listed, unless they were just `removed`.
    fn keep_listed_resources(&mut self) {
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
                || watches.contains_key(uri)
                || templates.iter().any(|template| template.matches(uri).is_some())
        });
    }
}

/// A server with resources need not have templates: an unknown method means an empty list.
fn empty_if_unknown<T>(answer: Result<Page<T>, RequestError>) -> Result<Page<T>, RequestError> {
    match answer {
        Err(RequestError::Refused(error)) if error.code.0 == -32601 => {
            Ok(Page { items: Vec::new(), odd: Vec::new(), next: None })
        }
        other => other,
    }
}

fn keys<T: Listed>(items: &Items<T>) -> HashSet<Arc<str>> {
    items.iter().map(|item| Arc::from(item.key())).collect()
}
