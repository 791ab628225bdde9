//! A source's own part of the catalog, and the handles of its items.

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

/// A source's own part of the catalog: its items and its changes.
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

    /// Offers exactly these items of their kind in place of the current ones: new ones are added,
    /// changed ones updated, and the rest removed, as one edit. Items that cannot be offered,
    /// because of their name or because another source has it, are left out and returned.
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

    /// Several edits that become visible, and are announced, as one. It may live across awaits; if
    /// it is dropped without a commit, nothing changes.
    pub fn transaction(&self) -> Transaction {
        Transaction { shelf: self.clone(), edits: Vec::new() }
    }

    /// Reports a possible change of a URI, a [`Change`] or a list. Clients are notified if the
    /// content differs. Edits of the shelf are reported by themselves.
    ///
    /// # Errors
    ///
    /// A text that is not a URI. With a [`ResourceUri`] or a [`Change`] it cannot fail:
    /// `let Ok(()) = shelf.changed(uri);`.
    pub fn changed<C: TryInto<Change>>(&self, change: C) -> Result<(), C::Error> {
        self.pipeline.change(change.try_into()?);
        Ok(())
    }

    /// Reports that the content of a URI was another, even if it is as before now: clients may have
    /// read it in between. They are notified in any case, once.
    pub fn changed_meanwhile(&self, uri: &ResourceUri) {
        self.pipeline.changed_meanwhile(uri);
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

/// Edits that are applied together or not at all.
#[derive(Debug)]
#[must_use = "nothing is done before `commit`"]
pub struct Transaction {
    shelf: Shelf,
    edits: Vec<Edit>,
}

impl Transaction {
    /// Adds an item. The handle is valid after the transaction was committed.
    ///
    /// # Errors
    ///
    /// The item is invalid. Whether its name is taken is checked by [`Self::commit`].
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

    /// Adds an item, or replaces the shelf's item of that name. Without an audience it is for
    /// everyone, whatever the audience of the other was.
    ///
    /// # Errors
    ///
    /// The item is invalid. Whether another source has its name is checked by [`Self::commit`].
    pub fn put<T: Item>(&mut self, offer: impl Into<Offer<T>>) -> Result<(), EditError> {
        let Parts { item, answers, enabled, audience } = Parts::of(offer.into())?;
        let audience = audience.unwrap_or_default();
        let serial = self.shelf.pipeline.catalog.next_serial();
        self.edits.push(Edit::Put { item, answers, enabled, audience, serial });
        Ok(())
    }

    /// Removes the item of this name or URI from this shelf, if it exists.
    pub fn take<T: Item>(&mut self, key: &str) {
        self.edits.push(Edit::Take { kind: T::kind().0, key: key.to_owned() });
    }

    /// Offers exactly these items of their kind, as [`Shelf::replace`] does. Returns the invalid
    /// ones.
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

    /// Enables an item: it is listed again.
    pub fn enable<T>(&mut self, handle: &Handle<T>) {
        self.edits.push(handle.switch(true));
    }

    /// Disables an item: it is not listed, and calls of it are refused.
    pub fn disable<T>(&mut self, handle: &Handle<T>) {
        self.edits.push(handle.switch(false));
    }

    /// Replaces an item by another of the same name.
    ///
    /// # Errors
    ///
    /// The item is invalid.
    pub fn update<T: Item>(
        &mut self,
        handle: &Handle<T>,
        offer: impl Into<Offer<T>>,
    ) -> Result<(), EditError> {
        self.edits.push(handle.replacement(offer.into())?);
        Ok(())
    }

    /// Removes an item from the catalog.
    pub fn remove<T>(&mut self, handle: &Handle<T>) {
        self.edits.push(handle.removal());
    }

    /// Lists these expansions of a template, in place of those before.
    pub fn expand(&mut self, handle: &Handle<ResourceTemplate>, expansions: Vec<Resource>) {
        self.edits.push(handle.expansion(expansions));
    }

    /// Applies all edits at once.
    ///
    /// # Errors
    ///
    /// The first edit that is impossible; then none is applied.
    pub fn commit(self) -> Result<(), EditError> {
        self.shelf.pipeline.edit(self.shelf.owner, self.edits)
    }

    /// Applies all possible edits at once, and returns the errors of the others.
    ///
    /// # Errors
    ///
    /// The source was removed from its hub.
    pub fn commit_possible(self) -> Result<Vec<EditError>, EditError> {
        self.shelf.pipeline.edit_possible(self.shelf.owner, self.edits)
    }
}

/// An offer in the form of the catalog.
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

/// An item on a shelf. Dropping the handle leaves the item on the shelf.
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

    /// Enables the item: it is listed again. Without effect if it is enabled.
    ///
    /// # Errors
    ///
    /// The item is gone.
    pub fn enable(&self) -> Result<(), EditError> {
        self.shelf.edit(self.switch(true))
    }

    /// Disables the item: it is not listed, and calls of it are refused. Without effect if it is
    /// disabled.
    ///
    /// # Errors
    ///
    /// The item is gone.
    pub fn disable(&self) -> Result<(), EditError> {
        self.shelf.edit(self.switch(false))
    }

    /// Removes the item from the catalog.
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
    /// Replaces the item by another of the same name. Without effect if they are equal. A plain
    /// item keeps the current functions, and one without an audience keeps the audience.
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
            /// Reports that the content of the resource may have changed.
            pub fn changed(&self) {
                // The catalog accepted it, so it is a URI.
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
            /// Reports that the content of the resource with these variables may have changed.
            ///
            /// # Errors
            ///
            /// With these values the expansion is not a URI.
            pub fn changed<K: Into<String>, V: Into<String>>(
                &self,
                variables: impl IntoIterator<Item = (K, V)>,
            ) -> Result<(), UriError> {
                let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into()));
                let variables = variables.collect();
                // The catalog accepted it, so it is a template.
                let expanded = Template::parse(&self.key).map(|template| template.expand(&variables));
                let uri = ResourceUri::parse(&expanded.unwrap_or_default())?;
                self.shelf.pipeline.change(Change::resource(uri));
                Ok(())
            }

            /// Reports that the content of any resource of this template may have changed.
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
