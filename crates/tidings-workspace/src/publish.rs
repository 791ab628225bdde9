//! Publishing: announce every logged change to the hub, from this process and others.

use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use tidings_server::EditError;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::change::{Change, Event};
use crate::offer::{Has, WorkspaceOffer};
use crate::store::ArtifactList;
use crate::touched::touched;
use crate::{Refusal, WorkspaceError, WorkspaceInner};

/// How many events are published at once.
const AT_ONCE: usize = 1_000;
/// How long to pause after updating the list of resources. Shorter than the hub's quiet time, so
/// that endless writes are still announced now and then.
const REST: Duration = Duration::from_millis(10);

impl WorkspaceInner {
    pub(super) fn offer(&self) -> MutexGuard<'_, Option<WorkspaceOffer>> {
        self.offer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the workspace contains.
    pub(super) fn has(&self) -> Result<Has, WorkspaceError> {
        let summary = self.store.summary()?;
        let (identities, connections) = self.store.has_graph()?;
        let artifacts = summary.artifacts + summary.archived > 0;
        Ok(Has { artifacts, identities, connections })
    }

    /// Announces every event that is not announced yet. A second caller waits for its turn and
    /// finds nothing left to do. May wait for the disk.
    pub(super) fn publish(&self) -> Result<(), WorkspaceError> {
        let mut place = self.offer();
        let Some(offer) = &mut *place else { return Ok(()) };
        loop {
            let last = *self.store.follow().borrow();
            let Some(told) = offer.told else {
                self.announce_everything(offer)?;
                offer.told = Some(last);
                continue;
            };
            if told >= last {
                return Ok(());
            }
            match self.store.events(told, &[], AT_ONCE) {
                // More events were written than are kept.
                Err(WorkspaceError::Refused(Refusal::Expired { .. })) => offer.told = None,
                Ok(news) if news.events.iter().any(|it| is_unknown(&it.change)) => {
                    offer.told = None;
                }
                Ok(news) => {
                    self.announce(offer, &news.events)?;
                    offer.told = Some(news.cursor);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Announces that anything may have changed.
    fn announce_everything(&self, offer: &mut WorkspaceOffer) -> Result<(), WorkspaceError> {
        arm(offer, self.has()?);
        for scheme in ["artifacts", "cas", "graph", "events"] {
            offer.changed_below(&format!("{scheme}://"));
        }
        Ok(())
    }

    fn announce(&self, offer: &mut WorkspaceOffer, events: &[Event]) -> Result<(), WorkspaceError> {
        // Order: a tool is usable before the client is notified of the change that makes it usable.
        let mut has = offer.has();
        for event in events {
            match &event.change {
                Change::Created(_) => has.artifacts = true,
                Change::Bound { .. } => has.identities = true,
                Change::Connected(_) => has.connections = true,
                _ => {}
            }
        }
        let takes = |event: &Event| {
            matches!(event.change, Change::Unbound { .. } | Change::Disconnected(_))
        };
        if events.iter().any(takes) {
            has = self.has()?;
        }
        arm(offer, has);
        let (mut uris, mut patterns) = (BTreeSet::new(), BTreeSet::new());
        for event in events {
            let entry = match (&event.change, event.change.artifact()) {
                (Change::Created(_) | Change::Annotated { .. }, _) | (_, None) => None,
                (_, Some(id)) => self.store.entry(id)?,
            };
            let moved = touched(&event.change, entry.as_ref());
            uris.extend(moved.uris);
            patterns.extend(moved.patterns);
        }
        for uri in &uris {
            offer.changed(uri);
        }
        for pattern in &patterns {
            match pattern.strip_suffix('*') {
                Some(prefix) => offer.changed_below(prefix),
                None => offer.changed(pattern),
            }
        }
        Ok(())
    }

    /// Updates the list of resources to the last published event.
    pub(super) fn enlist(&self) -> Result<(), WorkspaceError> {
        let config = self.store.config();
        let mut place = self.offer();
        let Some(offer) = &mut *place else { return Ok(()) };
        if offer.listed.is_some() && offer.listed == offer.told {
            return Ok(());
        }
        let artifacts = self.store.list(&ArtifactList::Recent, None, config.listed_artifacts)?;
        let identities = self.store.identities(None, config.listed_identities)?;
        let listed: Result<(), EditError> = offer.list(&artifacts.items, &identities.items);
        if let Err(error) = listed {
            warn!(%error, "the list of artifacts could not be updated");
        }
        offer.listed = offer.told;
        Ok(())
    }

    /// Publishes events until the token is cancelled: our own at once, those of other processes
    /// when polled. Polling also retries what could not be announced before.
    pub(super) async fn follow(self: &Arc<Self>, cancel: CancellationToken) {
        let mut news = self.store.follow();
        let mut polls = tokio::time::interval(self.store.config().poll_every);
        polls.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // Include what happened since the start.
        news.mark_changed();
        loop {
            let is_news = tokio::select! {
                () = cancel.cancelled() => return,
                Ok(()) = news.changed() => true,
                _ = polls.tick() => false,
            };
            let inner = self.clone();
            let work = move || {
                let found = if is_news { Ok(()) } else { inner.store.find_new_events() };
                found.and(inner.catch_up())
            };
            match tokio::task::spawn_blocking(work).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => warn!(%error, "changes of the workspace could not be published"),
                Err(error) => warn!(%error, "changes of the workspace could not be published"),
            }
            if is_news {
                tokio::select! {
                    () = cancel.cancelled() => return,
                    () = tokio::time::sleep(REST) => {}
                }
            }
        }
    }

    fn catch_up(&self) -> Result<(), WorkspaceError> {
        self.publish()?;
        self.enlist()
    }
}

/// Whether this release does not know the change.
fn is_unknown(change: &Change) -> bool {
    matches!(change, Change::Unknown(_))
}

fn arm(offer: &mut WorkspaceOffer, has: Has) {
    if let Err(error) = offer.arm(has) {
        warn!(%error, "the list of tools could not be updated");
    }
}
