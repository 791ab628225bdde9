//! Subscriptions to resources.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use futures_util::{Stream, StreamExt};

use super::Mirror;
use crate::engine::Engine;
use crate::request::RequestError;
use crate::watchers::{Update, Updates};

/// The number of refused resources that are named.
const NAMED: usize = 10;

/// Why resources are not watched.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The server does not support subscriptions.
    #[error("the server does not offer subscriptions to resources")]
    NotOffered,
    /// The server does not watch these; the others are watched.
    #[error("the server will not announce {}", named(.refused))]
    Refused {
        /// The resources and the reasons.
        refused: Vec<(Arc<str>, Arc<str>)>,
    },
    /// The request failed.
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

/// The contents of one resource: the current one, then one for each change; created by
/// [`Mirror::watch`].
///
/// This is a [`Stream`]; its own [`next`](Self::next) needs no extension trait. It holds the newest
/// content only: a slow reader skips those in between, and [`Update::skipped`] counts them.
///
/// It ends when the mirror does, after an unsubscribe, and if the server stops watching the
/// resource. When the last watcher of a resource is dropped, the subscription ends too, unless
/// [`Mirror::subscribe`] made it.
pub struct Watch {
    updates: Updates,
    uri: Arc<str>,
    /// Weak: a watcher does not keep the connection.
    engine: Weak<Engine>,
}

impl Watch {
    /// The resource.
    #[must_use]
    pub fn uri(&self) -> &str {
        &self.uri
    }

    /// The next update, or `None` after the last.
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

/// Watched resources.
impl Mirror {
    /// The contents of a resource as a stream: the current one, then one for each change, also
    /// after a reconnect. Several watchers of one resource share a subscription.
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
    /// If the server does not support subscriptions, refuses this one, or does not return the
    /// resource.
    pub async fn watch(&self, uri: &str) -> Result<Watch, SubscribeError> {
        let engine = &self.inner.engine;
        let link = engine.link()?;
        if !self.supports_subscriptions() {
            return Err(SubscribeError::NotOffered);
        }
        let (updates, uri) = (engine.begin_following(&uri.into()).await, Arc::from(uri));
        // From here on, dropping the future undoes the subscription.
        let watch = Watch { updates, uri, engine: Arc::downgrade(engine) };
        let refused = engine.follow(&link, &watch.uri).await?;
        if !refused.is_empty() {
            return Err(SubscribeError::Refused { refused });
        }
        let content = self.cached_or_read(&watch.uri).await?;
        engine.events.watchers.begin(&watch.uri, &content);
        Ok(watch)
    }

    /// Watches resources: their changes become events, and their cached contents stay current.
    ///
    /// # Errors
    ///
    /// If the server does not support it, has no stream for notices, or refuses some; the others
    /// are watched then.
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

    /// Stops watching resources.
    ///
    /// # Errors
    ///
    /// If the server could not be notified.
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
