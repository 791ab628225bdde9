//! `new_since`: an agent's inbox. Items are returned again until the agent confirms them.

use serde::Deserialize;
use serde_json::json;
use tidings_server::model::Tool;

use crate::store::{Inbox, Range};
use crate::tools::answer::{Answer, Refusal, count};
use crate::tools::budget::LeftOut;
use crate::tools::choice::{USUAL, folder, keys, keys_of, limit, word};
use crate::tools::describe::{Effect, Words, tool as describe};
use crate::tools::item::{ItemList, ShownItem, Texts, fitting, list_shape};
use crate::tools::unavailable::{FIELD, Named, unavailable};
use crate::tools::{Call, Need};
use crate::words;

pub(super) const NAME: &str = "new_since";
pub(super) const NEEDS: &[Need] = &[Need::Change];
/// The number of items in an agent's first answer.
const BACKLOG: u32 = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    agent: String,
    cursor: Option<String>,
    feed: Option<String>,
    folder: Option<String>,
    category: Option<String>,
    limit: Option<u32>,
    backlog: Option<u32>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "What is new",
        description: "Returns the items that arrived since this agent's last call, newest first. \
            Call it again with the `cursor` of the answer: it confirms that answer, and returns \
            the items after it. Without a cursor the same items are returned again, so a lost \
            answer loses no items. Each agent has an inbox of its own for each choice of feed or \
            folder and category",
    };
    let properties = json!({
        "agent": {
            "type": "string", "minLength": 1, "maxLength": 200,
            "description": "The name of the agent, the same each time",
        },
        "cursor": word("The cursor of the last answer"),
        "feed": word("The id of a feed; default: all feeds"),
        "folder": folder(),
        "category": word("Only items with this category"),
        "limit": limit(USUAL),
        "backlog": {
            "type": "integer", "minimum": 0, "maximum": 1000, "default": BACKLOG,
            "description": "The number of newest items in an agent's first answer",
        },
    });
    let cursor = json!({
        "type": "string", "description": "For the next call: confirms this answer",
    });
    let output = list_shape(&[("cursor", cursor), (FIELD, unavailable())], &["cursor"]);
    describe(&words, Effect::Repeatable, &properties, &["agent"], output)
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments { agent, cursor, feed, folder, category, limit, backlog } = arguments;
    let parsed = cursor.as_deref().map(|text| {
        let details = "it must be the `cursor` of an answer, or be left out";
        Cursor::parse(text).ok_or_else(|| Refusal::argument("cursor", text, details))
    });
    let parsed = parsed.transpose()?;
    let feeds = chosen(call, feed, folder)?;
    let named = Named::look(call, feeds.as_ref().map_or(&[], |(keys, _)| keys.as_slice()))?;
    let category = category.map(|category| words::label(&category));
    let inbox = Inbox { agent: agent.trim().to_owned(), feeds, category };
    let now = call.inner.clock.time().to_second();
    let (limit, backlog) = (limit.unwrap_or(USUAL), backlog.unwrap_or(BACKLOG));
    let (budget, names) = (call.budget, call.inner.names());
    let shown = call.inner.blocking(move |inner| {
        let origin = inner.store.origin()?;
        // A cursor of another store is invalid here, even if an item has its number.
        if parsed.as_ref().is_some_and(|cursor| cursor.is_of_another(&origin)) {
            return Ok(None);
        }
        let acknowledged = parsed.map(|cursor| cursor.range);
        let delivered = inner.store.deliver(&inbox, acknowledged, backlog, limit, now)?;
        let Some(delivery) = delivered else { return Ok(None) };
        let items = delivery.items.iter().map(|kept| ShownItem::of(kept, &names, Texts::BRIEF));
        let items = fitting(&mut budget.room(), items);
        let shown = &delivery.items[..items.len()];
        let range =
            shown.last().zip(shown.first()).map(|(oldest, newest)| (oldest.key, newest.key));
        let total = delivery.items.len() as u64 + delivery.more;
        let cursor = Cursor { range: range.unwrap_or((0, delivery.seen)), origin: Some(origin) };
        Ok(Some((items, total, cursor.to_string())))
    });
    let (items, total, cursor) = shown.await?.ok_or_else(|| {
        let details = "it belongs to other feeds; call without `cursor`";
        Refusal::argument("cursor", cursor.unwrap_or_default(), details)
    })?;
    let left_out = LeftOut::new(total - items.len() as u64, || {
        format!("ask again with `cursor` \"{cursor}\", once you have these")
    });
    let list = ItemList { items, total, left_out };
    let head = format!("{} for {agent}; the cursor is {cursor}", count(total, "new item"));
    let mut answer = Answer::new(&list, list.text(&head));
    answer.add("cursor", cursor);
    named.tell(call, total, &mut answer);
    Ok(answer)
}

/// The chosen feeds and the name of the choice; `None` for all feeds.
fn chosen(
    call: &Call,
    feed: Option<String>,
    folder: Option<String>,
) -> Result<Option<(Vec<i64>, String)>, Refusal> {
    Ok(match (feed, folder) {
        (Some(_), Some(folder)) => {
            let details = "give `feed` or `folder`, not both";
            return Err(Refusal::argument("folder", folder, details));
        }
        (Some(id), None) => Some((keys(&call.inner, "feed", std::slice::from_ref(&id))?, id)),
        (None, Some(folder)) => {
            let name = format!("folder:{}", words::label(&folder));
            Some((keys_of(&call.inner, &[], Some(&folder))?, name))
        }
        (None, None) => None,
    })
}

/// How far an agent has come, and in which store. Opaque to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cursor {
    /// The returned items.
    range: Range,
    /// Missing in cursors of earlier releases.
    origin: Option<String>,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('c')?;
        let (digits, origin) = match rest.split_once('-') {
            Some((digits, origin)) => (digits, Some(origin)),
            None => (rest, None),
        };
        if origin.is_some_and(str::is_empty) {
            return None;
        }
        // Earlier releases confirmed all up to one.
        let (first, last) = digits.split_once('.').unwrap_or(("0", digits));
        let range = (number(first)?, number(last)?);
        (range.0 <= range.1).then(|| Self { range, origin: origin.map(str::to_owned) })
    }

    fn is_of_another(&self, origin: &str) -> bool {
        self.origin.as_deref().is_some_and(|it| it != origin)
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "c{}.{}", self.range.0, self.range.1)?;
        self.origin.iter().try_for_each(|origin| write!(formatter, "-{origin}"))
    }
}

/// Digits and nothing else.
fn number(text: &str) -> Option<i64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        for origin in [None, Some("0a1b2c3d".to_owned())] {
            let cursor = Cursor { range: (7, 42), origin };
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
        assert_eq!(Cursor::parse("c42").map(|cursor| cursor.range), Some((0, 42)));
        for wrong in
            ["c2.1", "c1.", "c.1", "", "c", "42", "c-1", "c+1", "c99999999999999999999", "c1-"]
        {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_cursor_of_another_store_is_told_from_one_of_this() {
        let of = |text: &str| Cursor::parse(text).unwrap().is_of_another("ab");
        assert_eq!(["c1", "c1-ab", "c1-cd"].map(of), [false, false, true]);
    }
}
