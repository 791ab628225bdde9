//! One server put into the text of an `mcp.json`, with every other byte left as it is.

use std::ops::Range;

use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::ser::PrettyFormatter;
use serde_json::{Deserializer, Serializer, Value};

use crate::hosts::lenient;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// The server is there, and the same.
    Present,
    /// The new text; there was no server of that name.
    Added(String),
    /// The new text; the server of that name was another one.
    Replaced(String),
}

/// What to do with a server of that name that is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Keep,
    Replace,
}

/// Why a text was left as it is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MergeError {
    /// It is not JSON, in the words of the parser.
    NotJson(String),
    /// It has comments, or commas too many, between which we cannot find our way.
    Lenient,
    /// It, or what it keeps servers under, is not an object.
    NotAnObject(Option<String>),
    /// It has another server of that name.
    Taken,
}

impl std::fmt::Display for MergeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJson(reason) => write!(formatter, "it is not JSON: {reason}"),
            Self::Lenient => formatter.write_str("it has comments or commas that JSON has not"),
            Self::NotAnObject(None) => formatter.write_str("it is not a JSON object"),
            Self::NotAnObject(Some(key)) => write!(formatter, "its `{key}` is not an object"),
            Self::Taken => formatter.write_str("it has another server of that name"),
        }
    }
}

impl std::error::Error for MergeError {}

/// Puts a server under `key`.
///
/// # Errors
///
/// If the text is not plain JSON of the usual form, or has another server of that name.
pub(crate) fn merge(
    text: &str,
    key: &str,
    name: &str,
    server: &impl Serialize,
    other: Other,
) -> Result<Merged, MergeError> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = &text[..text.len() - body.len()];
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let root: Value = serde_json::from_str(body).map_err(|error| {
        let lenient = serde_json::from_str::<IgnoredAny>(&lenient::json(body));
        if lenient.is_ok() { MergeError::Lenient } else { MergeError::NotJson(error.to_string()) }
    })?;
    let root = root.as_object().ok_or(MergeError::NotAnObject(None))?;
    let page = Page::new(body);
    let whole = page.object(page.skip_space(0));
    let Some(servers) = root.get(key) else {
        let servers = std::collections::BTreeMap::from([(name, server)]);
        return Ok(Merged::Added(format!("{mark}{}", page.insert(&whole, key, &servers))));
    };
    let servers = servers.as_object().ok_or_else(|| MergeError::NotAnObject(Some(key.into())))?;
    let inner = page.object(whole.value(key).start);
    match servers.get(name) {
        None => Ok(Merged::Added(format!("{mark}{}", page.insert(&inner, name, server)))),
        Some(found) if serde_json::to_value(server).is_ok_and(|server| server == *found) => {
            Ok(Merged::Present)
        }
        Some(_) if other == Other::Keep => Err(MergeError::Taken),
        Some(_) => {
            let place = inner.value(name);
            let value = page.pretty(server, &page.indent_at(place.start));
            let (before, after) = (&body[..place.start], &body[place.end..]);
            Ok(Merged::Replaced(format!("{mark}{before}{value}{after}")))
        }
    }
}

/// A text that is known to be JSON.
struct Page<'a> {
    text: &'a str,
    line_end: &'static str,
    /// What one level is indented by.
    unit: String,
}

/// Where an object and its members are.
struct Object {
    /// From its opening bracket to after its closing one.
    place: Range<usize>,
    /// The names, where they begin, and their values.
    members: Vec<(String, usize, Range<usize>)>,
}

impl Object {
    /// Where the value of a member is; of several of one name the last counts.
    fn value(&self, key: &str) -> Range<usize> {
        let member = self.members.iter().rev().find(|(name, ..)| name == key);
        member.map(|(.., value)| value.clone()).expect("the parser saw this member")
    }
}

impl<'a> Page<'a> {
    fn new(text: &'a str) -> Self {
        let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let mut page = Self { text, line_end, unit: "  ".to_owned() };
        let root = page.object(page.skip_space(0));
        if let Some((_, start, _)) = root.members.first()
            && page.begins_line(*start)
        {
            let indent = page.indent_at(*start);
            if !indent.is_empty() {
                page.unit = indent;
            }
        }
        page
    }

    fn skip_space(&self, from: usize) -> usize {
        let rest = &self.text[from..];
        from + rest.len() - rest.trim_start().len()
    }

    /// Reads one value that begins here, and tells where it ends.
    fn value<T: DeserializeOwned>(&self, from: usize) -> (T, usize) {
        let mut values = Deserializer::from_str(&self.text[from..]).into_iter::<T>();
        let value = values.next().and_then(Result::ok).expect("the text is JSON");
        (value, from + values.byte_offset())
    }

    /// The object that begins here.
    fn object(&self, start: usize) -> Object {
        let mut members = Vec::new();
        let mut at = self.skip_space(start + 1);
        while !self.text[at..].starts_with('}') {
            let (name, end) = self.value::<String>(at);
            // A colon is between a name and its value.
            let from = self.skip_space(self.skip_space(end) + 1);
            let (IgnoredAny, end) = self.value(from);
            members.push((name, at, from..end));
            at = self.skip_space(end);
            if self.text[at..].starts_with(',') {
                at = self.skip_space(at + 1);
            }
        }
        Object { place: start..at + 1, members }
    }

    /// The text with one more member at the end of this object.
    fn insert(&self, object: &Object, key: &str, value: &impl Serialize) -> String {
        let key = serde_json::to_string(key).expect("texts are JSON");
        let Some((_, first, _)) = object.members.first() else {
            let outer = self.indent_at(object.place.start);
            let inner = format!("{outer}{}", self.unit);
            let (value, end) = (self.pretty(value, &inner), self.line_end);
            let text = format!("{{{end}{inner}{key}: {value}{end}{outer}}}");
            return self.replaced(object.place.clone(), &text);
        };
        let (.., last) = object.members.last().expect("there is a first");
        let text = if self.begins_line(*first) {
            let indent = self.indent_at(*first);
            format!(",{}{indent}{key}: {}", self.line_end, self.pretty(value, &indent))
        } else {
            let value = serde_json::to_string(value).expect("texts are JSON");
            format!(", {key}: {value}")
        };
        self.replaced(last.end..last.end, &text)
    }

    fn replaced(&self, place: Range<usize>, text: &str) -> String {
        format!("{}{text}{}", &self.text[..place.start], &self.text[place.end..])
    }

    fn line_before(&self, at: usize) -> &str {
        let before = &self.text[..at];
        &before[before.rfind('\n').map_or(0, |end| end + 1)..]
    }

    fn begins_line(&self, at: usize) -> bool {
        self.text[..at].contains('\n') && self.line_before(at).trim().is_empty()
    }

    /// What the line of this place begins with.
    fn indent_at(&self, at: usize) -> String {
        self.line_before(at).chars().take_while(|letter| " \t".contains(*letter)).collect()
    }

    /// A value over several lines, all but the first after this indent.
    fn pretty(&self, value: &impl Serialize, indent: &str) -> String {
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit.as_bytes());
        value
            .serialize(&mut Serializer::with_formatter(&mut bytes, formatter))
            .expect("what we write is JSON");
        // Line breaks inside of texts are escaped, so these are all between values.
        String::from_utf8_lossy(&bytes).replace('\n', &format!("{}{indent}", self.line_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use serde_json::{Map, json};

    fn server() -> Value {
        json!({ "command": "t" })
    }

    fn add(text: &str) -> Result<Merged, MergeError> {
        merge(text, "mcpServers", "new", &server(), Other::Keep)
    }

    #[track_caller]
    fn added(text: &str, expected: &str) {
        let merged = add(text).unwrap();
        assert_eq!(merged, Merged::Added(expected.to_owned()));
        assert_eq!(add(expected).unwrap(), Merged::Present);
    }

    #[test]
    fn a_server_goes_where_servers_are() {
        added(
            "",
            "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"t\"\n    }\n  }\n}\n",
        );
        added(
            "{\n    \"z\": 1.50,\n    \"mcpServers\": {\n        \"old\": {}\n    },\n    \"a\": [ ]\n}",
            "{\n    \"z\": 1.50,\n    \"mcpServers\": {\n        \"old\": {},\n        \"new\": {\n            \
             \"command\": \"t\"\n        }\n    },\n    \"a\": [ ]\n}",
        );
        added(
            "{\n\t\"mcpServers\": {}\n}",
            "{\n\t\"mcpServers\": {\n\t\t\"new\": {\n\t\t\t\"command\": \"t\"\n\t\t}\n\t}\n}",
        );
        added(
            r#"{"a":"}","mcpServers":{"old":{"x":[1,{}]}},"b":2}"#,
            r#"{"a":"}","mcpServers":{"old":{"x":[1,{}]}, "new": {"command":"t"}},"b":2}"#,
        );
        added(r#"{"a": 1}"#, r#"{"a": 1, "mcpServers": {"new":{"command":"t"}}}"#);
    }

    #[test]
    fn line_ends_and_a_byte_order_mark_stay() {
        added(
            "\u{feff}{\r\n  \"a\": 1\r\n}\r\n",
            "\u{feff}{\r\n  \"a\": 1,\r\n  \"mcpServers\": {\r\n    \"new\": {\r\n      \
             \"command\": \"t\"\r\n    }\r\n  }\r\n}\r\n",
        );
    }

    #[test]
    fn escaped_and_repeated_names_are_understood() {
        assert_eq!(
            add(r#"{"mcp\u0053ervers": {"n\u0065w": {"command": "t"}}}"#),
            Ok(Merged::Present)
        );
        // The parser takes the last of two, so that is the one to change.
        added(
            r#"{"mcpServers": {"a": 1}, "mcpServers": {"b": 2}}"#,
            r#"{"mcpServers": {"a": 1}, "mcpServers": {"b": 2, "new": {"command":"t"}}}"#,
        );
    }

    #[test]
    fn another_server_of_the_name_is_kept_unless_told_otherwise() {
        let text =
            "{\n  \"mcpServers\": {\n    \"new\": {\"command\": \"old\"},\n    \"b\": {}\n  }\n}";
        assert_eq!(add(text), Err(MergeError::Taken));
        let replaced = merge(text, "mcpServers", "new", &server(), Other::Replace).unwrap();
        let expected = "{\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"t\"\n    },\n    \"b\": {}\n  }\n}";
        assert_eq!(replaced, Merged::Replaced(expected.to_owned()));
    }

    #[test]
    fn what_is_not_plain_json_is_left_alone() {
        assert_eq!(add("{ // mine\n}"), Err(MergeError::Lenient));
        assert_eq!(add("{\"a\": 1,}"), Err(MergeError::Lenient));
        assert!(matches!(add("{\"a\": }"), Err(MergeError::NotJson(_))));
        assert_eq!(add("[]"), Err(MergeError::NotAnObject(None)));
        let servers = Some("mcpServers".to_owned());
        assert_eq!(add(r#"{"mcpServers": []}"#), Err(MergeError::NotAnObject(servers)));
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                object(inner).prop_map(Value::from),
            ]
        })
    }

    fn object(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
        let name = prop_oneof![Just("new".to_owned()), any::<String>(), "[a-z]{1,3}"];
        prop::collection::btree_map(name, inner, 0..4)
            .prop_map(|members| members.into_iter().collect())
    }

    /// A document in one of the ways in which programs write it.
    fn written(document: &Map<String, Value>, way: usize) -> String {
        let units: [&[u8]; 4] = [b"", b"  ", b"    ", b"\t"];
        let mut bytes = Vec::new();
        let formatter = PrettyFormatter::with_indent(units[way % 4]);
        document.serialize(&mut Serializer::with_formatter(&mut bytes, formatter)).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        match way / 4 {
            0 => text,
            1 => text.replace('\n', "\r\n"),
            _ => serde_json::to_string(document).unwrap(),
        }
    }

    proptest! {
        #[test]
        fn whatever_else_is_there_stays(
            mut document in object(value()),
            servers in prop::option::of(object(value())),
            way in 0..12_usize,
        ) {
            if let Some(servers) = servers {
                document.insert("mcpServers".to_owned(), servers.into());
            }
            let text = written(&document, way);
            let merged = merge(&text, "mcpServers", "new", &server(), Other::Replace).unwrap();
            let new = match merged {
                Merged::Present => text,
                Merged::Added(new) | Merged::Replaced(new) => new,
            };
            let servers = document.entry("mcpServers").or_insert_with(|| json!({}));
            servers["new"] = server();
            prop_assert_eq!(serde_json::from_str::<Map<String, Value>>(&new).unwrap(), document);
            prop_assert_eq!(add(&new).unwrap(), Merged::Present);
        }
    }
}
