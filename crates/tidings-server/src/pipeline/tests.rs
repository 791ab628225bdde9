//! The promises, as laws: whatever happens in whatever order, under paused time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use rmcp::model::{Implementation, ProtocolVersion, ResourceTemplate, Tool};
use tidings_core::{Change, Fingerprint, ListKind, ListKinds, ResourceUri};

use super::{Events, Listener, SubscribeError};
use crate::about::About;
use crate::answer::{AnswerError, Contents};
use crate::catalog::{Kind, Stored};
use crate::config::Config;
use crate::context::Context;
use crate::edit::EditError;
use crate::era::VersionRules;
use crate::hub::Hub;
use crate::notice::{self, Wire};
use crate::outbox::Next;
use crate::shelf::{Handle, Shelf};
use crate::source::Source;

/// Pages that can be written, read slowly, or gone.
#[derive(Clone, Default)]
struct Pages {
    texts: Arc<Mutex<BTreeMap<String, u8>>>,
    versioned: bool,
    slow: Duration,
}

impl Pages {
    fn now(&self, uri: &str) -> Option<u8> {
        self.texts.lock().unwrap().get(uri).copied()
    }
}

impl Pages {
    fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
        shelf.add(ResourceTemplate::new("p://{name}", "page"))?;
        Ok(self)
    }
}

impl Source for Pages {
    async fn read(&self, uri: &ResourceUri, _: &Context) -> Result<Contents, AnswerError> {
        // Slow sources answer with what was there when they were asked.
        let text = self.now(uri.as_ref());
        tokio::time::sleep(self.slow).await;
        let text = text.ok_or_else(|| AnswerError::not_found(uri.as_ref()))?;
        Ok(Contents::text(uri, text.to_string()))
    }

    fn version(&self, uri: &ResourceUri) -> Option<Fingerprint> {
        self.versioned.then(|| match self.now(uri.as_ref()) {
            Some(text) => Fingerprint::of_bytes(&[text]),
            None => Fingerprint::ABSENT,
        })
    }
}

/// Pages under another name.
struct Other(Pages);
impl Source for Other {
    async fn read(&self, uri: &ResourceUri, context: &Context) -> Result<Contents, AnswerError> {
        self.0.read(uri, context).await
    }
}

const URIS: [&str; 3] = ["p://a", "p://b", "p://c"];
const TOOLS: [&str; 3] = ["x", "y", "z"];
const READERS: usize = 3;
const PLAIN: Wire = Wire::Legacy { titled: false, numbered: false };
/// Longer than a change can wait to be checked, slow reads included.
const SETTLED: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
enum Step {
    Write {
        uri: usize,
        text: u8,
    },
    Erase {
        uri: usize,
    },
    /// A source that speaks of a change where there was none.
    Cry {
        uri: usize,
    },
    CryAll,
    Switch {
        tool: usize,
        on: bool,
    },
    Describe {
        tool: usize,
        text: u8,
    },
    SwitchAll {
        on: bool,
    },
    Wait {
        ms: u64,
    },
    Read {
        reader: usize,
    },
    Watch {
        reader: usize,
        uri: usize,
    },
    Unwatch {
        reader: usize,
        uri: usize,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let uri = 0..URIS.len();
    let tool = 0..TOOLS.len();
    let reader = 0..READERS;
    prop_oneof![
        4 => (uri.clone(), 0..3_u8).prop_map(|(uri, text)| Step::Write { uri, text }),
        1 => uri.clone().prop_map(|uri| Step::Erase { uri }),
        2 => uri.clone().prop_map(|uri| Step::Cry { uri }),
        1 => Just(Step::CryAll),
        3 => (tool.clone(), any::<bool>()).prop_map(|(tool, on)| Step::Switch { tool, on }),
        2 => (tool, 0..2_u8).prop_map(|(tool, text)| Step::Describe { tool, text }),
        1 => any::<bool>().prop_map(|on| Step::SwitchAll { on }),
        5 => prop_oneof![Just(1_u64), Just(10), Just(26), Just(300)].prop_map(|ms| Step::Wait { ms }),
        4 => reader.clone().prop_map(|reader| Step::Read { reader }),
        2 => (reader.clone(), uri.clone()).prop_map(|(reader, uri)| Step::Watch { reader, uri }),
        1 => (reader, uri).prop_map(|(reader, uri)| Step::Unwatch { reader, uri }),
    ]
}

/// What a reader would see of a thing: a page, or the tools.
type Seen = Option<Vec<u8>>;

struct Reader {
    listener: Listener,
    attached: u64,
    /// What it saw when it began to follow a thing, or read it after its last notice.
    knows: BTreeMap<String, Seen>,
    /// Things of which it was told while they were dirty again, after a long wait: it may have
    /// seen already what the next notice tells of.
    ahead: BTreeSet<String>,
    hurried: usize,
}

struct World {
    hub: Hub,
    shelf: Shelf,
    pages: Pages,
    tools: Vec<Handle<Tool>>,
    shown: BTreeMap<String, (bool, u8)>,
    readers: Vec<Reader>,
}

fn tool(name: &str, text: u8) -> Tool {
    Tool::new(name.to_owned(), text.to_string(), serde_json::Map::new())
}

impl World {
    async fn new(pages: Pages) -> Self {
        let hub = Hub::new("world", "1");
        let mut kept = None;
        let build = |shelf: Shelf| {
            kept = Some(shelf.clone());
            pages.clone().on(&shelf)
        };
        hub.add("pages", build).await.unwrap();
        let shelf = kept.unwrap();
        let tools = TOOLS.map(|name| shelf.add(tool(name, 0)).unwrap()).into();
        let shown = TOOLS.iter().map(|name| ((*name).to_owned(), (true, 0))).collect();
        tokio::time::sleep(SETTLED).await;
        let mut world = Self { hub, shelf, pages, tools, shown, readers: Vec::new() };
        for _ in 0..READERS {
            let listener = Listener::new(world.hub.pipeline(), PLAIN, About::nobody());
            listener.follow_lists([ListKind::Tools].into_iter().collect());
            let attached = listener.outbox().attach();
            let knows = [("tools".to_owned(), world.check("tools"))].into();
            let ahead = BTreeSet::new();
            world.readers.push(Reader { listener, attached, knows, ahead, hurried: 0 });
        }
        world
    }

    /// What a client sees that asks now; it must be what was done, whoever was told of it.
    fn check(&self, thing: &str) -> Seen {
        if thing != "tools" {
            return self.pages.now(thing).map(|text| vec![text]);
        }
        let listing = self.hub.pipeline().catalog.listing(Kind::Tool);
        let listed = listing.items.iter().flat_map(|item| match item {
            Stored::Tool(tool) => {
                let text = tool.description.as_deref().unwrap_or_default();
                [tool.name.as_bytes()[0], text.parse().unwrap()]
            }
            other => panic!("{other:?} is no tool"),
        });
        let listed: Vec<u8> = listed.collect();
        let done = self.shown.iter().filter(|(_, (on, _))| *on);
        let done: Vec<u8> =
            done.flat_map(|(name, (_, text))| [name.as_bytes()[0], *text]).collect();
        assert_eq!(listed, done, "not readable: the list is not what was made of it");
        Some(listed)
    }

    async fn step(&mut self, step: Step) {
        match step {
            Step::Write { uri, text } => {
                self.pages.texts.lock().unwrap().insert(URIS[uri].to_owned(), text);
                self.shelf.changed(URIS[uri]).unwrap();
            }
            Step::Erase { uri } => {
                self.pages.texts.lock().unwrap().remove(URIS[uri]);
                self.shelf.changed(URIS[uri]).unwrap();
            }
            Step::Cry { uri } => self.shelf.changed(URIS[uri]).unwrap(),
            Step::CryAll => self.shelf.changed(Change::below("p://")).unwrap(),
            Step::Switch { tool, on } => {
                let handle = &self.tools[tool];
                if on {
                    handle.enable().unwrap();
                } else {
                    handle.disable().unwrap();
                }
                self.shown.get_mut(TOOLS[tool]).unwrap().0 = on;
            }
            Step::Describe { tool: index, text } => {
                self.tools[index].update(tool(TOOLS[index], text)).unwrap();
                self.shown.get_mut(TOOLS[index]).unwrap().1 = text;
            }
            Step::SwitchAll { on } => self.switch_all(on).await,
            Step::Wait { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Read { reader } => self.read(reader),
            Step::Watch { reader, uri } => {
                let uri = ResourceUri::parse(URIS[uri]).unwrap();
                let follows = self.readers[reader].knows.contains_key(uri.as_ref());
                self.readers[reader].listener.subscribe(&uri).await.unwrap();
                if !follows {
                    let seen = self.check(uri.as_ref());
                    self.readers[reader].knows.insert(uri.to_string(), seen);
                }
            }
            Step::Unwatch { reader, uri } => {
                let uri = ResourceUri::parse(URIS[uri]).unwrap();
                self.readers[reader].listener.unsubscribe(&uri);
                self.readers[reader].knows.remove(uri.as_ref());
            }
        }
        for reader in &self.readers {
            let followed = reader.knows.len();
            assert!(reader.listener.outbox().waiting() <= followed, "bounded: one for each thing");
            assert!(reader.listener.outbox().queued() <= followed, "bounded: and no more is kept");
        }
    }

    async fn switch_all(&mut self, on: bool) {
        let mut transaction = self.shelf.transaction();
        for handle in &self.tools {
            if on {
                transaction.enable(handle);
            } else {
                transaction.disable(handle);
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        transaction.commit().unwrap();
        self.shown.values_mut().for_each(|(shown, _)| *shown = on);
    }

    fn read(&mut self, reader: usize) {
        let things = drain(&self.readers[reader]);
        let hurried = self.readers[reader].listener.outbox().hurried();
        for thing in things {
            let seen = self.check(&thing);
            let reader = &mut self.readers[reader];
            let before = reader.knows.insert(thing.clone(), seen.clone());
            let before = before.unwrap_or_else(|| panic!("only who asked: told of {thing}"));
            let ahead = reader.ahead.remove(&thing) || hurried > reader.hurried;
            assert!(before != seen || ahead, "spurious: {thing} is as it was");
            if hurried > reader.hurried {
                reader.ahead.insert(thing);
            }
        }
        self.readers[reader].hurried = hurried;
    }
}

/// Everything that waits for a reader, as the things it is told of.
fn drain(reader: &Reader) -> Vec<String> {
    let mut things = Vec::new();
    let mut context = std::task::Context::from_waker(Waker::noop());
    while let Poll::Ready(Next::Frames(frames)) =
        reader.listener.outbox().poll_next(reader.attached, &mut context)
    {
        for event in notice::events(&frames) {
            let message: serde_json::Value = serde_json::from_slice(&notice::line(&event)).unwrap();
            let thing = message["params"]["uri"].as_str().unwrap_or("tools").to_owned();
            assert!(!things.contains(&thing), "told of {thing} twice at once");
            things.push(thing);
        }
    }
    things
}

fn in_paused_time(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(test);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Nothing lost, nothing spurious, readable first, only who asked, bounded.
    #[test]
    fn every_reader_ends_up_knowing_what_there_is(
        steps in prop::collection::vec(step(), 1..60),
        versioned: bool,
        slow in prop_oneof![Just(0_u64), Just(40)],
    ) {
        in_paused_time(async move {
            let slow = Duration::from_millis(slow);
            let pages = Pages { versioned, slow, ..Pages::default() };
            let mut world = World::new(pages).await;
            for step in steps {
                world.step(step).await;
            }
            tokio::time::sleep(SETTLED).await;
            for reader in 0..READERS {
                world.read(reader);
                for (thing, known) in &world.readers[reader].knows {
                    assert_eq!(known, &world.check(thing), "lost: the last change of {thing}");
                }
            }
            tokio::time::sleep(SETTLED).await;
            for reader in &world.readers {
                assert!(drain(reader).is_empty(), "spurious: nothing changed any more");
            }
        });
    }

    /// Honest: a session is told of the lists its capabilities name, and of no other.
    #[test]
    fn capabilities_say_what_a_session_is_told_of(bits in 0..8_u8, version in 0..5_usize) {
        in_paused_time(async move {
            let kinds: ListKinds = ListKind::ALL
                .into_iter()
                .filter(|kind| bits & (1 << kind.index()) != 0)
                .collect();
            let version = &ProtocolVersion::KNOWN_VERSIONS[version];
            let mut config = Config::new("honest", "1");
            config.versions = VersionRules::everything().with(version.as_str(), kinds);
            let hub = Hub::with_config(config);
            let told = hub.pipeline().config.versions.lists_for(version.as_str());
            let capabilities = serde_json::to_value(crate::era::capabilities(told)).unwrap();
            let listener = hub.pipeline().legacy_listener(version, &Implementation::default(), Events::Plain);
            listener.greet(told);
            let attached = listener.outbox().attach();
            let mut context = std::task::Context::from_waker(Waker::noop());
            let mut heard = String::new();
            while let Poll::Ready(Next::Frames(frames)) =
                listener.outbox().poll_next(attached, &mut context)
            {
                heard += std::str::from_utf8(&frames).unwrap();
            }
            for kind in ListKind::ALL {
                let method = format!("notifications/{kind}/list_changed");
                let said = capabilities[kind.as_str()]["listChanged"].as_bool().unwrap();
                assert_eq!(heard.matches(&method).count(), usize::from(said), "{kind}");
            }
        });
    }
}

#[test]
fn a_stalled_reader_is_told_once_and_delays_nobody() {
    in_paused_time(async {
        let pages = Pages { versioned: true, ..Pages::default() };
        let mut world = World::new(pages).await;
        for reader in 0..2 {
            world.step(Step::Watch { reader, uri: 0 }).await;
        }
        let mut prompt = 0;
        for change in 0..1000_u32 {
            let text = u8::try_from(change % 251).unwrap();
            world.step(Step::Write { uri: 0, text }).await;
            world.step(Step::Wait { ms: 26 }).await;
            prompt += drain(&world.readers[0]).len();
        }
        assert_eq!(prompt, 1000, "the reader that reads is not delayed");
        assert_eq!(world.readers[1].listener.outbox().queued(), 1, "memory is flat");
        assert_eq!(drain(&world.readers[1]), ["p://a"]);
    });
}

#[test]
fn a_notice_is_held_back_while_its_thing_is_dirty_again() {
    in_paused_time(async {
        let mut world = World::new(Pages { versioned: true, ..Pages::default() }).await;
        world.step(Step::Watch { reader: 0, uri: 0 }).await;
        world.step(Step::Write { uri: 0, text: 1 }).await;
        world.step(Step::Wait { ms: 26 }).await;
        world.step(Step::Write { uri: 0, text: 2 }).await;
        assert!(drain(&world.readers[0]).is_empty(), "it changed again and was not checked");
        world.step(Step::Wait { ms: 26 }).await;
        assert_eq!(drain(&world.readers[0]), ["p://a"]);
        world.step(Step::Wait { ms: 300 }).await;
        assert!(drain(&world.readers[0]).is_empty());
    });
}

#[test]
fn a_thing_that_never_rests_is_told_of_all_the_same() {
    in_paused_time(async {
        let mut world = World::new(Pages { versioned: true, ..Pages::default() }).await;
        world.step(Step::Watch { reader: 0, uri: 0 }).await;
        let mut heard = 0;
        for change in 0..3000_u32 {
            world.step(Step::Write { uri: 0, text: u8::try_from(change % 251).unwrap() }).await;
            heard += drain(&world.readers[0]).len();
            world.step(Step::Wait { ms: 1 }).await;
        }
        assert!((5..=12).contains(&heard), "one in 250 to 500 ms: {heard} in 3 s");
    });
}

#[test]
fn content_that_went_back_before_it_was_read_is_not_told() {
    in_paused_time(async {
        let mut world = World::new(Pages { versioned: true, ..Pages::default() }).await;
        world.step(Step::Write { uri: 0, text: 1 }).await;
        world.step(Step::Watch { reader: 0, uri: 0 }).await;
        for text in [2, 1] {
            world.step(Step::Write { uri: 0, text }).await;
            world.step(Step::Wait { ms: 300 }).await;
        }
        assert!(drain(&world.readers[0]).is_empty());
    });
}

#[test]
fn a_reader_that_keeps_up_hears_of_both_when_content_changes_and_goes_back() {
    in_paused_time(async {
        let mut world = World::new(Pages { versioned: true, ..Pages::default() }).await;
        world.step(Step::Write { uri: 0, text: 1 }).await;
        world.step(Step::Watch { reader: 0, uri: 0 }).await;
        let mut heard = 0;
        for text in [2, 1] {
            world.step(Step::Write { uri: 0, text }).await;
            world.step(Step::Wait { ms: 300 }).await;
            heard += drain(&world.readers[0]).len();
        }
        assert_eq!(heard, 2);
    });
}

#[test]
fn a_slow_source_delays_only_its_own_resources() {
    in_paused_time(async {
        let slow = Pages { slow: Duration::from_hours(1), ..Pages::default() };
        let mut world = World::new(Pages { versioned: true, ..Pages::default() }).await;
        let build = |shelf: Shelf| {
            shelf.add(ResourceTemplate::new("slow://{name}", "slow page"))?;
            Ok(Other(slow))
        };
        world.hub.add("slow", build).await.unwrap();
        let stuck = ResourceUri::parse("slow://a").unwrap();
        world.readers[1].listener.subscribe(&stuck).await.unwrap();
        world.hub.changed("slow://a").unwrap();
        world.step(Step::Watch { reader: 0, uri: 0 }).await;
        world.step(Step::Write { uri: 0, text: 9 }).await;
        world.step(Step::Wait { ms: 26 }).await;
        assert_eq!(drain(&world.readers[0]), ["p://a"]);
    });
}

#[test]
fn a_subscription_that_is_given_up_half_way_leaves_nothing() {
    in_paused_time(async {
        let pages = Pages { slow: Duration::from_mins(1), ..Pages::default() };
        let world = World::new(pages).await;
        let uri = ResourceUri::parse("p://a").unwrap();
        let listener = &world.readers[0].listener;
        let subscribe = listener.subscribe(&uri);
        let gave_up = tokio::time::timeout(Duration::from_secs(1), subscribe).await;
        assert!(gave_up.is_err());
        assert!(!listener.outbox().follows(&uri));
        assert!(world.hub.pipeline().subscriptions.get("p://a").is_none());
    });
}

#[test]
fn limits_are_kept_and_said() {
    in_paused_time(async {
        let mut config = Config::new("small", "1");
        config.limits.subscriptions_per_listener = 2;
        config.limits.subscriptions = 3;
        let hub = Hub::with_config(config);
        let pages = Pages { versioned: true, ..Pages::default() };
        hub.add("pages", |shelf| pages.on(&shelf)).await.unwrap();
        let uri = |name: &str| ResourceUri::parse(&format!("p://{name}")).unwrap();
        let one = Listener::new(hub.pipeline(), PLAIN, About::nobody());
        let two = Listener::new(hub.pipeline(), PLAIN, About::nobody());
        for name in ["a", "b", "a"] {
            one.subscribe(&uri(name)).await.unwrap();
        }
        assert_eq!(one.subscribe(&uri("c")).await, Err(SubscribeError::TooMany(2)));
        two.subscribe(&uri("a")).await.unwrap();
        let full = two.subscribe(&uri("b")).await.unwrap_err();
        assert_eq!(
            full.to_string(),
            "this server holds 3 subscriptions, which is as many as it may"
        );
        drop(one);
        two.subscribe(&uri("b")).await.unwrap();
    });
}

#[test]
fn a_long_uri_counts_for_several() {
    in_paused_time(async {
        let mut config = Config::new("small", "1");
        config.limits.subscriptions_per_listener = 3;
        let hub = Hub::with_config(config);
        let pages = Pages { versioned: true, ..Pages::default() };
        hub.add("pages", |shelf| pages.on(&shelf)).await.unwrap();
        let one = Listener::new(hub.pipeline(), PLAIN, About::nobody());
        let uri =
            |length: usize| ResourceUri::parse(&format!("p://{}", "x".repeat(length - 4))).unwrap();
        assert_eq!(one.subscribe(&uri(769)).await, Err(SubscribeError::TooMany(3)));
        one.subscribe(&uri(512)).await.unwrap();
        assert_eq!(one.subscribe(&uri(257)).await, Err(SubscribeError::TooMany(3)));
        one.subscribe(&uri(256)).await.unwrap();
        one.unsubscribe(&uri(512));
        one.subscribe(&uri(257)).await.unwrap();
    });
}

#[test]
fn everything_a_listener_held_is_gone_with_it() {
    in_paused_time(async {
        let mut world = World::new(Pages { versioned: true, ..Pages::default() }).await;
        for uri in 0..URIS.len() {
            world.step(Step::Watch { reader: 0, uri }).await;
        }
        assert!(world.hub.metrics().contains("tidings_subscriptions 3"));
        world.readers.clear();
        let metrics = world.hub.metrics();
        assert!(metrics.contains("tidings_subscriptions 0"), "{metrics}");
        assert!(metrics.contains("tidings_listeners 0"), "{metrics}");
    });
}
