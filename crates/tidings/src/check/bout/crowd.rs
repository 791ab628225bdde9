//! Changes with several clients or streams: who is notified, and who is not.

use std::time::Duration;

use serde_json::json;
use tidings_mirror::Era;
use tokio::time::Instant;

use super::Bout;
use crate::check::cause::Cause;
use crate::check::client::Probe;
use crate::check::client::log::Arrival;
use crate::check::topic::{Following, Topic};

pub(super) async fn run(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    unsubscribed(bout, cause, told).await;
    if bout.era == Era::Legacy {
        other_session(bout, cause, told).await;
    } else {
        only_asked(bout, cause, told).await;
        parallel(bout, cause, told).await;
    }
    slow_reader(bout, cause, told).await;
}

fn watched_uris(told: &[Topic]) -> Vec<Topic> {
    told.iter().filter(|topic| matches!(topic, Topic::Uri(_))).cloned().collect()
}

const GIVE_URI: &str = "the change moves no subscribed resource: `--expects URI`";

/// `sub.unsubscribe-quiet`.
async fn unsubscribed(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "sub.unsubscribe-quiet";
    bout.findings.begin();
    let topics = if bout.era == Era::Legacy { watched_uris(told) } else { told.to_vec() };
    if topics.is_empty() {
        bout.findings.not_tried(id, bout.era, GIVE_URI);
        return;
    }
    let found = async {
        let watch = Following::open(&bout.client, &topics).await?;
        let listen = watch.listen.clone();
        watch.close().await;
        // What was under way may still arrive.
        bout.settle().await;
        let mark = bout.client.log.mark();
        cause.next(&bout.client).await?;
        tokio::time::sleep(bout.pause() * 3).await;
        let is_ours = |heard: &&Arrival| match &listen {
            Some(id) => crate::check::topic::belongs(heard, id),
            None => topics.iter().any(|topic| topic.is_told_by(heard)),
        };
        let heard = bout.client.log.since(mark);
        let late = heard.iter().filter(|heard| heard.notice().is_some()).find(is_ours);
        Ok::<_, String>(late.and_then(|late| late.notice().map(str::to_owned)))
    };
    match found.await {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(late) => {
            let said =
                late.map(|method| format!("`{method}` came after the subscription had ended"));
            bout.findings.judge(id, bout.era, said, "silence");
        }
    }
}

/// `notice.other-session`.
async fn other_session(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "notice.other-session";
    bout.findings.begin();
    if !bout.door.place.is_shared() {
        bout.findings.not_offered(id, bout.era, "each client has its own process");
        return;
    }
    let other = match bout.another().await {
        Ok(other) => other,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("a second client got {why}"));
            return;
        }
    };
    // Without a stream it would hear nothing anyway.
    let _ = other.open_stream().await;
    let found = heard_by_both(bout, cause, told, &other).await;
    other.end().await;
    match found {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(said) => bout.findings.judge(id, bout.era, said, "only the session that subscribed"),
    }
}

async fn heard_by_both(
    bout: &Bout<'_>,
    cause: &Cause,
    told: &[Topic],
    other: &Probe,
) -> Result<Option<String>, String> {
    let watch = Following::open(&bout.client, told).await?;
    bout.settle().await;
    let (mark, theirs) = (bout.client.log.mark(), other.log.mark());
    let done = cause.next(other).await?;
    let mut said = None;
    for topic in told {
        if watch.wait(topic, mark, done.ended + bout.settings.within).await.is_none() {
            said = Some(format!("{topic}: a change by another session was not announced"));
        }
    }
    bout.settle().await;
    let heard = other.log.since(theirs);
    for topic in watched_uris(told) {
        if heard.iter().any(|heard| topic.is_told_by(heard)) {
            said = Some(format!("a session that did not subscribe was notified of {topic}"));
        }
    }
    watch.close().await;
    Ok(said)
}

/// `notice.only-asked`.
async fn only_asked(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "notice.only-asked";
    bout.findings.begin();
    if told.len() < 2 {
        let said = "the change moves one thing: give one that moves two, and both with `--expects`";
        bout.findings.not_tried(id, bout.era, said);
        return;
    }
    let mut said = None;
    // Each in turn is the only one that is asked for.
    for asked in told {
        let found = async {
            let watch = Following::open(&bout.client, std::slice::from_ref(asked)).await?;
            bout.settle().await;
            let mark = bout.client.log.mark();
            cause.next(&bout.client).await?;
            tokio::time::sleep(bout.pause() * 2).await;
            let heard = bout.client.log.since(mark);
            let foreign = heard
                .iter()
                .filter(|heard| watch.has(heard) && !asked.is_told_by(heard))
                .find_map(|heard| heard.notice().filter(|method| is_change(method)));
            let foreign = foreign.map(str::to_owned);
            watch.close().await;
            Ok::<_, String>(foreign)
        };
        match found.await {
            Err(why) => {
                bout.findings.not_tried(id, bout.era, why);
                return;
            }
            Ok(Some(method)) => {
                said = Some(format!("only {asked} was asked for, but `{method}` came"));
            }
            Ok(None) => {}
        }
    }
    bout.findings.judge(id, bout.era, said, "only what was asked for");
}

fn is_change(method: &str) -> bool {
    method.ends_with("/list_changed") || method == "notifications/resources/updated"
}

/// `listen.parallel`.
async fn parallel(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "listen.parallel";
    bout.findings.begin();
    bout.settle().await;
    let found = async {
        let one = Following::open(&bout.client, told).await?;
        let two = Following::open(&bout.client, told).await?;
        bout.settle().await;
        let topic = &told[0];
        let mut said = None;
        let mark = bout.client.log.mark();
        let done = cause.next(&bout.client).await?;
        for (watch, which) in [(&one, "first"), (&two, "second")] {
            if watch.wait(topic, mark, done.ended + bout.settings.within).await.is_none() {
                said = Some(format!("{topic}: of two streams, the {which} was not notified"));
            }
        }
        one.close().await;
        bout.settle().await;
        let mark = bout.client.log.mark();
        let done = cause.next(&bout.client).await?;
        if two.wait(topic, mark, done.ended + bout.settings.within).await.is_none() {
            said.get_or_insert_with(|| format!("{topic}: ending one stream silenced the other"));
        }
        two.close().await;
        Ok::<_, String>(said)
    };
    match found.await {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(said) => bout.findings.judge(id, bout.era, said, "each has its own copy"),
    }
}

/// The time that changes may take while a client does not read.
const FLOOD_TIME: Duration = Duration::from_secs(4);

/// `recon.slow-reader`.
async fn slow_reader(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "recon.slow-reader";
    bout.findings.begin();
    if !bout.door.place.is_http() {
        bout.findings.not_offered(id, bout.era, "clients of a pipe do not meet");
        return;
    }
    if cause.is_alternating() || !cause.is_call() || bout.settings.flood == 0 {
        let said = "needs many quick changes: give `--change` with `{n}`";
        bout.findings.not_tried(id, bout.era, said);
        return;
    }
    let stalled = match bout.another().await {
        Ok(stalled) => stalled,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("a second client got {why}"));
            return;
        }
    };
    let found = flood(bout, cause, told, &stalled).await;
    stalled.end().await;
    match found {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok((said, passed)) => bout.findings.judge(id, bout.era, said, passed),
    }
}

async fn flood(
    bout: &Bout<'_>,
    cause: &Cause,
    told: &[Topic],
    stalled: &Probe,
) -> Result<(Option<String>, String), String> {
    // Held, and never read.
    let _unread = stalled.stall(told).await?;
    let watch = Following::open(&bout.client, told).await?;
    bout.settle().await;
    let began = Instant::now();
    let mut changes = 0;
    let mut said = None;
    while changes < bout.settings.flood && began.elapsed() < FLOOD_TIME && said.is_none() {
        let asked = Instant::now();
        let made = tokio::time::timeout(bout.settings.within, cause.next(&bout.client)).await;
        changes += 1;
        if let Ok(made) = made {
            made?;
        } else {
            let after = asked.elapsed().as_millis();
            said = Some(format!(
                "another client's request took more than {after} ms after {changes} changes"
            ));
        }
    }
    if said.is_none() {
        bout.settle().await;
        let mark = bout.client.log.mark();
        let done = cause.next(&bout.client).await?;
        let topic = &told[0];
        if watch.wait(topic, mark, done.ended + bout.settings.within).await.is_none() {
            said = Some(format!("{topic}: other clients are no longer notified"));
        }
    }
    if said.is_none() {
        let asked = stalled.ask("tools/list", json!({}));
        if tokio::time::timeout(bout.settings.within, asked).await.is_err() {
            said = Some("requests of the client that does not read are not answered".to_owned());
        }
    }
    watch.close().await;
    let passed = format!("{changes} changes while one client did not read");
    Ok((said, passed))
}
