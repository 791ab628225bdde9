//! A source's own part of the catalog, and the handles of what it put there.

use std::marker::PhantomData;
use std::sync::Arc;

use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use tidings_core::{Change, ListKind, ResourceUri, Template, UriError};

use crate::answers::Answers;
use crate::catalog::{Edit, Item, Kind, Stored};
use crate::edit::EditError;
use crate::labels::Labels;
use crate::offer::{Function, NoInput, Offer, PromptReply, ReadReply, ToolReply};
use crate::pipeline::Pipeline;
use crate::raw::Raw;

/// A source's own part of the catalog: what it offers, and where it says what changed.
///
/// Cloning is cheap and every clone edits the same shelf. An edit can be read as soon as the call
/// returns; clients are notified when the change has been quiet for a moment.
#[derive(Clone)]
pub struct Shelf {
    pipeline: Arc<Pipeline>,
    owner: u64,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shelf").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Shelf {
    pub(crate) fn new(pipeline: Arc<Pipeline>, owner: u64) -> Self {
        Self { pipeline, owner }
    }

    /// Offers a tool: [`Offer::tool`] on this shelf.
    ///
    /// # Errors
    ///
    /// The name is taken, or invalid.
    pub fn tool<I, S, F>(
        &self,
        name: impl Into<String>,
        description: impl Into<String>,
        run: F,
    ) -> Result<Handle<Tool>, EditError>
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Function<I, S>,
        F::Reply: ToolReply,
    {
        self.add(Offer::tool(name, description, run))
    }

    /// Offers a prompt: [`Offer::prompt`] on this shelf.
    ///
    /// # Errors
    ///
    /// The name is taken, or invalid.
    pub fn prompt<I, S, F>(
        &self,
        name: impl Into<String>,
        description: impl Into<String>,
        fill: F,
    ) -> Result<Handle<Prompt>, EditError>
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        F: Function<I, S>,
        F::Reply: PromptReply,
    {
        self.add(Offer::prompt(name, description, fill))
    }

    /// Offers a resource: [`Offer::resource`] on this shelf.
    ///
    /// # Errors
    ///
    /// The URI is taken, or invalid.
    pub fn resource<S, F>(
        &self,
        uri: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Result<Handle<Resource>, EditError>
    where
        F: Function<NoInput, S>,
        F::Reply: ReadReply,
    {
        self.add(Offer::resource(uri, name, read))
    }

    /// Offers a template: [`Offer::template`] on this shelf.
    ///
    /// # Errors
    ///
    /// The template is taken, or invalid.
    pub fn template<I, S, F>(
        &self,
        template: impl Into<String>,
        name: impl Into<String>,
        read: F,
    ) -> Result<Handle<ResourceTemplate>, EditError>
    where
        I: DeserializeOwned + Send + 'static,
        F: Function<I, S>,
        F::Reply: ReadReply,
    {
        self.add(Offer::template(template, name, read))
    }

    /// Offers an item: a plain one, or an [`Offer`] that answers for itself.
    ///
    /// # Errors
    ///
    /// The name is taken, or invalid.
    pub fn add<T: Item>(&self, offer: impl Into<Offer<T>>) -> Result<Handle<T>, EditError> {
        let mut transaction = self.transaction();
        let handle = transaction.add(offer)?;
        transaction.commit()?;
        Ok(handle)
    }

    /// Offers exactly these items of their kind, in place of those this shelf has: new ones are
    /// added, others updated where they differ, and the rest removed, as one edit. Items that cannot
    /// be offered, because of their name or because another source has it, are left out and returned.
    ///
    /// # Errors
    ///
    /// The source was removed from its hub.
    pub fn replace<T: Item, O: Into<Offer<T>>>(
        &self,
        offers: impl IntoIterator<Item = O>,
    ) -> Result<Vec<EditError>, EditError> {
        let mut transaction = self.transaction();
        let mut refused = transaction.replace(offers);
        refused.extend(transaction.commit_possible()?);
        Ok(refused)
    }

    /// Several edits that become visible, and are announced, as one. It may live across awaits;
    /// dropped without a commit it does nothing.
    pub fn transaction(&self) -> Transaction {
        Transaction { shelf: self.clone(), edits: Vec::new() }
    }

    /// Says that something may have changed: a URI, a [`Change`], a list. Clients are notified if
    /// what they would read differs. Edits of the shelf say so by themselves.
    ///
    /// # Errors
    ///
    /// A text that is not a URI. With a [`ResourceUri`] or a [`Change`] it cannot fail:
    /// `let Ok(()) = shelf.changed(uri);`.
    pub fn changed<C: TryInto<Change>>(&self, change: C) -> Result<(), C::Error> {
        self.pipeline.change(change.try_into()?);
        Ok(())
    }

    /// Whether a client is notified of changes of this list. A source that finds changes only by
    /// looking need not look while nobody is.
    #[must_use]
    pub fn has_listeners(&self, list: ListKind) -> bool {
        self.pipeline.subscriptions.is_list_followed(list)
    }

    /// Whether a read of this URI is answered by this source.
    #[must_use]
    pub fn answers_for(&self, uri: &ResourceUri) -> bool {
        self.pipeline.catalog.is_answered_by(uri, self.owner)
    }

    /// Tells clients that connect from now on how to use this source; `None` for nothing. They get it
    /// after the instructions of [`Config`](crate::Config) and of sources before this one.
    pub fn instruct(&self, instructions: Option<String>) {
        self.pipeline.catalog.instruct(self.owner, instructions);
    }

    fn edit(&self, edit: Edit) -> Result<(), EditError> {
        self.pipeline.edit(self.owner, vec![edit])
    }
}

/// Edits that are done together or not at all.
#[derive(Debug)]
#[must_use = "nothing is done before `commit`"]
pub struct Transaction {
    shelf: Shelf,
    edits: Vec<Edit>,
}

impl Transaction {
    /// Will offer an item. The handle is good once the transaction was committed.
    ///
    /// # Errors
    ///
    /// The item cannot be offered by anybody; that its name is taken is found by
    /// [`Self::commit`].
    pub fn add<T: Item>(&mut self, offer: impl Into<Offer<T>>) -> Result<Handle<T>, EditError> {
        let Parts { item, answers, enabled, audience } = Parts::of(offer.into())?;
        let audience = audience.unwrap_or_default();
        let serial = self.shelf.pipeline.catalog.next_serial();
        let handle = Handle {
            shelf: self.shelf.clone(),
            kind: item.kind(),
            key: item.key().into(),
            serial,
            item: PhantomData,
        };
        self.edits.push(Edit::Add { item, answers, enabled, audience, serial });
        Ok(handle)
    }

    /// Will offer an item, in place of the one of that name if this shelf has one. Without an
    /// audience it is for everyone, whomever the other was for.
    ///
    /// # Errors
    ///
    /// The item cannot be offered by anybody; that another source has its name is found by
    /// [`Self::commit`].
    pub fn put<T: Item>(&mut self, offer: impl Into<Offer<T>>) -> Result<(), EditError> {
        let Parts { item, answers, enabled, audience } = Parts::of(offer.into())?;
        let audience = audience.unwrap_or_default();
        let serial = self.shelf.pipeline.catalog.next_serial();
        self.edits.push(Edit::Put { item, answers, enabled, audience, serial });
        Ok(())
    }

    /// Will take the item of this name or URI off this shelf, if it is there.
    pub fn take<T: Item>(&mut self, key: &str) {
        self.edits.push(Edit::Take { kind: T::kind().0, key: key.to_owned() });
    }

    /// Will offer exactly these items of their kind, as [`Shelf::replace`] does. Returns those that
    /// cannot be offered by anybody.
    pub fn replace<T: Item, O: Into<Offer<T>>>(
        &mut self,
        offers: impl IntoIterator<Item = O>,
    ) -> Vec<EditError> {
        let mut refused = Vec::new();
        let mut keys = std::collections::BTreeSet::new();
        for offer in offers {
            match Parts::of(offer.into()) {
                Ok(Parts { item, answers, enabled, audience }) => {
                    let audience = audience.unwrap_or_default();
                    keys.insert(item.key().to_owned());
                    let serial = self.shelf.pipeline.catalog.next_serial();
                    self.edits.push(Edit::Put { item, answers, enabled, audience, serial });
                }
                Err(error) => refused.push(error),
            }
        }
        self.edits.push(Edit::Retain { kind: T::kind().0, keys });
        refused
    }

    /// Will put an item back into its list.
    pub fn enable<T>(&mut self, handle: &Handle<T>) {
        self.edits.push(handle.switch(true));
    }

    /// Will take an item off its list and refuse its use.
    pub fn disable<T>(&mut self, handle: &Handle<T>) {
        self.edits.push(handle.switch(false));
    }

    /// Will replace an item by another of the same name.
    ///
    /// # Errors
    ///
    /// The item cannot be offered by anybody.
    pub fn update<T: Item>(
        &mut self,
        handle: &Handle<T>,
        offer: impl Into<Offer<T>>,
    ) -> Result<(), EditError> {
        self.edits.push(handle.replacement(offer.into())?);
        Ok(())
    }

    /// Will take an item out of the catalog.
    pub fn remove<T>(&mut self, handle: &Handle<T>) {
        self.edits.push(handle.removal());
    }

    /// Will list these expansions of a template, in place of those before.
    pub fn expand(&mut self, handle: &Handle<ResourceTemplate>, expansions: Vec<Resource>) {
        self.edits.push(handle.expansion(expansions));
    }

    /// Does everything at once.
    ///
    /// # Errors
    ///
    /// The first edit that cannot be done; then none is.
    pub fn commit(self) -> Result<(), EditError> {
        self.shelf.pipeline.edit(self.shelf.owner, self.edits)
    }

    /// Does everything that can be done, at once, and returns why the rest cannot.
    ///
    /// # Errors
    ///
    /// The source was removed from its hub.
    pub fn commit_possible(self) -> Result<Vec<EditError>, EditError> {
        self.shelf.pipeline.edit_possible(self.shelf.owner, self.edits)
    }
}

/// An offer as the catalog keeps it.
struct Parts {
    item: Stored,
    answers: Option<Arc<Answers>>,
    enabled: bool,
    audience: Option<Labels>,
}

impl Parts {
    fn of<T: Item>(offer: Offer<T>) -> Result<Self, EditError> {
        let item = offer.item.store()?.0;
        let answers = (!offer.answers.is_empty()).then(|| Arc::new(offer.answers));
        let audience = offer.audience.transpose().map_err(|error| EditError::Audience {
            kind: item.kind().word(),
            key: item.key().to_owned(),
            error,
        })?;
        Ok(Self { item, answers, enabled: offer.enabled, audience })
    }
}

/// An item on a shelf. Dropping the handle leaves the item where it is.
pub struct Handle<T> {
    shelf: Shelf,
    kind: Kind,
    key: Arc<str>,
    serial: u64,
    item: PhantomData<fn() -> T>,
}

impl<T> Handle<T> {
    /// The item's name or URI.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Puts the item back into its list; nothing happens if it is there.
    ///
    /// # Errors
    ///
    /// The item is gone.
    pub fn enable(&self) -> Result<(), EditError> {
        self.shelf.edit(self.switch(true))
    }

    /// Takes the item off its list and refuses its use; nothing happens if it is off.
    ///
    /// # Errors
    ///
    /// The item is gone.
    pub fn disable(&self) -> Result<(), EditError> {
        self.shelf.edit(self.switch(false))
    }

    /// Takes the item out of the catalog.
    ///
    /// # Errors
    ///
    /// The item is gone.
    pub fn remove(&self) -> Result<(), EditError> {
        self.shelf.edit(self.removal())
    }

    fn switch(&self, on: bool) -> Edit {
        Edit::Switch { kind: self.kind, key: self.key.to_string(), serial: self.serial, on }
    }

    fn removal(&self) -> Edit {
        Edit::Remove { kind: self.kind, key: self.key.to_string(), serial: self.serial }
    }
}

impl<T: Item> Handle<T> {
    /// Replaces the item by another of the same name; nothing happens if they are equal. A plain
    /// item keeps the functions there are, and one without an audience keeps the audience.
    ///
    /// # Errors
    ///
    /// The item is gone, or the other has another name.
    pub fn update(&self, offer: impl Into<Offer<T>>) -> Result<(), EditError> {
        self.shelf.edit(self.replacement(offer.into())?)
    }

    fn replacement(&self, offer: Offer<T>) -> Result<Edit, EditError> {
        let Parts { item, answers, audience, .. } = Parts::of(offer)?;
        let (kind, key, serial) = (self.kind, self.key.to_string(), self.serial);
        Ok(Edit::Update { kind, key, serial, item, answers, audience })
    }
}

macro_rules! readable {
    ($($item:ty),*) => {
        $(impl Handle<$item> {
            /// Says that a read of the resource may return something else now.
            pub fn changed(&self) {
                // The catalog took it, so it is a URI.
                if let Ok(uri) = ResourceUri::parse(&self.key) {
                    self.shelf.pipeline.change(Change::resource(uri));
                }
            }
        })*
    };
}

readable!(Resource, Raw<Resource>);

macro_rules! expandable {
    ($($item:ty),*) => {
        $(impl Handle<$item> {
            /// Says that a read of the resource with these variables may return something else now.
            ///
            /// # Errors
            ///
            /// With these values the template is not a URI.
            pub fn changed<K: Into<String>, V: Into<String>>(
                &self,
                variables: impl IntoIterator<Item = (K, V)>,
            ) -> Result<(), UriError> {
                let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
                let variables = variables.collect();
                // The catalog took it, so it is a template.
                let expanded = Template::parse(&self.key).map(|template| template.expand(&variables));
                let uri = ResourceUri::parse(&expanded.unwrap_or_default())?;
                self.shelf.pipeline.change(Change::resource(uri));
                Ok(())
            }

            /// Says that a read of any resource of this template may return something else now.
            pub fn all_changed(&self) {
                if let Ok(template) = Template::parse(&self.key) {
                    self.shelf.pipeline.change(Change::below(template.literal_prefix()));
                }
            }

            /// Lists these expansions of the template among the resources, in place of those before.
            ///
            /// # Errors
            ///
            /// The template is gone, or one of them is not an expansion of it.
            pub fn expand(&self, expansions: Vec<Resource>) -> Result<(), EditError> {
                self.shelf.edit(self.expansion(expansions))
            }

            fn expansion(&self, expansions: Vec<Resource>) -> Edit {
                Edit::Expand { key: self.key.to_string(), serial: self.serial, expansions }
            }
        })*
    };
}

expandable!(ResourceTemplate, Raw<ResourceTemplate>);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        Self {
            shelf: self.shelf.clone(),
            kind: self.kind,
            key: self.key.clone(),
            serial: self.serial,
            item: PhantomData,
        }
    }
}

impl<T> std::fmt::Debug for Handle<T> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Handle")
            .field("kind", &self.kind)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}
