//! Any order of changes, losses, wrong notices and looks: at rest every client has read what the
//! server has, and nobody heard of a thing that did not move.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;

use super::actor::Actor;
use super::{Caller, Gateway, config};

const URIS: [&str; 2] = ["note://1", "note://2"];

#[derive(Clone, Debug)]
enum Step {
    /// Sets a resource, and says so or not.
    Set(usize, u8, bool),
    /// A tool calls that sets a resource.
    Call(usize, u8),
    /// Adds or removes a tool, and says so or not.
    Tool(u8, bool),
    /// Says what is not so.
    Lie(usize),
    LieOfTools,
    Lose,
    /// Down for so many seconds.
    Down(u8),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..2_usize, 0..3_u8, any::<bool>())
            .prop_map(|(uri, value, says)| Step::Set(uri, value, says)),
        (0..2_usize, 0..3_u8).prop_map(|(uri, value)| Step::Call(uri, value)),
        (0..3_u8, any::<bool>()).prop_map(|(tool, says)| Step::Tool(tool, says)),
        (0..2_usize).prop_map(Step::Lie),
        Just(Step::LieOfTools),
        Just(Step::Lose),
        (1..20_u8).prop_map(Step::Down),
        (0..4000_u16).prop_map(Step::Wait),
    ]
}

/// What a client knows: what it read when it was last told, and how often it was told.
#[derive(Default)]
struct Known {
    read: BTreeMap<String, String>,
    told: BTreeMap<String, usize>,
    /// What it was told of and could not read yet.
    unread: BTreeSet<String>,
}

/// A client reads what it hears of.
async fn listen(client: &mut Caller, known: &mut Known) {
    for heard in client.heard() {
        *known.told.entry(heard.clone()).or_default() += 1;
        if heard.starts_with("note://") {
            known.unread.insert(heard);
        }
    }
    // A server that is down has no answer now: the client tries again.
    for uri in std::mem::take(&mut known.unread) {
        let text = client.text(&uri).await;
        if text.is_string() {
            known.read.insert(uri, text.to_string());
        } else {
            known.unread.insert(uri);
        }
    }
}

/// The server, and how often each of its things moved.
struct Scene {
    actor: Actor,
    /// Whether it announces every change; one that says that it does is not looked at.
    is_live: bool,
    moves: BTreeMap<String, usize>,
    values: BTreeMap<String, String>,
}

impl Scene {
    fn set(&mut self, uri: &str, value: u8) {
        let value = format!("value {value}");
        if self.values.insert(uri.to_owned(), value.clone()).as_ref() != Some(&value) {
            *self.moves.entry(uri.to_owned()).or_default() += 1;
        }
        self.actor.set(uri, &value);
    }

    fn toggle(&mut self, tool: u8) {
        let item = format!(r#"{{"name":"extra{tool}","inputSchema":{{}}}}"#);
        let mut world = self.actor.world();
        let tools = world.lists.get_mut("tools").unwrap();
        let before = tools.len();
        tools.retain(|it| *it != item);
        if tools.len() == before {
            tools.push(item);
        }
        *self.moves.entry("tools/list_changed".to_owned()).or_default() += 1;
    }

    async fn play(&mut self, step: Step, client: &mut Caller) {
        match step {
            Step::Set(uri, value, says) => {
                self.set(URIS[uri], value);
                if says || self.is_live {
                    self.actor.updated(URIS[uri]);
                }
            }
            Step::Call(uri, value) => {
                self.set(URIS[uri], value);
                // It fails if the server is down; then it was set by somebody else.
                client
                    .call("up__act", json!({ "set": URIS[uri], "to": format!("value {value}") }))
                    .await;
                if self.is_live {
                    self.actor.updated(URIS[uri]);
                }
            }
            Step::Tool(tool, says) => {
                self.toggle(tool);
                if says || self.is_live {
                    self.actor.list_changed("tools");
                }
            }
            Step::Lie(uri) => self.actor.updated(URIS[uri]),
            Step::LieOfTools => self.actor.list_changed("tools"),
            Step::Lose => self.actor.lose(),
            Step::Down(seconds) => {
                self.actor.up(false);
                tokio::time::sleep(Duration::from_secs(seconds.into())).await;
                self.actor.up(true);
            }
            Step::Wait(milliseconds) => {
                tokio::time::sleep(Duration::from_millis(milliseconds.into())).await;
            }
        }
    }
}

async fn converges(is_live: bool, steps: Vec<Step>) {
    let actor = if is_live { Actor::live() } else { Actor::silent() };
    actor.resource("note://2", "one");
    let mut scene = Scene { actor, is_live, moves: BTreeMap::new(), values: BTreeMap::new() };
    for uri in URIS {
        scene.set(uri, 0);
    }
    scene.moves.clear();
    let mut config = config("up", &scene.actor);
    // Also with the waits between attempts, the server is never away for long enough to be withdrawn.
    config.grace = Duration::from_hours(1);
    let gateway = Gateway::with(config).await;
    let mut clients = [gateway.legacy().await, gateway.modern().await];
    let mut caller = gateway.legacy().await;
    let mut known = [Known::default(), Known::default()];
    for client in &mut clients {
        client.watch(&URIS).await;
        client.forget();
    }
    for step in steps {
        scene.play(step, &mut caller).await;
        for (client, known) in clients.iter_mut().zip(&mut known) {
            listen(client, known).await;
        }
    }
    // Longer than the longest time between two looks.
    tokio::time::sleep(Duration::from_mins(12)).await;
    for (client, known) in clients.iter_mut().zip(&mut known) {
        listen(client, known).await;
        for uri in URIS {
            let now = json!(scene.values[uri]).to_string();
            let baseline = json!("value 0").to_string();
            let read = known.read.get(uri).unwrap_or(&baseline);
            assert_eq!(*read, now, "{uri} was told {:?}", known.told);
        }
        for (what, told) in &known.told {
            let moves = scene.moves.get(what).copied().unwrap_or_default();
            assert!(*told <= moves, "{what} moved {moves} times and was told {told} times");
        }
        let listed = client.names("tools").await.len();
        assert_eq!(listed, scene.actor.world().lists["tools"].len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn at_rest_every_client_knows_what_the_server_has(
        is_live in any::<bool>(),
        steps in prop::collection::vec(step(), 1..25),
    ) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        runtime.block_on(converges(is_live, steps));
    }
}
