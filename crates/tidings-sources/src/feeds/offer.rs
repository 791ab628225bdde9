//! What is on the shelf: tools, prompts, and the resources of every feed.

use std::collections::BTreeMap;

use tidings_server::model::{Annotations, Prompt, Resource, ResourceTemplate, Tool};
use tidings_server::{EditError, Handle, Shelf};

use crate::feeds::board::Board;
use crate::feeds::date::Moment;
use crate::feeds::store::{FeedRow, State};
use crate::feeds::view::{self, ALL, TEMPLATE, feed_uri, items_uri, meta_uri};

const JSON: &str = "application/json";

/// What is on the shelf.
pub(crate) struct Offer {
    shelf: Shelf,
    all: Handle<Resource>,
    feeds: BTreeMap<String, [Handle<Resource>; 3]>,
}

impl Offer {
    /// Puts on the shelf what every server of feeds has.
    pub(crate) fn new(
        shelf: &Shelf,
        tools: impl Iterator<Item = Tool>,
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
        for tool in tools {
            transaction.add(tool)?;
        }
        for prompt in prompts {
            transaction.add(prompt)?;
        }
        transaction.commit()?;
        Ok(Self { shelf: shelf.clone(), all, feeds: BTreeMap::new() })
    }

    pub(crate) fn shelf(&self) -> &Shelf {
        &self.shelf
    }

    /// Brings the shelf up to date with the feeds there are, in one step.
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
        transaction.commit()?;
        self.feeds = feeds;
        Ok(())
    }

    /// Brings the shelf up to date with one feed that is there.
    pub(crate) fn put(&mut self, row: &FeedRow, board: &Board) -> Result<(), EditError> {
        let mut transaction = self.shelf.transaction();
        transaction.update(&self.all, all_feeds(board))?;
        let resources = resources(row);
        if let Some(handles) = self.feeds.get(&row.id) {
            for (handle, resource) in handles.iter().zip(resources) {
                transaction.update(handle, resource)?;
            }
            return transaction.commit();
        }
        let [feed, items, meta] = resources;
        let handles = [transaction.add(feed)?, transaction.add(items)?, transaction.add(meta)?];
        transaction.commit()?;
        self.feeds.insert(row.id.clone(), handles);
        Ok(())
    }

    /// Takes a feed off the shelf.
    pub(crate) fn remove(&mut self, id: &str, board: &Board) -> Result<(), EditError> {
        let Some(handles) = self.feeds.remove(id) else { return Ok(()) };
        let mut transaction = self.shelf.transaction();
        for handle in &handles {
            transaction.remove(handle);
        }
        transaction.update(&self.all, all_feeds(board))?;
        transaction.commit()
    }
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

/// How long a feed, its items and what it says of itself are, where that is known.
fn sizes(row: &FeedRow) -> [Option<u64>; 3] {
    if !row.is_known() {
        return [None; 3];
    }
    // Without the two brackets of no items, which are those of the items.
    let around = bytes(view::feed(row, &[]).len()) - 2;
    // While it fails the reason is shown, and another reason is not told.
    let meta = (row.state == State::Good).then(|| bytes(view::meta(row).len()));
    [row.items_size.map(|items| around + items), row.items_size, meta]
}

fn bytes(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// Says when a resource last changed. That is left out of account where lists are compared.
fn modified(mut resource: Resource, moment: Option<Moment>) -> Resource {
    if let Some(moment) = moment {
        let mut annotations = Annotations::default();
        annotations.last_modified = Some(moment.to_string());
        resource.annotations = Some(annotations);
    }
    resource
}
