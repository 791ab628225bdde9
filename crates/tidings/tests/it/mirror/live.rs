//! The mirror of a hub, in both eras.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::json;
use tidings_mirror::events::{Cause, ConnectionState};
use tidings_mirror::{
    Backoff, Era, Event, List, Mirror, NO_ARGUMENTS, Protocol, Reference, SubscribeError,
};
use tidings_server::Hub;
use tidings_server::http::{self, HttpConfig};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::{config, connect, content_changed, next, state, text, tools_changed, within};
use crate::support::garden::Garden;

/// A hub on a real port, which can end and begin again.
pub(super) struct Plot {
    hub: Hub,
    pub(super) garden: Garden,
    pub(super) url: String,
    address: SocketAddr,
    cancel: CancellationToken,
    tasks: JoinSet<()>,
}

impl Plot {
    pub(super) async fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        Self::on(listener, Garden::default()).await
    }

    async fn on(listener: TcpListener, garden: Garden) -> Self {
        let address = listener.local_addr().unwrap();
        let hub = Hub::new("garden", "1");
        hub.add("garden", |shelf| garden.clone().on(&shelf)).await.unwrap();
        let cancel = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let (serving, stop) = (hub.clone(), cancel.clone());
        tasks.spawn(async move {
            http::serve(&serving, listener, HttpConfig::default(), stop).await.unwrap();
        });
        Self { hub, garden, url: http::endpoint(address), address, cancel, tasks }
    }

    /// Ends politely, and frees the port.
    async fn end(mut self) -> SocketAddr {
        self.hub.shutdown().await;
        self.cancel.cancel();
        within(async { while self.tasks.join_next().await.is_some() {} }).await;
        self.address
    }

    /// Is cut off, as by a power failure.
    pub(super) async fn crash(mut self) -> SocketAddr {
        self.tasks.shutdown().await;
        self.address
    }

    pub(super) async fn again(address: SocketAddr, garden: Garden) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind(address).unwrap();
        Self::on(socket.listen(64).unwrap(), garden).await
    }
}

pub(super) const ERAS: [Protocol; 2] = [Protocol::Legacy, Protocol::Modern];
pub(super) const BED: &str = "garden://bed/rose";

/// What a bed says that was watered so often.
pub(super) fn watered(times: impl std::fmt::Display) -> String {
    format!("{{\"water\":{times}}}")
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

#[tokio::test]
async fn everything_a_hub_offers_is_mirrored() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "3"]).await;
        let (mirror, _) = connect(&plot.url, config(protocol.clone())).await;
        let server = mirror.server().unwrap();
        let era = if protocol == Protocol::Legacy { Era::Legacy } else { Era::Modern };
        assert_eq!(server.era, era);
        assert_eq!(server.identity.as_ref().unwrap().name, "garden");
        assert!(mirror.tools().iter().any(|tool| tool.name == "act"));
        assert!(mirror.resources().iter().any(|resource| resource.uri == "garden://gate"));
        assert_eq!(mirror.templates()[0].uri_template, "garden://bed/{name}");
        assert!(List::ALL.into_iter().all(|list| mirror.list_error(list).is_none()));

        let read = within(mirror.read_resource(BED)).await.unwrap();
        assert_eq!(text(&read.contents), watered(3));
        assert_eq!(mirror.cache().resource(BED).unwrap().contents, read.contents);
        let template = "garden://bed/{name}";
        let read = within(mirror.read_from_template(template, values(&[("name", "rose")])));
        assert_eq!(&*read.await.unwrap().uri, BED);
        assert_eq!(&*mirror.cache().template(template).unwrap().uri, BED);

        let prompt = mirror.prompts()[0].name.clone();
        within(mirror.get_prompt(&prompt, values(&[("bed", "rose")]))).await.unwrap();
        assert!(mirror.cache().prompt(&prompt).is_some());
        let reference = Reference::Template(template.to_owned());
        within(mirror.complete(reference, "name", "r", NO_ARGUMENTS)).await.unwrap();

        let arguments = json!({ "words": "add 1" }).as_object().unwrap().clone();
        let outcome = within(mirror.call_tool("act", arguments)).await.unwrap();
        assert!(outcome.is_success());
        let error =
            within(mirror.call_tool("nothing", serde_json::Map::default())).await.unwrap_err();
        assert!(error.refusal().is_some(), "{error}");
        assert!(mirror.cache().tool_result("nothing").unwrap().result.is_err());
        mirror.close().await;
        assert!(mirror.tools().is_empty() && mirror.cache().resource(BED).is_none());
        plot.end().await;
    }
}

#[tokio::test]
async fn one_change_of_a_list_is_one_event() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        let (mirror, mut events) = connect(&plot.url, config(protocol)).await;
        tools_changed(&mut events).await;
        plot.garden.act(&["add", "1"]).await;
        let change = tools_changed(&mut events).await;
        let added: Vec<_> = change.diff.added.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(added, ["extra_000"]);
        assert!(change.diff.removed.is_empty() && change.diff.changed.is_empty());
        plot.garden.act(&["describe", "extra_000", "new words"]).await;
        let change = tools_changed(&mut events).await;
        assert_eq!(change.diff.changed.len(), 1);
        assert_eq!(mirror.tools().len(), change.items.len());
        plot.garden.act(&["remove", "1"]).await;
        assert_eq!(tools_changed(&mut events).await.diff.removed.len(), 1);
        plot.end().await;
    }
}

#[tokio::test]
async fn a_watched_resource_is_kept_current_and_an_unwatched_one_is_not() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "1"]).await;
        plot.garden.act(&["set", "garden://bed/lily", "1"]).await;
        let (mirror, mut events) = connect(&plot.url, config(protocol)).await;
        assert!(mirror.supports_subscriptions());
        within(mirror.read_resource(BED)).await.unwrap();
        within(mirror.subscribe(&[BED, "garden://bed/lily"])).await.unwrap();
        assert_eq!(mirror.subscriptions().len(), 2);
        assert_eq!(content_changed(&mut events, BED).await, watered(1));
        plot.garden.act(&["set", BED, "2"]).await;
        assert_eq!(content_changed(&mut events, BED).await, watered(2));
        assert_eq!(text(&mirror.cache().resource(BED).unwrap().contents), watered(2));

        // Nobody read the lily, so nobody reads it now.
        plot.garden.act(&["set", "garden://bed/lily", "2"]).await;
        let updated = next(&mut events, |event| match event {
            Event::ResourceUpdated { uri, cause, .. } => Some((uri, cause)),
            _ => None,
        });
        assert_eq!(updated.await, ("garden://bed/lily".into(), Cause::Notice));

        within(mirror.unsubscribe(&[BED])).await.unwrap();
        assert!(!mirror.is_subscribed(BED) && mirror.is_subscribed("garden://bed/lily"));
        plot.garden.act(&["set", BED, "3"]).await;
        plot.garden.act(&["set", "garden://bed/lily", "3"]).await;
        let heard = next(&mut events, |event| match event {
            Event::ResourceUpdated { uri, .. } | Event::ResourceContentChanged { uri, .. } => {
                Some(uri)
            }
            _ => None,
        });
        assert_eq!(&*heard.await, "garden://bed/lily", "the rose is not watched any longer");
        plot.end().await;
    }
}

#[tokio::test]
async fn what_is_watched_is_served_without_asking_until_it_changes() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "1"]).await;
        let mut config = config(protocol);
        config.history = 1000;
        let (mirror, mut events) = connect(&plot.url, config).await;
        let reads = |mirror: &Mirror| {
            let asks = |message: &tidings_mirror::Message| {
                message.json().unwrap_or_default()["method"] == "resources/read"
            };
            mirror.history().iter().filter(|message| asks(message)).count()
        };
        within(mirror.subscribe(&[BED])).await.unwrap();
        within(mirror.cached_or_read(BED)).await.unwrap();
        for _ in 0..10 {
            within(mirror.cached_or_read(BED)).await.unwrap();
        }
        assert_eq!(reads(&mirror), 1);
        plot.garden.act(&["set", BED, "2"]).await;
        assert_eq!(content_changed(&mut events, BED).await, watered(1));
        assert_eq!(content_changed(&mut events, BED).await, watered(2));
        assert_eq!(text(&within(mirror.cached_or_read(BED)).await.unwrap().contents), watered(2));
        assert_eq!(reads(&mirror), 2, "one more, for the notice");
        plot.end().await;
    }
}

#[tokio::test]
async fn widening_the_set_of_watched_resources_loses_nothing() {
    let plot = Plot::open().await;
    let beds: Vec<String> = (0..20).map(|index| format!("garden://bed/b{index}")).collect();
    for bed in &beds {
        plot.garden.act(&["set", bed, "0"]).await;
    }
    let (mirror, mut events) = connect(&plot.url, config(Protocol::Modern)).await;
    within(mirror.read_resource(&beds[0])).await.unwrap();
    within(mirror.subscribe(&[&beds[0]])).await.unwrap();
    for (index, bed) in beds.iter().enumerate().skip(1) {
        // A change while the stream is being replaced.
        let value = index.to_string();
        let (words, wanted) = (["set", &beds[0], &value], [bed.as_str()]);
        let ((), watched) = tokio::join!(plot.garden.act(&words), mirror.subscribe(&wanted));
        watched.unwrap();
        while content_changed(&mut events, &beds[0]).await != watered(&value) {}
    }
    assert_eq!(mirror.subscriptions().len(), beds.len());
    plot.end().await;
}

#[tokio::test]
async fn a_resource_that_does_not_exist_is_refused_and_the_others_are_watched() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "1"]).await;
        let (mirror, mut events) = connect(&plot.url, config(protocol)).await;
        let error = within(mirror.subscribe(&["moon://crater", BED])).await.unwrap_err();
        let SubscribeError::Refused { refused } = error else { panic!("{error}") };
        assert_eq!(&*refused[0].0, "moon://crater");
        assert_eq!(mirror.subscriptions(), [BED.into()]);
        let refused = next(&mut events, |event| match event {
            Event::SubscriptionsChanged { refused, .. } => Some(refused),
            _ => None,
        });
        assert_eq!(refused.await, ["moon://crater".into()]);
        plot.end().await;
    }
}

/// What happened while nobody was there is told when the server is back, and nothing else.
async fn survives(protocol: Protocol, politely: bool) {
    let plot = Plot::open().await;
    plot.garden.act(&["set", BED, "1"]).await;
    plot.garden.act(&["add", "2"]).await;
    let mut config = config(protocol);
    config.reconnect =
        Some(Backoff { first: std::time::Duration::from_millis(20), ..Backoff::default() });
    let (mirror, mut events) = connect(&plot.url, config).await;
    within(mirror.read_resource(BED)).await.unwrap();
    within(mirror.subscribe(&[BED])).await.unwrap();
    let address = if politely { plot.end().await } else { plot.crash().await };
    state(&mut events, |state| matches!(state, ConnectionState::Lost { .. })).await;
    state(&mut events, |state| matches!(state, ConnectionState::Retrying { .. })).await;

    let garden = Garden::default();
    let plot = Plot::again(address, garden).await;
    plot.garden.act(&["set", BED, "5"]).await;
    plot.garden.act(&["add", "3"]).await;
    state(&mut events, |state| *state == ConnectionState::Ready).await;
    let mut told = Vec::new();
    let mut content = None;
    while told.is_empty() || content.is_none() {
        match within(events.next()).await.unwrap() {
            Event::ToolsChanged(change) => {
                assert!(change.diff.removed.is_empty(), "{:?}", change.diff.removed);
                told.extend(change.diff.added.iter().map(|tool| tool.name.to_string()));
            }
            Event::ResourceContentChanged { content: new, cause, .. } => {
                assert_ne!(cause, Cause::Asked);
                content = Some(text(&new.contents));
            }
            Event::ResourcesChanged(change) => panic!("{:?} did not change", change.diff),
            _ => {}
        }
    }
    // The bed may have been read before it was planted: then the notice follows.
    while content != Some(watered(5)) {
        content = Some(content_changed(&mut events, BED).await);
    }
    while mirror.tools().len() < 4 {
        tools_changed(&mut events).await;
    }
    assert_eq!(mirror.subscriptions(), [BED.into()]);
    plot.garden.act(&["set", BED, "6"]).await;
    assert_eq!(content_changed(&mut events, BED).await, watered(6), "it is watched again");
    mirror.close().await;
    plot.end().await;
}

#[tokio::test]
async fn a_legacy_server_that_restarts_is_followed() {
    survives(Protocol::Legacy, true).await;
}

#[tokio::test]
async fn a_modern_server_that_restarts_is_followed() {
    survives(Protocol::Modern, true).await;
}

#[tokio::test]
async fn a_legacy_server_that_is_cut_off_is_followed() {
    survives(Protocol::Legacy, false).await;
}

#[tokio::test]
async fn a_modern_server_that_is_cut_off_is_followed() {
    survives(Protocol::Modern, false).await;
}

#[tokio::test]
async fn without_reconnecting_a_loss_clears_everything() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "1"]).await;
        let (mirror, mut events) = connect(&plot.url, config(protocol)).await;
        within(mirror.read_resource(BED)).await.unwrap();
        within(mirror.subscribe(&[BED])).await.unwrap();
        plot.end().await;
        state(&mut events, |state| matches!(state, ConnectionState::Closed { .. })).await;
        assert!(mirror.tools().is_empty() && mirror.subscriptions().is_empty());
        assert!(mirror.cache().resource(BED).is_none());
        let error = within(mirror.read_resource(BED)).await.unwrap_err();
        assert!(error.to_string().starts_with("not connected"), "{error}");
    }
}

#[tokio::test]
async fn a_mirror_that_wants_no_changes_opens_no_stream() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        let mut config = config(protocol);
        config.list_changed = tidings_mirror::ListKinds::EMPTY;
        config.lists = vec![List::Tools];
        config.history = 100;
        let (mirror, _) = connect(&plot.url, config).await;
        assert!(!mirror.tools().is_empty() && mirror.prompts().is_empty());
        let asked: Vec<_> = mirror
            .history()
            .iter()
            .filter_map(|message| {
                message.json().unwrap_or_default()["method"].as_str().map(str::to_owned)
            })
            .collect();
        assert!(!asked.iter().any(|method| method.contains("listen")), "{asked:?}");
        mirror.close().await;
        plot.end().await;
    }
}

#[tokio::test]
async fn more_can_be_watched_than_one_listen_request_may_ask_for() {
    let plot = Plot::open().await;
    let (mirror, mut events) = connect(&plot.url, config(Protocol::Modern)).await;
    let bed = |number: usize| format!("garden://bed/{number}");
    within(mirror.subscribe((0..2_500).map(bed))).await.unwrap();
    assert_eq!(mirror.subscriptions().len(), 2_500);
    let told = |event| match event {
        Event::ResourceUpdated { uri, .. } => Some(uri),
        _ => None,
    };
    for uri in mirror.subscriptions().iter().step_by(1_000) {
        plot.garden.act(&["water", uri]).await;
        assert_eq!(next(&mut events, told).await, *uri);
    }
    within(mirror.unsubscribe((0..2_000).map(bed))).await.unwrap();
    assert_eq!(mirror.subscriptions().len(), 500);
    let last = bed(2_499);
    plot.garden.act(&["water", &last]).await;
    assert_eq!(&*next(&mut events, told).await, last);
    plot.garden.act(&["add"]).await;
    tools_changed(&mut events).await;
}

#[tokio::test]
async fn a_change_names_the_notice_that_led_to_it() {
    let plot = Plot::open().await;
    plot.garden.act(&["set", BED, "1"]).await;
    for protocol in [Protocol::Legacy, Protocol::Modern] {
        let mut config = config(protocol);
        config.history = 1000;
        let (mirror, mut events) = connect(&plot.url, config).await;
        let method = |number: Option<u64>| {
            let messages = mirror.history();
            let notice = messages.iter().find(|message| Some(message.number) == number);
            notice.map(|message| {
                message.json().unwrap_or_default()["method"].as_str().unwrap_or_default().to_owned()
            })
        };
        assert_eq!(tools_changed(&mut events).await.notice, None, "it was listed at the beginning");
        plot.garden.act(&["add", "1"]).await;
        let notice = tools_changed(&mut events).await.notice;
        assert_eq!(method(notice).as_deref(), Some("notifications/tools/list_changed"));
        let mut watch = within(mirror.watch(BED)).await.unwrap();
        assert_eq!(within(watch.next()).await.unwrap().notice, None, "it was read to begin with");
        plot.garden.act(&["water", BED]).await;
        let notice = within(watch.next()).await.unwrap().notice;
        assert_eq!(method(notice).as_deref(), Some("notifications/resources/updated"));
        mirror.close().await;
        plot.garden.act(&["remove", "1"]).await;
    }
}
