//! One server of the console: its mirror, and everything that is known about it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde_json::{Value, json};
use tidings_mirror::events::ConnectionState;
use tidings_mirror::model::ServerCapabilities;
use tidings_mirror::{Era, List, Mirror, Server as Identity, Target};

use crate::args::Place;
use crate::console::archive::{Archive, ArchiveNote, SessionSecrets};
use crate::console::cache;
use crate::console::calls::Calls;
use crate::console::find::PlaceSearch;
use crate::console::items::MarkedLists;
use crate::console::log::{Filter, Log, Row, millis};
use crate::console::markdown;
use crate::console::revisions::Revisions;
use crate::console::state::KeptServer;
use crate::console::tree::preview;
use crate::console::versions::Versions;

/// The seconds for which notices are counted.
const RATE: usize = 60;
/// The answers whose times are shown.
const LATENCIES: usize = 24;
/// The warnings and losses that are kept.
const KEPT: usize = 50;

/// One server.
pub(crate) struct Server {
    pub(crate) id: u64,
    pub(crate) name: String,
    /// Where it is, without secrets.
    pub(crate) place: Place,
    pub(crate) over: &'static str,
    pub(crate) target: Target,
    /// Of a saved session it is never connected.
    pub(crate) mirror: Mirror,
    pub(crate) archive: Option<SavedSession>,
    pub(crate) revisions: Arc<Revisions>,
    pub(crate) keys: Keys,
    facts: Mutex<Facts>,
}

/// Where a saved session comes from, and its first line.
pub(crate) struct SavedSession {
    pub(crate) note: ArchiveNote,
    head: Value,
}

/// What was recorded of a server. Written by its recorder and by the calls of viewers.
#[derive(Default)]
pub(crate) struct Facts {
    pub(crate) log: Log,
    pub(crate) lists: MarkedLists,
    pub(crate) versions: Versions,
    pub(crate) calls: Calls,
    /// The last identity, also after the connection was lost.
    pub(crate) identity: Option<Arc<Identity>>,
    pub(crate) warnings: VecDeque<(SystemTime, String)>,
    pub(crate) losses: VecDeque<(SystemTime, Arc<str>)>,
    pub(crate) changed_at: Option<SystemTime>,
    /// How it comes back when the console starts again, if it may.
    pub(crate) kept: Option<KeptServer>,
    /// Resources to watch once there is a connection.
    pub(crate) to_watch: BTreeSet<String>,
    /// Texts that a saved session must not have.
    pub(crate) secrets: SessionSecrets,
    /// Notices of the last seconds, by second.
    pub(crate) rate: BTreeMap<u64, u64>,
}

/// The keys of a server's things.
#[derive(Debug)]
pub(crate) struct Keys {
    pub(crate) overview: String,
    pub(crate) tools: String,
    pub(crate) resources: String,
    pub(crate) templates: String,
    pub(crate) prompts: String,
    pub(crate) watched: String,
    pub(crate) log: String,
    pub(crate) calls: String,
    pub(crate) cache: String,
}

/// The key of the list of servers.
pub(crate) const SERVERS: &str = "servers";

impl Keys {
    fn new(id: u64) -> Self {
        let key = |name: &str| format!("s/{id}/{name}");
        Self {
            overview: format!("s/{id}"),
            tools: key("tools"),
            resources: key("resources"),
            templates: key("templates"),
            prompts: key("prompts"),
            watched: key("watched"),
            log: key("log"),
            calls: key("calls"),
            cache: key("cache"),
        }
    }

    pub(crate) fn list(&self, list: List) -> &str {
        match list {
            List::Tools => &self.tools,
            List::Resources => &self.resources,
            List::Templates => &self.templates,
            List::Prompts => &self.prompts,
        }
    }

    pub(crate) fn resource(&self, uri: &str) -> String {
        format!("{}/{uri}", self.watched)
    }

    pub(crate) fn calls_of(&self, name: &str) -> String {
        format!("{}/{name}", self.calls)
    }
}

impl Facts {
    pub(crate) fn warn(&mut self, words: String) {
        self.warnings.push_back((SystemTime::now(), words));
        if self.warnings.len() > KEPT {
            self.warnings.pop_front();
        }
    }

    pub(crate) fn lost(&mut self, reason: Arc<str>) {
        self.losses.push_back((SystemTime::now(), reason));
        if self.losses.len() > KEPT {
            self.losses.pop_front();
        }
    }

    pub(crate) fn count_notices(&mut self, notices: u64) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        *self.rate.entry(now.as_secs()).or_default() += notices;
        while self.rate.len() > RATE {
            self.rate.pop_first();
        }
    }
}

impl Server {
    pub(crate) fn new(
        id: u64,
        name: String,
        (place, over, target): (Place, &'static str, Target),
        mirror: Mirror,
        revisions: Arc<Revisions>,
    ) -> Self {
        let (keys, facts, archive) = (Keys::new(id), Mutex::default(), None);
        Self { id, name, place, over, target, mirror, archive, revisions, keys, facts }
    }

    /// The server of a saved session.
    pub(crate) fn saved(
        id: u64,
        name: String,
        archive: Archive,
        (target, mirror): (Target, Mirror),
        revisions: Arc<Revisions>,
    ) -> Self {
        let Archive { place, over, mut facts, note, head, .. } = archive;
        facts.lists.restored();
        let mut server = Self::new(id, name, (place, over, target), mirror, revisions);
        server.facts = Mutex::new(facts);
        server.archive = Some(SavedSession { note, head });
        server
    }

    /// How it comes back, with what is watched.
    pub(crate) fn kept(&self) -> Option<KeptServer> {
        let facts = self.facts();
        let mut kept = facts.kept.clone()?;
        let mut watched = facts.versions.watched_uris();
        watched.extend(facts.to_watch.iter().cloned());
        kept.watched = watched.into_iter().collect();
        Some(kept)
    }

    /// Watches what is to be watched, once there is a connection.
    pub(crate) async fn watch_again(self: Arc<Self>) {
        if self.mirror.ready().await.is_err() {
            return;
        }
        let uris = self.facts().to_watch.clone();
        for uri in uris {
            // A refusal is shown among the watched resources.
            drop(self.watch(&uri).await);
            self.facts().to_watch.remove(&uri);
        }
        self.revisions.touch(&[&self.keys.watched]);
    }

    /// The lines that the server wrote to standard error.
    pub(crate) fn stderr(&self) -> Vec<String> {
        match &self.archive {
            Some(archive) => archive.note.stderr.clone(),
            None => self.mirror.stderr().iter().map(ToString::to_string).collect(),
        }
    }

    pub(crate) fn facts(&self) -> MutexGuard<'_, Facts> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its row in the list of servers.
    pub(crate) fn row(&self, questions: usize) -> Value {
        let mut state = serde_json::to_value(self.mirror.connection()).unwrap_or_default();
        let facts = self.facts();
        let identity = facts.identity.as_ref();
        let known = identity.and_then(|it| it.identity.as_ref());
        let known =
            known.map(|it| json!({ "name": it.name, "title": it.title, "version": it.version }));
        let mut identity = json!({ "product": known, "revision": identity.map(|it| it.version.as_str()),
            "era": identity.map(|it| era(it.era)) });
        if let Some(SavedSession { note, head }) = &self.archive {
            state = note.state();
            for name in ["product", "revision", "era"] {
                identity[name] = head[name].clone();
            }
        }
        let newest = facts.log.rows().rev().take(100).find_map(|row| row.took);
        json!({
            "id": self.id, "name": self.name, "over": self.over, "place": self.place.to_string(),
            "state": state, "since": facts.changed_at.map(millis),
            "product": identity["product"], "revision": identity["revision"],
            "era": identity["era"],
            "took": newest.map(|took| took.as_secs_f64() * 1e3),
            "offered": List::ALL.len(), "loaded": self.loaded(),
            "lists": facts.lists.latest(), "watched": facts.versions.watched_count(),
            "rows": facts.log.total(), "questions": questions, "rate": facts.rate,
            "losses": facts.losses.len(),
            "lost": facts.losses.back().map(|(at, why)| json!({ "at": millis(*at), "why": why })),
        })
    }

    /// The lists of this connection that are there; a list that cannot be listed counts once all
    /// others are done.
    fn loaded(&self) -> usize {
        let all = List::ALL;
        if self.mirror.is_loaded() {
            return all.len();
        }
        all.into_iter().filter(|list| self.mirror.has_list(*list)).count()
    }

    /// Offers its parts and items to a search.
    pub(crate) fn offer(&self, search: &mut PlaceSearch) {
        let parts = ["overview", "watched", "timeline", "cache"];
        for part in parts.into_iter().chain(List::ALL.map(List::as_str)) {
            search.offer(&format!("{} {part}", self.name), "", self.id, part, "");
        }
        let facts = self.facts();
        for list in List::ALL {
            for (key, title) in facts.lists.names(list) {
                let about = format!("{title} {} {}", self.name, list.as_str());
                search.offer(key, about.trim_start(), self.id, list.as_str(), key);
            }
        }
    }

    /// The last known capabilities.
    fn capabilities(&self, facts: &Facts) -> Option<ServerCapabilities> {
        match &self.archive {
            Some(archive) => serde_json::from_value(archive.head["capabilities"].clone()).ok(),
            None => facts.identity.as_ref().map(|it| it.capabilities.clone()),
        }
    }

    /// Everything about the server itself.
    fn overview(&self) -> Value {
        let state = self.mirror.connection();
        let stderr = self.stderr();
        let facts = self.facts();
        let identity = facts.identity.as_ref();
        let is_ready = state == ConnectionState::Ready;
        let told = |(at, words): &(SystemTime, String)| json!({ "at": millis(*at), "text": words });
        let lost = |(at, why): &(SystemTime, Arc<str>)| json!({ "at": millis(*at), "text": why });
        let last = stderr.len().saturating_sub(200);
        let mut overview = json!({
            "ready": is_ready,
            "capabilities": identity.map(|it| &it.capabilities),
            "tells": self.capabilities(&facts).map(|it| tells(&it)),
            "instructions": identity.and_then(|it| it.instructions.as_deref()).map(markdown::nodes),
            "warnings": facts.warnings.iter().rev().map(told).collect::<Vec<_>>(),
            "losses": facts.losses.iter().rev().map(lost).collect::<Vec<_>>(),
            "stream": stream(self.over, &facts.log),
            "stderr": stderr[last..], "log": facts.log.total(),
        });
        if let Some(SavedSession { head, .. }) = &self.archive {
            overview["capabilities"] = head["capabilities"].clone();
            let instructions = head["instructions"].as_str().map(markdown::nodes);
            overview["instructions"] = serde_json::to_value(instructions).unwrap_or_default();
        }
        overview
    }

    /// A value that is looked into: a message (`row:7`, `answer:7`), a result (`result:3`), an item
    /// (`item:tools:NAME`) or a version of a resource (`version:3:URI`).
    pub(crate) fn value(&self, of: &str) -> Option<Arc<Value>> {
        let (kind, rest) = of.split_once(':')?;
        let facts = self.facts();
        match kind {
            "row" | "answer" => {
                let row = facts.log.row(rest.parse().ok()?)?;
                let message = if kind == "row" { &row.message } else { &row.answer };
                let message = message.clone();
                drop(facts);
                message?.json().map(Arc::new)
            }
            "result" => facts.calls.run(rest.parse().ok()?)?.result().cloned(),
            "item" => {
                let (list, key) = rest.split_once(':')?;
                let list = List::ALL.into_iter().find(|it| it.as_str() == list)?;
                facts.lists.raw(list, key).map(|(raw, _)| Arc::new(raw))
            }
            "version" => {
                let (number, uri) = rest.split_once(':')?;
                facts.versions.of(uri)?.raw(number.parse().ok()?).map(Arc::new)
            }
            _ => None,
        }
    }

    /// One of its things, by the rest of the key after its own.
    pub(crate) fn thing(&self, name: &str, since: u64) -> Option<Value> {
        let list = |name: &str| List::ALL.into_iter().find(|list| list.as_str() == name);
        if let Some(list) = list(name) {
            let facts = self.facts();
            let mut json = facts.lists.json(&self.mirror, list);
            json["offered"] = self.capabilities(&facts).map(|it| offers(&it, list)).into();
            return Some(json);
        }
        match name.split_once('/') {
            None if name.is_empty() => Some(self.overview()),
            None if name == "cache" => Some(cache::json(self.mirror.cache())),
            None if name == "latency" => Some(self.facts().log.latencies(LATENCIES).into()),
            None if name == "watched" => Some(self.facts().versions.watched()),
            None => {
                let filter = name.strip_prefix("log")?;
                Some(self.timeline(filter.strip_prefix('?').unwrap_or_default(), since))
            }
            Some(("watched", uri)) => {
                let is_ready = self.mirror.connection() == ConnectionState::Ready;
                let facts = self.facts();
                let mut json = facts.versions.of(uri)?.json(uri);
                json["fresh"] =
                    (is_ready && json["watched"] == true && json["gone"].is_null()).into();
                Some(json)
            }
            Some(("calls", item)) => Some(self.facts().calls.of(item)),
            Some(_) => {
                // A filter may contain slashes.
                let filter = name.strip_prefix("log?")?;
                Some(self.timeline(filter, since))
            }
        }
    }

    fn timeline(&self, filter: &str, since: u64) -> Value {
        match Filter::parse(filter) {
            Ok(filter) => self.facts().log.newest(&filter, since),
            Err(problem) => json!({ "problem": problem }),
        }
    }
}

/// Whether a server says that it has a list.
fn offers(it: &ServerCapabilities, list: List) -> bool {
    match list {
        List::Tools => it.tools.is_some(),
        List::Resources | List::Templates => it.resources.is_some(),
        List::Prompts => it.prompts.is_some(),
    }
}

/// Where notices come from, and what the server agreed to announce.
fn stream(over: &str, log: &Log) -> Option<String> {
    let is_stream = |row: &&Row| {
        row.what.starts_with("stream ")
            && ["GET", "subscriptions/listen"].iter().any(|it| row.subject.contains(it))
    };
    let words = if over == "HTTP" {
        let last = log.rows().rev().find(is_stream)?;
        format!("{} {}", last.what, last.subject)
    } else {
        "on the connection itself".to_owned()
    };
    let agreed = log.rows().rev().find(|row| row.what == "subscriptions/acknowledged");
    let body = agreed.and_then(|row| row.message.as_ref()?.json());
    let filter = body.as_ref().and_then(|body| body.pointer("/params/notifications"));
    Some(filter.map_or(words.clone(), |it| format!("{words}; agreed on {}", preview(it))))
}

pub(crate) fn era(era: Era) -> &'static str {
    match era {
        Era::Modern => "modern",
        _ => "legacy",
    }
}

/// Which changes the server says it announces.
fn tells(it: &ServerCapabilities) -> Value {
    let list = |changed: Option<bool>| changed == Some(true);
    json!({
        "tools": it.tools.as_ref().map(|it| list(it.list_changed)),
        "resources": it.resources.as_ref().map(|it| list(it.list_changed)),
        "contents": it.resources.as_ref().map(|it| list(it.subscribe)),
        "prompts": it.prompts.as_ref().map(|it| list(it.list_changed)),
        "log": it.logging.is_some(),
        "completions": it.completions.is_some(),
    })
}
