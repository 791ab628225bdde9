//! Senders and receivers of events. A receiver that lags is notified.

use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures_util::{FutureExt as _, Stream, StreamExt};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::ReusableBoxFuture;

use super::{ConnectionState, Event};
use crate::watchers::Watchers;

/// Receives all events after its creation.
///
/// This is a [`Stream`]; its own [`next`](Self::next) needs no extension trait.
pub struct Events {
    received: ReusableBoxFuture<'static, Received>,
}

type Received = (broadcast::Receiver<Event>, Result<Event, RecvError>);

async fn received(mut receiver: broadcast::Receiver<Event>) -> Received {
    let event = receiver.recv().await;
    (receiver, event)
}

impl std::fmt::Debug for Events {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Events(…)")
    }
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Event>> {
        let (receiver, event) = std::task::ready!(self.received.poll(context));
        self.received.set(received(receiver));
        Poll::Ready(match event {
            Ok(event) => Some(event),
            Err(RecvError::Lagged(missed)) => Some(Event::Lagged { missed }),
            Err(RecvError::Closed) => None,
        })
    }
}

impl Events {
    /// The next event, or `None` after the connection ended for good and all events were returned.
    /// The last event is [`ConnectionState::Closed`].
    ///
    /// Cancel-safe: an event is either returned or still there.
    pub async fn next(&mut self) -> Option<Event> {
        StreamExt::next(self).await
    }

    /// The next event, if there is one.
    pub fn try_next(&mut self) -> Option<Event> {
        // Unconstrained: an available event must not be missed because this task ran for long.
        tokio::task::unconstrained(self.next()).now_or_never().flatten()
    }
}

/// The sender of events; every part of the mirror that changes state has one.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    /// `None` after the connection ended for good: then receivers end too.
    sender: Arc<RwLock<Option<broadcast::Sender<Event>>>>,
    /// The watchers of contents, which get each event before its receivers.
    pub(crate) watchers: Arc<Watchers>,
}

impl Sender {
    /// `capacity` is how many events a receiver may be behind.
    pub(crate) fn new(capacity: usize) -> Self {
        let sender = broadcast::Sender::new(capacity.max(1));
        Self { sender: Arc::new(RwLock::new(Some(sender))), watchers: Arc::default() }
    }

    pub(crate) fn emit(&self, event: Event) {
        self.watchers.hear(&event);
        let is_last = matches!(event, Event::Connection(ConnectionState::Closed { .. }));
        if let Some(sender) = &*self.sender.read().unwrap_or_else(PoisonError::into_inner) {
            // It is not an error if nobody receives.
            let _ = sender.send(event);
        }
        if is_last {
            *self.sender.write().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }

    pub(crate) fn receiver(&self) -> Events {
        let sender = self.sender.read().unwrap_or_else(PoisonError::into_inner);
        // A receiver without a sender: it ends at once.
        let ended = || broadcast::channel(1).1;
        let receiver = sender.as_ref().map_or_else(ended, broadcast::Sender::subscribe);
        Events { received: ReusableBoxFuture::new(received(receiver)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_lags_is_told_how_much_is_gone_and_goes_on() {
        let sender = Sender::new(2);
        let mut events = sender.receiver();
        for _ in 0..5 {
            sender.emit(Event::Connection(ConnectionState::Ready));
        }
        assert!(matches!(events.try_next(), Some(Event::Lagged { missed: 3 })));
        assert!(matches!(events.try_next(), Some(Event::Connection(_))));
        assert!(matches!(events.try_next(), Some(Event::Connection(_))));
        assert!(events.try_next().is_none());
    }

    #[tokio::test]
    async fn the_end_of_the_connection_is_the_last_event() {
        let sender = Sender::new(8);
        let mut events = sender.receiver();
        let closed = || Event::Connection(ConnectionState::Closed { reason: "test".into() });
        sender.emit(Event::Stderr { line: "bye".into() });
        sender.emit(closed());
        sender.emit(Event::Stderr { line: "too late".into() });
        let mut heard = Vec::new();
        while let Some(event) = events.next().await {
            heard.push(event);
        }
        assert!(matches!(&*heard, [Event::Stderr { .. }, Event::Connection(_)]), "{heard:?}");
        assert!(sender.receiver().next().await.is_none(), "nor is there anything to hear later");
    }
}
