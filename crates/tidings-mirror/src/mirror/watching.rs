//! Subscriptions to resources.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};

use super::Mirror;
use crate::engine::Engine;
use crate::request::RequestError;
use crate::watchers::{Update, Updates};

/// How many resources that are not watched are named.
const NAMED: usize = 10;

/// Why resources are not watched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The server does not say that it can.
    #[error("the server does not offer subscriptions to resources")]
    NotOffered,
    /// The server does not watch these; the others are watched.
    #[error("the server will not announce {}", named(.refused))]
    Refused {
        /// Which, and why.
        refused: Vec<(Arc<str>, Arc<str>)>,
    },
    /// The server could not be asked.
    #[error(transparent)]
    Request(#[from] RequestError),
}

fn named(refused: &[(Arc<str>, Arc<str>)]) -> String {
    let first = refused.iter().take(NAMED).map(|(uri, why)| format!("`{uri}` ({why})"));
    let mut named: Vec<_> = first.collect();
    if refused.len() > NAMED {
        named.push(format!("and {} more", refused.len() - NAMED));
    }
    named.join(", ")
}

/// The contents of one resource: the one now, then one for each change; made by [`Mirror::watch`].
///
/// This is a [`Stream`]; its own [`next`](Self::next) needs no extension trait. It always holds the
/// newest content: a slow reader skips those in between, and [`Update::skipped`] says how many.
///
/// It ends when the mirror does, when somebody unsubscribes from the resource, and when the server
/// refuses to watch it any longer. When the last watcher of a resource is dropped, the subscription
/// ends too, unless [`Mirror::subscribe`] asked for it.
pub struct Watch {
    updates: Updates,
    uri: Arc<str>,
    /// Weak: who only looks does not keep the connection.
    engine: Weak<Engine>,
}

impl Watch {
    /// The resource.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The next update, or `None` once there will be no more.
    ///
    /// Cancel-safe: an update is either returned or still there.
    pub async fn next(&mut self) -> Option<Update> {
        StreamExt::next(self).await
    }
}

impl Stream for Watch {
    type Item = Update;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Update>> {
        Pin::new(&mut self.updates).poll_next(context)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let Some(engine) = self.engine.upgrade() else { return };
        if engine.events.watchers.leave(&self.uri, self.updates.slot) {
            // The driver ends the subscription.
            engine.awake.notify_one();
        }
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Watch({})", self.uri)
    }
}

/// Resources that are watched.
impl Mirror {
    /// The contents of a resource as a stream: the one now, then one for each change, also after the
    /// connection was lost and made again. Several watchers of one resource share a subscription.
    ///
    /// ```no_run
    /// # use tidings_mirror::Mirror;
    /// # async fn example(mirror: Mirror) -> Result<(), Box<dyn std::error::Error>> {
    /// let mut log = mirror.watch("station://log").await?;
    /// while let Some(update) = log.next().await {
    ///     println!("{}", update.content?.text());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// If the server does not offer subscriptions, refuses this one, or does not give the resource.
    pub async fn watch(&self, uri: &str) -> Result<Watch, SubscribeError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        if !self.supports_subscriptions() {
            return Err(SubscribeError::NotOffered);
        }
        let (updates, uri) = (engine.begin_following(&uri.into()).await, Arc::from(uri));
        // From here on, giving up ends what was begun.
        let watch = Watch { updates, uri, engine: Arc::downgrade(engine) };
        let refused = engine.follow(&link, &watch.uri).await?;
        if !refused.is_empty() {
            return Err(SubscribeError::Refused { refused });
        }
        let content = self.cached_or_read(&watch.uri).await?;
        engine.events.watchers.begin(&watch.uri, &content);
        Ok(watch)
    }

    /// Watches resources: changes of them become events, and what is cached of them is kept current.
    ///
    /// # Errors
    ///
    /// If the server does not offer it, has no stream on which it could announce anything, or refuses
    /// some; the others are watched then.
    pub async fn subscribe<U: AsRef<str>>(
        &self,
        uris: impl IntoIterator<Item = U>,
    ) -> Result<(), SubscribeError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        if !self.supports_subscriptions() {
            return Err(SubscribeError::NotOffered);
        }
        let uris: Vec<_> = uris.into_iter().map(|uri| Arc::from(uri.as_ref())).collect();
        engine.events.watchers.keep(&uris);
        let refused = engine.subscribe(&link, uris).await?;
        if refused.is_empty() { Ok(()) } else { Err(SubscribeError::Refused { refused }) }
    }

    /// Does not watch these any longer.
    ///
    /// # Errors
    ///
    /// If the server could not be told.
    pub async fn unsubscribe<U: AsRef<str>>(
        &self,
        uris: impl IntoIterator<Item = U>,
    ) -> Result<(), RequestError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        let all = uris.into_iter().map(|uri| Arc::from(uri.as_ref()));
        let watched = all.filter(|uri: &Arc<str>| self.is_subscribed(uri)).collect();
        engine.unsubscribe(&link, watched).await
    }
}
