//! `list.*`: order, pages, cursors and names.

use std::collections::BTreeSet;

use serde_json::json;
use tidings_mirror::Era;

use super::Bout;
use crate::check::client::Probe;
use crate::check::topic::{Topic, list};
use crate::check::verdict::Severity;
use crate::present::text::count;

/// How often a list is compared before it counts as changing by itself.
const TRIES: usize = 3;

pub(super) async fn run(bout: &mut Bout<'_>) {
    pages_end(bout);
    cursor_bad(bout).await;
    names_legal(bout);
    match bout.another().await {
        Ok(other) => {
            compare(bout, &other).await;
            other.end().await;
        }
        Err(why) => {
            let said = format!("a second client got {why}");
            bout.findings.not_tried("list.order-stable", bout.era, said.clone());
            bout.findings.not_tried("list.per-connection", Era::Modern, said);
        }
    }
}

fn pages_end(bout: &mut Bout<'_>) {
    let id = "list.pages-end";
    let (mut failure, mut pages) = (None, 0);
    for (topic, listing) in &bout.listed {
        pages = pages.max(listing.pages.len());
        if let Some(problem) = &listing.problem {
            failure = Some(format!("{}: {problem}", topic.method()));
            continue;
        }
        let keys = listing.keys(topic);
        let unique: BTreeSet<_> = keys.iter().collect();
        // On one page, this is about names.
        if listing.pages.len() > 1 && unique.len() < keys.len() {
            failure = Some(format!("{}: an item is on two pages", topic.method()));
        }
    }
    let said = format!("at most {}", count(pages, "page", "pages"));
    bout.findings.judge(id, bout.era, failure, said);
}

async fn cursor_bad(bout: &mut Bout<'_>) {
    let id = "list.cursor-bad";
    bout.findings.begin();
    let Some(topic) = bout.listed.keys().next().cloned() else {
        bout.findings.not_offered(id, bout.era, "no list is offered");
        return;
    };
    let reply = bout.client.ask(topic.method(), json!({ "cursor": "tidings-check" })).await;
    if reply.code() == Some(-32602) {
        bout.findings.pass(id, bout.era, "refused with -32602");
    } else {
        let said = format!("{} with an invalid cursor got {reply}", topic.method());
        bout.findings.fail(id, bout.era, said);
    }
}

fn names_legal(bout: &mut Bout<'_>) {
    let id = "list.names-legal";
    let Some(listing) = bout.listed.get(&Topic::Tools) else {
        bout.findings.not_offered(id, bout.era, "no tools are offered");
        return;
    };
    let names = listing.keys(&Topic::Tools);
    let legal = |name: &String| {
        let letter = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
        !name.is_empty() && name.len() <= 128 && name.chars().all(letter)
    };
    let mut seen = BTreeSet::new();
    if let Some(name) = names.iter().find(|name| !legal(name)) {
        bout.findings.fail(id, bout.era, format!("the tool `{name}` has an illegal name"));
    } else if let Some(name) = names.iter().find(|name| !seen.insert((*name).clone())) {
        bout.findings.fail(id, bout.era, format!("the tool `{name}` is listed twice"));
    } else if let Some(name) = names.iter().find(|name| name.len() > 64) {
        let said = format!("the tool `{name}` has more than 64 characters: some hosts refuse it");
        bout.findings.fail_as(id, bout.era, Severity::Advice, said);
    } else {
        bout.findings.pass(id, bout.era, count(names.len(), "name", "names"));
    }
}

/// What comparing a list on two connections found.
enum Compared {
    Same,
    /// The same items in another order or with other members.
    Order(String),
    /// Other items.
    Items(String),
    Moving,
}

async fn compare(bout: &mut Bout<'_>, other: &Probe) {
    bout.findings.begin();
    let (mut order, mut items, mut moving) = (None, None, None);
    for topic in bout.offered() {
        match compared(&bout.client, other, &topic).await {
            Compared::Same => {}
            Compared::Order(said) => order = Some(said),
            Compared::Items(said) => items = Some(said),
            Compared::Moving => moving = Some(topic),
        }
    }
    bout.varies = items.is_some();
    if let Some(topic) = moving.filter(|_| order.is_none() && items.is_none()) {
        let said = format!("{topic} changes by itself too often to be compared");
        bout.findings.not_tried("list.order-stable", bout.era, said.clone());
        if bout.era != Era::Legacy {
            bout.findings.not_tried("list.per-connection", bout.era, said);
        }
        return;
    }
    bout.findings.judge("list.order-stable", bout.era, order, "equal bytes on two connections");
    if bout.era != Era::Legacy {
        bout.findings.judge("list.per-connection", bout.era, items, "equal on two connections");
    }
}

async fn compared(ours: &Probe, theirs: &Probe, topic: &Topic) -> Compared {
    for _ in 0..TRIES {
        let (Ok(first), Ok(there), Ok(second)) =
            (list(ours, topic).await, list(theirs, topic).await, list(ours, topic).await)
        else {
            // Whether it can be listed is another check.
            return Compared::Same;
        };
        let (one, two, three) = (first.sorted(topic), there.sorted(topic), second.sorted(topic));
        if one != three {
            let (a, b): (BTreeSet<_>, BTreeSet<_>) =
                (first.keys(topic).into_iter().collect(), second.keys(topic).into_iter().collect());
            if a == b {
                return Compared::Order(format!("{topic}: listing twice returns other members"));
            }
            continue;
        }
        if first.plain() != second.plain() {
            return Compared::Order(format!("{topic}: listing twice returns another order"));
        }
        if one != two {
            let keys = there.keys(topic);
            let ours = first.keys(topic);
            let odd = keys.iter().find(|key| !ours.contains(key));
            let odd = odd.or_else(|| ours.iter().find(|key| !keys.contains(key)));
            let Some(odd) = odd else {
                return Compared::Order(format!("{topic}: two connections get other members"));
            };
            return Compared::Items(format!("{topic}: `{odd}` is listed on one connection only"));
        }
        if first.plain() != there.plain() {
            return Compared::Order(format!("{topic}: two connections get another order"));
        }
        return Compared::Same;
    }
    Compared::Moving
}
