//! `feed_health`: the condition of each feed, the reason, and the next fetch.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;
use tidings_store::date::Moment;

use crate::condition::Condition;
use crate::store::FeedRow;
use crate::tools::answer::{Answer, Refusal, of_others, shortened};
use crate::tools::budget::LeftOut;
use crate::tools::choice::{keys, offset};
use crate::tools::describe::{Effect, Words, left_out, shape, tool as describe};
use crate::tools::{Call, Need};

pub(super) const NAME: &str = "feed_health";
pub(super) const NEEDS: &[Need] = &[];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(default)]
    feeds: Vec<String>,
    #[serde(default)]
    only: Only,
    #[serde(default)]
    offset: usize,
}

/// The conditions of a served feed.
const STATES: [Condition; 6] = [
    Condition::New,
    Condition::Good,
    Condition::Failing,
    Condition::Resting,
    Condition::Paused,
    Condition::Gone,
];

/// The chosen feeds.
#[derive(Clone, Copy, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Only {
    #[default]
    All,
    /// Those in trouble.
    Troubled,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Health of feeds",
        description: "Returns the condition of each feed: `new` (not fetched yet), `good`, \
            `failing` (retried, less and less often), `resting` (failed so often that it is tried \
            once a day), `paused` or `gone` (for ever, according to the server); with the last \
            error and the time of the next fetch. Feeds in trouble come first",
    };
    let properties = json!({
        "feeds": {
            "type": "array", "items": { "type": "string" }, "maxItems": 100,
            "description": "Ids of feeds; default: all feeds",
        },
        "only": {
            "enum": ["all", "troubled"], "default": "all",
            "description": "Only feeds in trouble",
        },
        "offset": offset(),
    });
    let text = json!({ "type": "string" });
    let moment = json!({ "type": "string", "format": "date-time" });
    let count = json!({ "type": "integer", "minimum": 0 });
    let states: Vec<_> = STATES.iter().map(|it| it.word()).collect();
    let feed = shape(
        &json!({
            "id": text, "title": text, "publicUrl": text, "state": { "enum": states },
            "explanation": text, "lastError": text, "lastFetch": moment, "lastSuccess": moment,
            "nextFetch": moment, "failures": count, "itemCount": count,
            "truncated": { "type": "boolean" },
        }),
        &["id", "title", "publicUrl", "state", "explanation", "failures", "itemCount"],
    );
    let counts: serde_json::Map<_, _> =
        states.iter().map(|state| ((*state).to_owned(), count.clone())).collect();
    let output = shape(
        &json!({
            "feeds": { "type": "array", "items": feed },
            "counts": { "type": "object", "properties": counts, "additionalProperties": false },
            "problem": {
                "type": "string",
                "description": "Why answers of feeds cannot be stored; missing if they can",
            },
            "leftOut": left_out(),
        }),
        &["feeds", "counts"],
    );
    describe(&words, Effect::Looks, &properties, &[], output)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Told {
    feeds: Vec<FeedHealth>,
    counts: std::collections::BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FeedHealth {
    id: String,
    title: String,
    public_url: String,
    state: Condition,
    explanation: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_fetch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_success: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_fetch: Option<String>,
    failures: u32,
    item_count: u64,
    /// Whether its document was cut off the last time.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl FeedHealth {
    fn of(row: &FeedRow, now: Moment, is_asked: bool) -> Self {
        let plan = row.plan.as_ref();
        let explanation = match plan {
            _ if !is_asked => "nothing is fetched here".to_owned(),
            Some(plan) => plan.explain(now),
            None => "not asked yet".to_owned(),
        };
        let explanation = if row.metadata.truncated {
            format!("{explanation}; its document was cut off, the complete items are stored")
        } else {
            explanation
        };
        let moment = |moment: Option<Moment>| moment.map(|it| it.to_string());
        let condition = row.condition();
        let is_waiting = is_asked && condition.is_asked();
        Self {
            id: row.id.clone(),
            title: shortened(row.shown_title(), 200).into_owned(),
            public_url: shortened(&row.public_url(), 500).into_owned(),
            state: condition,
            explanation,
            last_error: row.last_error.as_deref().map(|it| shortened(it, 500).into_owned()),
            last_fetch: moment(row.last_fetch),
            last_success: moment(row.last_success),
            next_fetch: moment(row.next_fetch.filter(|_| is_waiting)),
            failures: plan.map_or(0, |plan| plan.failures),
            item_count: row.item_count,
            truncated: row.metadata.truncated,
        }
    }

    fn is_troubled(&self) -> bool {
        self.truncated || self.state.is_trouble()
    }
}

#[expect(clippy::unused_async, reason = "the shape of every tool")]
pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let wanted = keys(&call.inner, "feeds", &arguments.feeds)?;
    let now = call.inner.clock.time();
    let is_asked = call.inner.fetcher.is_some();
    let rows: Vec<_> = call.inner.board().rows().cloned().collect();
    let rows = rows.iter().filter(|row| wanted.is_empty() || wanted.contains(&row.key));
    let mut feeds: Vec<_> = rows.map(|row| FeedHealth::of(row, now, is_asked)).collect();
    let mut counts = std::collections::BTreeMap::new();
    for feed in &feeds {
        *counts.entry(feed.state.word()).or_default() += 1;
    }
    feeds.retain(|feed| arguments.only == Only::All || feed.is_troubled());
    feeds.sort_by_key(|feed| !feed.is_troubled());
    let total = feeds.len();
    let mut room = call.budget.room();
    let feeds: Vec<_> =
        feeds.into_iter().skip(arguments.offset).take_while(|feed| room.take(feed)).collect();
    let next = arguments.offset.saturating_add(feeds.len());
    let left_out = LeftOut::new(total.saturating_sub(next) as u64, || {
        format!("ask again with `offset` {next}, or with more `maxTokens`")
    });
    let mut text = String::new();
    let problem = call.inner.trouble();
    if let Some(problem) = &problem {
        let _ = writeln!(text, "Answers of feeds cannot be stored: {problem}");
    }
    let counted: Vec<_> = counts.iter().map(|(state, count)| format!("{count} {state}")).collect();
    let _ = writeln!(text, "Feeds: {}", counted.join(", "));
    let mut list = String::new();
    for feed in &feeds {
        let FeedHealth { id, title, state, explanation, .. } = feed;
        let _ = writeln!(list, "- {id} · {title} · {}: {explanation}", state.word());
        if let Some(error) = feed.last_error.as_ref().filter(|_| feed.is_troubled()) {
            let _ = writeln!(list, "  {error}");
        }
    }
    text.push_str(&of_others(&list));
    text.push_str(&LeftOut::line(left_out.as_ref()));
    Ok(Answer::new(&Told { feeds, counts, problem, left_out }, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Bounds, Failure, Outcome, Plan};
    use crate::store::{Retention, Store};
    use crate::tests::feed_at;

    /// A feed that failed this many times, the last time in this way.
    fn feed(failures: u32, last: &Failure, is_asked: bool) -> FeedHealth {
        let store = Store::in_memory(Retention::default()).unwrap();
        let now = Moment::from_millis(1_790_000_000_000);
        let registration = feed_at("https://example.com/feed.xml").registration();
        let id = store.add(&registration, now.to_second()).unwrap().id;
        let mut plan = Plan::new(now);
        for number in 1..=failures {
            let failure = if number == failures { last.clone() } else { Failure::Transient };
            plan.next = now;
            plan = plan.after(&Outcome::Failed(failure), &Bounds::default(), now, 0);
            store.failed(&id, "no answer", now.to_second()).unwrap();
        }
        store.keep_plan(&id, plan).unwrap();
        FeedHealth::of(&store.feed(&id).unwrap().unwrap(), now, is_asked)
    }

    #[test]
    fn a_feed_says_how_it_does_and_why() {
        let told =
            |feed: FeedHealth| (feed.state.word(), feed.explanation, feed.next_fetch.is_some());
        let check = |feed: FeedHealth, state, explanation: &str, is_asked_again| {
            assert_eq!(told(feed), (state, explanation.to_owned(), is_asked_again));
        };
        check(feed(0, &Failure::Gone, true), "new", "next now", true);
        let once = "the last attempt failed; next try in 15 min";
        check(feed(1, &Failure::Transient, true), "failing", once, true);
        let often = "the last 8 attempts failed; tried once a day, next in 24 h";
        check(feed(8, &Failure::Transient, true), "resting", often, true);
        let gone = "gone for ever, according to the server; not fetched again";
        check(feed(1, &Failure::Gone, true), "gone", gone, false);
        check(feed(8, &Failure::Transient, false), "resting", "nothing is fetched here", false);
        assert_eq!(feed(8, &Failure::Transient, true).failures, 8);
    }
}
