//! Caused changes: are they announced, in time, once, after they can be read, and nothing else?

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use tidings_mirror::Era;
use tokio::time::Instant;

use super::{Bout, caching, crowd, listens, rhythm, streams};
use crate::check::cause::{Act, Cause, Timed, harmless_acts};
use crate::check::client::Probe;
use crate::check::client::log::Arrival;
use crate::check::topic::{Following, LISTS, Topic, list, state};
use crate::check::verdict::{GIVE_LONG, Severity};

/// Resources that are compared to find what a change moves.
const COMPARED: usize = 20;
/// Tools that are tried with `--auto`.
const TRIED: usize = 5;
/// Checks of this file and of its neighbours that need a change.
const IDS: [&str; 19] = [
    "caps.kinds-honest",
    "caps.silent-change",
    "notice.delivered",
    "notice.after-visible",
    "notice.last-told",
    "notice.not-starved",
    "notice.noop-silent",
    "notice.only-asked",
    "notice.other-session",
    "notice.once",
    "notice.templates",
    "sub.unsubscribe-quiet",
    "sub.get-race",
    "sub.second-stream",
    "sub.idle",
    "listen.parallel",
    "listen.no-logs",
    "cache.truth",
    "recon.slow-reader",
];

/// What happened to one topic.
#[derive(Default)]
struct Followed {
    moved: usize,
    /// Moves that were announced in time, late, and never.
    in_time: usize,
    late: Option<Duration>,
    missed: usize,
    invisible: bool,
    /// The most notices of one change that told nothing new.
    extra: usize,
    /// Notices although nothing had moved.
    for_nothing: usize,
    ttl: Option<u64>,
}

/// What several rounds measured.
#[derive(Default)]
struct Tally {
    seen: BTreeMap<Topic, Followed>,
    latencies: Vec<Duration>,
    /// Notices of each change, and those that told nothing new.
    changes: Vec<(usize, usize)>,
}

pub(super) async fn run(bout: &mut Bout<'_>) {
    let made;
    let Some(cause) = &bout.settings.cause else { return };
    if bout.era == Era::Legacy && bout.settings.idle.is_none() {
        bout.findings.not_tried("sub.idle", bout.era, GIVE_LONG);
    }
    let cause = if let Some(tried) = auto(bout, cause).await {
        made = tried;
        &made
    } else {
        cause
    };
    if bout.is_stormy {
        give_up(bout, "notices do not settle: see notice.storm");
        return;
    }
    bout.step("changing").await;
    bout.findings.begin();
    let topics = match moved_topics(bout, cause).await {
        Ok(topics) if topics.is_empty() => {
            give_up(bout, "the change moved nothing that can be listed or read");
            return;
        }
        Ok(topics) => topics,
        Err(why) => {
            give_up(bout, &why);
            return;
        }
    };
    delivered(bout, cause, &topics).await;
    let told = told(bout, &topics);
    if told.is_empty() {
        for id in IDS.iter().filter(|id| concerns(id, bout.era)) {
            let said = "no notice came that could be followed further";
            bout.findings.not_tried(id, bout.era, said);
        }
    } else {
        rhythm::run(bout, cause, &told).await;
        bout.step("changing, with several clients").await;
        crowd::run(bout, cause, &told).await;
        streams::run(bout, cause, &told).await;
    }
    cause.restore(&bout.client).await;
}

fn concerns(id: &str, era: Era) -> bool {
    crate::check::table::CHECKS[crate::check::table::place(id)].concerns(era)
}

fn give_up(bout: &mut Bout<'_>, why: &str) {
    for id in IDS.iter().filter(|id| concerns(id, bout.era)) {
        bout.findings.not_tried(id, bout.era, why);
    }
}

/// With `--auto`, the first harmless tool that moves something.
async fn auto(bout: &mut Bout<'_>, cause: &Cause) -> Option<Cause> {
    if !cause.is_auto() {
        return None;
    }
    let tools = bout.listed.get(&Topic::Tools)?.items.clone();
    for act in harmless_acts(&tools).into_iter().take(TRIED) {
        let tried = Cause::new(act, None);
        if compared(bout, &tried).await.is_ok_and(|topics| !topics.is_empty()) {
            return Some(tried);
        }
    }
    None
}

/// What the change moves: as the user said, or found by comparing.
async fn moved_topics(bout: &Bout<'_>, cause: &Cause) -> Result<Vec<Topic>, String> {
    if cause.is_auto() {
        let tools = bout.listed.get(&Topic::Tools).map(|listing| listing.items.as_slice());
        let tried: Vec<_> = harmless_acts(tools.unwrap_or_default())
            .iter()
            .take(TRIED)
            .map(Act::to_string)
            .collect();
        let give = "give `--change 'TOOL key=value'`";
        return Err(if tried.is_empty() {
            format!("no tool has `destructiveHint` and `openWorldHint` false: {give}")
        } else {
            format!("{} moved nothing that can be listed or read: {give}", tried.join(", "))
        });
    }
    if !bout.settings.expects.is_empty() {
        return Ok(bout.settings.expects.clone());
    }
    compared(bout, cause).await
}

/// What one change moves.
async fn compared(bout: &Bout<'_>, cause: &Cause) -> Result<Vec<Topic>, String> {
    let mut topics: Vec<_> = bout.offered();
    topics.extend(bout.some_uris(COMPARED).into_iter().map(Topic::Uri));
    let mut before = BTreeMap::new();
    for topic in topics {
        if let Ok(state) = state(&bout.client, &topic).await {
            before.insert(topic, state);
        }
    }
    cause.next(&bout.client).await?;
    bout.settle().await;
    let mut moved = Vec::new();
    for (topic, before) in before {
        if state(&bout.client, &topic).await.is_ok_and(|after| after != before) {
            moved.push(topic);
        }
    }
    Ok(moved)
}

/// The topics whose notices came.
fn told(bout: &Bout<'_>, topics: &[Topic]) -> Vec<Topic> {
    let worked = |topic: &&Topic| bout.measures.was_told(bout.era, topic);
    topics.iter().filter(|topic| **topic != Topic::Templates).filter(worked).cloned().collect()
}

/// Makes a few changes one after the other and follows each to its notice.
async fn delivered(bout: &mut Bout<'_>, cause: &Cause, topics: &[Topic]) {
    let accepted: Vec<_> = topics
        .iter()
        .filter(|topic| topic.is_promised(&bout.client) || is_tried_anyway(bout, topic))
        .cloned()
        .collect();
    let mut tally = Tally::default();
    let mut frames = Vec::new();
    let (mut failed, mut mistagged) = (None, None);
    {
        let watch = match Following::open(&bout.client, &accepted).await {
            Ok(watch) => watch,
            Err(why) => {
                give_up(bout, &why);
                return;
            }
        };
        bout.settle().await;
        let mark = bout.client.log.mark();
        for _ in 0..bout.settings.rounds {
            if let Err(why) = round(bout, cause, topics, &watch, &mut tally).await {
                failed = Some(why);
                break;
            }
        }
        if let Some(id) = &watch.listen {
            let heard = bout.client.log.since(mark);
            frames = heard.into_iter().filter(|heard| watch.has(heard)).collect();
            mistagged = frames.iter().find_map(|frame| listens::mistagged(frame, id));
        }
        watch.close().await;
    }
    if let Some(said) = mistagged {
        bout.findings.fail("listen.tagged", bout.era, said);
    }
    let seen = tally.seen;
    tally.latencies.into_iter().for_each(|latency| bout.measures.latency(latency));
    for (notices, for_nothing) in tally.changes {
        bout.measures.change(notices, for_nothing);
    }
    for (topic, seen) in &seen {
        if seen.moved > 0 && (seen.in_time > 0 || seen.late.is_some()) {
            bout.measures.told(bout.era, topic);
        }
    }
    if bout.era != Era::Legacy {
        logs(bout, &frames);
    }
    if let Some(why) = failed.filter(|_| seen.values().all(|seen| seen.moved == 0)) {
        give_up(bout, &why);
        return;
    }
    judge(bout, &seen);
}

/// Judges what the rounds saw.
fn judge(bout: &mut Bout<'_>, seen: &BTreeMap<Topic, Followed>) {
    if let Some((topic, seen)) = seen.iter().find(|(_, seen)| seen.for_nothing > 0) {
        let said = format!("{topic}: {} notices, although nothing had changed", seen.for_nothing);
        bout.measures.quiet(seen.for_nothing, seen.for_nothing);
        bout.findings.fail("notice.spurious", bout.era, said);
    }
    judge_flags(bout, seen);
    judge_notices(bout, seen);
    let ttls: Vec<_> =
        seen.values().filter(|seen| seen.moved > 0).filter_map(|seen| seen.ttl).collect();
    let stale = seen.iter().find_map(|(topic, seen)| {
        let is_told = seen.in_time > 0 || topic.is_promised(&bout.client);
        let ttl = seen.ttl.filter(|ttl| *ttl > 0 && seen.moved > 0 && !is_told)?;
        Some((topic.clone(), ttl))
    });
    caching::truth(bout, stale, &ttls);
}

/// A subscription that is accepted without being advertised is followed, too.
fn is_tried_anyway(bout: &Bout<'_>, topic: &Topic) -> bool {
    bout.undeclared && matches!(topic, Topic::Uri(_))
}

/// One change, its notices, and what could be read when they came.
async fn round(
    bout: &Bout<'_>,
    cause: &Cause,
    topics: &[Topic],
    watch: &Following<'_>,
    tally: &mut Tally,
) -> Result<(), String> {
    let client = watch.client;
    let mut known = BTreeMap::new();
    for topic in topics {
        let now = state(client, topic).await.map_err(|reply| reply.to_string())?;
        known.insert(topic.clone(), now);
        let ttl = time_to_live(client, topic).await;
        tally.seen.entry(topic.clone()).or_default().ttl = ttl;
    }
    let before = known.clone();
    let mark = client.log.mark();
    let done = cause.next(client).await?;
    let notices = hear(bout, topics, watch, (done, mark), known, tally).await?;
    let seen = &mut tally.seen;
    let expected = |topic: &Topic| is_expected(client, topic);
    if !topics.iter().any(expected) {
        tokio::time::sleep(bout.pause()).await;
    }
    for topic in topics {
        let now = state(client, topic).await.map_err(|reply| reply.to_string())?;
        let Told { count, for_nothing, first } = notices.get(topic).copied().unwrap_or_default();
        let has_moved = before.get(topic) != Some(&now);
        let seen = seen.entry(topic.clone()).or_default();
        if !has_moved {
            seen.invisible = false;
            // Resources and templates share a notice, so it may be for the other.
            let is_shared = matches!(topic, Topic::Resources | Topic::Templates);
            seen.for_nothing += if is_shared { 0 } else { count };
            continue;
        }
        seen.moved += 1;
        if let Some(first) = first {
            let waited = first.saturating_duration_since(done.ended);
            if waited > bout.settings.within {
                seen.late = Some(waited);
            } else {
                seen.in_time += 1;
                tally.latencies.push(first.saturating_duration_since(done.began));
            }
        }
        seen.missed += usize::from(count == 0);
        seen.extra = seen.extra.max(for_nothing);
        if expected(topic) {
            tally.changes.push((count, for_nothing));
        }
    }
    Ok(())
}

/// Whether a notice of this topic should come.
fn is_expected(client: &Probe, topic: &Topic) -> bool {
    topic.is_promised(client) || *topic == Topic::Templates
}

/// The notices of one change and one topic.
#[derive(Clone, Copy, Default)]
struct Told {
    count: usize,
    /// Notices, the first excepted, that told nothing new.
    for_nothing: usize,
    /// When the first came.
    first: Option<Instant>,
}

/// Follows the notices of one change until no more come.
async fn hear(
    bout: &Bout<'_>,
    topics: &[Topic],
    watch: &Following<'_>,
    (done, mut mark): (Timed, usize),
    mut known: BTreeMap<Topic, Value>,
    tally: &mut Tally,
) -> Result<BTreeMap<Topic, Told>, String> {
    let client = watch.client;
    let within = bout.settings.within;
    // What comes late is still waited for, to tell it from what never comes.
    let mut deadline = done.ended + within + within.min(Duration::from_secs(2));
    let mut notices: BTreeMap<Topic, Told> = BTreeMap::new();
    let is_notice = |heard: &Arrival| topics.iter().any(|topic| watch.tells(topic, heard));
    while let Some((next, heard)) = client.log.wait(mark, deadline, is_notice).await {
        mark = next;
        for topic in topics.iter().filter(|topic| topic.is_told_by(&heard)) {
            let now = state(client, topic).await.map_err(|reply| reply.to_string())?;
            let told = notices.entry(topic.clone()).or_default();
            told.count += 1;
            told.first.get_or_insert(heard.at);
            let is_new = known.insert(topic.clone(), now.clone()) != Some(now);
            let seen = tally.seen.entry(topic.clone()).or_default();
            told.for_nothing += usize::from(told.count > 1 && !is_new);
            seen.invisible |= told.count == 1 && !is_new;
        }
        let mut expected = topics.iter().filter(|topic| is_expected(client, topic));
        if expected.all(|topic| notices.contains_key(topic)) {
            deadline = Instant::now() + bout.pause();
        }
    }
    Ok(notices)
}

/// How long a modern result may be kept.
async fn time_to_live(client: &Probe, topic: &Topic) -> Option<u64> {
    if client.era == Era::Legacy {
        return None;
    }
    match topic {
        Topic::Uri(uri) => {
            let reply = client.ask("resources/read", serde_json::json!({ "uri": uri })).await;
            reply.result()?["ttlMs"].as_u64()
        }
        _ => list(client, topic).await.ok()?.pages.first()?["ttlMs"].as_u64(),
    }
}

/// `caps.*` and `notice.templates`, which need a change.
fn judge_flags(bout: &mut Bout<'_>, seen: &BTreeMap<Topic, Followed>) {
    let era = bout.era;
    let moved = |topic: &Topic| seen.get(topic).is_some_and(|seen| seen.moved > 0);
    let lists: Vec<_> =
        LISTS.iter().filter(|topic| moved(topic) && **topic != Topic::Templates).collect();
    let (promised, silent): (Vec<_>, Vec<_>) =
        lists.iter().partition(|topic| topic.is_promised(&bout.client));
    if lists.is_empty() {
        let said = "the change moves no list: `--expects tools`, `prompts` or `resources`";
        bout.findings.not_tried("caps.kinds-honest", era, said);
        bout.findings.not_tried("caps.silent-change", era, said);
    } else {
        let dumb = promised.iter().find(|topic| seen[**topic].missed == seen[**topic].moved);
        let said = dumb.map(|topic| {
            format!("`{}.listChanged` is advertised, but no notice came", topic.group())
        });
        if promised.is_empty() {
            bout.findings.not_offered("caps.kinds-honest", era, "`listChanged` is not advertised");
        } else {
            bout.findings.judge(
                "caps.kinds-honest",
                era,
                said,
                "every list that moved was announced",
            );
        }
        let said = silent.first().map(|topic| {
            format!("the {topic} changed, but `{}.listChanged` is not advertised", topic.group())
        });
        bout.findings.judge("caps.silent-change", era, said, "every list that moved is advertised");
    }
    match seen.get(&Topic::Templates).filter(|seen| seen.moved > 0) {
        None => {
            let said = "the change moves no template: `--expects templates`";
            bout.findings.not_tried("notice.templates", era, said);
        }
        Some(_) if !Topic::Templates.is_promised(&bout.client) => {
            bout.findings.not_offered("notice.templates", era, "`listChanged` is not advertised");
        }
        Some(seen) => {
            let said = (seen.missed == seen.moved)
                .then(|| "templates changed without a notice".to_owned());
            bout.findings.judge("notice.templates", era, said, "announced with the resources");
        }
    }
    if bout.undeclared
        && let Some((topic, seen)) = seen.iter().find(|(topic, _)| matches!(topic, Topic::Uri(_)))
        && seen.moved > 0
    {
        let said = (seen.in_time == 0).then(|| {
            format!("a subscription to {topic} is accepted without `subscribe`, and never used")
        });
        bout.findings.judge("caps.subscribe-undeclared", era, said, "accepted, and it works");
    }
}

/// `notice.delivered`, `notice.after-visible` and `notice.once`.
fn judge_notices(bout: &mut Bout<'_>, seen: &BTreeMap<Topic, Followed>) {
    let era = bout.era;
    let promised: Vec<_> = seen
        .iter()
        .filter(|(topic, seen)| seen.moved > 0 && topic.is_promised(&bout.client))
        .filter(|(topic, _)| **topic != Topic::Templates)
        .collect();
    // A list that is never announced has a check of its own.
    let timed: Vec<_> = promised
        .iter()
        .filter(|(topic, seen)| matches!(topic, Topic::Uri(_)) || seen.missed < seen.moved)
        .collect();
    if timed.is_empty() {
        let said = if seen.values().all(|seen| seen.moved == 0) {
            "the change moved none of what `--expects` names"
        } else if promised.is_empty() {
            "the server advertises no notices of what the change moves"
        } else {
            "no notice came at all: see caps.kinds-honest"
        };
        for id in ["notice.delivered", "notice.after-visible", "notice.once"] {
            bout.findings.not_tried(id, era, said);
        }
        return;
    }
    for (topic, seen) in &timed {
        let is_list = !matches!(topic, Topic::Uri(_));
        let severity =
            if is_list && era == Era::Legacy { Severity::Warning } else { Severity::Error };
        if seen.missed > 0 {
            let said =
                format!("{topic}: {} of {} changes were not announced", seen.missed, seen.moved);
            bout.findings.fail_as("notice.delivered", era, severity, said);
        } else if let Some(late) = seen.late {
            let (late, within) = (late.as_millis(), bout.settings.within.as_millis());
            let said = format!("{topic}: the notice came after {late} ms, later than {within} ms");
            bout.findings.fail_as("notice.delivered", era, severity, said);
        }
    }
    let names: Vec<_> = timed.iter().map(|(topic, _)| topic.to_string()).collect();
    bout.findings.pass("notice.delivered", era, format!("announced: {}", names.join(", ")));
    let invisible = timed.iter().find(|(_, seen)| seen.invisible);
    let said = invisible
        .map(|(topic, _)| format!("{topic}: right after the notice, everything was as before it"));
    bout.findings.judge("notice.after-visible", era, said, "every notice showed its change");
    let repeated = timed.iter().find(|(_, seen)| seen.extra > 0);
    let said = repeated
        .map(|(topic, seen)| format!("{topic}: one change was announced {} times", seen.extra + 1));
    bout.findings.judge("notice.once", era, said, "one notice for each change");
}

/// `listen.no-logs`.
fn logs(bout: &mut Bout<'_>, frames: &[Arrival]) {
    let foreign = frames
        .iter()
        .filter_map(|frame| frame.notice())
        .find(|method| matches!(*method, "notifications/message" | "notifications/progress"));
    let said = foreign.map(|method| format!("`{method}` came on a stream of notices"));
    bout.findings.judge("listen.no-logs", bout.era, said, "only notices");
}
