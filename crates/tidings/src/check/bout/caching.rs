//! `cache.*`: hints that are there, and fit what is offered to whom.

use serde_json::{Value, json};
use tidings_mirror::Era;

use super::Bout;
use crate::check::client::Probe;
use crate::check::door::Door;
use crate::check::topic::{Topic, list};

pub(super) async fn run(bout: &mut Bout<'_>) {
    if bout.era == Era::Legacy {
        return;
    }
    hints(bout).await;
    scope(bout).await;
}

/// What is wrong with the hints of a result.
fn problem(result: &Value) -> Option<String> {
    let ttl = &result["ttlMs"];
    if !(ttl.is_u64() || ttl.as_f64().is_some_and(|ttl| ttl >= 0.0)) {
        return Some(format!("`ttlMs` is {ttl}"));
    }
    let scope = &result["cacheScope"];
    (scope != "public" && scope != "private").then(|| format!("`cacheScope` is {scope}"))
}

async fn hints(bout: &mut Bout<'_>) {
    let id = "cache.hints";
    bout.findings.begin();
    let mut seen = vec![("server/discover".to_owned(), bout.client.hello.clone())];
    let mut failure = None;
    for (topic, listing) in &bout.listed {
        let scopes: Vec<_> = listing.pages.iter().map(|page| &page["cacheScope"]).collect();
        if scopes.windows(2).any(|pair| pair[0] != pair[1]) {
            failure = Some(format!("the pages of {} have different scopes", topic.method()));
        }
        seen.extend(listing.pages.iter().map(|page| (topic.method().to_owned(), page.clone())));
    }
    if let Some(uri) = bout.some_uris(1).pop()
        && let Some(result) =
            bout.client.ask("resources/read", json!({ "uri": uri })).await.result()
    {
        seen.push(("resources/read".to_owned(), result.clone()));
    }
    for (method, result) in &seen {
        if let Some(problem) = problem(result) {
            failure = Some(format!("in the result of {method}, {problem}"));
        }
    }
    bout.findings.judge(id, bout.era, failure, format!("{} results", seen.len()));
}

async fn scope(bout: &mut Bout<'_>) {
    let id = "cache.scope";
    bout.findings.begin();
    if !bout.door.place.is_http() {
        bout.findings.not_offered(id, bout.era, "a pipe has no tokens");
        return;
    }
    let Some(token) = &bout.settings.other_token else {
        let said = "give `--other-token FILE` with the token of somebody else";
        bout.findings.not_tried(id, bout.era, said);
        return;
    };
    let place = bout.door.place.with_token(token);
    let other = match place {
        Ok(place) => {
            let door = Door { place, ..bout.door.clone() };
            Probe::connect(&door, bout.era, json!({})).await
        }
        Err(why) => Err(why),
    };
    let other = match other {
        Ok(other) => other,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("with the other token: {why}"));
            return;
        }
    };
    let failure = different(bout, &other).await;
    other.end().await;
    bout.findings.judge(id, bout.era, failure, "no public list depends on the token");
}

/// A public list that is different for the other token.
async fn different(bout: &Bout<'_>, other: &Probe) -> Option<String> {
    for topic in bout.offered() {
        let (Ok(ours), Ok(theirs)) = (list(&bout.client, &topic).await, list(other, &topic).await)
        else {
            continue;
        };
        let is_public =
            ours.pages.iter().chain(&theirs.pages).any(|page| page["cacheScope"] == "public");
        if is_public && ours.sorted(&topic) != theirs.sorted(&topic) {
            return Some(format!("{topic} are `public`, but depend on the token"));
        }
    }
    None
}

/// `cache.truth`: a topic that moved within its time, and cannot be announced.
pub(super) fn truth(bout: &mut Bout<'_>, stale: Option<(Topic, u64)>, ttls: &[u64]) {
    let id = "cache.truth";
    if bout.era == Era::Legacy {
        return;
    }
    if ttls.is_empty() {
        bout.findings.not_tried(id, bout.era, "the change moved nothing that has a `ttlMs`");
        return;
    }
    if ttls.iter().all(|ttl| *ttl == 0) {
        let said = "what the change moved may not be cached: its `ttlMs` is 0";
        bout.findings.not_offered(id, bout.era, said);
        return;
    }
    let failure = stale.map(|(topic, ttl)| {
        format!("{topic} may be kept for {ttl} ms, changed within that time, and is not announced")
    });
    bout.findings.judge(id, bout.era, failure, "what may be kept is announced");
}
