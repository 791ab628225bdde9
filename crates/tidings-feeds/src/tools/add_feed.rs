//! `add_feed`: adds a feed, or the only feed of a page.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::tools::answer::{Answer, Refusal, count, of_others, shortened};
use crate::tools::describe::{Effect, Words, shape, tool as describe};
use crate::tools::{Call, Need};
use crate::{Asker, FeedAddress, FeedConfig, Feeds};

pub(super) const NAME: &str = "add_feed";
pub(super) const NEEDS: &[Need] = &[Need::Change, Need::Fetch];
/// The longest title, category and address that is repeated.
const TITLE: usize = 200;
const ADDRESS: usize = 500;
/// How many feeds of a page are reported.
const CHOICES: usize = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    url: String,
    title: Option<String>,
    folder: Option<String>,
    /// The former name of a folder.
    category: Option<String>,
    interval_minutes: Option<u64>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Add a feed",
        description: "Adds an RSS, Atom or JSON feed by its URL, or by the URL of a web page with \
            one feed. It is fetched at once, can be read when this returns, and stays after a \
            restart. A page with several feeds is refused with their addresses: choose one of them",
    };
    let text = json!({ "type": "string" });
    let output = shape(
        &json!({
            "id": text, "title": text, "url": text,
            "isNew": { "type": "boolean", "description": "Whether it is new" },
            "foundOn": { "type": "string", "description": "The page that names it" },
            "itemCount": { "type": "integer", "minimum": 0 },
            "problem": {
                "type": "string",
                "description": "Why its items could not be stored; missing if they could",
            },
        }),
        &["id", "title", "url", "isNew", "itemCount"],
    );
    let properties = json!({
        "url": {
            "type": "string", "minLength": 1, "maxLength": 2000,
            "description": "The URL of the feed or page: `https://…` or `http://…`",
        },
        "title": {
            "type": "string", "minLength": 1, "maxLength": TITLE,
            "description": "A title instead of its own",
        },
        "folder": {
            "type": "string", "minLength": 1, "maxLength": TITLE,
            "description": "Its folder; subfolders after `/`",
        },
        "category": {
            "type": "string", "minLength": 1, "maxLength": TITLE,
            "description": "The same as `folder`, for older callers",
        },
        "intervalMinutes": {
            "type": "integer", "minimum": 15, "maximum": 43_200,
            "description": "Time between fetches; by default it depends on how often the feed \
                changes",
        },
    });
    describe(&words, Effect::Repeatable, &properties, &["url"], output)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AddedFeed {
    id: String,
    title: String,
    url: String,
    is_new: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    found_on: Option<String>,
    item_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let feeds = Feeds(call.inner.clone());
    let Arguments { url, title, folder, category, interval_minutes } = arguments;
    let interval = interval_minutes.map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
    let title = title.map(|title| name("title", &title)).transpose()?;
    let folder = folder.map(|folder| name("folder", &folder)).transpose()?;
    let category = category.map(|category| name("category", &category)).transpose()?;
    let category = folder.or(category);
    let address = FeedAddress::parse(&url, Asker::Client).map_err(|_| not_on_web(&url))?;
    let wanted = FeedConfig { title, category, interval, ..FeedConfig::new(address) };
    let found = feeds.discover(wanted).await.map_err(|error| refused(&url, error))?;
    let found_on = found.page().map(|page| shortened(page, ADDRESS).into_owned());
    let is_new = call.inner.feed_at(found.url()).is_none();
    let id = feeds.add_found(found).await?;
    let row = call.inner.board().get(&id).cloned();
    let row = row.ok_or_else(|| Refusal::new("the feed was removed at the same moment"))?;
    let answered = AddedFeed {
        title: shortened(row.shown_title(), TITLE).into_owned(),
        url: shortened(&row.public_url(), ADDRESS).into_owned(),
        is_new,
        found_on,
        item_count: row.item_count,
        problem: call.inner.trouble().filter(|_| !row.is_known()),
        id,
    };
    let verb = if is_new { "Added" } else { "It is there already:" };
    let AddedFeed { id, title, item_count, .. } = &answered;
    let mut text = format!("{verb} {id}, {}\n", count(*item_count, "item"));
    if let Some(problem) = &answered.problem {
        let _ = writeln!(text, "its items could not be stored: {problem}");
    }
    text.push_str(&of_others(title));
    Ok(Answer::new(&answered, text))
}

/// A name in one line, without invisible characters.
fn name(argument: &str, text: &str) -> Result<String, Refusal> {
    let parts = text.split(|it: char| it.is_whitespace() || it.is_control());
    let parts: Vec<_> = parts.filter(|part| !part.is_empty()).collect();
    if parts.is_empty() {
        let details = "it has no readable characters; leave it out, or give a name";
        return Err(Refusal::argument(argument, text.escape_debug(), details));
    }
    Ok(parts.join(" "))
}

fn not_on_web(url: &str) -> Refusal {
    Refusal::argument("url", url, "it begins with `https://` or `http://`")
}

fn refused(url: &str, error: crate::DiscoverError) -> Refusal {
    use crate::DiscoverError as Error;
    match error {
        Error::Several { mut feeds, .. } => {
            let more = feeds.len().saturating_sub(CHOICES);
            feeds.truncate(CHOICES);
            let line = |found: &crate::parse::Found| {
                let title = found.title.as_deref().unwrap_or_default();
                format!("\n- {} {}", shortened(&found.url, ADDRESS), shortened(title, TITLE))
            };
            let lines: String = feeds.iter().map(line).collect();
            let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
            let details = format!("it is a page with several feeds; give one:{lines}{more}");
            Refusal::argument("url", url, &details)
        }
        Error::Fetch { reason, .. } => {
            Refusal::argument("url", url, &format!("it could not be fetched: {reason}"))
        }
        Error::None { reason, .. } => {
            Refusal::argument("url", url, &format!("there is no feed: {reason}"))
        }
        Error::Address(_) => not_on_web(url),
        other => Refusal::new(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_line_of_what_can_be_seen() {
        let read = |text: &str| name("title", text).map_err(|it| it.to_string());
        assert_eq!(
            read(" The\u{0} \u{1b}news\r\n of\ttoday\u{85}"),
            Ok("The news of today".to_owned())
        );
        assert_eq!(read("Köln/Süd"), Ok("Köln/Süd".to_owned()));
        let refusal = read("\u{7} ").unwrap_err();
        assert!(refusal.starts_with("`title`: `\\u{7} ` cannot be used"), "{refusal}");
    }
}
