//! Changes repeated, in a row and without pause.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::Bout;
use crate::check::cause::{Cause, Timed};
use crate::check::topic::{Following, Topic, state};

/// Quick changes in a row; odd, so that taking turns ends changed.
const BURST: usize = 9;
/// How long changes follow each other without pause, and the longest wait for a notice meanwhile.
const STEADY: Duration = Duration::from_millis(1300);
const STARVED: Duration = Duration::from_secs(1);
/// Changes further apart than this are not without pause.
const PACE: Duration = Duration::from_millis(25);

pub(super) async fn run(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    noop(bout, cause, told).await;
    burst(bout, cause, told).await;
    steady(bout, cause, told).await;
}

/// `notice.noop-silent`: the last change again.
async fn noop(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "notice.noop-silent";
    bout.findings.begin();
    let found = async {
        let watch = Following::open(&bout.client, told).await?;
        // A first change, so that there is one to repeat.
        cause.next(&bout.client).await?;
        bout.settle().await;
        bout.settle().await;
        let mut known = Vec::new();
        for topic in told {
            known.push(state(&bout.client, topic).await.unwrap_or(Value::Null));
        }
        let mark = bout.client.log.mark();
        // A server may well refuse to do a thing twice.
        drop(cause.again(&bout.client).await);
        tokio::time::sleep(bout.pause() * 3).await;
        let mut noisy = None;
        let mut moved = false;
        for (topic, known) in told.iter().zip(known) {
            moved |= state(&bout.client, topic).await.unwrap_or(Value::Null) != known;
            if !watch.notices(topic, mark).is_empty() {
                noisy = Some(topic.clone());
            }
        }
        watch.close().await;
        Ok::<_, String>((noisy, moved))
    };
    match found.await {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok((_, true)) => {
            let said = "repeating the change moves it again: give one that sets a value, such as \
                        `--change 'set value={n}'`";
            bout.findings.not_tried(id, bout.era, said);
        }
        Ok((noisy, false)) => {
            let said = noisy.map(|topic| {
                format!("{topic}: the same change again changed nothing, but was announced")
            });
            bout.findings.judge(id, bout.era, said, "the same change again is silent");
        }
    }
}

/// `notice.last-told`: several quick changes.
async fn burst(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "notice.last-told";
    bout.findings.begin();
    bout.settle().await;
    let found = async {
        let watch = Following::open(&bout.client, told).await?;
        bout.settle().await;
        let before = bout.client.log.mark();
        let mut made = Vec::new();
        for _ in 1..BURST {
            made.push(cause.next(&bout.client).await?);
        }
        let mark = bout.client.log.mark();
        let done = cause.next(&bout.client).await?;
        made.push(done);
        let mut untold = None;
        for topic in told {
            if watch.wait(topic, mark, done.ended + bout.settings.within).await.is_none() {
                let last = watch.notices(topic, before).last().map(|heard| heard.at);
                // If change and undo take turns, an earlier notice may tell of the last state, too.
                if !(cause.is_alternating() && may_be_last(&made, last)) {
                    untold = Some(topic.clone());
                }
            }
        }
        watch.close().await;
        Ok::<_, String>(untold)
    };
    match found.await {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(untold) => {
            let said = untold
                .map(|topic| format!("{topic}: no notice after the last of {BURST} quick changes"));
            bout.findings.judge(id, bout.era, said, format!("told after the last of {BURST}"));
        }
    }
    bout.settle().await;
}

/// Whether what could be read at this moment is what can be read at the end, if changes take turns.
fn may_be_last(made: &[Timed], at: Option<Instant>) -> bool {
    let Some(at) = at else { return false };
    let surely = made.iter().filter(|change| change.ended <= at).count();
    let perhaps = made.iter().filter(|change| change.began <= at).count();
    (surely..=perhaps).any(|changes| changes % 2 == made.len() % 2)
}

/// `notice.not-starved`: changes without pause.
async fn steady(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "notice.not-starved";
    bout.findings.begin();
    if cause.is_alternating() {
        let said = "change and undo take turns, which a server may merge: give a change with `{n}`";
        bout.findings.not_tried(id, bout.era, said);
        return;
    }
    let is_uri = |topic: &&Topic| matches!(topic, Topic::Uri(_));
    let Some(topic) = told.iter().find(is_uri).or_else(|| told.first()) else { return };
    let found = async {
        let watch = Following::open(&bout.client, told).await?;
        bout.settle().await;
        let (mark, began) = (bout.client.log.mark(), Instant::now());
        let mut changes = 0_u32;
        while began.elapsed() < STEADY {
            cause.next_content(&bout.client).await?;
            changes += 1;
            // A pause that is shorter than any debounce; it lets a virtual clock run.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        let pace = began.elapsed() / changes.max(1);
        let heard = watch.wait(topic, mark, began + STARVED).await;
        bout.settle().await;
        watch.close().await;
        Ok::<_, String>((pace, heard.map(|(_, heard)| heard.at.saturating_duration_since(began))))
    };
    match found.await {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok((pace, _)) if pace > PACE => {
            let said = format!(
                "a change takes {} ms: too slow to be made without pause",
                pace.as_millis()
            );
            bout.findings.not_tried(id, bout.era, said);
        }
        Ok((_, heard)) => {
            let said = heard.is_none_or(|after| after > STARVED).then(|| {
                format!("{topic}: no notice for a second while changes followed without pause")
            });
            bout.findings.judge(id, bout.era, said, "told while changes went on");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_earlier_notice_may_tell_of_the_last_state() {
        let began = Instant::now();
        let at = |milliseconds: u64| began + Duration::from_millis(milliseconds);
        // Three changes that take 10 ms each, with pauses of 10 ms.
        let made: Vec<_> =
            [0, 20, 40].map(|begin| Timed { began: at(begin), ended: at(begin + 10) }).to_vec();
        assert!(!may_be_last(&made, None));
        // After the first change, things are as after the third; after the second, they are not.
        assert!(may_be_last(&made, Some(at(15))));
        assert!(!may_be_last(&made, Some(at(35))));
        assert!(may_be_last(&made, Some(at(45))), "the third may have been made");
    }
}
