//! The listeners that see the same of a list: those with equal labels, of the labels that some item
//! of the list names.
//!
//! When an item with another label appears, the holders of that label leave their group. When the
//! last such item disappears, they return. A listener that changes groups is checked with the next
//! check of the list. So groups may lag behind the catalog: one listener is checked with all of its
//! labels, and a check of a group counts only for those who are in it once the labels were learned
//! again.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use tidings_core::ListKind;

use crate::catalog::{MovedLabels, Reach};
use crate::labels::Labels;
use crate::outbox::{Outbox, Pulse};

/// The groups of every list.
#[derive(Debug, Default)]
pub(super) struct Groups {
    lists: [FollowedList; ListKind::ALL.len()],
    /// The listeners with a label, whatever list they follow.
    holders: HashMap<Arc<str>, BTreeMap<u64, Arc<Outbox>>>,
}

/// The groups of one list.
#[derive(Debug, Default)]
struct FollowedList {
    /// The labels that items name, as far as they were learned.
    named: BTreeSet<Arc<str>>,
    /// By those labels of the listeners that are named.
    groups: HashMap<Labels, Group>,
}

/// Listeners that see the same.
#[derive(Debug, Default)]
struct Group {
    /// The changes that they may see.
    pulse: Pulse,
    /// The count of changes that was checked.
    checked: u64,
    followers: BTreeMap<u64, Arc<Outbox>>,
    /// Those who came from another group, and were not checked since.
    arrived: BTreeSet<u64>,
}

/// A view of a list, as one listener or a group of them has it.
#[derive(Clone, Debug)]
pub(crate) struct ListView {
    /// The labels of the listener, or those of the group.
    pub(crate) labels: Labels,
    /// The changes that the group may see.
    pub(crate) pulse: Pulse,
}

/// A view that must be checked.
#[derive(Debug)]
pub(crate) struct Due {
    pub(crate) view: ListView,
    /// Whom the check is for; nothing is all listeners of the view.
    pub(super) only: Option<BTreeSet<u64>>,
}

impl FollowedList {
    fn reduce(&self, labels: &Labels) -> Labels {
        labels.filtered(|label| self.named.contains(label))
    }

    fn insert(&mut self, labels: &Labels, outbox: &Arc<Outbox>) -> &mut Group {
        let group = self.groups.entry(labels.clone()).or_default();
        group.followers.insert(outbox.id(), outbox.clone());
        group
    }

    fn remove(&mut self, labels: &Labels, listener: u64) {
        let Some(group) = self.groups.get_mut(labels) else { return };
        group.followers.remove(&listener);
        group.arrived.remove(&listener);
        if group.followers.is_empty() {
            self.groups.remove(labels);
        }
    }

    /// Learns which of these labels are named now; returns those that were not, or are not any more.
    fn learn(&mut self, moved: MovedLabels) -> BTreeSet<Arc<str>> {
        let learned = moved.into_iter().filter(|(label, is_named)| {
            if *is_named { self.named.insert(label.clone()) } else { self.named.remove(label) }
        });
        learned.map(|(label, _)| label).collect()
    }
}

impl Groups {
    /// The most groups of a list.
    pub(super) fn len(&self) -> usize {
        self.lists.iter().map(|list| list.groups.len()).max().unwrap_or_default()
    }

    pub(super) fn is_followed(&self, kind: ListKind) -> bool {
        !self.lists[kind.index()].groups.is_empty()
    }

    /// Those who follow a list in this view.
    pub(super) fn followers(
        &self,
        kind: ListKind,
        labels: &Labels,
    ) -> impl Iterator<Item = &Arc<Outbox>> {
        let group = self.lists[kind.index()].groups.get(labels);
        group.into_iter().flat_map(|group| group.followers.values())
    }

    /// The view of a list that clients with these labels have, if anybody follows it.
    pub(super) fn view(&self, kind: ListKind, labels: &Labels) -> Option<ListView> {
        let list = &self.lists[kind.index()];
        let pulse = list.groups.get(&list.reduce(labels))?.pulse.clone();
        Some(ListView { labels: labels.clone(), pulse })
    }

    /// Puts a listener with these labels among those who see the same of a list.
    pub(super) fn follow(
        &mut self,
        kind: ListKind,
        labels: &Labels,
        outbox: &Arc<Outbox>,
    ) -> ListView {
        self.hold(labels, outbox);
        let list = &mut self.lists[kind.index()];
        let pulse = list.insert(&list.reduce(labels), outbox).pulse.clone();
        ListView { labels: labels.clone(), pulse }
    }

    /// Removes a listener with these labels.
    pub(super) fn forget(&mut self, labels: &Labels, listener: u64) {
        for list in &mut self.lists {
            list.remove(&list.reduce(labels), listener);
        }
        self.let_go(labels, listener);
    }

    /// Moves a listener from those with its old labels to those with its new ones; returns the
    /// pulse of each list that it may see differently now.
    pub(super) fn relabel(
        &mut self,
        (from, to): (&Labels, &Labels),
        outbox: &Arc<Outbox>,
    ) -> [Option<Pulse>; ListKind::ALL.len()] {
        let lists = outbox.lists();
        if lists.is_empty() {
            return Default::default();
        }
        self.let_go(from, outbox.id());
        self.hold(to, outbox);
        ListKind::ALL.map(|kind| {
            let list = &mut self.lists[kind.index()];
            let (from, to) = (list.reduce(from), list.reduce(to));
            if from == to || !lists.contains(kind) {
                return None;
            }
            list.remove(&from, outbox.id());
            Some(list.insert(&to, outbox).pulse.clone())
        })
    }

    /// Learns that items of a list name these labels now, or do not any more: their holders change
    /// groups. True if somebody did.
    pub(super) fn learn(&mut self, kind: ListKind, moved: MovedLabels) -> bool {
        let list = &mut self.lists[kind.index()];
        let learned = list.learn(moved);
        let holders = learned.iter().filter_map(|label| self.holders.get(label)).flatten();
        let mut holders: BTreeMap<_, _> = holders.collect();
        holders.retain(|_, outbox| outbox.lists().contains(kind));
        for (listener, outbox) in &holders {
            let labels = outbox.labels();
            let was_named = |label: &str| list.named.contains(label) != learned.contains(label);
            list.remove(&labels.filtered(was_named), **listener);
            let group = list.insert(&list.reduce(&labels), outbox);
            // What it sees now may differ, also if the change itself is counted for others.
            group.arrived.insert(**listener);
            outbox.regroup(kind, &group.pulse);
        }
        !holders.is_empty()
    }

    /// Counts a change of a list for those who may see it.
    pub(super) fn beat(&self, kind: ListKind, reach: &Reach) {
        for (labels, group) in &self.lists[kind.index()].groups {
            if reach.includes(labels) {
                group.pulse.beat();
            }
        }
    }

    /// The views of a list that may show something else than when they were last checked, and those
    /// of listeners that arrived in them. They count as checked from now on.
    pub(super) fn take_dirty(&mut self, kind: ListKind) -> Vec<Due> {
        let groups = self.lists[kind.index()].groups.iter_mut();
        let dirty = groups.filter_map(|(labels, group)| {
            let count = group.pulse.count();
            let arrived = std::mem::take(&mut group.arrived);
            let is_dirty = std::mem::replace(&mut group.checked, count) != count;
            let only = (!is_dirty).then_some(arrived);
            let view = ListView { labels: labels.clone(), pulse: group.pulse.clone() };
            only.as_ref().is_none_or(|only| !only.is_empty()).then_some(Due { view, only })
        });
        dirty.collect()
    }

    fn hold(&mut self, labels: &Labels, outbox: &Arc<Outbox>) {
        for label in labels.as_slice() {
            let holders = self.holders.entry(label.clone()).or_default();
            holders.insert(outbox.id(), outbox.clone());
        }
    }

    fn let_go(&mut self, labels: &Labels, listener: u64) {
        for label in labels.as_slice() {
            let Some(holders) = self.holders.get_mut(label) else { continue };
            holders.remove(&listener);
            if holders.is_empty() {
                self.holders.remove(label);
            }
        }
    }
}
