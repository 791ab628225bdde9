//! `tidings feeds ls`: lists the feeds and their state.

use anyhow::Result;
use serde_json::{Value, json};
use tidings_feeds::Status;
use tidings_store::date::Moment;

use crate::args::FeedsLs;
use crate::feeds::{all, away, kept, look};
use crate::present::Output;
use crate::present::table::Table;

pub(crate) async fn run(args: &FeedsLs) -> Result<()> {
    let output = Output::new(args.kept.json);
    let directory = kept(&args.kept.place, &output)?.directory;
    let statuses = match look(&directory).await? {
        Some(feeds) => all(&feeds).await?,
        None => Vec::new(),
    };
    if args.kept.json {
        for status in &statuses {
            output.object(&object(status))?;
        }
    } else if statuses.is_empty() {
        output.remark(&format!("no feeds are stored in `{}`", directory.display()));
    } else {
        let now = Moment::now();
        let mut table = Table::new(["ID", "TITLE", "STATE", "NEXT FETCH", "ITEMS", "LAST ERROR"]);
        for status in &statuses {
            table.row([
                status.id.clone(),
                status.title.clone(),
                status.condition.word().to_owned(),
                next(status, now),
                status.items.to_string(),
                reason(status),
            ]);
        }
        output.raw(&table.render(output.width, output.paint))?;
    }
    Ok(())
}

/// The problem of a feed, if it has one.
pub(super) fn reason(status: &Status) -> String {
    match &status.last_error {
        Some(error) => error.clone(),
        None if status.truncated => {
            "the document was cut off; its complete items are stored".into()
        }
        None => String::new(),
    }
}

/// The time until a feed is fetched next.
pub(super) fn next(status: &Status, now: Moment) -> String {
    match (status.condition, status.next_fetch) {
        (condition, _) if !condition.is_asked() => "never".to_owned(),
        (_, None) => "never".to_owned(),
        (_, Some(next)) if next <= now => "due".to_owned(),
        (_, Some(next)) => away(next, now),
    }
}

/// A feed as an object.
pub(super) fn object(status: &Status) -> Value {
    let moment = |moment: Option<Moment>| moment.map(|moment| moment.to_string());
    json!({
        "id": status.id,
        "url": status.url,
        "title": status.title,
        "category": status.category,
        "state": status.condition.word(),
        "items": status.items,
        "next_fetch": moment(status.next_fetch),
        "last_fetch": moment(status.last_fetch),
        "last_success": moment(status.last_success),
        "last_error": status.last_error,
        "failures": status.failures,
        "truncated": status.truncated,
    })
}
