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
    let output = list_shape(&[("cursor", cursor)], &["cursor"]);
    describe(&words, Effect::Repeatable, &properties, &["agent"], output)
}

pub(super) async fn call(call: &Call<'_>, arguments: Arguments) -> Result<Answer, Refusal> {
    let Arguments { agent, cursor, feed, category, limit, backlog } = arguments;
    let acknowledged = cursor.as_deref().map(|text| {
        key_of(text).ok_or_else(|| {
            Refusal::argument(
                "cursor",
                text,
                "it must be the `cursor` of an answer, or be left out",
            )
        })
    });
    let acknowledged = acknowledged.transpose()?;
    let feed = match feed {
        Some(id) => Some((keys(call.inner, "feed", std::slice::from_ref(&id))?[0], id)),
        None => None,
    };
    let category = category.map(|category| words::name(&category));
    let inbox = Inbox { agent: agent.trim().to_owned(), feed, category };
    let now = moment(call.inner.clock.time());
    let (limit, backlog) = (limit.unwrap_or(USUAL), backlog.unwrap_or(BACKLOG));
    let (budget, names) = (call.budget, call.inner.names());
    let shown = call.inner.blocking(move |inner| {
        let delivered = inner.store.deliver(&inbox, acknowledged, backlog, limit, now)?;
        let Some(delivery) = delivered else { return Ok(None) };
        let items = delivery.items.iter().map(|kept| Item::of(kept, &names, Texts::BRIEF));
        let items = fitting(&mut budget.room(), items);
        let last = items.len().checked_sub(1).map(|at| delivery.items[at].key);
        let total = delivery.items.len() as u64 + delivery.more;
        Ok(Some((items, total, last.unwrap_or(delivery.seen))))
    });
    let (items, total, last) = shown.await?.ok_or_else(|| {
        let details = "it is of other feeds than are kept here; call without `cursor`";
        Refusal::argument("cursor", cursor.unwrap_or_default(), details)
    })?;
    let cursor = cursor_of(last);
    let left_out = LeftOut::new(total - items.len() as u64, || {
        format!("ask again with `cursor` \"{cursor}\", once you have these")
    });
    let list = Page { items, total, left_out };
    let head = format!("{total} new items for {agent}; the cursor is {cursor}");
    let mut answer = Answer::new(&list, list.text(&head));
    answer.add("cursor", cursor);
    Ok(answer)
}

/// A cursor says how far an agent has come; nobody else can make anything of it.
fn cursor_of(key: i64) -> String {
    format!("c{key}")
}

fn key_of(cursor: &str) -> Option<i64> {
    let digits = cursor.strip_prefix('c')?;
    digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        assert_eq!(key_of(&cursor_of(42)), Some(42));
        for wrong in ["", "c", "42", "c-1", "c+1", "c99999999999999999999"] {
            assert_eq!(key_of(wrong), None, "{wrong}");
        }
    }
}
