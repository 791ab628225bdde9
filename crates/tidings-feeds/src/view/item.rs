//! The readable form of an item: its stored data, with safe texts.

use std::borrow::Cow;

use serde::Serialize;

use crate::html;
use crate::store::{Enclosure, Entry, Person, Safe};

/// The readable form of an item. The order of the fields is that of the JSON; unknown ones are left
/// out.
#[derive(Serialize)]
pub(crate) struct ReadableItem<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) content: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<String>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    authors: &'a [Person],
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    categories: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    guid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    image: Option<&'a str>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    enclosures: &'a [Enclosure],
    /// Shown only if it is the only date: many feeds state that everything changed just now.
    #[serde(skip_serializing_if = "Option::is_none")]
    updated: Option<String>,
}

impl<'a> ReadableItem<'a> {
    pub(crate) fn of(entry: &'a Entry) -> Self {
        let kept = |text: &'a Option<String>| {
            let text = text.as_deref().filter(|text| !text.is_empty());
            text.map(Cow::Borrowed)
        };
        let safe = |text: &'a Option<String>| html::safe(text.as_deref()?, entry.base.as_deref());
        let (description, content) = match &entry.safe {
            Safe::Itself => (kept(&entry.description), kept(&entry.content)),
            Safe::Made { description, content } => (kept(description), kept(content)),
            Safe::Unknown => (safe(&entry.description), safe(&entry.content)),
        };
        let updated = entry.updated.filter(|_| entry.published.is_none());
        Self {
            title: entry.title.as_deref(),
            description,
            content,
            link: entry.link.as_deref(),
            published: entry.published.map(|moment| moment.to_string()),
            authors: &entry.authors,
            categories: &entry.categories,
            guid: entry.guid.as_deref(),
            image: entry.image.as_deref(),
            enclosures: &entry.enclosures,
            updated: updated.map(|moment| moment.to_string()),
        }
    }

    /// Its size in bytes in readable form.
    pub(crate) fn size(&self) -> usize {
        super::render::json(self).len()
    }
}
