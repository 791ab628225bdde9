//! A source's own part of the catalog, and the handles of what it put there.

use std::marker::PhantomData;
use std::sync::Arc;

use rmcp::model::{Resource, ResourceTemplate};
use tidings_core::ListKinds;

use crate::catalog::item::{Kind, Stored};
use crate::catalog::{Edit, EditError, Item};
use crate::path::Core;

/// A source's own part of the catalog: what it offers, and where it says what changed.
///
/// Cloning is cheap and every clone edits the same shelf. An edit can be read as soon as the call
/// returns; who listens is told when the change has been quiet for a moment.
#[derive(Clone)]
pub struct Shelf {
    core: Arc<Core>,
    owner: u64,
}

impl std::fmt::Debug for Shelf {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Shelf").field("owner", &self.owner).finish_non_exhaustive()
    }
}

impl Shelf {
    pub(crate) fn new(core: Arc<Core>, owner: u64) -> Self {
        Self { core, owner }
    }

    /// Offers an item.
    ///
    /// # Errors
    ///
    /// The name is taken, or none.
    pub fn add<T: Item>(&self, item: T) -> Result<Handle<T>, EditError> {
        let mut transaction = self.transaction();
        let handle = transaction.add(item)?;
        transaction.commit()?;
        Ok(handle)
    }

    /// Several edits that become visible, and are told, as one. It may live across awaits; dropped
    /// without [`Transaction::commit`] it does nothing.
    pub fn transaction(&self) -> Transaction {
        Transaction { shelf: self.clone(), edits: Vec::new() }
    }

    /// Says that a read of this URI may return something else now. Nothing is sent unless somebody
    /// watches it and it does.
    pub fn notify_updated(&self, uri: &str) {
        self.core.notify_updated(uri);
    }

    /// As [`Self::notify_updated`], for a change that is known to be complete, such as a file that
    /// was written and closed: it is looked at without waiting for more, unless the last look at it
    /// was within the quiet time.
    pub fn notify_settled(&self, uri: &str) {
        self.core.notify_settled(uri);
    }

    /// As [`Self::notify_updated`], for every *watched* URI that begins with the text before the `*` at
    /// the end of the pattern; a pattern without one is a URI.
    pub fn notify_matching(&self, pattern: &str) {
        self.core.notify_matching(pattern);
    }

    /// Says that lists may have moved. Edits of the shelf say so by themselves.
    pub fn lists_changed(&self, kinds: ListKinds) {
        self.core.lists_changed(kinds);
    }

    fn edit(&self, edit: Edit) -> Result<(), EditError> {
        self.core.edit(self.owner, vec![edit])
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
    pub fn add<T: Item>(&mut self, item: T) -> Result<Handle<T>, EditError> {
        let item = item.store()?.0;
        let serial = self.shelf.core.catalog.next_serial();
        let handle = Handle {
            shelf: self.shelf.clone(),
            kind: item.kind(),
            key: item.key().into(),
            serial,
            item: PhantomData,
        };
        self.edits.push(Edit::Add { item, serial });
        Ok(handle)
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
    pub fn update<T: Item>(&mut self, handle: &Handle<T>, item: T) -> Result<(), EditError> {
        self.edits.push(handle.replace(item.store()?.0));
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
        self.shelf.core.edit(self.shelf.owner, self.edits)
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

    fn replace(&self, item: Stored) -> Edit {
        Edit::Update { kind: self.kind, key: self.key.to_string(), serial: self.serial, item }
    }

    fn removal(&self) -> Edit {
        Edit::Remove { kind: self.kind, key: self.key.to_string(), serial: self.serial }
    }
}

impl<T: Item> Handle<T> {
    /// Replaces the item by another of the same name; nothing happens if they are equal.
    ///
    /// # Errors
    ///
    /// The item is gone, or the other has another name.
    pub fn update(&self, item: T) -> Result<(), EditError> {
        self.shelf.edit(self.replace(item.store()?.0))
    }
}

impl Handle<ResourceTemplate> {
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
}

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
