//! `tidings feeds health`: the state of all feeds, failing ones first.

use anyhow::Result;
use serde_json::{Map, Value, json};
use tidings_feeds::{Condition, Holder, Status};
use tidings_store::date::Moment;

use super::ls::{next, object, reason};
use crate::args::FeedsHealth;
use crate::feeds::{all, away, kept, look};
use crate::present::Output;
use crate::present::table::Table;
use crate::present::text::count;

pub(crate) async fn run(args: &FeedsHealth) -> Result<()> {
    let output = Output::new(args.kept.json);
    let directory = kept(&args.kept.place, &output)?.directory;
    let statuses = match look(&directory).await? {
        Some(feeds) => all(&feeds).await?,
        None => Vec::new(),
    };
    let holder = Holder::of(&directory)?;
    let now = Moment::now();
    let due = statuses.iter().filter(|status| next(status, now) == "due").count();
    if args.kept.json {
        output.object(&as_json(&statuses, due, holder))
    } else {
        print(&output, &statuses, due, holder, now)
    }
}

fn as_json(statuses: &[Status], due: usize, holder: Option<Holder>) -> Value {
    let states: Map<_, _> = Condition::ALL
        .iter()
        .map(|condition| (condition.word().to_owned(), json!(number(statuses, *condition))))
        .collect();
    let failing: Vec<_> = failing(statuses).map(object).collect();
    let served_by = holder.filter(|holder| !holder.role.is_guest());
    let served_by = served_by.map(
        |holder| json!({ "pid": holder.pid, "since": holder.since.map(|since| since.to_string()) }),
    );
    json!({
        "feeds": statuses.len(), "states": states, "due": due, "failing": failing,
        "served_by": served_by,
    })
}

fn print(
    output: &Output,
    statuses: &[Status],
    due: usize,
    holder: Option<Holder>,
    now: Moment,
) -> Result<()> {
    let number_of_all = count(statuses.len(), "feed", "feeds");
    let states: Vec<_> = Condition::ALL
        .iter()
        .map(|condition| (number(statuses, *condition), condition.word()))
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    output.raw(&match states.as_slice() {
        [] => number_of_all,
        states => format!("{number_of_all}: {}", states.join(", ")),
    })?;
    output.raw(&match holder {
        Some(holder) if holder.role.is_guest() => {
            format!("no server is running; {holder} is fetching them once")
        }
        Some(holder) if !holder.role.fetches() => {
            format!("served by {holder}, which fetches nothing")
        }
        Some(holder) => format!("served by {holder}"),
        None => "no server is running".to_owned(),
    })?;
    if due > 0 {
        output.raw(&count(due, "feed is due", "feeds are due"))?;
    }
    let mut table = Table::new(["ID", "TITLE", "LAST WORKED", "NEXT TRY", "REASON"]);
    for status in failing(statuses) {
        let worked = status.last_success.map_or_else(
            || format!("never (added {})", away(status.added, now)),
            |moment| away(moment, now),
        );
        table.row([
            status.id.clone(),
            status.title.clone(),
            worked,
            next(status, now),
            reason(status),
        ]);
    }
    if failing(statuses).next().is_some() {
        output.raw(&table.render(output.width, output.paint))?;
    }
    Ok(())
}

fn number(statuses: &[Status], condition: Condition) -> usize {
    statuses.iter().filter(|status| status.condition == condition).count()
}

/// Feeds that cannot be fetched, or only in part.
fn failing(statuses: &[Status]) -> impl Iterator<Item = &Status> {
    statuses.iter().filter(|status| status.truncated || status.condition.is_trouble())
}
