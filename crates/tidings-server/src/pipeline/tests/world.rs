//! A small world for the laws: pages that are written and read, tools that come and go, readers with
//! labels, and a model of what each of them must see.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use rmcp::model::{Resource, ResourceTemplate, Tool};
use tidings_core::{Change, Fingerprint, ListKind, ResourceUri};

use crate::about::About;
use crate::answer::{AnswerError, Contents};
use crate::catalog::{Kind, Stored};
use crate::context::Context;
use crate::edit::EditError;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::labels::Labels;
use crate::notice::{self, Wire};
use crate::offer::Offer;
use crate::outbox::Next;
use crate::pipeline::Listener;
use crate::shelf::{Handle, Shelf};
use crate::source::Source;
use crate::viewers::{Scope, Viewer, Word};

/// Pages that can be written, read slowly, or gone.
#[derive(Clone, Default)]
pub(super) struct Pages {
    pub(super) texts: Arc<Mutex<BTreeMap<String, u8>>>,
    pub(super) versioned: bool,
    pub(super) slow: Duration,
}

impl Pages {
    fn now(&self, uri: &str) -> Option<u8> {
        self.texts.lock().unwrap().get(uri).copied()
    }
}

impl Pages {
    pub(super) fn on(self, shelf: &Shelf) -> Result<Self, EditError> {
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
pub(super) struct Other(pub(super) Pages);
impl Source for Other {
    async fn read(&self, uri: &ResourceUri, context: &Context) -> Result<Contents, AnswerError> {
        self.0.read(uri, context).await
    }
}

pub(super) const URIS: [&str; 3] = ["p://a", "p://b", "p://c"];
const TOOLS: [&str; 3] = ["x", "y", "z"];
const LABELS: [&str; 2] = ["role:a", "role:b"];
/// The labels of tokens, and the audiences of items: none is everyone.
const SETS: [&[&str]; 4] = [&[], &["role:a"], &["role:b"], &["role:a", "role:b"]];
/// The page that is a resource of its own, though the template matches it.
const OWN: &str = "p://c";
/// The last one has no name.
pub(super) const READERS: usize = 3;
pub(super) const PLAIN: Wire = Wire::Legacy { titled: false, numbered: false };
/// Longer than a change can wait to be checked, slow reads included.
pub(super) const SETTLED: Duration = Duration::from_secs(5);

#[derive(Clone, Debug)]
pub(super) enum Step {
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
    /// A tool is for others from now on.
    Confine {
        tool: usize,
        audience: usize,
    },
    /// The page that is a resource of its own, or the template of all pages, is.
    Reserve {
        template: bool,
        audience: usize,
    },
    /// A label is granted or withdrawn, for one session or for a person.
    Say {
        reader: usize,
        label: usize,
        word: Word,
        scope: Scope,
    },
    /// The token of a reader has other labels.
    Token {
        reader: usize,
        labels: usize,
    },
    /// A reader leaves and comes again, with the same labels and nothing that it watches.
    Renew {
        reader: usize,
    },
}

pub(super) fn step() -> impl Strategy<Value = Step> {
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

/// A step, or a change of who sees what.
pub(super) fn step_with_labels() -> impl Strategy<Value = Step> {
    let (reader, sets) = (0..READERS, 0..SETS.len());
    let word = prop_oneof![Just(Word::Grant), Just(Word::Withdraw)];
    let scope = prop_oneof![3 => Just(Scope::Session), 1 => Just(Scope::Person)];
    prop_oneof![
        5 => step(),
        1 => (0..TOOLS.len(), sets.clone())
            .prop_map(|(tool, audience)| Step::Confine { tool, audience }),
        1 => (any::<bool>(), sets.clone())
            .prop_map(|(template, audience)| Step::Reserve { template, audience }),
        2 => (reader.clone(), 0..LABELS.len(), word, scope)
            .prop_map(|(reader, label, word, scope)| Step::Say { reader, label, word, scope }),
        1 => (reader.clone(), sets).prop_map(|(reader, labels)| Step::Token { reader, labels }),
        1 => reader.prop_map(|reader| Step::Renew { reader }),
    ]
}

/// What a reader would see of a thing: a page, or the tools.
pub(super) type Seen = Option<Vec<u8>>;

pub(super) struct Reader {
    pub(super) listener: Listener,
    attached: u64,
    viewer: Arc<Viewer>,
    /// The labels of its token, and what was said of its own labels and when.
    token: &'static [&'static str],
    said: BTreeMap<&'static str, (usize, Word)>,
    /// What it saw when it began to follow a thing, or read it after its last notice.
    pub(super) knows: BTreeMap<String, Seen>,
    /// Things of which it was told while they were dirty again, after a long wait: it may have
    /// seen already what the next notice tells of.
    ahead: BTreeSet<String>,
    hurried: usize,
}

/// A tool as it was made.
struct Made {
    on: bool,
    text: u8,
    audience: &'static [&'static str],
}

pub(super) struct World {
    pub(super) hub: Hub,
    shelf: Shelf,
    pages: Pages,
    tools: Vec<Handle<Tool>>,
    made: BTreeMap<String, Made>,
    own_page: Handle<Resource>,
    all_pages: Handle<ResourceTemplate>,
    /// The audiences of the page and of the template.
    page_is_for: &'static [&'static str],
    pages_are_for: &'static [&'static str],
    pub(super) readers: Vec<Reader>,
    /// What was said of the person that the first readers are.
    said: BTreeMap<&'static str, (usize, Word)>,
    steps: usize,
}

fn tool(name: &str, text: u8) -> Tool {
    Tool::new(name.to_owned(), text.to_string(), serde_json::Map::new())
}

fn for_audience<T>(item: impl Into<Offer<T>>, audience: &[&str]) -> Offer<T> {
    let offer = item.into();
    if audience.is_empty() {
        return offer.everyone();
    }
    offer.audience(Labels::new(audience).unwrap())
}

impl World {
    pub(super) async fn new(pages: Pages) -> Self {
        let hub = Hub::new("world", "1");
        let mut kept = None;
        let build = |shelf: Shelf| {
            let template = shelf.add(ResourceTemplate::new("p://{name}", "page"))?;
            kept = Some((shelf, template));
            Ok(pages.clone())
        };
        hub.add("pages", build).await.unwrap();
        let (shelf, all_pages) = kept.unwrap();
        let made = |name: &&str| ((*name).to_owned(), Made { on: true, text: 0, audience: &[] });
        let mut world = Self {
            tools: TOOLS.map(|name| shelf.add(tool(name, 0)).unwrap()).into(),
            own_page: shelf.add(Resource::new(OWN, "page")).unwrap(),
            made: TOOLS.iter().map(made).collect(),
            hub,
            shelf,
            pages,
            all_pages,
            page_is_for: &[],
            pages_are_for: &[],
            readers: Vec::new(),
            said: BTreeMap::new(),
            steps: 0,
        };
        tokio::time::sleep(SETTLED).await;
        for reader in 0..READERS {
            let name = (reader + 1 < READERS).then(|| "ada".into());
            let identity = Identity { name, ..Identity::default() };
            let pipeline = world.hub.pipeline();
            let viewer = pipeline.viewers.session(identity);
            let listener = Listener::new(pipeline, PLAIN, About::nobody(), Some(viewer.clone()));
            let (said, knows, ahead) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
            let (token, attached): (&[_], _) = (&[], 0);
            let read = Reader { listener, attached, viewer, token, said, knows, ahead, hurried: 0 };
            world.readers.push(read);
            world.begin(reader);
        }
        world
    }

    /// A new listener of a reader begins.
    fn begin(&mut self, index: usize) {
        let reader = &mut self.readers[index];
        reader.listener.follow_lists([ListKind::Tools, ListKind::Resources].into_iter().collect());
        reader.attached = reader.listener.outbox().attach();
        reader.hurried = 0;
        reader.knows.clear();
        reader.ahead.clear();
        for list in ["tools", "resources"] {
            let seen = self.check(index, list);
            self.readers[index].knows.insert(list.to_owned(), seen);
        }
    }

    /// The labels that a reader must have: of each, the last word counts, and else its token.
    fn labels(&self, reader: usize) -> Vec<&'static str> {
        let Reader { token, said, .. } = &self.readers[reader];
        let person = (reader + 1 < READERS).then_some(&self.said);
        let has = |label: &&'static str| {
            let words = [Some(said), person].into_iter().flatten();
            let last = words.filter_map(|words| words.get(label)).max_by_key(|(step, _)| *step);
            last.map_or(token.contains(label), |(_, word)| *word == Word::Grant)
        };
        LABELS.into_iter().filter(has).collect()
    }

    fn sees(&self, reader: usize, audience: &[&str]) -> bool {
        audience.is_empty() || self.labels(reader).iter().any(|label| audience.contains(label))
    }

    /// What a reader sees that asks now; it must be what was done, whoever was told of it.
    pub(super) fn check(&self, reader: usize, thing: &str) -> Seen {
        let labels = self.readers[reader].viewer.labels();
        assert_eq!(labels.iter().collect::<Vec<_>>(), self.labels(reader), "labels");
        let catalog = &self.hub.pipeline().catalog;
        let is_listed = |kind| !catalog.listing(kind, &labels).items.is_empty();
        match thing {
            "tools" => Some(self.check_tools(reader, &labels)),
            "resources" => {
                let lists = [is_listed(Kind::Resource), is_listed(Kind::Template)];
                let made = [self.page_is_for, self.pages_are_for].map(|it| self.sees(reader, it));
                assert_eq!(lists, made, "not readable: the resources");
                Some(lists.map(u8::from).into())
            }
            uri => {
                let audience = if uri == OWN { self.page_is_for } else { self.pages_are_for };
                let sees = self.sees(reader, audience);
                let route = catalog.route(&ResourceUri::parse(uri).unwrap(), &labels);
                assert_eq!(route.is_ok_and(|route| !route.is_withheld), sees, "{uri}");
                let text = self.pages.now(uri).filter(|_| sees);
                text.map(|text| vec![text])
            }
        }
    }

    fn check_tools(&self, reader: usize, labels: &Labels) -> Vec<u8> {
        let listing = self.hub.pipeline().catalog.listing(Kind::Tool, labels);
        let listed = listing.items.iter().flat_map(|item| match item {
            Stored::Tool(tool) => {
                let text = tool.description.as_deref().unwrap_or_default();
                [tool.name.as_bytes()[0], text.parse().unwrap()]
            }
            other => panic!("{other:?} is no tool"),
        });
        let listed: Vec<u8> = listed.collect();
        let made = self.made.iter();
        let done = made.filter(|(_, made)| made.on && self.sees(reader, made.audience));
        let done = done.flat_map(|(name, made)| [name.as_bytes()[0], made.text]);
        assert_eq!(listed, done.collect::<Vec<_>>(), "not readable: the list of tools");
        listed
    }

    pub(super) async fn step(&mut self, step: Step) {
        self.steps += 1;
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
                self.made.get_mut(TOOLS[tool]).unwrap().on = on;
            }
            Step::Describe { tool: index, text } => {
                self.tools[index].update(tool(TOOLS[index], text)).unwrap();
                self.made.get_mut(TOOLS[index]).unwrap().text = text;
            }
            Step::SwitchAll { on } => self.switch_all(on).await,
            Step::Wait { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
            Step::Read { reader } => self.read(reader),
            Step::Watch { reader, uri } => self.watch(reader, URIS[uri]).await,
            Step::Unwatch { reader, uri } => {
                let uri = ResourceUri::parse(URIS[uri]).unwrap();
                self.readers[reader].listener.unsubscribe(&uri);
                self.readers[reader].knows.remove(uri.as_ref());
            }
            step => self.change_views(&step),
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
        self.made.values_mut().for_each(|made| made.on = on);
    }

    async fn watch(&mut self, reader: usize, uri: &str) {
        let follows = self.readers[reader].knows.contains_key(uri);
        let offered = self.sees(reader, self.pages_are_for)
            || (uri == OWN && self.sees(reader, self.page_is_for));
        let parsed = ResourceUri::parse(uri).unwrap();
        let subscribed = self.readers[reader].listener.subscribe(&parsed).await;
        assert_eq!(subscribed.is_ok(), offered, "{subscribed:?}");
        if !follows && offered {
            let seen = self.check(reader, uri);
            self.readers[reader].knows.insert(uri.to_owned(), seen);
        }
    }

    /// Steps that change who sees what.
    fn change_views(&mut self, step: &Step) {
        match *step {
            Step::Confine { tool: index, audience } => {
                let made = self.made.get_mut(TOOLS[index]).unwrap();
                made.audience = SETS[audience];
                let offer = for_audience(tool(TOOLS[index], made.text), made.audience);
                self.tools[index].update(offer).unwrap();
            }
            Step::Reserve { template: true, audience } => {
                self.pages_are_for = SETS[audience];
                let template = ResourceTemplate::new("p://{name}", "page");
                self.all_pages.update(for_audience(template, SETS[audience])).unwrap();
            }
            Step::Reserve { template: false, audience } => {
                self.page_is_for = SETS[audience];
                let page = Resource::new(OWN, "page");
                self.own_page.update(for_audience(page, SETS[audience])).unwrap();
            }
            Step::Say { reader, label, word, scope } => {
                let labels = Labels::parse(LABELS[label]).unwrap();
                let viewer = self.readers[reader].viewer.clone();
                let done = self.hub.pipeline().say_to(&viewer, scope, (&labels, word));
                let words = match scope {
                    Scope::Session => &mut self.readers[reader].said,
                    Scope::Person if reader + 1 < READERS => &mut self.said,
                    Scope::Person => return assert!(done.is_err()),
                };
                done.unwrap();
                words.insert(LABELS[label], (self.steps, word));
            }
            Step::Renew { reader: index } => {
                let pipeline = self.hub.pipeline();
                let reader = &mut self.readers[index];
                let viewer = Some(reader.viewer.clone());
                reader.listener = Listener::new(pipeline, PLAIN, About::nobody(), viewer);
                self.begin(index);
            }
            Step::Token { reader, labels } => {
                let read = &mut self.readers[reader];
                read.token = SETS[labels];
                let labels = Labels::new(read.token).unwrap();
                let identity = Identity { labels, ..read.viewer.who() };
                self.hub.pipeline().identify(&read.viewer.clone(), identity);
            }
            _ => {}
        }
    }

    pub(super) fn read(&mut self, reader: usize) {
        let things = drain(&self.readers[reader]);
        let hurried = self.readers[reader].listener.outbox().hurried();
        for thing in things {
            let seen = self.check(reader, &thing);
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
pub(super) fn drain(reader: &Reader) -> Vec<String> {
    let mut things = Vec::new();
    let mut context = std::task::Context::from_waker(Waker::noop());
    while let Poll::Ready(Next::Frames(frames)) =
        reader.listener.outbox().poll_next(reader.attached, &mut context)
    {
        for event in notice::events(&frames) {
            let message: serde_json::Value = serde_json::from_slice(&notice::line(&event)).unwrap();
            let list = message["method"].as_str().unwrap().split('/').nth(1).unwrap();
            let thing = message["params"]["uri"].as_str().unwrap_or(list).to_owned();
            assert!(!things.contains(&thing), "told of {thing} twice at once");
            things.push(thing);
        }
    }
    things
}
