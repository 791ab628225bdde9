//! Repairs messages: one odd item must not fail its list, nor one odd block the result of a call
//! that ran.
//!
//! The protocol library accepts an answer as a whole or not at all. An answer that it would refuse
//! is repaired here: invalid fields of an item are dropped or filled in, unusable items are
//! removed, and both are recorded in the answer's `_meta`, where [`take_odd`] finds them.

use rmcp::model::{
    CacheScope, CompletionInfo, ContentBlock, Implementation, MetaObject, Prompt, PromptArgument,
    PromptMessage, Resource, ResourceContents, ResourceTemplate, ServerCapabilities,
    ServerJsonRpcMessage, ServerResult, Tool,
};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::odd::Odd;

/// The key of the odd parts in an answer's `_meta`.
const NOTED: &str = "tidings.mirror/odd";
/// How much of an invalid value is shown.
const SHOWN: usize = 60;

/// The required fields of one kind of item.
struct Kind {
    /// The field of an answer that contains them.
    key: &'static str,
    /// The required fields, in the order they are reported.
    needs: &'static [&'static str],
    /// Fields that are never dropped, because the item would change its meaning.
    keeps: &'static [&'static str],
    fits: fn(&Value) -> bool,
}

const KINDS: [Kind; 7] = [
    Kind { key: "tools", needs: &["name"], keeps: &["inputSchema"], fits: fits::<Tool> },
    Kind { key: "resources", needs: &["uri", "name"], keeps: &[], fits: fits::<Resource> },
    Kind {
        key: "resourceTemplates",
        needs: &["uriTemplate", "name"],
        keeps: &[],
        fits: fits::<ResourceTemplate>,
    },
    Kind { key: "prompts", needs: &["name"], keeps: &[], fits: fits::<Prompt> },
    Kind {
        key: "contents",
        needs: &["uri"],
        keeps: &["text", "blob"],
        fits: fits::<ResourceContents>,
    },
    CONTENT,
    Kind { key: "messages", needs: &["role", "content"], keeps: &[], fits: fits::<PromptMessage> },
];

const CONTENT: Kind = Kind {
    key: "content",
    needs: &["type"],
    keeps: &["text", "data", "mimeType", "resource", "uri", "name"],
    fits: fits::<ContentBlock>,
};

/// Blocks of a prompt: an odd one must not fail the others.
const ARGUMENT: Kind =
    Kind { key: "arguments", needs: &["name"], keeps: &[], fits: fits::<PromptArgument> };

fn fits<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

/// Parses a message.
pub(super) fn parse(bytes: &[u8]) -> Result<ServerJsonRpcMessage, serde_json::Error> {
    let message = serde_json::from_slice(bytes)?;
    Ok(if is_doubtful(&message) { mended(bytes).unwrap_or(message) } else { message })
}

/// The repaired message, if the protocol library would not accept its `text`.
pub(super) fn translated(text: &str, message: &ServerJsonRpcMessage) -> Option<String> {
    let mended = is_doubtful(message).then(|| mended(text.as_bytes()))??;
    serde_json::to_string(&mended).ok()
}

/// Removes the odd parts from an answer's `_meta`.
pub(super) fn take_odd(meta: &mut Option<MetaObject>) -> Vec<Odd> {
    let Some(noted) = meta.as_mut().and_then(|meta| meta.remove(NOTED)) else { return Vec::new() };
    meta.take_if(|meta| meta.is_empty());
    serde_json::from_value(noted).unwrap_or_default()
}

/// Whether an answer was parsed as a type that accepts anything.
fn is_doubtful(message: &ServerJsonRpcMessage) -> bool {
    let ServerJsonRpcMessage::Response(response) = message else { return false };
    match &response.result {
        ServerResult::CallToolResult(result) => result.content.is_empty(),
        ServerResult::CustomResult(_)
        | ServerResult::SubscriptionsListenResult(_)
        | ServerResult::ElicitResult(_) => true,
        _ => false,
    }
}

fn mended(bytes: &[u8]) -> Option<ServerJsonRpcMessage> {
    let mut message: Value = serde_json::from_slice(bytes).ok()?;
    let result = message.get_mut("result")?.as_object_mut()?;
    mend(result).then(|| serde_json::from_value(message).ok())?
}

/// Repairs an answer; returns whether it was changed.
fn mend(result: &mut Map<String, Value>) -> bool {
    let before = result.clone();
    let mut odd = Vec::new();
    mend_envelope(result);
    for kind in &KINDS {
        if let Some(Value::Array(items)) = result.get_mut(kind.key) {
            mend_items(items, kind, &mut odd);
        }
    }
    if result.contains_key("supportedVersions") {
        // Required fields of `server/discover` that some servers omit.
        for (key, value) in [("resultType", "complete"), ("cacheScope", "private")] {
            result.entry(key).or_insert_with(|| value.into());
        }
        result.entry("ttlMs").or_insert_with(|| 0.into());
    }
    keep_if(result, "ttlMs", fits::<u64>);
    keep_if(result, "cacheScope", |scope| *scope == json!("") || fits::<CacheScope>(scope));
    for (key, needs, fits) in [
        ("capabilities", &[][..], fits::<ServerCapabilities> as fn(&Value) -> bool),
        ("serverInfo", &["name", "version"], fits::<Implementation>),
        ("completion", &["values"], fits::<CompletionInfo>),
    ] {
        if let Some(part) = result.get_mut(key)
            && let Fate::Usable(reason) = mend_item(part, &Kind { key, needs, keeps: &[], fits })
        {
            tracing::warn!(part = key, %reason, "invalid field in the server's answer");
        }
    }
    if !odd.is_empty() {
        let meta = result.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            *meta = json!({});
        }
        meta[NOTED] = json!(odd);
    }
    *result != before
}

/// Drops invalid fields beside the items, and wraps a single item in a list.
fn mend_envelope(result: &mut Map<String, Value>) {
    for (key, fits) in [
        ("_meta", Value::is_object as fn(&Value) -> bool),
        ("isError", Value::is_boolean),
        ("description", Value::is_string),
        ("nextCursor", Value::is_string),
    ] {
        if let Some(odd) = result.get(key).filter(|value| !fits(value)) {
            let number = || odd.is_number().then(|| odd.to_string().into());
            let said = as_flag(odd).or_else(number).filter(fits);
            tracing::warn!(part = key, value = %shown(odd), "invalid field in the server's answer");
            match said {
                Some(said) => result.insert(key.to_owned(), said),
                None => result.remove(key),
            };
        }
    }
    for kind in &KINDS {
        let Some(value) = result.get_mut(kind.key) else { continue };
        match value {
            // Some libraries write an empty list like this.
            Value::Null => *value = json!([]),
            Value::String(text) if kind.key == "content" => {
                *value = json!([{ "type": "text", "text": text }]);
            }
            Value::String(_) | Value::Object(_) if kind.key.starts_with("content") => {
                *value = json!([value.take()]);
            }
            _ => {}
        }
    }
}

/// A flag written as text.
fn as_flag(value: &Value) -> Option<Value> {
    match value.as_str()? {
        "true" => Some(true.into()),
        "false" => Some(false.into()),
        _ => None,
    }
}

/// Converts a number to an integer, and drops an invalid one.
fn keep_if(result: &mut Map<String, Value>, key: &str, fits: fn(&Value) -> bool) {
    let Some(value) = result.get_mut(key) else { return };
    if let Some(whole) = whole(value) {
        *value = whole;
    }
    if !fits(value) {
        // A required number gets the least promise.
        match key {
            "ttlMs" => *value = 0.into(),
            _ => *value = "private".into(),
        }
    }
}

fn mend_items(items: &mut Vec<Value>, kind: &Kind, odd: &mut Vec<Odd>) {
    let all = std::mem::take(items);
    for (index, mut item) in all.into_iter().enumerate() {
        let sent = item.clone();
        let fate = mend_item(&mut item, kind);
        if !matches!(fate, Fate::Unusable(_)) {
            items.push(item);
        }
        let (reason, usable) = match fate {
            Fate::Good => continue,
            Fate::Usable(reason) => (reason, true),
            Fate::Unusable(reason) => (reason, false),
        };
        odd.push(Odd { usable, ..Odd::new(index, reason, sent) });
    }
}

/// The outcome for an item, with a reason unless it was valid.
enum Fate {
    Good,
    Usable(String),
    Unusable(String),
}

/// Drops or fills in the fields that make an item unusable.
fn mend_item(item: &mut Value, kind: &Kind) -> Fate {
    if (kind.fits)(item) {
        return Fate::Good;
    }
    let Some(object) = item.as_object_mut() else {
        return Fate::Unusable("not a JSON object".to_owned());
    };
    let mut notes = filled_in(object, kind);
    let (mut kept, others): (Map<_, _>, Map<_, _>) =
        std::mem::take(object).into_iter().partition(|(key, _)| {
            kind.needs.contains(&key.as_str()) || kind.keeps.contains(&key.as_str())
        });
    if !fits_object(kind, &kept) {
        return Fate::Unusable(unusable(&kept, kind));
    }
    // Each field is tried alone, so their number does not matter.
    let base = kept.clone();
    let fits_with = |key: &str, value: &Value| {
        let mut tried = base.clone();
        tried.insert(key.to_owned(), value.clone());
        fits_object(kind, &tried)
    };
    for (key, value) in others {
        if fits_with(&key, &value) {
            kept.insert(key, value);
            continue;
        }
        // A flag in place of an object means that it is present.
        let other = whole(&value).or_else(|| (value == true).then(|| json!({})));
        let other = other.or_else(|| {
            let mut items = value.as_array().filter(|_| key == ARGUMENT.key)?.clone();
            mend_items(&mut items, &ARGUMENT, &mut Vec::new());
            (!items.is_empty()).then_some(Value::Array(items))
        });
        let other = other.or_else(|| {
            // The valid members of it are kept.
            let fields = value.as_object()?.iter();
            let valid = fields.filter_map(|(field, value)| {
                let value = as_flag(value).unwrap_or_else(|| value.clone());
                fits_with(&key, &json!({ field: value })).then(|| (field.clone(), value))
            });
            // A capability counts even if its details are invalid.
            let valid: Map<_, _> = valid.collect();
            (!valid.is_empty() || kind.key == "capabilities").then_some(Value::Object(valid))
        });
        if let Some(other) = other.filter(|other| fits_with(&key, other)) {
            notes.push(format!("`{key}` is {}, used as {}", shown(&value), shown(&other)));
            kept.insert(key, other);
        } else {
            notes.push(format!("`{key}` is invalid and was dropped: {}", shown(&value)));
        }
    }
    *item = Value::Object(kept);
    Fate::Usable(notes.join("; "))
}

/// Fills in fields that may be missing.
fn filled_in(object: &mut Map<String, Value>, kind: &Kind) -> Vec<String> {
    let mut notes = Vec::new();
    if kind.key == "tools" && !object.get("inputSchema").is_some_and(Value::is_object) {
        let problem =
            if object.contains_key("inputSchema") { "is not an object" } else { "is missing" };
        notes.push(format!("`inputSchema` {problem}, so any arguments are allowed"));
        object.insert("inputSchema".to_owned(), json!({ "type": "object" }));
    }
    if kind.needs.contains(&"name")
        && let [uri @ ("uri" | "uriTemplate"), ..] = kind.needs
        && !object.get("name").is_some_and(Value::is_string)
        && let Some(uri) = object.get(*uri).and_then(Value::as_str)
    {
        notes.push("`name` is missing, so the URI is used".to_owned());
        object.insert("name".to_owned(), uri.into());
    }
    if kind.key == "messages"
        && let Some(content) = object.get_mut("content")
        && let Fate::Usable(reason) = mend_item(content, &CONTENT)
    {
        notes.push(reason);
    }
    notes
}

fn fits_object(kind: &Kind, object: &Map<String, Value>) -> bool {
    (kind.fits)(&Value::Object(object.clone()))
}

/// Why an item cannot be used.
fn unusable(kept: &Map<String, Value>, kind: &Kind) -> String {
    if let Some(missing) = kind.needs.iter().find(|key| !kept.contains_key(**key)) {
        return format!("`{missing}` is missing");
    }
    let block = if kind.key == "messages" { &kept["content"] } else { &Value::Null };
    match (kind.key, kept.get("type").or_else(|| block.get("type")).and_then(Value::as_str)) {
        (_, Some(known @ ("text" | "image" | "audio" | "resource" | "resource_link"))) => {
            format!("not a valid `{known}`")
        }
        (_, Some(unknown)) => format!("content of unknown type `{unknown}`"),
        ("contents", _) => "it has neither a valid `text` nor a valid `blob`".to_owned(),
        _ => format!("{} cannot be parsed", shown(&Value::Object(kept.clone()))),
    }
}

/// A whole number written as a fraction.
fn whole(value: &Value) -> Option<Value> {
    /// Beyond this, fractions are not exact.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let number = value.as_f64().filter(|_| value.is_f64())?;
    let is_whole = number.fract() == 0.0 && number.abs() <= MOST;
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and not too large")]
    is_whole.then(|| (number as i64).into())
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: &Value) -> ServerJsonRpcMessage {
        let message = json!({ "jsonrpc": "2.0", "id": 1, "result": result });
        parse(message.to_string().as_bytes()).unwrap()
    }

    #[track_caller]
    fn result(result: &Value) -> ServerResult {
        let ServerJsonRpcMessage::Response(response) = answer(result) else { panic!("{result}") };
        response.result
    }

    /// What a list of one tool becomes: the tool, and what is odd about it.
    #[track_caller]
    fn check(tool: &Value, is_listed: bool, reason: &str) {
        let listed = result(&json!({ "resultType": "complete", "tools": [tool] }));
        let ServerResult::ListToolsResult(mut list) = listed else { panic!("{listed:?}") };
        let odd = take_odd(&mut list.meta);
        assert_eq!((list.tools.len(), list.meta), (usize::from(is_listed), None));
        let told: Vec<_> = odd.iter().map(|odd| odd.reason.as_str()).collect();
        assert_eq!(told, [reason], "{odd:?}");
        assert_eq!((odd[0].usable, &odd[0].item), (is_listed, tool));
    }

    #[test]
    fn an_odd_tool_is_used_as_far_as_it_can_be() {
        check(
            &json!({ "name": "a" }),
            true,
            "`inputSchema` is missing, so any arguments are allowed",
        );
        let schema = json!({ "type": "object" });
        check(
            &json!({ "name": "a", "inputSchema": schema, "icons": [{ "src": "x", "sizes": "48x48" }] }),
            true,
            "`icons` is invalid and was dropped: [{\"sizes\":\"48x48\",\"src\":\"x\"}]",
        );
        check(
            &json!({ "name": 5, "inputSchema": schema }),
            false,
            "{\"inputSchema\":{\"type\":\"object\"},\"name\":5} cannot be parsed",
        );
        check(&json!({ "inputSchema": schema }), false, "`name` is missing");
        check(&json!("a"), false, "not a JSON object");
    }

    #[test]
    fn odd_resources_are_kept_beside_good_ones() {
        let audience = json!({ "audience": ["robot"] });
        let resources = json!([
            { "uri": "a:1", "name": "1" }, { "uri": "a:2", "name": "2", "size": 5.0 },
            { "uri": "a:3", "annotations": audience }, { "name": "4" }, { "uri": "a:5", "name": "5" },
        ]);
        let listed = result(&json!({ "resources": resources, "ttlMs": 5000.0 }));
        let ServerResult::ListResourcesResult(mut list) = listed else { panic!("{listed:?}") };
        let names: Vec<_> = list.resources.iter().map(|resource| resource.name.as_str()).collect();
        assert_eq!(names, ["1", "2", "a:3", "5"]);
        assert_eq!((list.resources[1].size, list.ttl_ms), (Some(5), Some(5000)));
        let odd = take_odd(&mut list.meta);
        let told: Vec<_> = odd.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "`2` (number 1): `size` is 5.0, used as 5",
                "`a:3` (number 2): `name` is missing, so the URI is used; `annotations` is invalid \
             and was dropped: {\"audience\":[\"robot\"]}",
                "`4` (number 3): `uri` is missing",
            ]
        );
    }

    #[test]
    fn an_unknown_block_is_taken_out_and_noted() {
        let content = json!([{ "type": "hologram", "x": 1 }, { "type": "text", "text": "hi" }]);
        let called = result(&json!({ "content": content, "structuredContent": { "a": 1 } }));
        let ServerResult::CallToolResult(mut call) = called else { panic!("{called:?}") };
        let odd = take_odd(&mut call.meta);
        assert_eq!(odd[0].to_string(), "`hologram` (number 0): content of unknown type `hologram`");
        assert_eq!((call.content.len(), call.structured_content), (1, Some(json!({ "a": 1 }))));

        let messages = json!([
            { "role": "user", "content": { "type": "text", "text": "a", "annotations": 5 } },
            { "role": "user", "content": { "type": "hologram" } },
        ]);
        let prompted = result(&json!({ "messages": messages }));
        let ServerResult::GetPromptResult(mut prompt) = prompted else { panic!("{prompted:?}") };
        assert_eq!(prompt.messages.len(), 1);
        let usable: Vec<_> = take_odd(&mut prompt.meta).iter().map(|odd| odd.usable).collect();
        assert_eq!(usable, [true, false]);
    }

    #[test]
    fn a_modern_server_need_not_be_exact_about_time() {
        for extra in
            [json!({}), json!({ "ttlMs": 5000.0 }), json!({ "ttlMs": "soon", "cacheScope": 1 })]
        {
            let mut discovered =
                json!({ "supportedVersions": ["2026-07-28"], "capabilities": { "tools": true } });
            discovered.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            let found = result(&discovered);
            let ServerResult::DiscoverResult(found) = found else { panic!("{found:?}") };
            assert!(found.capabilities.tools.is_some());
        }
    }

    #[test]
    fn a_flag_that_is_not_valid_costs_no_capability() {
        let capabilities = json!({
            "tools": { "listChanged": "yes" },
            "resources": { "subscribe": "true", "listChanged": 1 },
        });
        let info = json!({ "name": "a", "version": "1" });
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info,
        });
        let hello = result(&hello);
        let ServerResult::InitializeResult(hello) = hello else { panic!("{hello:?}") };
        let resources = hello.capabilities.resources.unwrap();
        assert_eq!((resources.subscribe, resources.list_changed), (Some(true), None));
        assert_eq!(hello.capabilities.tools.unwrap().list_changed, None);
    }

    #[test]
    fn what_stands_beside_the_content_costs_no_result() {
        for odd in [json!({ "isError": "no" }), json!({ "_meta": 5 }), json!({ "isError": "true" })]
        {
            let mut sent = json!({ "content": [{ "type": "text", "text": "paid" }] });
            sent.as_object_mut().unwrap().extend(odd.as_object().unwrap().clone());
            let called = result(&sent);
            let ServerResult::CallToolResult(call) = called else { panic!("{called:?}") };
            assert_eq!(call.content.len(), 1);
            assert_eq!(call.is_error == Some(true), odd["isError"] == "true");
        }
        for content in [json!("paid"), json!({ "type": "text", "text": "paid" })] {
            let called = result(&json!({ "content": content }));
            let ServerResult::CallToolResult(call) = called else { panic!("{called:?}") };
            assert_eq!(call.content[0], ContentBlock::text("paid"));
        }
        let read = result(&json!({ "contents": "paid" }));
        let ServerResult::ReadResourceResult(mut read) = read else { panic!("{read:?}") };
        assert_eq!(take_odd(&mut read.meta)[0].item, "paid", "it is kept as it came");
    }

    #[test]
    fn nothing_in_place_of_a_list_is_an_empty_list() {
        let is_list = |key: &str| match result(&json!({ key: null })) {
            ServerResult::ListToolsResult(list) => list.tools.is_empty(),
            ServerResult::ListResourcesResult(list) => list.resources.is_empty(),
            ServerResult::ListResourceTemplatesResult(list) => list.resource_templates.is_empty(),
            ServerResult::ListPromptsResult(list) => list.prompts.is_empty(),
            ServerResult::ReadResourceResult(read) => read.contents.is_empty(),
            ServerResult::CallToolResult(call) => call.content.is_empty(),
            ServerResult::GetPromptResult(prompt) => prompt.messages.is_empty(),
            _ => false,
        };
        for kind in &KINDS {
            assert!(is_list(kind.key), "{}", kind.key);
        }
    }

    #[test]
    fn a_cursor_that_is_a_number_is_used() {
        let listed = result(&json!({ "tools": [], "nextCursor": 7 }));
        let ServerResult::ListToolsResult(list) = listed else { panic!("{listed:?}") };
        assert_eq!(list.next_cursor.as_deref(), Some("7"));
    }

    #[test]
    fn an_odd_argument_costs_a_prompt_no_other() {
        let arguments = json!([{ "name": "a", "required": "yes" }, { "name": "b" }, { "x": 1 }]);
        let listed = result(&json!({ "prompts": [{ "name": "p", "arguments": arguments }] }));
        let ServerResult::ListPromptsResult(list) = listed else { panic!("{listed:?}") };
        let arguments = list.prompts[0].arguments.as_deref().unwrap_or_default();
        let names: Vec<_> = arguments.iter().map(|argument| argument.name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn whole_numbers_may_be_written_as_fractions() {
        let completed = result(&json!({ "completion": { "values": ["a"], "total": 5.0 } }));
        let ServerResult::CompleteResult(completed) = completed else { panic!("{completed:?}") };
        assert_eq!(completed.completion.total, Some(5));
    }

    #[test]
    fn what_fits_is_left_alone() {
        let good = json!({ "tools": [{ "name": "a", "inputSchema": {} }], "_meta": { "x": 1 } });
        assert_eq!(serde_json::to_value(answer(&good)).unwrap()["result"], good);
        for result in [json!({}), json!({ "tools": 5 }), json!([]), json!({ "content": [] })] {
            answer(&result);
        }
        let odd = json!({ "tools": [{ "name": "a" }, 5, { "name": "b", "inputSchema": {} }] });
        let passed = |result| {
            let text = json!({ "jsonrpc": "2.0", "id": 1, "result": result }).to_string();
            translated(&text, &serde_json::from_str(&text).unwrap())
        };
        assert!(passed(odd).is_some_and(|text| text.contains(NOTED)));
        assert_eq!(passed(good), None);
    }
}
