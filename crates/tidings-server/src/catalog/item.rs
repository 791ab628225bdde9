//! What can stand in the catalog: tools, prompts, resources and resource templates.

use std::sync::Arc;

use rmcp::model::{Annotations, Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::{Fingerprint, ListKind, ResourceUri, Template};

use crate::edit::EditError;

/// The four kinds of item. Resources and templates are two lists with one notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Tool,
    Prompt,
    Resource,
    Template,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Tool, Self::Prompt, Self::Resource, Self::Template];

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// The list whose notice tells of a change of this kind.
    pub(crate) fn list(self) -> ListKind {
        match self {
            Self::Tool => ListKind::Tools,
            Self::Prompt => ListKind::Prompts,
            Self::Resource | Self::Template => ListKind::Resources,
        }
    }

    /// The word a person uses for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }
}

/// An item as the catalog keeps it; cloning shares it.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Tool(Arc<Tool>),
    Prompt(Arc<Prompt>),
    Resource(Arc<Resource>),
    Template(Arc<ResourceTemplate>, Arc<Template>),
}

impl Stored {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Tool(_) => Kind::Tool,
            Self::Prompt(_) => Kind::Prompt,
            Self::Resource(_) => Kind::Resource,
            Self::Template(..) => Kind::Template,
        }
    }

    /// Its name or URI: unique within its kind, and the order of every list.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Prompt(prompt) => &prompt.name,
            Self::Resource(resource) => &resource.uri,
            Self::Template(template, _) => &template.uri_template,
        }
    }

    /// Names what a client would see of it, but for a resource's measures: those move with its
    /// content, of which whoever watches it is told.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let value = match self {
            Self::Tool(tool) => serde_json::to_value(tool),
            Self::Prompt(prompt) => serde_json::to_value(prompt),
            Self::Resource(resource) => serde_json::to_value(timeless(resource)),
            Self::Template(template, _) => serde_json::to_value(template),
        };
        Fingerprint::of_json(&value.expect("an item is plain JSON"))
    }

    /// Whether two of one fingerprint are shown alike, to the last measure.
    pub(crate) fn measures_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Resource(one), Self::Resource(other)) => measures(one) == measures(other),
            _ => true,
        }
    }
}

/// How large a resource's content is and when it last changed.
fn measures(resource: &Resource) -> (Option<u64>, Option<&str>) {
    let annotations = resource.annotations.as_ref();
    (resource.size, annotations.and_then(|it| it.last_modified.as_deref()))
}

fn timeless(resource: &Resource) -> Resource {
    let mut resource = resource.clone();
    resource.size = None;
    if let Some(annotations) = &mut resource.annotations {
        annotations.last_modified = None;
        if *annotations == Annotations::default() {
            resource.annotations = None;
        }
    }
    resource
}

/// An item that a source can put on its shelf: a [`Tool`], a [`Prompt`], a [`Resource`] or a
/// [`ResourceTemplate`].
pub trait Item: sealed::Sealed {}

impl<T: sealed::Sealed> Item for T {}

pub(crate) mod sealed {
    use super::{
        Arc, EditError, Kind, Prompt, Resource, ResourceTemplate, ResourceUri, Stored, Template,
        Tool,
    };

    /// Checks an item and makes it ready to be kept.
    pub trait Sealed {
        #[doc(hidden)]
        fn kind() -> StoredKind;
        #[doc(hidden)]
        fn store(self) -> Result<StoredItem, EditError>;
    }

    /// Hides the catalog's own type behind the sealed trait.
    #[derive(Debug)]
    pub struct StoredItem(pub(crate) Stored);

    /// Likewise.
    #[derive(Debug)]
    pub struct StoredKind(pub(crate) Kind);

    fn named(kind: &'static str, name: &str) -> Result<(), EditError> {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(EditError::Name { kind, name: name.to_owned() });
        }
        Ok(())
    }

    impl Sealed for Tool {
        fn kind() -> StoredKind {
            StoredKind(Kind::Tool)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            named("tool", &self.name)?;
            Ok(StoredItem(Stored::Tool(Arc::new(self))))
        }
    }

    impl Sealed for Prompt {
        fn kind() -> StoredKind {
            StoredKind(Kind::Prompt)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            named("prompt", &self.name)?;
            Ok(StoredItem(Stored::Prompt(Arc::new(self))))
        }
    }

    impl Sealed for Resource {
        fn kind() -> StoredKind {
            StoredKind(Kind::Resource)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            ResourceUri::parse(&self.uri)
                .map_err(|error| EditError::Uri { uri: self.uri.clone(), error })?;
            Ok(StoredItem(Stored::Resource(Arc::new(self))))
        }
    }

    impl Sealed for ResourceTemplate {
        fn kind() -> StoredKind {
            StoredKind(Kind::Template)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            let template = Template::parse(&self.uri_template).map_err(|error| {
                EditError::Template { template: self.uri_template.clone(), error }
            })?;
            Ok(StoredItem(Stored::Template(Arc::new(self), Arc::new(template))))
        }
    }
}
