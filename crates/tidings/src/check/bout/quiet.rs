//! `notice.storm` and `notice.spurious`: what arrives while nobody changes anything.

use std::collections::BTreeMap;

use tokio::time::Instant;

use super::Bout;
use crate::check::topic::{Following, Topic, state};

/// Resources that are watched, at most.
const WATCHED: usize = 10;
/// Notices for nothing that are a storm.
const STORM: usize = 10;
/// Notices a second that are a storm, whatever they announce.
const RATE: f64 = 50.0;

/// What was heard in a quiet time.
#[derive(Default)]
struct QuietTime {
    all: usize,
    /// Notices after which everything was as before.
    for_nothing: Vec<Topic>,
}

pub(super) async fn run(bout: &mut Bout<'_>) {
    bout.findings.begin();
    let mut topics: Vec<_> =
        bout.offered().into_iter().filter(|topic| *topic != Topic::Templates).collect();
    topics.retain(|topic| topic.is_promised(&bout.client));
    if bout.client.flag("resources", "subscribe") {
        topics.extend(bout.some_uris(WATCHED).into_iter().map(Topic::Uri));
    }
    if topics.is_empty() {
        for id in ["notice.storm", "notice.spurious"] {
            bout.findings.not_offered(id, bout.era, "no notices are advertised");
        }
        return;
    }
    let began = Instant::now();
    let heard = match listen(bout, &topics).await {
        Ok(heard) => heard,
        Err(why) => {
            for id in ["notice.storm", "notice.spurious"] {
                bout.findings.not_tried(id, bout.era, why.clone());
            }
            return;
        }
    };
    let seconds = began.elapsed().as_secs_f64().max(0.001);
    let storm =
        heard.for_nothing.len() >= STORM || heard.all as f64 / seconds > RATE * seconds.max(1.0);
    let count = heard.for_nothing.len();
    bout.measures.quiet(heard.all, count);
    if storm {
        bout.is_stormy = true;
        let said = format!("{} notices in {seconds:.1} s, {count} of them for nothing", heard.all);
        bout.findings.fail("notice.storm", bout.era, said);
        bout.findings.not_tried("notice.spurious", bout.era, "see notice.storm");
        return;
    }
    bout.findings.pass(
        "notice.storm",
        bout.era,
        format!("{} notices in {seconds:.1} s", heard.all),
    );
    match heard.for_nothing.first() {
        Some(topic) => {
            let said =
                format!("{count} of {} notices for nothing, the first of {topic}", heard.all);
            bout.findings.fail("notice.spurious", bout.era, said);
        }
        None if heard.all == 0 => {
            let said = format!("silence for {seconds:.1} s, which proves little");
            bout.findings.pass("notice.spurious", bout.era, said);
        }
        None => {
            let said = format!("{} notices, each for a change", heard.all);
            bout.findings.pass("notice.spurious", bout.era, said);
        }
    }
}

async fn listen(bout: &Bout<'_>, topics: &[Topic]) -> Result<QuietTime, String> {
    let watch = Following::open(&bout.client, topics).await?;
    // A fresh session may be told of every list once: it has seen none.
    bout.settle().await;
    let mut known = BTreeMap::new();
    let mut mark = bout.client.log.mark();
    for topic in topics {
        if let Ok(state) = state(&bout.client, topic).await {
            known.insert(topic.clone(), state);
        }
    }
    let deadline = Instant::now() + bout.settings.quiet;
    let mut heard = QuietTime::default();
    while let Some((next, notice)) = bout
        .client
        .log
        .wait(mark, deadline, |heard| topics.iter().any(|topic| watch.tells(topic, heard)))
        .await
    {
        mark = next;
        heard.all += 1;
        for topic in topics.iter().filter(|topic| topic.is_told_by(&notice)) {
            let Ok(now) = state(&bout.client, topic).await else { continue };
            let moves_templates = *topic == Topic::Resources && templates_moved(bout).await;
            if known.insert(topic.clone(), now.clone()) == Some(now) && !moves_templates {
                heard.for_nothing.push(topic.clone());
            }
        }
        if heard.for_nothing.len() >= STORM {
            break;
        }
    }
    watch.close().await;
    Ok(heard)
}

/// Whether the templates are not those listed at the beginning: they share a notice with resources.
async fn templates_moved(bout: &Bout<'_>) -> bool {
    let Some(before) = bout.listed.get(&Topic::Templates) else { return false };
    let now = state(&bout.client, &Topic::Templates).await;
    now.is_ok_and(|now| now != serde_json::Value::Array(before.sorted(&Topic::Templates)))
}
