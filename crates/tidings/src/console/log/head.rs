//! What one message is: its method, its subject and the request it belongs to, read without
//! building the whole message.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::console::log::row::Lane;
use crate::console::secret::masked;

/// The most characters of a subject.
const SUBJECT: usize = 160;
/// Longer parameters are not parsed for a subject.
const PARAMETERS: usize = 16 << 10;

/// What a message is.
#[derive(Debug, PartialEq)]
pub(crate) enum MessageHead {
    Request {
        id: String,
        method: String,
        subject: String,
        token: Option<String>,
    },
    Notice {
        method: String,
        subject: String,
        about: Option<String>,
    },
    Answer {
        id: String,
        error: Option<String>,
    },
    /// It was cut, or is not a message.
    Unclear,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct WireError {
    #[serde(default)]
    code: Value,
}

/// Reads the head of a message.
pub(crate) fn head(text: &str) -> MessageHead {
    let Ok(wire) = serde_json::from_str::<Wire<'_>>(text) else {
        return match cut_answer(text) {
            Some(id) => MessageHead::Answer { id, error: None },
            None => MessageHead::Unclear,
        };
    };
    let id = wire.id.filter(|id| id.get() != "null").map(|id| plain(id.get()));
    match (wire.method, id) {
        (Some(method), id) => {
            let small = wire.params.filter(|params| params.get().len() <= PARAMETERS);
            let params = small.and_then(|params| serde_json::from_str(params.get()).ok());
            let params: Value = params.unwrap_or_default();
            let subject = short(&subject(&method, &params));
            if let Some(id) = id {
                let token = params.pointer("/_meta/progressToken").map(plain_value);
                MessageHead::Request { id, method: method.into_owned(), subject, token }
            } else {
                let about = about(&method, &params);
                MessageHead::Notice { method: method.into_owned(), subject, about }
            }
        }
        (None, Some(id)) => {
            let error = wire.error.map(|error| match error.code {
                Value::Null => "error".to_owned(),
                code => code.to_string(),
            });
            MessageHead::Answer { id, error }
        }
        (None, None) => MessageHead::Unclear,
    }
}

/// The id of an answer that was cut; most servers write it before the result.
fn cut_answer(text: &str) -> Option<String> {
    let result = text.find(r#""result""#)?;
    let (_, rest) = text[..result].split_once(r#""id":"#)?;
    let end = rest.find([',', '}'])?;
    Some(plain(rest[..end].trim()))
}

/// Ids and tokens are compared as text: some servers return numbers as text.
fn plain(raw: &str) -> String {
    raw.trim_matches('"').to_owned()
}

fn plain_value(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// What a notice is about: the resource, the list, or the token of the request.
fn about(method: &str, params: &Value) -> Option<String> {
    match method {
        "notifications/resources/updated" => params["uri"].as_str().map(str::to_owned),
        "notifications/progress" => params.get("progressToken").map(plain_value),
        "notifications/cancelled" => params.get("requestId").map(plain_value),
        _ => {
            method.strip_prefix("notifications/")?.strip_suffix("/list_changed").map(str::to_owned)
        }
    }
}

fn subject(method: &str, params: &Value) -> String {
    let text = |name: &str| params[name].as_str().unwrap_or_default().to_owned();
    match method {
        "tools/call" | "prompts/get" => match &params["arguments"] {
            Value::Object(given) if !given.is_empty() => {
                format!("{} {}", text("name"), masked(&params["arguments"]))
            }
            _ => text("name"),
        },
        "initialize" => text("protocolVersion"),
        "completion/complete" => {
            let argument = &params["argument"];
            let name = argument["name"].as_str().unwrap_or_default();
            format!("{name}={}", argument["value"].as_str().unwrap_or_default())
        }
        "elicitation/create" => format!("“{}”", text("message")),
        "sampling/createMessage" => {
            let last = params["messages"].as_array().and_then(|messages| messages.last());
            let said = last.and_then(|last| last.pointer("/content/text")).and_then(Value::as_str);
            format!("“{}”", said.unwrap_or_default())
        }
        "logging/setLevel" => text("level"),
        "notifications/message" => {
            let said = match &params["data"] {
                Value::String(said) => said.clone(),
                other => masked(other).to_string(),
            };
            match params["logger"].as_str() {
                Some(logger) => format!("{logger}: {said}"),
                None => said,
            }
        }
        "notifications/progress" => progress(params),
        "notifications/cancelled" => text("reason"),
        _ => text("uri"),
    }
}

fn progress(params: &Value) -> String {
    let total = params.get("total").map(|total| format!(" of {total}")).unwrap_or_default();
    let message = params["message"].as_str().unwrap_or_default();
    format!("{}{total} {message}", params["progress"])
}

fn short(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = words.char_indices().nth(SUBJECT) {
        words.truncate(end);
        words.push('…');
    }
    words
}

/// The lane of a method.
pub(crate) fn lane(method: &str) -> Lane {
    match method {
        "tools/call" | "prompts/get" | "completion/complete" => Lane::Calls,
        "resources/read" => Lane::Reads,
        "elicitation/create" | "sampling/createMessage" | "roots/list" => Lane::Asked,
        "notifications/message" => Lane::Log,
        _ if method.ends_with("/list") => Lane::Reads,
        _ if method.starts_with("notifications/") => Lane::Notices,
        _ => Lane::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match head(text) {
            MessageHead::Request { id, method, subject, token } => {
                format!("request {id} {method} {subject} {token:?}")
            }
            MessageHead::Notice { method, subject, about } => {
                format!("notice {method} {subject} {about:?}")
            }
            MessageHead::Answer { id, error } => format!("answer {id} {error:?}"),
            MessageHead::Unclear => "unclear".to_owned(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_message_is_known_by_its_head() {
        check(
            r#"{"id":7,"method":"tools/call","params":{"name":"say","arguments":{"token":"x","a":1},"_meta":{"progressToken":3}}}"#,
            r#"request 7 tools/call say {"a":1,"token":"••••••"} Some("3")"#,
        );
        check(
            r#"{"method":"notifications/resources/updated","params":{"uri":"a:b"}}"#,
            r#"notice notifications/resources/updated a:b Some("a:b")"#,
        );
        check(
            r#"{"method":"notifications/tools/list_changed"}"#,
            r#"notice notifications/tools/list_changed  Some("tools")"#,
        );
        check(
            r#"{"method":"notifications/progress","params":{"progressToken":"3","progress":1,"total":4,"message":"on"}}"#,
            r#"notice notifications/progress 1 of 4 on Some("3")"#,
        );
        check(r#"{"id":"7","result":{}}"#, "answer 7 None");
        check(r#"{"id":7,"error":{"code":-32602,"message":"m"}}"#, r#"answer 7 Some("-32602")"#);
        check(r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"te"#, "answer 7 None");
        check("nonsense", "unclear");
        check("[]", "unclear");
    }
}
