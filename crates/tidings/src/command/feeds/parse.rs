//! `tidings feeds parse`: prints the items of a document, without storing them.

use anyhow::{Result, bail};
use serde_json::{Value, json};
use tidings_feeds::parse::{Document, Hints, Item, ParseError, Text, parse};
use tidings_feeds::{FeedAddress, Fetched};
use tidings_store::date::Moment;

use crate::args::FeedsParse;
use crate::feeds::{IMPORT, NamedDocument, fetch_document};
use crate::present::Output;
use crate::present::table::Table;
use crate::present::text::{count, one_line};
use crate::report::Hint;

pub(crate) async fn run(args: &FeedsParse) -> Result<()> {
    let output = Output::new(args.json);
    let mut unreadable = 0;
    for place in &args.documents {
        let (bytes, hints) = match read(place, args.allow_private).await {
            Ok(read) => read,
            Err(error) => {
                unreadable += 1;
                let hint = error.downcast_ref::<Hint>().map(ToString::to_string);
                let causes = error.chain().map(ToString::to_string);
                let causes: Vec<_> = causes.filter(|it| Some(it) != hint.as_ref()).collect();
                let error = causes.join(": ");
                if args.json {
                    output.object(&json!({
                        "path": place, "ok": false, "error": format!("could not be read: {error}"),
                    }))?;
                } else {
                    output.remark(&format!("error: reading `{place}`: {error}"));
                    if let Some(hint) = hint {
                        output.remark(&format!("hint: {hint}"));
                    }
                }
                continue;
            }
        };
        let parsed = parse(&bytes, &hints);
        if args.json {
            output.object(&object(place, &parsed))?;
        } else {
            output.raw(&text(place, &parsed, &output))?;
        }
    }
    if unreadable > 0 {
        bail!("{} could not be read", count(unreadable, "document", "documents"));
    }
    Ok(())
}

/// A document, and its properties known before parsing.
async fn read(name: &str, allow_private: bool) -> Result<(Vec<u8>, Hints)> {
    let document = NamedDocument::parse(name)?;
    let NamedDocument::At(FeedAddress::Web(address)) = &document else {
        return Ok((document.read(allow_private).await?, Hints::default()));
    };
    let Fetched { bytes, content_type, url, .. } = fetch_document(address, allow_private).await?;
    Ok((bytes, Hints { content_type, base: Some(url) }))
}

fn object(path: &str, parsed: &Result<Document, ParseError>) -> Value {
    let document = match parsed {
        Ok(document) => document,
        Err(error) => {
            let feeds: Vec<_> = match error {
                ParseError::Page { feeds } => feeds.iter().map(|feed| &feed.url).collect(),
                _ => Vec::new(),
            };
            return json!({ "path": path, "ok": false, "error": error.to_string(), "feeds": feeds });
        }
    };
    let first = document.items.first();
    let of_first = |part: fn(&Item) -> Option<String>| first.and_then(part);
    json!({
        "path": path,
        "ok": true,
        "format": document.format.to_string(),
        "title": document.feed.title.as_ref().map(|title| &title.value),
        "link": document.feed.link,
        "items": document.items.len(),
        "first_title": of_first(|item| item.title.as_ref().map(|title| title.value.clone())),
        "first_link": of_first(|item| item.link.clone()),
        "first_id": of_first(|item| item.id.clone()),
        "first_published": of_first(|item| moment(item.published)),
        "first_updated": of_first(|item| moment(item.updated)),
        "truncated": document.truncated,
        "problems": document.problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn moment(moment: Option<Moment>) -> Option<String> {
    moment.map(|moment| moment.to_string())
}

fn text(path: &str, parsed: &Result<Document, ParseError>, output: &Output) -> String {
    let paint = output.paint;
    let document = match parsed {
        Ok(document) => document,
        Err(error) => {
            let hint = match error {
                ParseError::List => format!("  hint: {IMPORT}\n"),
                _ => String::new(),
            };
            let error = paint.red(&one_line(&error.to_string()));
            return format!("{}: {error}\n{hint}", paint.bold(&one_line(path)));
        }
    };
    let items = count(document.items.len(), "item", "items");
    let path = paint.bold(&one_line(path));
    let mut text = format!("{path}: {}, {items}\n", document.format);
    let said = |text: &Option<Text>| text.as_ref().map(|text| one_line(&text.value));
    for (name, value) in [
        ("title", said(&document.feed.title)),
        ("link", document.feed.link.as_deref().map(one_line)),
        ("updated", moment(document.feed.updated.or(document.feed.published))),
    ] {
        if let Some(value) = value {
            text += &["  ", &paint.faint(&format!("{name:8}")), " ", &value, "\n"].concat();
        }
    }
    if !document.items.is_empty() {
        let mut table = Table::new(["DATE", "TITLE", "LINK"]);
        for item in &document.items {
            let date = moment(item.published.or(item.updated)).unwrap_or_default();
            let title = said(&item.title).unwrap_or_default();
            let link = item.link.clone().or_else(|| item.id.clone()).unwrap_or_default();
            table.row([date, title, link]);
        }
        text += &table.render(output.width, paint);
    }
    for problem in &document.problems {
        text += &[&paint.yellow("problem:"), " ", &one_line(&problem.to_string()), "\n"].concat();
    }
    text
}
