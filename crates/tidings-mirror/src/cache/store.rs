//! The maps of the cache, their size, and the order of last use.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::SystemTime;

use tokio::time::Instant;

use super::{
    ContentKeyRef, Fresh, Freshness, Kind, PromptContent, ResourceContent, Statistics,
    TemplateContent, ToolOutcome,
};
use crate::config::CacheLimits;
use crate::events::ContentKey;

#[derive(Debug)]
pub(super) struct Entry<T> {
    pub(super) content: Arc<T>,
    /// The request of the entry: an answer to an older one never replaces it.
    ticket: u64,
    pub(super) fresh: Fresh,
    bytes: usize,
    /// When it was last used, by the store's own count.
    used: u64,
}

impl<T> Entry<T> {
    pub(super) fn new(content: Arc<T>, ticket: u64, fresh: Fresh, bytes: usize) -> Self {
        Self { content, ticket, fresh, bytes, used: 0 }
    }
}

type Map<T> = HashMap<Arc<str>, Entry<T>>;

/// The outcome of adding an entry.
pub(super) enum Put {
    /// It was added; these were removed.
    Kept { evicted: Vec<ContentKey> },
    /// The entry of a later request is there.
    Outdated,
}

#[derive(Debug)]
pub(super) struct Store {
    pub(super) resources: Map<ResourceContent>,
    pub(super) templates: Map<TemplateContent>,
    pub(super) prompts: Map<PromptContent>,
    pub(super) tools: Map<ToolOutcome>,
    limits: CacheLimits,
    /// From the least recently used entry to the latest. Invariant: exactly the entries of the
    /// maps, each under its `used`; empty if there are no limits.
    order: BTreeMap<u64, (Kind, Arc<str>)>,
    clock: u64,
    hits: u64,
    misses: u64,
    evictions: u64,
    // Invariant: the sum of the entries' sizes.
    bytes: usize,
}

/// A value of one of the maps.
pub(super) trait Cacheable: Sized {
    fn map(store: &mut Store) -> &mut Map<Self>;
}

macro_rules! kept {
    ($($content:ty => $map:ident),*) => {$(
        impl Cacheable for $content {
            fn map(store: &mut Store) -> &mut Map<Self> {
                &mut store.$map
            }
        }
    )*};
}

kept!(ResourceContent => resources, TemplateContent => templates, PromptContent => prompts, ToolOutcome => tools);

impl Store {
    pub(super) fn new(limits: CacheLimits) -> Self {
        Self {
            resources: Map::new(),
            templates: Map::new(),
            prompts: Map::new(),
            tools: Map::new(),
            limits,
            order: BTreeMap::new(),
            clock: 0,
            hits: 0,
            misses: 0,
            evictions: 0,
            bytes: 0,
        }
    }

    pub(super) fn put<T: Cacheable>(
        &mut self,
        kind: Kind,
        key: &Arc<str>,
        mut entry: Entry<T>,
    ) -> Put {
        if T::map(self).get(&**key).is_some_and(|old| old.ticket > entry.ticket) {
            return Put::Outdated;
        }
        self.clock += 1;
        entry.used = self.clock;
        self.bytes += entry.bytes;
        if let Some(old) = T::map(self).insert(key.clone(), entry) {
            self.bytes -= old.bytes;
            self.order.remove(&old.used);
        }
        if self.is_limited() {
            self.order.insert(self.clock, (kind, key.clone()));
        }
        Put::Kept { evicted: self.evict() }
    }

    /// The entry was used just now.
    pub(super) fn touch(&mut self, key: ContentKeyRef<'_>) {
        if !self.is_limited() {
            return;
        }
        self.clock += 1;
        let clock = self.clock;
        let used = match key.kind {
            Kind::Resource => self.resources.get_mut(key.key).map(|entry| &mut entry.used),
            Kind::Template => self.templates.get_mut(key.key).map(|entry| &mut entry.used),
            Kind::Prompt => self.prompts.get_mut(key.key).map(|entry| &mut entry.used),
            Kind::Tool => self.tools.get_mut(key.key).map(|entry| &mut entry.used),
        };
        let Some(used) = used else { return };
        if let Some(name) = self.order.remove(used) {
            self.order.insert(clock, name);
        }
        *used = clock;
    }

    pub(super) fn looked_up(&mut self, found: bool) {
        if found {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }

    pub(super) fn remove(&mut self, key: ContentKeyRef<'_>) -> Option<ContentKey> {
        fn take<T: Cacheable>(store: &mut Store, key: &str) -> Option<(Arc<str>, usize, u64)> {
            let (name, entry) = T::map(store).remove_entry(key)?;
            Some((name, entry.bytes, entry.used))
        }
        let (name, bytes, used) = match key.kind {
            Kind::Resource => take::<ResourceContent>(self, key.key),
            Kind::Template => take::<TemplateContent>(self, key.key),
            Kind::Prompt => take::<PromptContent>(self, key.key),
            Kind::Tool => take::<ToolOutcome>(self, key.key),
        }?;
        self.bytes -= bytes;
        self.order.remove(&used);
        Some(owned(key.kind, name))
    }

    /// Removes the entries that `goes` selects, in order of their keys.
    pub(super) fn drain(&mut self, goes: impl Fn(ContentKeyRef<'_>) -> bool) -> Vec<ContentKey> {
        let mut gone: Vec<(Kind, Arc<str>)> = self
            .names()
            .filter(|(kind, key)| goes(ContentKeyRef { kind: *kind, key }))
            .map(|(kind, key)| (kind, key.clone()))
            .collect();
        gone.sort_unstable();
        gone.iter()
            .filter_map(|(kind, key)| self.remove(ContentKeyRef { kind: *kind, key }))
            .collect()
    }

    /// Entries that are private to one authorisation.
    pub(super) fn private(&self) -> Vec<(Kind, Arc<str>)> {
        let resources = self.resources.iter().filter(|(_, entry)| entry.content.private);
        let templates = self.templates.iter().filter(|(_, entry)| entry.content.content.private);
        // Prompts and tool results do not state who may see them.
        resources
            .map(|(key, _)| (Kind::Resource, key.clone()))
            .chain(templates.map(|(key, _)| (Kind::Template, key.clone())))
            .chain(self.prompts.keys().map(|key| (Kind::Prompt, key.clone())))
            .chain(self.tools.keys().map(|key| (Kind::Tool, key.clone())))
            .collect()
    }

    /// All entries, in order of their keys.
    pub(super) fn kept(&self, now: Instant) -> Vec<super::Kept> {
        fn each<T>(
            map: &Map<T>,
            name: fn(Arc<str>) -> ContentKey,
            read_at: fn(&T) -> SystemTime,
            now: Instant,
        ) -> impl Iterator<Item = super::Kept> {
            map.iter().map(move |(key, entry)| super::Kept {
                what: name(key.clone()),
                bytes: entry.bytes,
                read_at: read_at(&entry.content),
                freshness: match entry.fresh {
                    Fresh::Until(end) if now < end => Freshness::For(end - now),
                    Fresh::UntilNotice => Freshness::UntilNotice,
                    Fresh::No | Fresh::Until(_) => Freshness::Stale,
                },
            })
        }
        let mut kept: Vec<_> = each(&self.resources, ContentKey::Resource, |it| it.read_at, now)
            .chain(each(&self.templates, ContentKey::Template, |it| it.content.read_at, now))
            .chain(each(&self.prompts, ContentKey::Prompt, |it| it.read_at, now))
            .chain(each(&self.tools, ContentKey::Tool, |it| it.called_at, now))
            .collect();
        kept.sort_unstable_by(|one, other| one.what.cmp(&other.what));
        kept
    }

    pub(super) fn statistics(&self) -> Statistics {
        Statistics {
            hits: self.hits,
            misses: self.misses,
            evictions: self.evictions,
            bytes: self.bytes,
            entries: self.entries(),
        }
    }

    fn names(&self) -> impl Iterator<Item = (Kind, &Arc<str>)> {
        let resources = self.resources.keys().map(|key| (Kind::Resource, key));
        let templates = self.templates.keys().map(|key| (Kind::Template, key));
        let prompts = self.prompts.keys().map(|key| (Kind::Prompt, key));
        let tools = self.tools.keys().map(|key| (Kind::Tool, key));
        resources.chain(templates).chain(prompts).chain(tools)
    }

    fn entries(&self) -> usize {
        self.resources.len() + self.templates.len() + self.prompts.len() + self.tools.len()
    }

    fn is_limited(&self) -> bool {
        self.limits.bytes.is_some() || self.limits.entries.is_some()
    }

    /// Makes room. An entry larger than all the room is removed too.
    fn evict(&mut self) -> Vec<ContentKey> {
        let mut evicted = Vec::new();
        while self.limits.bytes.is_some_and(|most| self.bytes > most)
            || self.limits.entries.is_some_and(|most| self.entries() > most)
        {
            let Some((_, (kind, key))) = self.order.pop_first() else { break };
            evicted.extend(self.remove(ContentKeyRef { kind, key: &key }));
            self.evictions += 1;
        }
        evicted
    }
}

fn owned(kind: Kind, key: Arc<str>) -> ContentKey {
    match kind {
        Kind::Resource => ContentKey::Resource(key),
        Kind::Template => ContentKey::Template(key),
        Kind::Prompt => ContentKey::Prompt(key),
        Kind::Tool => ContentKey::Tool(key),
    }
}
