//! Edits of the catalog, and what they may change.

use std::collections::BTreeSet;
use std::sync::Arc;

use rmcp::model::Resource;
use tidings_core::{ListKind, ListKinds, ResourceUri};

use crate::answers::Answers;
use crate::catalog::{Kind, Stored};
use crate::labels::Labels;

/// What an edit may have changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) lists: ListKinds,
    /// Who may see a change of each list.
    pub(crate) reach: [Reach; ListKind::ALL.len()],
    /// Lists whose items changed only in size or date: rebuilt without a notice.
    pub(crate) remeasured: ListKinds,
    pub(crate) uris: Vec<ResourceUri>,
    /// URI prefixes of templates.
    pub(crate) prefixes: Vec<String>,
}

/// Who may see a change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reach {
    #[default]
    Nobody,
    /// Clients with one of these labels.
    Those(BTreeSet<Arc<str>>),
    Everyone,
}

impl Reach {
    /// Adds the audience of an item.
    pub(super) fn add(&mut self, audience: &Labels) {
        if audience.is_empty() {
            *self = Self::Everyone;
        }
        match self {
            Self::Everyone => {}
            Self::Those(labels) => labels.extend(audience.as_slice().iter().cloned()),
            Self::Nobody => *self = Self::Those(audience.as_slice().iter().cloned().collect()),
        }
    }

    /// Whether a client with these labels may see the change.
    pub(crate) fn includes(&self, labels: &Labels) -> bool {
        match self {
            Self::Nobody => false,
            Self::Those(those) => labels.iter().any(|label| those.contains(label)),
            Self::Everyone => true,
        }
    }
}

/// One edit. `serial` identifies the item of a handle.
#[derive(Debug)]
pub(crate) enum Edit {
    Add {
        item: Stored,
        answers: Option<Arc<Answers>>,
        enabled: bool,
        audience: Labels,
        serial: u64,
    },
    /// Adds the item, or updates the owner's item of that name.
    Put {
        item: Stored,
        answers: Option<Arc<Answers>>,
        enabled: bool,
        audience: Labels,
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
    /// Without functions or an audience, the item keeps its own.
    Update {
        kind: Kind,
        key: String,
        serial: u64,
        item: Stored,
        answers: Option<Arc<Answers>>,
        audience: Option<Labels>,
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
    /// Records that an item with this audience was added, removed, enabled, disabled, or is for
    /// others now.
    pub(super) fn note(&mut self, item: &Stored, audience: &Labels) {
        self.note_list(item.kind(), audience);
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

    /// Records that a list changed for this audience.
    pub(super) fn note_list(&mut self, kind: Kind, audience: &Labels) {
        self.lists.insert(kind.list());
        self.reach[kind.list().index()].add(audience);
    }

    /// Records that an item changed only in size or date.
    pub(super) fn note_measures(&mut self, kind: Kind, audience: &Labels) {
        self.remeasured.insert(kind.list());
        self.reach[kind.list().index()].add(audience);
    }
}
