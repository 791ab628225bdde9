//! Watchers: the followers of one resource's contents, and the newest content for each.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use futures_util::Stream;
use tokio::sync::watch;
use tokio_util::sync::ReusableBoxFuture;

use crate::cache::ResourceContent;
use crate::events::{Cause, ConnectionState, Event};

/// One content of a watched resource: see [`Mirror::watch`](crate::Mirror::watch).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Update {
    /// The content, or that the resource is gone. Its return is another update.
    pub content: Result<Arc<ResourceContent>, Gone>,
    /// Why it was read.
    pub cause: Cause,
    /// The number of the notice's message, as in [`Event::ResourceContentChanged`].
    pub notice: Option<u64>,
    /// How many updates this stream skipped before this one because they were not taken in time.
    /// This one is the newest.
    pub skipped: u64,
}

/// A watched resource is gone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the resource is gone: {reason}")]
#[non_exhaustive]
pub struct Gone {
    /// The server's message.
    pub reason: Arc<str>,
}

type Content = Result<Arc<ResourceContent>, Gone>;

/// The newest content of a watched resource.
#[derive(Clone, Debug, Default)]
struct Latest {
    /// The number of contents; each has its number, from 1.
    number: u64,
    /// The content, why it was read, and the notice that led to it.
    content: Option<(Content, (Cause, Option<u64>))>,
}

/// A followed resource.
#[derive(Debug)]
struct Slot {
    number: u64,
    latest: watch::Sender<Latest>,
    watchers: usize,
    /// Whether the server watches it: from then on, its end is the end of the watchers.
    is_live: bool,
    /// Whether the subscription is for the watchers only, and ends with the last of them.
    is_ours: bool,
}

/// All followed resources. Written where events are sent, in the order of the changes.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Arc<str>, Slot>,
    /// Numbers the slots: a watcher of an ended slot does not count in the next.
    last: u64,
    /// Subscriptions that are not needed any more, and that the server still has.
    unneeded: BTreeSet<Arc<str>>,
}

impl Watchers {
    /// Adds a watcher. `is_ours` says whether the subscription ends with the last one; an earlier
    /// watcher's value takes precedence.
    pub(crate) fn enter(&self, uri: &Arc<str>, is_ours: bool) -> Updates {
        let mut state = self.lock();
        let is_ours = state.unneeded.remove(uri) || is_ours;
        state.last += 1;
        let number = state.last;
        let slot = state.slots.entry(uri.clone()).or_insert_with(|| Slot {
            number,
            latest: watch::Sender::default(),
            watchers: 0,
            is_live: false,
            is_ours,
        });
        slot.watchers += 1;
        Updates::new(slot.number, slot.latest.subscribe())
    }

    /// Removes a watcher. Returns whether the subscription is not needed any more.
    pub(crate) fn leave(&self, uri: &Arc<str>, number: u64) -> bool {
        let mut state = self.lock();
        let Some(slot) = state.slots.get_mut(uri).filter(|slot| slot.number == number) else {
            return false;
        };
        slot.watchers -= 1;
        if slot.watchers > 0 {
            return false;
        }
        let is_ours = state.slots.remove(uri).is_some_and(|slot| slot.is_ours);
        if is_ours {
            state.unneeded.insert(uri.clone());
        }
        is_ours
    }

    /// The server watches it from now on.
    pub(crate) fn is_watched(&self, uri: &str) {
        if let Some(slot) = self.lock().slots.get_mut(uri) {
            slot.is_live = true;
        }
    }

    /// The content when a watcher began; later updates are newer.
    pub(crate) fn begin(&self, uri: &str, content: &Arc<ResourceContent>) {
        if let Some(slot) = self.lock().slots.get(uri) {
            let is_first = slot.latest.borrow().content.is_none();
            if is_first {
                slot.publish(Ok(content.clone()), (Cause::Asked, None));
            }
        }
    }

    /// Takes the unneeded subscriptions, each once.
    pub(crate) fn take_unneeded(&self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.lock().unneeded).into_iter().collect()
    }

    /// Whether there are unneeded subscriptions.
    pub(crate) fn has_unneeded(&self) -> bool {
        !self.lock().unneeded.is_empty()
    }

    /// A user subscribed to these explicitly.
    pub(crate) fn keep(&self, uris: &[Arc<str>]) {
        let mut state = self.lock();
        for uri in uris {
            state.unneeded.remove(uri);
            if let Some(slot) = state.slots.get_mut(uri) {
                slot.is_ours = false;
            }
        }
    }

    /// Whether the resource has a watcher.
    pub(crate) fn has(&self, uri: &str) -> bool {
        self.lock().slots.contains_key(uri)
    }

    /// Something happened.
    pub(crate) fn hear(&self, event: &Event) {
        match event {
            Event::ResourceContentChanged { uri, content, cause, notice } => {
                if let Some(slot) = self.lock().slots.get(uri) {
                    slot.publish(Ok(content.clone()), (*cause, *notice));
                }
            }
            Event::ResourceGone { uri, reason, cause, notice } => {
                if let Some(slot) = self.lock().slots.get(uri) {
                    slot.publish(Err(Gone { reason: reason.clone() }), (*cause, *notice));
                }
            }
            Event::SubscriptionsChanged { uris, .. } => self.retain(uris),
            // Dropping a slot ends its streams.
            Event::Connection(ConnectionState::Closed { .. }) => self.lock().slots.clear(),
            _ => {}
        }
    }

    fn retain(&self, uris: &BTreeSet<Arc<str>>) {
        self.lock().slots.retain(|uri, slot| !slot.is_live || uris.contains(uri));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    fn publish(&self, content: Content, why: (Cause, Option<u64>)) {
        self.latest.send_if_modified(|latest| {
            let is_same = match (&latest.content, &content) {
                (Some((Ok(old), _)), Ok(new)) => old.is_same(new),
                (Some((Err(old), _)), Err(new)) => old == new,
                _ => false,
            };
            if !is_same {
                latest.number += 1;
                latest.content = Some((content, why));
            }
            !is_same
        });
    }
}

type Changed = (watch::Receiver<Latest>, bool);

/// The contents of one resource for one watcher: the newest, whenever it is new.
pub(crate) struct Updates {
    changed: ReusableBoxFuture<'static, Changed>,
    /// The number of the update that was returned last.
    seen: u64,
    /// The number of its slot.
    pub(crate) slot: u64,
}

async fn changed(mut receiver: watch::Receiver<Latest>) -> Changed {
    let is_there = receiver.changed().await.is_ok();
    (receiver, is_there)
}

impl Updates {
    fn new(slot: u64, mut receiver: watch::Receiver<Latest>) -> Self {
        // Existing content is the first update.
        let first = receiver.borrow().number;
        receiver.mark_changed();
        // Contents from before the watcher began do not count as skipped.
        let seen = first.saturating_sub(1);
        Self { changed: ReusableBoxFuture::new(changed(receiver)), seen, slot }
    }
}

impl Stream for Updates {
    type Item = Update;

    // Cancel-safe: an update is either returned or still the newest.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        loop {
            let (mut receiver, is_there) = std::task::ready!(self.changed.poll(context));
            let latest = receiver.borrow_and_update().clone();
            self.changed.set(changed(receiver));
            let skipped = latest.number.saturating_sub(self.seen + 1);
            match latest.content {
                Some((content, (cause, notice))) if latest.number > self.seen => {
                    self.seen = latest.number;
                    return Poll::Ready(Some(Update { content, cause, notice, skipped }));
                }
                _ if !is_there => return Poll::Ready(None),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    fn read(uri: &str, text: &str, cause: Cause) -> Event {
        let content = Arc::new(ResourceContent::of_text(uri, text));
        Event::ResourceContentChanged { uri: uri.into(), content, cause, notice: Some(7) }
    }

    /// The update that is there, with how many were skipped before it.
    fn taken(updates: &mut Updates) -> Option<(String, u64)> {
        let update = updates.next().now_or_never()??;
        let text = update.content.map_or_else(|gone| gone.to_string(), |content| content.text());
        Some((text, update.skipped))
    }

    #[test]
    fn a_watcher_gets_the_newest_content_and_how_many_it_skipped() {
        let watchers = Watchers::default();
        let uri: Arc<str> = "a:b".into();
        let mut updates = watchers.enter(&uri, true);
        assert_eq!(taken(&mut updates), None);
        watchers.hear(&read("a:b", "one", Cause::Asked));
        watchers.hear(&read("a:c", "another", Cause::Notice));
        assert_eq!(taken(&mut updates), Some(("one".to_owned(), 0)));
        watchers.hear(&read("a:b", "one", Cause::Asked));
        assert_eq!(taken(&mut updates), None, "the same content is no update");
        for text in ["two", "three", "four"] {
            watchers.hear(&read("a:b", text, Cause::Notice));
        }
        assert_eq!(taken(&mut updates), Some(("four".to_owned(), 2)));
        let mut late = watchers.enter(&uri, true);
        assert_eq!(taken(&mut late), Some(("four".to_owned(), 0)), "a late one begins with now");
        let (reason, cause) = ("no such thing".into(), Cause::Notice);
        watchers.hear(&Event::ResourceGone { uri, reason, cause, notice: None });
        let gone = Some(("the resource is gone: no such thing".to_owned(), 0));
        assert_eq!((taken(&mut updates), taken(&mut late)), (gone.clone(), gone));
    }

    #[test]
    fn a_stream_ends_with_the_subscription_after_its_last_update() {
        let watchers = Watchers::default();
        let uri: Arc<str> = "a:b".into();
        let mut updates = watchers.enter(&uri, true);
        let none = || Event::SubscriptionsChanged { uris: BTreeSet::new(), refused: Vec::new() };
        watchers.hear(&none());
        watchers.is_watched("a:b");
        watchers.begin("a:b", &Arc::new(ResourceContent::of_text("a:b", "one")));
        watchers.hear(&none());
        assert_eq!(taken(&mut updates), Some(("one".to_owned(), 0)));
        assert!(matches!(updates.next().now_or_never(), Some(None)), "it ended");
        let again = watchers.enter(&uri, false);
        assert!(!watchers.leave(&uri, updates.slot), "the next slot is another");
        assert!(watchers.has("a:b"));
        assert!(!watchers.leave(&uri, again.slot), "there is nothing to end");
    }

    #[test]
    fn the_last_watcher_ends_the_subscription_unless_somebody_else_wants_it() {
        let watchers = Watchers::default();
        let uri: Arc<str> = "a:b".into();
        let (one, other) = (watchers.enter(&uri, true), watchers.enter(&uri, false));
        assert!(!watchers.leave(&uri, one.slot));
        assert!(watchers.leave(&uri, other.slot), "the first made the subscription");
        let one = watchers.enter(&uri, false);
        assert!(watchers.take_unneeded().is_empty(), "it is needed again");
        assert!(watchers.leave(&uri, one.slot), "and still not by anybody else");
        assert_eq!(&*watchers.take_unneeded(), std::slice::from_ref(&uri));
        let one = watchers.enter(&uri, true);
        watchers.keep(std::slice::from_ref(&uri));
        assert!(!watchers.leave(&uri, one.slot));
        assert!(!watchers.has("a:b") && !watchers.has_unneeded());
    }
}
