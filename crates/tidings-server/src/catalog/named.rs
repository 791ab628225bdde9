//! The labels that items name: others of a client make no difference to what it sees.

use std::collections::HashMap;
use std::sync::Arc;

use crate::labels::Labels;

/// The labels in the audiences of the items of one kind, with the number of items that name each.
#[derive(Debug, Default)]
pub(super) struct Named(HashMap<Arc<str>, usize>);

impl Named {
    /// Whether an item names this label.
    pub(super) fn contains(&self, label: &str) -> bool {
        self.0.contains_key(label)
    }

    /// Replaces an item's audience `before` with `after`. `None` means that there is no item.
    pub(super) fn replace(&mut self, before: Option<&Labels>, after: Option<&Labels>) {
        // Order: labels of both audiences are not removed in between.
        for label in after.into_iter().flat_map(Labels::as_slice) {
            *self.0.entry(label.clone()).or_default() += 1;
        }
        for label in before.into_iter().flat_map(Labels::as_slice) {
            if let Some(items) = self.0.get_mut(label) {
                *items -= 1;
                if *items == 0 {
                    self.0.remove(label);
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
        assert!(named.0.is_empty());
    }
}
