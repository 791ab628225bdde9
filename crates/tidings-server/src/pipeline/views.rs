//! Labels that change while clients are connected: what a client sees by then is checked as after
//! any other change.

use std::sync::Arc;

use tokio::time::Instant;

use super::{Facts, Pipeline};
use crate::identity::Identity;
use crate::labels::Labels;
use crate::outbox::Outbox;
use crate::viewers::{GrantError, Scope, Viewer, Word};
use crate::windows::Topic;

impl Pipeline {
    /// Grants labels to a client or its person, or withdraws them.
    pub(super) fn say_to(
        &self,
        viewer: &Viewer,
        scope: Scope,
        words: (&Labels, Word),
    ) -> Result<(), GrantError> {
        self.viewers.say(viewer, scope, words, |outbox, labels| self.relabel(outbox, labels))
    }

    /// Grants labels to a person, or withdraws them.
    pub(crate) fn say_of(&self, name: &str, words: (&Labels, Word)) -> Result<(), GrantError> {
        self.viewers.say_of(name, words, |outbox, labels| self.relabel(outbox, labels))
    }

    /// A client is this by now.
    pub(crate) fn identify(&self, viewer: &Viewer, identity: Identity) {
        self.viewers.identify(viewer, identity, |outbox, labels| self.relabel(outbox, labels));
    }

    /// Replaces a listener's labels: all it follows is dirty, and is checked when its labels have
    /// been quiet for a moment.
    fn relabel(&self, outbox: &Arc<Outbox>, labels: &Labels) {
        self.subscriptions.relabel(outbox, labels);
        self.metrics.changes.inc();
        if self.windows().mark(Topic::View(outbox.id()), Instant::now()) {
            self.wake.notify_one();
        }
    }

    /// Checks a listener whose labels changed: its view now against its last notices.
    pub(super) fn look_again(&self, listener: u64, since: Instant) {
        let Some(outbox) = self.subscriptions.listener_of(listener) else { return };
        let labels = outbox.labels();
        let mut told = 0;
        for kind in outbox.moved_lists().iter() {
            let Some(view) = self.subscriptions.view(kind, &labels) else { continue };
            let now = self.check_list(kind, &view);
            let notice = self.list_notice(kind);
            told += usize::from(outbox.mark_list(kind, (now, &view.pulse), notice, since));
        }
        for uri in outbox.followed() {
            let Some(watched) = self.subscriptions.get(uri.as_ref()) else { continue };
            let facts =
                self.catalog.owner(&uri).map_or_else(|_| Facts::default(), |it| super::facts(&it));
            told += usize::from(watched.look_again(&outbox, &facts, since));
        }
        self.report("labels", told);
    }
}
