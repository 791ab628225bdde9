//! Feeds that were never fetched. They have no items for that reason, which the answer states.

use serde::Serialize;
use serde_json::{Value, json};

use crate::Inner;
use crate::tools::Call;
use crate::tools::answer::{Answer, Refusal, shortened};
use crate::tools::budget::{Budget, Room};
use crate::tools::describe::shape;

/// The field for them in an answer.
pub(super) const FIELD: &str = "unavailable";
/// The longest title and error, in bytes.
const TITLE: usize = 100;
const ERROR: usize = 250;

/// Feeds without any items yet.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Unavailable {
    count: usize,
    /// As many of them as fit.
    feeds: Vec<UnavailableFeed>,
    /// Whether at least one other feed has items.
    #[serde(skip)]
    has_others: bool,
}

#[derive(Debug, Serialize)]
struct UnavailableFeed {
    id: String,
    title: String,
    reason: String,
}

impl Unavailable {
    /// Those among the feeds with these keys, or among all without keys.
    pub(crate) fn among(inner: &Inner, keys: &[i64], room: &mut Room) -> Self {
        let rows: Vec<_> = inner.board().rows().cloned().collect();
        let mut unavailable = Self::default();
        let mut has_room = true;
        for row in rows.iter().filter(|row| keys.is_empty() || keys.contains(&row.key)) {
            let Err(error) = inner.known(&row.id) else {
                unavailable.has_others = true;
                continue;
            };
            unavailable.count += 1;
            if has_room {
                let title = shortened(row.shown_title(), TITLE).into_owned();
                let feed = UnavailableFeed {
                    id: row.id.clone(),
                    title,
                    reason: brief(&error.to_string()),
                };
                has_room = room.take(&feed);
                unavailable.feeds.extend(has_room.then_some(feed));
            }
        }
        unavailable
    }

    /// Whether none of the chosen feeds has items.
    pub(crate) fn is_all(&self) -> bool {
        self.count > 0 && !self.has_others
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The rest of a budget after them.
    pub(crate) fn rest_of(&self, budget: Budget) -> Budget {
        let length = serde_json::to_string(&self.feeds).map_or(0, |text| text.len());
        budget.without(length)
    }

    /// A line for each.
    pub(crate) fn lines(&self) -> String {
        let line =
            |feed: &UnavailableFeed| format!("- {} · {}: {}\n", feed.title, feed.id, feed.reason);
        let lines: String = self.feeds.iter().map(line).collect();
        match self.count - self.feeds.len() {
            0 => lines,
            more => format!("{lines}and {more} more; `feed_health` lists each\n"),
        }
    }
}

/// The state of the feeds that a call names.
pub(super) struct Named {
    is_any: bool,
    unavailable: Unavailable,
}

impl Named {
    /// Reads the state of the feeds with these keys; no keys mean that none was named.
    ///
    /// # Errors
    ///
    /// None of them has items.
    pub(super) fn look(call: &Call, keys: &[i64]) -> Result<Self, Refusal> {
        if keys.is_empty() {
            return Ok(Self { is_any: false, unavailable: Unavailable::default() });
        }
        let unavailable = Unavailable::among(&call.inner, keys, &mut part(call.budget));
        if unavailable.is_all() {
            // There is nothing else to report.
            let all = Unavailable::among(&call.inner, keys, &mut call.budget.room());
            let lines = all.lines();
            let details =
                format!("none of the requested feeds could be fetched yet\n{}", lines.trim_end());
            return Err(Refusal::new(details));
        }
        Ok(Self { is_any: true, unavailable })
    }

    /// The rest for the items.
    pub(super) fn rest_of(&self, budget: Budget) -> Budget {
        self.unavailable.rest_of(budget)
    }

    /// Adds the missing feeds to an answer with this many items. If none was named, they are added
    /// only if there are no items.
    pub(super) fn tell(self, call: &Call, total: u64, answer: &mut Answer) {
        let unavailable = if self.is_any || total > 0 {
            self.unavailable
        } else {
            Unavailable::among(&call.inner, &[], &mut part(call.budget))
        };
        if !unavailable.is_empty() {
            let count = unavailable.count;
            let lines = unavailable.lines();
            answer.say(&format!("\nCould not be fetched yet, feeds: {count}\n{lines}"));
            answer.add(FIELD, unavailable);
        }
    }
}

/// The room that feeds without items may take in an answer.
pub(crate) fn part(budget: Budget) -> Room {
    budget.shared(4).room()
}

/// A reason, with a cut error; the time of the next try is never cut.
fn brief(reason: &str) -> String {
    let end = reason.rfind("; it is ").unwrap_or(reason.len());
    let (error, next) = reason.split_at(end);
    format!("{}{next}", shortened(error, ERROR))
}

/// The shape of the field.
pub(super) fn unavailable() -> Value {
    let text = json!({ "type": "string" });
    let reason = json!({
        "type": "string", "description": "The error, and when it is retried",
    });
    let feed =
        shape(&json!({ "id": text, "title": text, "reason": reason }), &["id", "title", "reason"]);
    let mut shape = shape(
        &json!({
            "count": { "type": "integer", "minimum": 1, "description": "Their number" },
            "feeds": {
                "type": "array", "items": feed, "description": "Those that fit",
            },
        }),
        &["count", "feeds"],
    );
    shape["description"] = json!(
        "Feeds that could never be fetched, so none of their items can be here; missing if there \
         are none. Without named feeds, it is present only if there are no items"
    );
    shape
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_error_is_cut_and_the_next_try_is_not() {
        let next = "; it is tried again at 2026-01-31T00:00:00Z";
        assert_eq!(brief(&format!("no answer{next}")), format!("no answer{next}"));
        let long = brief(&format!("{}{next}", "x".repeat(1000)));
        assert!(long.len() == ERROR + next.len() && long.ends_with(next), "{long}");
        assert_eq!(brief("Feed has not been fetched yet"), "Feed has not been fetched yet");
    }
}
