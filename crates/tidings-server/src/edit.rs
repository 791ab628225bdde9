//! Why an edit of the catalog is refused.

use tidings_core::{TemplateError, UriError};

use crate::labels::LabelError;

/// Why an edit of the catalog was refused. Nothing of its transaction was applied.
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
    /// The item or its source was removed.
    #[error("the {kind} `{key}` is not in the catalog any more")]
    Gone {
        /// The kind of item.
        kind: &'static str,
        /// Its name or URI.
        key: String,
    },
    /// An update cannot change the name.
    #[error("an update cannot rename `{from}` to `{to}`: remove the one and add the other")]
    Renamed {
        /// The current name.
        from: String,
        /// The name in the update.
        to: String,
    },
    /// An invalid name.
    #[error(
        "`{name}` cannot name a {kind}: a name has at least one character and no control characters"
    )]
    Name {
        /// The kind of item.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// An invalid URI of a resource.
    #[error("`{uri}` cannot be a resource's URI")]
    Uri {
        /// The text.
        uri: String,
        /// The cause.
        #[source]
        error: UriError,
    },
    /// An invalid template.
    #[error("`{template}` cannot be a URI template")]
    Template {
        /// The text.
        template: String,
        /// The cause.
        #[source]
        error: TemplateError,
    },
    /// An audience that is not a set of labels.
    #[error("the {kind} `{key}` cannot be offered to that audience")]
    Audience {
        /// The kind of item.
        kind: &'static str,
        /// Its name or URI.
        key: String,
        /// The cause.
        #[source]
        error: LabelError,
    },
    /// Raw JSON that is not an item of its kind.
    #[error("the raw {kind} `{item}` cannot be offered: {details}")]
    Raw {
        /// The kind of item.
        kind: &'static str,
        /// Its name or URI, or the beginning of its text.
        item: String,
        /// What is wrong with it.
        details: String,
    },
    /// A URI that is not an expansion of its template.
    #[error("`{uri}` is not an expansion of `{template}`")]
    Expansion {
        /// The expansion.
        uri: String,
        /// The template.
        template: String,
    },
    /// The source was removed from its hub.
    #[error("the source was removed from its hub")]
    Removed,
}
