//! Feeds and items as JSON. The order of the fields is fixed, and unknown ones are left out.

use serde::Serialize;

use super::item::ReadableItem;
use crate::store::{Entry, FeedRow, Metadata};

/// One feed in short, as in `feeds://all`.
pub(crate) fn summary(feed: &FeedRow) -> String {
    json(&Summary::of(feed))
}

/// `feeds://feed/{feedId}`.
pub(crate) fn feed(row: &FeedRow, items: &[Entry]) -> String {
    let items = items.iter().map(ReadableItem::of).collect();
    json(&Complete { head: Head::of(row), feed: &row.metadata, items })
}

/// `feeds://feed/{feedId}/items`.
pub(crate) fn items(items: &[Entry]) -> String {
    json(&items.iter().map(ReadableItem::of).collect::<Vec<_>>())
}

/// `feeds://feed/{feedId}/meta`.
pub(crate) fn meta(row: &FeedRow) -> String {
    // Only while it cannot be fetched: otherwise this would change with every fetch.
    json(&Meta {
        head: Head::of(row),
        feed: &row.metadata,
        last_error: row.last_error.as_deref(),
        last_success: row
            .last_success
            .filter(|_| row.is_failing())
            .map(|moment| moment.to_string()),
        paused: row.is_paused(),
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_updated: Option<String>,
    item_count: u64,
}

impl<'a> Summary<'a> {
    fn of(row: &'a FeedRow) -> Self {
        Self {
            head: Head::of(row),
            description: row.metadata.description.as_deref(),
            language: row.metadata.language.as_deref(),
            last_updated: row.last_updated().map(|moment| moment.to_string()),
            item_count: row.item_count,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Head<'a> {
    id: &'a str,
    title: &'a str,
    public_url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    folder: Option<&'a str>,
}

impl<'a> Head<'a> {
    fn of(row: &'a FeedRow) -> Self {
        let (title, public_url) = (row.shown_title(), row.public_url());
        Self { id: &row.id, title, public_url, folder: row.category.as_deref() }
    }
}

#[derive(Serialize)]
struct Complete<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    feed: &'a Metadata,
    items: Vec<ReadableItem<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Meta<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    feed: &'a Metadata,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<String>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    paused: bool,
}

pub(super) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("rows are plain JSON")
}
