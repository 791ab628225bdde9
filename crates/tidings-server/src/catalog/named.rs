//! The labels that items name: others of a client make no difference to what it sees.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::labels::Labels;

/// The labels in the audiences of the items of one kind, with the number of items that name each.
#[derive(Debug, Default)]
pub(super) struct Named {
    items: HashMap<Arc<str>, usize>,
    /// The labels that were named for the first time, or for the last, since [`Self::take_moved`].
    moved: BTreeSet<Arc<str>>,
}

/// Labels, and whether an item names each of them.
pub(crate) type MovedLabels = BTreeMap<Arc<str>, bool>;

impl Named {
    /// Whether an item names this label.
    pub(super) fn contains(&self, label: &str) -> bool {
        self.items.contains_key(label)
    }

    /// Whether no item names a label.
    pub(super) fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Whether nothing waits for [`Self::take_moved`].
    pub(super) fn has_rested(&self) -> bool {
        self.moved.is_empty()
    }

    /// The labels that items may name since the last call, or not any more.
    pub(super) fn take_moved(&mut self) -> BTreeSet<Arc<str>> {
        std::mem::take(&mut self.moved)
    }

    /// Replaces an item's audience `before` with `after`. `None` means that there is no item.
    pub(super) fn replace(&mut self, before: Option<&Labels>, after: Option<&Labels>) {
        // Order: labels of both audiences are not removed in between.
        for label in after.into_iter().flat_map(Labels::as_slice) {
            let items = self.items.entry(label.clone()).or_default();
            *items += 1;
            if *items == 1 {
                self.moved.insert(label.clone());
            }
        }
        for label in before.into_iter().flat_map(Labels::as_slice) {
            if let Some(items) = self.items.get_mut(label) {
                *items -= 1;
                if *items == 0 {
                    self.items.remove(label);
                    self.moved.insert(label.clone());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_named_while_an_item_names_it() {
        let set = |text| Labels::parse(text).unwrap();
        let mut named = Named::default();
        named.replace(None, Some(&set("a b")));
        named.replace(None, Some(&set("b")));
        named.replace(Some(&set("a b")), Some(&set("a c")));
        assert_eq!(["a", "b", "c"].map(|label| named.contains(label)), [true; 3]);
        named.replace(Some(&set("b")), Some(&Labels::NONE));
        named.replace(Some(&set("a c")), None);
        assert!(named.is_empty());
    }

    #[test]
    fn only_the_first_and_the_last_item_with_a_label_move_it() {
        let mut named = Named::default();
        let mut moved = |before: Option<&str>, after: Option<&str>| {
            let [before, after] =
                [before, after].map(|it| it.map(|text| Labels::parse(text).unwrap()));
            named.replace(before.as_ref(), after.as_ref());
            let moved: Vec<_> = named.take_moved().iter().map(ToString::to_string).collect();
            assert!(named.has_rested());
            moved.join(" ")
        };
        assert_eq!(moved(None, Some("a b")), "a b");
        assert_eq!(moved(None, Some("b")), "");
        assert_eq!(moved(Some("a b"), Some("b c")), "a c");
        assert_eq!(moved(Some("b"), None), "");
        assert_eq!(moved(Some("b c"), None), "b c");
    }
}
