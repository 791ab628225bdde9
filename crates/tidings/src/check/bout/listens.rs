//! `listen.ack-first` and `listen.tagged`: the beginning of a stream, and what marks its messages.

use serde_json::{Value, json};
use tidings_mirror::Era;

use super::Bout;
use crate::check::client::log::Arrival;
use crate::check::topic::{LISTS, TAG, Topic, acknowledged, filter};

pub(super) async fn run(bout: &mut Bout<'_>) {
    if bout.era == Era::Legacy {
        return;
    }
    bout.findings.begin();
    let promises = LISTS.iter().any(|topic| topic.is_promised(&bout.client))
        || bout.client.flag("resources", "subscribe");
    if !promises {
        for id in ["listen.ack-first", "listen.tagged"] {
            bout.findings.not_offered(id, bout.era, "no notices are advertised");
        }
        return;
    }
    let mut topics: Vec<_> = LISTS.to_vec();
    topics.extend(bout.some_uris(3).into_iter().map(Topic::Uri));
    let asked = filter(&topics);
    let (mut order, mut tags) = (None, None);
    // Both types that an id may have.
    for id in [json!("tidings-check-listen"), json!(900_001)] {
        let mark = bout.client.log.mark();
        let params = json!({ "notifications": asked });
        let begun = bout.client.begin_as(id.clone(), "subscriptions/listen", params).await;
        let honoured = match begun {
            Ok(()) => acknowledged(&bout.client, &id, mark).await,
            Err(why) => Err(why),
        };
        match honoured {
            Ok(honoured) => order = order.or_else(|| excess(bout, &asked, &honoured)),
            Err(why) => {
                order = Some(why);
                continue;
            }
        }
        let heard: Vec<_> = bout.client.log.since(mark);
        let frames: Vec<_> = heard.iter().filter(|heard| is_of(heard, &id)).collect();
        if let Some(first) = frames.first().and_then(|first| first.notice())
            && first != "notifications/subscriptions/acknowledged"
        {
            order = Some(format!("`{first}` came before the acknowledgement"));
        }
        tags = tags.or_else(|| frames.iter().find_map(|frame| mistagged(frame, &id)));
        bout.client.cancel(&id).await;
    }
    bout.findings.judge("listen.ack-first", bout.era, order, "acknowledged first");
    bout.findings.judge("listen.tagged", bout.era, tags, "ids keep their type");
}

/// What was honoured and not asked for, or not advertised.
fn excess(bout: &Bout<'_>, asked: &Value, honoured: &Value) -> Option<String> {
    let honoured = honoured.as_object()?;
    for (kind, value) in honoured {
        if asked.get(kind).is_none() && *value != false {
            return Some(format!("the acknowledgement has `{kind}`, which was not asked for"));
        }
    }
    for topic in &LISTS {
        let kind = filter(std::slice::from_ref(topic));
        let kind = kind.as_object().and_then(|kind| kind.keys().next().cloned())?;
        let is_honoured = honoured.get(&kind).is_some_and(|value| *value == true);
        if is_honoured && !topic.is_promised(&bout.client) {
            let flag = format!("{}.listChanged", topic.group());
            return Some(format!("`{kind}` is acknowledged, but `{flag}` is not advertised"));
        }
    }
    None
}

/// Whether a message seems to belong to a request, whatever the type of its tag.
fn is_of(heard: &Arrival, id: &Value) -> bool {
    if crate::check::topic::belongs(heard, id) {
        return true;
    }
    let plain = |value: &Value| value.to_string().trim_matches('"').to_owned();
    let tag = heard.message().map(|message| message["params"]["_meta"][TAG].clone());
    tag.is_some_and(|tag| plain(&tag) == plain(id))
}

/// What is wrong with the tag of a message of a stream.
pub(super) fn mistagged(heard: &Arrival, id: &Value) -> Option<String> {
    let method = heard.notice()?;
    let tag = &heard.message()?["params"]["_meta"][TAG];
    (tag != id).then(|| format!("`{method}` of request {id} is marked with {tag}"))
}
