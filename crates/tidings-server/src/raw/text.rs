//! The text of a JSON object, member by member, without building any of its values.

use std::borrow::Cow;

use crate::weight::string_end;

/// The layout of a text.
pub(super) struct Layout {
    /// The depth of its values.
    pub(super) depth: usize,
    /// Whether there is no white space between its values.
    pub(super) is_compact: bool,
}

/// Reads the layout of a valid JSON text.
pub(super) fn layout(text: &str) -> Layout {
    let (mut depth, mut open, mut is_compact, mut at) = (0, 0_usize, true, 0);
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1),
            b'{' | b'[' => {
                open += 1;
                depth = depth.max(open);
            }
            b'}' | b']' => open = open.saturating_sub(1),
            b' ' | b'\t' | b'\r' | b'\n' => is_compact = false,
            _ => {}
        }
        at += 1;
    }
    Layout { depth, is_compact }
}

/// A JSON text without the white space between its values.
pub(super) fn compact(text: &str) -> String {
    let mut compact = String::with_capacity(text.len());
    let (bytes, mut at, mut kept) = (text.as_bytes(), 0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1),
            b' ' | b'\t' | b'\r' | b'\n' => {
                compact.push_str(&text[kept..at]);
                kept = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    compact.push_str(&text[kept..]);
    compact
}

/// A member of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    /// Its name with quotation marks, in its original spelling.
    pub(crate) key: &'a str,
    /// The text of its value.
    pub(crate) value: &'a str,
}

impl Member<'_> {
    /// Whether this is its name, in any spelling.
    pub(crate) fn is(&self, name: &str) -> bool {
        name_of(self.key) == name
    }
}

/// The decoded name of a key. Half of a surrogate pair is not a character: such a key is compared
/// in its original spelling.
pub(super) fn name_of(key: &str) -> Cow<'_, str> {
    let inner = &key[1..key.len() - 1];
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str(key).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// Whether a JSON text contains this name or text, in any spelling.
pub(crate) fn has_string(text: &str, wanted: &str) -> bool {
    let (bytes, mut at) = (text.as_bytes(), 0);
    while let Some(found) = text[at..].find('"') {
        let start = at + found;
        at = string_end(bytes, start + 1) + 1;
        if name_of(&text[start..at]) == wanted {
            return true;
        }
    }
    false
}

/// The members of an object without white space between its values, in order. A value that is not
/// an object has none.
pub(crate) fn members(object: &str) -> impl Iterator<Item = Member<'_>> {
    let bytes = object.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        // Behind the opening brace, or a comma.
        at += 1;
        if bytes[0] != b'{' || bytes.get(at) != Some(&b'"') {
            return None;
        }
        let (start, colon) = (at, string_end(bytes, at + 1) + 1);
        at = value_end(bytes, colon + 1);
        Some(Member { key: &object[start..colon], value: &object[colon + 1..at] })
    })
}

/// The end of the value that begins here.
fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut open = 0_usize;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at + 1),
            b'{' | b'[' => open += 1,
            b',' | b'}' | b']' if open == 0 => return at,
            b'}' | b']' => open -= 1,
            _ => {}
        }
        at += 1;
    }
    at
}

/// An object with other values, and without the members that get none.
pub(super) fn edited<'a>(
    object: &'a str,
    mut value: impl FnMut(&Member<'a>) -> Option<&'a str>,
) -> String {
    let mut text = String::with_capacity(object.len());
    text.push('{');
    for member in members(object) {
        if let Some(value) = value(&member) {
            put_comma(&mut text);
            text.push_str(member.key);
            text.push(':');
            text.push_str(value);
        }
    }
    text.push('}');
    text
}

/// Adds a member to an object.
pub(super) fn push_member(object: &mut String, name: &str, value: &str) {
    object.pop();
    put_comma(object);
    object.push_str(&serde_json::Value::from(name).to_string());
    object.push(':');
    object.push_str(value);
    object.push('}');
}

fn put_comma(object: &mut String) {
    if object.len() > 1 {
        object.push(',');
    }
}
