//! `caps.*`: is every advertised capability honoured?

use serde_json::json;
use tidings_mirror::Era;

use super::Bout;
use crate::check::client::{Answered, Probe};
use crate::check::topic::{Following, LISTS, Topic, list};
use crate::present::text::count;

/// Resources that are subscribed to, at most.
const SUBSCRIBED: usize = 20;

/// `caps.list-served`, which also lists everything for the checks that follow.
pub(super) async fn served(bout: &mut Bout<'_>) {
    bout.findings.begin();
    bout.list_all().await;
    let mut failure = None;
    for topic in &LISTS {
        let offered = bout.client.offers(topic.group());
        if offered && bout.listed.contains_key(topic) {
            continue;
        }
        let reply = bout.client.ask(topic.method(), json!({})).await;
        match reply {
            // Templates have no capability of their own.
            Answered::Error { code: -32601, .. } if !offered || *topic == Topic::Templates => {}
            Answered::Error { .. } if !offered => {}
            Answered::Result(result) if !offered => {
                let items = result[topic.member()].as_array().map_or(0, Vec::len);
                if items > 0 {
                    failure = Some(format!(
                        "`{}` is not advertised, but {} returns {items} items",
                        topic.group(),
                        topic.method()
                    ));
                }
            }
            reply if offered => {
                failure = Some(format!(
                    "`{}` is advertised, but {} got {reply}",
                    topic.group(),
                    topic.method()
                ));
            }
            _ => {}
        }
    }
    let lists = count(bout.listed.len(), "list", "lists");
    bout.findings.judge("caps.list-served", bout.era, failure, lists);
}

pub(super) async fn run(bout: &mut Bout<'_>) {
    subscribe_works(bout).await;
    subscribe_undeclared(bout).await;
    depend_on_client(bout).await;
}

async fn subscribe_works(bout: &mut Bout<'_>) {
    let id = "caps.subscribe-works";
    bout.findings.begin();
    if !bout.client.flag("resources", "subscribe") {
        bout.findings.not_offered(id, bout.era, "`subscribe` is not advertised");
        return;
    }
    let uris = bout.some_uris(SUBSCRIBED);
    if uris.is_empty() {
        bout.findings.not_tried(id, bout.era, "the server lists no resource");
        return;
    }
    let topics: Vec<_> = uris.iter().cloned().map(Topic::Uri).collect();
    let failure = match Following::open(&bout.client, &topics).await {
        Err(why) => Some(why),
        Ok(watch) => {
            let missing = uris.iter().find(|uri| bout.era != Era::Legacy && !honours(&watch, uri));
            let failure = missing.map(|uri| format!("{uri} is listed, but was not acknowledged"));
            watch.close().await;
            failure
        }
    };
    let said = format!("{} accepted", count(uris.len(), "resource", "resources"));
    bout.findings.judge(id, bout.era, failure, said);
}

fn honours(watch: &Following<'_>, uri: &str) -> bool {
    let honoured = watch.honoured["resourceSubscriptions"].as_array();
    honoured.is_some_and(|honoured| honoured.iter().any(|honoured| honoured == uri))
}

async fn subscribe_undeclared(bout: &mut Bout<'_>) {
    let id = "caps.subscribe-undeclared";
    bout.findings.begin();
    if bout.client.flag("resources", "subscribe") {
        bout.findings.not_offered(id, bout.era, "`subscribe` is advertised");
        return;
    }
    let uri = bout.some_uris(1).pop().unwrap_or_else(|| "tidings-check:///resource".to_owned());
    let accepts = match Following::open(&bout.client, &[Topic::Uri(uri.clone())]).await {
        Err(_) => false,
        Ok(watch) => {
            let accepts = bout.era == Era::Legacy || honours(&watch, &uri);
            watch.close().await;
            accepts
        }
    };
    bout.undeclared = accepts;
    if accepts {
        let said = "a subscription is accepted: whether it works needs a change of a resource: \
                    `--change … --expects URI`";
        bout.findings.not_tried(id, bout.era, said);
    } else {
        bout.findings.pass(id, bout.era, "a subscription is refused");
    }
}

async fn depend_on_client(bout: &mut Bout<'_>) {
    let id = "caps.depend-on-client";
    bout.findings.begin();
    if bout.varies {
        bout.findings.not_tried(id, bout.era, "lists depend on the connection already");
        return;
    }
    let all = json!({ "roots": { "listChanged": true }, "sampling": {}, "elicitation": {} });
    let able = match Probe::connect(bout.door, bout.era, all).await {
        Ok(able) => able,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("a second client got {why}"));
            return;
        }
    };
    // Some servers add items once they know their client.
    bout.settle().await;
    let mut failure = None;
    for topic in bout.offered() {
        let (ours, theirs) = (list(&bout.client, &topic).await, list(&able, &topic).await);
        let (Ok(ours), Ok(theirs)) = (ours, theirs) else { continue };
        let (ours, theirs) = (ours.keys(&topic), theirs.keys(&topic));
        let only = theirs.iter().find(|name| !ours.contains(name));
        if let Some(name) = only.or_else(|| ours.iter().find(|name| !theirs.contains(name))) {
            failure = Some(format!(
                "{topic}: `{name}` depends on the client's roots, sampling or elicitation"
            ));
        }
    }
    able.end().await;
    bout.findings.judge(id, bout.era, failure, "the same lists for a client that offers more");
}
