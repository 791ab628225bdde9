//! Why an edit of the catalog is refused.

use tidings_core::{TemplateError, UriError};

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
    /// Raw JSON is not an item of its kind.
    #[error("the raw {kind} `{item}` cannot be offered: {details}")]
    Raw {
        /// The kind of item.
        kind: &'static str,
        /// Its name or URI, or how its text begins if it has none.
        item: String,
        /// What is wrong with it.
        details: String,
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
