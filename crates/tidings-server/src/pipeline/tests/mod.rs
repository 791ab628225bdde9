//! The promises, as laws: whatever happens in whatever order, under paused time.

mod groups;
mod world;

use std::task::{Poll, Waker};
use std::time::Duration;

use proptest::prelude::*;
use rmcp::model::{Implementation, ProtocolVersion, ResourceTemplate, Tool};
use tidings_core::{ListKind, ListKinds, ResourceUri};

use super::{Events, Listener, SubscribeError};
use crate::about::About;
use crate::config::Config;
use crate::era::VersionRules;
use crate::hub::Hub;
use crate::identity::Identity;
use crate::labels::Labels;
use crate::offer::Offer;
use crate::outbox::Next;
use crate::shelf::Shelf;
use crate::viewers::{Scope, Word};
use world::{
    Other, PLAIN, Pages, READERS, SETTLED, Step, URIS, World, drain, step, step_with_labels,
};

fn in_paused_time(test: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(test);
}

/// Whatever changed last was told, and nothing more comes.
async fn check_all(world: &mut World) {
    tokio::time::sleep(SETTLED).await;
    for reader in 0..READERS {
        world.read(reader);
        for (thing, known) in &world.readers[reader].knows {
            assert_eq!(known, &world.check(reader, thing), "lost: the last change of {thing}");
        }
    }
    tokio::time::sleep(SETTLED).await;
    for reader in &world.readers {
        assert!(drain(reader).is_empty(), "spurious: nothing changed any more");
    }
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
            check_all(&mut world).await;
        });
    }

    /// The same for each view: audiences change, and labels are granted, withdrawn and replaced.
    #[test]
    fn every_reader_ends_up_knowing_what_there_is_for_it(
        steps in prop::collection::vec(step_with_labels(), 1..60),
        versioned: bool,
        slow in prop_oneof![Just(0_u64), Just(40)],
    ) {
        in_paused_time(async move {
            let slow = Duration::from_millis(slow);
            let mut world = World::new(Pages { versioned, slow, ..Pages::default() }).await;
            for step in steps {
                world.step(step).await;
            }
            check_all(&mut world).await;
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
            let listener = hub.pipeline().legacy_listener(version, &Implementation::default(), Events::Plain, None);
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
        world.step(Step::Wait { ms: 300 }).await;
        assert_eq!(drain(&world.readers[0]), ["resources"]);
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
        let one = Listener::new(hub.pipeline(), PLAIN, About::nobody(), None);
        let two = Listener::new(hub.pipeline(), PLAIN, About::nobody(), None);
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
        let one = Listener::new(hub.pipeline(), PLAIN, About::nobody(), None);
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
        // Also from the listeners with the labels that it had before.
        let say = |word| Step::Say { reader: 0, label: 0, word, scope: Scope::Session };
        world.step(say(Word::Grant)).await;
        assert!(world.hub.metrics().contains("tidings_views 1"), "no item names the label");
        world.step(Step::Confine { tool: 0, audience: 1 }).await;
        assert!(world.hub.metrics().contains("tidings_views 2"));
        world.step(say(Word::Withdraw)).await;
        assert!(world.hub.metrics().contains("tidings_views 1"));
        world.readers.clear();
        let metrics = world.hub.metrics();
        assert!(metrics.contains("tidings_views 0"), "{metrics}");
        assert!(metrics.contains("tidings_subscriptions 0"), "{metrics}");
        assert!(metrics.contains("tidings_listeners 0"), "{metrics}");
    });
}

#[test]
fn labels_that_no_item_names_make_no_views() {
    const CLIENTS: usize = 5_000;
    in_paused_time(async {
        let hub = Hub::new("users", "1");
        let shelf = hub.source("tools").unwrap();
        let tool = |name: &str| Tool::new(name.to_owned(), "a tool", serde_json::Map::new());
        shelf.add(tool("any")).unwrap();
        let pipeline = hub.pipeline();
        let listeners = (0..CLIENTS).map(|number| {
            let labels = Labels::parse(&format!("user:{number}")).unwrap();
            let viewer = pipeline.viewers.session(Identity { labels, ..Identity::default() });
            let listener = Listener::new(pipeline, PLAIN, About::nobody(), Some(viewer));
            listener.follow_lists([ListKind::Tools].into_iter().collect());
            listener
        });
        let listeners: Vec<_> = listeners.collect();
        let heard = || {
            let heard = listeners.iter().enumerate().filter(|(_, it)| {
                let reader = it.outbox().attach();
                let mut context = std::task::Context::from_waker(Waker::noop());
                let is_told = it.outbox().poll_next(reader, &mut context).is_ready();
                it.outbox().detach(reader);
                is_told
            });
            heard.map(|(number, _)| number).collect::<Vec<_>>()
        };
        let views = |number: usize| hub.metrics().contains(&format!("tidings_views {number}\n"));
        assert!(views(1));
        let own = shelf.add(Offer::from(tool("own")).audience("user:17")).unwrap();
        tokio::time::sleep(SETTLED).await;
        assert!(views(2), "it sees something of its own");
        assert_eq!(heard(), [17], "it appears");
        own.update(tool("own").with_title("Own")).unwrap();
        tokio::time::sleep(SETTLED).await;
        assert_eq!(heard(), [17], "it changes");
        shelf.add(tool("more")).unwrap();
        tokio::time::sleep(SETTLED).await;
        assert_eq!(heard().len(), CLIENTS, "what is for everyone is told to all");
        own.update(Offer::from(tool("own")).audience(["user:18", "user:19"])).unwrap();
        tokio::time::sleep(SETTLED).await;
        assert_eq!((heard(), views(3)), (vec![17, 18, 19], true), "it is for others");
        own.remove().unwrap();
        tokio::time::sleep(SETTLED).await;
        assert_eq!((heard(), views(1)), (vec![18, 19], true), "it is gone, and all see the same");
        shelf.add(tool("most")).unwrap();
        tokio::time::sleep(SETTLED).await;
        assert_eq!(heard().len(), CLIENTS);
        tokio::time::sleep(SETTLED).await;
        assert_eq!(heard(), [0; 0], "nothing changed any more");
    });
}
