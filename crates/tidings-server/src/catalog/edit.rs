//! What can be done to the catalog, what it may move, and why it is refused.

use rmcp::model::Resource;
use tidings_core::{ListKinds, ResourceUri, TemplateError, UriError};

use crate::catalog::{Kind, Stored};

/// Why an edit of the catalog was refused. Nothing of the transaction it was part of was done.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// Another source, or this one, offers an item of that name.
    #[error(
        "the {kind} `{key}` of source `{claimant}` is offered by source `{holder}` already, which keeps serving it"
    )]
    Claimed {
        /// The kind of item.
        kind: &'static str,
        /// Its name or URI.
        key: String,
        /// The source that offers it.
        holder: String,
        /// The source that came later.
        claimant: String,
    },
    /// The item was removed, or its source was.
    #[error("the {kind} `{key}` is not in the catalog any more")]
    Gone {
        /// The kind of item.
        kind: &'static str,
        /// Its name or URI.
        key: String,
    },
    /// An update may change everything but the name.
    #[error("an update cannot rename `{from}` to `{to}`: remove the one and add the other")]
    Renamed {
        /// The name it has.
        from: String,
        /// The name the update has.
        to: String,
    },
    /// A name that cannot be.
    #[error(
        "`{name}` cannot name a {kind}: a name has at least one character and no control characters"
    )]
    Name {
        /// The kind of item.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// A resource's URI is none.
    #[error("`{uri}` cannot be a resource's URI")]
    Uri {
        /// What was given.
        uri: String,
        /// What is wrong with it.
        #[source]
        error: UriError,
    },
    /// A resource template's text is none.
    #[error("`{template}` cannot be a URI template")]
    Template {
        /// What was given.
        template: String,
        /// What is wrong with it.
        #[source]
        error: TemplateError,
    },
    /// An expansion is not one of its template's.
    #[error("`{uri}` is not an expansion of `{template}`")]
    Expansion {
        /// The expansion.
        uri: String,
        /// The template.
        template: String,
    },
    /// The source is not part of a hub any more.
    #[error("the source was removed from its hub")]
    Removed,
}

/// What an edit may have moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    pub(crate) lists: ListKinds,
    /// Lists that show other measures of what they show: made anew, and told to nobody.
    pub(crate) remeasured: ListKinds,
    pub(crate) uris: Vec<ResourceUri>,
    /// Beginnings of URIs that a template answers for.
    pub(crate) prefixes: Vec<String>,
}

/// One edit. `serial` names the very item a handle was given for.
#[derive(Debug)]
pub(crate) enum Edit {
    Add { item: Stored, serial: u64 },
    Switch { kind: Kind, key: String, serial: u64, on: bool },
    Update { kind: Kind, key: String, serial: u64, item: Stored },
    Remove { kind: Kind, key: String, serial: u64 },
    Expand { key: String, serial: u64, expansions: Vec<Resource> },
}

impl Touched {
    /// Notes that an item came, went, or was switched.
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
