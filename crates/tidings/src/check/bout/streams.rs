//! Streams of legacy sessions over HTTP: opened late, opened twice, idle.

use std::time::Duration;

use tidings_mirror::Era;
use tokio::time::Instant;

use super::Bout;
use crate::check::cause::Cause;
use crate::check::client::log::Via;
use crate::check::topic::{Following, Topic};
use crate::check::verdict::GIVE_LONG;

/// How long a finished stream may take to be forgotten.
const FORGET: Duration = Duration::from_millis(300);

pub(super) async fn run(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    if bout.era != Era::Legacy {
        return;
    }
    let why_not = if !bout.door.place.is_http() {
        Some("a pipe has one stream")
    } else if !bout.client.has_session() {
        Some("the server keeps no sessions")
    } else if bout.no_stream.is_some() {
        Some("the server refuses the stream of notices")
    } else {
        None
    };
    if let Some(why) = why_not {
        for id in ["sub.get-race", "sub.second-stream"] {
            bout.findings.not_offered(id, bout.era, why);
        }
    } else {
        get_race(bout, cause, told).await;
        second_stream(bout, cause, told).await;
    }
    idle(bout, cause, told).await;
}

/// `sub.get-race`: subscribe, change, then open the stream.
async fn get_race(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "sub.get-race";
    bout.findings.begin();
    let uris: Vec<_> =
        told.iter().filter(|topic| matches!(topic, Topic::Uri(_))).cloned().collect();
    let Some(topic) = uris.first() else {
        let said = "the change moves no subscribed resource: `--expects URI`";
        bout.findings.not_tried(id, bout.era, said);
        return;
    };
    let late = match bout.another().await {
        Ok(late) => late,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("a second client got {why}"));
            return;
        }
    };
    let found = async {
        let watch = Following::open(&late, std::slice::from_ref(topic)).await?;
        cause.next(&bout.client).await?;
        bout.settle().await;
        let opened = late.open_stream().await;
        opened.map_err(|status| format!("the stream was refused with HTTP {status}"))?;
        let deadline = Instant::now() + bout.settings.within;
        Ok::<_, String>(watch.wait(topic, 0, deadline).await.is_some())
    }
    .await;
    late.end().await;
    match found {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(heard) => {
            let said = (!heard).then(|| {
                format!("{topic}: a change between subscribing and opening the stream was lost")
            });
            bout.findings.judge(id, bout.era, said, "told when the stream opened");
        }
    }
}

/// `sub.second-stream`: a stream that is opened again, as after a silent loss.
async fn second_stream(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "sub.second-stream";
    bout.findings.begin();
    let client = match bout.another().await {
        Ok(client) => client,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("a second client got {why}"));
            return;
        }
    };
    let topic = &told[0];
    let found = async {
        let watch = Following::open(&client, std::slice::from_ref(topic)).await?;
        let refused = |status: u16| format!("HTTP {status}");
        let first = client.open_stream().await.map_err(refused)?;
        let second = if let Ok(second) = client.open_stream().await {
            second
        } else {
            // One at a time is allowed, if the next can be opened once the first is gone.
            client.close_stream(first);
            tokio::time::sleep(FORGET).await;
            match client.open_stream().await {
                Ok(second) => second,
                Err(status) => {
                    return Ok(Some(format!("after a stream ended, the next got HTTP {status}")));
                }
            }
        };
        bout.settle().await;
        let mark = client.log.mark();
        let done = cause.next(&bout.client).await?;
        let heard = watch.wait(topic, mark, done.ended + bout.settings.within).await;
        bout.settle().await;
        let notices = watch.notices(topic, mark);
        let on_new = notices.iter().any(|heard| heard.via == Via::Stream(second));
        let on_old = notices.iter().any(|heard| heard.via == Via::Stream(first));
        Ok::<_, String>(match (heard, on_new, on_old) {
            (None, ..) => Some(format!("{topic}: after a second stream, no stream is notified")),
            (_, true, true) => Some(format!("{topic}: the notice came on both streams")),
            (_, false, _) => Some(format!("{topic}: only the older of two streams is notified")),
            (_, true, false) => None,
        })
    }
    .await;
    client.end().await;
    match found {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(said) => bout.findings.judge(id, bout.era, said, "the newest stream is notified"),
    }
}

/// `sub.idle`: a subscriber that only listens for a long time.
async fn idle(bout: &mut Bout<'_>, cause: &Cause, told: &[Topic]) {
    let id = "sub.idle";
    bout.findings.begin();
    let Some(time) = bout.settings.idle else {
        bout.findings.not_tried(id, bout.era, GIVE_LONG);
        return;
    };
    if !bout.door.place.is_shared() && cause.is_call() {
        let said = "the only client would not be idle: give `--exec COMMAND` instead of `--change`";
        bout.findings.not_tried(id, bout.era, said);
        return;
    }
    let client = match bout.another().await {
        Ok(client) => client,
        Err(why) => {
            bout.findings.not_tried(id, bout.era, format!("a second client got {why}"));
            return;
        }
    };
    // Without a stream it hears nothing, which is found below.
    let _ = client.open_stream().await;
    let topic = &told[0];
    let found = async {
        let watch = Following::open(&client, std::slice::from_ref(topic)).await?;
        bout.step("idle").await;
        tokio::time::sleep(time).await;
        let mark = client.log.mark();
        let done = cause.next(&bout.client).await?;
        Ok::<_, String>(watch.wait(topic, mark, done.ended + bout.settings.within).await.is_some())
    }
    .await;
    client.end().await;
    match found {
        Err(why) => bout.findings.not_tried(id, bout.era, why),
        Ok(heard) => {
            let seconds = time.as_secs();
            let said = (!heard).then(|| {
                format!("{topic}: after {seconds} s of silence, a subscriber hears nothing")
            });
            bout.findings.judge(id, bout.era, said, format!("told after {seconds} s of silence"));
        }
    }
}
