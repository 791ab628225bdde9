//! An `mcp.json` with comments and trailing commas: read it, or add one server and leave the rest
//! unchanged.

use jsonc_parser::ast;
use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::Value;

/// Accepts comments and trailing commas, and otherwise only JSON.
const SYNTAX: ParseOptions = ParseOptions {
    allow_comments: true,
    allow_trailing_commas: true,
    allow_loose_object_property_names: false,
    allow_missing_commas: false,
    allow_single_quoted_strings: false,
    allow_hexadecimal_numbers: false,
    allow_unary_plus_numbers: false,
    allow_bare_decimal_point_numbers: false,
    allow_non_finite_numbers: false,
    allow_extended_string_escapes: false,
};

/// The byte order mark that some editors write.
const MARK: char = '\u{feff}';

/// The outcome of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    /// The same server is there already.
    Present,
    /// The new text, with a new server.
    Added(String),
    /// The new text, with a replaced server.
    Replaced(String),
}

/// Whether to replace a different server of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Other {
    Keep,
    Replace,
}

/// Why a text was left unchanged.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum MergeError {
    /// It is not JSON; the message of the parser.
    NotJson(String),
    /// The text, or its member with the servers, is not an object.
    NotAnObject(Option<String>),
    /// It has a different server of that name.
    Taken,
}

impl std::fmt::Display for MergeError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotJson(reason) => write!(formatter, "invalid JSON: {reason}"),
            Self::NotAnObject(None) => formatter.write_str("it is not a JSON object"),
            Self::NotAnObject(Some(key)) => write!(formatter, "its `{key}` is not an object"),
            Self::Taken => formatter.write_str("it has another server of that name"),
        }
    }
}

impl std::error::Error for MergeError {}

/// The value of a text; `None` if the text is empty.
///
/// # Errors
///
/// If the text is not JSON, even with comments and trailing commas.
pub(super) fn read(text: &str) -> Result<Option<Value>, ParseError> {
    let tree = CstRootNode::parse(text.strip_prefix(MARK).unwrap_or(text), &SYNTAX)?;
    Ok(tree.to_serde_value())
}

/// Adds a server under `key`. Comments, order and layout of the rest stay.
///
/// # Errors
///
/// If the text is not JSON of the usual form, or has a different server of that name.
pub(crate) fn merge(
    text: &str,
    key: &str,
    name: &str,
    server: &impl Serialize,
    other: Other,
) -> Result<Merged, MergeError> {
    let body = text.strip_prefix(MARK).unwrap_or(text);
    let mark = &text[..text.len() - body.len()];
    let body = if body.trim().is_empty() { "{}\n" } else { body };
    let not_json = |error: ParseError| MergeError::NotJson(error.to_string());
    let tree = CstRootNode::parse(body, &SYNTAX).map_err(not_json)?;
    let root = tree.object_value_or_create().ok_or(MergeError::NotAnObject(None))?;
    let Some(servers) = member(&root, key) else {
        let servers = std::collections::BTreeMap::from([(name, server)]);
        append(&root, key, &servers);
        return Ok(Merged::Added(format!("{mark}{tree}")));
    };
    let servers =
        servers.object_value().ok_or_else(|| MergeError::NotAnObject(Some(key.to_owned())))?;
    let Some(found) = member(&servers, name) else {
        append(&servers, name, server);
        return Ok(Merged::Added(format!("{mark}{tree}")));
    };
    if found.to_serde_value() == serde_json::to_value(server).ok() {
        return Ok(Merged::Present);
    }
    if other == Other::Keep {
        return Err(MergeError::Taken);
    }
    let is_line = is_on_one_line(&servers);
    found.set_value(if is_line { as_it_stands(written(server)) } else { over_lines(server) });
    Ok(Merged::Replaced(format!("{mark}{tree}")))
}

/// Removes servers under `key`. Comments, order and layout of the rest stay.
///
/// # Errors
///
/// If the text is not JSON of the usual form.
pub(crate) fn without(text: &str, key: &str, names: &[&str]) -> Result<String, MergeError> {
    let body = text.strip_prefix(MARK).unwrap_or(text);
    let mark = &text[..text.len() - body.len()];
    let not_json = |error: ParseError| MergeError::NotJson(error.to_string());
    let tree = CstRootNode::parse(body, &SYNTAX).map_err(not_json)?;
    let servers = tree.object_value().and_then(|root| member(&root, key)?.object_value());
    let servers = servers.ok_or_else(|| MergeError::NotAnObject(Some(key.to_owned())))?;
    for name in names {
        while let Some(found) = member(&servers, name) {
            found.remove();
        }
    }
    Ok(format!("{mark}{tree}"))
}

/// A member by name. Of several with one name the last counts, as it does for hosts.
fn member(object: &CstObject, name: &str) -> Option<CstObjectProp> {
    let is_it = |member: &CstObjectProp| member.decoded_name().as_deref() == Some(name);
    object.properties().into_iter().rev().find(is_it)
}

/// Appends a member to an object.
fn append(object: &CstObject, name: &str, value: &impl Serialize) {
    match object.properties().last() {
        // The tree would break the line, so the member is written after the last value as text.
        Some(last) if is_on_one_line(object) => {
            let name = serde_json::to_string(name).expect("a text is JSON");
            let before = last.value().map(|value| value.to_string()).unwrap_or_default();
            last.set_value(as_it_stands(format!("{before}, {name}: {}", written(value))));
        }
        _ => drop(object.append(name, over_lines(value))),
    }
}

fn is_on_one_line(object: &CstObject) -> bool {
    !object.to_string().contains('\n')
}

fn written(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("what we write is JSON")
}

/// A text that the tree writes unchanged, as it does with numbers.
fn as_it_stands(text: String) -> CstInputValue {
    CstInputValue::Number(text)
}

/// A value that the tree writes over several lines.
fn over_lines(value: &impl Serialize) -> CstInputValue {
    let text = written(value);
    let tree = parse_to_ast(&text, &CollectOptions::default(), &SYNTAX);
    input(tree.ok().and_then(|tree| tree.value).expect("what we write is JSON"))
}

/// A value with its members in order.
fn input(value: ast::Value<'_>) -> CstInputValue {
    match value {
        ast::Value::StringLit(text) => CstInputValue::String(text.value.into_owned()),
        ast::Value::NumberLit(number) => CstInputValue::Number(number.value.to_owned()),
        ast::Value::BooleanLit(truth) => CstInputValue::Bool(truth.value),
        ast::Value::NullKeyword(_) => CstInputValue::Null,
        ast::Value::Array(array) => {
            CstInputValue::Array(array.elements.into_iter().map(input).collect())
        }
        ast::Value::Object(object) => {
            let member = |member: ast::ObjectProp<'_>| {
                (member.name.as_str().to_owned(), input(member.value))
            };
            CstInputValue::Object(object.properties.into_iter().map(member).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
    use serde_json::ser::PrettyFormatter;
    use serde_json::{Map, Serializer, json};

    fn server() -> Value {
        json!({ "command": "t" })
    }

    fn add(text: &str) -> Result<Merged, MergeError> {
        merge(text, "mcpServers", "new", &server(), Other::Keep)
    }

    #[test]
    fn removed_servers_leave_the_others_and_the_comments() {
        let text = "{\n  // mine\n  \"mcpServers\": {\n    \"a\": {},\n    \"b\": {} // kept\n  },\n  \"x\": 1\n}\n";
        let rest = without(text, "mcpServers", &["a"]).unwrap();
        assert!(rest.contains("// mine") && rest.contains("// kept"), "{rest}");
        let value = read(&rest).unwrap().unwrap();
        assert_eq!(value, json!({ "mcpServers": { "b": {} }, "x": 1 }));
        let none = without(text, "mcpServers", &["a", "b", "c"]).unwrap();
        assert_eq!(read(&none).unwrap().unwrap()["mcpServers"], json!({}));
        assert!(without("[]", "mcpServers", &["a"]).is_err());
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
    fn comments_and_spare_commas_stay() {
        added(
            "// mine\n{\n  // servers\n  \"mcpServers\": {\n    \"old\": {}, // first\n    /* last */\n  },\n}\n",
            "// mine\n{\n  // servers\n  \"mcpServers\": {\n    \"old\": {}, // first\n    \"new\": {\n      \
             \"command\": \"t\",\n    },\n    /* last */\n  },\n}\n",
        );
        // A comma goes before the comment, not into it.
        added(
            "{\n  \"a\": 1 // one\n}",
            "{\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"t\"\n    \
             }\n  }\n}",
        );
        added(
            "{ // mine\n}",
            "{ // mine\n  \"mcpServers\": {\n    \"new\": {\n      \"command\": \"t\"\n    }\n  }\n}",
        );
        let text =
            "{\"mcpServers\": {/* a */ \"new\": {\"command\": \"old\" /* b */} /* c */}} // d";
        let replaced = merge(text, "mcpServers", "new", &server(), Other::Replace);
        let expected = "{\"mcpServers\": {/* a */ \"new\": {\"command\":\"t\"} /* c */}} // d";
        assert_eq!(replaced, Ok(Merged::Replaced(expected.to_owned())));
    }

    #[test]
    fn what_is_not_json_is_left_alone() {
        for text in ["{\"a\": }", "{a: 1}", "{'a': 1}", "{\"a\": 0x1}", "/* open", "{} {}"] {
            assert!(matches!(add(text), Err(MergeError::NotJson(_))), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(matches!(add(&deep), Err(MergeError::NotJson(_))));
        assert_eq!(add("[]"), Err(MergeError::NotAnObject(None)));
        let servers = Some("mcpServers".to_owned());
        assert_eq!(add(r#"{"mcpServers": []}"#), Err(MergeError::NotAnObject(servers)));
    }

    #[test]
    fn comments_and_spare_commas_are_read_over() {
        let value = json!({ "url": "http://a/b", "c": ["\",}", "é\\", ",]"] });
        let text = "\u{feff}{\"url\": \"http://a/b\", // one\n\"c\": [\"\\\",}\", /* two\nlines */ \"é\\\\\", \",]\",],}";
        assert_eq!(read(text).unwrap(), Some(value));
        assert_eq!(read("// nothing").unwrap(), None);
        let error = read("{\n  \"a\": 1\n  \"b\": 2}").unwrap_err().to_string();
        assert!(error.contains("line 2"), "{error}");
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
