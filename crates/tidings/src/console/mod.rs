//! The console without pixels: servers with everything that is known about them, as keyed things
//! with revisions. A viewer asks for the things it shows that changed since its cursor.

mod acts;
pub(crate) mod archive;
mod asking;
pub(crate) mod cache;
pub(crate) mod calls;
mod difference;
pub(crate) mod doctor;
mod find;
mod form;
mod hub;
mod inbox;
mod items;
pub(crate) mod keys;
mod log;
mod markdown;
pub(crate) mod memory;
mod recorder;
mod revisions;
mod secret;
mod server;
pub(crate) mod socket;
pub(crate) mod state;
pub(crate) mod tree;
mod versions;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tidings_mirror::{CacheLimits, Config, List, Mirror, RequestOptions, StreamsTarget, Target};
use tidings_server::Hub;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::args::Place;
use crate::console::acts::CallWish;
use crate::console::archive::{Archive, SessionSecrets};
use crate::console::calls::Callable;
use crate::console::hub::{HubView, KEY as HUB};
pub(crate) use crate::console::inbox::AnswerError;
use crate::console::inbox::{Inbox, KEY as INBOX};
pub(crate) use crate::console::log::{Filter, PAGE, Row};
use crate::console::revisions::Revisions;
use crate::console::server::SERVERS;
pub(crate) use crate::console::server::Server;
use crate::console::state::KeptServer;

/// The messages that the mirror keeps for the recorder.
const HISTORY: usize = 20_000;
/// The parts that are found as places.
const PARTS: [&str; 9] = [
    "servers",
    "overview",
    "tools",
    "resources",
    "templates",
    "prompts",
    "watched",
    "timeline",
    "cache",
];
/// The most servers.
const SERVER_LIMIT: usize = 64;

/// The console. Cloning is cheap, and all clones are one console.
#[derive(Clone)]
pub(crate) struct Console {
    inner: Arc<ConsoleState>,
}

struct ConsoleState {
    servers: Mutex<BTreeMap<u64, Arc<Server>>>,
    last: Mutex<u64>,
    revisions: Arc<Revisions>,
    inbox: Arc<Inbox>,
    /// Servers of the last run that a person may start again.
    offered: Mutex<Vec<KeptServer>>,
    /// The hub of this process, if one of the servers is ours.
    hub: OnceLock<Arc<HubView>>,
    cancel: CancellationToken,
    /// The recorders and the calls.
    tasks: Mutex<JoinSet<()>>,
}

/// What a viewer sees and has seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// The cursor of its last answer.
    pub(crate) since: u64,
    /// The things it shows and has.
    pub(crate) see: Vec<String>,
    /// The things it shows and does not have yet.
    pub(crate) also: Vec<String>,
}

impl Default for Console {
    fn default() -> Self {
        let revisions: Arc<Revisions> = Arc::default();
        let inner = ConsoleState {
            servers: Mutex::default(),
            last: Mutex::default(),
            inbox: Arc::new(Inbox::new(revisions.clone())),
            revisions,
            offered: Mutex::default(),
            hub: OnceLock::new(),
            cancel: CancellationToken::new(),
            tasks: Mutex::default(),
        };
        Self { inner: Arc::new(inner) }
    }
}

impl Console {
    fn servers(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<Server>>> {
        self.inner.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.inner.tasks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a server, and connects to it. Returns its number, or `None` if there are too many.
    pub(crate) fn add(
        &self,
        name: &str,
        place: Place,
        target: Target,
        mut config: Config,
    ) -> Option<u64> {
        if self.servers().len() >= SERVER_LIMIT {
            return None;
        }
        let id = self.next();
        let (place, over) = match &target {
            Target::Http(http) => (Place::Named(shown(&place, http.shown_url())), "HTTP"),
            Target::Command(_) => (place, "stdio"),
            _ => (place, "memory"),
        };
        let secrets = SessionSecrets::of(&target);
        config.history = HISTORY;
        config.cache = CacheLimits::new(Some(cache::BYTES), Some(cache::KEPT));
        config.handlers = asking::handlers(&self.inner, id);
        let (mirror, events) = Mirror::supervise(target.clone(), config);
        let revisions = self.inner.revisions.clone();
        let place = (place, over, target);
        let server = Server::new(id, self.free_name(name), place, mirror, revisions);
        let server = Arc::new(server);
        server.facts().secrets = secrets;
        self.servers().insert(id, server.clone());
        let cancel = self.inner.cancel.child_token();
        self.spawn(recorder::record(server, events, cancel));
        self.inner.revisions.touch(&[SERVERS]);
        Some(id)
    }

    fn next(&self) -> u64 {
        let mut last = self.inner.last.lock().unwrap_or_else(PoisonError::into_inner);
        *last += 1;
        *last
    }

    /// Adds a saved session. Returns its number, or `None` if there are too many servers.
    pub(crate) fn add_saved(&self, archive: Archive) -> Option<u64> {
        if self.servers().len() >= SERVER_LIMIT {
            return None;
        }
        let id = self.next();
        // Nothing is at the other end, and nothing is tried again.
        let nowhere = || None::<(tokio::io::Empty, tokio::io::Sink)>;
        let mut config = Config::default();
        config.reconnect = None;
        let target = Target::Streams(StreamsTarget::each(nowhere));
        let (mirror, _) = Mirror::supervise(target.clone(), config);
        let name = self.free_name(&archive.name);
        let server =
            Server::saved(id, name, archive, (target, mirror), self.inner.revisions.clone());
        self.servers().insert(id, Arc::new(server));
        self.inner.revisions.touch(&[SERVERS]);
        Some(id)
    }

    /// Shows who listens to a server that is a hub of this process, and what became of its changes.
    pub(crate) fn look_into(&self, server: u64, hub: Hub) {
        let view = Arc::new(HubView::new(server, hub, self.inner.revisions.clone()));
        if self.inner.hub.set(view.clone()).is_ok() {
            self.spawn(view.follow(self.inner.cancel.child_token()));
            self.inner.revisions.touch(&[HUB, SERVERS]);
        }
    }

    /// The hub, as long as its server is shown.
    fn hub(&self) -> Option<&Arc<HubView>> {
        self.inner.hub.get().filter(|hub| self.servers().contains_key(&hub.server))
    }

    /// Offers servers of the last run.
    pub(crate) fn offer(&self, servers: Vec<KeptServer>) {
        *self.inner.offered.lock().unwrap_or_else(PoisonError::into_inner) = servers;
    }

    /// The servers that were open last time and are not open now.
    fn offered(&self) -> Vec<KeptServer> {
        let mut offered = self.inner.offered.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let open: Vec<_> = self.servers().values().filter_map(|server| server.kept()).collect();
        offered.retain(|offer| !open.iter().any(|open| open.is_same(offer)));
        offered
    }

    /// The command lines that start programs of the last run again.
    pub(crate) fn offers(&self) -> Vec<String> {
        self.offered().iter().filter_map(KeptServer::offer).collect()
    }

    /// What comes back when the console starts again.
    pub(crate) fn kept(&self) -> Vec<KeptServer> {
        let mut kept = state::newest(self.offered());
        kept.extend(self.servers().values().filter_map(|server| server.kept()));
        kept
    }

    /// Waits for a change after a revision, and returns the last one.
    pub(crate) async fn changed(&self, revision: u64) -> u64 {
        self.inner.revisions.changed(revision).await;
        self.inner.revisions.last()
    }

    /// A name that no other server has.
    fn free_name(&self, name: &str) -> String {
        let servers = self.servers();
        let taken = |name: &str| servers.values().any(|server| server.name == name);
        let numbered = (2..).map(|number| format!("{name}-{number}"));
        let mut names = std::iter::once(name.to_owned()).chain(numbered);
        names.find(|name| !taken(name)).unwrap_or_default()
    }

    /// Does some work until the console ends.
    pub(crate) fn spawn(
        &self,
        work: impl Future<Output = ()> + Send + 'static,
    ) -> tokio::task::AbortHandle {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(work)
    }

    /// The server of this number.
    pub(crate) fn server(&self, id: u64) -> Option<Arc<Server>> {
        self.servers().get(&id).cloned()
    }

    /// The server of this name.
    pub(crate) fn named(&self, name: &str) -> Option<Arc<Server>> {
        self.servers().values().find(|server| server.name == name).cloned()
    }

    /// The server at this place.
    pub(crate) fn at(&self, place: &Place) -> Option<Arc<Server>> {
        self.servers().values().find(|server| server.place == *place).cloned()
    }

    /// The names of all servers.
    pub(crate) fn names(&self) -> Vec<String> {
        self.servers().values().map(|server| server.name.clone()).collect()
    }

    /// Disconnects from a server, and drops all that is known of it.
    pub(crate) async fn remove(&self, id: u64) -> bool {
        let Some(server) = self.servers().remove(&id) else { return false };
        self.inner.revisions.forget(&format!("s/{id}/"));
        self.inner.inbox.forget(id);
        self.inner.revisions.touch(&[SERVERS]);
        server.mirror.close().await;
        true
    }

    /// Begins a call of a server's item, and returns its number.
    pub(crate) fn call(
        &self,
        server: &Arc<Server>,
        kind: Callable,
        name: &str,
        arguments: Map<String, Value>,
    ) -> u64 {
        let (name, options) = (name.to_owned(), RequestOptions::new());
        let (begun, work) = server.call(CallWish { kind, name, arguments, options });
        let task = self.spawn(async move { drop(work.await) });
        server.facts().calls.task(begun.number, task);
        begun.number
    }

    /// The servers, parts and items whose names fit a few letters, the best first.
    pub(crate) fn find(&self, text: &str) -> Vec<Value> {
        let mut search = find::PlaceSearch::new(text);
        for part in ["servers", "inbox"] {
            search.offer(part, "", 0, part, "");
        }
        let servers: Vec<_> = self.servers().values().cloned().collect();
        if let Some(hub) = self.hub() {
            search.offer("hub: listeners and changes", "", hub.server, "hub", "");
        }
        for server in servers {
            server.offer(&mut search);
        }
        for key in keys::acts() {
            search.offer_act(key.words, key.name, key.act);
        }
        search.results()
    }

    /// Answers a question.
    pub(crate) fn answer(&self, number: u64, answer: &Value) -> Result<(), AnswerError> {
        self.inner.inbox.answer(number, answer)
    }

    /// Ends a rule for the answers to a server.
    pub(crate) fn end_rule(&self, server: u64, kind: &str) -> bool {
        self.inner.inbox.end_rule(server, kind)
    }

    /// Each thing of a view that changed, once, at its newest value. Waits for a change if there is
    /// none, but not longer than `wait`.
    ///
    /// Cancel-safe: nothing is taken.
    pub(crate) async fn state(&self, view: &Wanted, wait: Duration) -> Value {
        let deadline = tokio::time::Instant::now() + wait;
        let revisions = &self.inner.revisions;
        loop {
            // Order: the revision first, so that a value may be sent twice and is never missed.
            let revision = revisions.last();
            // A cursor of another process would hide everything.
            let since = if view.since > revision { 0 } else { view.since };
            let is_dirty = |key: &&String| since == 0 || revisions.of(&base(key)) > since;
            let dirty: Vec<_> = view.see.iter().filter(is_dirty).collect();
            let is_over = tokio::time::Instant::now() >= deadline;
            if !dirty.is_empty() || !view.also.is_empty() || is_over {
                let mut things = Map::new();
                let mut gone = Vec::new();
                let wanted = dirty.into_iter().map(|key| (key, since));
                for (key, since) in wanted.chain(view.also.iter().map(|key| (key, 0))) {
                    match self.thing(key, since) {
                        Some(value) => drop(things.insert(key.clone(), value)),
                        None => gone.push(key.clone()),
                    }
                }
                return json!({ "rev": revision, "things": things, "gone": gone, "since": since });
            }
            tokio::select! {
                () = revisions.changed(revision) => {}
                () = tokio::time::sleep_until(deadline) => {}
            }
        }
    }

    /// A thing by its key.
    fn thing(&self, key: &str, since: u64) -> Option<Value> {
        match key {
            SERVERS => {
                let servers: Vec<_> = self.servers().values().cloned().collect();
                let hub = self.hub().map(|hub| hub.server);
                let row = |server: &Arc<Server>| {
                    let mut row = server.row(self.inner.inbox.open(server.id));
                    row["hub"] = (hub == Some(server.id)).into();
                    row
                };
                Some(servers.iter().map(row).collect())
            }
            INBOX => Some(self.inner.inbox.json()),
            HUB => self.hub().map(|hub| hub.json()),
            _ => {
                let rest = key.strip_prefix("s/")?;
                let (id, name) = rest.split_once('/').unwrap_or((rest, ""));
                self.server(id.parse().ok()?)?.thing(name, since)
            }
        }
    }

    /// Ends all connections and everything they started.
    pub(crate) async fn close(&self) {
        self.inner.cancel.cancel();
        let servers: Vec<_> = std::mem::take(&mut *self.servers()).into_values().collect();
        let mut closing = JoinSet::new();
        for server in servers {
            closing.spawn(async move { server.mirror.close().await });
        }
        while closing.join_next().await.is_some() {}
        let mut tasks = std::mem::take(&mut *self.tasks());
        tasks.shutdown().await;
    }
}

/// The key whose revision counts: the filter of a timeline is not a part of it, and the times of
/// answers are those of its rows.
fn base(key: &str) -> Cow<'_, str> {
    match key.split_once("/log?") {
        Some((server, _)) => Cow::Borrowed(&key[..server.len() + "/log".len()]),
        None => match key.strip_suffix("/latency") {
            Some(server) if !server.contains("/watched/") => Cow::Owned(format!("{server}/log")),
            _ => Cow::Borrowed(key),
        },
    }
}

/// A URL without its secrets; the name of a server as it is.
fn shown(place: &Place, url: String) -> String {
    match place {
        Place::Named(name) if name.contains("://") => url,
        other => other.to_string(),
    }
}

/// A short name for a server: its host and port, its name, or its program.
pub(crate) fn short_name(place: &Place) -> String {
    match place {
        Place::Named(name) => {
            let rest = name.split_once("://").map_or(&**name, |(_, rest)| rest);
            let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
            host.rsplit('@').next().unwrap_or(host).to_owned()
        }
        Place::Command(words) => {
            let plain = |word: &&String| !word.starts_with('-');
            let word = words.iter().rev().find(plain).or(words.first());
            let file = word.map(|word| word.rsplit('/').next().unwrap_or(word));
            file.unwrap_or("server").to_owned()
        }
    }
}

/// The list of this name.
pub(crate) fn list(name: &str) -> Option<List> {
    List::ALL.into_iter().find(|list| list.as_str() == name)
}

#[cfg(test)]
mod tests;
