//! `new_since`: an agent's inbox. What was given is given again until the agent says that it has it.

use serde::Deserialize;
use serde_json::json;
use tidings_server::model::Tool;

use crate::feeds::clock::moment;
use crate::feeds::store::Inbox;
use crate::feeds::tools::answer::{Answer, Refusal};
use crate::feeds::tools::budget::LeftOut;
use crate::feeds::tools::choice::{USUAL, keys, limit, word};
use crate::feeds::tools::describe::{Effect, Words, tool as describe};
use crate::feeds::tools::item::{Item, Page, Texts, fitting, list_shape};
use crate::feeds::tools::unavailable::{FIELD, Named, unavailable};
use crate::feeds::tools::{Call, Need};
use crate::feeds::words;

pub(super) const NAME: &str = "new_since";
pub(super) const NEEDS: &[Need] = &[Need::Change];
/// With how many items an agent begins that never asked.
const BACKLOG: u32 = 50;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    agent: String,
    cursor: Option<String>,
    feed: Option<String>,
    category: Option<String>,
    limit: Option<u32>,
    backlog: Option<u32>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "What is new",
        description: "Gives what came in since this agent last looked, in the order in which it \
            came. Call it again with the `cursor` of the answer: that says that the answer arrived, \
            and gives what came after it. Without a cursor the same items are given again, so \
            nothing is lost with an answer that is. Each agent has an inbox of its own for each \
            choice of feed and category",
    };
    let properties = json!({
        "agent": {
            "type": "string", "minLength": 1, "maxLength": 200,
            "description": "A name for who asks, the same each time",
        },
        "cursor": word("The cursor of the last answer"),
        "feed": word("The id of a feed; all feeds without"),
        "category": word("Only items with this category"),
        "limit": limit(USUAL),
        "backlog": {
            "type": "integer", "minimum": 0, "maximum": 1000, "default": BACKLOG,
            "description": "With how many of the last items an agent begins that never asked",
        },
    });
    let cursor = json!({
        "type": "string", "description": "For the next call: says that this answer arrived",
    });
    let output = list_shape(&[("cursor", cursor), (FIELD, unavailable())], &["cursor"]);
    describe(&words, Effect::Repeatable, &properties, &["agent"], output)
}

pub(super) async fn call(call: &Call<'_>, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments { agent, cursor, feed, category, limit, backlog } = arguments;
    let parsed = cursor.as_deref().map(|text| {
        Cursor::parse(text).ok_or_else(|| {
            Refusal::argument(
                "cursor",
                text,
                "it must be the `cursor` of an answer, or be left out",
            )
        })
    });
    let parsed = parsed.transpose()?;
    let feed = match feed {
        Some(id) => Some((keys(call.inner, "feed", std::slice::from_ref(&id))?[0], id)),
        None => None,
    };
    let keys: Vec<_> = feed.iter().map(|(key, _)| *key).collect();
    let named = Named::look(call, &keys)?;
    let category = category.map(|category| words::label(&category));
    let inbox = Inbox { agent: agent.trim().to_owned(), feed, category };
    let now = moment(call.inner.clock.time());
    let (limit, backlog) = (limit.unwrap_or(USUAL), backlog.unwrap_or(BACKLOG));
    let (budget, names) = (call.budget, call.inner.names());
    let shown = call.inner.blocking(move |inner| {
        let origin = inner.store.origin()?;
        // A cursor of another store says nothing here, even if there is an item of its number.
        if parsed.as_ref().is_some_and(|cursor| cursor.is_of_another(&origin)) {
            return Ok(None);
        }
        let acknowledged = parsed.map(|cursor| cursor.key);
        let delivered = inner.store.deliver(&inbox, acknowledged, backlog, limit, now)?;
        let Some(delivery) = delivered else { return Ok(None) };
        let items = delivery.items.iter().map(|kept| Item::of(kept, &names, Texts::BRIEF));
        let items = fitting(&mut budget.room(), items);
        let last = items.len().checked_sub(1).map(|at| delivery.items[at].key);
        let total = delivery.items.len() as u64 + delivery.more;
        let cursor = Cursor { key: last.unwrap_or(delivery.seen), origin: Some(origin) };
        Ok(Some((items, total, cursor.to_string())))
    });
    let (items, total, cursor) = shown.await?.ok_or_else(|| {
        let details = "it is of other feeds than are kept here; call without `cursor`";
        Refusal::argument("cursor", cursor.unwrap_or_default(), details)
    })?;
    let left_out = LeftOut::new(total - items.len() as u64, || {
        format!("ask again with `cursor` \"{cursor}\", once you have these")
    });
    let list = Page { items, total, left_out };
    let head = format!("{total} new items for {agent}; the cursor is {cursor}");
    let mut answer = Answer::new(&list, list.text(&head));
    answer.add("cursor", cursor);
    named.tell(call, total, &mut answer);
    Ok(answer)
}

/// How far an agent has come, and in which store; nobody else can make anything of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cursor {
    key: i64,
    /// Not known of cursors that earlier releases gave.
    origin: Option<String>,
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('c')?;
        let (digits, origin) = match rest.split_once('-') {
            Some((digits, origin)) => (digits, Some(origin)),
            None => (rest, None),
        };
        let is_whole = !origin.is_some_and(str::is_empty);
        let is_number = is_whole && digits.bytes().all(|byte| byte.is_ascii_digit());
        let key = is_number.then(|| digits.parse().ok())??;
        Some(Self { key, origin: origin.map(str::to_owned) })
    }

    fn is_of_another(&self, origin: &str) -> bool {
        self.origin.as_deref().is_some_and(|it| it != origin)
    }
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "c{}", self.key)?;
        self.origin.iter().try_for_each(|origin| write!(formatter, "-{origin}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        for origin in [None, Some("0a1b2c3d".to_owned())] {
            let cursor = Cursor { key: 42, origin };
            assert_eq!(Cursor::parse(&cursor.to_string()), Some(cursor));
        }
        for wrong in ["", "c", "42", "c-1", "c+1", "c99999999999999999999", "c1-"] {
            assert_eq!(Cursor::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_cursor_of_another_store_is_told_from_one_of_this() {
        let of = |text: &str| Cursor::parse(text).unwrap().is_of_another("ab");
        assert_eq!(["c1", "c1-ab", "c1-cd"].map(of), [false, false, true]);
    }
}
