//! One start tag: is it valid XML, and if not, how is it repaired?

use super::{is_name, is_name_start};

/// The verdict on a start tag.
#[derive(Debug)]
pub(super) enum Tag {
    /// Valid, with this length.
    Fine(usize),
    /// Invalid: this many bytes are replaced by this.
    Mended { end: usize, text: String },
    /// Without an end.
    Endless,
}

/// Checks the tag at the beginning of a text. Invariant: the time is proportional to the length of
/// the tag, except for a quote without its partner; at most one of each kind is searched to the end
/// of the document.
pub(super) fn read(text: &str) -> Tag {
    match fine(text.as_bytes()) {
        Some(end) => Tag::Fine(end),
        None => mend(text),
    }
}

/// The length of a valid tag.
fn fine(bytes: &[u8]) -> Option<usize> {
    let mut position = 1 + bytes[1..].iter().take_while(|byte| is_name(**byte)).count();
    loop {
        let space = spaces(bytes, position);
        position += space;
        match *bytes.get(position)? {
            b'>' => return Some(position + 1),
            b'/' => return (*bytes.get(position + 1)? == b'>').then_some(position + 2),
            byte if space > 0 && is_name_start(byte) => {}
            _ => return None,
        }
        position += bytes[position..].iter().take_while(|byte| is_name(**byte)).count();
        position += spaces(bytes, position);
        (*bytes.get(position)? == b'=').then_some(())?;
        position += 1;
        position += spaces(bytes, position);
        let quote = bytes.get(position).copied().filter(|byte| matches!(byte, b'"' | b'\''))?;
        let value = &bytes[position + 1..];
        let length = value.iter().position(|byte| *byte == quote || *byte == b'<')?;
        (value[length] == quote).then_some(())?;
        position += length + 2;
    }
}

fn spaces(bytes: &[u8], position: usize) -> usize {
    bytes[position..].iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// Reads the readable parts of a tag, and writes them correctly.
fn mend(text: &str) -> Tag {
    let bytes = text.as_bytes();
    let mut position = 1 + bytes[1..].iter().take_while(|byte| is_name(**byte)).count();
    let mut out = text[..position].to_owned();
    loop {
        position += spaces(bytes, position);
        let Some(byte) = bytes.get(position) else { return Tag::Endless };
        match byte {
            b'>' => {
                out.push('>');
                return Tag::Mended { end: position + 1, text: out };
            }
            // The next tag begins before this one ends.
            b'<' => {
                out.push('>');
                return Tag::Mended { end: position, text: out };
            }
            b'/' => {
                position += 1;
                let end = position + spaces(bytes, position);
                if bytes.get(end) == Some(&b'>') {
                    out.push_str("/>");
                    return Tag::Mended { end: end + 1, text: out };
                }
            }
            byte if is_name_start(*byte) => {
                let length = bytes[position..].iter().take_while(|byte| is_name(**byte)).count();
                let name = &text[position..position + length];
                position += length;
                match value(text, position) {
                    Value::None => push(&mut out, name, ""),
                    Value::Text { from, to, next } => {
                        push(&mut out, name, &text[from..to]);
                        position = next;
                    }
                    Value::Endless => return Tag::Endless,
                }
            }
            // A stray quote, a comma, a digit.
            _ => position += 1,
        }
    }
}

enum Value {
    None,
    Text { from: usize, to: usize, next: usize },
    Endless,
}

/// The value after the name of an attribute.
fn value(text: &str, position: usize) -> Value {
    let bytes = text.as_bytes();
    let position = position + spaces(bytes, position);
    if bytes.get(position) != Some(&b'=') {
        return Value::None;
    }
    let position = position + 1;
    let start = position + spaces(bytes, position);
    let Some(&first) = bytes.get(start) else { return Value::Endless };
    if !matches!(first, b'"' | b'\'') {
        let ends = |byte: &u8| byte.is_ascii_whitespace() || matches!(byte, b'>' | b'<');
        let Some(length) = bytes[start..].iter().position(ends) else { return Value::Endless };
        // The slash of `<a b=c/>` is not part of the value; the inner one of `<a b=c/d/>` is.
        let is_slash =
            bytes[start..start + length].ends_with(b"/") && bytes[start + length] == b'>';
        let to = start + length - usize::from(is_slash);
        return Value::Text { from: start, to, next: to };
    }
    let from = start + 1;
    let quoted = &text[from..];
    let closed = quoted.find(char::from(first)).filter(|length| {
        let fits = |byte: &u8| {
            byte.is_ascii_whitespace() || is_name_start(*byte) || matches!(byte, b'>' | b'/')
        };
        // A value with tags in it, followed by nothing that follows a value, ends at the quote of
        // another tag; its own is missing.
        let is_odd = quoted[..*length].contains('<') && quoted[..*length].contains('>');
        !is_odd
            || bytes.get(from + length + 1).is_some_and(|byte| fits(byte) && *byte != b'<')
                && !quoted[..*length].ends_with('=')
    });
    if let Some(length) = closed {
        return Value::Text { from, to: from + length, next: from + length + 1 };
    }
    match quoted.find(['>', '<']) {
        Some(length) => Value::Text { from, to: from + length, next: from + length },
        None => Value::Endless,
    }
}

fn push(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push_str("=\"");
    for letter in value.chars() {
        match letter {
            '"' => out.push_str("&quot;"),
            '<' => out.push_str("&lt;"),
            _ => out.push(letter),
        }
    }
    out.push('"');
}
