//! The watched URIs of one listener with their slots, in the order of the URIs.
//!
//! Most listeners watch one URI or a few. A map has room for four at once, which would be half of
//! the memory of an idle listener.

use tidings_core::ResourceUri;

use super::slot::Slot;

/// Slots by their URI.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Invariant: in the order of the URIs, each once.
    all: Vec<(ResourceUri, Slot)>,
}

impl Slots {
    pub(super) fn contains(&self, uri: &ResourceUri) -> bool {
        self.find(uri).is_ok()
    }

    pub(super) fn get_mut(&mut self, uri: &ResourceUri) -> Option<&mut Slot> {
        let at = self.find(uri).ok()?;
        Some(&mut self.all[at].1)
    }

    /// Adds or replaces a slot.
    pub(super) fn insert(&mut self, uri: ResourceUri, slot: Slot) {
        match self.find(&uri) {
            Ok(at) => self.all[at].1 = slot,
            Err(at) => {
                if self.all.len() == self.all.capacity() {
                    // A vector of its own accord begins with room for four.
                    self.all.reserve_exact(self.all.len() / 2 + 1);
                }
                self.all.insert(at, (uri, slot));
            }
        }
    }

    pub(super) fn remove(&mut self, uri: &ResourceUri) -> Option<Slot> {
        let (_, slot) = self.all.remove(self.find(uri).ok()?);
        if self.all.len() < self.all.capacity() / 2 {
            self.all.shrink_to_fit();
        }
        Some(slot)
    }

    pub(super) fn uris(&self) -> impl Iterator<Item = &ResourceUri> {
        self.all.iter().map(|(uri, _)| uri)
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (&ResourceUri, &mut Slot)> {
        self.all.iter_mut().map(|(uri, slot)| (&*uri, slot))
    }

    fn find(&self, uri: &ResourceUri) -> Result<usize, usize> {
        self.all.binary_search_by(|(held, _)| held.cmp(uri))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::outbox::Pulse;

    proptest! {
        #[test]
        fn they_are_a_sorted_map(steps in prop::collection::vec((any::<bool>(), 0..12), 0..60)) {
            let (mut slots, mut plain) = (Slots::default(), BTreeSet::new());
            for (adds, number) in steps {
                let uri = ResourceUri::parse(&format!("p://{number}")).unwrap();
                if adds {
                    slots.insert(uri.clone(), Slot::new(&Pulse::default(), false));
                    plain.insert(uri.clone());
                    prop_assert!(slots.get_mut(&uri).is_some());
                } else {
                    prop_assert_eq!(slots.remove(&uri).is_some(), plain.remove(&uri));
                    prop_assert!(slots.get_mut(&uri).is_none());
                }
                prop_assert_eq!(slots.contains(&uri), plain.contains(&uri));
                prop_assert!(slots.uris().eq(&plain));
                prop_assert!(slots.iter_mut().map(|(uri, _)| uri).eq(&plain));
                prop_assert!(slots.all.capacity() <= 2 * slots.all.len() + 1);
            }
        }
    }
}
