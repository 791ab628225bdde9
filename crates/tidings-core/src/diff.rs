//! Compares two versions of a list: added, removed and changed items.

use std::collections::{HashMap, HashSet};

/// The difference of two versions of one list.
///
/// Items are identified by a key and compared as a whole. Each key must be unique in both lists;
/// see [`unique`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diff<T> {
    /// Items that only the new list has, in its order.
    pub added: Vec<T>,
    /// Items that only the old list had, in its order.
    pub removed: Vec<T>,
    /// Items whose key is in both lists and whose content differs: the new items, in the new order.
    pub changed: Vec<T>,
    /// Whether the common items are in another order.
    pub reordered: bool,
}

impl<T> Default for Diff<T> {
    fn default() -> Self {
        Self { added: Vec::new(), removed: Vec::new(), changed: Vec::new(), reordered: false }
    }
}

impl<T: Clone + PartialEq> Diff<T> {
    /// Compares two lists.
    ///
    /// ```
    /// use tidings_core::Diff;
    ///
    /// let diff = Diff::between(&[("a", 1), ("b", 1)], &[("b", 2), ("c", 1)], |item| item.0);
    /// assert_eq!(diff.added, [("c", 1)]);
    /// assert_eq!(diff.removed, [("a", 1)]);
    /// assert_eq!(diff.changed, [("b", 2)]);
    /// ```
    pub fn between<'a, K: Eq + std::hash::Hash>(
        old: &'a [T],
        new: &'a [T],
        key: impl Fn(&'a T) -> K,
    ) -> Self {
        Self::between_by(old, new, key, |old, new| old == new)
    }
}

impl<T: Clone> Diff<T> {
    /// Compares two lists with `equal`.
    pub fn between_by<'a, K: Eq + std::hash::Hash>(
        old: &'a [T],
        new: &'a [T],
        key: impl Fn(&'a T) -> K,
        equal: impl Fn(&T, &T) -> bool,
    ) -> Self {
        let before: HashMap<K, usize> =
            old.iter().enumerate().map(|(place, item)| (key(item), place)).collect();
        let mut kept = vec![false; old.len()];
        let mut diff = Self::default();
        let mut last = None;
        for item in new {
            let Some(&place) = before.get(&key(item)) else {
                diff.added.push(item.clone());
                continue;
            };
            kept[place] = true;
            diff.reordered |= last.is_some_and(|last| place < last);
            last = Some(place);
            if !equal(&old[place], item) {
                diff.changed.push(item.clone());
            }
        }
        diff.removed =
            old.iter().zip(kept).filter(|(_, kept)| !kept).map(|(item, _)| item.clone()).collect();
        diff
    }
}

impl<T> Diff<T> {
    /// Whether the two lists were equal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.added.is_empty()
            && self.removed.is_empty()
            && self.changed.is_empty()
            && !self.reordered
    }
}

/// Keeps the first item of each key, and returns the keys that came again.
pub fn unique<T, K: Clone + Eq + std::hash::Hash>(
    items: Vec<T>,
    key: impl Fn(&T) -> K,
) -> (Vec<T>, Vec<K>) {
    let mut seen: HashSet<K> = HashSet::with_capacity(items.len());
    let mut again = Vec::new();
    let kept = items
        .into_iter()
        .filter(|item| {
            let key = key(item);
            let is_first = seen.insert(key.clone());
            if !is_first {
                again.push(key);
            }
            is_first
        })
        .collect();
    (kept, again)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    type Item = (u8, u8);

    fn list() -> impl Strategy<Value = Vec<Item>> {
        prop::collection::vec((0u8..12, 0u8..3), 0..12)
            .prop_map(|items| unique(items, |item| item.0).0)
    }

    fn apply(old: &[Item], diff: &Diff<Item>) -> BTreeMap<u8, u8> {
        let mut now: BTreeMap<u8, u8> = old.iter().copied().collect();
        for item in &diff.removed {
            assert_eq!(now.remove(&item.0), Some(item.1));
        }
        for item in &diff.added {
            assert_eq!(now.insert(item.0, item.1), None);
        }
        for item in &diff.changed {
            assert!(now.insert(item.0, item.1).is_some_and(|before| before != item.1));
        }
        now
    }

    proptest! {
        #[test]
        fn diff_then_apply_is_identity(old in list(), new in list()) {
            let diff = Diff::between(&old, &new, |item| item.0);
            prop_assert_eq!(apply(&old, &diff), new.iter().copied().collect());
            prop_assert_eq!(diff.is_empty(), old == new);
        }
    }

    #[test]
    fn another_order_of_equal_items_is_a_difference() {
        let diff = Diff::between(&[(1, 0), (2, 0)], &[(2, 0), (1, 0)], |item| item.0);
        assert!(diff.reordered && diff.added.is_empty() && diff.removed.is_empty());
    }

    #[test]
    fn a_key_that_comes_again_is_kept_once_and_named() {
        assert_eq!(unique(vec![(1, 0), (1, 1)], |item| item.0), (vec![(1, 0)], vec![1]));
    }
}
