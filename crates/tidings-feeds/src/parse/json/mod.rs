//! JSON Feed.

mod digits;

use serde_json::{Map, Value};
use tidings_store::date::Moment;

use super::build::person::inherit;
use super::document::{Category, Enclosure, Feed, Format, Item, Person, Text, TextKind};
use super::problem::Problems;
use super::{Document, Hints, ParseError, Problem, address};

/// How many items of one document are read.
const ITEMS: usize = 20_000;

/// Reads a document that begins like an object.
pub(super) fn read(
    text: &str,
    hints: &Hints,
    mut problems: Problems,
) -> Result<Document, ParseError> {
    let value = exact(text).map_err(|error| ParseError::NotAFeed {
        reason: format!("it begins like JSON, but is invalid: {error}"),
    })?;
    let Value::Object(object) = value else {
        return Err(ParseError::NotAFeed { reason: "it is JSON, but not an object".to_owned() });
    };
    let version = string(&object, "version").unwrap_or_default();
    let values = object.get("items").and_then(Value::as_array);
    if !version.contains("jsonfeed.org") && (values.is_none() || !object.contains_key("title")) {
        return Err(ParseError::NotAFeed {
            reason: "it is JSON, but has no `version` of JSON Feed".to_owned(),
        });
    }
    let format = if version.ends_with("/1.1") { Format::JsonFeed11 } else { Format::JsonFeed10 };
    let home = string(&object, "home_page_url");
    let base = hints.base.as_deref().or(home.as_deref());
    let feed = feed(&object, base);
    let values = values.map_or(&[][..], Vec::as_slice);
    if values.len() > ITEMS {
        problems.add(Problem::TooManyItems(ITEMS));
    }
    let mut items: Vec<Item> = values
        .iter()
        .take(ITEMS)
        .filter_map(Value::as_object)
        .map(|object| item(object, base, &mut problems))
        .collect();
    inherit(&mut items, &feed.authors);
    Ok(Document { format, feed, items, problems: problems.into_vec(), truncated: false })
}

/// The value of a text. A numeric id keeps all its digits.
fn exact(text: &str) -> serde_json::Result<Value> {
    let value: Value = serde_json::from_str(text)?;
    let mut items = value["items"].as_array().into_iter().flatten();
    if items.any(|item| item["id"].is_f64()) {
        return serde_json::from_str(&digits::kept(text));
    }
    Ok(value)
}

fn feed(object: &Map<String, Value>, base: Option<&str>) -> Feed {
    let url = |name: &str| string(object, name).map(|url| address::join(base, &url));
    let hubs = object.get("hubs").and_then(Value::as_array).into_iter().flatten();
    Feed {
        title: string(object, "title").map(plain),
        description: string(object, "description").map(plain),
        link: url("home_page_url"),
        self_link: url("feed_url"),
        language: string(object, "language"),
        authors: authors(object),
        image: url("icon"),
        icon: url("favicon"),
        hubs: hubs
            .filter_map(|hub| string(hub.as_object()?, "url"))
            .map(|url| address::join(base, &url))
            .collect(),
        ..Feed::default()
    }
}

fn item(object: &Map<String, Value>, base: Option<&str>, problems: &mut Problems) -> Item {
    let url = |name: &str| string(object, name).map(|url| address::join(base, &url));
    let mut date = |name: &str| {
        let text = string(object, name)?;
        let moment = Moment::parse(&text);
        if moment.is_none() {
            problems.add(Problem::Date(text.chars().take(60).collect()));
        }
        moment
    };
    let html = string(object, "content_html").map(|value| Text { value, kind: TextKind::Html });
    let list = |name: &str| object.get(name).and_then(Value::as_array).into_iter().flatten();
    Item {
        id: string(object, "id"),
        title: string(object, "title").map(plain),
        summary: string(object, "summary").map(plain),
        content: html.or_else(|| string(object, "content_text").map(plain)),
        link: url("url").or_else(|| url("external_url")),
        image: url("image").or_else(|| url("banner_image")),
        published: date("date_published"),
        updated: date("date_modified"),
        authors: authors(object),
        categories: list("tags")
            .filter_map(Value::as_str)
            .map(str::trim)
            .filter(|term| !term.is_empty())
            .map(|term| Category { term: term.to_owned(), ..Category::default() })
            .collect(),
        enclosures: list("attachments")
            .filter_map(Value::as_object)
            .filter_map(|attachment| {
                Some(Enclosure {
                    url: address::join(base, &string(attachment, "url")?),
                    media_type: string(attachment, "mime_type"),
                    length: attachment.get("size_in_bytes").and_then(Value::as_u64),
                })
            })
            .collect(),
        language: string(object, "language"),
        base: base.and_then(address::base_of_texts),
        ..Item::default()
    }
}

/// The authors: several in version 1.1, one in version 1.
fn authors(object: &Map<String, Value>) -> Vec<Person> {
    let several = object.get("authors").and_then(Value::as_array).map(Vec::as_slice);
    let one = object.get("author").map(std::slice::from_ref);
    let people = several.filter(|people| !people.is_empty()).or(one).unwrap_or_default();
    people
        .iter()
        .filter_map(Value::as_object)
        .map(|person| Person {
            name: string(person, "name"),
            email: None,
            uri: string(person, "url"),
        })
        .filter(|person| *person != Person::default())
        .collect()
}

fn plain(value: String) -> Text {
    Text { value, kind: TextKind::Plain }
}

/// A text that is not empty; numbers count as texts, because ids are often numbers.
fn string(object: &Map<String, Value>, name: &str) -> Option<String> {
    let text = match object.get(name)? {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}
