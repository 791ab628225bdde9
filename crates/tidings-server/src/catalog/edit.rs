//! Edits of the catalog, and what they may change.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::Resource;
use tidings_core::{ListKinds, ResourceUri};

use crate::answers::Answers;
use crate::catalog::{Kind, Stored};

/// What an edit may have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) lists: ListKinds,
    /// Lists whose items changed only in size or date: rebuilt without a notice.
    pub(crate) remeasured: ListKinds,
    pub(crate) uris: Vec<ResourceUri>,
    /// URI prefixes of templates.
    pub(crate) prefixes: Vec<String>,
}

/// One edit. `serial` identifies the item of a handle.
#[derive(Debug)]
pub(crate) enum Edit {
    Add {
        item: Stored,
        answers: Option<Arc<Answers>>,
        enabled: bool,
        serial: u64,
    },
    /// Adds the item, or updates the owner's item of that name.
    Put {
        item: Stored,
        answers: Option<Arc<Answers>>,
        enabled: bool,
        serial: u64,
    },
    /// Removes the owner's item of that name, if there is one.
    Take {
        kind: Kind,
        key: String,
    },
    /// Removes the owner's items of a kind that are not among these.
    Retain {
        kind: Kind,
        keys: BTreeSet<String>,
    },
    Switch {
        kind: Kind,
        key: String,
        serial: u64,
        on: bool,
    },
    /// Without functions, the item keeps its own.
    Update {
        kind: Kind,
        key: String,
        serial: u64,
        item: Stored,
        answers: Option<Arc<Answers>>,
    },
    Remove {
        kind: Kind,
        key: String,
        serial: u64,
    },
    Expand {
        key: String,
        serial: u64,
        expansions: Vec<Resource>,
    },
}

impl Touched {
    /// Records that an item was added, removed, enabled or disabled.
    pub(super) fn note(&mut self, item: &Stored) {
        self.lists.insert(item.kind().list());
        match item {
            Stored::Resource(resource) => {
                self.uris.extend(ResourceUri::parse(&resource.uri).ok());
            }
            Stored::Template(_, template) => {
                self.prefixes.push(template.literal_prefix().to_owned());
            }
            Stored::Tool(_) | Stored::Prompt(_) => {}
        }
    }
}
