//! The recorder of one server: from the mirror's messages and events to what viewers see.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::SystemTime;

use tidings_mirror::cache::ResourceContent;
use tidings_mirror::events::{Cause, ConnectionState, ListChange};
use tidings_mirror::{Diff, Event, Events, Item, List};
use tokio_util::sync::CancellationToken;

use crate::console::cache;
use crate::console::items::{Counts, Listed, MarkedList, MarkedLists};
use crate::console::log::{Lane, Row, Status, Way};
use crate::console::server::{SERVERS, Server};

/// Records until the mirror ends.
pub(crate) async fn record(server: Arc<Server>, mut events: Events, cancel: CancellationToken) {
    let mut seen = 0;
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            _ = server.mirror.messages_changed(seen) => seen = server.record(seen),
            event = events.next() => match event {
                Some(event) => {
                    // Order: the messages that led to an event are in the log before it.
                    seen = server.record(seen);
                    server.hear(&event);
                }
                None => break,
            },
        }
    }
    server.record(seen);
}

impl Server {
    /// Takes the messages after a number, and returns the last one's.
    fn record(&self, seen: u64) -> u64 {
        let records = self.mirror.records_since(seen);
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return seen };
        let (first, last) = (first.number(), last.number());
        let mut facts = self.facts();
        let revision = self.revisions.touch(&[&self.keys.log, SERVERS]);
        let noted = facts.log.record(&records, first - seen - 1, revision);
        for uri in &noted.announced {
            facts.versions.announced(uri);
        }
        for uri in &noted.reread {
            facts.versions.reread(uri);
        }
        if noted.notices > 0 {
            facts.count_notices(noted.notices);
        }
        drop(facts);
        for uri in noted.reread {
            self.revisions.touch(&[&self.keys.resource(&uri)]);
        }
        last
    }

    /// Takes one event.
    fn hear(&self, event: &Event) {
        match event {
            Event::ToolsChanged(change) => self.list(List::Tools, change, |all| &mut all.tools),
            Event::ResourcesChanged(change) => {
                self.list(List::Resources, change, |all| &mut all.resources);
            }
            Event::TemplatesChanged(change) => {
                self.list(List::Templates, change, |all| &mut all.templates);
            }
            Event::PromptsChanged(change) => {
                self.list(List::Prompts, change, |all| &mut all.prompts);
            }
            Event::ResourceContentChanged { uri, content, cause, notice } => {
                self.content(uri, content, *cause, *notice);
            }
            Event::ResourceGone { uri, reason, notice, .. } => {
                self.facts().versions.gone(uri, reason);
                let failed = Status::Failed("gone".to_owned());
                self.tell(Lane::Changes, "resource gone", uri.to_string(), *notice, failed);
                self.touched(uri);
            }
            Event::SubscriptionsChanged { uris, refused } => self.watched(uris, refused),
            Event::TemplateContentChanged { .. }
            | Event::PromptContentChanged { .. }
            | Event::ToolResultChanged { .. } => {
                self.revisions.touch(&[&self.keys.cache]);
            }
            Event::ContentDropped { what, why } => {
                let (kind, key) = cache::named(what);
                let about = format!("{kind} {key}: {}", cache::why(*why));
                self.tell(Lane::Changes, "dropped from the cache", about, None, Status::Plain);
                self.revisions.touch(&[&self.keys.cache]);
            }
            Event::Connection(state) => self.connection(state),
            Event::Stderr { line } => {
                self.tell(Lane::Stderr, "stderr", line.to_string(), None, Status::Plain);
                self.revisions.touch(&[&self.keys.overview]);
            }
            Event::Progress(progress) => {
                let name = self.facts().calls.progress(progress);
                if let Some(name) = name {
                    self.revisions.touch(&[&self.keys.calls_of(&name)]);
                }
            }
            Event::Warning(warning) => {
                self.facts().warn(warning.to_string());
                let failed = Status::Failed("warning".to_owned());
                self.tell(Lane::Changes, "warning", warning.to_string(), None, failed);
                self.revisions.touch(&[&self.keys.overview]);
            }
            Event::Lagged { missed } => self.catch_up(*missed),
            _ => {}
        }
    }

    /// A resource was read.
    fn content(
        &self,
        uri: &Arc<str>,
        content: &Arc<ResourceContent>,
        cause: Cause,
        notice: Option<u64>,
    ) {
        let noticed = notice.and_then(|it| self.facts().log.noticed(it).map(|row| row.at));
        let step = self.facts().versions.read(uri, content, cause, noticed);
        if let Some(step) = step.filter(|step| step.from > 0) {
            let words = format!("content v{} → v{}", step.from, step.to);
            let about = format!("{uri} +{} −{}", step.added, step.removed);
            self.tell(Lane::Changes, &words, about, notice, Status::Plain);
        } else if cause == Cause::Notice {
            let about = format!("{uri} equal content");
            self.tell(Lane::Changes, "content unchanged", about, notice, Status::Plain);
        }
        self.touched(uri);
    }

    /// The set of watched resources changed.
    fn watched(&self, uris: &BTreeSet<Arc<str>>, refused: &[Arc<str>]) {
        let mut facts = self.facts();
        facts.versions.watch(uris.iter());
        for uri in refused {
            facts.versions.refuse(uri, "the server refused to watch it");
        }
        drop(facts);
        self.revisions.touch(&[&self.keys.watched, SERVERS]);
        for uri in uris {
            self.revisions.touch(&[&self.keys.resource(uri)]);
        }
    }

    fn touched(&self, uri: &str) {
        let resource = self.keys.resource(uri);
        self.revisions.touch(&[&resource, &self.keys.watched, &self.keys.cache, SERVERS]);
    }

    /// Adds a row of the console itself.
    fn tell(&self, lane: Lane, what: &str, about: String, notice: Option<u64>, status: Status) {
        let mut row = Row::new(SystemTime::now(), lane, Way::Here, what);
        (row.subject, row.status) = (about, status);
        let mut facts = self.facts();
        let revision = self.revisions.touch(&[&self.keys.log, SERVERS]);
        facts.log.change(row, notice, revision);
    }

    fn list<T: Listed>(
        &self,
        list: List,
        change: &ListChange<T>,
        listing: impl FnOnce(&mut MarkedLists) -> &mut MarkedList<T>,
    ) {
        let counts = listing(&mut self.facts().lists).apply(change, SystemTime::now());
        if let Some(counts) = counts {
            let named = change.diff.added.iter().chain(&change.diff.changed);
            let named = named.chain(&change.diff.removed).take(3).map(|item| item.key());
            let about = named.collect::<Vec<_>>().join(", ");
            let words = format!("{list} {}", signs(counts));
            self.tell(Lane::Changes, &words, about, change.notice, Status::Plain);
        } else if let Some(error) = &change.error {
            let failed = Status::Failed("failed".to_owned());
            let about = error.to_string();
            self.tell(Lane::Changes, &format!("{list} not listed"), about, change.notice, failed);
        }
        self.revisions.touch(&[self.keys.list(list), SERVERS]);
    }

    fn connection(&self, state: &ConnectionState) {
        let mut facts = self.facts();
        facts.changed_at = Some(SystemTime::now());
        if let Some(identity) = self.mirror.server() {
            facts.identity = Some(identity);
        }
        let (words, about, status) = match state {
            ConnectionState::Connecting => ("connecting", String::new(), Status::Plain),
            ConnectionState::Ready => ("connected", String::new(), Status::Answered),
            ConnectionState::Lost { reason } => {
                facts.lost(reason.clone());
                ("connection lost", reason.to_string(), Status::Failed("lost".to_owned()))
            }
            ConnectionState::Retrying { after, reason, .. } => {
                let words = format!("in {:.1} s: {reason}", after.as_secs_f64());
                ("connects again", words, Status::Failed("waits".to_owned()))
            }
            ConnectionState::Disconnected { reason } => {
                ("disconnected", reason.to_string(), Status::Plain)
            }
            ConnectionState::Closed { reason } => ("closed", reason.to_string(), Status::Plain),
            _ => ("connection", String::new(), Status::Plain),
        };
        drop(facts);
        // A loss is of interest to those who do not look at the transport.
        let is_lost = matches!(state, ConnectionState::Lost { .. });
        let lane = if is_lost { Lane::Changes } else { Lane::Transport };
        self.tell(lane, words, about, None, status);
        self.revisions.touch(&[SERVERS, &self.keys.overview, &self.keys.watched]);
    }

    /// Events were missed: takes the lists as they are.
    fn catch_up(&self, missed: u64) {
        fn take<T: Listed>(listing: &mut MarkedList<T>, items: tidings_mirror::events::Items<T>)
        where
            Item<T>: Clone,
        {
            listing.apply(&ListChange::new(items, Diff::default()), SystemTime::now());
        }
        let mut facts = self.facts();
        take(&mut facts.lists.tools, self.mirror.tools());
        take(&mut facts.lists.resources, self.mirror.resources());
        take(&mut facts.lists.templates, self.mirror.templates());
        take(&mut facts.lists.prompts, self.mirror.prompts());
        facts.versions.watch(self.mirror.subscriptions().iter());
        drop(facts);
        let failed = Status::Failed("skipped".to_owned());
        self.tell(Lane::Changes, "events skipped", missed.to_string(), None, failed);
        for list in List::ALL {
            self.revisions.touch(&[self.keys.list(list)]);
        }
        self.revisions.touch(&[SERVERS, &self.keys.watched, &self.keys.overview]);
    }
}

/// `+1 ~2 −3`, without zeros.
fn signs(counts: Counts) -> String {
    let each = [('+', counts.added), ('~', counts.changed), ('−', counts.removed)];
    let shown = each.iter().filter(|(_, count)| *count > 0);
    shown.map(|(sign, count)| format!("{sign}{count}")).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_shown_with_signs_and_without_zeros() {
        let counts = Counts { added: 2, changed: 0, removed: 1 };
        assert_eq!(signs(counts), "+2 −1");
    }
}
