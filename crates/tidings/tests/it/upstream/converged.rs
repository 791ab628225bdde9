//! Any order of changes, losses, restarts, failures, wrong and missing notices and looks, with servers
//! and clients of both eras: at rest every client has read what the server has, and nobody heard of a
//! thing that did not move.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use tidings_upstream::State;

use super::actor::Actor;
use super::{Caller, Gateway, config};

const URIS: [&str; 2] = ["note://1", "note://2"];
const LISTS: [&str; 2] = ["tools", "resources"];

/// A server that announces every change is known to be read again by then, whatever happened.
const SOON: Duration = Duration::from_mins(2);
/// Longer than the longest time between two looks at what nobody announces.
const LATE: Duration = Duration::from_mins(12);

/// What a server says of its changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    /// It promises nothing, and says now and then something.
    Silent,
    /// It promises to announce everything, and does.
    True,
    /// It promises as much, and forgets half of it.
    Forgetful,
}

#[derive(Clone, Debug)]
enum Step {
    /// Sets a resource, and says so or not.
    Set(usize, u8, bool),
    /// Says that a resource changed, and changes it only some milliseconds later.
    Early(usize, u8, u16),
    /// A resource is there no more.
    Remove(usize, bool),
    /// A tool calls that sets a resource.
    Call(usize, u8),
    /// Adds an item to a list or removes it, and says so or not.
    Toggle(usize, u8, bool),
    /// Says what is not so, so often.
    Lie(usize, u8),
    LieOfLists(usize, u8),
    Lose,
    /// The gateway connects anew.
    Restart,
    /// Down for so many seconds.
    Down(u8),
    /// Answers a method with an error for so many milliseconds.
    Fail(usize, u16),
    /// A client reads without a reason.
    Read(usize, usize),
    /// A client unwatches everything and watches it again.
    Rewatch(usize),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2_usize, 0..3_u8, any::<bool>())
            .prop_map(|(uri, value, says)| Step::Set(uri, value, says)),
        1 => (0..2_usize, 0..3_u8, 0..900_u16)
            .prop_map(|(uri, value, after)| Step::Early(uri, value, after)),
        1 => (0..2_usize, any::<bool>()).prop_map(|(uri, says)| Step::Remove(uri, says)),
        2 => (0..2_usize, 0..3_u8).prop_map(|(uri, value)| Step::Call(uri, value)),
        2 => (0..2_usize, 0..3_u8, any::<bool>())
            .prop_map(|(list, item, says)| Step::Toggle(list, item, says)),
        1 => (0..2_usize, 1..50_u8).prop_map(|(uri, times)| Step::Lie(uri, times)),
        1 => (0..2_usize, 1..50_u8).prop_map(|(list, times)| Step::LieOfLists(list, times)),
        1 => Just(Step::Lose),
        1 => Just(Step::Restart),
        1 => (1..20_u8).prop_map(Step::Down),
        1 => (0..3_usize, 0..6000_u16).prop_map(|(method, time)| Step::Fail(method, time)),
        1 => (0..2_usize, 0..2_usize).prop_map(|(client, uri)| Step::Read(client, uri)),
        1 => (0..2_usize).prop_map(Step::Rewatch),
        3 => (0..4000_u16).prop_map(Step::Wait),
    ]
}

#[derive(Clone, Debug)]
struct Plot {
    manner: Manner,
    is_modern: bool,
    /// How long its items stay when it is down.
    grace: Duration,
    /// Items on one page of its lists.
    page: usize,
    steps: Vec<Step>,
}

fn plot() -> impl Strategy<Value = Plot> {
    let manner = prop_oneof![Just(Manner::Silent), Just(Manner::True), Just(Manner::Forgetful)];
    // With the first nothing is ever withdrawn, with the last everything whenever it is down.
    let grace = prop_oneof![Just(3600), Just(3), Just(0)].prop_map(Duration::from_secs);
    let steps = prop::collection::vec(step(), 1..25);
    (manner, any::<bool>(), grace, 0..4_usize, steps).prop_map(
        |(manner, is_modern, grace, page, steps)| Plot { manner, is_modern, grace, page, steps },
    )
}

/// A client, what it read last of each resource, and how often it was told of each thing.
struct Reader {
    caller: Caller,
    stream: Option<i64>,
    read: BTreeMap<String, Value>,
    told: BTreeMap<String, usize>,
    /// What it must read again: it was told of it, or its last read failed.
    unread: BTreeSet<String>,
}

impl Reader {
    async fn begin(caller: Caller) -> Self {
        let (read, told, unread) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        let mut reader = Self { caller, stream: None, read, told, unread };
        reader.watch().await;
        reader
    }

    /// Watches everything, and then reads it, as clients do.
    async fn watch(&mut self) {
        self.hear();
        self.stream = self.caller.watch(&URIS).await;
        self.unread.extend(URIS.map(str::to_owned));
        self.listen().await;
    }

    async fn unwatch(&mut self) {
        match self.stream.take() {
            Some(stream) => self.caller.client.cancel(stream).await,
            None => {
                for uri in URIS {
                    self.caller.ask("resources/unsubscribe", json!({ "uri": uri })).await;
                }
            }
        }
    }

    fn hear(&mut self) {
        for heard in self.caller.heard() {
            if heard.starts_with("note://") {
                self.unread.insert(heard.clone());
            }
            *self.told.entry(heard).or_default() += 1;
        }
    }

    /// Reads what it heard of.
    async fn listen(&mut self) {
        self.hear();
        for uri in std::mem::take(&mut self.unread) {
            self.read(&uri).await;
        }
    }

    /// Reads a resource. A read that fails is made again: the server may be down.
    async fn read(&mut self, uri: &str) {
        match self.caller.text(uri).await {
            text @ Value::String(_) => drop(self.read.insert(uri.to_owned(), text)),
            code if code == -32002 || code == -32602 => {
                self.read.insert(uri.to_owned(), Value::Null);
            }
            _ => drop(self.unread.insert(uri.to_owned())),
        }
    }
}

/// The server, and how often each of its things moved.
struct Scene {
    actor: Actor,
    gateway: Gateway,
    manner: Manner,
    moves: BTreeMap<String, usize>,
    values: BTreeMap<String, Option<String>>,
    losses: usize,
}

impl Scene {
    fn says(&self, says: bool) -> bool {
        match self.manner {
            Manner::True => true,
            Manner::Silent | Manner::Forgetful => says,
        }
    }

    fn moved(&mut self, what: &str) {
        *self.moves.entry(what.to_owned()).or_default() += 1;
    }

    fn put(&mut self, uri: &str, value: Option<u8>) {
        let value = value.map(|value| format!("value {value}"));
        match &value {
            Some(value) => self.actor.set(uri, value),
            None => drop(self.actor.world().contents.remove(uri)),
        }
        if self.values.insert(uri.to_owned(), value.clone()) != Some(value) {
            self.moved(uri);
        }
    }

    fn toggle(&mut self, list: &'static str, item: u8) {
        let item = match list {
            "tools" => format!(r#"{{"name":"extra{item}","inputSchema":{{}}}}"#),
            _ => format!(r#"{{"uri":"more://{item}","name":"more"}}"#),
        };
        let mut world = self.actor.world();
        let items = world.lists.get_mut(list).unwrap();
        let before = items.len();
        items.retain(|it| *it != item);
        if items.len() == before {
            items.push(item);
        }
        drop(world);
        self.moved(&format!("{list}/list_changed"));
    }

    async fn play(&mut self, step: Step, caller: &mut Caller, readers: &mut [Reader; 2]) {
        match step {
            Step::Set(uri, value, says) => {
                self.put(URIS[uri], Some(value));
                self.announce(URIS[uri], says);
            }
            Step::Early(uri, value, after) => {
                self.actor.updated(URIS[uri]);
                wait(after).await;
                self.put(URIS[uri], Some(value));
            }
            Step::Remove(uri, says) => {
                self.put(URIS[uri], None);
                self.announce(URIS[uri], says);
            }
            Step::Call(uri, value) => {
                // It fails if the server is down; then it was set by somebody else.
                let arguments = json!({ "set": URIS[uri], "to": format!("value {value}") });
                caller.call("up__act", arguments).await;
                self.put(URIS[uri], Some(value));
                self.announce(URIS[uri], false);
            }
            Step::Toggle(list, item, says) => {
                self.toggle(LISTS[list], item);
                if self.says(says) {
                    self.actor.list_changed(LISTS[list]);
                }
            }
            Step::Lie(uri, times) => (0..times).for_each(|_| self.actor.updated(URIS[uri])),
            Step::LieOfLists(list, times) => {
                (0..times).for_each(|_| self.actor.list_changed(LISTS[list]));
            }
            Step::Fail(method, time) => self.fail(method, time).await,
            Step::Read(client, uri) => readers[client].read(URIS[uri]).await,
            Step::Rewatch(client) => {
                // A loss is noticed by then. What is withdrawn cannot be watched.
                self.gateway.settle().await;
                if self.gateway.status(0).state == State::Ready {
                    readers[client].unwatch().await;
                    readers[client].watch().await;
                }
            }
            Step::Wait(time) => wait(time).await,
            Step::Lose | Step::Restart | Step::Down(_) => self.interrupt(step).await,
        }
    }

    fn announce(&self, uri: &str, says: bool) {
        if self.says(says) {
            self.actor.updated(uri);
        }
    }

    /// A method fails for a while, and what happened meanwhile is announced after it.
    async fn fail(&self, method: usize, time: u16) {
        let method = ["resources/read", "tools/list", "resources/list"][method];
        let error = r#"{"code":-32603,"message":"broken"}"#.to_owned();
        self.actor.world().errors.insert(method.to_owned(), error);
        wait(time).await;
        self.actor.world().errors.remove(method);
    }

    async fn interrupt(&mut self, step: Step) {
        self.losses += 1;
        match step {
            Step::Restart => self.gateway.upstreams[0].restart().await,
            Step::Down(seconds) => {
                self.actor.up(false);
                tokio::time::sleep(Duration::from_secs(seconds.into())).await;
                self.actor.up(true);
            }
            _ => self.actor.lose(),
        }
    }

    /// Every client knows what is so, and heard of nothing more than moved.
    async fn check(&mut self, reader: &mut Reader, withdrawn: usize) {
        for uri in URIS {
            let now = json!(self.values[uri]);
            assert_eq!(reader.read[uri], now, "{uri} was told {:?}", reader.told);
        }
        for (what, told) in &reader.told {
            let moves = self.moves.get(what).copied().unwrap_or_default() + withdrawn;
            assert!(*told <= moves, "{what} moved {moves} times and was told {told} times");
        }
        for list in LISTS {
            let listed = reader.caller.names(list).await.len();
            assert_eq!(listed, self.actor.world().lists[list].len(), "{list}");
        }
    }
}

async fn wait(milliseconds: u16) {
    tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
}

async fn converges(plot: Plot) {
    let actor = match plot.manner {
        Manner::Silent => Actor::silent(),
        Manner::True | Manner::Forgetful => Actor::live(),
    };
    let actor = if plot.is_modern { actor.modern() } else { actor };
    actor.resource("note://2", "two");
    actor.world().page = plot.page;
    let mut config = config("up", &actor);
    config.grace = plot.grace;
    let gateway = Gateway::with(config).await;
    let version = if plot.is_modern { "2026-07-28" } else { "2025-11-25" };
    assert_eq!(gateway.status(0).version.as_deref(), Some(version));
    let (moves, values) = (BTreeMap::new(), BTreeMap::new());
    let manner = plot.manner;
    let mut scene = Scene { actor, gateway, manner, moves, values, losses: 0 };
    for uri in URIS {
        scene.put(uri, Some(0));
        scene.actor.updated(uri);
    }
    let (old, new) = (scene.gateway.legacy().await, scene.gateway.modern().await);
    let mut caller = scene.gateway.legacy().await;
    let mut readers = [Reader::begin(old).await, Reader::begin(new).await];
    scene.moves.clear();
    for (at, step) in plot.steps.into_iter().enumerate() {
        scene.play(step, &mut caller, &mut readers).await;
        readers[0].listen().await;
        // The other is slower.
        if at % 3 == 0 {
            readers[1].listen().await;
        }
    }
    tokio::time::sleep(if manner == Manner::True { SOON } else { LATE }).await;
    let is_kept = plot.grace >= Duration::from_hours(1);
    let withdrawn = if is_kept { 0 } else { 2 * scene.losses };
    for reader in &mut readers {
        reader.listen().await;
        scene.check(reader, withdrawn).await;
    }
    tokio::time::sleep(LATE).await;
    for reader in &mut readers {
        assert_eq!(reader.caller.heard(), [""; 0], "at rest");
    }
}

/// 48 cases, unless the variable `PROPTEST_CASES` says how many.
fn cases() -> ProptestConfig {
    let given = ProptestConfig::default();
    let is_given = std::env::var_os("PROPTEST_CASES").is_some();
    if is_given { given } else { ProptestConfig { cases: 48, ..given } }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn at_rest_every_client_knows_what_the_server_has(plot in plot()) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(converges(plot));
    }
}
