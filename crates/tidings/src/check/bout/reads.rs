//! `read.*` and `sub.unknown-uri`: resources that do not exist, and content that is never the same.

use serde_json::{Value, json};
use tidings_mirror::Era;

use super::Bout;
use crate::check::client::Answered;
use crate::check::topic::{Following, Topic, state};
use crate::check::verdict::Severity;
use crate::present::text::count;

/// A URI that no server has.
const UNKNOWN: &str = "tidings-check:///no-such-resource";
/// Resources that are read twice, at most.
const READ: usize = 5;

pub(super) async fn run(bout: &mut Bout<'_>) {
    if !bout.client.offers("resources") {
        for id in ["read.notfound", "read.stable", "sub.unknown-uri"] {
            bout.findings.not_offered(id, bout.era, "no resources are offered");
        }
        return;
    }
    not_found(bout).await;
    stable(bout).await;
    unknown_uri(bout).await;
}

async fn not_found(bout: &mut Bout<'_>) {
    let id = "read.notfound";
    bout.findings.begin();
    let reply = bout.client.ask("resources/read", json!({ "uri": UNKNOWN })).await;
    match &reply {
        Answered::Error { code: -32602, .. } => bout.findings.pass(id, bout.era, "-32602"),
        Answered::Error { code: -32002, .. } if bout.era == Era::Legacy => {
            bout.findings.pass(id, bout.era, "-32002");
        }
        // Only the modern revision has a MUST for the code.
        Answered::Error { .. } if bout.era == Era::Legacy => {
            let said = format!("reading an unknown resource got {reply}");
            bout.findings.fail_as(id, bout.era, Severity::Warning, said);
        }
        _ => bout.findings.fail(id, bout.era, format!("reading an unknown resource got {reply}")),
    }
}

async fn stable(bout: &mut Bout<'_>) {
    let id = "read.stable";
    bout.findings.begin();
    let uris = bout.some_uris(READ);
    if uris.is_empty() {
        bout.findings.not_tried(id, bout.era, "the server lists no resource");
        return;
    }
    let mut failure = None;
    for uri in &uris {
        let topic = Topic::Uri(uri.clone());
        let mut reads = Vec::new();
        // A change in between is possible once, and not in each of three reads.
        for _ in 0..3 {
            reads.push(state(&bout.client, &topic).await.unwrap_or(Value::Null));
        }
        if reads[0] != reads[1] && reads[1] != reads[2] {
            failure = Some(format!("{uri} is different in every read"));
        }
    }
    let said = format!("{} read three times", count(uris.len(), "resource", "resources"));
    bout.findings.judge(id, bout.era, failure, said);
}

async fn unknown_uri(bout: &mut Bout<'_>) {
    let id = "sub.unknown-uri";
    bout.findings.begin();
    if !bout.client.flag("resources", "subscribe") {
        bout.findings.not_offered(id, bout.era, "`subscribe` is not advertised");
        return;
    }
    let watch = Following::open(&bout.client, &[Topic::Uri(UNKNOWN.to_owned())]).await;
    let accepted = match watch {
        Err(_) => false,
        Ok(watch) => {
            let honoured = watch.honoured["resourceSubscriptions"].as_array();
            let accepted = bout.era == Era::Legacy
                || honoured.is_some_and(|uris| uris.iter().any(|uri| uri == UNKNOWN));
            watch.close().await;
            accepted
        }
    };
    let failure = accepted.then(|| {
        format!("a subscription to {UNKNOWN}, which cannot be read, is accepted without a word")
    });
    bout.findings.judge(id, bout.era, failure, "refused");
}
