//! The cache of contents and results: one writer, owned by the mirror, and any number of
//! [`Reader`]s.
//!
//! Lists are not in the cache: clearing it does not affect them.

mod content;
mod store;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rmcp::model::ResourceContents;
use tokio::time::Instant;

pub use self::content::{PromptContent, ResourceContent, TemplateContent, ToolOutcome};
pub(crate) use self::content::{texts, values};
use self::store::{Entry, Put, Store};
use crate::config::CacheLimits;
use crate::events::{Cause, ContentKey, DropCause, Event, Sender};
use crate::odd::Odd;

/// Usage of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Lookups with a result.
    pub hits: u64,
    /// Lookups without a result.
    pub misses: u64,
    /// Entries removed for lack of room.
    pub evictions: u64,
    /// Bytes of contents in the cache.
    pub bytes: usize,
    /// Entries in the cache.
    pub entries: usize,
}

/// A cache entry, as listed by [`Reader::entries`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Kept {
    /// Its key.
    pub what: ContentKey,
    /// The bytes it counts for.
    pub bytes: usize,
    /// When it was read, filled in or called.
    pub read_at: SystemTime,
    /// How long it may be used without asking the server.
    pub freshness: Freshness,
}

/// How long an entry may be used without asking the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Freshness {
    /// Not at all.
    Stale,
    /// For this long, as stated by the server.
    For(Duration),
    /// Until the server announces a change: it is watched.
    UntilNotice,
}

/// Until when an entry may be used without asking the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fresh {
    /// Not at all.
    No,
    /// Until this time.
    Until(Instant),
    /// Until a notice.
    UntilNotice,
}

#[derive(Debug)]
struct Shared {
    store: Mutex<Store>,
    events: Sender,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads and clears the cache. Cheap to clone; all clones share one cache.
///
/// An entry may lag the server by one round trip. Clearing never touches the lists.
#[derive(Clone, Debug)]
pub struct Reader {
    shared: Arc<Shared>,
}

macro_rules! lookup {
    ($(#[$doc:meta])* $name:ident $map:ident $content:ty) => {
        $(#[$doc])*
        #[must_use]
        pub fn $name(&self, key: &str) -> Option<Arc<$content>> {
            let mut store = self.shared.lock();
            let found = store.$map.get(key).map(|entry| entry.content.clone());
            store.looked_up(found.is_some());
            if found.is_some() {
                store.touch(ContentKeyRef::$map(key));
            }
            found
        }
    };
}

/// A key without its own text.
#[derive(Clone, Copy)]
pub(crate) struct ContentKeyRef<'a> {
    kind: Kind,
    key: &'a str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Resource,
    Template,
    Prompt,
    Tool,
}

impl<'a> ContentKeyRef<'a> {
    fn resources(key: &'a str) -> Self {
        Self { kind: Kind::Resource, key }
    }

    fn templates(key: &'a str) -> Self {
        Self { kind: Kind::Template, key }
    }

    fn prompts(key: &'a str) -> Self {
        Self { kind: Kind::Prompt, key }
    }

    fn tools(key: &'a str) -> Self {
        Self { kind: Kind::Tool, key }
    }
}

impl Reader {
    lookup! {
        /// The content of a resource, by URI.
        resource resources ResourceContent
    }
    lookup! {
        /// The content of a template, by URI template.
        template templates TemplateContent
    }
    lookup! {
        /// A filled-in prompt, by name.
        prompt prompts PromptContent
    }
    lookup! {
        /// The latest result of a tool, by the tool's name.
        tool_result tools ToolOutcome
    }

    /// Removes a resource's content.
    pub fn clear_resource(&self, uri: &str) {
        self.clear(ContentKeyRef::resources(uri));
    }

    /// Removes a template's content.
    pub fn clear_template(&self, template: &str) {
        self.clear(ContentKeyRef::templates(template));
    }

    /// Removes a prompt's content.
    pub fn clear_prompt(&self, name: &str) {
        self.clear(ContentKeyRef::prompts(name));
    }

    /// Removes a tool's result.
    pub fn clear_tool_result(&self, name: &str) {
        self.clear(ContentKeyRef::tools(name));
    }

    /// Removes the contents of all resources.
    pub fn clear_resources(&self) {
        self.clear_if(|key| key.kind == Kind::Resource);
    }

    /// Removes the contents of all templates.
    pub fn clear_templates(&self) {
        self.clear_if(|key| key.kind == Kind::Template);
    }

    /// Removes the contents of all prompts.
    pub fn clear_prompts(&self) {
        self.clear_if(|key| key.kind == Kind::Prompt);
    }

    /// Removes the results of all tools.
    pub fn clear_tool_results(&self) {
        self.clear_if(|key| key.kind == Kind::Tool);
    }

    /// Removes everything.
    pub fn clear_all(&self) {
        self.clear_if(|_| true);
    }

    /// All entries, in order of their keys. This counts as no use: neither as a hit, nor for which
    /// entry is removed first.
    #[must_use]
    pub fn entries(&self) -> Vec<Kept> {
        self.shared.lock().kept(Instant::now())
    }

    /// Usage of the cache.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        self.shared.lock().statistics()
    }

    fn clear(&self, key: ContentKeyRef<'_>) {
        let mut store = self.shared.lock();
        let gone = store.remove(key);
        self.announce(gone, DropCause::Cleared);
    }

    fn clear_if(&self, goes: impl Fn(ContentKeyRef<'_>) -> bool) {
        let mut store = self.shared.lock();
        let gone = store.drain(goes);
        self.announce(gone, DropCause::Cleared);
    }

    // Order: called with the store locked, so that events are in the order of the changes.
    fn announce(&self, gone: impl IntoIterator<Item = ContentKey>, why: DropCause) {
        for what in gone {
            self.shared.events.emit(Event::ContentDropped { what, why });
        }
    }
}

/// Writes the cache. There is one, owned by the state machine.
#[derive(Debug)]
pub(crate) struct Writer {
    reader: Reader,
}

/// An empty cache.
pub(crate) fn cache(limits: CacheLimits, events: Sender) -> (Reader, Writer) {
    let shared = Arc::new(Shared { store: Mutex::new(Store::new(limits)), events });
    let reader = Reader { shared };
    (reader.clone(), Writer { reader })
}

impl Writer {
    /// Stores the content of a read, unless the content of a later request is stored. Returns
    /// whether it was stored and differs from before.
    pub(crate) fn put_resource(
        &mut self,
        uri: &Arc<str>,
        content: Arc<ResourceContent>,
        ticket: u64,
        fresh: Fresh,
        (cause, notice): (Cause, Option<u64>),
    ) -> bool {
        let mut store = self.reader.shared.lock();
        let old = store.resources.get(&**uri).map(|entry| entry.content.clone());
        let entry = Entry::new(content.clone(), ticket, fresh, content.bytes());
        let Put::Kept { evicted } = store.put(Kind::Resource, uri, entry) else { return false };
        let differs = old.is_none_or(|old| !old.is_same(&content));
        if differs || cause == Cause::Asked {
            let uri = uri.clone();
            self.emit(Event::ResourceContentChanged { uri, content, cause, notice });
        }
        self.reader.announce(evicted, DropCause::Evicted);
        differs
    }

    /// Stores the content of a template.
    pub(crate) fn put_template(
        &mut self,
        template: &Arc<str>,
        content: Arc<TemplateContent>,
        ticket: u64,
    ) {
        let mut store = self.reader.shared.lock();
        let size = content.content.bytes();
        let entry = Entry::new(content.clone(), ticket, Fresh::No, size);
        let Put::Kept { evicted } = store.put(Kind::Template, template, entry) else { return };
        self.emit(Event::TemplateContentChanged { template: template.clone(), content });
        self.reader.announce(evicted, DropCause::Evicted);
    }

    /// Stores a filled-in prompt.
    pub(crate) fn put_prompt(&mut self, name: &Arc<str>, content: Arc<PromptContent>, ticket: u64) {
        let mut store = self.reader.shared.lock();
        let size = length_of(&content.result) + odd_bytes(&content.odd);
        let size = size + raw_bytes(content.raw.as_ref());
        let entry = Entry::new(content.clone(), ticket, Fresh::No, size);
        let Put::Kept { evicted } = store.put(Kind::Prompt, name, entry) else { return };
        self.emit(Event::PromptContentChanged { name: name.clone(), content });
        self.reader.announce(evicted, DropCause::Evicted);
    }

    /// Stores the outcome of a call.
    pub(crate) fn put_tool(&mut self, name: &Arc<str>, outcome: Arc<ToolOutcome>, ticket: u64) {
        let mut store = self.reader.shared.lock();
        let size = outcome.result.as_ref().map_or_else(|error| error.len(), length_of);
        let size = size + odd_bytes(&outcome.odd) + raw_bytes(outcome.raw.as_ref());
        let entry = Entry::new(outcome.clone(), ticket, Fresh::No, size);
        let Put::Kept { evicted } = store.put(Kind::Tool, name, entry) else { return };
        self.emit(Event::ToolResultChanged { name: name.clone(), outcome });
        self.reader.announce(evicted, DropCause::Evicted);
    }

    /// A resource's content, if it may be used without asking the server.
    pub(crate) fn fresh(&self, uri: &str, now: Instant) -> Option<Arc<ResourceContent>> {
        let mut store = self.reader.shared.lock();
        let found = store.resources.get(uri).filter(|entry| match entry.fresh {
            Fresh::No => false,
            Fresh::Until(end) => now < end,
            Fresh::UntilNotice => true,
        });
        let found = found.map(|entry| entry.content.clone());
        store.looked_up(found.is_some());
        if found.is_some() {
            store.touch(ContentKeyRef::resources(uri));
        }
        found
    }

    /// Whether content of this URI is stored, a template's included.
    pub(crate) fn holds(&self, uri: &str) -> bool {
        let store = self.reader.shared.lock();
        store.resources.contains_key(uri)
            || store.templates.values().any(|entry| &*entry.content.uri == uri)
    }

    /// Whether this resource's own content is stored.
    pub(crate) fn holds_resource(&self, uri: &str) -> bool {
        self.reader.shared.lock().resources.contains_key(uri)
    }

    /// The templates whose latest content came from this URI.
    pub(crate) fn templates_at(&self, uri: &str) -> Vec<(Arc<str>, Arc<TemplateContent>)> {
        let store = self.reader.shared.lock();
        let at = store.templates.iter().filter(|(_, entry)| &*entry.content.uri == uri);
        at.map(|(template, entry)| (template.clone(), entry.content.clone())).collect()
    }

    /// The entry must be loaded again before it is fresh.
    pub(crate) fn make_stale(&mut self, uri: Option<&str>) {
        let mut store = self.reader.shared.lock();
        match uri {
            Some(uri) => {
                if let Some(entry) = store.resources.get_mut(uri) {
                    entry.fresh = Fresh::No;
                }
            }
            None => store.resources.values_mut().for_each(|entry| entry.fresh = Fresh::No),
        }
    }

    /// Removes one resource, and the contents of its templates.
    pub(crate) fn drop_resource(&mut self, uri: &str) {
        let templates = self.templates_at(uri);
        let mut store = self.reader.shared.lock();
        let gone = store.remove(ContentKeyRef::resources(uri));
        self.reader.announce(gone, DropCause::Gone);
        for (template, _) in templates {
            let gone = store.remove(ContentKeyRef::templates(&template));
            self.reader.announce(gone, DropCause::Gone);
        }
    }

    /// Removes resources or prompts that the server no longer lists.
    pub(crate) fn keep(&mut self, kind: Kind, offered: impl Fn(&str) -> bool) {
        let mut store = self.reader.shared.lock();
        let gone = store.drain(|key| key.kind == kind && !offered(key.key));
        self.reader.announce(gone, DropCause::Gone);
    }

    /// Removes private content: the authorisation changed.
    pub(crate) fn drop_private(&mut self) {
        let mut store = self.reader.shared.lock();
        let private: Vec<_> = store.private();
        let gone = store.drain(|key| {
            private.iter().any(|(kind, name)| *kind == key.kind && **name == *key.key)
        });
        self.reader.announce(gone, DropCause::OtherAuthorization);
    }

    /// Removes everything: the connection ended.
    pub(crate) fn drop_all(&mut self) {
        let mut store = self.reader.shared.lock();
        let gone = store.drain(|_| true);
        self.reader.announce(gone, DropCause::Disconnected);
    }

    fn emit(&self, event: Event) {
        self.reader.shared.events.emit(event);
    }
}

fn odd_bytes(odd: &[Odd]) -> usize {
    odd.iter().map(|odd| length_of(&odd.item)).sum()
}

fn raw_bytes(raw: Option<&Arc<str>>) -> usize {
    raw.map_or(0, |raw| raw.len())
}

fn bytes_of(contents: &[ResourceContents]) -> usize {
    let each = contents.iter().map(|content| match content {
        ResourceContents::TextResourceContents { text, .. } => text.len(),
        ResourceContents::BlobResourceContents { blob, .. } => blob.len(),
        // Unknown kinds are counted by their size on the wire.
        _ => length_of(content),
    });
    each.sum()
}

/// The length of a value as JSON, without creating the JSON.
fn length_of(value: &impl serde::Serialize) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    // Counting cannot fail, and a value that cannot be written has no size.
    let _ = serde_json::to_writer(&mut counter, value);
    counter.0
}

#[cfg(test)]
mod tests;
