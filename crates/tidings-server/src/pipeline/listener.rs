//! A listener: the lists and URIs it follows, and its baselines.

use std::sync::Arc;

use tidings_core::{ListKinds, ResourceUri};
use tokio::time::Instant;

use crate::about::About;
use crate::answer::AnswerError;
use crate::catalog::Missing;
use crate::config::Greeting;
use crate::notice::Wire;
use crate::outbox::{Outbox, price};
use crate::pipeline::{Event, Pipeline};

use crate::subscriptions::IndexFull;
use crate::viewers::Viewer;

/// How often the baseline of a URI is checked if the URI changes meanwhile.
const CHECKS: usize = 3;

/// Why a URI cannot be watched.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum SubscribeError {
    /// It is not offered.
    #[error("no resource or resource template of this server has this URI")]
    Unknown,
    /// It is switched off.
    #[error("the resource is disabled")]
    Disabled,
    /// It is invalid, so no read of it can succeed.
    #[error(transparent)]
    Unreadable(AnswerError),
    /// This listener watches the maximum number of URIs.
    #[error("a client may watch {0} resources at once, fewer if their URIs are long")]
    TooMany(usize),
    /// All listeners together watch the maximum number of URIs.
    #[error(transparent)]
    Full(#[from] IndexFull),
}

/// A legacy session, or one modern listen request. Its subscriptions end when it is dropped.
pub(crate) struct Listener {
    pipeline: Arc<Pipeline>,
    outbox: Arc<Outbox>,
    /// The client; nothing if it is anybody and cannot become somebody.
    viewer: Option<Arc<Viewer>>,
}

impl Listener {
    pub(crate) fn new(
        pipeline: &Arc<Pipeline>,
        wire: Wire,
        about: About,
        viewer: Option<Arc<Viewer>>,
    ) -> Self {
        let outbox = pipeline.subscriptions.listener(wire, about);
        if let Some(viewer) = &viewer {
            viewer.join(&outbox);
        }
        pipeline.tell(|| Event::ListenerCame { id: outbox.id(), client: outbox.client() });
        Self { pipeline: pipeline.clone(), outbox, viewer }
    }

    pub(crate) fn outbox(&self) -> &Arc<Outbox> {
        &self.outbox
    }

    /// The client.
    pub(crate) fn viewer(&self) -> Option<&Arc<Viewer>> {
        self.viewer.as_ref()
    }

    /// Follows lists from now on. Their current content is the baseline.
    pub(crate) fn follow_lists(&self, kinds: ListKinds) {
        for kind in kinds.iter() {
            let subscriptions = &self.pipeline.subscriptions;
            let view = subscriptions.follow_list(kind, &self.outbox, true);
            let now = self.pipeline.check_list(kind, &view);
            self.outbox.baseline_list(kind, (now, &view.pulse));
        }
    }

    /// Begins a legacy session: follows its lists, and announces each once if the hub is configured
    /// to.
    pub(crate) fn greet(&self, kinds: ListKinds) {
        match self.pipeline.config.greeting {
            Greeting::Silent => self.follow_lists(kinds),
            Greeting::Announce => {
                let since = Instant::now();
                for kind in kinds.iter() {
                    let subscriptions = &self.pipeline.subscriptions;
                    let view = subscriptions.follow_list(kind, &self.outbox, false);
                    let now = self.pipeline.check_list(kind, &view);
                    let notice = self.pipeline.list_notice(kind);
                    self.outbox.mark_list(kind, (now, &view.pulse), notice, since);
                }
            }
        }
    }

    /// Watches a URI from now on. The result of a read now is the baseline. Watching it twice has no
    /// further effect.
    pub(crate) async fn subscribe(&self, uri: &ResourceUri) -> Result<(), SubscribeError> {
        let labels = self.viewer.as_ref().map(|viewer| viewer.labels()).unwrap_or_default();
        let route = self.pipeline.catalog.route(uri, &labels).map_err(|missing| match missing {
            Missing::Unknown => SubscribeError::Unknown,
            Missing::Disabled => SubscribeError::Disabled,
        })?;
        if let Some(error @ (AnswerError::Malformed(_) | AnswerError::Invalid { .. })) =
            route.answerer.member.refuse(uri)
        {
            return Err(SubscribeError::Unreadable(error));
        }
        let limit = self.pipeline.config.limits.subscriptions_per_listener;
        if self.outbox.followed_count() + price(uri) > limit && !self.outbox.follows(uri) {
            return Err(SubscribeError::TooMany(limit));
        }
        let Some(watched) = self.pipeline.subscriptions.follow(uri, &self.outbox)? else {
            return Ok(());
        };
        // A source learns of every watcher of its resources, whatever the watcher may see.
        let owner = route.is_withheld.then(|| self.pipeline.catalog.owner(uri).ok()).flatten();
        let member = &owner.as_ref().unwrap_or(&route).answerer.member;
        if watched.settle(&self.outbox, &route.audience) {
            self.pipeline.watchers_moved(uri, member);
            return Ok(());
        }
        // Cancel-safe: a request that is dropped before its baseline is known watches nothing.
        let mut undo = Undo { listener: Some(self), uri };
        self.pipeline.watchers_moved(uri, member);
        let mut audience = route.audience.clone();
        for _ in 0..CHECKS {
            let (now, facts) = self.pipeline.check(&watched).await;
            self.pipeline.moved(&watched, now, &facts, Instant::now());
            audience = facts.audience;
            if now.at == watched.pulse().count() {
                break;
            }
        }
        watched.settle_with_latest(&self.outbox, &audience);
        undo.listener = None;
        Ok(())
    }

    /// Stops watching a URI.
    pub(crate) fn unsubscribe(&self, uri: &ResourceUri) {
        if self.pipeline.subscriptions.unfollow(uri, &self.outbox) {
            self.pipeline.unwatched(uri);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        for uri in self.pipeline.subscriptions.forget(&self.outbox) {
            self.pipeline.unwatched(&uri);
        }
        self.pipeline.tell(|| Event::ListenerLeft { id: self.outbox.id() });
    }
}

struct Undo<'a> {
    listener: Option<&'a Listener>,
    uri: &'a ResourceUri,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener {
            listener.unsubscribe(self.uri);
        }
    }
}
