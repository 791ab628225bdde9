//! Changes: of a resource, of every watched resource below a prefix, or of a list.

use std::fmt;

use crate::uri::{ResourceUri, UriError};

/// Something that a read or a list may return differently now.
///
/// Announcing a change is cheap: a notice is sent only to subscribers, and only if they would read
/// something other than what they were last notified of.
///
/// ```
/// use tidings_core::{Change, ListKind};
///
/// let change = Change::try_from("notes://all")?;
/// assert_eq!(change, Change::resource("notes://all".parse()?));
/// assert!(Change::try_from("no uri").is_err(), "a malformed URI is an error, not silence");
/// assert_eq!(Change::from(ListKind::Tools), Change::Lists([ListKind::Tools].into_iter().collect()));
/// # Ok::<(), tidings_core::UriError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// The content of this URI.
    Resource(ResourceUri, Pace),
    /// The contents of all watched URIs that start with this text.
    Below(Box<str>),
    /// The items of these lists.
    Lists(ListKinds),
}

/// Whether more of the same change is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pace {
    /// Unknown: the change is compared after a moment of quiet.
    #[default]
    Unknown,
    /// The change is complete, such as a file that was written and closed. It is compared without
    /// waiting, unless it was compared within the quiet time.
    Settled,
    /// The source groups changes itself, such as the writes to an open file. They may be further
    /// apart than the quiet time and still be one change.
    Unsettled,
}

impl Change {
    /// A change of one resource.
    #[must_use]
    pub fn resource(uri: ResourceUri) -> Self {
        Self::Resource(uri, Pace::default())
    }

    /// A change of every watched resource whose URI starts with this text.
    #[must_use]
    pub fn below(prefix: impl Into<Box<str>>) -> Self {
        Self::Below(prefix.into())
    }

    /// The same change of a resource at this pace. Other changes have no pace.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        match self {
            Self::Resource(uri, _) => Self::Resource(uri, pace),
            other => other,
        }
    }
}

impl From<ResourceUri> for Change {
    fn from(uri: ResourceUri) -> Self {
        Self::resource(uri)
    }
}

impl From<&ResourceUri> for Change {
    fn from(uri: &ResourceUri) -> Self {
        Self::resource(uri.clone())
    }
}

impl TryFrom<&str> for Change {
    type Error = UriError;

    fn try_from(uri: &str) -> Result<Self, UriError> {
        ResourceUri::parse(uri).map(Self::resource)
    }
}

impl TryFrom<String> for Change {
    type Error = UriError;

    fn try_from(uri: String) -> Result<Self, UriError> {
        Self::try_from(uri.as_str())
    }
}

impl TryFrom<&String> for Change {
    type Error = UriError;

    fn try_from(uri: &String) -> Result<Self, UriError> {
        Self::try_from(uri.as_str())
    }
}

impl From<ListKind> for Change {
    fn from(kind: ListKind) -> Self {
        Self::Lists([kind].into_iter().collect())
    }
}

impl From<ListKinds> for Change {
    fn from(kinds: ListKinds) -> Self {
        Self::Lists(kinds)
    }
}

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

    /// The position of this kind in [`ALL`](Self::ALL), for arrays with one entry per kind.
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

/// A set of [`ListKind`]s in one byte.
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

    /// Adds a kind; returns whether it was missing.
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

    /// Whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// The union of two sets.
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
