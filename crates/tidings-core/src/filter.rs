//! [`Filter`]: what one listener asked to hear about.

use std::collections::BTreeSet;

use crate::change::{ListKind, ListKinds};
use crate::uri::ResourceUri;

/// What one listener asked to hear about: some lists and some resources.
///
/// The default asks for nothing. A resource is asked for by its own URI: one under it, or
/// the same with a query, is another resource.
///
/// ```
/// use tidings_core::{Filter, ListKind, ListKinds, ResourceUri};
///
/// let news = ResourceUri::parse("feed://news")?;
/// let filter = Filter { lists: ListKinds::EMPTY, uris: [news.clone()].into() };
/// assert!(filter.wants(&news));
/// assert!(!filter.wants(&ResourceUri::parse("feed://news/1")?));
/// assert!(!filter.wants_list(ListKind::Resources));
/// # Ok::<(), tidings_core::UriError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// The lists whose changes are wanted.
    pub lists: ListKinds,
    /// The resources whose changes are wanted.
    pub uris: BTreeSet<ResourceUri>,
}

impl Filter {
    /// Whether a change of this list is wanted.
    #[must_use]
    pub fn wants_list(&self, kind: ListKind) -> bool {
        self.lists.contains(kind)
    }

    /// Whether a change of this resource is wanted.
    #[must_use]
    pub fn wants(&self, uri: &ResourceUri) -> bool {
        self.uris.contains(uri)
    }

    /// Whether nothing at all is wanted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty() && self.uris.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_empty_until_it_asks_for_a_list_or_a_resource() {
        assert!(Filter::default().is_empty());
        assert!(!Filter { lists: ListKinds::ALL, ..Filter::default() }.is_empty());
        let uri = ResourceUri::parse("a:b").unwrap();
        assert!(!Filter { uris: [uri].into(), ..Filter::default() }.is_empty());
    }

    #[test]
    fn only_what_was_asked_for_is_wanted() {
        let uri = ResourceUri::parse("a:b").unwrap();
        let filter =
            Filter { lists: ListKinds::from_iter([ListKind::Prompts]), uris: [uri.clone()].into() };
        assert!(filter.wants(&uri));
        assert!(!filter.wants(&ResourceUri::parse("a:b?c").unwrap()));
        assert_eq!(ListKind::ALL.map(|kind| filter.wants_list(kind)), [false, true, false]);
    }
}
