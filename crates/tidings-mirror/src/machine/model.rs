//! The law of the mirror: whatever the order, loss, duplication and delay of notices, answers and
//! disconnects, once things are quiet the mirror equals the server, and the events replayed from
//! the start rebuild the same state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rmcp::model::{ErrorCode, ErrorData, JsonObject, Resource, ResourceContents, Tool};
use tidings_core::{ListKind, ListKinds};
use tokio::time::Instant;

use super::*;
use crate::cache::{self, Reader};
use crate::config::CacheLimits;
use crate::events::{ContentKey, Events};

const PAGE: usize = 2;

/// A server that knows nothing of mirrors.
#[derive(Clone, Debug, Default)]
struct Server {
    tools: BTreeMap<u8, u8>,
    resources: BTreeMap<u8, u8>,
    /// Moves with every change of a list; part of cursors if they are strict.
    generation: u64,
    watched: BTreeSet<Arc<str>>,
    strict_cursors: bool,
}

fn uri(key: u8) -> Arc<str> {
    format!("test://{key}").into()
}

fn key_of(uri: &str) -> u8 {
    uri.trim_start_matches("test://").parse().unwrap()
}

fn content(text: String) -> ResourceContent {
    ResourceContent {
        contents: vec![ResourceContents::text(text, "test://x")],
        read_at: SystemTime::UNIX_EPOCH,
        ttl: None,
        private: false,
    }
}

fn refused(code: i32) -> RequestError {
    RequestError::Refused(ErrorData::new(ErrorCode(code), "no", None))
}

impl Server {
    fn page<T>(&self, all: Vec<T>, cursor: Option<&str>) -> Result<Page<T>, RequestError> {
        let (offset, generation) = match cursor {
            None => (0, self.generation),
            Some(cursor) => {
                let (offset, generation) = cursor.split_once('/').unwrap();
                (offset.parse().unwrap(), generation.parse().unwrap())
            }
        };
        if self.strict_cursors && generation != self.generation {
            return Err(refused(-32602));
        }
        let next = (offset + PAGE < all.len()).then(|| format!("{}/{generation}", offset + PAGE));
        Ok(Page { items: all.into_iter().skip(offset).take(PAGE).collect(), next })
    }

    fn tools(&self) -> Vec<Tool> {
        let tool = |(key, version): (&u8, &u8)| {
            Tool::new(format!("tool-{key}"), format!("version {version}"), JsonObject::new())
        };
        self.tools.iter().map(tool).collect()
    }

    fn resources(&self) -> Vec<Resource> {
        self.resources.keys().map(|key| Resource::new(uri(*key).to_string(), "thing")).collect()
    }

    fn read(&self, uri: &str) -> Result<ResourceContent, RequestError> {
        let version = self.resources.get(&key_of(uri)).ok_or_else(|| refused(-32002))?;
        Ok(content(version.to_string()))
    }

    /// What the server answers to a request now.
    fn answer(&mut self, request: &Asked) -> Option<Input> {
        Some(match request {
            Asked::Machine(Request::Page { list, ticket, cursor }) => {
                let answer = match list {
                    List::Tools => PageAnswer::Tools(self.page(self.tools(), cursor.as_deref())),
                    List::Resources => {
                        PageAnswer::Resources(self.page(self.resources(), cursor.as_deref()))
                    }
                    List::Templates | List::Prompts => return None,
                };
                Input::Page { ticket: *ticket, answer }
            }
            Asked::Machine(Request::Read { uri, ticket }) => {
                Input::Reread { uri: uri.clone(), ticket: *ticket, answer: self.read(uri) }
            }
            // What is watched when the server is asked, as the driver does it.
            Asked::Machine(Request::Restore) => return None,
            Asked::Subscribe(uris) => {
                self.watched.extend(uris.iter().cloned());
                Input::Subscribed { uris: uris.clone(), refused: Vec::new() }
            }
            Asked::Read { uri, ticket } => match self.read(uri) {
                Ok(content) => {
                    let content = Arc::new(content);
                    Input::Read { uri: uri.clone(), ticket: *ticket, content }
                }
                Err(_) => Input::ReadFailed { uri: uri.clone() },
            },
        })
    }

    fn failure(request: &Asked) -> Option<Input> {
        let error = || RequestError::Timeout(Duration::from_secs(1));
        Some(match request {
            Asked::Machine(Request::Page { list: List::Tools, ticket, .. }) => {
                Input::Page { ticket: *ticket, answer: PageAnswer::Tools(Err(error())) }
            }
            Asked::Machine(Request::Page { ticket, .. }) => {
                Input::Page { ticket: *ticket, answer: PageAnswer::Resources(Err(error())) }
            }
            Asked::Machine(Request::Read { uri, ticket }) => {
                Input::Reread { uri: uri.clone(), ticket: *ticket, answer: Err(error()) }
            }
            Asked::Read { uri, .. } => Input::ReadFailed { uri: uri.clone() },
            Asked::Machine(Request::Restore) | Asked::Subscribe(_) => return None,
        })
    }
}

#[derive(Clone, Debug)]
enum Asked {
    Machine(Request),
    Read { uri: Arc<str>, ticket: u64 },
    Subscribe(Vec<Arc<str>>),
}

#[derive(Clone, Debug)]
enum Step {
    SetTool(u8, u8),
    RemoveTool(u8),
    SetResource(u8, u8),
    RemoveResource(u8),
    /// The server looks at a request and answers.
    Answer(usize),
    /// A request fails on its way.
    Fail(usize),
    /// An answer arrives.
    Arrive(usize),
    /// A notice arrives, and may arrive again.
    Hear(usize, bool),
    Read(u8),
    Subscribe(u8),
    Unsubscribe(u8),
    Forget(u8),
    Wait(u16),
    Disconnect,
    Connect,
    StreamLost,
    StreamBack,
}

/// What the events say, and nothing else.
#[derive(Debug, Default, PartialEq)]
struct Replay {
    tools: Vec<Arc<Tool>>,
    resources: Vec<Arc<Resource>>,
    subscriptions: BTreeSet<Arc<str>>,
    contents: BTreeMap<Arc<str>, Vec<ResourceContents>>,
    connection: Option<ConnectionState>,
}

fn replay_list<T: Listed + std::fmt::Debug>(list: &mut Vec<Arc<T>>, change: &ListChange<T>) {
    if change.error.is_some() {
        assert_eq!(**list, *change.items, "a list that failed to load stays as it was");
        return;
    }
    let mut keys: BTreeMap<String, Arc<T>> =
        list.iter().map(|item| (item.key().to_owned(), item.clone())).collect();
    for item in &change.diff.removed {
        assert!(keys.remove(item.key()).is_some());
    }
    for item in change.diff.added.iter().chain(&change.diff.changed) {
        keys.insert(item.key().to_owned(), item.clone());
    }
    list.clone_from(&change.items.to_vec());
    let listed: BTreeMap<_, _> =
        list.iter().map(|item| (item.key().to_owned(), item.clone())).collect();
    assert_eq!(keys, listed, "what an event says was added, removed and changed is the difference");
}

impl Replay {
    fn take(&mut self, events: &mut Events) {
        while let Some(event) = events.try_next() {
            match event {
                Event::ToolsChanged(change) => replay_list(&mut self.tools, &change),
                Event::ResourcesChanged(change) => replay_list(&mut self.resources, &change),
                Event::SubscriptionsChanged { uris, .. } => self.subscriptions = uris,
                Event::ResourceContentChanged { uri, content, .. } => {
                    self.contents.insert(uri, content.contents.clone());
                }
                Event::ContentDropped { what: ContentKey::Resource(uri), .. } => {
                    assert!(self.contents.remove(&uri).is_some());
                }
                Event::Connection(state) => self.connection = Some(state),
                Event::Lagged { .. } => panic!("the model reads all events"),
                _ => {}
            }
        }
    }
}

struct World {
    server: Server,
    machine: Machine,
    reader: Reader,
    events: Events,
    replay: Replay,
    now: Instant,
    connected: bool,
    stream: bool,
    asked: Vec<Asked>,
    arriving: Vec<Input>,
    notices: Vec<Notice>,
    /// Every URI that was ever read.
    read: BTreeSet<Arc<str>>,
}

#[derive(Clone, Debug)]
enum Notice {
    List(ListKind),
    Updated(Arc<str>),
}

impl World {
    fn new(strict_cursors: bool) -> Self {
        let sender = Sender::new(256);
        let events = sender.receiver();
        let (reader, writer) = cache::cache(CacheLimits::default(), sender.clone());
        let merging =
            Merging { quiet: Duration::from_millis(25), max_wait: Duration::from_millis(250) };
        let rules = Rules { merging, max_items: 1000, resubscribe: true };
        let mut world = Self {
            server: Server { strict_cursors, ..Server::default() },
            machine: Machine::new(rules, writer, sender),
            reader,
            events,
            replay: Replay::default(),
            now: Instant::now(),
            connected: false,
            stream: false,
            asked: Vec::new(),
            arriving: Vec::new(),
            notices: Vec::new(),
            read: BTreeSet::new(),
        };
        world.step(&Step::Connect);
        world
    }

    fn tell(&mut self, input: Input) {
        let requests = self.machine.step(input, self.now);
        let pages = requests.iter().filter(|request| matches!(request, Request::Page { .. }));
        assert!(pages.count() <= 2, "one listing at a time");
        self.asked.extend(requests.into_iter().map(Asked::Machine));
        self.replay.take(&mut self.events);
    }

    fn notice(&mut self, notice: Notice) {
        if self.connected && self.stream {
            self.notices.push(notice);
        }
    }

    fn list_moved(&mut self, kind: ListKind) {
        self.server.generation += 1;
        self.notice(Notice::List(kind));
    }

    fn content_moved(&mut self, key: u8) {
        if self.server.watched.contains(&uri(key)) {
            self.notice(Notice::Updated(uri(key)));
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::SetTool(key, version) => {
                if self.server.tools.insert(key, version) != Some(version) {
                    self.list_moved(ListKind::Tools);
                }
            }
            Step::RemoveTool(key) => {
                if self.server.tools.remove(&key).is_some() {
                    self.list_moved(ListKind::Tools);
                }
            }
            Step::SetResource(key, version) => match self.server.resources.insert(key, version) {
                Some(old) if old == version => {}
                Some(_) => self.content_moved(key),
                None => {
                    self.list_moved(ListKind::Resources);
                    self.content_moved(key);
                }
            },
            Step::RemoveResource(key) => {
                if self.server.resources.remove(&key).is_some() {
                    self.list_moved(ListKind::Resources);
                    self.content_moved(key);
                }
            }
            Step::Answer(index) => self.answer(index),
            Step::Fail(index) => {
                if self.connected && !self.asked.is_empty() {
                    let index = index % self.asked.len();
                    if let Some(input) = Server::failure(&self.asked[index]) {
                        self.asked.remove(index);
                        self.arriving.push(input);
                    }
                }
            }
            Step::Arrive(index) => {
                if !self.arriving.is_empty() {
                    let input = self.arriving.remove(index % self.arriving.len());
                    self.tell(input);
                }
            }
            Step::Hear(index, again) => self.hear(index, again),
            Step::Read(key) => {
                if self.connected {
                    let (ticket, uri) = (self.machine.ticket(), uri(key));
                    self.read.insert(uri.clone());
                    self.asked.push(Asked::Read { uri, ticket });
                }
            }
            Step::Subscribe(key) => {
                if self.connected {
                    self.asked.push(Asked::Subscribe(vec![uri(key)]));
                }
            }
            Step::Unsubscribe(key) => {
                self.server.watched.remove(&uri(key));
                self.tell(Input::Unsubscribed { uris: vec![uri(key)] });
            }
            Step::Forget(key) => {
                self.reader.clear_resource(&uri(key));
                self.replay.take(&mut self.events);
            }
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms.into());
                self.tell(Input::Tick);
            }
            Step::Disconnect => self.disconnect(),
            Step::Connect => self.connect(),
            Step::StreamLost => {
                if self.connected && self.stream {
                    self.stream = false;
                    self.notices.clear();
                    self.tell(Input::StreamLost);
                }
            }
            Step::StreamBack => {
                if self.connected && !self.stream {
                    self.stream = true;
                    self.tell(Input::StreamBack);
                }
            }
        }
    }

    fn answer(&mut self, index: usize) {
        if !self.connected || self.asked.is_empty() {
            return;
        }
        let mut asked = self.asked.remove(index % self.asked.len());
        if matches!(asked, Asked::Machine(Request::Restore)) {
            asked = Asked::Subscribe(self.machine.subscriptions().cloned().collect());
        }
        let Some(input) = self.server.answer(&asked) else { return };
        // What subscribing led to is known before anything that follows it on the wire.
        if matches!(input, Input::Subscribed { .. }) {
            self.tell(input);
        } else {
            self.arriving.push(input);
        }
    }

    fn hear(&mut self, index: usize, again: bool) {
        if self.notices.is_empty() {
            return;
        }
        let index = index % self.notices.len();
        let notice = self.notices[index].clone();
        if !again {
            self.notices.remove(index);
        }
        self.tell(match notice {
            Notice::List(kind) => Input::ListNotice(kind),
            Notice::Updated(uri) => Input::Updated(uri),
        });
    }

    fn disconnect(&mut self) {
        if !self.connected {
            return;
        }
        self.connected = false;
        self.asked.clear();
        self.notices.clear();
        self.server.watched.clear();
        // Answers that were on their way may still arrive: they are late then.
        self.tell(Input::State(ConnectionState::Lost { reason: "test".into() }));
        self.tell(Input::Gone { keep: true });
    }

    fn connect(&mut self) {
        if self.connected {
            return;
        }
        self.connected = true;
        self.stream = true;
        let lists = vec![List::Tools, List::Resources];
        self.tell(Input::Connected(Offer { lists, announced: ListKinds::ALL, is_restored: false }));
    }

    /// Lets everything arrive that is under way.
    fn come_to_rest(&mut self) {
        self.step(&Step::Connect);
        self.step(&Step::StreamBack);
        for _ in 0..1000 {
            self.step(&Step::Hear(0, false));
            self.step(&Step::Answer(0));
            self.step(&Step::Arrive(0));
            self.step(&Step::Wait(50));
            let is_busy = !(self.asked.is_empty() && self.arriving.is_empty());
            if !is_busy && self.notices.is_empty() && self.machine.deadline().is_none() {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn check(&self) {
        let tools: Vec<_> =
            self.machine.lists().tools.items().iter().map(|tool| (**tool).clone()).collect();
        assert_eq!(tools, self.server.tools(), "the tools are those of the server");
        let resources: Vec<_> =
            self.machine.lists().resources.items().iter().map(|item| (**item).clone()).collect();
        assert_eq!(resources, self.server.resources(), "the resources are those of the server");
        let watched: BTreeSet<_> = self.machine.subscriptions().cloned().collect();
        assert_eq!(watched, self.server.watched, "the server watches what the mirror thinks");
        let mut contents = BTreeMap::new();
        for uri in &self.read {
            let Some(kept) = self.reader.resource(uri) else { continue };
            if self.machine.is_subscribed(uri) {
                let true_content = self.server.read(uri).map(|content| content.contents).ok();
                assert_eq!(Some(&kept.contents), true_content.as_ref(), "{uri} is current");
            }
            contents.insert(uri.clone(), kept.contents.clone());
        }
        let state = Replay {
            tools: self.machine.lists().tools.items().to_vec(),
            resources: self.machine.lists().resources.items().to_vec(),
            subscriptions: self.machine.subscriptions().cloned().collect(),
            contents,
            connection: Some(self.machine.connection().clone()),
        };
        assert_eq!(self.replay, state, "the events rebuild the state");
    }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0u8..5;
    let step = prop_oneof![
        4 => (key.clone(), 0u8..3).prop_map(|(key, version)| Step::SetTool(key, version)),
        2 => key.clone().prop_map(Step::RemoveTool),
        4 => (key.clone(), 0u8..3).prop_map(|(key, version)| Step::SetResource(key, version)),
        2 => key.clone().prop_map(Step::RemoveResource),
        8 => any::<usize>().prop_map(Step::Answer),
        1 => any::<usize>().prop_map(Step::Fail),
        8 => any::<usize>().prop_map(Step::Arrive),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(index, again)| Step::Hear(index, again)),
        4 => key.clone().prop_map(Step::Read),
        3 => key.clone().prop_map(Step::Subscribe),
        1 => key.clone().prop_map(Step::Unsubscribe),
        1 => key.prop_map(Step::Forget),
        3 => (0u16..400).prop_map(Step::Wait),
        1 => Just(Step::Disconnect),
        2 => Just(Step::Connect),
        1 => Just(Step::StreamLost),
        2 => Just(Step::StreamBack),
    ];
    prop::collection::vec(step, 1..120)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn once_things_are_quiet_the_mirror_equals_the_server(
        steps in steps(),
        strict_cursors in any::<bool>(),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(strict_cursors);
            for step in &steps {
                world.step(step);
            }
            world.come_to_rest();
            world.check();
        });
    }
}
