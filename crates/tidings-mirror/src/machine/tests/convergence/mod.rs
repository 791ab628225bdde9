//! The law of the mirror: whatever the order, loss, duplication and delay of notices, answers and
//! disconnects, once all is quiet the mirror equals the server, and the events replayed from the
//! start rebuild the same state.

mod server;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use rmcp::model::ResourceContents;
use tidings_core::{ListKind, ListKinds};
use tokio::time::Instant;

use self::server::{Asked, Server, key_of, uri};
use super::*;
use crate::cache::{self, Reader};
use crate::config::CacheLimits;
use crate::events::{Cause, ContentKey, Events, ListChange};
use crate::item::Item;
use crate::lists::Listed;

/// Why a connection ends.
#[derive(Clone, Copy, Debug)]
enum Why {
    Lost,
    /// The user disconnects and keeps everything.
    Asked,
}

#[derive(Clone, Debug)]
enum Step {
    SetTool(u8, u8),
    RemoveTool(u8),
    SetResource(u8, u8),
    RemoveResource(u8),
    /// A listed resource cannot be read any more.
    Hide(u8),
    /// It can be read again.
    Show(u8),
    /// A tool becomes invalid, or valid again.
    TurnOdd(u8),
    /// A resource grows beyond the limit of answers, or shrinks again.
    Outgrow(u8),
    /// Cursors become endless, or end again.
    Repeat,
    /// The server sends unexpected notices.
    Babble,
    /// The server announces a sub-resource instead of the watched resource.
    HearPart(usize),
    /// The server processes a request and answers.
    Answer(usize),
    /// A request fails in transit.
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
    Disconnect(Why),
    Connect,
    StreamLost,
    StreamBack,
}

/// The state that the events describe.
#[derive(Debug, Default, PartialEq)]
struct Replay {
    tools: Vec<Arc<Item<Tool>>>,
    resources: Vec<Arc<Item<Resource>>>,
    subscriptions: BTreeSet<Arc<str>>,
    contents: BTreeMap<Arc<str>, Vec<ResourceContents>>,
    /// Watched resources that were announced as gone and not as returned.
    gone: BTreeSet<Arc<str>>,
    connection: Option<ConnectionState>,
}

fn replay_list<T: Listed + std::fmt::Debug>(list: &mut Vec<Arc<Item<T>>>, change: &ListChange<T>) {
    if change.error.is_some() {
        assert_eq!(**list, *change.items, "a list that failed to load stays as it was");
        return;
    }
    let mut keys: BTreeMap<String, Arc<Item<T>>> =
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
                Event::SubscriptionsChanged { uris, .. } => {
                    self.gone.retain(|uri| uris.contains(uri));
                    self.subscriptions = uris;
                }
                Event::ResourceContentChanged { uri, content, cause, .. } => {
                    let was_gone = self.gone.remove(&uri);
                    assert_eq!(was_gone, cause == Cause::Returned, "what comes back was gone");
                    self.contents.insert(uri, content.contents.clone());
                }
                Event::ResourceGone { uri, .. } => {
                    assert!(!self.contents.contains_key(&uri), "what is gone is not kept");
                    assert!(self.gone.insert(uri), "it is told once");
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
    fn new(strict_cursors: bool, strict_watching: bool) -> Self {
        let sender = Sender::new(256);
        let events = sender.receiver();
        let (reader, writer) = cache::cache(CacheLimits::default(), sender.clone());
        let merging =
            Merging { quiet: Duration::from_millis(25), max_wait: Duration::from_millis(250) };
        let rules = Rules::of(merging, 1000);
        let mut world = Self {
            server: Server { strict_cursors, strict_watching, ..Server::default() },
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
            Step::SetTool(..)
            | Step::RemoveTool(_)
            | Step::SetResource(..)
            | Step::RemoveResource(_)
            | Step::Hide(_)
            | Step::Show(_) => self.change(step),
            Step::TurnOdd(_) | Step::Outgrow(_) | Step::Repeat | Step::Babble => {
                self.imperfect(step);
            }
            Step::HearPart(index) => self.hear_part(index),
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
            Step::Read(_) | Step::Subscribe(_) | Step::Unsubscribe(_) | Step::Forget(_) => {
                self.request(step);
            }
            Step::Wait(ms) => {
                self.now += Duration::from_millis(ms.into());
                self.tell(Input::Tick);
            }
            Step::Disconnect(why) => self.disconnect(why),
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

    /// Changes in the server.
    fn change(&mut self, step: &Step) {
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
            Step::Hide(key) => {
                if self.server.hidden.insert(key) && self.server.resources.contains_key(&key) {
                    self.content_moved(key);
                }
            }
            Step::Show(key) => {
                if self.server.hidden.remove(&key) && self.server.resources.contains_key(&key) {
                    self.content_moved(key);
                }
            }
            ref other => unreachable!("{other:?} is not a change in the server"),
        }
    }

    /// Requests of the mirror's user.
    fn request(&mut self, step: &Step) {
        match *step {
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
            ref other => unreachable!("{other:?} is not a request"),
        }
    }

    /// Faults of servers.
    fn imperfect(&mut self, step: &Step) {
        match *step {
            Step::TurnOdd(key) => {
                if !self.server.odd.remove(&key) {
                    self.server.odd.insert(key);
                }
                self.list_moved(ListKind::Tools);
            }
            Step::Outgrow(key) => {
                if !self.server.large.remove(&key) {
                    self.server.large.insert(key);
                }
                self.content_moved(key);
            }
            // The valid items stay the same, so there is no event.
            Step::Repeat => self.server.is_endless = !self.server.is_endless,
            Step::Babble if self.connected && self.stream => {
                self.tell(Input::Updated("other://thing".into(), None));
                self.tell(Input::Unknown("notifications/weather".into()));
            }
            _ => {}
        }
    }

    fn answer(&mut self, index: usize) {
        if !self.connected || self.asked.is_empty() {
            return;
        }
        let mut asked = self.asked.remove(index % self.asked.len());
        if let Asked::Machine(request @ (Request::Restore | Request::Watch { .. })) = &asked {
            let is_meant = |watched: &&Arc<str>| match request {
                Request::Watch { uri } => uri == *watched,
                _ => true,
            };
            asked =
                Asked::Subscribe(self.machine.subscriptions().filter(is_meant).cloned().collect());
        }
        let Some(input) = self.server.answer(&asked) else { return };
        // The result of subscribing is known before anything that follows it on the wire.
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
            Notice::List(kind) => Input::ListNotice(kind, None),
            Notice::Updated(uri) => Input::Updated(uri, None),
        });
    }

    fn hear_part(&mut self, index: usize) {
        if self.notices.is_empty() {
            return;
        }
        let index = index % self.notices.len();
        if let Notice::Updated(uri) = self.notices[index].clone() {
            self.notices.remove(index);
            self.tell(Input::Updated(format!("{uri}/part").into(), None));
        }
    }

    fn disconnect(&mut self, why: Why) {
        if !self.connected {
            return;
        }
        self.connected = false;
        self.asked.clear();
        self.notices.clear();
        self.server.watched.clear();
        // Answers in transit may still arrive, too late.
        let reason = "test".into();
        match why {
            Why::Lost => {
                self.tell(Input::State(ConnectionState::Lost { reason }));
                self.tell(Input::Gone { keep: true });
            }
            Why::Asked => {
                self.tell(Input::Gone { keep: true });
                self.tell(Input::State(ConnectionState::Disconnected { reason }));
            }
        }
    }

    fn connect(&mut self) {
        if self.connected {
            return;
        }
        self.connected = true;
        self.stream = true;
        let lists = vec![List::Tools, List::Resources];
        let announced = ListKinds::ALL;
        self.tell(Input::Connected(Offer { lists, announced, ..Offer::default() }));
    }

    /// Delivers everything in transit.
    fn come_to_rest(&mut self) {
        self.step(&Step::Connect);
        self.step(&Step::StreamBack);
        for _ in 0..5000 {
            self.step(&Step::Hear(0, false));
            self.step(&Step::Answer(0));
            self.step(&Step::Arrive(0));
            self.step(&Step::Wait(50));
            let is_busy = !(self.asked.is_empty() && self.arriving.is_empty());
            if is_busy || !self.notices.is_empty() || !self.machine.only_looks() {
                continue;
            }
            // Resources that are gone and not watched are read now and then.
            let gone = self.machine.gone_resources();
            if gone.iter().all(|uri| self.server.read(uri).is_err()) {
                return;
            }
        }
        panic!("it never comes to rest");
    }

    fn check(&self) {
        let tools: Vec<_> =
            self.machine.lists().tools.items().iter().map(|tool| tool.known().clone()).collect();
        assert_eq!(tools, self.server.tools(), "the tools are those of the server");
        let odd: Vec<_> = self.machine.lists().tools.odd().iter().map(|odd| odd.index).collect();
        assert_eq!(odd, self.server.odd_tools(), "what cannot be read is told apart");
        let resources: Vec<_> = self
            .machine
            .lists()
            .resources
            .items()
            .iter()
            .map(|item| item.known().clone())
            .collect();
        assert_eq!(resources, self.server.resources(), "the resources are those of the server");
        let watched: BTreeSet<_> = self.machine.subscriptions().cloned().collect();
        let gone = self.machine.gone_resources();
        let unwatched: BTreeSet<_> = watched.difference(&self.server.watched).collect();
        assert!(self.server.watched.is_subset(&watched), "the mirror knows what is watched");
        assert!(unwatched.iter().all(|uri| gone.contains(*uri)), "the server watches all else");
        let mut contents = BTreeMap::new();
        for uri in &self.read {
            let Some(kept) = self.reader.resource(uri) else { continue };
            if self.server.large.contains(&key_of(uri)) {
                // It cannot be read, so the last content is kept, but not as current.
                let fresh = self.machine.cache().fresh(uri, self.now);
                assert!(fresh.is_none(), "{uri} cannot be read");
            } else if self.machine.is_subscribed(uri) {
                let true_content = self.server.read(uri).map(|content| content.contents).ok();
                assert_eq!(Some(&kept.contents), true_content.as_ref(), "{uri} is current");
            }
            contents.insert(uri.clone(), kept.contents.clone());
        }
        for uri in &self.replay.gone {
            assert!(self.server.read(uri).is_err(), "{uri} was told to be gone and can be read");
        }
        let state = Replay {
            tools: self.machine.lists().tools.items().to_vec(),
            resources: self.machine.lists().resources.items().to_vec(),
            subscriptions: self.machine.subscriptions().cloned().collect(),
            contents,
            gone: self.machine.gone_resources(),
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
        2 => key.clone().prop_map(Step::Hide),
        3 => key.clone().prop_map(Step::Show),
        1 => key.clone().prop_map(Step::TurnOdd),
        1 => key.clone().prop_map(Step::Outgrow),
        1 => Just(Step::Repeat),
        1 => Just(Step::Babble),
        2 => any::<usize>().prop_map(Step::HearPart),
        8 => any::<usize>().prop_map(Step::Answer),
        1 => any::<usize>().prop_map(Step::Fail),
        8 => any::<usize>().prop_map(Step::Arrive),
        6 => (any::<usize>(), any::<bool>()).prop_map(|(index, again)| Step::Hear(index, again)),
        4 => key.clone().prop_map(Step::Read),
        3 => key.clone().prop_map(Step::Subscribe),
        1 => key.clone().prop_map(Step::Unsubscribe),
        1 => key.prop_map(Step::Forget),
        3 => (0u16..400).prop_map(Step::Wait),
        1 => prop_oneof![Just(Why::Lost), Just(Why::Asked)].prop_map(Step::Disconnect),
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
        strict_watching in any::<bool>(),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut world = World::new(strict_cursors, strict_watching);
            for step in &steps {
                world.step(step);
            }
            world.come_to_rest();
            world.check();
        });
    }
}
