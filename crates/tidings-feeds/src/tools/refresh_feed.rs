//! `refresh_feed`: fetches one feed, or all, and returns the real news.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::json;
use tidings_server::model::Tool;

use crate::tools::answer::{Answer, Refusal, of_others, shortened};
use crate::tools::budget::{LeftOut, Room};
use crate::tools::describe::{Effect, Words, left_out, shape, tool as describe};
use crate::tools::{Call, Need};
use crate::{Feeds, FeedsError, Headline, News, Refresh, Refreshed, StoreError};

pub(super) const NAME: &str = "refresh_feed";
pub(super) const NEEDS: &[Need] = &[Need::Change, Need::Fetch];
const TITLE: usize = 200;
const ADDRESS: usize = 500;
/// How many items of one feed are listed.
const NAMED: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Arguments {
    #[serde(rename = "ID")]
    id: Option<String>,
}

pub(super) fn tool() -> Tool {
    let words = Words {
        name: NAME,
        title: "Refresh feeds",
        description: "Fetches one feed now, or all of them without `ID`, and returns what is \
            really new, changed or withdrawn. A server that sent `Retry-After` is not contacted: \
            the answer says until when. Feeds are also fetched by themselves; nothing is missed \
            without this",
    };
    let text = json!({ "type": "string" });
    let moment = json!({ "type": "string", "format": "date-time" });
    let count = json!({ "type": "integer", "minimum": 0 });
    let item = shape(
        &json!({
            "news": { "enum": ["new", "changed"] }, "title": text, "link": text,
            "published": moment,
        }),
        &["news"],
    );
    let feed = shape(
        &json!({
            "id": text, "title": text,
            "outcome": { "enum": ["answered", "failed", "postponed", "paused"] },
            "new": count, "changed": count, "withdrawn": count, "unchanged": count,
            "items": {
                "type": "array", "items": item, "description": "The first new or changed items",
            },
            "error": { "type": "string", "description": "Why it failed" },
            "until": { "type": "string", "format": "date-time",
                "description": "The end of its server's `Retry-After`" },
            "next": { "type": "string", "format": "date-time",
                "description": "When it is fetched next by itself" },
        }),
        &["id", "title", "outcome"],
    );
    let output = shape(
        &json!({
            "feeds": {
                "type": "array", "items": feed, "description": "Those with news come first",
            },
            "total": count, "new": count, "changed": count, "withdrawn": count, "failed": count,
            "notAsked": count, "leftOut": left_out(),
        }),
        &["feeds", "total", "new", "changed", "withdrawn", "failed", "notAsked"],
    );
    let properties = json!({
        "ID": {
            "type": "string", "minLength": 1, "description": "The feed's id; default: all feeds",
        },
    });
    describe(&words, Effect::Once, &properties, &[], output)
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct RefreshedFeeds {
    feeds: Vec<RefreshedFeed>,
    total: usize,
    new: usize,
    changed: usize,
    withdrawn: usize,
    failed: usize,
    not_asked: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    left_out: Option<LeftOut>,
}

#[derive(Default, Serialize)]
struct RefreshedFeed {
    id: String,
    title: String,
    outcome: &'static str,
    #[serde(flatten)]
    news: Option<Counts>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    items: Vec<RefreshedItem>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Serialize)]
struct Counts {
    new: usize,
    changed: usize,
    withdrawn: usize,
    unchanged: usize,
}

#[derive(Serialize)]
struct RefreshedItem {
    news: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    published: Option<String>,
}

pub(super) async fn call(call: &Call, arguments: Arguments) -> Result<Answer, Refusal> {
    let feeds = Feeds(call.inner.clone());
    let mut refreshed = match arguments.id {
        Some(id) => vec![feeds.refresh(&id).await.map_err(|error| match error {
            FeedsError::Store(StoreError::NoFeed(id)) => Refusal::no_feed("ID", &id),
            error => error.into(),
        })?],
        None => feeds.refresh_all().await?,
    };
    refreshed.sort_by_key(|feed| match &feed.outcome {
        Refresh::Answered(news) if news.new + news.changed + news.withdrawn > 0 => 0,
        Refresh::Failed(_) | Refresh::Forbidden(_) => 1,
        Refresh::Answered(_) => 3,
        _ => 2,
    });
    let mut answered = RefreshedFeeds { total: refreshed.len(), ..RefreshedFeeds::default() };
    for feed in &refreshed {
        match &feed.outcome {
            Refresh::Answered(News { new, changed, withdrawn, .. }) => {
                answered.new += new;
                answered.changed += changed;
                answered.withdrawn += withdrawn;
            }
            Refresh::Failed(_) | Refresh::Forbidden(_) => answered.failed += 1,
            _ => answered.not_asked += 1,
        }
    }
    let mut room = call.budget.room();
    answered.feeds = fitting(&mut room, refreshed.into_iter().map(RefreshedFeed::of));
    let left_out = (answered.total - answered.feeds.len()) as u64;
    // A repeated fetch would find no news.
    answered.left_out = LeftOut::new(left_out, || {
        "`new_since` returns new items, `get_syndication_feed_items` the items of a feed".to_owned()
    });
    let text = text(&answered);
    Ok(Answer::new(&answered, text))
}

/// The feeds that fit, in order, and as many of their items as fit besides.
fn fitting(room: &mut Room, feeds: impl Iterator<Item = RefreshedFeed>) -> Vec<RefreshedFeed> {
    let mut fitting = Vec::new();
    let mut named = Vec::new();
    for mut feed in feeds {
        let items = std::mem::take(&mut feed.items);
        if !room.take(&feed) {
            break;
        }
        fitting.push(feed);
        named.push(items);
    }
    for (feed, items) in fitting.iter_mut().zip(named) {
        // With the name of the list that contains it.
        feed.items = items.into_iter().take_while(|item| room.take(&("items", item))).collect();
    }
    fitting
}

impl RefreshedFeed {
    fn of(refreshed: Refreshed) -> Self {
        let Refreshed { id, title, outcome, next } = refreshed;
        let title = shortened(&title, TITLE).into_owned();
        let next = next.map(|moment| moment.to_string());
        let feed = Self { id, title, next, ..Self::default() };
        match outcome {
            Refresh::Answered(News { new, changed, withdrawn, unchanged, headlines, .. }) => {
                let news = Some(Counts { new, changed, withdrawn, unchanged });
                let items = headlines.into_iter().take(NAMED).map(RefreshedItem::of).collect();
                Self { outcome: "answered", news, items, ..feed }
            }
            Refresh::Failed(reason) | Refresh::Forbidden(reason) => {
                let error = Some(shortened(&reason, ADDRESS).into_owned());
                Self { outcome: "failed", error, ..feed }
            }
            Refresh::Postponed(until) => {
                Self { outcome: "postponed", until: Some(until.to_string()), ..feed }
            }
            Refresh::Paused => Self { outcome: "paused", ..feed },
        }
    }

    fn line(&self) -> String {
        let Self { id, title, .. } = self;
        let said = match (&self.news, &self.error, &self.until) {
            (Some(Counts { new, changed, withdrawn, .. }), ..) => {
                format!("{new} new, {changed} changed, {withdrawn} withdrawn")
            }
            (_, Some(error), _) => format!("failed: {error}"),
            (_, _, Some(until)) => {
                format!("not fetched: its server sent `Retry-After` until {until}")
            }
            _ => "not fetched: it is paused".to_owned(),
        };
        format!("- {id} · {title} · {said}")
    }
}

impl RefreshedItem {
    fn of(headline: Headline) -> Self {
        Self {
            news: if headline.is_new { "new" } else { "changed" },
            title: headline.title.map(|title| shortened(&title, TITLE).into_owned()),
            link: headline.link.map(|link| shortened(&link, ADDRESS).into_owned()),
            published: headline.published.map(|moment| moment.to_string()),
        }
    }
}

fn text(answered: &RefreshedFeeds) -> String {
    let RefreshedFeeds { total, new, changed, withdrawn, failed, .. } = answered;
    let mut text = format!(
        "Feeds: {total}; {new} new, {changed} changed, {withdrawn} withdrawn, {failed} failed\n"
    );
    let mut list = String::new();
    for feed in &answered.feeds {
        let _ = writeln!(list, "{}", feed.line());
        for RefreshedItem { news, title, .. } in &feed.items {
            let _ = writeln!(list, "  - {news}: {}", title.as_deref().unwrap_or("(no title)"));
        }
    }
    text.push_str(&of_others(&list));
    text.push_str(&LeftOut::line(answered.left_out.as_ref()));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::budget::Budget;

    #[test]
    fn titles_of_items_make_room_for_feeds() {
        let item = || RefreshedItem {
            news: "new",
            title: Some("t".repeat(TITLE)),
            link: None,
            published: None,
        };
        let feed = |_| RefreshedFeed {
            id: "b799e597".to_owned(),
            outcome: "answered",
            items: (0..NAMED).map(|_| item()).collect(),
            ..RefreshedFeed::default()
        };
        let feeds = fitting(&mut Budget::of_tokens(0).shared(2).room(), (0..10).map(feed));
        assert_eq!(feeds.len(), 10);
        assert!((1..NAMED).contains(&feeds[0].items.len()));
        assert!(feeds[9].items.is_empty());
    }
}
