//! `tidings feeds refresh`: fetches feeds now, and prints new and changed items.

use anyhow::{Context as _, Result, anyhow};
use serde_json::{Value, json};
use tidings_feeds::{News, Refresh, Refreshed};
use tidings_store::date::Moment;
use tokio::sync::mpsc;

use crate::args::FeedsRefresh;
use crate::feeds::{Reach, away, kept, named, visit};
use crate::present::Output;
use crate::present::standing::StandingLine;
use crate::present::text::{count, one_line};
use crate::report::Hint;

/// Results that may wait to be printed.
const WAITING: usize = 64;

pub(crate) async fn run(args: &FeedsRefresh) -> Result<()> {
    let output = Output::new(args.kept.json);
    let kept = kept(&args.kept.place, &output)?;
    let reach = Reach::when(args.allow_private || kept.allow_private);
    let Some(feeds) = visit(&kept.directory, reach).await? else {
        output.remark(&format!("no feeds are stored in `{}`", kept.directory.display()));
        return Ok(());
    };
    if let Some(holder) = feeds.holder()?.filter(|holder| holder.role.is_guest()) {
        output.remark(&format!("{holder} is fetching the feeds; waiting for it"));
    }
    let statuses = feeds.statuses();
    let wanted = if args.names.is_empty() { statuses } else { named(&statuses, &args.names)? };
    let ids: Vec<_> = wanted.iter().map(|status| status.id.clone()).collect();
    let (told, mut heard) = mpsc::channel(WAITING);
    let asking = feeds.refresh_each(&ids, args.timeout, told);
    let printing = async {
        let mut standing = StandingLine::new(args.kept.json);
        let (mut done, mut failed, mut forbidden) = (0, 0, 0);
        standing.draw(&format!("fetching feeds: 0 of {}", ids.len()));
        while let Some(refreshed) = heard.recv().await {
            done += 1;
            let is_forbidden = matches!(refreshed.outcome, Refresh::Forbidden(_));
            forbidden += usize::from(is_forbidden);
            failed += usize::from(is_forbidden || matches!(refreshed.outcome, Refresh::Failed(_)));
            standing.clear();
            if args.kept.json {
                output.object(&object(&refreshed))?;
            } else {
                output.raw(&text(&refreshed, &output))?;
            }
            standing.draw(&format!("fetching feeds: {done} of {}, {failed} failed", ids.len()));
        }
        standing.clear();
        anyhow::Ok((done, failed, forbidden))
    };
    let (asked, printed) = tokio::join!(asking, printing);
    asked.context("fetching the feeds")?;
    let (done, failed, forbidden) = printed?;
    if done < ids.len() {
        let missing = count(ids.len() - done, "feed was", "feeds were");
        let late = Err(anyhow!("{missing} not fetched in {} s", args.timeout.as_secs()));
        return late.context(Hint("`--timeout 5m` waits longer for the server".to_owned()));
    }
    if failed > 0 {
        let error = anyhow!("{} could not be fetched", count(failed, "feed", "feeds"));
        let hint = "`--allow-private` allows feeds on private addresses";
        return Err(if forbidden > 0 { error.context(Hint(hint.to_owned())) } else { error });
    }
    Ok(())
}

fn text(refreshed: &Refreshed, output: &Output) -> String {
    let title = output.paint.bold(&one_line(&refreshed.title));
    let said = match &refreshed.outcome {
        Refresh::Answered(news) => words(news),
        Refresh::Failed(reason) | Refresh::Forbidden(reason) => {
            format!("failed: {}", one_line(reason))
        }
        Refresh::Postponed(until) => {
            let next = away(*until, Moment::now());
            format!("skipped: its server sent Retry-After; next fetch {next}")
        }
        Refresh::Paused => "is paused".to_owned(),
        _ => "was not fetched".to_owned(),
    };
    let mut text = format!("{}  {title}: {said}\n", refreshed.id);
    if let Refresh::Answered(news) = &refreshed.outcome {
        for headline in &news.headlines {
            let sign = if headline.is_new { '+' } else { '~' };
            let title = one_line(headline.title.as_deref().unwrap_or("(no title)"));
            let link = headline.link.as_deref().map(one_line).unwrap_or_default();
            text += format!("  {sign} {title}  {link}").trim_end();
            text.push('\n');
        }
    }
    text
}

fn words(news: &News) -> String {
    let parts = [(news.new, "new"), (news.changed, "changed"), (news.withdrawn, "withdrawn")];
    let parts: Vec<_> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    if parts.is_empty() { "nothing new".to_owned() } else { parts.join(", ") }
}

fn object(refreshed: &Refreshed) -> Value {
    let (outcome, error) = match &refreshed.outcome {
        Refresh::Answered(_) => ("answered", None),
        Refresh::Failed(reason) | Refresh::Forbidden(reason) => ("failed", Some(reason)),
        Refresh::Postponed(_) => ("postponed", None),
        Refresh::Paused => ("paused", None),
        _ => ("not asked", None),
    };
    let mut object = json!({
        "id": refreshed.id, "title": refreshed.title, "outcome": outcome, "error": error,
        "next_fetch": refreshed.next.map(|next| next.to_string()),
    });
    if let Refresh::Answered(news) = &refreshed.outcome {
        object["new"] = json!(news.new);
        object["changed"] = json!(news.changed);
        object["withdrawn"] = json!(news.withdrawn);
        let items = news.headlines.iter().map(|headline| {
            json!({
                "new": headline.is_new, "title": headline.title, "link": headline.link,
                "published": headline.published.map(|published| published.to_string()),
            })
        });
        object["items"] = items.collect();
    }
    object
}
