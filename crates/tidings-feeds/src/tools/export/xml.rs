//! Items as RSS 2.0 and Atom 1.0.

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tidings_store::date::Moment;

use super::{ExportedItem, Head};
use crate::html::has_tag;
use crate::opml::quoted;
use crate::store::Kept;

/// The head of a document in RSS, the separator of items, and the end.
pub(super) fn rss_frame(head: &Head) -> [String; 3] {
    let begin = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <rss version=\"2.0\" xmlns:content=\"http://purl.org/rss/1.0/modules/content/\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\">\n<channel>\n{}{}{}",
        element("title", &title(&head.title)),
        element("link", &head.link),
        element("description", &head.description),
    );
    [begin, String::new(), "</channel>\n</rss>\n".to_owned()]
}

pub(super) fn rss_item(item: &ExportedItem<'_>) -> String {
    let entry = item.entry;
    let mut text = "<item>\n".to_owned();
    let mut add = |name: &str, value: Option<&str>| {
        text.push_str(&value.map(|value| element(name, value)).unwrap_or_default());
    };
    add("title", entry.title.as_deref().map(title).as_deref());
    add("link", entry.link.as_deref());
    add("pubDate", entry.published.or(entry.updated).map(rfc822).as_deref());
    for person in &entry.authors {
        add("dc:creator", person.name.as_deref().or(person.email.as_deref()));
    }
    for category in &entry.categories {
        add("category", Some(category));
    }
    add("description", item.description());
    add("content:encoded", item.content());
    let own = item.id();
    let guid = quoted(item.guid.unwrap_or(&own));
    let _ = writeln!(text, "<guid isPermaLink=\"false\">{guid}</guid>");
    // One is allowed.
    if let Some(file) = entry.enclosures.first() {
        let kind = file.media_type.as_deref().unwrap_or("application/octet-stream");
        let (url, length, kind) = (quoted(&file.url), file.length.unwrap_or(0), quoted(kind));
        let _ = writeln!(text, "<enclosure url=\"{url}\" length=\"{length}\" type=\"{kind}\"/>");
    }
    if let Some(feed) = item.feed {
        let (url, name) = (quoted(&feed.public_url()), quoted(feed.shown_title()));
        let _ = writeln!(text, "<source url=\"{url}\">{name}</source>");
    }
    text + "</item>\n"
}

/// The same for Atom, with the time of the last change.
pub(super) fn atom_frame(head: &Head, items: &[Kept]) -> [String; 3] {
    let updated = items.iter().map(|item| item.entry.updated.unwrap_or(item.moment)).max();
    let updated = updated.or_else(|| Moment::from_unix(0)).map(|moment| moment.to_string());
    let begin = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\n\
         {}{}{}<link href=\"{}\"/>\n<author><name>Tidings</name></author>\n",
        element("title", &head.title),
        element("id", &head.link),
        element("updated", &updated.unwrap_or_default()),
        quoted(&head.link),
    );
    [begin, String::new(), "</feed>\n".to_owned()]
}

pub(super) fn atom_item(item: &ExportedItem<'_>) -> String {
    let entry = item.entry;
    let mut text = "<entry>\n".to_owned();
    let add = |text: &mut String, name: &str, value: &str| text.push_str(&element(name, value));
    add(&mut text, "title", entry.title.as_deref().unwrap_or_default());
    // An id must be an address of some kind.
    let id = match item.guid {
        Some(guid) if guid.contains(':') => guid.to_owned(),
        Some(guid) => {
            let feed = item.feed.map_or("", |row| &row.id);
            format!("urn:guid:{feed}:{}", utf8_percent_encode(guid, NON_ALPHANUMERIC))
        }
        None => format!("urn:item:{}", item.id()),
    };
    add(&mut text, "id", &id);
    add(&mut text, "updated", &entry.updated.unwrap_or(item.moment).to_string());
    if let Some(published) = entry.published {
        add(&mut text, "published", &published.to_string());
    }
    if let Some(link) = &entry.link {
        let _ = writeln!(text, "<link href=\"{}\"/>", quoted(link));
    }
    for person in &entry.authors {
        text.push_str("<author>\n");
        let name = person.name.as_deref().or(person.email.as_deref()).unwrap_or_default();
        add(&mut text, "name", name);
        if let Some(email) = &person.email {
            add(&mut text, "email", email);
        }
        text.push_str("</author>\n");
    }
    for category in &entry.categories {
        let _ = writeln!(text, "<category term=\"{}\"/>", quoted(category));
    }
    for (name, value) in [("summary", item.description()), ("content", item.content())] {
        if let Some(value) = value {
            let _ = writeln!(text, "<{name} type=\"html\">{}</{name}>", quoted(value));
        }
    }
    for file in &entry.enclosures {
        let _ = write!(text, "<link rel=\"enclosure\" href=\"{}\"", quoted(&file.url));
        if let Some(kind) = &file.media_type {
            let _ = write!(text, " type=\"{}\"", quoted(kind));
        }
        if let Some(length) = file.length {
            let _ = write!(text, " length=\"{length}\"");
        }
        text.push_str("/>\n");
    }
    text + "</entry>\n"
}

fn element(name: &str, value: &str) -> String {
    format!("<{name}>{}</{name}>\n", quoted(value))
}

/// A text without markup, where many readers of RSS expect some: it is escaped once more if they
/// would find any.
fn title(text: &str) -> String {
    let is_reference = |(at, _)| {
        let name = text[at + 1..].trim_start_matches('#');
        let length = name.bytes().take(32).take_while(u8::is_ascii_alphanumeric).count();
        length > 0 && name[length..].starts_with(';')
    };
    if has_tag(text) || text.match_indices('&').any(is_reference) {
        text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
    } else {
        text.to_owned()
    }
}

/// A moment in the format of mail: `Thu, 01 Jan 1970 00:00:00 GMT`.
fn rfc822(moment: Moment) -> String {
    moment.civil().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}
