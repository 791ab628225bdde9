//! Windows of a JSON tree: the children of one node, a page at a time, so that a large value is
//! never sent whole.

use serde::Serialize;
use serde_json::Value;

use crate::console::secret::{DOTS, is_secret};

/// The most children of one window.
pub(crate) const COUNT: usize = 200;
/// The most characters of a string that is shown whole.
const TEXT: usize = 4_000;
/// The most characters of a preview.
const PREVIEW: usize = 80;
/// The most places that a search returns.
const FOUND: usize = 200;

/// The children of a node from one place on.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Window {
    /// The number of all children.
    pub(crate) total: usize,
    pub(crate) from: usize,
    pub(crate) nodes: Vec<Node>,
}

/// One child.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Node {
    pub(crate) key: String,
    /// Its place, as a JSON pointer.
    pub(crate) at: String,
    pub(crate) kind: &'static str,
    /// The value, or the beginning of a long one.
    pub(crate) text: String,
    /// The number of its children.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) count: Option<usize>,
    /// The length of a string that is not shown whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) length: Option<usize>,
}

/// The children of the node at a pointer.
pub(crate) fn window(root: &Value, at: &str, from: usize, count: usize) -> Option<Window> {
    let node = root.pointer(at)?;
    let count = count.min(COUNT);
    let child = |key: &str, value: &Value| described(key, format!("{at}/{}", escaped(key)), value);
    let (total, nodes) = match node {
        Value::Object(fields) => {
            let shown = fields.iter().skip(from).take(count);
            (fields.len(), shown.map(|(key, value)| child(key, value)).collect())
        }
        Value::Array(values) => {
            let shown = values.iter().enumerate().skip(from).take(count);
            (values.len(), shown.map(|(index, value)| child(&index.to_string(), value)).collect())
        }
        scalar => {
            let name = at.rsplit('/').next().unwrap_or_default();
            (1, vec![described(name, at.to_owned(), scalar)])
        }
    };
    Some(Window { total, from, nodes })
}

/// The places whose key or text contains a word, in order.
pub(crate) fn find(root: &Value, word: &str) -> Vec<String> {
    let word = word.to_lowercase();
    let mut found = Vec::new();
    if !word.is_empty() {
        search(root, &word, &mut String::new(), &mut found);
    }
    found
}

fn search(node: &Value, word: &str, at: &mut String, found: &mut Vec<String>) {
    if found.len() == FOUND {
        return;
    }
    let visit = |key: &str, value: &Value, at: &mut String, found: &mut Vec<String>| {
        let length = at.len();
        at.push('/');
        at.push_str(&escaped(key));
        let is_hidden = is_secret(key);
        let is_here = key.to_lowercase().contains(word)
            || (!is_hidden && scalar(value).is_some_and(|it| it.to_lowercase().contains(word)));
        if is_here && found.len() < FOUND {
            found.push(at.clone());
        }
        search(value, word, at, found);
        at.truncate(length);
    };
    match node {
        Value::Object(fields) => {
            for (key, value) in fields {
                visit(key, value, at, found);
            }
        }
        Value::Array(values) => {
            for (index, value) in values.iter().enumerate() {
                visit(&index.to_string(), value, at, found);
            }
        }
        _ => {}
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

fn described(key: &str, at: String, value: &Value) -> Node {
    let (mut count, mut length) = (None, None);
    let (kind, text) = match value {
        Value::String(_) | Value::Number(_) if is_secret(key) => ("secret", DOTS.to_owned()),
        Value::Null => ("null", "null".to_owned()),
        Value::Bool(value) => ("boolean", value.to_string()),
        Value::Number(number) => ("number", number.to_string()),
        Value::String(text) => {
            let shown: String = text.chars().take(TEXT).collect();
            length = (shown.len() < text.len()).then_some(text.len());
            ("string", shown)
        }
        Value::Array(values) => {
            count = Some(values.len());
            ("array", preview(value))
        }
        Value::Object(fields) => {
            count = Some(fields.len());
            ("object", preview(value))
        }
    };
    Node { key: key.to_owned(), at, kind, text, count, length }
}

/// A value in a few words.
pub(crate) fn preview(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text, None);
    if text.chars().count() <= PREVIEW {
        return text;
    }
    text.chars().take(PREVIEW - 1).chain(std::iter::once('…')).collect()
}

/// Writes a value until the preview is full: the rest of a large value is not looked at.
fn write(value: &Value, text: &mut String, key: Option<&str>) {
    if text.len() > 4 * PREVIEW {
        return;
    }
    match value {
        Value::String(_) | Value::Number(_) if key.is_some_and(is_secret) => text.push_str(DOTS),
        Value::String(string) => {
            let short: String = string.chars().take(PREVIEW).collect();
            text.push_str(&Value::String(short).to_string());
        }
        Value::Array(values) => {
            text.push('[');
            for (index, value) in values.iter().enumerate().take(PREVIEW) {
                text.push_str(if index == 0 { "" } else { ", " });
                write(value, text, None);
            }
            text.push(']');
        }
        Value::Object(fields) => {
            text.push('{');
            for (index, (key, value)) in fields.iter().enumerate().take(PREVIEW) {
                text.push_str(if index == 0 { "" } else { ", " });
                text.push_str(key);
                text.push_str(": ");
                write(value, text, Some(key));
            }
            text.push('}');
        }
        other => text.push_str(&other.to_string()),
    }
}

fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_window_has_some_children_and_knows_how_many_there_are() {
        let values: Vec<_> = (0..1000).collect();
        let window = window(&json!({ "a/b": values }), "/a~1b", 990, 200).unwrap();
        assert_eq!((window.total, window.nodes.len()), (1000, 10));
        assert_eq!((&*window.nodes[0].at, &*window.nodes[0].text), ("/a~1b/990", "990"));
        assert!(super::window(&json!({}), "/nowhere", 0, 1).is_none());
    }

    #[test]
    fn a_child_is_described_in_a_few_words() {
        let value = json!({ "checks": [{ "name": "seal", "ok": true }], "token": "hunter2" });
        let window = window(&value, "", 0, 200).unwrap();
        assert_eq!(window.nodes[0].text, r#"[{name: "seal", ok: true}]"#);
        assert_eq!((window.nodes[0].kind, window.nodes[0].count), ("array", Some(1)));
        assert_eq!((window.nodes[1].kind, &*window.nodes[1].text), ("secret", DOTS));
        assert!(!preview(&value).contains("hunter2"));
        let long = json!({ "text": "x".repeat(2 * TEXT) });
        assert_eq!(super::window(&long, "", 0, 1).unwrap().nodes[0].length, Some(2 * TEXT));
    }

    #[test]
    fn a_search_finds_keys_and_texts_but_no_secrets() {
        let value = json!({ "Port": 2, "list": [{ "say": "the port" }], "secret": "port" });
        assert_eq!(find(&value, "port"), ["/Port", "/list/0/say"]);
        assert!(find(&value, "").is_empty());
    }
}
