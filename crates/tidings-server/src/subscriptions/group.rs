//! The listeners that see the same lists: those with equal labels.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use tidings_core::ListKind;

use crate::labels::Labels;
use crate::outbox::{Outbox, Pulse};

/// Every listener that follows a list, by its labels.
#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<Labels, Group>);

/// Listeners with equal labels. What one of them sees of a list, all do.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// The changes of each list that they may see.
    pub(super) pulses: [Pulse; ListKind::ALL.len()],
    /// The counts of changes that were checked.
    checked: [u64; ListKind::ALL.len()],
    lists: [BTreeMap<u64, Arc<Outbox>>; ListKind::ALL.len()],
}

impl Group {
    /// Those who follow a list.
    pub(super) fn followers(&self, kind: ListKind) -> impl Iterator<Item = &Arc<Outbox>> {
        self.lists[kind.index()].values()
    }

    fn is_empty(&self) -> bool {
        self.lists.iter().all(BTreeMap::is_empty)
    }
}

impl Groups {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Labels, &Group)> {
        self.0.iter()
    }

    pub(super) fn get(&self, labels: &Labels) -> Option<&Group> {
        self.0.get(labels)
    }

    /// Puts a listener among those with its labels; returns the pulse of the list as they see it.
    pub(super) fn follow(&mut self, kind: ListKind, labels: Labels, outbox: &Arc<Outbox>) -> Pulse {
        let group = self.0.entry(labels).or_default();
        group.lists[kind.index()].insert(outbox.id(), outbox.clone());
        group.pulses[kind.index()].clone()
    }

    /// Removes a listener with these labels.
    pub(super) fn forget(&mut self, labels: &Labels, listener: u64) {
        let Some(group) = self.0.get_mut(labels) else { return };
        for list in &mut group.lists {
            list.remove(&listener);
        }
        if group.is_empty() {
            self.0.remove(labels);
        }
    }

    /// Moves a listener from those with its old labels to those with its new ones; returns the
    /// pulses of the lists as they see them. Nothing if it follows no list.
    pub(super) fn move_over(
        &mut self,
        (from, to): (&Labels, &Labels),
        outbox: &Arc<Outbox>,
    ) -> Option<[Pulse; ListKind::ALL.len()]> {
        let lists = outbox.lists();
        self.forget(from, outbox.id());
        for kind in lists.iter() {
            self.follow(kind, to.clone(), outbox);
        }
        self.0.get(to).filter(|_| !lists.is_empty()).map(|group| group.pulses.clone())
    }

    /// The groups that may see something else in a list than when it was last checked: their
    /// labels, and the pulse. They count as checked from now on.
    pub(super) fn take_dirty(&mut self, kind: ListKind) -> Vec<(Labels, Pulse)> {
        let index = kind.index();
        let dirty = self.0.iter_mut().filter_map(|(labels, group)| {
            let count = group.pulses[index].count();
            let is_dirty = std::mem::replace(&mut group.checked[index], count) != count;
            (is_dirty && !group.lists[index].is_empty())
                .then(|| (labels.clone(), group.pulses[index].clone()))
        });
        dirty.collect()
    }
}
