//! Items of the catalog: tools, prompts, resources and resource templates.

use std::sync::Arc;

use rmcp::model::{Annotations, Prompt, Resource, ResourceTemplate, Tool};
use tidings_core::{Fingerprint, ListKind, ResourceUri, Template};

use crate::edit::EditError;
use crate::raw::Raw;

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

    /// The list whose notice announces a change of this kind.
    pub(crate) fn list(self) -> ListKind {
        match self {
            Self::Tool => ListKind::Tools,
            Self::Prompt => ListKind::Prompts,
            Self::Resource | Self::Template => ListKind::Resources,
        }
    }

    /// The name of the kind, for messages.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Prompt => "prompt",
            Self::Resource => "resource",
            Self::Template => "resource template",
        }
    }
}

/// An item as clients see it; clones share it.
#[derive(Debug)]
pub(crate) struct Shown<T> {
    /// The item; of a raw one, the fields that the hub needs.
    pub(crate) item: Arc<T>,
    /// The whole item, if it is raw.
    pub(crate) raw: Option<Raw<T>>,
}

impl<T> Shown<T> {
    pub(crate) fn typed(item: T) -> Self {
        Self { item: Arc::new(item), raw: None }
    }

    pub(crate) fn raw(item: T, raw: Raw<T>) -> Self {
        Self { item: Arc::new(item), raw: Some(raw) }
    }
}

impl<T> Clone for Shown<T> {
    fn clone(&self) -> Self {
        Self { item: self.item.clone(), raw: self.raw.clone() }
    }
}

impl<T> std::ops::Deref for Shown<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.item
    }
}

/// An item as the catalog stores it; clones share it.
#[derive(Clone, Debug)]
pub(crate) enum Stored {
    Tool(Shown<Tool>),
    Prompt(Shown<Prompt>),
    Resource(Shown<Resource>),
    Template(Shown<ResourceTemplate>, Arc<Template>),
}

impl Stored {
    /// Its text, if it is raw.
    pub(crate) fn raw(&self) -> Option<&str> {
        match self {
            Self::Tool(tool) => tool.raw.as_ref().map(Raw::as_str),
            Self::Prompt(prompt) => prompt.raw.as_ref().map(Raw::as_str),
            Self::Resource(resource) => resource.raw.as_ref().map(Raw::as_str),
            Self::Template(template, _) => template.raw.as_ref().map(Raw::as_str),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::Tool(_) => Kind::Tool,
            Self::Prompt(_) => Kind::Prompt,
            Self::Resource(_) => Kind::Resource,
            Self::Template(..) => Kind::Template,
        }
    }

    /// Its name or URI: unique within its kind, and the sort key of lists.
    pub(crate) fn key(&self) -> &str {
        match self {
            Self::Tool(tool) => &tool.name,
            Self::Prompt(prompt) => &prompt.name,
            Self::Resource(resource) => &resource.uri,
            Self::Template(template, _) => &template.uri_template,
        }
    }

    /// The fingerprint of what a client sees, except the size and date of a resource: they change
    /// with its content, which has its own notices.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        match self {
            Self::Tool(tool) => fingerprint(tool),
            Self::Prompt(prompt) => fingerprint(prompt),
            Self::Resource(Shown { raw: Some(raw), .. }) => timeless_raw(raw).fingerprint(),
            Self::Resource(resource) => of_typed(&timeless(resource)),
            Self::Template(template, _) => fingerprint(template),
        }
    }

    /// Whether two items with equal fingerprints are equal in size and date too.
    pub(crate) fn measures_as(&self, other: &Self) -> bool {
        match (self, other) {
            _ if self.raw() != other.raw() => false,
            (Self::Resource(one), Self::Resource(other)) => measures(one) == measures(other),
            _ => true,
        }
    }
}

fn fingerprint<T: serde::Serialize>(shown: &Shown<T>) -> Fingerprint {
    shown.raw.as_ref().map_or_else(|| of_typed(&*shown.item), Raw::fingerprint)
}

fn of_typed(item: &impl serde::Serialize) -> Fingerprint {
    Fingerprint::of_json(&serde_json::to_value(item).expect("an item is plain JSON"))
}

/// The size of a resource and when it last changed.
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

/// As [`timeless`].
fn timeless_raw(resource: &Raw<Resource>) -> Raw<Resource> {
    let resource = resource.without("size");
    match resource.object("annotations") {
        Some(annotations) => {
            resource.with_object("annotations", &annotations.without("lastModified"))
        }
        None => resource,
    }
}

/// An item for a shelf: a [`Tool`], a [`Prompt`], a [`Resource`] or a [`ResourceTemplate`], or one
/// of them as [`Raw`] JSON.
pub trait Item: sealed::Sealed {}

impl<T: sealed::Sealed> Item for T {}

pub(crate) mod sealed {
    use super::{
        Arc, EditError, Kind, Prompt, Resource, ResourceTemplate, ResourceUri, Shown, Stored,
        Template, Tool,
    };

    /// Validates an item for the catalog.
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

    pub(crate) fn named(kind: &'static str, name: &str) -> Result<(), EditError> {
        if name.is_empty() || name.chars().any(char::is_control) {
            return Err(EditError::Name { kind, name: name.to_owned() });
        }
        Ok(())
    }

    pub(crate) fn addressed(uri: &str) -> Result<(), EditError> {
        let parsed = ResourceUri::parse(uri);
        parsed.map(drop).map_err(|error| EditError::Uri { uri: uri.to_owned(), error })
    }

    pub(crate) fn templated(text: &str) -> Result<Template, EditError> {
        Template::parse(text)
            .map_err(|error| EditError::Template { template: text.to_owned(), error })
    }

    impl Sealed for Tool {
        fn kind() -> StoredKind {
            StoredKind(Kind::Tool)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            named("tool", &self.name)?;
            Ok(StoredItem(Stored::Tool(Shown::typed(self))))
        }
    }

    impl Sealed for Prompt {
        fn kind() -> StoredKind {
            StoredKind(Kind::Prompt)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            named("prompt", &self.name)?;
            Ok(StoredItem(Stored::Prompt(Shown::typed(self))))
        }
    }

    impl Sealed for Resource {
        fn kind() -> StoredKind {
            StoredKind(Kind::Resource)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            addressed(&self.uri)?;
            Ok(StoredItem(Stored::Resource(Shown::typed(self))))
        }
    }

    impl Sealed for ResourceTemplate {
        fn kind() -> StoredKind {
            StoredKind(Kind::Template)
        }

        fn store(self) -> Result<StoredItem, EditError> {
            let template = templated(&self.uri_template)?;
            Ok(StoredItem(Stored::Template(Shown::typed(self), Arc::new(template))))
        }
    }
}
