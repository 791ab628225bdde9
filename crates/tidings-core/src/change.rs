//! Which of a server's lists can change, and small sets of them.

use std::fmt;

/// One of the lists a server offers.
///
/// ```
/// use tidings_core::ListKind;
///
/// assert_eq!(ListKind::ALL.map(ListKind::as_str), ["tools", "prompts", "resources"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListKind {
    /// The tools that can be called.
    Tools,
    /// The prompts that can be filled in.
    Prompts,
    /// The resources that can be read, and their templates.
    Resources,
}

impl ListKind {
    /// Every kind, in the order of [`index`](Self::index).
    pub const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// The name of the list, in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources => "resources",
        }
    }

    /// The place of this kind in [`ALL`](Self::ALL), for arrays with one entry a kind.
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for ListKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// A set of [`ListKind`]s, as small as a byte.
///
/// ```
/// use tidings_core::{ListKind, ListKinds};
///
/// let mut kinds = ListKinds::EMPTY;
/// assert!(kinds.insert(ListKind::Resources));
/// assert!(!kinds.insert(ListKind::Resources), "it is there already");
/// assert!(kinds.contains(ListKind::Resources) && !kinds.contains(ListKind::Tools));
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListKinds {
    // Invariant: only the bits `1 << kind.index()` are ever set.
    bits: u8,
}

impl ListKinds {
    /// No list.
    pub const EMPTY: Self = Self { bits: 0 };

    /// Every list.
    pub const ALL: Self = Self { bits: (1 << ListKind::ALL.len()) - 1 };

    /// Adds a kind and says whether it was missing.
    pub const fn insert(&mut self, kind: ListKind) -> bool {
        let was_missing = !self.contains(kind);
        self.bits |= 1 << kind.index();
        was_missing
    }

    /// Whether the kind is in the set.
    #[must_use]
    pub const fn contains(self, kind: ListKind) -> bool {
        self.bits & (1 << kind.index()) != 0
    }

    /// Whether there is no kind in the set.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// What is in either set.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits }
    }

    /// The kinds in the set, in the order of [`ListKind::ALL`].
    pub fn iter(self) -> impl Iterator<Item = ListKind> {
        ListKind::ALL.into_iter().filter(move |kind| self.contains(*kind))
    }
}

impl FromIterator<ListKind> for ListKinds {
    fn from_iter<I: IntoIterator<Item = ListKind>>(kinds: I) -> Self {
        let mut set = Self::EMPTY;
        for kind in kinds {
            set.insert(kind);
        }
        set
    }
}

impl fmt::Debug for ListKinds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_at_its_index() {
        for kind in ListKind::ALL {
            assert_eq!(ListKind::ALL[kind.index()], kind);
        }
    }

    #[test]
    fn the_full_set_has_every_kind_and_the_empty_one_none() {
        assert_eq!(ListKinds::ALL, ListKind::ALL.into_iter().collect());
        assert_eq!(ListKinds::EMPTY.iter().count(), 0);
        assert!(ListKinds::EMPTY.is_empty() && !ListKinds::ALL.is_empty());
        assert_eq!(ListKinds::default(), ListKinds::EMPTY);
    }

    #[test]
    fn a_union_has_what_either_has_in_order() {
        let one = ListKinds::from_iter([ListKind::Resources]);
        let both = one.union(ListKinds::from_iter([ListKind::Tools, ListKind::Resources]));
        assert_eq!(both.iter().collect::<Vec<_>>(), [ListKind::Tools, ListKind::Resources]);
        assert_eq!(format!("{both:?}"), "{Tools, Resources}");
    }
}
