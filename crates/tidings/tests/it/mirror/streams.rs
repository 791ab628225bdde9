//! Contents and events as streams.

use std::time::Duration;

use futures_util::StreamExt as _;
use tidings_mirror::{Backoff, Event, Events, Mirror, Protocol, SubscribeError, Watch};

use super::live::{BED, ERAS, Plot, watered};
use super::{config, connect, next, within};
use crate::support::garden::Garden;

async fn text(watch: &mut Watch) -> String {
    let update = within(watch.next()).await.expect("the watch goes on");
    update.content.map_or_else(|gone| gone.to_string(), |content| content.text())
}

/// Reads on until the resource holds this.
async fn until(watch: &mut Watch, wanted: &str) {
    while text(watch).await != wanted {}
}

/// Waits until nothing is watched.
async fn unwatched(events: &mut Events) {
    next(events, |event| match event {
        Event::SubscriptionsChanged { uris, .. } => uris.is_empty().then_some(()),
        _ => None,
    })
    .await;
}

fn methods(mirror: &Mirror, wanted: &str) -> usize {
    mirror
        .history()
        .iter()
        .filter(|message| message.json().unwrap_or_default()["method"] == wanted)
        .count()
}

#[tokio::test]
async fn a_watch_gives_what_is_there_and_then_every_change() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "1"]).await;
        let (mirror, mut events) = connect(&plot.url, config(protocol)).await;
        let mut watch = within(mirror.watch(BED)).await.unwrap();
        assert_eq!(text(&mut watch).await, watered(1));
        plot.garden.act(&["set", BED, "2"]).await;
        assert_eq!(text(&mut watch).await, watered(2));
        // What is cleared is read again for who follows it.
        mirror.cache().clear_all();
        plot.garden.act(&["set", BED, "3"]).await;
        assert_eq!(text(&mut watch).await, watered(3));
        drop(watch);
        unwatched(&mut events).await;
        assert!(!mirror.is_subscribed(BED));
        mirror.close().await;
    }
}

#[tokio::test]
async fn watchers_of_one_resource_share_its_subscription() {
    let plot = Plot::open().await;
    plot.garden.act(&["set", BED, "1"]).await;
    let mut config = config(Protocol::Legacy);
    config.history = 1000;
    let (mirror, mut events) = connect(&plot.url, config).await;
    let mut one = within(mirror.watch(BED)).await.unwrap();
    let other = within(mirror.watch(BED)).await.unwrap();
    assert_eq!(methods(&mirror, "resources/subscribe"), 1);
    assert_eq!(methods(&mirror, "resources/read"), 1, "the second has what the first was given");
    drop(other);
    assert_eq!(text(&mut one).await, watered(1));
    plot.garden.act(&["set", BED, "2"]).await;
    assert_eq!(text(&mut one).await, watered(2));
    drop(one);
    unwatched(&mut events).await;
    within(async {
        while methods(&mirror, "resources/unsubscribe") == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // A subscription that somebody asked for outlives those who watch.
    within(mirror.subscribe([BED])).await.unwrap();
    drop(within(mirror.watch(BED)).await.unwrap());
    let mut last = within(mirror.watch(BED)).await.unwrap();
    assert!(mirror.is_subscribed(BED));
    // And who unsubscribes ends it for all.
    within(mirror.unsubscribe([BED])).await.unwrap();
    assert_eq!(text(&mut last).await, watered(2));
    assert!(within(last.next()).await.is_none());
    assert_eq!(methods(&mirror, "resources/unsubscribe"), 2);
}

#[tokio::test]
async fn a_watch_goes_on_after_a_loss_and_a_dropped_one_does_not() {
    for protocol in ERAS {
        let plot = Plot::open().await;
        plot.garden.act(&["set", BED, "1"]).await;
        plot.garden.act(&["set", "garden://bed/iris", "1"]).await;
        let mut config = config(protocol);
        config.reconnect = Some(Backoff { first: Duration::from_millis(20), ..Backoff::default() });
        let (mirror, _events) = connect(&plot.url, config).await;
        let mut watch = within(mirror.watch(BED)).await.unwrap();
        let iris = within(mirror.watch("garden://bed/iris")).await.unwrap();
        assert_eq!(text(&mut watch).await, watered(1));
        let address = plot.crash().await;
        drop(iris);
        let plot = Plot::again(address, Garden::default()).await;
        plot.garden.act(&["set", BED, "5"]).await;
        until(&mut watch, &watered(5)).await;
        plot.garden.act(&["set", BED, "6"]).await;
        until(&mut watch, &watered(6)).await;
        assert_eq!(mirror.subscriptions(), [BED.into()]);
        mirror.close().await;
        assert!(within(watch.next()).await.is_none(), "the mirror is closed");
    }
}

#[tokio::test]
async fn what_cannot_be_watched_is_refused_and_leaves_nothing_behind() {
    let plot = Plot::open().await;
    let (mirror, events) = connect(&plot.url, config(Protocol::Legacy)).await;
    let refused = within(mirror.watch("garden://bed/none")).await.unwrap_err();
    let is_refused = matches!(refused, SubscribeError::Refused { .. } | SubscribeError::Request(_));
    assert!(is_refused, "{refused}");
    // Events are a stream like any other.
    plot.garden.act(&["set", BED, "1"]).await;
    let mut changes = std::pin::pin!(
        events.filter(|event| std::future::ready(matches!(event, Event::ResourcesChanged(_))))
    );
    within(changes.next()).await.unwrap();
    mirror.close().await;
    within(async { while changes.next().await.is_some() {} }).await;
    assert!(mirror.subscriptions().is_empty());
}
