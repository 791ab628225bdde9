//! The items on the shelf: tools, prompts, and the resources of every feed.

use std::collections::BTreeMap;

use tidings_server::model::{Annotations, Prompt, Resource, ResourceTemplate, Tool};
use tidings_server::{Change, EditError, Handle, Shelf, Transaction};
use tidings_store::date::Moment;

use crate::board::Board;
use crate::store::FeedRow;
use crate::view::{
    self, ALL, FOLDER_TEMPLATE, TEMPLATE, feed_uri, folder_uri, items_uri, meta_uri,
};

const JSON: &str = "application/json";

/// The items on the shelf.
pub(crate) struct Offer {
    shelf: Shelf,
    all: Handle<Resource>,
    feeds: BTreeMap<String, [Handle<Resource>; 3]>,
    folders: BTreeMap<String, Handle<Resource>>,
}

impl Offer {
    /// Adds the items that every server of feeds has.
    pub(crate) fn new(
        shelf: Shelf,
        tools: Vec<tidings_server::Offer<Tool>>,
        prompts: impl Iterator<Item = Prompt>,
    ) -> Result<Self, EditError> {
        let mut transaction = shelf.transaction();
        let all = transaction.add(all_feeds(&Board::default()))?;
        let template = ResourceTemplate::new(TEMPLATE, "Feed Items")
            .with_description(
                "Items of one feed, newest first: from `since` to `until` (dates or moments, both \
                 included), of one `category` or `author`, with all words or \"phrases\" of \
                 `search`; at most `limit` (1 to 1000) after the first `offset`",
            )
            .with_mime_type(JSON);
        transaction.add(template)?;
        let template = ResourceTemplate::new(FOLDER_TEMPLATE, "Folder Items")
            .with_description(
                "Items of all feeds in a folder and in those inside it, newest first, at most 1000; \
                 the parameters are those of Feed Items",
            )
            .with_mime_type(JSON);
        transaction.add(template)?;
        for tool in tools {
            transaction.add(tool)?;
        }
        for prompt in prompts {
            transaction.add(prompt)?;
        }
        transaction.commit()?;
        let (feeds, folders) = (BTreeMap::new(), BTreeMap::new());
        Ok(Self { shelf, all, feeds, folders })
    }

    /// Announces that all resources of a feed may have changed.
    pub(crate) fn feed_changed(&self, id: &str) {
        self.changed(&feed_uri(id));
        self.changed(&meta_uri(id));
        self.changed_below(&items_uri(id));
    }

    /// Announces that a resource may have changed.
    pub(crate) fn changed(&self, uri: &str) {
        if let Err(error) = self.shelf.changed(uri) {
            tracing::error!(uri, %error, "a change cannot be announced");
        }
    }

    /// Announces that all resources with this prefix may have changed.
    pub(crate) fn changed_below(&self, prefix: &str) {
        let Ok(()) = self.shelf.changed(Change::below(prefix));
    }

    /// Updates the shelf for all feeds, in one step.
    pub(crate) fn refresh(&mut self, board: &Board) -> Result<(), EditError> {
        let mut transaction = self.shelf.transaction();
        let mut before = self.feeds.clone();
        let mut feeds = BTreeMap::new();
        for row in board.rows() {
            let resources = resources(row);
            let handles = if let Some(handles) = before.remove(&row.id) {
                for (handle, resource) in handles.iter().zip(resources) {
                    transaction.update(handle, resource)?;
                }
                handles
            } else {
                let [feed, items, meta] = resources;
                [transaction.add(feed)?, transaction.add(items)?, transaction.add(meta)?]
            };
            feeds.insert(row.id.clone(), handles);
        }
        before.values().flatten().for_each(|handle| transaction.remove(handle));
        transaction.update(&self.all, all_feeds(board))?;
        let folders = folders(&mut transaction, &self.folders, board)?;
        transaction.commit()?;
        (self.feeds, self.folders) = (feeds, folders);
        Ok(())
    }

    /// Updates the shelf for one feed.
    pub(crate) fn put(&mut self, row: &FeedRow, board: &Board) -> Result<(), EditError> {
        let mut transaction = self.shelf.transaction();
        transaction.update(&self.all, all_feeds(board))?;
        let folders = folders(&mut transaction, &self.folders, board)?;
        let resources = resources(row);
        if let Some(handles) = self.feeds.get(&row.id) {
            for (handle, resource) in handles.iter().zip(resources) {
                transaction.update(handle, resource)?;
            }
            transaction.commit()?;
            self.folders = folders;
            return Ok(());
        }
        let [feed, items, meta] = resources;
        let handles = [transaction.add(feed)?, transaction.add(items)?, transaction.add(meta)?];
        transaction.commit()?;
        self.folders = folders;
        self.feeds.insert(row.id.clone(), handles);
        Ok(())
    }

    /// Removes a feed from the shelf.
    pub(crate) fn remove(&mut self, id: &str, board: &Board) -> Result<(), EditError> {
        let Some(handles) = self.feeds.remove(id) else { return Ok(()) };
        let mut transaction = self.shelf.transaction();
        for handle in &handles {
            transaction.remove(handle);
        }
        transaction.update(&self.all, all_feeds(board))?;
        let folders = folders(&mut transaction, &self.folders, board)?;
        transaction.commit()?;
        self.folders = folders;
        Ok(())
    }
}

/// Updates the folders on the shelf, and returns their handles.
fn folders(
    transaction: &mut Transaction,
    before: &BTreeMap<String, Handle<Resource>>,
    board: &Board,
) -> Result<BTreeMap<String, Handle<Resource>>, EditError> {
    let mut folders = BTreeMap::new();
    for name in board.folders() {
        let handle = match before.get(name) {
            Some(handle) => handle.clone(),
            None => transaction.add(folder(name))?,
        };
        folders.insert(name.to_owned(), handle);
    }
    let gone = before.iter().filter(|(name, _)| !folders.contains_key(*name));
    gone.for_each(|(_, handle)| transaction.remove(handle));
    Ok(folders)
}

fn folder(name: &str) -> Resource {
    Resource::new(folder_uri(name), format!("{name} Folder"))
        .with_description(format!("Items of the feeds in {name} (supports filtering)"))
        .with_mime_type(JSON)
}

fn all_feeds(board: &Board) -> Resource {
    let resource = Resource::new(ALL, "All Feeds")
        .with_description("List of all configured syndication feeds")
        .with_mime_type(JSON)
        .with_size(bytes(board.size()));
    modified(resource, board.last_modified())
}

fn resources(row: &FeedRow) -> [Resource; 3] {
    let title = row.shown_title();
    let [of_feed, of_items, of_meta] = sizes(row);
    let feed = Resource::new(feed_uri(&row.id), title)
        .with_description("Complete feed data with metadata and items");
    let items = Resource::new(items_uri(&row.id), format!("{title} Items"))
        .with_description(format!("Items from {title} (supports filtering)"));
    let meta = Resource::new(meta_uri(&row.id), format!("{title} Metadata"))
        .with_description(format!("Metadata for {title}"));
    [(feed, of_feed), (items, of_items), (meta, of_meta)].map(|(mut resource, size)| {
        resource.size = size;
        modified(resource.with_mime_type(JSON), row.last_modified())
    })
}

/// The sizes of a feed, its items and its description, where they are known.
fn sizes(row: &FeedRow) -> [Option<u64>; 3] {
    if !row.is_known() {
        return [None; 3];
    }
    // Without the two brackets of an empty list, which are counted with the items.
    let around = bytes(view::feed(row, &[]).len()) - 2;
    // While it fails, the reason is part of it, and a new reason is not announced.
    let meta = (!row.is_failing()).then(|| bytes(view::meta(row).len()));
    [row.items_size.map(|items| around + items), row.items_size, meta]
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Sets the modification time of a resource, which is ignored when lists are compared.
fn modified(mut resource: Resource, moment: Option<Moment>) -> Resource {
    if let Some(moment) = moment {
        let mut annotations = Annotations::default();
        annotations.last_modified = Some(moment.to_string());
        resource.annotations = Some(annotations);
    }
    resource
}
