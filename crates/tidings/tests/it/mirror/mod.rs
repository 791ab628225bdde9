//! The mirror over real sockets and processes: a hub that lives, and servers that do not behave.

mod asked;
mod bad;
mod child;
mod dropped;
mod imperfect;
mod live;
mod logged;
mod rounds;
mod sent;
mod streams;
mod supervised;
mod watched;

use std::time::Duration;

use tidings_mirror::events::{ConnectionState, ListChange};
use tidings_mirror::model::{ResourceContents, Tool};
use tidings_mirror::{Config, Event, Events, HttpTarget, Mirror, Protocol, Target};

/// Longer than anything here takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes too long")
}

fn config(protocol: Protocol) -> Config {
    let mut config = Config::new("test", "1");
    config.protocol = protocol;
    config.reconnect = None;
    config
}

async fn connect(url: &str, config: Config) -> (Mirror, Events) {
    let target = Target::Http(HttpTarget::new(url));
    within(Mirror::connect_with_events(target, config)).await.unwrap()
}

/// The first event from here on that is wanted.
async fn next<T>(events: &mut Events, wanted: impl Fn(Event) -> Option<T>) -> T {
    within(async {
        loop {
            let event = events.next().await.expect("the mirror is there");
            if let Some(found) = wanted(event) {
                return found;
            }
        }
    })
    .await
}

async fn tools_changed(events: &mut Events) -> ListChange<Tool> {
    next(events, |event| match event {
        Event::ToolsChanged(change) => Some(change),
        _ => None,
    })
    .await
}

async fn content_changed(events: &mut Events, wanted: &str) -> String {
    next(events, |event| match event {
        Event::ResourceContentChanged { uri, content, .. } if &*uri == wanted => {
            Some(text(&content.contents))
        }
        _ => None,
    })
    .await
}

async fn state(events: &mut Events, wanted: impl Fn(&ConnectionState) -> bool) -> ConnectionState {
    next(events, |event| match event {
        Event::Connection(state) if wanted(&state) => Some(state),
        _ => None,
    })
    .await
}

fn text(contents: &[ResourceContents]) -> String {
    match contents.first() {
        Some(ResourceContents::TextResourceContents { text, .. }) => text.clone(),
        other => panic!("{other:?} is no text"),
    }
}
