//! Events of a watched server, as JSON and as text.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use tidings_core::Diff;
use tidings_mirror::cache::ResourceContent;
use tidings_mirror::events::{Cause, ConnectionState, ListChange, Progress};
use tidings_mirror::model::{Prompt, Resource, ResourceTemplate, Tool};
use tidings_mirror::odd::put_back;
use tidings_mirror::{Event, Item};
use tidings_store::date::Moment;

use crate::present::body::Body;
use crate::present::colour::Paint;
use crate::present::diff::unified;
use crate::present::text::{count, harmless, one_line, size};

/// Watched resources that are named; further ones are counted.
const NAMED: usize = 20;

/// Whether the server's state changed, so that the event counts.
pub(crate) fn is_change(event: &Event) -> bool {
    match event {
        Event::ResourceContentChanged { cause, .. } => *cause != Cause::Asked,
        Event::ResourceUpdated { .. } | Event::ResourceGone { .. } => true,
        other => list(other).is_some_and(|list| list.error.is_none()),
    }
}

/// The list of an event, if it has one.
pub(crate) fn list_name(event: &Event) -> Option<&'static str> {
    list(event).map(|list| list.name)
}

/// The event as JSON; `None` if it is of interest only inside a program.
pub(crate) fn object(event: &Event, at: Moment) -> Option<Value> {
    let mut object = match event {
        Event::ResourceContentChanged { uri, content, cause, .. } => {
            let mut contents = json!(content.contents);
            put_back(&mut contents, &content.odd);
            json!({
                "event": "content_changed", "uri": uri, "cause": cause_name(*cause),
                "contents": contents,
            })
        }
        Event::ResourceUpdated { uri, cause, .. } => {
            json!({ "event": "updated", "uri": uri, "cause": cause_name(*cause) })
        }
        Event::ResourceGone { uri, reason, cause, .. } => json!({
            "event": "gone", "uri": uri, "cause": cause_name(*cause), "reason": reason,
        }),
        Event::SubscriptionsChanged { uris, refused } => {
            json!({ "event": "subscriptions_changed", "uris": uris, "refused": refused })
        }
        Event::Connection(state) => connection(state),
        Event::Log { level, logger, data } => {
            json!({ "event": "log", "level": level, "logger": logger, "data": data })
        }
        Event::Stderr { line } => json!({ "event": "stderr", "line": line }),
        Event::Progress(Progress { progress, total, message, .. }) => json!({
            "event": "progress", "progress": progress, "total": total, "message": message,
        }),
        Event::Warning(warning) => warning_object(&warning.to_string()),
        Event::Lagged { missed } => json!({ "event": "lagged", "missed": missed }),
        other => {
            let list = list(other)?;
            let mut object = json!({
                "event": format!("{}_changed", list.name), "added": list.diff.added,
                "removed": list.diff.removed, "changed": list.diff.changed,
                "reordered": list.diff.reordered,
            });
            if let Some(error) = list.error {
                object["error"] = json!(error);
            }
            object
        }
    };
    object["at_ms"] = at.millis().into();
    Some(object)
}

/// A warning of ours, as JSON.
pub(crate) fn warning_object(message: &str) -> Value {
    json!({ "event": "warning", "message": message })
}

/// Prints events as text. Remembers the last content of each resource, for the next diff.
#[derive(Debug)]
pub(crate) struct Story {
    paint: Paint,
    texts: HashMap<Arc<str>, Vec<String>>,
}

impl Story {
    pub(crate) fn new(paint: Paint) -> Self {
        Self { paint, texts: HashMap::new() }
    }

    /// The event as text, ending with a line break; `None` if it need not be printed.
    pub(crate) fn tell(&mut self, event: &Event, at: Moment) -> Option<String> {
        let (label, said) = match event {
            Event::ResourceContentChanged { uri, content, cause, .. } => {
                let details = self.content(uri, content);
                match cause {
                    Cause::Asked => return None,
                    Cause::Resync => {
                        ("content", format!("{} changed meanwhile{details}", one_line(uri)))
                    }
                    Cause::Returned => ("content", format!("{} is back{details}", one_line(uri))),
                    _ => ("content", format!("{} changed{details}", one_line(uri))),
                }
            }
            Event::ResourceUpdated { uri, cause: Cause::Resync, .. } => {
                ("content", format!("{} may have changed meanwhile", one_line(uri)))
            }
            Event::ResourceUpdated { uri, .. } => ("content", format!("{} changed", one_line(uri))),
            Event::ResourceGone { uri, reason, .. } => {
                ("content", format!("{} is gone: {}", one_line(uri), one_line(reason)))
            }
            Event::SubscriptionsChanged { uris, refused } => {
                ("watching", one_line(&watching(uris, refused)))
            }
            // The result follows at once.
            Event::Connection(ConnectionState::Connecting) => return None,
            Event::Connection(state) => ("server", self.server(state)),
            Event::Log { level, logger, data } => {
                ("log", log_words(level, logger.as_deref(), data))
            }
            Event::Stderr { line } => ("stderr", harmless(line)),
            Event::Progress(progress) => ("progress", progress_words(progress)),
            Event::Warning(warning) => ("warning", harmless(&warning.to_string())),
            Event::Lagged { missed } => {
                let missed = usize::try_from(*missed).unwrap_or(usize::MAX);
                ("warning", format!("{} missed", count(missed, "event", "events")))
            }
            other => {
                let list = list(other)?;
                (list.name, self.list(&list))
            }
        };
        Some(self.say(label, &said, at))
    }

    /// One line, or several with details.
    pub(crate) fn say(&self, label: &str, said: &str, at: Moment) -> String {
        let clock = at.civil().time();
        let padded = format!("{label:9}");
        let label = match label {
            "content" => self.paint.yellow(&padded),
            "warning" => self.paint.red(&padded),
            "tools" | "resources" | "templates" | "prompts" => self.paint.cyan(&padded),
            _ => self.paint.faint(&padded),
        };
        format!("{clock:.0}Z  {label}  {said}\n")
    }

    fn list(&self, list: &ListWords<'_>) -> String {
        if let Some(error) = list.error {
            return format!("could not be listed: {}", harmless(error));
        }
        let join = |keys: &[&str]| one_line(&keys.join(", "));
        let mut parts = Vec::new();
        if !list.diff.added.is_empty() {
            parts.push(format!("{} {}", self.paint.green("added"), join(&list.diff.added)));
        }
        if !list.diff.removed.is_empty() {
            parts.push(format!("{} {}", self.paint.red("removed"), join(&list.diff.removed)));
        }
        if !list.diff.changed.is_empty() {
            parts.push(format!("{} {}", self.paint.yellow("changed"), join(&list.diff.changed)));
        }
        if list.diff.reordered {
            parts.push("in another order".to_owned());
        }
        parts.join("; ")
    }

    fn server(&self, state: &ConnectionState) -> String {
        match state {
            ConnectionState::Ready => self.paint.green("connected"),
            ConnectionState::Lost { reason } => {
                format!("{}: {}", self.paint.red("lost"), harmless(reason))
            }
            ConnectionState::Retrying { after, reason, .. } => {
                format!("trying again in {}: {}", seconds(*after), harmless(reason))
            }
            other => harmless(&other.to_string()),
        }
    }

    /// The changes of a resource since it was last printed, and its size.
    fn content(&mut self, uri: &Arc<str>, content: &ResourceContent) -> String {
        let bodies: Vec<_> = content.contents.iter().map(Body::of).collect();
        let texts: Option<Vec<_>> =
            bodies.iter().map(|body| body.text().map(str::to_owned)).collect();
        let Some(mut texts) = texts else {
            let lengths = bodies.iter().map(|body| body.bytes().map_or(0, |bytes| bytes.len()));
            return format!(": {}, not text", size(lengths.sum()));
        };
        let odd = content.odd.iter().filter(|odd| !odd.usable);
        texts.extend(odd.map(|odd| harmless(&odd.item.to_string())));
        let diff = match self.texts.get(uri) {
            Some(before) => {
                let (before, now) = set_out(before, &texts, bodies.len());
                unified(&before, &now, self.paint)
            }
            None => String::new(),
        };
        self.texts.insert(uri.clone(), texts);
        if diff.is_empty() { diff } else { format!("\n{}", diff.trim_end_matches('\n')) }
    }
}

/// A log message of the server, as text.
pub(crate) fn log_words(level: &impl Serialize, logger: Option<&str>, data: &Value) -> String {
    let data = data.as_str().map_or_else(|| data.to_string(), str::to_owned);
    let logger = logger.map(|logger| format!(" {logger}")).unwrap_or_default();
    let level = json!(level);
    harmless(&format!("{}{logger}: {data}", level.as_str().unwrap_or("log")))
}

/// The progress of a request, as text.
pub(crate) fn progress_words(progress: &Progress) -> String {
    let done = match progress.total {
        Some(total) => format!("{} of {total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match &progress.message {
        Some(message) => format!("{done}: {}", one_line(message)),
        None => done,
    }
}

/// Two versions of a resource, prepared for comparison. A change inside one long line of JSON could
/// not be seen, so JSON is pretty-printed if both versions are JSON. A log of JSON lines that grows
/// from one line to two is compared as it is, and so are further `contents` after the first.
fn set_out(before: &[String], now: &[String], contents: usize) -> (String, String) {
    let pretty = |text: &String| {
        let value = serde_json::from_str::<Value>(text).ok();
        let value = value.filter(|value| value.is_object() || value.is_array());
        value.and_then(|value| serde_json::to_string_pretty(&value).ok())
    };
    let (mut before, mut now) = (before.to_vec(), now.to_vec());
    for (before, now) in before.iter_mut().zip(&mut now).take(contents) {
        if let (Some(pretty_before), Some(pretty_now)) = (pretty(before), pretty(now)) {
            (*before, *now) = (pretty_before, pretty_now);
        }
    }
    (before.join("\n"), now.join("\n"))
}

fn watching(uris: &BTreeSet<Arc<str>>, refused: &[Arc<str>]) -> String {
    let shown = named(uris.iter());
    if refused.is_empty() { shown } else { format!("{shown}; refused {}", named(refused.iter())) }
}

/// The URIs if they fit in a readable line, else their number.
fn named<'a>(uris: impl ExactSizeIterator<Item = &'a Arc<str>>) -> String {
    match uris.len() {
        0 => "nothing".to_owned(),
        1..=NAMED => uris.map(ToString::to_string).collect::<Vec<_>>().join(", "),
        many => count(many, "resource", "resources"),
    }
}

fn seconds(duration: Duration) -> String {
    if duration < Duration::from_secs(1) {
        format!("{} ms", duration.as_millis())
    } else {
        format!("{:.1} s", duration.as_secs_f64())
    }
}

fn connection(state: &ConnectionState) -> Value {
    let named = |state: &str| json!({ "event": "connection", "state": state });
    let with_reason = |state: &str, reason: &str| {
        let mut object = named(state);
        object["reason"] = reason.into();
        object
    };
    match state {
        ConnectionState::Connecting => named("connecting"),
        ConnectionState::Ready => named("ready"),
        ConnectionState::Lost { reason } => with_reason("lost", reason),
        ConnectionState::Retrying { attempt, after, reason } => {
            let mut object = with_reason("retrying", reason);
            object["attempt"] = (*attempt).into();
            object["after_ms"] = u64::try_from(after.as_millis()).unwrap_or(u64::MAX).into();
            object
        }
        ConnectionState::Disconnected { reason } => with_reason("disconnected", reason),
        ConnectionState::Closed { reason } => with_reason("closed", reason),
        other => with_reason("other", &other.to_string()),
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::Asked => "asked",
        Cause::Notice => "notice",
        Cause::Resync => "resync",
        Cause::Returned => "returned",
        _ => "other",
    }
}

/// A changed list, with the names or URIs of its items.
struct ListWords<'a> {
    name: &'static str,
    diff: Diff<&'a str>,
    error: Option<&'a str>,
}

fn list(event: &Event) -> Option<ListWords<'_>> {
    Some(match event {
        Event::ToolsChanged(change) => keyed("tools", change, |tool: &Tool| &tool.name),
        Event::ResourcesChanged(change) => {
            keyed("resources", change, |resource: &Resource| &resource.uri)
        }
        Event::TemplatesChanged(change) => {
            keyed("templates", change, |template: &ResourceTemplate| &template.uri_template)
        }
        Event::PromptsChanged(change) => keyed("prompts", change, |prompt: &Prompt| &prompt.name),
        _ => return None,
    })
}

fn keyed<'a, T>(
    name: &'static str,
    change: &'a ListChange<T>,
    key: impl Fn(&'a T) -> &'a str,
) -> ListWords<'a> {
    let keys = |items: &'a [Arc<Item<T>>]| items.iter().map(|item| key(item)).collect();
    let diff = Diff {
        added: keys(&change.diff.added),
        removed: keys(&change.diff.removed),
        changed: keys(&change.diff.changed),
        reordered: change.diff.reordered,
    };
    ListWords { name, diff, error: change.error.as_deref() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at() -> Moment {
        Moment::from_millis(45_296_789)
    }

    #[track_caller]
    fn check(event: &Event, words: Option<&str>, json: &str) {
        let told = Story::new(Paint::PLAIN).tell(event, at());
        assert_eq!(told.as_deref().map(str::trim_end), words);
        let shown = object(event, at()).map(|object| object.to_string());
        assert_eq!(shown.as_deref(), Some(json));
    }

    #[test]
    fn events_are_told_in_words_and_in_json() {
        check(
            &Event::ResourceUpdated { uri: "a:b".into(), cause: Cause::Notice, notice: None },
            Some("12:34:56Z  content    a:b changed"),
            r#"{"at_ms":45296789,"cause":"notice","event":"updated","uri":"a:b"}"#,
        );
        check(
            &Event::ResourceGone {
                uri: "a:b".into(),
                reason: "no such resource".into(),
                cause: Cause::Notice,
                notice: None,
            },
            Some("12:34:56Z  content    a:b is gone: no such resource"),
            r#"{"at_ms":45296789,"cause":"notice","event":"gone","reason":"no such resource","uri":"a:b"}"#,
        );
        check(
            &Event::SubscriptionsChanged {
                uris: ["a:b".into()].into(),
                refused: vec!["a:c".into()],
            },
            Some("12:34:56Z  watching   a:b; refused a:c"),
            r#"{"at_ms":45296789,"event":"subscriptions_changed","refused":["a:c"],"uris":["a:b"]}"#,
        );
        check(
            &Event::Connection(ConnectionState::Retrying {
                attempt: 2,
                after: Duration::from_millis(250),
                reason: "refused".into(),
            }),
            Some("12:34:56Z  server     trying again in 250 ms: refused"),
            r#"{"after_ms":250,"at_ms":45296789,"attempt":2,"event":"connection","reason":"refused","state":"retrying"}"#,
        );
        check(
            &Event::Connection(ConnectionState::Connecting),
            None,
            r#"{"at_ms":45296789,"event":"connection","state":"connecting"}"#,
        );
        check(
            &Event::Stderr { line: "hello".into() },
            Some("12:34:56Z  stderr     hello"),
            r#"{"at_ms":45296789,"event":"stderr","line":"hello"}"#,
        );
        check(
            &Event::Lagged { missed: 1 },
            Some("12:34:56Z  warning    1 event missed"),
            r#"{"at_ms":45296789,"event":"lagged","missed":1}"#,
        );
    }

    #[test]
    fn json_in_one_line_is_set_out_before_it_is_compared() {
        let mut story = Story::new(Paint::PLAIN);
        let mut tell = |text: &str, cause: Cause| {
            let content = ResourceContent::of_text("a:b", text).into();
            let (uri, notice) = ("a:b".into(), None);
            let event = Event::ResourceContentChanged { uri, content, cause, notice };
            story.tell(&event, at())
        };
        assert_eq!(tell(r#"{"name":"iris","port":1}"#, Cause::Asked), None);
        insta::assert_snapshot!(tell(r#"{"name":"iris","port":2}"#, Cause::Notice).unwrap(), @r#"
        12:34:56Z  content    a:b changed
        @@ -1,4 +1,4 @@
         {
           "name": "iris",
        -  "port": 1
        +  "port": 2
         }
        "#);
        assert!(tell("3", Cause::Returned).unwrap().contains("a:b is back\n"));
    }

    #[test]
    fn a_log_of_json_lines_that_grows_is_compared_line_by_line() {
        let mut story = Story::new(Paint::PLAIN);
        let mut tell = |text: &str| {
            let content = ResourceContent::of_text("a:b", text).into();
            let (uri, cause, notice) = ("a:b".into(), Cause::Notice, None);
            story.tell(&Event::ResourceContentChanged { uri, content, cause, notice }, at())
        };
        tell("{\"n\":1}\n");
        insta::assert_snapshot!(tell("{\"n\":1}\n{\"n\":2}\n").unwrap(), @r#"
        12:34:56Z  content    a:b changed
        @@ -1 +1,2 @@
         {"n":1}
        +{"n":2}
        "#);
    }

    #[test]
    fn contents_that_are_not_as_the_protocol_says_are_shown_as_they_came() {
        let mut story = Story::new(Paint::PLAIN);
        let event = |text: i64| {
            let mut content = ResourceContent::of_text("a:b", "good");
            content.odd = serde_json::from_value(json!([{
                "index": 1, "name": "a:b", "reason": "it is odd", "usable": false,
                "item": { "uri": "a:b", "text": text },
            }]))
            .unwrap();
            let (uri, cause, notice) = ("a:b".into(), Cause::Notice, None);
            Event::ResourceContentChanged { uri, content: content.into(), cause, notice }
        };
        let told = object(&event(5), at()).unwrap();
        assert_eq!(told["contents"][1], json!({ "uri": "a:b", "text": 5 }));
        story.tell(&event(5), at());
        assert!(story.tell(&event(6), at()).unwrap().contains("+{\"text\":6,\"uri\":\"a:b\"}"));
    }

    #[test]
    fn many_watched_resources_are_counted() {
        let uris: BTreeSet<Arc<str>> =
            (0..5000).map(|number| format!("a:{number}").into()).collect();
        let refused: Vec<_> = uris.iter().take(2).cloned().collect();
        assert_eq!(watching(&uris, &refused), "5000 resources; refused a:0, a:1");
        assert_eq!(watching(&BTreeSet::new(), &[]), "nothing");
    }
}
