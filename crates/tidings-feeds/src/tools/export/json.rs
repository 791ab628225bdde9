//! Items as JSON Feed 1.1.

use serde_json::{Value, json};

use super::{ExportedItem, Head};
use crate::html;

/// The head of a document, the separator of items, and the end.
pub(super) fn frame(head: &Head) -> [String; 3] {
    let value = |text: &str| Value::from(text).to_string();
    let begin = format!(
        "{{\"version\":\"https://jsonfeed.org/version/1.1\",\"title\":{},\"home_page_url\":{},\
         \"description\":{},\"items\":[\n",
        value(&head.title),
        value(&head.link),
        // This one has no markup.
        value(&html::plain(&head.description)),
    );
    [begin, ",\n".to_owned(), "\n]}\n".to_owned()]
}

pub(super) fn item(item: &ExportedItem<'_>) -> String {
    let entry = item.entry;
    let mut object = json!({ "id": item.guid.map_or_else(|| item.id(), str::to_owned) });
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            object[name] = value;
        }
    };
    add("url", entry.link.clone().map(Value::from));
    add("title", entry.title.clone().map(Value::from));
    let summary = entry.description.as_deref().map(html::plain).filter(|it| !it.is_empty());
    match (item.content(), item.description()) {
        (Some(content), _) => {
            add("content_html", Some(content.into()));
            // This one has no markup.
            add("summary", summary.map(Value::from));
        }
        (None, Some(description)) => add("content_html", Some(description.into())),
        // One of them must be present.
        (None, None) => add("content_text", Some("".into())),
    }
    add("image", entry.image.clone().map(Value::from));
    add("date_published", entry.published.map(|moment| Value::from(moment.to_string())));
    add("date_modified", entry.updated.map(|moment| Value::from(moment.to_string())));
    let authors: Vec<_> = entry
        .authors
        .iter()
        .filter_map(|person| person.name.as_ref().or(person.email.as_ref()))
        .map(|name| json!({ "name": name }))
        .collect();
    add("authors", (!authors.is_empty()).then(|| authors.into()));
    let tags = &entry.categories;
    add("tags", (!tags.is_empty()).then(|| tags.clone().into()));
    let files: Vec<_> = entry
        .enclosures
        .iter()
        .map(|file| {
            let kind = file.media_type.as_deref().unwrap_or("application/octet-stream");
            let mut attachment = json!({ "url": file.url, "mime_type": kind });
            if let Some(length) = file.length {
                attachment["size_in_bytes"] = length.into();
            }
            attachment
        })
        .collect();
    add("attachments", (!files.is_empty()).then(|| files.into()));
    object.to_string()
}
